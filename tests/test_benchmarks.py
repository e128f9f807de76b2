"""The one table of `make bench` takes its figures from what every benchmark says of itself."""

import ast
import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def everything():
    spec = importlib.util.spec_from_file_location("all_benchmarks", FOLDER / "all.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def goals_of(name):
    """The names of a benchmark's goals, without running it."""
    for node in ast.parse((FOLDER / f"{name}.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "GOALS":
            return set(ast.literal_eval(node.value))
    return set()


def test_figures_with_a_goal_are_found_wherever_they_stand(everything):
    found = {
        "deep": {"deeper": {"size": 30.0, "other": 1.0}}, "goals": {"size": 20.0, "missing": 1.0},
        "start": {"seconds": 0.2, "goal": 0.3}, "free": {"seconds": 9.0, "goal": None},
    }  # fmt: skip
    assert list(everything.rows("x", found)) == [("size", 30.0, 20.0), ("start", 0.2, 0.3)]
    assert list(everything.rows("engine", {"ratio": 0.99, "goal": 1.03})) == [("engine", 0.99, 1.03)]


def test_less_is_better_but_where_more_is(everything):
    assert everything.met("memory", 0.9, 1.0) and not everything.met("memory", 1.1, 1.0)
    assert everything.met("loops / ours", 24, 20) and not everything.met("loops / ours", 19, 20)


def test_goals_from_below_are_goals_that_somebody_has(everything):
    known = set().union(*(goals_of(path.stem) for path in FOLDER.glob("*.py")))
    assert known >= everything.AT_LEAST


def test_every_benchmark_opens_with_its_command(everything):
    for name in everything.names():
        assert f"python benchmarks/{name}.py" in ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text()))


def test_a_benchmark_that_cannot_run_says_why(everything, tmp_path, monkeypatch):
    monkeypatch.setattr(everything, "FOLDER", tmp_path)
    (tmp_path / "broken.py").write_text("raise SystemExit('the peer is not here')")
    assert everything.measured("broken", quick=True) == ({}, "the peer is not here")
