"""Faults that a training must survive, one per file: each has a function `survive(bench)`."""
