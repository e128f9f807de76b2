"""Metrics of runs as lines with bands."""

import pytest

import neural
from neural.report.attention_snapshot import FigureError
from tests.report.paper_figures.figure_files import check_figure, read_texts
from tests.report_runs import write_run


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return [write_run(root, f"six_seed-{seed}", layers=2, heads=2, seed=seed) for seed in range(3)]


def test_losses_are_drawn_by_default(seeds, tmp_path):
    figure = neural.figure(seeds, "curves")
    texts = read_texts(check_figure(figure, tmp_path))
    assert {"train/loss", "valid/loss", "step"} <= set(texts)
    assert any("six, 3 seeds ± SE" in text for text in texts)


def test_one_run_needs_no_legend(seeds, tmp_path):
    path = neural.figure(seeds[0], "curves", metrics=["valid/loss"]).save(tmp_path / "one.svg")
    assert not any("six" in text for text in read_texts(path))
    assert "train/loss" not in read_texts(path)


def test_attention_measures_are_metrics_too(seeds, tmp_path):
    figure = neural.figure(seeds, "curves", metrics=["attention/entropy"], height="2in")
    assert figure.size_in_inches == pytest.approx((3.25, 2))
    assert "attention/entropy" in read_texts(figure.save(tmp_path / "entropy.svg"))


def test_an_unknown_metric_is_answered_with_the_closest(seeds):
    with pytest.raises(FigureError, match=r"no run has the metric `valid/los`.*valid/loss"):
        neural.figure(seeds, "curves", metrics=["valid/los"])
