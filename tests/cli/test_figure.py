"""`neural figure`: files, names and messages."""

import json
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from tests.report_runs import write_run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs", "small", layers=2, heads=2, positions=9)
    return tmp_path


def invoke(*words):
    return CliRunner().invoke(main, ["figure", *words])


def test_a_figure_is_written_at_its_width(folder):
    result = invoke("small", "--kind", "heads", "--step", "20", "-o", "fig.svg", "--width", "8cm")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("fig.svg  heads of small at step 20; 3.15 × ")
    width = ElementTree.parse(folder / "fig.svg").getroot().get("width")
    assert float(width.removesuffix("pt")) == pytest.approx(8 / 2.54 * 72, abs=0.01)


def test_the_file_is_named_after_the_run_the_head_and_the_step(folder):
    result = invoke("--kind", "head", "--layer", "1", "--head", "0")
    assert result.exit_code == 0, result.output
    assert [path.name for path in folder.glob("*.svg")] == ["small-head-L1-h0-30.svg"]


def test_json_has_the_path_and_the_size(folder):
    result = invoke("small", "--kind", "curves", "-o", "fig.pdf", "--height", "2in", "--json")
    data = json.loads(result.stdout)
    assert data["path"] == "fig.pdf"
    assert data["inches"] == pytest.approx([3.25, 2])
    assert data["bytes"] == (folder / "fig.pdf").stat().st_size


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["small", "--kind", "haeds"], "did you mean `heads`? There are curves, head, heads"),
        (["small", "--step", "12"], "no maps at step 12; the nearest steps are 0, 10, 20"),
        (["small", "--kind", "head", "--layer", "7"], "has no layer 7: layers are 0 … 1"),
        (["small", "--width", "wide"], "`wide` is no size of a figure"),
        (["small", "-o", "fig.gif"], "a figure is written as svg, pdf, png"),
        (["small", "--kind", "curves", "--metric", "loss"], "no run has the metric `loss`"),
        (["small", "-o", "none/fig.svg"], "none/fig.svg cannot be written"),
    ],
)
def test_what_cannot_be_drawn_is_a_message_with_a_way_out(folder, words, message):
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(folder.glob("*.svg"))


def test_help_lists_the_kinds_with_a_sentence_each():
    text = invoke("--help").stdout
    assert "$ neural figure RUN --kind heads" in text
    for kind in ("curves", "head", "heads", "lines", "roles"):
        assert f"\n  {kind} " in text
