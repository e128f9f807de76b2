"""Warnings and notes about single runs: each fires on a run that has it, and is silent on one that has not."""

import json

import numpy as np
import pytest
import torch

from neural.views.analysis import registry
from neural.views.analysis.duplicate_heads import divergence
from neural.views.finding import Diagnosis
from neural.views.findings import claims, findings, silent
from neural.views.heads import chief, roles
from tests.views.made_up import between_heads, made_up

LOOKS, LAYERS, HEADS, T = 5, 3, 4, 11
DIAGNOSES = [name for name in registry.names() if issubclass(registry.get(name), Diagnosis)]


def asked(name, *runs):
    return registry.get(name)().analyze(runs)


def heads(usual, **special):
    """[look, layer, head]: `usual` everywhere, but at the last two looks as `special` says: L1h2=0.9."""
    values = np.full((LOOKS, LAYERS, HEADS), float(usual))
    for place, value in special.items():
        layer, head = place[1:].split("h")
        values[-2:, int(layer), int(head)] = value
    return values


def causal(rule):
    """A causal map [query, key] of weights in proportion to `rule(query, key)`."""
    weights = np.array([[rule(i, j) if j <= i else 0.0 for j in range(T)] for i in range(T)])
    return weights / weights.sum(axis=1, keepdims=True)


UNIFORM = causal(lambda i, j: 1.0)
SOFT = causal(lambda i, j: 1 + np.sin(3 * i + 5 * j) ** 2)
PREVIOUS = causal(lambda i, j: 20.0 if j == max(i - 1, 0) else 0.1)
THIRD = causal(lambda i, j: 30.0 if j == max(i - 3, 0) else 0.1)
NEARBY = causal(lambda i, j: 1.0 if i - j <= 3 else 0.001)
BLANKS = causal(lambda i, j: 30.0 if j % 3 == 0 else 0.2)
LABELS = ["␣" if at % 3 == 0 else "abcdefghijk"[at] for at in range(T)]


def looks(*layers):
    """The same maps at every look, [look][layer, head, query, key]; heads differ a little."""
    one = np.stack([np.stack(layer) for layer in layers])
    return [one] * LOOKS


WELL = {"maps": looks([SOFT, PREVIOUS, THIRD, NEARBY]), "labels": LABELS}


@pytest.mark.parametrize(("name", "measure", "well", "ill", "said"), [
    ("uniform_attention", "relative_entropy", heads(0.7), heads(0.7, L0h0=0.97, L0h1=0.99, L2h3=0.96),
     "3 of 12 heads end within 5% of uniform: L0 h0, L0 h1, L2 h3 (0 at step 50)"),
    ("attention_sinks", "sink_excess", heads(0.1), heads(0.1, L1h2=0.8),
     "L1 h2 (0.80); the first of them since step 200"),
    ("dead_heads", "sink_excess", heads(0.1, L1h2=0.8), heads(0.1, L1h2=0.97), "L1 h2 0.97 on the first key"),
    ("saturated_logits", "largest_logit", heads(12), heads(12, L0h3=83, L2h0=51),
     "L0 h3 (83.00), L2 h0 (51.00); above 50 since step 200"),
])  # fmt: skip
def test_a_measure_that_is_out_of_bounds_is_told_with_its_heads(tmp_path, name, measure, well, ill, said):
    assert asked(name, made_up(tmp_path, 0, arrays={measure: well})) is None
    found = asked(name, made_up(tmp_path, 1, arrays={measure: ill}))
    assert (found.supported, found.kind) == ("yes", "warning")
    assert found.evidence == said
    assert found.advice


def test_two_uniform_heads_of_twelve_are_nothing_unusual(tmp_path):
    run = made_up(tmp_path, 0, arrays={"relative_entropy": heads(0.7, L0h0=1, L1h1=1)})
    assert asked("uniform_attention", run) is None


def test_a_sink_is_told_with_and_without_the_first_key(tmp_path):
    rests = causal(lambda i, j: 10.0 * (i + 1) if j == 0 else 1.0)
    run = made_up(tmp_path, 0, arrays={"sink_excess": heads(0.1, L0h0=0.9)}, maps=looks([rests, SOFT]))
    rows = rests[2:]
    entropy = -(rows * np.log(np.where(rows > 0, rows, 1))).sum(1).mean()
    left = np.mean([np.log(i) for i in range(2, T)])   # uniform over the others
    said = f"their entropy is {entropy:.2f} nats with it and {left:.2f} without"
    assert said in asked("attention_sinks", run).evidence


def weights(*norms, layers=1):
    """A layer whose heads write in proportion to `norms`, as a network of ours names its weights."""
    random, width = np.random.default_rng(0), 3
    value = random.normal(size=(len(norms) * width, 7))
    output = np.concatenate([np.full((7, width), norm) for norm in norms], axis=1) * random.normal(size=(7, 1))
    named = {"output": output, "value": value / np.linalg.norm(value, axis=1, keepdims=True)}
    return {
        f"model.layer.{at}.{part}.weight": torch.tensor(one, dtype=torch.float32)
        for at in range(layers) for part, one in named.items()
    }  # fmt: skip


def test_a_head_that_writes_next_to_nothing_is_dead(tmp_path):
    arrays = {"sink_excess": np.full((2, 1, 4), 0.1)}
    assert asked("dead_heads", made_up(tmp_path, 0, arrays=arrays, tensors=weights(1, 1, 1, 1))) is None
    found = asked("dead_heads", made_up(tmp_path, 1, arrays=arrays, tensors=weights(1, 0.001, 1, 1)))
    assert found.evidence.startswith("L0 h1 writes 0.1% of its layer's mean")
    assert found.number.value == 1 / 4


def test_a_head_that_writes_most_dominates(tmp_path):
    arrays = {"entropy": np.ones((2, 1, 4))}
    assert asked("dominating_head", made_up(tmp_path, 0, arrays=arrays, tensors=weights(1, 2, 1, 1))) is None
    found = asked("dominating_head", made_up(tmp_path, 1, arrays=arrays, tensors=weights(1, 1, 40, 1)))
    assert found.evidence.startswith("L0 h2 writes ")
    assert found.number.value > 10


def test_heads_with_the_same_map_are_duplicates(tmp_path):
    assert asked("duplicate_heads", made_up(tmp_path, 0, **WELL)) is None
    found = asked("duplicate_heads", made_up(tmp_path, 1, maps=looks([SOFT, PREVIOUS, THIRD, PREVIOUS])))
    assert found.evidence.startswith("at step 250: L0 h1 and h3 (0.000 bits)")
    assert found.number.value == 1 / 6
    averages = looks([UNIFORM, UNIFORM, PREVIOUS])   # alike because they look at nothing
    assert asked("duplicate_heads", made_up(tmp_path, 2, maps=averages)) is None


def test_divergence_by_hand():
    one, other = np.array([[1.0, 0], [0.5, 0.5]]), np.array([[1.0, 0], [1.0, 0]])
    half = 0.5 * np.log2(0.5 / 0.75) + 0.5 * np.log2(0.5 / 0.25)
    assert divergence(one, other) == pytest.approx((half + np.log2(1 / 0.75)) / 2)   # the first row has no choice
    assert divergence(np.eye(2), np.eye(2)[::-1]) == 1


def test_layers_that_became_alike_are_told_from_those_that_always_were(tmp_path):
    def run(seed, first, last):
        curve = np.linspace(first, last, LOOKS)
        looks = np.stack([between_heads([2, 2], lambda i, j, at=at: at) for at in curve])
        return made_up(tmp_path, seed, arrays={"heads/divergence": looks}, heads=[2, 2])

    assert asked("layers_became_alike", run(0, 0.3, 0.2)) is None
    assert asked("layers_became_alike", run(1, 0.01, 0.01)) is None
    assert asked("layers_became_alike", run(2, 0.3, 0.01)).evidence == "L0 and L1 (0.30 → 0.01)"


@pytest.mark.parametrize(("role", "measure"), [
    ("previous token", "previous_token_mass"), ("induction", "induction_mass"), ("sink", "sink_excess"),
])  # fmt: skip
def test_a_role_that_a_measure_tells(tmp_path, role, measure):
    assert asked("head_roles", made_up(tmp_path, 0, arrays={measure: heads(0.2)})) is None
    found = asked("head_roles", made_up(tmp_path, 1, arrays={measure: heads(0.2, L1h0=0.97)}))
    assert found.evidence == f"L1 h0 {role} (0.20 → 0.97, since step 200)"
    assert (found.kind, found.number.value) == ("note", 1 / 12)


def test_looking_at_everything_alike_is_no_role(tmp_path):
    arrays = {"relative_entropy": heads(0.98), "previous_token_mass": heads(0.1)}
    assert asked("head_roles", made_up(tmp_path, 0, arrays=arrays)) is None
    arrays["previous_token_mass"] = heads(0.1, L1h0=0.97)
    found = asked("head_roles", made_up(tmp_path, 1, arrays=arrays))
    assert found.evidence == "L1 h0 previous token (0.10 → 0.97, since step 200)"
    assert found.number.value == 1 / 12


def test_roles_that_maps_tell(tmp_path):
    found = roles(made_up(tmp_path, 0, maps=looks([SOFT, THIRD, NEARBY, BLANKS]), labels=LABELS))
    assert chief(found).tolist() == [["mixed", "positional", "local", "delimiter"]]
    assert found["positional"].scores.shape == (LOOKS, 1, 4)
    assert found["local"].now[0, 0] < 0.1
    assert found["delimiter"].now[0, 0] < 0.1   # as much as chance gives is no role


def test_without_labels_nobody_knows_delimiters(tmp_path):
    assert "delimiter" not in roles(made_up(tmp_path, 0, maps=looks([BLANKS])))
    assert "delimiter" not in roles(made_up(tmp_path, 1, maps=looks([BLANKS]), labels=["a"] * T))


def test_when_each_layer_went_its_own_way(tmp_path):
    def run(seed, late):
        curve = [between_heads([2, 2, 2], lambda i, j, at=at: 0.7 if at >= 3 and j == late else 0.2)
                 for at in range(LOOKS)]  # fmt: skip
        return made_up(tmp_path, seed, arrays={"heads/divergence": np.stack(curve)}, heads=[2, 2, 2])

    assert asked("layers_specialised", run(0, 9)) is None
    assert "L2 at step 200 (" in asked("layers_specialised", run(1, 2)).evidence


def test_layers_with_the_same_heads_in_another_order_have_not_specialised(tmp_path):
    same = np.zeros((6, 6)) + 0.5
    for head in range(3):
        other = 3 + (head + 1) % 3
        same[head, head] = same[other, other] = same[head, other] = same[other, head] = 0.0
    curve = [np.full((6, 6), 0.01) * (1 - np.eye(6)), *[same] * (LOOKS - 1)]
    run = made_up(tmp_path, 0, arrays={"heads/divergence": np.stack(curve)}, heads=[3, 3])
    assert asked("layers_specialised", run) is None


def test_layers_that_differed_from_the_start_did_not_specialise(tmp_path):
    curve = np.stack([between_heads([2, 2], lambda i, j, at=at: at) for at in np.linspace(0.26, 0.29, LOOKS)])
    run = made_up(tmp_path, 0, arrays={"heads/divergence": curve}, heads=[2, 2])
    assert asked("layers_specialised", run) is None


def losses(*values):
    return {"scalars": {"valid/loss": np.array(values)}}


def test_phases_of_the_validation_loss(tmp_path):
    assert asked("training_phases", made_up(tmp_path, 0, **losses(3.0))) is None
    curve = np.interp(range(21), [0, 2, 8, 12, 18, 20], [5, 3, 1.8, 2.6, 1.7, 1.75])
    found = asked("training_phases", made_up(tmp_path, 1, **losses(*curve)))
    assert found.kind == "note"
    assert [one.split()[0] for one in found.evidence.removeprefix("valid/loss, steps: ").split(", ")] == [
        "rapid", "steady", "dip", "recovery", "best", "after",
    ]  # fmt: skip
    assert "best at 950 (1.7)" in found.evidence


def test_the_best_after_a_plateau_asks_for_patience(tmp_path):
    assert asked("patience", made_up(tmp_path, 0, **losses(5, 4, 4.1, 3, 2, 2.5, 2.5, 2.5))) is None
    waited = losses(*np.interp(range(15), [0, 4, 5, 9, 14], [5, 2, 2.05, 2.05, 1]))
    found = asked("patience", made_up(tmp_path, 1, **waited, settings={"training": {"seed": 1, "patience": 4}}))
    assert found.evidence == "no new best of valid/loss in 5 validations after step 250, then one at 550; patience is 4"
    assert found.number.value == 5
    assert "never stops early" in asked("patience", made_up(tmp_path, 2, **waited)).evidence


def test_a_score_that_should_grow_is_read_the_other_way_round(tmp_path):
    scores = {"valid/f1": np.interp(range(15), [0, 4, 5, 9, 14], [0.1, 0.5, 0.48, 0.48, 0.8])}
    run = made_up(tmp_path, 0, scalars=scores, settings={"task": "segmentation"})
    assert asked("patience", run).number.value == 5


def test_one_run_is_enough_and_of_several_those_are_named_that_have_it(tmp_path):
    ill, well = ({"arrays": {"largest_logit": heads(value)}} for value in (83, 12))
    runs = [made_up(tmp_path, seed, **one) for seed, one in enumerate((ill, well, {}, ill))]
    found = asked("saturated_logits", *runs)
    assert found.evidence.startswith(f"2 of 3 runs; {runs[0].name}: L0 h0 (83.00)")
    assert runs[3].name in found.evidence
    assert (found.number.seeds, found.supported) == (2, "yes")


@pytest.mark.parametrize("name", DIAGNOSES)
def test_no_runs_have_no_symptoms(name):
    assert asked(name) is None


def test_what_was_looked_for_and_not_found_is_said(tmp_path):
    run = made_up(tmp_path, 0, arrays={"largest_logit": heads(83), "relative_entropy": heads(0.5)})
    found = findings([run])
    assert "ATT006" in {one.code for one in found}
    assert "ATT001 attention is close to uniform" in silent(found)
    assert not any(one.startswith("ATT006") for one in silent(found))
    assert {one.kind for one in claims([run])} == {"claim"}


def test_a_notebook_shows_findings_as_a_table_with_everything_escaped(tmp_path):
    found = findings([made_up(tmp_path, 0, arrays={"largest_logit": heads(83)}, settings={"name": "<img onerror=1>"})])
    shown = found._repr_html_()
    assert shown.count("<tr>") == len(found) + 1
    assert "ATT006" in shown
    assert "<img" not in shown
    json.dumps([one.as_json() for one in found])
