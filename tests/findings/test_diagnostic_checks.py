"""Warnings and notes about single runs: given for runs with the symptom only."""

import json
import re

import numpy as np
import pytest
import torch

from neural.findings.check import DiagnosticCheck
from neural.findings.checks import layers_specialised, registry
from neural.findings.checks.duplicate_heads import mean_js_divergence
from neural.findings.checks.layers_specialised import LayersSpecialised
from neural.findings.findings import analyze_claims, analyze_runs, list_missing_claims
from neural.findings.head_roles import assign_head_roles, find_head_roles
from tests.findings.synthetic_runs import create_head_divergence, write_synthetic_run

SNAPSHOTS, LAYERS, HEADS, T = 5, 3, 4, 11
DIAGNOSTIC_CHECKS = [
    name for name in registry.names() if issubclass(registry.get(name), DiagnosticCheck)
]


def run_check(name, *runs):
    return registry.get(name)().analyze(runs)


def create_measure(default, **final):
    """[snapshot, layer, head]: `default`, and other values at the last two snapshots: L1h2=0.9."""
    values = np.full((SNAPSHOTS, LAYERS, HEADS), float(default))
    for name, value in final.items():
        layer, head = name[1:].split("h")
        values[-2:, int(layer), int(head)] = value
    return values


def create_causal_map(rule):
    """A causal map [query, key] with weights proportional to `rule(query, key)`."""
    weights = np.array([[rule(i, j) if j <= i else 0.0 for j in range(T)] for i in range(T)])
    return weights / weights.sum(axis=1, keepdims=True)


UNIFORM = create_causal_map(lambda i, j: 1.0)
SOFT = create_causal_map(lambda i, j: 1 + np.sin(3 * i + 5 * j) ** 2)
PREVIOUS = create_causal_map(lambda i, j: 20.0 if j == max(i - 1, 0) else 0.1)
THIRD = create_causal_map(lambda i, j: 30.0 if j == max(i - 3, 0) else 0.1)
NEARBY = create_causal_map(lambda i, j: 1.0 if i - j <= 3 else 0.001)
BLANKS = create_causal_map(lambda i, j: 30.0 if j % 3 == 1 else 0.2)
LABELS = ["␣" if index % 3 == 1 else "abcdefghijk"[index] for index in range(T)]


def repeat_maps(*layers):
    """The same maps at every snapshot, [snapshot][layer, head, query, key]."""
    maps = np.stack([np.stack(layer) for layer in layers])
    return [maps] * SNAPSHOTS


HEALTHY = {"maps": repeat_maps([SOFT, PREVIOUS, THIRD, NEARBY]), "labels": LABELS}


@pytest.mark.parametrize(
    ("name", "measure", "healthy", "affected", "evidence"),
    [
        (
            "uniform_attention",
            "relative_entropy",
            create_measure(0.7),
            create_measure(0.7, L0h0=0.97, L0h1=0.99, L2h3=0.96),
            "3 of 12 heads have a relative entropy of 0.95 or more at the end: L0 h0, L0 h1, L2 h3 "
            "(0 heads at step 50)",
        ),
        (
            "attention_sinks",
            "sink_excess",
            create_measure(0.1),
            create_measure(0.1, L1h2=0.8),
            "L1 h2 (0.80); the first of them since step 200",
        ),
        (
            "saturated_logits",
            "largest_logit",
            create_measure(12),
            create_measure(12, L0h3=83, L2h0=51),
            "L0 h3 (83.00), L2 h0 (51.00); above 50 since step 200",
        ),
    ],
)
def test_a_measure_out_of_bounds_is_reported_with_its_heads(
    tmp_path, name, measure, healthy, affected, evidence
):
    assert run_check(name, write_synthetic_run(tmp_path, 0, arrays={measure: healthy})) is None
    finding = run_check(name, write_synthetic_run(tmp_path, 1, arrays={measure: affected}))
    assert (finding.supported, finding.kind) == ("yes", "warning")
    assert finding.evidence == evidence
    assert finding.advice


def test_two_uniform_heads_of_twelve_are_no_warning(tmp_path):
    run = write_synthetic_run(
        tmp_path, 0, arrays={"relative_entropy": create_measure(0.7, L0h0=1, L1h1=1)}
    )
    assert run_check("uniform_attention", run) is None


def test_the_entropy_of_a_sink_is_given_with_and_without_the_first_key(tmp_path):
    sink = create_causal_map(lambda i, j: 10.0 * (i + 1) if j == 0 else 1.0)
    run = write_synthetic_run(
        tmp_path,
        0,
        arrays={"sink_excess": create_measure(0.1, L0h0=0.9)},
        maps=repeat_maps([sink, SOFT]),
    )
    rows = sink[2:]
    entropy = -(rows * np.log(np.where(rows > 0, rows, 1))).sum(1).mean()
    without_sink = np.mean([np.log(i) for i in range(2, T)])  # uniform over the other keys
    message = (
        f"their entropy is {entropy:.1f} nats with the first key and {without_sink:.1f} without"
    )
    assert message in run_check("attention_sinks", run).evidence


@pytest.mark.parametrize("start", [0, 5], ids=["right", "left"])
def test_the_entropy_of_a_sink_is_that_of_the_tokens_without_padding(tmp_path, start):
    length, positions = 11, np.arange(16)
    is_key = (positions >= start) & (positions < start + length)
    # a model computes rows of padding, too: they see the keys that are not padding
    weights = np.where(positions == start, 9.0, 1.0) * (is_key & np.tri(16, dtype=bool))
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1)
    maps = np.where(is_key, np.stack([weights, weights])[None], np.nan)
    arrays = {"sink_excess": np.full((1, 1, 2), 0.6)}
    run = write_synthetic_run(tmp_path, 0, arrays=arrays, maps=[maps])
    counts = np.arange(2, length)  # of other keys
    sink = 9 / (9 + counts)
    entropy = (-sink * np.log(sink) - (1 - sink) * np.log((1 - sink) / counts)).mean()
    message = (
        f"their entropy is {entropy:.1f} nats with the first key "
        f"and {np.log(counts).mean():.1f} without"
    )
    assert message in run_check("attention_sinks", run).evidence


def test_the_entropy_of_sinks_is_not_said_of_some_of_them_only(tmp_path):
    sink = create_causal_map(lambda i, j: 10.0 * (i + 1) if j == 0 else 1.0)
    run = write_synthetic_run(
        tmp_path,
        0,
        arrays={
            "sink_excess": create_measure(0.1, L0h0=0.9, L0h1=0.99),
            "induction_mass": create_measure(0.0, L0h0=0.9),
        },
        maps=repeat_maps([sink, sink]),
    )
    clauses = run_check("attention_sinks", run).evidence.split("; ")
    assert "their entropy is" in clauses[-3] and clauses[-2].startswith("1 of them has")
    assert clauses[-1] == "idle on the probe, which is not dead: L0 h1"


def test_sinks_that_have_another_role_are_counted(tmp_path):
    """The table of `neural watch` counts every head once, with its strongest role."""
    arrays = {
        "sink_excess": create_measure(0.1, L0h0=0.9, L0h1=0.6),
        "induction_mass": create_measure(0.0, L0h1=0.55),
    }
    finding = run_check("attention_sinks", write_synthetic_run(tmp_path, 0, arrays=arrays))
    assert finding.evidence.startswith("L0 h0 (0.90), L0 h1 (0.60)")
    assert "; 1 of them has another role, further above its threshold" in finding.evidence


def create_weights(*norms, layers=1):
    """Weights of layers whose heads have outputs proportional to `norms`."""
    random, width = np.random.default_rng(0), 3
    value = random.normal(size=(len(norms) * width, 7))
    output = np.concatenate([np.full((7, width), norm) for norm in norms], axis=1) * random.normal(
        size=(7, 1)
    )
    weights = {"output": output, "value": value / np.linalg.norm(value, axis=1, keepdims=True)}
    return {
        f"model.layer.{layer}.{name}.weight": torch.tensor(weight, dtype=torch.float32)
        for layer in range(layers)
        for name, weight in weights.items()
    }


def test_a_head_that_rests_on_the_first_key_is_idle_and_not_dead(tmp_path):
    run = write_synthetic_run(
        tmp_path,
        0,
        arrays={"sink_excess": np.array([[[0.1, 0.99, 0.6, 0.1]]])},
        tensors=create_weights(1, 1, 1, 1),
    )
    assert run_check("dead_heads", run) is None
    evidence = run_check("attention_sinks", run).evidence
    assert evidence.endswith("; idle on the probe, which is not dead: L0 h1")


def test_one_input_gives_no_dead_or_duplicate_heads_and_no_advice(tmp_path):
    """Heads that rest or agree on one input may work, and differ, on another."""
    sink = create_causal_map(lambda i, j: 200.0 if j == 0 else 0.1)
    runs = [
        write_synthetic_run(
            tmp_path,
            seed,
            maps=repeat_maps([sink, PREVIOUS, PREVIOUS, UNIFORM])[:1],
            arrays={
                "sink_excess": np.array([[[0.98, 0, 0, 0]]]),
                "relative_entropy": np.array([[[0.1, 0.2, 0.2, 1]]]),
                "largest_logit": np.array([[[90.0, 1, 1, 1]]]),
            },
            scalars={"train/loss": np.array([2.0])} if task != "watched" else None,
            settings={"task": task},
        )
        for seed, task in enumerate(("language_model", "watched"))
    ]
    trained, watched = ({finding.code: finding for finding in analyze_runs([run])} for run in runs)
    assert {"ATT001", "ATT002", "ATT004", "ATT006"} <= trained.keys()
    assert trained["ATT001"].advice and trained["ATT006"].advice
    assert {"ATT001", "ATT002", "ATT006"} <= watched.keys()
    assert not watched.keys() & {"ATT003", "ATT004"}
    found = [finding for finding in watched.values() if finding.supported == "yes"]
    assert not any(finding.advice for finding in found)
    assert "idle on this input, which is not dead: L0 h0" in watched["ATT002"].evidence


def test_heads_that_rest_on_the_first_key_are_no_duplicates(tmp_path):
    sink = create_causal_map(lambda i, j: 5.0 * (i + 1) if j == 0 else 1.0)
    run = write_synthetic_run(
        tmp_path, 0, maps=repeat_maps([sink, sink, PREVIOUS]), scalars={"train/loss": [2.0]}
    )
    assert run_check("duplicate_heads", run) is None


def test_a_head_with_almost_no_output_is_dead(tmp_path):
    arrays = {"sink_excess": np.full((2, 1, 4), 0.1)}
    assert (
        run_check(
            "dead_heads",
            write_synthetic_run(tmp_path, 0, arrays=arrays, tensors=create_weights(1, 1, 1, 1)),
        )
        is None
    )
    finding = run_check(
        "dead_heads",
        write_synthetic_run(tmp_path, 1, arrays=arrays, tensors=create_weights(1, 0.001, 1, 1)),
    )
    assert finding.evidence.startswith("L0 h1 has 0.1% of the mean output norm of its layer")
    assert finding.number.value == 1 / 4


def test_a_head_with_most_of_the_output_dominates(tmp_path):
    arrays = {"entropy": np.ones((2, 1, 4))}
    assert (
        run_check(
            "dominating_head",
            write_synthetic_run(tmp_path, 0, arrays=arrays, tensors=create_weights(1, 2, 1, 1)),
        )
        is None
    )
    finding = run_check(
        "dominating_head",
        write_synthetic_run(tmp_path, 1, arrays=arrays, tensors=create_weights(1, 1, 40, 1)),
    )
    assert finding.evidence.startswith("L0 h2 has ")
    assert finding.number.value > 10


def test_heads_with_the_same_map_are_duplicates(tmp_path):
    assert run_check("duplicate_heads", write_synthetic_run(tmp_path, 0, **HEALTHY)) is None
    finding = run_check(
        "duplicate_heads",
        write_synthetic_run(tmp_path, 1, maps=repeat_maps([SOFT, PREVIOUS, THIRD, PREVIOUS])),
    )
    assert finding.evidence.startswith("at step 250, probe example 0: L0 h1 and L0 h3 (0.000 bits)")
    assert finding.number.value == 1 / 6
    uniform = repeat_maps([UNIFORM, UNIFORM, PREVIOUS])  # uniform heads do not count
    assert run_check("duplicate_heads", write_synthetic_run(tmp_path, 2, maps=uniform)) is None


@pytest.mark.parametrize("is_training", [False, True])
def test_a_single_capture_has_no_step_worth_naming(tmp_path, is_training):
    sink = create_causal_map(lambda i, j: 20.0 if j == 0 else 1.0)
    run = write_synthetic_run(
        tmp_path,
        0,
        maps=repeat_maps([sink, PREVIOUS, PREVIOUS])[:1],
        arrays={"sink_excess": np.array([[[0.8, 0, 0]]])},
        scalars={"train/loss": np.array([2.0])} if is_training else None,
    )
    clause = "; at step 50 their entropy is " if is_training else "; their entropy is "
    assert clause in run_check("attention_sinks", run).evidence


def test_divergence_by_hand():
    first, second = np.array([[1.0, 0], [0.5, 0.5]]), np.array([[1.0, 0], [1.0, 0]])
    half = 0.5 * np.log2(0.5 / 0.75) + 0.5 * np.log2(0.5 / 0.25)
    # the first row sees one key only
    assert mean_js_divergence(first, second) == pytest.approx((half + np.log2(1 / 0.75)) / 2)
    assert mean_js_divergence(np.eye(2), np.eye(2)[::-1]) == 1


def test_layers_that_became_alike_are_distinguished_from_those_that_always_were(tmp_path):
    def write_run(seed, first, last):
        curve = np.linspace(first, last, SNAPSHOTS)
        divergence = np.stack(
            [create_head_divergence([2, 2], lambda i, j, level=level: level) for level in curve]
        )
        return write_synthetic_run(
            tmp_path, seed, arrays={"heads/divergence": divergence}, heads=[2, 2]
        )

    assert run_check("layers_became_alike", write_run(0, 0.3, 0.2)) is None
    assert run_check("layers_became_alike", write_run(1, 0.01, 0.01)) is None
    assert (
        run_check("layers_became_alike", write_run(2, 0.3, 0.01)).evidence
        == "L0 and L1 (0.30 → 0.01)"
    )


@pytest.mark.parametrize(
    ("role", "measure"),
    [
        ("previous token", "previous_token_mass"),
        ("induction", "induction_mass"),
        ("sink", "sink_excess"),
    ],
)
def test_roles_from_measures(tmp_path, role, measure):
    assert (
        run_check(
            "head_roles", write_synthetic_run(tmp_path, 0, arrays={measure: create_measure(0.2)})
        )
        is None
    )
    finding = run_check(
        "head_roles",
        write_synthetic_run(tmp_path, 1, arrays={measure: create_measure(0.2, L1h0=0.97)}),
    )
    assert finding.evidence == f"L1 h0 {role} (0.20 → 0.97, since step 200)"
    assert (finding.kind, finding.number.value) == ("note", 1 / 12)


def test_uniform_heads_have_no_role(tmp_path):
    arrays = {"relative_entropy": create_measure(0.98), "previous_token_mass": create_measure(0.1)}
    assert run_check("head_roles", write_synthetic_run(tmp_path, 0, arrays=arrays)) is None
    # as with two keys: equal weights, half of them on the key before the query
    arrays["previous_token_mass"] = create_measure(0.1, L1h0=0.97)
    assert run_check("head_roles", write_synthetic_run(tmp_path, 1, arrays=arrays)) is None
    arrays["relative_entropy"] = create_measure(0.98, L1h0=0.3)
    finding = run_check("head_roles", write_synthetic_run(tmp_path, 2, arrays=arrays))
    assert finding.evidence == "L1 h0 previous token (0.10 → 0.97, since step 200)"
    assert finding.number.value == 1 / 12
    assert finding.formatted_estimate == "1 of 12 heads"


@pytest.mark.parametrize("keys", [2, 3, 4, 5, 8, 40])
def test_a_uniform_head_is_never_called_anything_else(tmp_path, keys):
    """Also without measures: with few keys, equal weights are local and at one distance."""
    uniform = np.tril(np.ones((keys, keys)))
    uniform /= uniform.sum(axis=1, keepdims=True)
    labels = ["␣" if index % 2 else "a" for index in range(keys)]
    run = write_synthetic_run(tmp_path, 0, maps=[np.stack([[uniform] * 4])] * 3, labels=labels)
    assert set(assign_head_roles(find_head_roles(run)).ravel()) == {"uniform"}
    assert run_check("head_roles", run) is None


def test_a_head_on_few_of_many_keys_is_not_uniform(tmp_path):
    """Weights that round to 0 are not masked keys."""
    few = np.zeros((T, T))
    for query in range(T):
        few[query, [0, query // 2]] = 1.0
    run = write_synthetic_run(tmp_path, 0, maps=repeat_maps([few / few.sum(1, keepdims=True)]))
    assert find_head_roles(run)["uniform"].last_levels.item() < 0.6


def test_roles_from_maps(tmp_path):
    roles = find_head_roles(
        write_synthetic_run(
            tmp_path, 0, maps=repeat_maps([SOFT, THIRD, NEARBY, BLANKS]), labels=LABELS
        )
    )
    assert assign_head_roles(roles).tolist() == [["uniform", "positional", "local", "delimiter"]]
    assert roles["positional"].scores.shape == (SNAPSHOTS, 1, 4)
    assert roles["local"].last_levels[0, 0] < 0.1
    assert roles["delimiter"].last_levels[0, 0] < 0.1  # as much as a uniform head


def test_without_labels_there_are_no_delimiter_heads(tmp_path):
    assert "delimiter" not in find_head_roles(
        write_synthetic_run(tmp_path, 0, maps=repeat_maps([BLANKS]))
    )
    assert "delimiter" not in find_head_roles(
        write_synthetic_run(tmp_path, 1, maps=repeat_maps([BLANKS]), labels=["a"] * T)
    )


def test_the_onset_of_specialisation_is_given_by_layer(tmp_path):
    def write_run(seed, layer):
        curve = [
            create_head_divergence(
                [2, 2, 2], lambda i, j, index=index: 0.7 if index >= 3 and j == layer else 0.2
            )
            for index in range(SNAPSHOTS)
        ]
        return write_synthetic_run(
            tmp_path, seed, arrays={"heads/divergence": np.stack(curve)}, heads=[2, 2, 2]
        )

    assert run_check("layers_specialised", write_run(0, 9)) is None
    assert "L2 at step 200 (" in run_check("layers_specialised", write_run(1, 2)).evidence


def test_layers_with_the_same_heads_in_another_order_have_not_specialised(tmp_path):
    same = np.zeros((6, 6)) + 0.5
    for head in range(3):
        other = 3 + (head + 1) % 3
        same[head, head] = same[other, other] = same[head, other] = same[other, head] = 0.0
    curve = [np.full((6, 6), 0.01) * (1 - np.eye(6)), *[same] * (SNAPSHOTS - 1)]
    run = write_synthetic_run(
        tmp_path, 0, arrays={"heads/divergence": np.stack(curve)}, heads=[3, 3]
    )
    assert run_check("layers_specialised", run) is None


def test_layers_that_differed_from_the_start_did_not_specialise(tmp_path):
    curve = np.stack(
        [
            create_head_divergence([2, 2], lambda i, j, level=level: level)
            for level in np.linspace(0.26, 0.29, SNAPSHOTS)
        ]
    )
    run = write_synthetic_run(tmp_path, 0, arrays={"heads/divergence": curve}, heads=[2, 2])
    assert run_check("layers_specialised", run) is None


def create_losses(*values):
    return {"scalars": {"valid/loss": np.array(values)}}


def test_phases_of_the_validation_loss(tmp_path):
    assert (
        run_check("training_phases", write_synthetic_run(tmp_path, 0, **create_losses(3.0))) is None
    )
    curve = np.interp(range(21), [0, 2, 8, 12, 18, 20], [5, 3, 1.8, 2.6, 1.7, 1.75])
    finding = run_check(
        "training_phases", write_synthetic_run(tmp_path, 1, **create_losses(*curve))
    )
    assert finding.kind == "note"
    phases = finding.evidence.removeprefix("valid/loss, steps: ").split(", ")
    assert [re.split(r" at | \d", phase)[0] for phase in phases] == [
        "rapid fall",
        "steady fall",
        "setback",
        "recovery",
        "lowest",
        "after the lowest",
    ]
    assert "lowest at 950 (1.7)" in finding.evidence
    assert finding.formatted_estimate == "lowest valid/loss 1.7 at step 950 of 1,050"


def test_a_best_score_after_a_plateau_needs_patience(tmp_path):
    assert (
        run_check(
            "patience",
            write_synthetic_run(tmp_path, 0, **create_losses(5, 4, 4.1, 3, 2, 2.5, 2.5, 2.5)),
        )
        is None
    )
    plateau = create_losses(*np.interp(range(15), [0, 4, 5, 9, 14], [5, 2, 2.05, 2.05, 1]))
    finding = run_check(
        "patience",
        write_synthetic_run(
            tmp_path, 1, **plateau, settings={"training": {"seed": 1, "patience": 4}}
        ),
    )
    assert finding.evidence == (
        "no new best of valid/loss in 5 validations after step 250, then one at 550; patience is 4"
    )
    assert finding.number.value == 5
    assert (
        "never stops early"
        in run_check("patience", write_synthetic_run(tmp_path, 2, **plateau)).evidence
    )


def test_a_metric_may_be_better_when_larger(tmp_path):
    scores = {"valid/f1": np.interp(range(15), [0, 4, 5, 9, 14], [0.1, 0.5, 0.48, 0.48, 0.8])}
    run = write_synthetic_run(tmp_path, 0, scalars=scores, settings={"task": "segmentation"})
    assert run_check("patience", run).number.value == 5


def run_chance_check(tmp_path, chance, *losses):
    data = {
        **create_losses(*losses),
        "settings": {"task": "supervised"},
        "metadata": {"data/chance_loss": chance},
    }
    return run_check("loss_above_chance", write_synthetic_run(tmp_path, 0, **data))


def test_a_loss_below_chance_by_less_than_noise_is_said_to_be_unclear(tmp_path):
    finding = run_chance_check(tmp_path, 4.43, 5.2, 3.9, 5.4, 3.59, 5.1, 4.0)
    assert finding.claim == "the validation loss is not clearly below chance"
    assert finding.evidence.startswith(
        "the lowest valid/loss is 3.59; predicting the same for every example gives 4.43; "
        "the difference, 0.84, may be noise: up to "
    )
    assert "train longer" in finding.advice
    assert "more examples" in finding.advice
    assert "belong together" not in finding.advice


def test_a_tiny_gain_over_chance_counts_as_none(tmp_path):
    finding = run_chance_check(tmp_path, 1.0, 0.999, 0.999, 0.999, 0.999)
    assert finding.evidence.endswith("the difference, 0.001, is at most 0.5 % of it")


def test_a_loss_above_chance_asks_whether_inputs_and_targets_belong_together(tmp_path):
    finding = run_chance_check(tmp_path, 1.0, 1.3, 1.2, 1.1, 1.1)
    assert finding.evidence.endswith("predicting the same for every example gives 1")
    assert "inputs and targets belong together" in finding.advice


def test_a_loss_clearly_below_chance_is_no_finding(tmp_path):
    assert run_chance_check(tmp_path, 1.0, 0.9, 0.7, 0.6, 0.55, 0.52) is None


def test_one_run_is_enough_and_affected_runs_are_named(tmp_path):
    affected, healthy = ({"arrays": {"largest_logit": create_measure(value)}} for value in (83, 12))
    data = (affected, healthy, {}, affected)
    runs = [write_synthetic_run(tmp_path, seed, **options) for seed, options in enumerate(data)]
    finding = run_check("saturated_logits", *runs)
    assert finding.evidence.startswith("2 of 3 runs; seed 0: L0 h0 (83.00)")
    assert "; seed 3: L0 h0" in finding.evidence
    assert finding.formatted_estimate == "83 nats, mean of 2 runs", (
        "no interval: they were selected"
    )
    assert (finding.number.n, finding.supported) == (2, "yes")


@pytest.mark.parametrize("name", DIAGNOSTIC_CHECKS)
def test_no_runs_have_no_symptoms(name):
    assert run_check(name) is None


def test_checks_without_a_finding_are_listed(tmp_path):
    run = write_synthetic_run(
        tmp_path,
        0,
        arrays={"largest_logit": create_measure(83), "relative_entropy": create_measure(0.5)},
    )
    findings = analyze_runs([run])
    assert "ATT006" in {finding.code for finding in findings}
    assert "ATT001 attention is close to uniform" in list_missing_claims(findings, [run])
    assert not any(claim.startswith("ATT006") for claim in list_missing_claims(findings, [run]))
    assert {finding.kind for finding in analyze_claims([run])} == {"claim"}


def test_a_notebook_shows_findings_as_a_table_with_everything_escaped(tmp_path):
    findings = analyze_runs(
        [
            write_synthetic_run(
                tmp_path,
                0,
                arrays={"largest_logit": create_measure(83)},
                settings={"name": "<img onerror=1>"},
            )
        ]
    )
    html = findings._repr_html_()
    # two tables, of the advice and of the findings, each with a header
    assert html.count("<tr>") == len(findings.advice) + 1 + len(findings) + 1
    assert len(findings.advice) == 1
    assert "ATT006" in html
    assert "<img" not in html
    json.dumps([finding.to_dict() for finding in findings])


def test_no_layer_specialises_before_its_first_high_value(tmp_path, monkeypatch):
    steps = np.arange(0, 60, 10)
    excess = np.full((6, 2, 2), np.nan)
    excess[:, 0, 1] = [0.12, 0.28, 0.27, 0.33, 0.25, 0.3]  # a single level, which begins low
    monkeypatch.setattr(layers_specialised, "load_excess_curves", lambda run: (steps, excess))
    symptom = LayersSpecialised().find_symptom(write_synthetic_run(tmp_path, 0))
    assert symptom is not None and symptom.text.endswith("the first at step 10 of 50")
