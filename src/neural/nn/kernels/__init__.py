"""Compiled replacements of torch functions, most of them numba loops.

`use_kernel` (kernel_dispatch.py) calls them: `supports` says whether a kernel can compute a call,
`run` computes it.
"""
