"""Copies of captured tensors: equal bit for bit, contiguous, apart from the heap if they are large.

The cost of a capture in memory is measured by benchmarks/inspection.py.
"""

import copy
import gc
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from neural.capture.capture_result import Capture
from neural.capture.tensor_copies import MIN_MAPPED_BYTES, compact_tensor, copy_tensor
from neural.capture.watch import watch

LARGE, SMALL = (2, 3, 997, 64), (2, 3, 5, 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [LARGE, SMALL])
def test_a_copy_is_equal_contiguous_and_its_own(shape, dtype):
    B, H, T, D = shape
    q = torch.randn(B, T, 3 * H * D).to(dtype)[..., : H * D].unflatten(-1, (H, D)).transpose(1, 2)
    copied = copy_tensor(q)
    assert copied.dtype == dtype
    assert copied.is_contiguous()
    assert torch.equal(copied, q)
    q.zero_()
    assert copied.any()
    assert copied.untyped_storage().nbytes() == copied.numel() * copied.element_size()


def test_a_copy_has_no_gradients_and_does_not_change_those_of_its_tensor():
    x = torch.randn(LARGE, requires_grad=True)
    y = x * 2
    assert not copy_tensor(y).requires_grad
    y.sum().backward()
    assert torch.equal(x.grad, torch.full(LARGE, 2.0))


def test_a_copy_outlives_its_tensor_and_can_be_copied_again():
    x = torch.arange(MIN_MAPPED_BYTES // 4, dtype=torch.float32)
    copied = copy_tensor(x)
    view, again = copied[-3:], copy.deepcopy(copied)
    del copied
    gc.collect()
    assert torch.equal(view, x[-3:])
    assert torch.equal(again, x)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads the mappings of Linux")
def test_memory_of_a_large_copy_returns_to_the_system():
    count = 16 * MIN_MAPPED_BYTES // 4
    copied = copy_tensor(torch.ones(count))
    address = copied.data_ptr() + count  # in the middle
    assert _is_mapped(address)
    del copied
    gc.collect()
    assert not _is_mapped(address)


def _is_mapped(address):
    ranges = (
        line.split(maxsplit=1)[0].split("-")
        for line in Path("/proc/self/maps").read_text().splitlines()
    )
    return any(int(start, 16) <= address < int(end, 16) for start, end in ranges)


def test_an_expanded_tensor_is_copied_in_full():
    x = torch.randn(1, 1, 4096, 64).expand(2, 3, -1, -1)
    assert torch.equal(copy_tensor(x), x)


def test_a_slice_is_compacted_and_a_complete_tensor_is_not_copied():
    complete = torch.randn(4, 5, requires_grad=True)
    assert compact_tensor(complete).data_ptr() == complete.data_ptr()
    assert not compact_tensor(complete).requires_grad
    part = complete[:, :2]
    assert torch.equal(compact_tensor(part), part)
    assert compact_tensor(part).untyped_storage().nbytes() == 4 * 2 * 4


class FusedAttention(nn.Module):
    """Attention with one projection to queries, keys and values, which it changes afterwards."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)

    def forward(self, x):
        qkv = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        output = scaled_dot_product_attention(*qkv, is_causal=True)
        qkv.zero_()
        return output


@pytest.mark.parametrize(
    "model",
    [
        FusedAttention(),
        nn.TransformerEncoderLayer(32, 4, batch_first=True).eval(),  # torch's fast path
    ],
)
def test_a_capture_keeps_queries_and_keys_and_no_values(model):
    capture = watch(model, torch.randn(2, 7, 32))
    for tensor in (capture[0].attention.q, capture[0].attention.k):
        assert tensor.untyped_storage().nbytes() == 2 * 7 * 32 * 4
        assert tensor.any()


def test_a_capture_keeps_no_values_of_single_rows():
    model, length = FusedAttention(), 601
    capture = watch(model, torch.randn(2, length, 32))
    first = capture.measure_arrays()
    call = capture[0]
    for means in call._row_means.values():
        assert all(length not in tensor.shape for tensor in (means.values, *means.halves))
        # means of several measures may share memory
        num_bytes = 4 * 4 * len(call._row_means)
        assert all(tensor.untyped_storage().nbytes() <= num_bytes for tensor in means.halves)
    assert call.half_means().keys() == call.measures.keys()
    assert isinstance(capture, Capture)
    assert first["entropy"].shape == (1, 4)
