"""Means of seeds and folds, and comparisons of groups."""

import math

import numpy as np
import pytest

from neural.report.group_scores import (
    build_cross_validation,
    compare_with_best,
    get_fold,
    load_group_score,
    rank_groups,
)
from neural.report.headline import describe_scores
from neural.stats.folds import estimate_fold_mean
from tests.findings.synthetic_runs import write_synthetic_run
from tests.report.experiments import write_group


def write_losses(root, label, losses, **options):
    """A group whose best validation loss is `losses[seed or fold − 1]`; its validations get worse."""

    def create_scores(seed, fold):
        best = losses[seed if fold is None else fold - 1]
        return {"valid/loss": np.array([best + 1, best, best + 0.5])}

    return write_group(root, label, scores=create_scores, **options)


def test_the_score_of_a_group_is_the_mean_of_the_best_validations(tmp_path):
    score = write_losses(tmp_path, "a", [1.0, 2.0, 4.5], seeds=3).score
    assert score.name == "valid/loss" and not score.larger_is_better
    assert sorted(score.values) == [1.0, 2.0, 4.5]
    data = score.to_dict()
    assert data["estimate"]["value"] == pytest.approx(2.5)
    assert data["estimate"]["low"] < 1.5 and data["estimate"]["seeds"] == 3
    assert (data["low"], data["high"], data["folds"]) == (1.0, 4.5, None)


def test_folds_have_the_interval_of_nadeau_and_bengio(tmp_path):
    losses = [1.0, 1.1, 1.3, 0.9, 1.2]
    group = write_losses(tmp_path, "a", losses, folds=5)
    assert [get_fold(run).number for run in group.runs] == [1, 2, 3, 4, 5]
    assert group.score.fold_count == 5
    assert group.score.estimate() == estimate_fold_mean(losses, 5)
    # wider than the interval of independent runs
    seeds = write_losses(tmp_path, "b", losses, seeds=5).score.estimate()
    folds = group.score.estimate()
    assert folds.high - folds.low > seeds.high - seeds.low


def test_runs_without_a_validation_are_left_out(tmp_path):
    unvalidated = write_group(tmp_path, scores=lambda *_: {"train/loss": np.array([3.0, 2.0])})
    assert unvalidated.score is None
    nan = write_group(tmp_path, scores=lambda *_: {"valid/loss": np.array([math.nan])})
    assert nan.score is None


def test_a_group_with_failed_runs_is_last(tmp_path):
    stable = write_losses(tmp_path, "a", [1.0, 1.1, 1.2], seeds=3).score
    states = "failed", "failed", "finished"
    unstable = load_group_score(
        [
            write_synthetic_run(
                tmp_path,
                seed,
                scalars={"valid/loss": np.array([0.1, 0.2])},
                settings={"name": "b"},
                state=state,
            )
            for seed, state in enumerate(states)
        ]
    )
    assert unstable.failed_share == pytest.approx(2 / 3)
    assert unstable.to_dict()["estimate"]["low"] is None
    scores = {"unstable": unstable, "stable": stable}
    assert rank_groups(scores) == ["stable", "unstable"]
    assert compare_with_best(scores)["unstable"].verdict == "undecided"
    assert "unstable 0.1 (67% of its runs failed)" in describe_scores(scores, "loss")


def test_another_metric_is_read_at_the_best_validation(tmp_path):
    group = write_group(
        tmp_path,
        scores=lambda *_: {"valid/loss": np.array([2, 1]), "valid/accuracy": np.array([0.9, 0.7])},
    )
    score = load_group_score(group.runs, ("valid/accuracy", True))
    assert score.values == [0.7] and score.larger_is_better


def test_a_clear_difference_is_decided_and_chance_is_not(tmp_path):
    noise = np.random.default_rng(1).normal(0, 0.01, (3, 8))
    scores = {
        label: write_losses(tmp_path, label, list(mean + noise[row]), seeds=8).score
        for row, (label, mean) in enumerate({"a": 1.0, "b": 1.0, "c": 2.0}.items())
    }
    assert rank_groups(scores)[-1] == "c"
    comparisons = compare_with_best(scores)
    assert comparisons["c"].verdict == "worse"
    (other,) = comparisons.keys() - {"c"}
    assert comparisons[other].verdict == "undecided"


def test_one_seed_each_decides_nothing(tmp_path):
    scores = {
        label: write_losses(tmp_path, label, [loss]).score
        for label, loss in {"a": 1.0, "b": 5.0}.items()
    }
    assert compare_with_best(scores)["b"].verdict == "undecided"


def test_folds_are_not_paired_with_seeds(tmp_path):
    scores = {
        "a": write_losses(tmp_path, "a", [1.0, 1.1], folds=2).score,
        "b": write_losses(tmp_path, "b", [2.0, 2.1], seeds=2).score,
    }
    assert compare_with_best(scores)["b"].verdict == "undecided"


def test_the_table_of_a_cross_validation_has_every_fold(tmp_path):
    scores = {
        "a": write_losses(tmp_path, "a", [2.0, 2.2, 2.1], folds=3, seeds=2).score,
        "b": write_losses(tmp_path, "b", [1.0, 1.2, 1.1], folds=3).score,
        "c": write_losses(tmp_path, "c", [1.0]).score,
    }
    table = build_cross_validation(scores)
    assert (table["metric"], table["folds"]) == ("valid/loss", 3)
    assert [row["label"] for row in table["rows"]] == ["b", "a"]  # the best first; c has no folds
    assert table["rows"][0]["folds"] == [1.0, 1.2, 1.1]
    assert table["rows"][1]["seeds"] == 2
    assert table["rows"][0]["comparison"] is None
    assert table["rows"][1]["comparison"]["difference"]["value"] == pytest.approx(1.0)
    assert build_cross_validation({"c": scores["c"]}) is None
