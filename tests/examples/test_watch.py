"""The scripts of examples/watch run, and leave what their first lines promise."""

import runpy
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import neural
from neural.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples/watch"


@pytest.fixture
def run_example(tmp_path, monkeypatch, capsys):
    """Run a script with a number of steps in an empty folder; returns what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(name, steps):
        monkeypatch.setattr(sys, "argv", [name, str(steps)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_a_plain_loop_writes_a_run(run_example, tmp_path):
    assert run_example("plain_loop.py", 30).startswith("loss ")
    run = neural.open_run("plain_loop")
    assert run.status.state == "finished" and run.map_steps() == [0, 25, 30]
    assert len(run.scalars("train/loss")[0]) == 30
    assert len(run.metadata("probe/labels")) == 8
    assert "induction_mass" in run.measure_names()


def test_the_trainer_writes_a_run_and_checkpoints_to_watch(run_example, tmp_path):
    assert "the run is " in run_example("hugging_face_trainer.py", 50)
    run = neural.open_run("trainer")
    assert run.map_steps() == [0, 10, 20, 30, 40, 50]
    assert list(run.scalars("train/loss")[0]) == [10, 20, 30, 40, 50]
    assert set(run.metadata("probe/labels")[0]) <= {
        *("cat", "dog", "bird", "fish"),
        *("red", "blue", "green", "white"),
    }
    arguments = ["watch", "trained/checkpoint-50", "--input", "red cat blue dog red"]
    result = CliRunner().invoke(main, [*arguments, "-o", "page.html"])
    assert result.exit_code == 0, result.output
    assert "1 text, 5 tokens" in result.output
    assert '["red","cat","blue","dog","red"]' in (tmp_path / "page.html").read_text()
