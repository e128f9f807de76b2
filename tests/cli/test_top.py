"""`neural top`, as a user types it."""

import threading

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli import top
from neural.cli._attention_maps import COLOUR_RAMP
from neural.cli.main import main
from neural.runs.run import Run
from tests.cli.finished_runs import write_run


def invoke(*words):
    return CliRunner().invoke(main, ["top", *(str(word) for word in words)])


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def test_one_frame_has_the_state_the_curves_and_every_head(root):
    write_run(root)
    result = invoke("small", "--once", "--measure", "entropy")
    assert result.exit_code == 0, result.output
    for text in (
        "finished",
        "step 40 of 40",
        "best valid/loss 0.5 at step 20",
        "train/loss",
        "head diversity",
        "█▄",
    ):
        assert text in result.output
    lines = result.output.splitlines()
    title = next(
        index
        for index, line in enumerate(lines)
        if line.startswith("entropy, every head at step 40")
    )
    assert lines[title + 1].split() == ["h0", "h1"]
    assert lines[title + 2].split()[:3] == ["L0", "0.25", "1.50"]
    assert lines[title + 3].split()[:3] == ["L1", "1.50", "1.50"]
    assert max(map(len, lines)) <= 80


def test_without_a_terminal_one_frame_is_printed(root):
    write_run(root)
    assert invoke().output.count("train/loss") == 1


def test_a_run_without_attention_has_curves(root):
    run = Run.create(root, "plain", settings={}, program=None, environment={})
    run.log(1, {"train/loss": 2.0})
    run.finish("finished")
    result = invoke("plain", "--once")
    assert result.exit_code == 0, result.output
    assert "train/loss" in result.output
    assert "every head" not in result.output


def test_a_misspelt_measure_is_an_error(root):
    write_run(root)
    result = invoke("small", "--measure", "entrpy")
    assert result.exit_code == 2
    assert "did you mean `entropy`" in result.output


def test_heads_are_cells_coloured_by_their_value(root, monkeypatch):
    run = Run.open(write_run(root))
    monkeypatch.setenv("FORCE_COLOR", "1")
    cells = [line for line in top.render_frame(run, "entropy") if line.startswith("  L")]
    assert f"48;5;{COLOUR_RAMP[0]}m" in cells[0] and f"48;5;{COLOUR_RAMP[-1]}m" in cells[0]
    assert f"48;5;{COLOUR_RAMP[0]}m" not in cells[1]


def test_a_low_terminal_keeps_the_heads_and_leaves_out_measures(root):
    run = Run.open(write_run(root))
    full, low = top.render_frame(run, "entropy"), top.render_frame(run, "entropy", max_lines=16)
    assert len(low) <= 16 < len(full)
    assert any("every head" in line for line in low)
    assert not any("head diversity" in line for line in low)


def test_it_follows_a_run_until_it_ends(root, capsys):
    run = Run.create(root, "live", settings={}, program=None, environment={})
    run.set_metadata("steps", 9)
    run.set_metadata("attention/layers", ["a", "b"])
    run.log(1, {"train/loss": 3.0})
    run.log_arrays(1, {"relative_entropy": np.array([[0.5, 0.25], [1.0, np.nan]])})
    run.commit()
    reader = Run.open(run.path)

    def finish():
        run.log(9, {"train/loss": 1.0})
        run.finish("finished")

    timer = threading.Timer(0.3, finish)
    timer.start()
    top._follow(reader, None, 0.2)
    timer.join()
    output = capsys.readouterr().out
    assert "finished" in output
    assert "step 9 of 9" in output
    assert "0.25" in output
