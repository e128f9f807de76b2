"""Headlines of tracked training loops."""

import neural
from neural.report.run_report import build_page_data
from neural.runs.run import Run
from tests.workflows.test_track import PROBE, build, train


def build_headline(path):
    with Run.open(path) as run:
        (experiment,) = build_page_data([run])["experiments"]
    return experiment


def test_the_headline_counts_heads_and_has_the_loss(tmp_path):
    model, optimizer = build()
    with neural.track(model, PROBE, every=5, run=tmp_path / "mine") as tracker:
        train(model, optimizer, 20, lambda loss: tracker.step(loss=loss))
    experiment = build_headline(tracker.path)
    assert "head" in experiment["headline"]
    assert any(detail.startswith("train/loss: ") for detail in experiment["details"])
    assert experiment["figures"][0]["kind"] == "head_grid"
