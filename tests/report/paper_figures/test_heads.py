"""Grid of all heads."""

import pytest

import neural
from tests.report.paper_figures.figure_files import check_figure, read_texts
from tests.report_runs import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs"), layers=3, heads=5)


def test_every_layer_and_head_is_named_and_drawn(run, tmp_path):
    path = check_figure(neural.figure(run, "heads"), tmp_path)
    texts = read_texts(path)
    assert texts[:5] == [f"h{head}" for head in range(5)]
    assert [text for text in texts if text.startswith("L")] == ["L0", "L1", "L2"]
    assert {"weight", "masked", "0.1", "1"} <= set(texts)
    assert path.read_text().count("<image") == 15 + 1, "a map for each head, and the color bar"


def test_maps_of_another_step_are_other_maps(run, tmp_path):
    first = neural.figure(run, "heads", step=0).save(tmp_path / "first.svg")
    last = neural.figure(run, "heads").save(tmp_path / "last.svg")
    named = neural.figure(run, "heads", step=30).save(tmp_path / "named.svg")
    assert first.read_bytes() != last.read_bytes()
    assert named.read_bytes() == last.read_bytes()


def test_twelve_heads_fit_into_one_column(tmp_path):
    run = write_run(tmp_path, layers=12, heads=12, positions=9, snapshots=1)
    figure = neural.figure(run, "heads", width="3.25in")
    assert figure.size_in_inches[0] == pytest.approx(3.25)
    check_figure(figure, tmp_path)
