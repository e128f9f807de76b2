"""Traced graphs do not depend on the length or on torch's memory layouts."""

import pytest
import torch

from neural.exports._tracing import LengthIndependentMechanism, trace_network
from neural.nn.attention.boundary_aware import BoundaryAware
from neural.nn.mask import Mask
from tests.exports.networks import network


def test_the_output_of_attention_is_contiguous():
    q, k, v = torch.rand(3, 2, 5, 3, 7).transpose(2, 3)  # the layout of split heads
    mechanism = LengthIndependentMechanism(BoundaryAware())
    assert mechanism.attend(q, k, v, Mask(), extra=torch.rand(2, 5)).is_contiguous()


@pytest.mark.filterwarnings("ignore")  # a warning of torch about its own classes
def test_pooling_and_padding_are_traced_for_any_length():
    bundle = network(
        "network Net {\n  input: (12, 3)\n  layers:\n"
        '    Conv1D(2, kernel_size=3, strides=2, padding="same")\n'
        "    MaxPooling1D(2)\n    GlobalAveragePooling1D()\n    Output(2)\n}"
    )
    module = trace_network(bundle).module()
    for length in (11, 20, 33):
        inputs = bundle.create_batch(2, length)
        torch.testing.assert_close(module(*inputs), bundle(*inputs))
