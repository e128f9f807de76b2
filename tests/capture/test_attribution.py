"""Value-weighted maps, direct logit attribution and gradients against plain references."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import neural
from neural.capture.attribution import (
    AttributionError,
    compute_weight_gradients,
    trace_attention,
)
from neural.capture.patching import use_dense_weights
from neural.nn.attention.self import Self
from tests.capture.attribution_models import (
    build_classifier,
    build_hugging_face,
    build_own,
    draw_ids,
    read_logits,
)
from tests.circuits import build_induction, find_output_projection

POSITIONS, ANSWERS, AGAINST = (torch.tensor(row) for row in ([8, 3, 5], [1, 2, 3], [4, 0, 3]))


def attribute(model, ids, against=None):
    probe = ids if hasattr(model, "network") else {"input_ids": ids}
    return trace_attention(model, probe).attribute_logits(POSITIONS, ANSWERS, against)


@pytest.mark.parametrize(
    ("build", "missing"),
    [
        (lambda: build_own(), set()),
        (lambda: build_own("final_norm=true"), set()),
        (lambda: build_own('final_norm=true, normalization="rms", positional="rotary"'), set()),
        (lambda: build_own("num_kv_heads=1, final_norm=true", layers=3), set()),
        (lambda: build_own("final_norm=true", output=", tied=true, bias=false"), set()),
        (lambda: build_hugging_face("gpt2"), set()),
        (lambda: build_hugging_face("gpt2", "sdpa"), set()),
        (lambda: build_hugging_face("llama", "sdpa"), {"attention bias", "constant"}),
        (lambda: build_hugging_face("gpt_neox"), set()),
        (lambda: build_hugging_face("qwen2", "sdpa"), {"attention bias", "constant"}),
    ],
    ids=["own", "norm", "rms", "grouped", "tied", "gpt2", "sdpa", "llama", "neox", "qwen2"],
)
def test_parts_sum_to_the_logit(build, missing):
    model, ids = build(), draw_ids()
    logits = read_logits(model, ids)[torch.arange(3), POSITIONS]
    expected = logits[torch.arange(3), ANSWERS].numpy()
    attribution = attribute(model, ids)
    np.testing.assert_allclose(attribution.logits, expected, atol=1e-5)
    np.testing.assert_allclose(attribution.total, expected, atol=1e-4)
    # what a head reads from all source positions is its part
    for layer, heads in enumerate(attribution.heads):
        for head in range(heads.shape[1]):
            part = next(part for part in attribution.parts if part.name == f"L{layer} h{head}")
            np.testing.assert_allclose(heads[:, head].sum(-1), part.values, atol=1e-6)
    kinds = {part.kind for part in attribution.parts}
    # a bias that the model does not have is no part
    assert kinds == {"embedding", "head", "attention bias", "mlp", "constant"} - missing


def test_parts_of_a_difference_sum_to_the_difference():
    model, ids = build_own("final_norm=true"), draw_ids()
    logits = read_logits(model, ids)[torch.arange(3), POSITIONS].double().numpy()
    rows = np.arange(3)
    expected = logits[rows, ANSWERS] - logits[rows, AGAINST]
    attribution = attribute(model, ids, AGAINST)
    np.testing.assert_allclose(attribution.total, expected, atol=1e-4)


def test_parts_of_a_class_sum_to_its_logit():
    model, ids = build_classifier("final_norm=true"), draw_ids()
    tracing = trace_attention(model, ids)
    attribution = tracing.attribute_logits(POSITIONS, ANSWERS)
    expected = read_logits(model, ids)[torch.arange(3), ANSWERS].numpy()
    np.testing.assert_allclose(attribution.total, expected, atol=1e-4)


class LinearModel(nn.Module):
    """Attention with fixed patterns, no MLP and no norm: a linear map of the embeddings."""

    def __init__(self, length=5, heads=2, width=4, vocabulary=7):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(vocabulary, heads * width)
        self.value = nn.Linear(heads * width, heads * width, bias=False)
        self.out_proj = nn.Linear(heads * width, heads * width, bias=False)
        self.unembed = nn.Linear(heads * width, vocabulary, bias=False)
        self.heads = heads
        bias = torch.randn(heads, length, length)
        hidden = torch.ones(length, length).triu(1).bool()
        self.register_buffer("bias", bias.masked_fill(hidden, -torch.inf))

    def forward(self, ids):
        x = self.embed(ids)
        v = self.value(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q = torch.zeros_like(v)
        attended = scaled_dot_product_attention(q, q, v, attn_mask=self.bias)
        return self.unembed(x + self.out_proj(attended.transpose(1, 2).flatten(2)))


class AddedParameters(LinearModel):
    """Terms that have no module of their own, or the same one."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.positions = nn.Parameter(torch.randn(9, 8))
        self.offset = nn.Parameter(torch.randn(8))

    def attend(self, x):
        v = self.value(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q = torch.zeros_like(v)
        attended = scaled_dot_product_attention(q, q, v, attn_mask=self.bias)
        return self.out_proj(attended.transpose(1, 2).flatten(2))

    def forward(self, ids):
        x = self.embed(ids)
        if self.kind == "two parameters":
            x = x + self.positions[: ids.shape[1]] + self.offset
        elif self.kind == "a table twice":
            x = x + self.embed(ids.roll(1, dims=1))
        x = x + self.attend(x)
        if self.kind == "computed twice":
            x = x + self.offset * 2
            x = x + self.offset * 3
        elif self.kind == "heads twice":
            written = self.attend(x - x.mean())
            x = x + written + written
        return self.unembed(x)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("two parameters", {"embed", "positions", "offset"}),
        ("a table twice", {"embed", "embed (2)"}),
        ("computed twice", {"embed", "added", "added (2)"}),
        ("heads twice", {"embed", "L1 h0", "L1 h1"}),
    ],
)
def test_parts_of_equal_origin_have_names_of_their_own_and_sum_to_the_logit(kind, names):
    model, ids = AddedParameters(kind).eval(), torch.tensor([[1, 2, 3, 4, 5]])
    result = neural.attribute(model, ids, methods=["attention"])
    assert names <= set(result.parts)
    assert sum(result.parts.values()) == pytest.approx(result.answer.logit, abs=1e-5)
    heads = sum(value for name, value in result.parts.items() if " h" in name)
    assert np.nansum(result.head_parts) == pytest.approx(heads, abs=1e-6)


def test_attribution_of_a_linear_model_is_exact():
    """Removing a token's embedding from what heads read changes the logit by exactly its part."""
    model, ids = LinearModel().eval(), torch.tensor([[1, 2, 3, 4, 5]])
    position, answer = torch.tensor([4]), torch.tensor([6])
    attribution = trace_attention(model, ids).attribute_logits(position, answer)
    assert attribution.error < 1e-6
    weights = model.bias.softmax(-1)
    with torch.no_grad():
        x = model.embed(ids)[0]
        for head in range(2):
            for source in range(5):
                rows = slice(4 * head, 4 * head + 4)
                vector = model.value.weight[rows] @ x[source] * weights[head, 4, source]
                expected = model.unembed.weight[6] @ (model.out_proj.weight[:, rows] @ vector)
                part = attribution.heads[0][0, head, source]
                assert part == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("family", ["own", "gpt2"])
def test_the_induction_head_alone_writes_the_answer(family):
    circuit = build_induction(family)
    batch = circuit.draw(1, seed=3)
    position = int(batch.has_target[0].nonzero()[-1])
    tokens, answer = batch.tokens[:, : position + 1], int(batch.targets[0, position])
    tracing = trace_attention(circuit.model.eval(), tokens)
    attribution = tracing.attribute_logits(torch.tensor([position]), torch.tensor([answer]))
    parts = {part.name: float(part.values[0]) for part in attribution.parts}
    assert parts.pop("L1 h0") == pytest.approx(attribution.logits[0], abs=1e-3)
    assert max(map(abs, parts.values())) < 1e-3
    source = int(attribution.heads[1][0, 0].argmax())
    assert tokens[0, source] == answer
    assert tokens[0, source - 1] == tokens[0, -1]


@pytest.mark.parametrize("family", ["own", "gpt2"])
def test_projections_are_found_with_their_matrices(family):
    model = build_induction(family, noise=0.02).model.eval()
    tracing = trace_attention(model, draw_ids())
    for layer, projection in enumerate(tracing.projections):
        module = find_output_projection(model, layer)
        assert projection.module is module
        matrix = module.weight.double() if family == "gpt2" else module.weight.double().T
        torch.testing.assert_close(
            projection.weight.flatten(0, 1), matrix.detach(), atol=1e-6, rtol=0
        )
        torch.testing.assert_close(projection.bias, module.bias.detach().double())


def test_value_weighted_maps_are_norms_of_what_keys_add():
    model, ids = build_own("num_kv_heads=1"), draw_ids()
    tracing = trace_attention(model, ids)
    maps = tracing.value_weighted_maps()
    matrix = model.transformer_decoder[1].attention.sublayer.output.weight.detach()
    layer = tracing.outputs[1]
    for head, query, key in [(0, 8, 2), (2, 5, 5), (1, 0, 0)]:
        columns = matrix[:, 4 * head : 4 * head + 4]
        vector = columns @ layer.values[1, head, key] * layer.weights[1, head, query, key]
        assert maps[1][1, head, query, key] == pytest.approx(float(vector.norm()), abs=1e-6)
    assert maps[1][0, 0, 2, 3] == 0  # a later key


@pytest.mark.parametrize("name", ["own", "gpt2"])
def test_gradients_of_weights_are_the_total_ones(name):
    """Against autograd on explicit weights; later layers react to the change of an earlier one."""
    model = build_own("final_norm=true") if name == "own" else build_hugging_face("gpt2")
    ids = draw_ids(batch=1)

    def objective():
        output = model(ids)
        probabilities = output if name == "own" else output.logits.softmax(-1)
        return probabilities[0, 8, 3].log()

    tracing = trace_attention(model, ids if name == "own" else {"input_ids": ids})
    gradients = compute_weight_gradients(tracing, objective)
    kept = []
    if name == "own":
        original = Self.weights

        def weights(self, *args):
            kept.append(original(self, *args))
            kept[-1].retain_grad()
            return kept[-1]

        with pytest.MonkeyPatch.context() as patch, use_dense_weights(model):
            patch.setattr(Self, "weights", weights)
            objective().backward()
    else:
        output = model(ids, output_attentions=True)
        kept = list(output.attentions)
        for tensor in kept:
            tensor.retain_grad()
        output.logits.softmax(-1)[0, 8, 3].log().backward()
    for gradient, tensor in zip(gradients, kept, strict=True):
        visible = tensor.detach().numpy() > 0
        np.testing.assert_allclose(gradient[visible], tensor.grad.numpy()[visible], atol=1e-5)
    model.zero_grad()


def test_gradients_of_a_frozen_model_leave_no_trace():
    model, ids = build_own().requires_grad_(False), draw_ids(batch=1)
    tracing = trace_attention(model, ids)
    gradients = compute_weight_gradients(tracing, lambda: model(ids)[0, 8, 3].log())
    assert any(np.abs(gradient).max() > 1e-6 for gradient in gradients)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_a_model_without_attention_gets_a_message():
    model = nn.Sequential(nn.Embedding(11, 4), nn.Linear(4, 11))
    with pytest.raises(AttributionError, match="nothing can be attributed to attention"):
        trace_attention(model, draw_ids())


def test_post_norm_networks_get_a_message():
    with pytest.raises(AttributionError, match=r"L0 .* post-norm or scales"):
        attribute(build_own('norm="post"'), draw_ids())


def test_scaled_sublayers_get_a_message():
    with pytest.raises(AttributionError, match="post-norm or scales"):
        attribute(build_hugging_face("gemma3", "sdpa"), draw_ids())
