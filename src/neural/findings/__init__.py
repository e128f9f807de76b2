"""Findings: what the checks say about a run; head roles, phases, advice, quality of texts.

Reads run folders only and imports no training code, so runs of any age can be analysed.
"""
