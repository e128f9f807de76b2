"""Headlines of any task: sentences about scores and about runs that are not finished."""

import numpy as np
import pytest

from neural.report.group_scores import GroupScore
from neural.report.headline import (
    HeadlineWriter,
    build_score_figures,
    describe_metric,
    describe_repetitions,
    describe_scores,
)
from tests.report.experiments import write_group

CURVE = np.array([3.0, 2.0, 1.5])


def write_scored(root, label="model", offsets=(0.0,), **options):
    """A group of an unknown task with one seed per offset of its loss."""
    return write_group(
        root,
        label,
        seeds=len(offsets),
        scores=lambda seed, _: {"valid/loss": CURVE + offsets[seed]},
        settings={"task": "unknown"},
        **options,
    )


def test_one_run(tmp_path):
    headline = HeadlineWriter().write([write_scored(tmp_path)])
    assert headline.text == "Validation loss 1.5"
    assert headline.details == [] and headline.figures == []
    assert headline.link.route["pane"] == "curves"


def test_several_seeds_have_their_interval(tmp_path):
    group = write_scored(tmp_path, offsets=[0.0, 0.2, 0.1])
    text = HeadlineWriter().write([group]).text
    assert text.startswith("Validation loss 1.60, mean of 3 seeds (1.29 … ")


def test_equal_seeds_have_no_interval(tmp_path):
    text = HeadlineWriter().write([write_scored(tmp_path, offsets=[0.0, 0.0])]).text
    assert text == "Validation loss 1.5, mean of 2 seeds"


def test_folds_are_not_called_seeds(tmp_path):
    group = write_group(
        tmp_path,
        folds=3,
        scores=lambda _, fold: {"valid/loss": CURVE + fold / 10},
        settings={"task": "unknown"},
    )
    assert (
        HeadlineWriter().write([group]).text.startswith("Validation loss 1.70, mean of 3 folds (")
    )


def test_settings_are_listed_best_first_without_a_winner(tmp_path):
    groups = [
        write_scored(tmp_path, "wide", [0.4]),
        write_scored(tmp_path, "deep", [0.1]),
    ]
    headline = HeadlineWriter().write(groups)
    assert headline.text == "Validation loss: deep 1.6, wide 1.9"
    (figure,) = headline.figures
    assert [row["label"] for row in figure["rows"]] == ["deep", "wide"]


def test_a_winner_is_named_if_the_seeds_decide(tmp_path):
    noise = np.random.default_rng(3).normal(0, 0.01, (2, 6))
    groups = [
        write_scored(tmp_path, "wide", 0.5 + noise[0]),
        write_scored(tmp_path, "deep", noise[1]),
    ]
    text = HeadlineWriter().write(groups).text
    assert text.startswith("deep has the lowest validation loss: 1.5")
    assert ", wide 1.998" in text


def test_four_seeds_decide_nothing(tmp_path):
    groups = [
        write_scored(tmp_path, "wide", [5.0, 5.01, 5.02, 5.03]),
        write_scored(tmp_path, "deep", [0.0, 0.01, 0.03, 0.02]),
    ]
    assert HeadlineWriter().write(groups).text.startswith("Validation loss: deep ")


def test_equal_settings_have_a_winner_in_less_than_5_percent_of_experiments():
    random, claims, experiments = np.random.default_rng(0), 0, 400
    for _ in range(experiments):
        scores = {
            label: GroupScore(
                name="valid/loss",
                larger_is_better=False,
                scores={None: dict(enumerate(random.normal(1, 0.1, 5)))},
                fold_count=None,
            )
            for label in "abc"
        }
        claims += "has the lowest" in describe_scores(scores, "loss")
    assert claims / experiments < 0.05


def test_too_few_seeds_for_an_interval_are_dots_of_their_own():
    def score(*values: float) -> GroupScore:
        scores = {None: dict(enumerate(values))}
        return GroupScore(
            name="valid/accuracy", larger_is_better=True, scores=scores, fold_count=None
        )

    ((two, three),) = (
        figure["rows"]
        for figure in build_score_figures({"two": score(0.7, 0.96), "three": score(0.7, 0.8, 0.6)})
    )
    assert two["values"] == [0.7, 0.96]
    assert two["number"]["low"] is None
    assert three["values"] == []
    assert 0 <= three["number"]["low"] < three["number"]["high"] <= 1
    assert describe_repetitions(score(0.7, 0.96)) == ", mean of 2 seeds"


def test_many_settings_are_counted(tmp_path):
    groups = [write_scored(tmp_path, f"s{number}", [number / 10]) for number in range(7)]
    text = HeadlineWriter().write(groups).text
    assert text == "Validation loss: s0 1.5, s1 1.6, s2 1.7, s3 1.8 and 3 more up to 2.1"


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("failed", "Training failed at step 0"),
        ("finished", "No validation yet"),
        ("stopped", "No validation yet"),
    ],
)
def test_a_run_without_scores(tmp_path, state, text):
    assert HeadlineWriter().write([write_group(tmp_path, state=state)]).text == text


def test_failed_and_stopped_runs_are_counted(tmp_path):
    groups = [
        write_scored(tmp_path, "wide", state="failed"),
        write_scored(tmp_path, "deep", [0.1, 0.2], state="stopped"),
        write_scored(tmp_path, "flat"),
    ]
    assert HeadlineWriter().write(groups).details == [
        "1 of 4 runs failed",
        "2 of 4 runs were stopped",
    ]


def test_a_failed_run_with_scores_says_where(tmp_path):
    (detail,) = HeadlineWriter().write([write_scored(tmp_path, state="failed")]).details
    assert detail.startswith("Training failed at step ")


def test_names_of_metrics():
    assert describe_metric("valid/f1") == "validation F1"
    assert describe_metric("valid/window_diff") == "validation window diff"
