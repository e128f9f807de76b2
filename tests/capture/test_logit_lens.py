"""Logit lens against the model's own norm and unembedding."""

import pytest
import torch

from neural.capture.attribution import AttributionError, trace_attention
from neural.capture.logit_lens import read_layers
from tests.capture.attribution_models import (
    build_classifier,
    build_hugging_face,
    build_own,
    draw_ids,
    read_logits,
)
from tests.circuits import build_induction


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_it_equals_the_hidden_states_of_hugging_face(name):
    model, ids = build_hugging_face(name), draw_ids()
    rows = read_layers(trace_attention(model, {"input_ids": ids}), 5, 7, example=1)
    with torch.no_grad():
        hidden = model(input_ids=ids, output_hidden_states=True).hidden_states
        norm = model.transformer.ln_f if name == "gpt2" else model.model.norm
        # the last hidden state is that after the norm
        for row, state in zip(rows[:-1], hidden[:-1], strict=True):
            probabilities = model.lm_head(norm(state))[1, 5].softmax(-1)
            assert row.probability == pytest.approx(float(probabilities[7]), abs=1e-6)
            assert row.rank == int((probabilities > probabilities[7]).sum())
            assert row.top[0][0] == int(probabilities.argmax())
    assert [row.name for row in rows] == ["embedding", "L0", "L1"]


@pytest.mark.parametrize(
    "model", [build_own(), build_own("final_norm=true")], ids=["no norm", "final norm"]
)
def test_the_last_row_is_the_models_answer(model):
    ids = draw_ids()
    row = read_layers(trace_attention(model, ids), 4, 2)[-1]
    probabilities = read_logits(model, ids)[0, 4].softmax(-1)
    assert row.probability == pytest.approx(float(probabilities[2]), abs=1e-6)
    assert [token for token, _ in row.top] == probabilities.topk(5).indices.tolist()


def test_classes_are_read_from_the_mean():
    model, ids = build_classifier(), draw_ids()
    row = read_layers(trace_attention(model, ids), 0, 2)[-1]
    expected = read_logits(model, ids)[0].softmax(-1)[2]
    assert row.probability == pytest.approx(float(expected), abs=1e-6)


def test_induction_is_answered_in_the_second_layer():
    circuit = build_induction()
    batch = circuit.draw(1, seed=3)
    position = int(batch.has_target[0].nonzero()[-1])
    tracing = trace_attention(circuit.model.eval(), batch.tokens)
    rows = read_layers(tracing, position, int(batch.targets[0, position]))
    assert [row.probability > 0.9 for row in rows] == [False, False, True]


def test_post_norm_networks_get_a_message():
    tracing = trace_attention(build_own('norm="post"'), draw_ids())
    with pytest.raises(AttributionError, match="post-norm"):
        read_layers(tracing, 0, 0)
