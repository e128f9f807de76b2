"""How weights begin: in the deviations that a program asks for, in every copy, whatever stands around."""

import pytest
import torch

from neural.modules.build import build
from neural.modules.layers.dense import Dense
from neural.modules.layers.embedding import Embedding
from tests.programs import network

WIDTH = 96


def made(init: str, blocks: str) -> torch.nn.Module:
    torch.manual_seed(0)
    text = blocks.replace("BLOCK", f'num_heads=4, d_model={WIDTH}, positional="none", init="{init}"')
    return build(network(f"network A {{\n input: (7, {WIDTH})\n layers:\n{text}\n}}"))


def maps(module: torch.nn.Module) -> dict[str, torch.nn.Linear]:
    return {name: one for name, one in module.named_modules() if isinstance(one, torch.nn.Linear)}


def is_last(name: str) -> bool:
    return name.rpartition(".")[-1] in ("output", "down")


@pytest.mark.parametrize(
    ("blocks", "many"),
    [("TransformerDecoder(BLOCK)", 1), ("TransformerDecoder(BLOCK) * 5", 5),
     ("TransformerEncoder(BLOCK) * 2\nTransformerEncoder(BLOCK) * 3", 5)],
)  # fmt: skip
def test_gpt2_blocks_begin_small_and_the_more_of_them_the_less_each_adds(blocks, many):
    found = maps(made("gpt2", blocks))
    assert len(found) == 6 * many
    for name, one in found.items():
        expected = 0.02 / (2 * many) ** 0.5 if is_last(name) else 0.02
        assert one.weight.std().item() == pytest.approx(expected, rel=0.05), name
        assert one.weight.mean().item() == pytest.approx(0, abs=0.001), name
        assert not one.bias.any(), name


def test_encoder_and_decoder_add_to_streams_of_their_own():
    found = maps(made("gpt2", "TransformerEncoder(BLOCK) * 2\nTransformerDecoder(BLOCK) * 8"))
    assert found["transformer_encoder.0.feed_forward.part.down"].weight.std().item() == pytest.approx(0.01, rel=0.05)
    for part in ("attention", "cross"):
        output = found[f"transformer_decoder.3.{part}.part.output"]
        assert output.weight.std().item() == pytest.approx(0.005, rel=0.05)


def test_zero_blocks_do_nothing_at_first_and_learn_all_the_same():
    module = made("zero", "TransformerEncoder(BLOCK)\nTransformerDecoder(BLOCK) * 3")
    for name, one in maps(module).items():
        assert bool(one.weight.any()) != is_last(name), name
    x = torch.randn(2, 7, WIDTH)
    assert torch.equal(module(x, x), x)
    module(x, x).square().sum().backward()
    assert all(one.weight.grad.any() for name, one in maps(module).items() if is_last(name) and "decoder" in name)


def test_copies_begin_differently():
    one, other = made("gpt2", "TransformerDecoder(BLOCK) * 2").transformer_decoder
    assert not torch.equal(one.feed_forward.part.up.weight, other.feed_forward.part.up.weight)


def test_an_embedding_begins_as_it_says_and_its_padding_at_zero():
    torch.manual_seed(0)
    for init, deviation in (("torch", 1.0), ("gpt2", 0.02)):
        table = Embedding(input_dim=50, output_dim=WIDTH, pad_id=3, init=init).build((7,)).table.weight
        assert not table[3].any()
        assert table[4:].std().item() == pytest.approx(deviation, rel=0.05)


def test_a_dense_layer_begins_as_it_says():
    torch.manual_seed(0)
    small = Dense(units=50, init="gpt2").build((WIDTH,)).linear
    assert small.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not small.bias.any()
    nothing = Dense(units=50, init="zero").build((WIDTH,)).linear
    assert not nothing.weight.any()
    assert not nothing.bias.any()


def test_the_number_of_blocks_is_no_argument_of_a_program():
    layers = 'TransformerDecoder(num_heads=2, positional="none", init="gpt2") * 3'
    (placed,) = network(f"network A {{\n input: (7, 12)\n layers:\n {layers}\n}}").layers
    assert placed.layer.blocks == 3
    assert "blocks" not in repr(placed.layer)
    assert "blocks" not in placed.layer.settings()
