"""Analysis of run folders: findings, head roles, phases, correlations, quality of generated text.

Reads run folders only and imports no training code, so runs of any age can be analysed.
"""
