"""Kernel of a decoding step: new tokens of each sample through a GPT-like network, in one call.

`CompiledDecoder` (compiled_decoder.py) prepares the arguments. A sample is one of the texts that
are generated together. The loops, and the reasons for the memory layout, are in
native/kernels/decode_step.cpp; the classes below mirror its structs.

Outputs of linear maps are padded to groups of `GROUP`. A group lies in memory feature by feature;
int8 weights lie in sets of 4 features. `pack_groups` converts a matrix to this layout.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from typing import TYPE_CHECKING

from neural.native.library import NativeFunction
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Shaped
    from torch import Tensor

GROUP = 32
"""Outputs of a group."""
INT8_FEATURES = 4
"""Features of an output that lie together in int8 weights."""
MAX_WIDTH = 65_536
"""Largest number of inputs of a linear map: sums of int8 products must fit in 32 bits."""
PLANES = 3
"""Bytes of an input of int8 weights, if the processor has VNNI."""
MAX_QUERY_TILE = 8
"""Largest number of queries that a thread attends with at a time."""
HUGE_PAGE_BYTES = 2 << 20
MIN_PARALLEL_WEIGHTS = 500_000
"""Smallest number of weights for several threads.

With fewer weights one thread is faster, because threads wait for each other after each stage.
"""

run_step = NativeFunction("decode_step", "ppp iii p i")
"""Network, state, ids (sample, count), samples, count, position, logits or None, threads."""


def _define_fields(pointers: str = "", integers: str = "", floats: str = "") -> list:
    """Fields of a ctypes structure: names separated by spaces, by type, in this order."""
    return [
        *((name, ctypes.c_int64) for name in integers.split()),
        *((name, ctypes.c_double) for name in floats.split()),
        *((name, ctypes.c_void_p) for name in pointers.split()),
    ]


class LinearArguments(ctypes.Structure):
    """The same linear map of all layers: `LinearMap` in C++."""

    _fields_ = [
        *_define_fields("weights scale weight_sums bias"),
        *_define_fields(integers="groups width"),
    ]


class NetworkArguments(ctypes.Structure):
    """Sizes and weights of a network: `DecodeNetwork` in C++."""

    _fields_ = [
        *_define_fields(
            integers="layers heads kv_heads head_width width context rotary_pairs "
            "norm_kind final_norm_kind qk_norm activation is_int8",
            floats="epsilon final_epsilon",
            pointers="token_table position_table cosine sine norm_scale norm_shift "
            "final_scale final_shift",
        ),
        *((name, LinearArguments) for name in ("qkv", "attention_output", "up", "down", "output")),
    ]


class StateArguments(ctypes.Structure):
    """Memory that a step writes: `DecodeState` in C++."""

    _fields_ = [
        *_define_fields(
            "keys values x normed projected attended hidden scratch planes plane_scale"
        ),
        *_define_fields(integers="scratch_size plane_size"),
    ]


def allocate_zeros(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """A tensor of zeros, in huge pages if it is large and the system has them.

    A step reads all weights once, in order: with pages of 4 kB it waits for the page tables.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < 2 * HUGE_PAGE_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.zeros(shape, dtype=dtype)
    memory = mmap.mmap(-1, size + HUGE_PAGE_BYTES)
    memory.madvise(mmap.MADV_HUGEPAGE)
    values = torch.frombuffer(memory, dtype=torch.uint8)  # keeps the memory allocated
    start = -values.data_ptr() % HUGE_PAGE_BYTES
    return values[start : start + size].view(dtype).view(shape)


def pad_to_groups(count: int) -> int:
    """`count` rounded up to a multiple of GROUP."""
    return -(-count // GROUP) * GROUP


def pack_groups(matrix: Shaped[Tensor, "R C"], out: Shaped[Tensor, "G S 32 F"]) -> None:
    """Write a matrix (output, feature) as (group, set of features, output in group, feature in set).

    Sets have 4 features for int8 and 1 for floats. Outputs and features beyond those of the matrix
    are 0.
    """
    groups, sets, _, set_size = out.shape
    rows, width = matrix.shape
    padding = (0, sets * set_size - width, 0, groups * GROUP - rows)
    if any(padding):
        matrix = torch.nn.functional.pad(matrix, padding)
    out.copy_(matrix.view(groups, GROUP, sets, set_size).transpose(1, 2))


def count_threads(num_weights: int) -> int:
    """Threads for a network: those of torch, or 1 for few weights."""
    return 1 if num_weights < MIN_PARALLEL_WEIGHTS else torch.get_num_threads()
