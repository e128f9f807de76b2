"""Loops that numba compiles at their first use, each with its backward, registered as torch operators."""
