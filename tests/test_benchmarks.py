"""The one table of `make bench` takes its figures from what every benchmark says of itself."""

import ast
import importlib.util
import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
README = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"`python benchmarks/(\S+\.py) ?([^`]*)`", README)))


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


@pytest.mark.parametrize(("file", "words"), COMMANDS)
def test_a_benchmark_starts_and_knows_what_the_readme_gives_it(file, words, monkeypatch, capsys):
    """Its figures are for `make bench`; here it imports all it needs and reads its options."""
    monkeypatch.setattr("sys.argv", [file, "--help"])
    monkeypatch.syspath_prepend(FOLDER)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(FOLDER / file), run_name="__main__")
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert [word for word in words.split() if word.startswith("--") and word not in said] == []


def test_the_readme_has_benchmarks():
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize(("text", "why", "broken"), [
    ("raise SystemExit('the peer is not here')", "the peer is not here", False),
    ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'", True),
])  # fmt: skip
def test_a_benchmark_that_cannot_run_says_why(everything, tmp_path, monkeypatch, text, why, broken):
    monkeypatch.setattr(everything, "FOLDER", tmp_path)
    (tmp_path / "one.py").write_text(text)
    assert everything.measured("one", quick=True) == ({}, why, broken)
