"""Mechanisms of a user, in modules whose helpers have names of ours but do other things."""
