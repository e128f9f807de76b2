"""Watches and writes: module → rows on disk.

run         the folder that training writes and views read: recorded, store, checkpoint, status, folder, sinks/
tracker     looks at a model while it learns: watch, recorder, foreign, calls, seen, written, quantised
statistics  measures without the n×n matrix: look, maps, fast, kernels, vectors, measures/
"""
