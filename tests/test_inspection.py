"""What is measured of a network that is being debugged: planted faults are found where they are."""

import numpy as np
import pytest
import torch

from neural.debugging import subject_of
from neural.inspection import anomalies, gradients, largest_difference, layer_of, worth
from neural.modules.heads import Heads
from tests.programs import CLASSIFIER, LANGUAGE_MODEL


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "net.neural"
    path.write_text(CLASSIFIER)
    return path


@pytest.fixture
def subject(program):
    return subject_of(program)


def attentions(subject):
    return [(path, one) for path, one in subject.model.named_modules() if isinstance(one, Heads)]


def test_both_ways_to_compute_attention_agree(subject):
    assert largest_difference(subject) < 1e-5


def test_a_wrong_fast_way_would_be_seen(subject, monkeypatch):
    own = type(attentions(subject)[0][1].mechanism).mix
    monkeypatch.setattr(type(attentions(subject)[0][1].mechanism), "mix", lambda *args: 1.5 * own(*args))
    assert largest_difference(subject) > 1e-4


def test_gradients_are_those_of_a_backward_pass_and_leave_nothing_behind(subject):
    found = {one.layer: one for one in gradients(subject)}
    assert list(found) == [
        "transformer_encoder.0.attention", "transformer_encoder.0.feed_forward", "transformer_encoder.1.attention",
        "transformer_encoder.1.feed_forward", "output",
    ]  # fmt: skip
    assert all(one.grad is None for one in subject.model.parameters())
    subject.objective().backward()
    last = [one for name, one in subject.model.named_parameters() if name.startswith("output.")]
    assert found["output"].gradient == pytest.approx(float(torch.cat([one.grad.flatten() for one in last]).norm()))
    assert found["output"].weights == pytest.approx(float(torch.cat([one.detach().flatten() for one in last]).norm()))
    assert sum(one.parameters for one in found.values()) == sum(one.numel() for one in subject.model.parameters())


def test_layers_of_parameters():
    assert layer_of("transformer_decoder.0.attention.part.query.weight") == "transformer_decoder.0.attention"
    assert layer_of("embedding.table.weight") == "embedding"
    assert layer_of("scale.weight") == "scale"


def test_a_head_that_writes_nothing_is_worth_nothing(subject):
    _, heads = attentions(subject)[1]
    with torch.no_grad():
        heads.output.weight[:, 2 * heads.head_width :] = 0   # the last of three heads
    found = worth(subject, subject.watched())
    assert found.shape == (2, 3)
    assert found[1, 2] == 0
    assert (np.delete(found.flatten(), 5) > 1e-4).all()


def test_a_sound_network_has_no_anomalies_but_the_uniform_heads_of_random_weights(subject):
    for _, heads in attentions(subject):
        torch.nn.init.normal_(heads.query.weight, std=0.5)
        torch.nn.init.normal_(heads.key.weight, std=0.5)
    assert anomalies(subject, subject.watched()) == []


def kinds(subject):
    return {(one.kind, one.where) for one in anomalies(subject, subject.watched())}


def test_a_number_that_is_not_finite_is_found_where_it_comes_from(subject):
    with torch.no_grad():
        attentions(subject)[1][1].value.bias[0] = float("inf")
    found = anomalies(subject, subject.watched())
    assert [(one.kind, one.where) for one in found] == [
        ("not finite", "transformer_encoder.1.attention.part.value.bias"),
        ("not finite", "transformer_encoder.1.attention.part.value"),
    ]  # fmt: skip


def test_saturated_scores_are_found(subject):
    path, heads = attentions(subject)[0]
    with torch.no_grad():
        heads.query.weight.mul_(400)
    assert ("saturation", f"{path} h0") in kinds(subject)


def test_uniform_heads_are_found(subject):
    path, heads = attentions(subject)[1]
    with torch.no_grad():
        heads.query.weight.zero_()
        heads.query.bias.zero_()
    assert ("collapse", path) in kinds(subject)


def test_positions_that_became_one_vector_are_found(tmp_path):
    (tmp_path / "lm.neural").write_text(LANGUAGE_MODEL)
    subject = subject_of(tmp_path / "lm.neural")
    with torch.no_grad():
        table = subject.model.get_submodule("embedding.table").weight
        table[:] = 100 * table[0]
    assert ("collapse", "embedding.table") in kinds(subject)


def test_a_layer_that_gets_no_gradient_is_found(subject):
    with torch.no_grad():
        subject.model.get_submodule("output.linear").weight.zero_()
        subject.model.get_submodule("output.linear").bias.zero_()
    assert ("gradient", "transformer_encoder.0.attention") in kinds(subject)
