"""Map of one head with its tokens."""

import numpy as np
import pytest
import torch
from torch import nn

import neural
from neural.report.paper_figure import is_signed, make_norm
from tests.report.paper_figures.figure_files import check_figure, read_texts
from tests.report_runs import NASTY, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs"), layers=2, heads=3)


def test_tokens_are_on_both_axes(run, tmp_path):
    path = check_figure(neural.figure(run, "head", layer=1, head=2, step=20), tmp_path)
    texts = read_texts(path)
    assert "L1 h2, step 20" in texts
    assert {"queries", "keys"} <= set(texts)
    for token in "abcdefghijklmnopq":
        assert texts.count(token) == 2, "once as a query, once as a key"


def test_names_stay_text(tmp_path):
    run = write_run(tmp_path, "nasty", layers=1, heads=1, nasty=True)
    path = neural.figure(run, "head", width="7in").save(tmp_path / "head.svg")
    assert "<img" not in path.read_text()
    assert any(text.startswith(NASTY[:8].replace(" ", "␣")) for text in read_texts(path))


def test_small_print_leaves_labels_out_instead_of_making_them_unreadable(tmp_path):
    run = write_run(tmp_path, layers=1, heads=1, positions=100, snapshots=1)
    wide = read_texts(neural.figure(run, "head", width="12in").save(tmp_path / "wide.svg"))
    small = read_texts(check_figure(neural.figure(run, "head"), tmp_path))
    assert len(wide) > len(small) > 20


def test_a_capture_is_drawn_with_its_labels(tmp_path):
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    words = ["the", "cat", "sat", "down"]
    capture = neural.watch(encoder, torch.randn(1, 4, 8), labels=words)
    figure = neural.figure(capture, "head", layer=0, head=1)
    texts = read_texts(check_figure(figure, tmp_path))
    assert [texts.count(word) for word in words] == [2, 2, 2, 2]
    assert "masked" not in texts, "nothing is masked here"
    assert not any("step" in text for text in texts)


def test_negative_weights_have_a_scale_around_zero():
    weights = np.array([[0.5, -2.0], [0.1, 0.2]])
    norm = make_norm(weights)
    assert is_signed(weights)
    assert norm(0.0) == pytest.approx(0.5)
    assert norm(-2.0) == pytest.approx(0.0)
    assert norm(2.0) == pytest.approx(1.0)
