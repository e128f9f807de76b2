"""Findings on made-up runs whose truth is known."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from neural.tracking.run import Run
from neural.views.analysis import registry
from neural.views.analysis.specialisation import onset
from neural.views.correlation import Curve
from neural.views.finding import above, below
from neural.views.findings import findings, findings_json, findings_table
from neural.views.reading import experiments, halves, mean, one_per_seed
from neural.views.seeds import Estimate
from tests.views.made_up import between_heads, made_up, several

LOOKS, LAYERS, HEADS = 11, 4, 3


def asked(name, runs):
    return registry.get(name)().analyze(runs)


def noise(random, *shape):
    return 0.01 * random.normal(size=shape)


@pytest.mark.parametrize(("slope", "answer"), [(-1.0, "yes"), (1.0, "no"), (0.0, "undecided")])
def test_entropy_that_falls_is_told_from_entropy_that_rises(tmp_path, slope, answer):
    def make(random):
        level = 3 + slope * np.linspace(0, 1, LOOKS)[:, None, None]
        return {"arrays": {"entropy": level + noise(random, LOOKS, LAYERS, HEADS)}}

    found = asked("entropy_falls", several(tmp_path, 6, make))
    assert (found.supported, found.code) == (answer, "EVO001")
    assert found.number.value == pytest.approx(slope, abs=0.02)
    assert "at step 50 to" in found.evidence
    assert "at step 550" in found.evidence


def test_the_change_is_from_the_first_look_to_the_last_by_hand(tmp_path):
    entropy = np.array([[[4.0, 2.0]], [[9.0, 9.0]], [[1.0, 3.0]]])
    found = asked("entropy_falls", [made_up(tmp_path, seed, arrays={"entropy": entropy}) for seed in range(5)])
    assert (found.number.value, found.number.seeds) == (-1, 5)
    assert (math.isnan(found.number.low), found.supported) == (True, "undecided"), "equal seeds tell nothing"
    assert found.evidence == "from 3 nats at step 50 to 2 at step 150; lower in 50% of the heads"
    assert found.figure == "−1 nats, 5 seeds"
    number = Estimate(value=-1, low=-1.5, high=-0.5, seeds=5)
    assert replace(found, number=number, unit="of the heads").figure == "−100 (−150 … −50) % of the heads, 5 seeds"


@pytest.mark.parametrize(("slope", "answer"), [(2.0, "yes"), (-2.0, "no")])
def test_spans_by_layer(tmp_path, slope, answer):
    def make(random):
        layers = 10 + slope * np.arange(LAYERS)[None, :, None]
        return {"arrays": {"span_without_sink": layers + noise(random, LOOKS, LAYERS, HEADS)}}

    found = asked("spans_widen", several(tmp_path, 5, make))
    assert found.supported == answer
    assert found.number.value == pytest.approx(2 * slope, abs=0.05)
    assert found.evidence.startswith("span of the layers from the first to the last: 10, ")


def test_one_layer_has_no_early_and_late(tmp_path):
    runs = [made_up(tmp_path, seed, arrays={"span_without_sink": np.ones((3, 1, 2))}) for seed in range(5)]
    assert (asked("spans_widen", runs).supported, asked("spans_widen", runs).number.seeds) == ("undecided", 0)


def local(first, last):
    return {"arrays": {"span90": np.array([first, last], dtype=float)}}


def test_heads_that_become_local_are_counted(tmp_path):
    def make(_):
        return local([[20, 20], [20, 2]], [[2.5, 20], [30, 2]])   # one becomes local, one always was

    found = asked("local_heads", several(tmp_path, 5, make))
    assert found.supported == "yes"
    assert found.number.value == 1 / 4
    assert "1 of 4, 1 of 4" in found.evidence


def test_heads_that_were_local_from_the_start_have_not_specialised(tmp_path):
    found = asked("local_heads", several(tmp_path, 5, lambda _: local([[1, 20]], [[1, 20]])))
    assert found.supported == "no"


def test_all_heads_local_is_no_division_of_labour(tmp_path):
    assert asked("local_heads", several(tmp_path, 5, lambda _: local([[20, 20]], [[1, 1]]))).supported == "no"


def test_some_seeds_with_and_some_without_leave_it_undecided(tmp_path):
    runs = [made_up(tmp_path, seed, **local([[20, 20]], [[1 if seed else 20, 20]])) for seed in range(5)]
    found = asked("local_heads", runs)
    assert (found.supported, "in 4 of 5 seeds" in found.evidence) == ("undecided", True)


def compared(random, between, heads=(3, 3, 3, 3, 3)):
    """A run's last comparison of its heads, with a little noise."""
    last = between_heads(list(heads), lambda i, j: between(i, j) + float(noise(random)))
    return {"arrays": {"heads/divergence": np.stack([last])}, "heads": list(heads)}


@pytest.mark.parametrize(("lower", "answer"), [(0.1, "yes"), (0.6, "no")])
def test_lower_layers_against_higher_ones(tmp_path, lower, answer):
    runs = several(tmp_path, 5, lambda random: compared(random, lambda i, j: lower if j < 3 else 0.3))
    assert asked("lower_layers_alike", runs).supported == answer


@pytest.mark.parametrize(("higher", "answer"), [(0.1, "yes"), (0.6, "no")])
def test_the_higher_half_against_all_other_pairs(tmp_path, higher, answer):
    runs = several(tmp_path, 5, lambda random: compared(random, lambda i, j: higher if i >= 3 else 0.3))
    assert asked("higher_layers_alike", runs).supported == answer


@pytest.mark.parametrize("name", ["lower_layers_alike", "higher_layers_alike"])
def test_layers_that_drift_apart_with_their_distance_alone_support_neither(tmp_path, name):
    runs = several(tmp_path, 5, lambda random: compared(random, lambda i, j: 0.1 * (j - i)))
    found = asked(name, runs)
    assert found.supported == "undecided"
    assert abs(found.number.value) < 0.02


@pytest.mark.parametrize(("name", "layers", "says"), [
    ("lower_layers_alike", 2, "it takes three layers"), ("higher_layers_alike", 3, "it takes four layers"),
])  # fmt: skip
def test_too_few_layers_are_told(tmp_path, name, layers, says):
    runs = several(tmp_path, 5, lambda random: compared(random, lambda i, j: 0.3, heads=(3,) * layers))
    assert says in asked(name, runs).evidence


@pytest.mark.parametrize(("slope", "answer"), [(0.1, "yes"), (-0.1, "no")])
def test_diversity_of_heads_by_layer(tmp_path, slope, answer):
    def make(random):
        return {"arrays": {"head_diversity": 0.5 + slope * np.arange(4) + noise(random, LOOKS, 4)}}

    found = asked("late_layers_diverse", several(tmp_path, 5, make))
    assert found.supported == answer
    assert found.number.value == pytest.approx(2 * slope, abs=0.02)


@pytest.mark.parametrize(("middle", "answer"), [(0.4, "yes"), (0.05, "no"), (0.9, "no")])
def test_when_layers_specialise(tmp_path, middle, answer):
    def make(random):
        rise = 0.5 / (1 + np.exp(-40 * (np.linspace(0.02, 1, 50) - middle)))
        levels = 0.2 + rise + 0.1 * noise(random, 50)
        matrices = [between_heads([2, 2, 2], lambda i, j, at=at: at) for at in levels]
        return {"arrays": {"heads/divergence": np.array(matrices)}, "heads": [2, 2, 2]}

    found = asked("specialisation", several(tmp_path, 5, make))
    assert found.supported == answer, found.evidence
    assert found.number.value == pytest.approx(middle, abs=0.06)


@pytest.mark.parametrize(("slope", "answer"), [(-1.0, "no"), (0.0, "undecided")])
def test_layers_that_never_specialise(tmp_path, slope, answer):
    def make(random):
        level = 0.6 + slope * np.linspace(0, 0.4, 20) + noise(random, 20)
        matrices = [between_heads([2, 2, 2], lambda i, j, at=at: at) for at in level]
        return {"arrays": {"heads/divergence": np.array(matrices)}, "heads": [2, 2, 2]}

    found = asked("specialisation", several(tmp_path, 5, make))
    assert (found.supported, "no clear rise" in found.evidence) == (answer, True)


def test_layers_that_drift_apart_steadily_have_no_onset(tmp_path):
    def make(random):
        level = 0.2 + np.linspace(0, 0.4, 20) + 0.1 * noise(random, 20)
        matrices = [between_heads([2, 2, 2], lambda i, j, at=at: at) for at in level]
        return {"arrays": {"heads/divergence": np.array(matrices)}, "heads": [2, 2, 2]}

    found = asked("specialisation", several(tmp_path, 5, make))
    assert (found.supported, "in 0 of 5 seeds" in found.evidence) == ("undecided", True)


def test_the_onset_by_hand():
    def at(*values):
        return onset(Curve(np.arange(len(values)) * 10, np.array(values, dtype=float)))

    assert at(0, 0, 6, 10) == 20
    assert at(0, 6, 4, 6, 10) == 30   # it must stay there
    assert at(0, math.nan, 6, 10) == 20
    assert math.isnan(at(3, 5, 2))
    assert math.isnan(at(3))


def related(relation, measure="span", score="valid/loss"):
    def make(random):
        looks = 60
        fall = np.exp(-np.arange(looks) / 10)
        first, second = 0.05 * random.normal(size=(2, looks))
        values, scores = 0.4 - 0.1 * fall + first, 1.5 + fall + relation * first + 0.5 * second
        arrays = {measure: values[:, None, None] * np.ones((1, 2, 3)), f"halves/{measure}": np.stack([values] * 2, 1)}
        if score == "valid/loss":   # measured without noise: both halves of the text say the same
            arrays["valid/window_losses"] = np.tile(scores[:, None], (1, 32))
        return {"arrays": arrays, "scalars": {score: scores}}

    return make


@pytest.mark.parametrize(
    ("name", "measure"),
    [("span_and_loss", "span"), ("entropy_and_loss", "entropy"), ("similarity_and_loss", "js_between")],
)
def test_a_measure_that_goes_with_the_loss_is_told_from_one_that_shares_its_trend(tmp_path, name, measure):
    found = asked(name, several(tmp_path / "planted", 5, related(1.0, measure)))
    assert found.supported == "yes", found.evidence
    assert found.number.low > 0
    found = asked(name, several(tmp_path / "trend", 5, related(0.0, measure)))
    assert found.supported == "undecided", found.evidence
    assert "quick changes are unrelated, slow ones may be related" in found.evidence


@pytest.mark.parametrize(("relation", "answer"), [(-1.0, "yes"), (1.0, "no"), (0.0, "undecided")])
def test_balance_must_go_with_text_nearer_to_real(tmp_path, relation, answer):
    # below one half, balance grows with entropy
    runs = several(tmp_path, 5, related(relation, "relative_entropy", "generation/distance_from_real"))
    for run in runs:
        assert (run.measure("relative_entropy")[1] < 0.6).all()
    assert asked("balanced_entropy", runs).supported == answer


def test_balance_is_the_same_on_both_sides_of_one_half(tmp_path):
    entropy = np.array([[[0.25]], [[0.75]], [[0.5]], [[1.0]], [[0.0]]])
    judged = {"generation/distance_from_real": np.ones(5)}
    run = made_up(tmp_path, 0, arrays={"relative_entropy": entropy}, scalars=judged)
    balance, _ = registry.get("balanced_entropy")().curves(run)
    assert balance.values.tolist() == [0.5, 0.5, 1, 0, 0]


@pytest.mark.parametrize("name", registry.names())
def test_runs_without_attention_leave_everything_undecided_and_say_why(tmp_path, name):
    found = asked(name, [made_up(tmp_path, seed) for seed in range(5)])
    assert found.supported == "undecided"
    assert " has no " in found.evidence


CLAIMS = [name for name in registry.names() if registry.get(name).kind == "claim"]


@pytest.mark.parametrize("name", CLAIMS)
def test_no_runs_and_a_single_look_are_no_finding(tmp_path, name):
    assert asked(name, []).supported == "undecided"
    heads = dict.fromkeys(("entropy", "relative_entropy", "span", "span90"), np.ones((1, 2, 3)))
    arrays = {**heads, "js_between": np.ones((1, 4, 4)), "head_diversity": np.ones((1, 2))}
    runs = [made_up(tmp_path, seed, arrays=arrays, scalars={"valid/loss": [1], "generation/distance_from_real": [1]})
            for seed in range(5)]  # fmt: skip
    assert asked(name, runs).supported == "undecided"


def test_three_seeds_decide_nothing(tmp_path):
    def make(random):
        return {"arrays": {"entropy": np.linspace(3, 1, LOOKS)[:, None, None] + noise(random, LOOKS, 2, 2)}}

    found = asked("entropy_falls", several(tmp_path, 3, make))
    assert found.supported == "undecided"
    assert found.evidence.startswith("too few seeds (3; at least 5)")
    assert found.number.value == pytest.approx(-2, abs=0.05)


def test_the_same_seed_twice_is_one_seed(tmp_path):
    entropy = np.linspace(3, 1, LOOKS)[:, None, None] * np.ones((1, 2, 2))
    runs = [made_up(tmp_path, seed % 2, arrays={"entropy": entropy}) for seed in range(6)]
    assert asked("entropy_falls", runs).number.seeds == 2
    assert [run.path for run in one_per_seed(runs)] == [runs[4].path, runs[5].path]


def test_runs_are_grouped_by_data_and_by_all_but_their_seed(tmp_path):
    def run(seed, **settings):
        return made_up(tmp_path, seed, settings=settings)

    runs = [
        run(0, name="wide_seed-0"), run(1, name="wide_seed-1"), run(0, data="notes/my text.txt", name="wide"),
        run(0, name="wide_seed-0", width=9),
    ]  # fmt: skip
    found = {data: {label: len(group) for label, group in groups.items()} for data, groups in experiments(runs).items()}
    assert found == {"handbook": {"wide": 2, "wide (2)": 1}, "my_text": {"wide": 1}}


def test_the_table_and_the_json_say_the_same(tmp_path):
    def make(random):
        return {"arrays": {"entropy": np.linspace(3, 1, LOOKS)[:, None, None] + noise(random, LOOKS, 2, 2)}}

    runs = several(tmp_path, 5, make)
    table = findings_table(runs)
    assert table.startswith("5 runs, seeds 0, 1, 2, 3, 4;")
    assert "EVO001  yes        entropy falls while the model learns\n        −2 (" in table
    assert "EVO006  undecided  " in table
    said = json.loads(findings_json(runs))
    assert [one["code"] for one in said] == [one.code for one in findings(runs)] == sorted(one["code"] for one in said)
    falls, span = (next(one for one in said if one["code"] == code) for code in ("EVO001", "EVO006"))
    assert (falls["supported"], falls["number"]["seeds"]) == ("yes", 5)
    assert span["number"]["value"] is None


def test_a_run_that_has_not_finished_is_named(tmp_path):
    stopped = made_up(tmp_path, 0, state="stopped")
    assert f"not finished: {stopped.name} (stopped)" in findings_table([stopped, made_up(tmp_path, 1)])


def test_an_analysis_may_have_nothing_to_say(tmp_path, monkeypatch):
    monkeypatch.setattr(registry.get("entropy_falls"), "examine", lambda self, runs: None)
    codes = [one.code for one in findings([made_up(tmp_path, 0)])]
    assert "EVO001" not in codes
    assert "EVO002" in codes


def test_codes_are_given_once():
    codes = [registry.get(name).code for name in registry.names()]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("name", registry.names())
def test_an_analysis_says_what_it_is(name):
    entry = registry.get(name)
    assert entry.summary().endswith(".")
    assert entry.claim[0].islower()
    assert not entry.claim.endswith(".")


def test_an_interval_decides_only_where_all_of_it_lies_on_one_side():
    def estimate(low, high):
        return Estimate(value=(low + high) / 2, low=low, high=high, seeds=5)

    assert [above(estimate(*one)) for one in ((1, 2), (-2, -1), (-1, 1))] == ["yes", "no", "undecided"]
    assert [below(estimate(*one)) for one in ((1, 2), (-2, -1), (-1, 1))] == ["no", "yes", "undecided"]


def test_means_and_halves():
    assert mean(np.array([[1.0, np.nan], [np.nan, np.nan]]), axis=1).tolist()[0] == 1
    assert math.isnan(mean(np.array([np.nan])))
    assert [list(map(list, halves(count))) for count in (1, 2, 5)] == [[[0], []], [[0], [1]], [[0, 1, 2], [3, 4]]]


def test_a_run_is_only_read(tmp_path):
    run = made_up(tmp_path, 0, arrays={"entropy": np.ones((3, 2, 2))})

    def files():   # SQLite's own two beside the rows come and go with readers
        return {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file() and "-" not in path.name}

    before = files()
    findings_table([Run.open(run.path)])
    assert files() == before
