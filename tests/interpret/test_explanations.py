"""Explanations of one prediction: every method finds the source that a known circuit uses."""

import numpy as np
import pytest
import torch

from neural.capture.attribution import trace_attention
from neural.capture.residual_stream import AttributionError
from neural.capture.rollout import iter_rollouts
from neural.interpret.explanations import (
    METHODS,
    check_methods,
    compute_answer_gradients,
    explain,
    weigh_positions,
)
from neural.interpret.subject import load_subject
from tests.capture.attribution_models import (
    PAD,
    build_classifier,
    build_hugging_face,
    build_own,
    build_sequence_classifier,
    draw_ids,
    read_logits,
)
from tests.circuits import build_copy, build_induction


@pytest.fixture(scope="module", params=["own", "gpt2"])
def induction(request):
    """An induction circuit, one prediction, and the position that holds its answer."""
    circuit = build_induction(request.param)
    batch = circuit.draw(1, seed=5)
    position = int(batch.has_target[0].nonzero()[-1])
    tokens, answer = batch.tokens[0, : position + 1], int(batch.targets[0, position])
    source = int((tokens[:-1] == tokens[-1]).nonzero()[-1]) + 1
    assert tokens[source] == answer
    return circuit.model.eval(), tokens, position, answer, source


def test_every_method_scores_every_position_and_most_find_the_source(induction):
    model, tokens, position, answer, source = induction
    others = torch.tensor([[3 + (int(token) - 2) % 17 for token in tokens]])
    scores = explain(
        load_subject(model), tokens, position=position, answer=answer, replacements=others
    )
    assert list(scores) == list(METHODS)
    for name, values in scores.items():
        assert values.shape == (len(tokens),)
        assert np.isfinite(values).all()
        # these also, or first of all, name the token that is continued, or the one before it
        names_two = name in ("attention_mean", "value_weighted", "rollout", "ablation")
        best = np.argsort(-values)[: 2 if names_two else 1]
        assert source in best, name


def test_attention_scores_are_rows_of_the_maps():
    model, tokens = build_own(), draw_ids(batch=1)[0]
    scores = explain(
        load_subject(model), tokens, position=6, answer=2, methods=["attention", "attention_mean"]
    )
    tracing = trace_attention(model, tokens[None])
    rows = np.stack([tracing.weights(layer)[0, :, 6].mean(0).numpy() for layer in range(2)])
    np.testing.assert_allclose(scores["attention"], rows[1], atol=1e-6)
    np.testing.assert_allclose(scores["attention_mean"], rows.mean(0), atol=1e-6)


def test_direct_scores_sum_to_the_parts_of_all_heads():
    model, tokens = build_own("final_norm=true"), draw_ids(batch=1)[0]
    scores = explain(load_subject(model), tokens, position=8, answer=2, methods=["direct"])
    attribution = trace_attention(model, tokens[None]).attribute_logits(
        torch.tensor([8]), torch.tensor([2])
    )
    heads = sum(part.values[0] for part in attribution.parts if part.kind == "head")
    assert scores["direct"].sum() == pytest.approx(heads, abs=1e-6)


def test_ablation_is_the_drop_of_the_log_probability():
    model, tokens = build_own(), draw_ids(batch=1)[0]
    replacements = draw_ids(batch=2, seed=7)
    scores = explain(
        load_subject(model),
        tokens,
        position=8,
        answer=2,
        methods=["ablation"],
        replacements=replacements,
    )
    drops = []
    for row in replacements:
        changed = tokens.clone()
        changed[4] = row[4]
        values = read_logits(model, torch.stack([tokens, changed]))[:, 8].log_softmax(-1)[:, 2]
        drops.append(float(values[0] - values[1]))
    assert scores["ablation"][4] == pytest.approx(np.mean(drops), abs=1e-5)


def test_classes_are_explained_by_the_mean_over_positions():
    model, tokens = build_classifier(), draw_ids(batch=1)[0]
    scores = explain(load_subject(model), tokens, position=8, answer=3, methods=["attention"])
    weights = trace_attention(model, tokens[None]).weights(1)[0].numpy()
    np.testing.assert_allclose(scores["attention"], weights.mean(axis=(0, 1)), atol=1e-6)


@pytest.mark.parametrize("name", ["mean", "BERT", "own"])
def test_a_gradient_rollout_keeps_the_identity_of_a_single_position_only(name):
    """Of a mean it would be 1/T at every position, more than all that attention adds."""
    if name == "BERT":
        model, tokens, read = build_sequence_classifier(name), torch.tensor(TOKENS), 0
    else:
        model = build_classifier() if name == "mean" else build_own()
        tokens, read = draw_ids(batch=1)[0], -1
    subject = load_subject(model)
    tracing = trace_attention(model, subject.build_probe(tokens[None], last=False))
    position = len(tokens) - 1
    scores = explain(
        subject, tokens, position=position, answer=1, methods=["gradient_rollout"], tracing=tracing
    )["gradient_rollout"]
    gradients = compute_answer_gradients(subject, tokens, position, 1, tracing)
    added = np.zeros((len(tokens), len(tokens)))  # R − I, from the first layer to the last
    for layer, gradient in enumerate(gradients):
        maps = tracing.weights(layer)[0].double().numpy()
        used = np.maximum(maps * gradient[0], 0).mean(0)
        added = added + used + used @ added
    identity = np.eye(len(tokens))
    expected = added.mean(0) if name == "mean" else (added + identity)[read]
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-12)
    if name == "mean":
        assert scores.min() < 0.8 * scores.max()


class MeanOfTokens(torch.nn.Module):
    """A class from the mean of the hidden states that are not padding."""

    def __init__(self):
        super().__init__()
        self.encoder = build_hugging_face("bert", "sdpa").base_model
        self.classifier = torch.nn.Linear(32, 3)

    def forward(self, input_ids):
        hidden = self.encoder(input_ids).last_hidden_state
        real = (input_ids != PAD).unsqueeze(-1)
        return self.classifier((hidden * real).sum(1) / real.sum(1))


TOKENS = [5, 9, 4, 30, 7]


@pytest.mark.parametrize(
    ("name", "padding", "position"),
    [
        ("BERT", "none", 0),
        ("BERT", "right", 0),
        ("RoBERTa", "none", 0),
        ("GPT-2", "none", 4),
        ("GPT-2", "right", 4),
        ("GPT-2", "left", 6),
        ("Llama", "right", 4),
        ("Llama", "left", 6),
    ],
)
def test_a_class_is_explained_at_the_position_that_the_model_reads(name, padding, position):
    model = build_sequence_classifier(name)
    pads = [PAD, PAD]
    tokens = torch.tensor(pads * (padding == "left") + TOKENS + pads * (padding == "right"))
    subject = load_subject(model)
    weights = weigh_positions(subject, tokens, -1, 0)
    np.testing.assert_allclose(weights, np.eye(len(tokens))[position])
    scores = explain(
        subject, tokens, position=len(tokens) - 1, answer=0, methods=["attention", "rollout"]
    )
    maps = trace_attention(model, {"input_ids": tokens[None]})
    row = maps.weights(1)[0, :, position].mean(0).numpy()
    np.testing.assert_allclose(scores["attention"], row, atol=1e-6)
    *_, rollout = iter_rollouts([maps.weights(layer)[0].double().numpy() for layer in range(2)])
    np.testing.assert_allclose(scores["rollout"], rollout[position], atol=1e-6)


def test_a_mean_over_positions_leaves_padding_out():
    model, tokens = MeanOfTokens().eval(), torch.tensor([*TOKENS, PAD, PAD])
    model.requires_grad_(False)
    weights = weigh_positions(load_subject(model), tokens, -1, 2)
    np.testing.assert_allclose(weights, [0.2] * 5 + [0.0] * 2, atol=1e-6)


def test_gradients_do_not_vanish_for_a_certain_answer():
    """The probability is 1 up to rounding: log p has no gradient, log-odds have one."""
    circuit = build_copy()
    batch = circuit.draw(1, seed=2)
    position = int(batch.has_target[0].nonzero()[-1])
    tokens, answer = batch.tokens[0, : position + 1], int(batch.targets[0, position])
    scores = explain(
        load_subject(circuit.model.eval()),
        tokens,
        position=position,
        answer=answer,
        methods=["gradient_attention"],
    )["gradient_attention"]
    assert scores.argmax() == 1  # the token after START
    assert scores.max() > 1


def test_unsupported_methods_are_left_out_with_a_reason():
    failures = {}
    scores = explain(
        load_subject(build_own('norm="post"')),
        draw_ids(batch=1)[0],
        position=8,
        answer=2,
        methods=["rollout", "direct", "gradient_attention"],
        on_failure=lambda name, error: failures.update({name: str(error)}),
    )
    assert list(scores) == ["rollout", "gradient_attention"]
    assert "post-norm" in failures["direct"]


def test_cross_attention_is_refused():
    class FirstFour(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = build_hugging_face("gpt2")

        def forward(self, ids):
            return self.model(ids[:, :4])

    subject = load_subject(FirstFour())
    with pytest.raises(AttributionError, match="4 × 4 cells, and the input has 9 tokens"):
        explain(subject, draw_ids(batch=1)[0], position=3, answer=2, methods=["rollout"])


def test_unknown_methods_get_a_guess():
    with pytest.raises(AttributionError, match="did you mean `rollout`"):
        check_methods(["rolout"])
    assert check_methods(["direct", "direct"]) == ["direct"]
