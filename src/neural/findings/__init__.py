"""Findings: what the checks say about a run or a capture; head roles, phases, advice, quality of texts.

They read a `Record` (record.py) and import no training code, so runs of any age can be analysed.
"""
