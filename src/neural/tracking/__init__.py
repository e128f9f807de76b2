"""What attention does, in numbers.

look.py         one attention as it was called, not written out; maps.py: the same, written out
measure.py      what a measure promises; measures/: one file each
statistics.py   many measures in one pass over the rows, O(n) memory; kernels.py: the compiled loops behind it
"""
