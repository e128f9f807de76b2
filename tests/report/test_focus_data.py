"""Comparison of focus runs as page data: scores, claims, mosaics, and runs that are left out."""

import base64
import json

import numpy as np
import pytest

from neural.findings.focus_results import FocusResult
from neural.report.focus_data import (
    MAX_SHOWN_STEPS,
    build_focus_data,
    describe_paradigm,
    load_comparison,
    name_paradigm,
)
from neural.report.run_report import build_page_data
from neural.runs.run import Run
from neural.stats.means import estimate_mean
from neural.tasks.focus.paradigms import registry
from tests.focus_runs import CLASSES, STEPS, create_weights, write_focus_run, write_sweep


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """The runs of three paradigms with five seeds each."""
    return [Run.open(path) for path in write_sweep(tmp_path_factory.mktemp("sweep"))]


def load(runs):
    return load_comparison(runs, [run.name for run in runs])


def decode(text, shape):
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape) / 255


def write_test_results(runs, saif=0.5):
    """Save test results as `neural dynamics` does."""
    folder = runs[0].path.parent / "dynamics"
    folder.mkdir()
    for run in runs:
        FocusResult(
            run=run.name,
            paradigm=run.settings["paradigm"],
            segments=5,
            seed=run.settings["training"]["seed"],
            classes=tuple(CLASSES),
            scores={"saif": saif + 0.01 * run.settings["training"]["seed"]},
            heat_map=np.zeros((2, 2)),
            examples={},
        ).write(folder / f"{run.name}.npz")


def test_scores_are_means_over_seeds_of_the_last_validations(sweep):
    data = build_focus_data(load(sweep))
    assert data["data"] == "validation"
    assert [group["paradigm"] for group in data["groups"]] == ["soft", "hard", "lvml"]
    for group in data["groups"]:
        runs = [run for run in sweep if run.name in group["runs"]]
        values = [float(run.scalars("valid/saif")[1][-1]) for run in runs]
        score = group["scores"]["saif"]
        assert score["by_seed"] == values
        assert score["value"] == pytest.approx(np.mean(values))
        assert (score["low"], score["high"]) == pytest.approx(
            (estimate_mean(values).low, estimate_mean(values).high)
        )
        times = group["scores"]["steps_to_target"]
        assert (times["value"], times["reached"], times["seeds"]) == (STEPS[-1], 5, 5)
        curve = group["curves"]["saif"]
        assert curve["steps"] == list(STEPS)
        assert curve["value"][-1] == pytest.approx(np.mean(values), abs=1e-4)


def test_claims_have_verdicts(sweep):
    claims = {
        claim["claim"].partition(":")[0]: claim for claim in build_focus_data(load(sweep))["claims"]
    }
    assert claims["hard ends above soft"]["supported"] == "yes"
    assert claims["soft then stalls"]["number"]["value"] < 0
    assert claims["soft starts fast"]["supported"] == "undecided"


def test_mosaics_have_the_recorded_weights_at_every_step(sweep):
    (mosaics,) = build_focus_data(load(sweep))["mosaics"]
    assert (mosaics["recorded"], len(mosaics["examples"])) == (8, 6)
    assert mosaics["examples"][0]["index"] == 3, "the example on which paradigms differ most"
    indices = [example["index"] for example in mosaics["examples"]]
    for run in sweep:
        focus = mosaics["runs"][run.name]
        assert focus["steps"] == list(STEPS)
        weights = decode(focus["weights"], (len(STEPS), 6, 5))
        paradigm, seed = run.settings["paradigm"], run.settings["training"]["seed"]
        for position, step in enumerate(STEPS):
            expected = create_weights(paradigm, seed, step)[indices]
            np.testing.assert_allclose(weights[position], expected, atol=0.5 / 255 + 1e-6)
        assert focus["predicted"][-1] == [
            index % (2 if paradigm == "soft" else 3) for index in indices
        ]


def test_test_results_of_a_comparison_are_used_if_all_runs_have_them(tmp_path):
    runs = [Run.open(path) for path in write_sweep(tmp_path, seeds=2)]
    write_test_results(runs)
    comparison = load(runs)
    assert comparison.data == "test"
    scores = build_focus_data(comparison)["groups"][0]["scores"]
    assert scores["saif"]["by_seed"] == [0.5, 0.51]
    (tmp_path / "dynamics" / f"{runs[3].name}.npz").write_bytes(b"damaged")
    assert load(runs).data == "validation"
    (tmp_path / "dynamics" / f"{runs[3].name}.npz").unlink()
    assert load(runs).data == "validation"


def test_unfinished_runs_and_other_settings_are_left_out(tmp_path):
    paths = write_sweep(tmp_path, paradigms=("soft", "lvml"), seeds=2)
    paths.append(write_focus_run(tmp_path, "hard", 0, state="stopped"))
    paths.append(write_focus_run(tmp_path, "lvml", 7, threshold=0.6))
    data = build_focus_data(load([Run.open(path) for path in paths]))
    assert data["notes"] == [
        "1 run left out: not finished",
        "1 run left out: trained with other settings",
    ]
    assert list(data["descriptions"]) == ["soft", "lvml"]
    assert data["threshold"] == 0.8


def test_runs_without_recorded_examples_have_scores_only(tmp_path):
    paths = write_sweep(tmp_path, seeds=1, recorded=False)
    data = build_focus_data(load([Run.open(path) for path in paths]))
    assert data["mosaics"] == []
    assert len(data["groups"]) == 3


def test_without_a_finished_run_there_is_no_comparison(tmp_path):
    path = write_focus_run(tmp_path, "soft", 0, state="failed")
    assert load([Run.open(path)]) is None


def test_several_numbers_of_segments_have_mosaics_of_their_own(tmp_path):
    paths = write_sweep(tmp_path, paradigms=("soft", "lvml"), seeds=1)
    paths += write_sweep(tmp_path, paradigms=("soft", "lvml"), seeds=1, m=7)
    data = build_focus_data(load([Run.open(path) for path in paths]))
    assert data["segment_counts"] == [5, 7]
    assert [(entry["segments"], len(entry["runs"])) for entry in data["mosaics"]] == [
        (5, 2),
        (7, 2),
    ]


def test_long_runs_have_a_limited_number_of_steps(tmp_path):
    path = write_focus_run(tmp_path, "lvml", 0)
    run = Run.reopen(path)
    for step in range(40, 400):
        run.log_arrays(
            step,
            {
                "valid/example_focus": create_weights("lvml", 0, step),
                "valid/example_predictions": np.zeros((8, 3)),
            },
        )
    run.finish("finished")
    (mosaics,) = build_focus_data(load([Run.open(path)]))["mosaics"]
    steps = mosaics["runs"][path.name]["steps"]
    assert (len(steps), steps[0], steps[-1]) == (MAX_SHOWN_STEPS, 0, 399)


def test_the_page_has_the_comparison_with_its_experiment(sweep):
    page = build_page_data(sweep)
    (experiment,) = page["experiments"]
    json.dumps(page, allow_nan=False)
    assert experiment["headline"] == (
        "LVML finds the right picture most surely: SAIF .89, hard .87, soft .80"
    )
    assert [figure["kind"] for figure in experiment["figures"]] == ["mosaics", "estimates"]
    assert experiment["link"]["route"]["pane"] == "focus"
    assert experiment["focus"]["headline_test"].startswith("LVML − hard: ")
    assert page["runs"][0]["example_steps"] == list(STEPS)


def test_an_experiment_without_a_finished_run_has_a_headline(tmp_path):
    path = write_focus_run(tmp_path, "soft", 0, state="stopped")
    (experiment,) = build_page_data([Run.open(path)])["experiments"]
    assert "focus" not in experiment
    assert experiment["headline"]


@pytest.mark.parametrize("name", registry.names())
def test_every_paradigm_has_a_description(name):
    assert describe_paradigm(name)
    assert not describe_paradigm(name).endswith(".")


def test_paradigms_with_estimators_and_arguments_are_described():
    assert name_paradigm("lvml, topk 2") == "LVML, topk 2"
    assert name_paradigm("renyi(tau=0.5)") == "renyi(tau=0.5)"
    assert name_paradigm("hybrid") == "hybrid"
    assert describe_paradigm("hybrid") == "starts as soft and switches to hard during training"
    label = 'hybrid(first="lvml", switch="step", value=30), topk 2'
    assert name_paradigm(label) == "LVML → hard, topk 2"
    assert describe_paradigm(label) == "starts as LVML and switches to hard during training"
    assert describe_paradigm("of another version") == ""
