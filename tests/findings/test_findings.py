"""Findings about synthetic runs whose truth is known."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from neural.findings.check import decide_above, decide_below
from neural.findings.checks import registry
from neural.findings.checks.specialisation import find_curve_onset
from neural.findings.findings import analyze_runs, format_findings_json, format_runs_report
from neural.findings.run_loading import (
    finite_mean,
    group_experiments,
    select_one_per_seed,
    split_layer_halves,
)
from neural.runs.run import Run
from neural.stats.correlation import Curve
from neural.stats.estimate import Estimate
from tests.findings.synthetic_runs import create_head_divergence, write_seeds, write_synthetic_run

SNAPSHOTS, LAYERS, HEADS = 11, 4, 3


def run_check(name, runs):
    return registry.get(name)().analyze(runs)


def noise(random, *shape):
    return 0.01 * random.normal(size=shape)


@pytest.mark.parametrize(("slope", "answer"), [(-1.0, "yes"), (1.0, "no"), (0.0, "undecided")])
def test_falling_entropy_is_distinguished_from_rising_entropy(tmp_path, slope, answer):
    def create_data(random):
        level = 3 + slope * np.linspace(0, 1, SNAPSHOTS)[:, None, None]
        return {"arrays": {"entropy": level + noise(random, SNAPSHOTS, LAYERS, HEADS)}}

    finding = run_check("entropy_falls", write_seeds(tmp_path, 6, create_data))
    assert (finding.supported, finding.code) == (answer, "EVO001")
    assert finding.number.value == pytest.approx(slope, abs=0.02)
    assert "at step 50 to" in finding.evidence
    assert "at step 550" in finding.evidence


def test_the_change_is_from_the_first_to_the_last_snapshot_by_hand(tmp_path):
    entropy = np.array([[[4.0, 2.0]], [[9.0, 9.0]], [[1.0, 3.0]]])
    finding = run_check(
        "entropy_falls",
        [write_synthetic_run(tmp_path, seed, arrays={"entropy": entropy}) for seed in range(5)],
    )
    assert (finding.number.value, finding.number.n) == (-1, 5)
    assert (math.isnan(finding.number.low), finding.supported) == (True, "undecided"), (
        "equal seeds do not show their variance"
    )
    assert finding.evidence == "from 3 nats at step 50 to 2 at step 150; lower in 50% of the heads"
    assert finding.formatted_estimate == "−1 nats, 5 seeds"
    number = Estimate(value=-1, low=-1.5, high=-0.5, n=5)
    assert (
        replace(finding, number=number, unit="of the heads").formatted_estimate
        == "−100 (−150 … −50) % of the heads, 5 seeds"
    )


@pytest.mark.parametrize(("slope", "answer"), [(2.0, "yes"), (-2.0, "no")])
def test_spans_by_layer(tmp_path, slope, answer):
    def create_data(random):
        layers = 10 + slope * np.arange(LAYERS)[None, :, None]
        return {"arrays": {"span_without_sink": layers + noise(random, SNAPSHOTS, LAYERS, HEADS)}}

    finding = run_check("spans_widen", write_seeds(tmp_path, 5, create_data))
    assert finding.supported == answer
    assert finding.number.value == pytest.approx(2 * slope, abs=0.05)
    assert finding.evidence.startswith("span of the layers from the first to the last: 10, ")


def test_one_layer_has_no_early_and_late(tmp_path):
    runs = [
        write_synthetic_run(tmp_path, seed, arrays={"span_without_sink": np.ones((3, 1, 2))})
        for seed in range(5)
    ]
    assert (
        run_check("spans_widen", runs).supported,
        run_check("spans_widen", runs).number.n,
    ) == (
        "undecided",
        0,
    )


def create_spans(first, last):
    return {"arrays": {"span90": np.array([first, last], dtype=float)}}


def test_heads_that_become_local_are_counted(tmp_path):
    def create_data(_):
        return create_spans(
            [[20, 20], [20, 2]], [[2.5, 20], [30, 2]]
        )  # one becomes local, one always was

    finding = run_check("local_heads", write_seeds(tmp_path, 5, create_data))
    assert finding.supported == "yes"
    assert finding.number.value == 1 / 4
    assert "1 of 4, 1 of 4" in finding.evidence


def test_heads_that_were_local_from_the_start_have_not_specialised(tmp_path):
    finding = run_check(
        "local_heads", write_seeds(tmp_path, 5, lambda _: create_spans([[1, 20]], [[1, 20]]))
    )
    assert finding.supported == "no"


def test_all_heads_local_does_not_support_the_claim(tmp_path):
    assert (
        run_check(
            "local_heads", write_seeds(tmp_path, 5, lambda _: create_spans([[20, 20]], [[1, 1]]))
        ).supported
        == "no"
    )


def test_some_seeds_with_and_some_without_leave_it_undecided(tmp_path):
    runs = [
        write_synthetic_run(tmp_path, seed, **create_spans([[20, 20]], [[1 if seed else 20, 20]]))
        for seed in range(5)
    ]
    finding = run_check("local_heads", runs)
    assert (finding.supported, "in 4 of 5 seeds" in finding.evidence) == ("undecided", True)


def create_last_divergence(random, between, heads=(3, 3, 3, 3, 3)):
    """Data of a run whose last divergence of heads has a little noise."""
    last = create_head_divergence(list(heads), lambda i, j: between(i, j) + float(noise(random)))
    return {"arrays": {"heads/divergence": np.stack([last])}, "heads": list(heads)}


@pytest.mark.parametrize(("lower", "answer"), [(0.1, "yes"), (0.6, "no")])
def test_lower_layers_against_higher_ones(tmp_path, lower, answer):
    runs = write_seeds(
        tmp_path,
        5,
        lambda random: create_last_divergence(random, lambda i, j: lower if j < 3 else 0.3),
    )
    assert run_check("lower_layers_alike", runs).supported == answer


@pytest.mark.parametrize(("higher", "answer"), [(0.1, "yes"), (0.6, "no")])
def test_the_higher_half_against_all_other_pairs(tmp_path, higher, answer):
    runs = write_seeds(
        tmp_path,
        5,
        lambda random: create_last_divergence(random, lambda i, j: higher if i >= 3 else 0.3),
    )
    assert run_check("higher_layers_alike", runs).supported == answer


@pytest.mark.parametrize("name", ["lower_layers_alike", "higher_layers_alike"])
def test_layers_that_drift_apart_with_their_distance_alone_support_neither(tmp_path, name):
    runs = write_seeds(
        tmp_path, 5, lambda random: create_last_divergence(random, lambda i, j: 0.1 * (j - i))
    )
    finding = run_check(name, runs)
    assert finding.supported == "undecided"
    assert abs(finding.number.value) < 0.02


@pytest.mark.parametrize(
    ("name", "layers", "message"),
    [
        ("lower_layers_alike", 2, "needs three layers"),
        ("higher_layers_alike", 3, "needs four layers"),
    ],
)
def test_too_few_layers_are_reported(tmp_path, name, layers, message):
    runs = write_seeds(
        tmp_path,
        5,
        lambda random: create_last_divergence(random, lambda i, j: 0.3, heads=(3,) * layers),
    )
    assert message in run_check(name, runs).evidence


@pytest.mark.parametrize(("slope", "answer"), [(0.1, "yes"), (-0.1, "no")])
def test_diversity_of_heads_by_layer(tmp_path, slope, answer):
    def create_data(random):
        return {
            "arrays": {"head_diversity": 0.5 + slope * np.arange(4) + noise(random, SNAPSHOTS, 4)}
        }

    finding = run_check("late_layers_diverse", write_seeds(tmp_path, 5, create_data))
    assert finding.supported == answer
    assert finding.number.value == pytest.approx(2 * slope, abs=0.02)


@pytest.mark.parametrize(("middle", "answer"), [(0.4, "yes"), (0.05, "no"), (0.9, "no")])
def test_when_layers_specialise(tmp_path, middle, answer):
    def create_data(random):
        rise = 0.5 / (1 + np.exp(-40 * (np.linspace(0.02, 1, 50) - middle)))
        levels = 0.2 + rise + 0.1 * noise(random, 50)
        matrices = [
            create_head_divergence([2, 2, 2], lambda i, j, level=level: level) for level in levels
        ]
        return {"arrays": {"heads/divergence": np.array(matrices)}, "heads": [2, 2, 2]}

    finding = run_check("specialisation", write_seeds(tmp_path, 5, create_data))
    assert finding.supported == answer, finding.evidence
    assert finding.number.value == pytest.approx(middle, abs=0.06)


@pytest.mark.parametrize(("slope", "answer"), [(-1.0, "no"), (0.0, "undecided")])
def test_layers_that_never_specialise(tmp_path, slope, answer):
    def create_data(random):
        levels = 0.6 + slope * np.linspace(0, 0.4, 20) + noise(random, 20)
        matrices = [
            create_head_divergence([2, 2, 2], lambda i, j, level=level: level) for level in levels
        ]
        return {"arrays": {"heads/divergence": np.array(matrices)}, "heads": [2, 2, 2]}

    finding = run_check("specialisation", write_seeds(tmp_path, 5, create_data))
    assert (finding.supported, "no clear rise" in finding.evidence) == (answer, True)


def test_layers_that_drift_apart_steadily_have_no_onset(tmp_path):
    def create_data(random):
        levels = 0.2 + np.linspace(0, 0.4, 20) + 0.1 * noise(random, 20)
        matrices = [
            create_head_divergence([2, 2, 2], lambda i, j, level=level: level) for level in levels
        ]
        return {"arrays": {"heads/divergence": np.array(matrices)}, "heads": [2, 2, 2]}

    finding = run_check("specialisation", write_seeds(tmp_path, 5, create_data))
    assert (finding.supported, "in 0 of 5 seeds" in finding.evidence) == ("undecided", True)


def test_the_onset_by_hand():
    def find_onset(*values):
        return find_curve_onset(Curve(np.arange(len(values)) * 10, np.array(values, dtype=float)))

    assert find_onset(0, 0, 6, 10) == 20
    assert find_onset(0, 6, 4, 6, 10) == 30  # it must stay there
    assert find_onset(0, math.nan, 6, 10) == 20
    assert math.isnan(find_onset(3, 5, 2))
    assert math.isnan(find_onset(3))


def create_related_data(relation, measure="span", score="valid/loss"):
    def create_data(random):
        snapshots = 60
        fall = np.exp(-np.arange(snapshots) / 10)
        first, second = 0.05 * random.normal(size=(2, snapshots))
        values, scores = 0.4 - 0.1 * fall + first, 1.5 + fall + relation * first + 0.5 * second
        arrays = {
            measure: values[:, None, None] * np.ones((1, 2, 3)),
            f"halves/{measure}": np.stack([values] * 2, 1),
        }
        if score == "valid/loss":  # without noise: both halves of the text are equal
            arrays["valid/window_losses"] = np.tile(scores[:, None], (1, 32))
        return {"arrays": arrays, "scalars": {score: scores}}

    return create_data


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("span_and_loss", "span"),
        ("entropy_and_loss", "entropy"),
        ("similarity_and_loss", "js_between"),
    ],
)
def test_a_relation_with_the_loss_is_distinguished_from_a_shared_trend(tmp_path, name, measure):
    finding = run_check(
        name, write_seeds(tmp_path / "planted", 5, create_related_data(1.0, measure))
    )
    assert finding.supported == "yes", finding.evidence
    assert finding.number.low > 0
    finding = run_check(name, write_seeds(tmp_path / "trend", 5, create_related_data(0.0, measure)))
    assert finding.supported == "undecided", finding.evidence
    assert "fast changes are unrelated, slow ones may be related" in finding.evidence


@pytest.mark.parametrize(("relation", "answer"), [(-1.0, "yes"), (1.0, "no"), (0.0, "undecided")])
def test_balance_must_correlate_with_text_closer_to_real_text(tmp_path, relation, answer):
    # below one half, balance grows with entropy
    runs = write_seeds(
        tmp_path,
        5,
        create_related_data(relation, "relative_entropy", "generation/distance_from_real"),
    )
    for run in runs:
        assert (run.measure("relative_entropy")[1] < 0.6).all()
    assert run_check("balanced_entropy", runs).supported == answer


def test_balance_is_the_same_on_both_sides_of_one_half(tmp_path):
    entropy = np.array([[[0.25]], [[0.75]], [[0.5]], [[1.0]], [[0.0]]])
    scalars = {"generation/distance_from_real": np.ones(5)}
    run = write_synthetic_run(tmp_path, 0, arrays={"relative_entropy": entropy}, scalars=scalars)
    balance, _ = registry.get("balanced_entropy")().load_curves(run)
    assert balance.values.tolist() == [0.5, 0.5, 1, 0, 0]


@pytest.mark.parametrize("name", registry.names())
def test_runs_without_attention_leave_every_check_undecided_with_a_reason(tmp_path, name):
    finding = run_check(name, [write_synthetic_run(tmp_path, seed) for seed in range(5)])
    assert finding.supported == "undecided"
    assert " has no " in finding.evidence


CLAIMS = [name for name in registry.names() if registry.get(name).kind == "claim"]


@pytest.mark.parametrize("name", CLAIMS)
def test_no_runs_and_a_single_snapshot_decide_nothing(tmp_path, name):
    assert run_check(name, []).supported == "undecided"
    heads = dict.fromkeys(("entropy", "relative_entropy", "span", "span90"), np.ones((1, 2, 3)))
    arrays = {**heads, "js_between": np.ones((1, 4, 4)), "head_diversity": np.ones((1, 2))}
    runs = [
        write_synthetic_run(
            tmp_path,
            seed,
            arrays=arrays,
            scalars={"valid/loss": [1], "generation/distance_from_real": [1]},
        )
        for seed in range(5)
    ]
    assert run_check(name, runs).supported == "undecided"


def test_three_seeds_decide_nothing(tmp_path):
    def create_data(random):
        return {
            "arrays": {
                "entropy": np.linspace(3, 1, SNAPSHOTS)[:, None, None]
                + noise(random, SNAPSHOTS, 2, 2)
            }
        }

    finding = run_check("entropy_falls", write_seeds(tmp_path, 3, create_data))
    assert finding.supported == "undecided"
    assert finding.evidence.startswith("needs 5 seeds, has 3; ")
    assert finding.missing == "needs 5 seeds, has 3"
    assert finding.number.value == pytest.approx(-2, abs=0.05)


def test_the_same_seed_twice_is_one_seed(tmp_path):
    entropy = np.linspace(3, 1, SNAPSHOTS)[:, None, None] * np.ones((1, 2, 2))
    runs = [
        write_synthetic_run(tmp_path, seed % 2, arrays={"entropy": entropy}) for seed in range(6)
    ]
    assert run_check("entropy_falls", runs).number.n == 2
    assert [run.path for run in select_one_per_seed(runs)] == [runs[4].path, runs[5].path]


def test_runs_are_grouped_by_data_and_by_all_but_their_seed(tmp_path):
    def write_run(seed, **settings):
        return write_synthetic_run(tmp_path, seed, settings=settings)

    runs = [
        write_run(0, name="wide_seed-0"),
        write_run(1, name="wide_seed-1"),
        write_run(0, data="notes/my text.txt", name="wide"),
        write_run(0, name="wide_seed-0", width=9),
    ]
    group_sizes = {
        data: {label: len(group) for label, group in groups.items()}
        for data, groups in group_experiments(runs).items()
    }
    assert group_sizes == {"handbook": {"wide": 2, "wide (2)": 1}, "my_text": {"wide": 1}}


def test_folds_are_one_group_on_request(tmp_path):
    runs = [
        write_synthetic_run(
            tmp_path,
            seed,
            settings={"name": f"wide_fold-{fold}-{count}_seed-{seed}", "fold": f"{fold}/{count}"},
        )
        for count in (2, 3)
        for fold in range(1, count + 1)
        for seed in range(2)
    ]
    (labels,) = group_experiments(runs, join_folds=True).values()
    assert {label: len(group) for label, group in labels.items()} == {"wide": 4, "wide (2)": 6}
    (labels,) = group_experiments(runs).values()
    assert [len(group) for group in labels.values()] == [2] * 5


def test_text_and_json_have_the_same_findings(tmp_path):
    def create_data(random):
        return {
            "arrays": {
                "entropy": np.linspace(3, 1, SNAPSHOTS)[:, None, None]
                + noise(random, SNAPSHOTS, 2, 2)
            }
        }

    runs = write_seeds(tmp_path, 5, create_data)
    table = format_runs_report(runs)
    assert table.startswith("5 runs, seeds 0, 1, 2, 3, 4;")
    assert "EVO001  yes        entropy falls while the model learns\n        −2.0" in table
    assert "EVO006  undecided  " in table
    findings = json.loads(format_findings_json(runs))
    assert (
        [finding["code"] for finding in findings]
        == [finding.code for finding in analyze_runs(runs)]
        == sorted(finding["code"] for finding in findings)
    )
    falls, span = (
        next(finding for finding in findings if finding["code"] == code)
        for code in ("EVO001", "EVO006")
    )
    assert (falls["supported"], falls["number"]["seeds"]) == ("yes", 5)
    assert span["number"]["value"] is None


def test_a_run_that_has_not_finished_is_named(tmp_path):
    stopped = write_synthetic_run(tmp_path, 0, state="stopped")
    assert f"not finished: {stopped.name} (stopped)" in format_runs_report(
        [stopped, write_synthetic_run(tmp_path, 1)]
    )


def test_a_check_may_have_no_finding(tmp_path, monkeypatch):
    monkeypatch.setattr(registry.get("entropy_falls"), "check_runs", lambda self, runs: None)
    run = write_synthetic_run(tmp_path, 0, heads=[2, 2])
    codes = [finding.code for finding in analyze_runs([run])]
    assert "EVO001" not in codes
    assert "EVO002" in codes


def test_codes_are_unique():
    codes = [registry.get(name).code for name in registry.names()]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("name", registry.names())
def test_a_check_has_a_summary_and_a_claim(name):
    check = registry.get(name)
    assert check.summary().endswith(".")
    assert check.claim[0].islower()
    assert not check.claim.endswith(".")


def test_an_interval_decides_only_if_it_lies_on_one_side():
    def create_estimate(low, high):
        return Estimate(value=(low + high) / 2, low=low, high=high, n=5)

    assert [decide_above(create_estimate(*bounds)) for bounds in ((1, 2), (-2, -1), (-1, 1))] == [
        "yes",
        "no",
        "undecided",
    ]
    assert [decide_below(create_estimate(*bounds)) for bounds in ((1, 2), (-2, -1), (-1, 1))] == [
        "no",
        "yes",
        "undecided",
    ]


def test_finite_means_and_halves_of_layers():
    assert finite_mean(np.array([[1.0, np.nan], [np.nan, np.nan]]), axis=1).tolist()[0] == 1
    assert math.isnan(finite_mean(np.array([np.nan])))
    assert [list(map(list, split_layer_halves(count))) for count in (1, 2, 5)] == [
        [[0], []],
        [[0], [1]],
        [[0, 1, 2], [3, 4]],
    ]


def test_a_run_is_only_read(tmp_path):
    run = write_synthetic_run(tmp_path, 0, arrays={"entropy": np.ones((3, 2, 2))})

    def read_files():  # except the two files that SQLite creates for readers
        return {
            path.name: path.read_bytes()
            for path in run.path.iterdir()
            if path.is_file() and "-" not in path.name
        }

    before = read_files()
    format_runs_report([Run.open(run.path)])
    assert read_files() == before
