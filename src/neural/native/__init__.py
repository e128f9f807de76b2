"""Kernels compiled ahead of time from C++ (the .cpp files here), and the loader of their library.

library.py     loads the library, chooses the instruction set, calls functions
kernel.h       vectors, exp and log for all kernels; threads.h: parallel loops in torch's threads
gemm_tile.h    products of matrices in registers; entmax_threshold.h: thresholds of sparse softmax;
               huge_pages.h: large pages for large outputs
kernels/       one source file per kernel, compiled once per instruction set
cmake/         how the library is built
"""
