"""Padding and masks of windows over a sequence, also with the integer division of ONNX."""

import pytest
import torch

from neural.nn.build import build
from neural.nn.convolution import compute_same_padding, window_mask
from tests.programs import load_network


class OnnxInt(int):
    """A size in an ONNX graph, where division rounds towards zero: -7 // 2 is -3."""

    def __neg__(self):
        return OnnxInt(-int(self))

    def __floordiv__(self, other):
        return OnnxInt(int(int(self) / other))


def test_padding_is_the_same_where_division_rounds_towards_zero():
    for size in range(1, 12):
        for window, stride in ((3, 2), (5, 3), (2, 3), (1, 4)):
            assert compute_same_padding(
                [OnnxInt(size)], [window], [stride]
            ) == compute_same_padding([size], [window], [stride])
            assert (
                size + sum(compute_same_padding([size], [window], [stride])) - window
            ) // stride + 1 == -(-size // stride)


def padding_mask(lengths, time):
    return torch.arange(time) < torch.tensor(lengths).unsqueeze(-1)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 2, 3, 4])
@pytest.mark.parametrize("padding", ["valid", "same"])
def test_a_padded_sequence_has_as_many_real_windows_as_without_padding(window, stride, padding):
    lengths = [4, 5, 6, 7, 11]
    counts = [
        (length - window) // stride + 1 if padding == "valid" else -(-length // stride)
        for length in lengths
    ]
    padded = padding_mask(lengths, 11)
    mask = window_mask(padded, counts[-1], window, stride, padding == "same")
    assert mask.sum(dim=1).tolist() == counts
    assert mask.shape[1] == counts[-1]


def test_a_window_over_a_gap_is_real_by_its_first_position_or_by_all_positions():
    mask = torch.tensor([[True, True, False, True, True, True]])
    assert window_mask(mask, 6, 3, 1, True).tolist() == mask.tolist()
    assert window_mask(mask, 5, 2, 1, False).tolist() == [[True, False, False, True, True]]


WINDOWS = {
    "same": 'Conv1D(4, padding="same")',
    "valid": "Conv1D(4, kernel_size=2)",
    "strided": "Conv1D(4, kernel_size=3, strides=2)",
    "pooled": "MaxPooling1D(2)",
}


@pytest.mark.parametrize("layer", WINDOWS.values(), ids=list(WINDOWS))
def test_layers_behind_windows_over_time_do_not_see_padding(layer):
    text = f"""network A {{
      input: (None, 4)
      layers:
        {layer}
        MultiHeadAttention(num_heads=2)
        GlobalAveragePooling1D()
    }}"""
    torch.manual_seed(0)
    model = build(load_network(text)).double().eval()
    x = torch.randn(2, 7, 4, dtype=torch.float64)
    together = model(x, padding_mask([5, 7], 7))
    torch.testing.assert_close(together[:1], model(x[:1, :5]))
    torch.testing.assert_close(together[1:], model(x[1:]))


def test_a_second_convolution_does_not_see_padding_outputs_of_the_first():
    text = 'network A {\n input: (None, 3)\n layers:\n Conv1D(3, padding="same") * 2\n}'
    torch.manual_seed(0)
    model = build(load_network(text)).double().eval()
    x = torch.randn(1, 6, 3, dtype=torch.float64)
    padded = model(x, padding_mask([4], 6))
    torch.testing.assert_close(padded[:, :4], model(x[:, :4]))
