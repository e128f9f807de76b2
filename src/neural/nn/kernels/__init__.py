"""Native replacements of torch functions; their loops are in neural/native/kernels.

`use_kernel` (kernel_dispatch.py) calls them: `supports` says whether a kernel can compute a call,
`run` computes it.
"""
