"""`make bench`: one table from the JSON of all benchmarks, and the commands in the docs."""

import ast
import importlib.util
import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
PAGE = (FOLDER.parent / "docs/benchmarks.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"`python benchmarks/(\S+\.py) ?([^`]*)`", PAGE)))


@pytest.fixture(scope="module")
def table():
    spec = importlib.util.spec_from_file_location("all_benchmarks", FOLDER / "all.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def goals_of(name):
    """Names of a benchmark's goals, read from its source."""
    for node in ast.parse((FOLDER / f"{name}.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "GOALS":
            return set(ast.literal_eval(node.value))
    return set()


def test_figures_with_a_goal_are_found_at_any_depth(table):
    results = {
        "deep": {"deeper": {"size": 30.0, "other": 1.0}},
        "goals": {"size": 20.0, "missing": 1.0},
        "start": {"seconds": 0.2, "goal": 0.3},
        "free": {"seconds": 9.0, "goal": None},
    }
    assert list(table.rows("x", results)) == [("size", 30.0, 20.0), ("start", 0.2, 0.3)]
    assert list(table.rows("engine", {"ratio": 0.99, "goal": 1.03})) == [("engine", 0.99, 1.03)]


def test_goals_are_maxima_except_for_those_in_at_least(table):
    assert table.met("memory", 0.9, 1.0) and not table.met("memory", 1.1, 1.0)
    assert table.met("loops / ours", 24, 20) and not table.met("loops / ours", 19, 20)


def test_minimum_goals_belong_to_a_benchmark(table):
    known = set().union(*(goals_of(path.stem) for path in FOLDER.glob("*.py")))
    assert known >= table.AT_LEAST


def test_every_docstring_has_the_command_of_its_benchmark(table):
    for name in table.names():
        assert f"python benchmarks/{name}.py" in ast.get_docstring(
            ast.parse((FOLDER / f"{name}.py").read_text())
        )


@pytest.mark.parametrize(("file", "options"), COMMANDS)
def test_a_benchmark_starts_and_has_the_options_of_the_docs(file, options, monkeypatch, capsys):
    """Only imports and options are tested; `make bench` measures."""
    monkeypatch.setattr("sys.argv", [file, "--help"])
    monkeypatch.syspath_prepend(FOLDER)
    with pytest.raises(SystemExit) as exit_info:
        runpy.run_path(str(FOLDER / file), run_name="__main__")
    help_text = capsys.readouterr().out
    assert exit_info.value.code == 0
    names = [word for word in options.split() if word.startswith("--")]
    assert [name for name in names if name not in help_text] == []


def test_the_docs_have_benchmarks():
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize(
    ("source", "reason", "failed"),
    [
        ("raise SystemExit('the peer is not here')", "the peer is not here", False),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'", True),
    ],
)
def test_a_benchmark_that_cannot_run_gives_the_reason(
    table, tmp_path, monkeypatch, source, reason, failed
):
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    (tmp_path / "one.py").write_text(source)
    assert table.run_benchmark("one", quick=True) == ({}, reason, failed)
