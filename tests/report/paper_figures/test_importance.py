"""Importance of heads over training as a figure for papers."""

import numpy as np
import pytest

import neural
from neural.report.attention_snapshot import FigureError
from tests.findings.symptomatic_runs import write_attention_run
from tests.importance_files import write_importance_file
from tests.report.paper_figures.figure_files import check_figure, read_texts
from tests.report_runs import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_attention_run(tmp_path_factory.mktemp("runs")).path


def test_heads_are_rows_in_the_order_of_their_importance(run, tmp_path):
    texts = read_texts(check_figure(neural.figure(run, "importance"), tmp_path))
    names = [text.split("  ")[-1] for text in texts if " h" in text]
    assert names[:2] == ["L2 h2", "L1 h3"] and names[-1] == "L0 h1"
    assert len(names) == 12
    assert "prev  L2 h2" in texts
    assert {"chance", "loss 1.30", "loss 2.44", "1,000", "role since", "half of it since"} <= {
        *texts
    }
    assert {"0.41", "−0.41", "change of the loss, nats"} <= {*texts}


def test_labels_of_steps_do_not_overlap(tmp_path):
    path = write_run(tmp_path, layers=1, heads=2)
    write_importance_file(path, np.zeros((60, 1, 2)), steps=1000 * np.arange(60))
    texts = read_texts(neural.figure(path, "importance").save(tmp_path / "figure.svg"))
    steps = [text for text in texts if text.endswith(",000")]
    assert "59,000" in steps and 3 < len(steps) < 10


def test_of_many_heads_the_most_important_are_drawn(tmp_path):
    path = write_run(tmp_path, layers=2, heads=2)
    write_importance_file(path, np.arange(64.0).reshape(1, 8, 8) / 100, loss=[1.3])
    texts = read_texts(neural.figure(path, "importance", width="7in").save(tmp_path / "f.svg"))
    assert "L7 h7" in texts and "L0 h0" not in texts
    assert "and 24 heads with less" in texts


def test_what_cannot_be_drawn_is_a_message(run, tmp_path):
    unmeasured = write_run(tmp_path, layers=1, heads=2)
    with pytest.raises(FigureError, match="has no importance of heads"):
        neural.figure(unmeasured, "importance")
    with pytest.raises(FigureError, match="shows one run, not 2"):
        neural.figure([run, unmeasured], "importance")
    with pytest.raises(FigureError, match="has no metric"):
        neural.figure(run, "importance", metrics=["valid/loss"])
    with pytest.raises(FigureError, match="has no step"):
        neural.figure(run, "importance", step=5)
