"""What is traced must not depend on the length, or on how torch happens to lay out numbers in memory."""

import pytest
import torch

from neural.exports._traced import AnyLength, traced
from neural.modules.attention.boundary_aware import BoundaryAware
from neural.modules.mask import Mask
from tests.exports.networks import network


def test_what_attention_gives_lies_in_memory_in_one_order():
    q, k, v = torch.rand(3, 2, 5, 3, 7).transpose(2, 3)   # as heads deal them out
    assert AnyLength(BoundaryAware()).mix(q, k, v, Mask(), extra=torch.rand(2, 5)).is_contiguous()


@pytest.mark.filterwarnings("ignore")   # torch's own, about its own classes
def test_pooling_and_padding_of_a_sequence_are_traced_for_every_length():
    leaving = network(
        'network Net {\n  input: (12, 3)\n  layers:\n    Conv1D(2, kernel_size=3, strides=2, padding="same")\n'
        "    MaxPooling1D(2)\n    GlobalAveragePooling1D()\n    Output(2)\n}"
    )
    module = traced(leaving).module()
    for length in (11, 20, 33):
        inputs = leaving.batch(2, length)
        torch.testing.assert_close(module(*inputs), leaving(*inputs))
