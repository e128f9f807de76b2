"""`neural bench`: names and options of benchmarks."""

import runpy
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli import bench
from neural.cli.main import main


@pytest.fixture
def commands(monkeypatch):
    """Command lines that are run; none is."""
    started = []

    class Finished:
        returncode = 0

    def run(command, check):
        started.append(command)
        return Finished

    monkeypatch.setattr(bench.subprocess, "run", run)
    return started


def invoke(*words):
    return CliRunner().invoke(main, ["bench", *words])


def test_all_words_after_the_name_are_options_of_the_benchmark(commands):
    for options in (["--help"], ["-h"], ["--quick", "--mechanism", "localized"]):
        assert invoke("attention", *options).exit_code == 0
        (command,) = commands
        assert command[0] == sys.executable and command[1].endswith("attention.py")
        assert command[2:] == options
        commands.clear()
    result = invoke("--help")
    assert result.output.startswith("Usage: ") and "neural bench attention --help" in result.output
    assert commands == []


def test_a_misspelt_benchmark_has_a_guess(commands):
    result = invoke("atention", "--quick")
    assert (result.exit_code, commands) == (2, [])
    assert "did you mean `attention`?" in result.output


def test_a_misspelt_mechanism_is_an_error_before_anything_is_measured(monkeypatch, capsys):
    folder = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr("sys.argv", ["attention.py", "--mechanism", "localised"])
    with pytest.raises(SystemExit) as exit_info:
        runpy.run_path(str(folder / "attention.py"), run_name="__main__")
    assert exit_info.value.code == 2
    error = capsys.readouterr().err
    assert "did you mean `localized`?" in error and "n = " not in error
