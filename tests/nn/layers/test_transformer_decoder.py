"""A decoder after an encoder: full cross-attention unless the program sets another."""

import pytest
import torch

from neural.nn.attention import registry as attention
from neural.nn.attention.cross import Cross
from neural.nn.attention.topk import Topk
from neural.nn.build import build
from tests.programs import check_text, load_network

MECHANISMS = attention.names()
POSITION_BOUND = [name for name in MECHANISMS if attention.get(name).self_attention_only]


def program(decoder: str) -> str:
    return f"""network Translator {{
      input: (12,)
      layers:
        Embedding(input_dim=19, output_dim=12)
        TransformerEncoder(num_heads=2, d_model=12, dff=17)
        TransformerDecoder(num_heads=2, d_model=12, dff=17, {decoder})
        Output(19)
    }}"""


def translator(decoder: str) -> torch.nn.Module:
    torch.manual_seed(0)
    return build(load_network(program(decoder))).double().eval()


def ids(length: int, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.randint(0, 19, (2, length))


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(("source_length", "target_length"), [(4, 12), (12, 4)])
def test_every_target_position_sees_every_source_position(name, source_length, target_length):
    model = translator(f'attention="{name}"')
    attention_module = model.transformer_decoder.cross.sublayer
    source, target = ids(source_length), ids(target_length, seed=2)
    calls = []
    mechanism = attention_module.mechanism
    assert type(mechanism) is Cross

    class Recorder:
        def attend(self, q, k, v, mask, dropout=0.0, extra=None):
            calls.append(mechanism.weights(q, k, mask, extra))
            return mechanism.attend(q, k, v, mask, dropout, extra)

    attention_module.mechanism = Recorder()
    model(source, target)
    (weights,) = calls
    assert weights.shape == (2, 2, target_length, source_length)
    assert (weights > 0).all()


@pytest.mark.parametrize("name", MECHANISMS)
def test_step_by_step_decoding_equals_teacher_forcing(name):
    model = translator(f'attention="{name}"')
    source, target = ids(4), ids(12, seed=2)
    full = model(source, target)
    for length in range(1, 13):
        torch.testing.assert_close(model(source, target[:, :length])[:, -1], full[:, length - 1])


def test_the_program_may_choose_another_mechanism_for_the_source():
    model = translator("cross_attention=topk(k=2)")
    assert model.transformer_decoder.cross.sublayer.mechanism == Topk(k=2)
    assert type(model.transformer_decoder.attention.sublayer.mechanism).__name__ == "Self"


@pytest.mark.parametrize("name", POSITION_BOUND)
def test_a_mechanism_that_depends_on_positions_is_refused_for_the_source(name):
    (error,) = check_text(program(f'cross_attention="{name}"')).errors
    assert error.code == "E0223"
    assert (
        error.message == f'"{name}" depends on positions: it cannot relate a target to its source'
    )


def test_mechanisms_that_depend_on_order_or_distance_are_marked():
    assert POSITION_BOUND == ["causal", "localized", "sparse"]


def test_without_an_encoder_cross_attention_gives_a_warning():
    header = "network Writer {\n input: (7, 12)\n layers:\n"
    decoder = 'TransformerDecoder(num_heads=2, cross_attention="topk")'
    result = check_text(f"{header}{decoder}\n}}")
    assert not result.errors
    assert "W0607" in [diagnostic.code for diagnostic in result.diagnostics]
    both = check_text(program('cross_attention="topk"'))
    assert "W0607" not in [diagnostic.code for diagnostic in both.diagnostics]


@pytest.mark.parametrize("decoder", ['attention="additive"', 'cross_attention="additive"', ""])
def test_predicted_parameters_are_the_built_ones(decoder):
    checked_network = load_network(program(decoder))
    model = build(checked_network)
    assert checked_network.cost.parameters == sum(param.numel() for param in model.parameters())
