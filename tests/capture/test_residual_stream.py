"""The final residual stream as a sum: terms of the model's own code, read out exactly."""

import pytest
import torch
from torch import nn

from neural.capture.residual_stream import AttributionError, trace_residual_stream
from tests.capture.attribution_models import (
    build_classifier,
    build_hugging_face,
    build_own,
    draw_ids,
    read_logits,
)


def test_terms_of_an_own_network_are_its_sublayers():
    stream = trace_residual_stream(build_own("final_norm=true"), draw_ids())
    assert [term.path for term in stream.terms] == [
        "embedding",
        "positional_encoding",
        "transformer_decoder.0.attention.sublayer",
        "transformer_decoder.0.feed_forward.sublayer",
        "transformer_decoder.1.attention.sublayer",
        "transformer_decoder.1.feed_forward.sublayer",
    ]


@pytest.mark.parametrize("name", ["gpt2", "llama", "gpt_neox", "opt", "gemma", "mixtral", "bloom"])
def test_terms_are_in_the_order_of_computation_and_sum_to_the_stream(name):
    """GPT-NeoX adds MLP, attention and input in one line; OPT adds flattened tensors; Bloom
    adds the residual stream inside its sublayers."""
    ids = draw_ids()
    stream = trace_residual_stream(build_hugging_face(name), {"input_ids": ids})
    kinds = [
        "attention" if "attn" in term.path or "attention" in term.path else "other"
        for term in stream.terms
    ]
    starts = [index for index, kind in enumerate(kinds) if kind == "attention"]
    assert len(starts) == 2
    assert kinds[starts[0] + 1] == kinds[starts[1] + 1] == "other"
    total = sum(term.value.double() for term in stream.terms)
    torch.testing.assert_close(total.float(), stream.total)


@pytest.mark.parametrize(
    "build",
    [
        lambda: build_own(),
        lambda: build_own("final_norm=true"),
        lambda: build_own('final_norm=true, normalization="rms", bias=false'),
        lambda: build_own("final_norm=true", output=", tied=true, bias=false"),
        lambda: build_hugging_face("gpt2"),
        lambda: build_hugging_face("llama"),
        lambda: build_hugging_face("gemma"),
    ],
    ids=["no norm", "layer norm", "rms norm", "tied", "gpt2", "llama", "gemma"],
)
def test_directions_give_the_logits_and_the_difference(build):
    model, ids = build(), draw_ids()
    positions, answers, against = (torch.tensor(row) for row in ([8, 3, 5], [1, 2, 3], [4, 5, 6]))
    is_own = hasattr(model, "network")
    stream = trace_residual_stream(model, ids if is_own else {"input_ids": ids})
    logits = read_logits(model, ids)[torch.arange(3), positions].double()
    direction, constant = stream.readout.directions(positions, answers, None)
    computed = (stream.total.double() * direction).sum((1, 2)) + constant
    expected = logits[torch.arange(3), answers]
    torch.testing.assert_close(computed, expected, atol=1e-5, rtol=0)
    direction, constant = stream.readout.directions(positions, answers, against)
    computed = (stream.total.double() * direction).sum((1, 2)) + constant
    torch.testing.assert_close(
        computed, expected - logits[torch.arange(3), against], atol=1e-5, rtol=0
    )


def test_the_mean_over_time_of_a_classifier_is_part_of_the_readout():
    model, ids = build_classifier("final_norm=true"), draw_ids()
    stream = trace_residual_stream(model, ids)
    assert stream.readout.is_pooled
    assert not stream.readout.is_sequence
    answers = torch.tensor([0, 1, 4])
    direction, constant = stream.readout.directions(torch.zeros(3).long(), answers, None)
    computed = (stream.total.double() * direction).sum((1, 2)) + constant
    expected = read_logits(model, ids)[torch.arange(3), answers].double()
    torch.testing.assert_close(computed, expected, atol=1e-5, rtol=0)


class AddsInPlace(nn.Module):
    """A residual stream that is one tensor, changed by each layer."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        self.head = nn.Linear(6, 11)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x += layer(x)
        return self.head(x)


def test_additions_in_place_are_terms_too():
    torch.manual_seed(0)
    model, ids = AddsInPlace(), draw_ids()
    stream = trace_residual_stream(model, ids)
    assert [term.path for term in stream.terms] == ["embed", "layers.0", "layers.1", "layers.2"]
    with torch.no_grad():
        torch.testing.assert_close(stream.terms[0].value, model.embed(ids))
        torch.testing.assert_close(stream.readout.logits, model(ids))


def test_tracing_changes_nothing():
    model, ids = build_own("final_norm=true"), draw_ids()
    before = read_logits(model, ids)
    hooks = sum(len(module._forward_hooks) for module in model.modules())
    trace_residual_stream(model, ids)
    assert torch.equal(read_logits(model, ids), before)
    assert sum(len(module._forward_hooks) for module in model.modules()) == hooks


def test_logits_that_are_no_linear_map_are_refused():
    model = build_hugging_face("gemma2")
    model.config.final_logit_softcapping = 30.0
    with pytest.raises(AttributionError, match="soft cap"):
        trace_residual_stream(model, {"input_ids": draw_ids()})


def test_a_model_without_output_layer_is_refused():
    model = build_hugging_face("gpt2").transformer
    with pytest.raises(AttributionError, match="returns no logits"):
        trace_residual_stream(model, {"input_ids": draw_ids()})


class Scaled(nn.Module):
    """A final "norm" that is none."""

    def forward(self, x):
        return x.sigmoid()


Scaled.__name__ = "StrangeNorm"


def test_an_unknown_final_norm_is_refused():
    model = AddsInPlace()
    model.head = nn.Sequential(Scaled(), model.head)
    with pytest.raises(AttributionError, match="neither a layer norm nor an RMS norm"):
        trace_residual_stream(model, draw_ids())
