"""Compiled kernels behind `use_kernel`, imported at their first use; most are numba loops."""
