"""Weight initialization: standard deviations, copies, zero blocks."""

import pytest
import torch

from neural.nn.build import build
from neural.nn.layers.dense import Dense
from neural.nn.layers.embedding import Embedding
from tests.programs import load_network

WIDTH = 96


def build_blocks(init: str, blocks: str) -> torch.nn.Module:
    torch.manual_seed(0)
    text = blocks.replace(
        "BLOCK", f'num_heads=4, d_model={WIDTH}, positional="none", init="{init}"'
    )
    return build(load_network(f"network A {{\n input: (7, {WIDTH})\n layers:\n{text}\n}}"))


def find_linears(module: torch.nn.Module) -> dict[str, torch.nn.Linear]:
    return {
        name: child for name, child in module.named_modules() if isinstance(child, torch.nn.Linear)
    }


def is_residual_output(name: str) -> bool:
    return name.rpartition(".")[-1] in ("output", "down")


@pytest.mark.parametrize(
    ("blocks", "num_blocks"),
    [
        ("TransformerDecoder(BLOCK)", 1),
        ("TransformerDecoder(BLOCK) * 5", 5),
        ("TransformerEncoder(BLOCK) * 2\nTransformerEncoder(BLOCK) * 3", 5),
    ],
)
def test_gpt2_residual_outputs_are_scaled_by_the_number_of_blocks(blocks, num_blocks):
    linears = find_linears(build_blocks("gpt2", blocks))
    assert len(linears) == 6 * num_blocks
    for name, linear in linears.items():
        expected = 0.02 / (2 * num_blocks) ** 0.5 if is_residual_output(name) else 0.02
        assert linear.weight.std().item() == pytest.approx(expected, rel=0.05), name
        assert linear.weight.mean().item() == pytest.approx(0, abs=0.001), name
        assert not linear.bias.any(), name


def test_encoder_and_decoder_blocks_are_counted_separately():
    linears = find_linears(
        build_blocks("gpt2", "TransformerEncoder(BLOCK) * 2\nTransformerDecoder(BLOCK) * 8")
    )
    down = linears["transformer_encoder.0.feed_forward.sublayer.down"]
    assert down.weight.std().item() == pytest.approx(0.01, rel=0.05)
    for name in ("attention", "cross"):
        output = linears[f"transformer_decoder.3.{name}.sublayer.output"]
        assert output.weight.std().item() == pytest.approx(0.005, rel=0.05)


def test_zero_blocks_start_as_the_identity_and_have_gradients():
    module = build_blocks("zero", "TransformerEncoder(BLOCK)\nTransformerDecoder(BLOCK) * 3")
    for name, linear in find_linears(module).items():
        assert bool(linear.weight.any()) != is_residual_output(name), name
    x = torch.randn(2, 7, WIDTH)
    assert torch.equal(module(x, x), x)
    module(x, x).square().sum().backward()
    assert all(
        linear.weight.grad.any()
        for name, linear in find_linears(module).items()
        if is_residual_output(name) and "decoder" in name
    )


def test_copies_have_different_weights():
    first, second = build_blocks("gpt2", "TransformerDecoder(BLOCK) * 2").transformer_decoder
    assert not torch.equal(
        first.feed_forward.sublayer.up.weight, second.feed_forward.sublayer.up.weight
    )


def test_an_embedding_is_initialized_as_declared_with_zero_padding():
    torch.manual_seed(0)
    for init, std in (("torch", 1.0), ("gpt2", 0.02)):
        table = (
            Embedding(input_dim=50, output_dim=WIDTH, pad_id=3, init=init).build((7,)).table.weight
        )
        assert not table[3].any()
        assert table[4:].std().item() == pytest.approx(std, rel=0.05)


def test_a_dense_layer_is_initialized_as_declared():
    torch.manual_seed(0)
    small = Dense(units=50, init="gpt2").build((WIDTH,)).linear
    assert small.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not small.bias.any()
    zero = Dense(units=50, init="zero").build((WIDTH,)).linear
    assert not zero.weight.any()
    assert not zero.bias.any()


def test_the_number_of_blocks_is_not_an_argument_of_a_program():
    layers = 'TransformerDecoder(num_heads=2, positional="none", init="gpt2") * 3'
    (placed,) = load_network(f"network A {{\n input: (7, 12)\n layers:\n {layers}\n}}").layers
    assert placed.layer.blocks == 3
    assert "blocks" not in repr(placed.layer)
    assert "blocks" not in placed.layer.argument_specs()
