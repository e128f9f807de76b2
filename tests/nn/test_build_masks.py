"""Masks and lengths in unusual networks: regressions that random networks found."""

import torch

from neural.nn.build import build
from tests.programs import load_network


def run_network(layers: str, *lengths: int, size: str = "(16,)"):
    module = build(
        load_network(f"network A {{\n  input: {size}\n  layers:\n    {layers}\n}}")
    ).eval()
    return module(*(torch.randint(0, 9, (2, length)) for length in lengths))


def test_copies_that_change_time_change_the_mask_each_time():
    assert run_network("Embedding(9, 4, pad_id=1)\n MaxPooling1D() * 2", 16).shape == (2, 4, 4)
    assert run_network("Embedding(9, 4, pad_id=1)\n Conv1D(4) * 2", 16).shape == (2, 12, 4)


def test_a_residual_drops_the_mask_if_its_layers_change_time():
    layers = (
        "Embedding(9, 6, pad_id=1)\n "
        "Residual(Reshape((6, 7)), MultiHeadAttention(num_heads=1), Reshape((7, 6)))"
    )
    assert run_network(layers, 7, size="(7,)").shape == (2, 7, 6)


def test_a_reshape_of_the_source_does_not_fix_the_targets_length():
    layers = "Embedding(9, 4)\n TransformerEncoder(2)\n Reshape((4, 16))\n TransformerDecoder(2)"
    assert run_network(layers, 16, 5).shape == (2, 5, 4)


def test_strided_windows_of_one_position_select_positions():
    torch.manual_seed(0)
    for padding in ("valid", "same"):
        layer = f'Conv2D(5, kernel_size=1, strides=(2, 3), padding="{padding}")'
        module = build(
            load_network(f"network A {{\n  input: (7, 9, 2)\n  layers:\n    {layer}\n}}")
        )
        x = torch.randn(3, 7, 9, 2, requires_grad=True)
        output = module(x)
        output.sum().backward()
        weight, bias = module.conv2d.convolution.weight, module.conv2d.convolution.bias
        torch.testing.assert_close(output, x[:, ::2, ::3] @ weight[:, :, 0, 0].T + bias)
