"""Attention from outside, as a new project has it: checked, drawn, exported and measured without another line."""

import importlib.util
import os
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from neural.blueprint import load
from neural.cli.main import main
from neural.experiments import best_model
from neural.modules.attention import registry as attention
from neural.modules.mask import Mask
from neural.projects import new_project
from neural.tracking.run import Run
from tests.modules.test_export import assert_twin

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "attention.py"


def neural(*arguments: str) -> str:
    """What a command prints, where it ends well."""
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The folder of a project; the tests work in it, and its entry points are found as in a real environment."""
    folder = tmp_path_factory.mktemp("work")
    project = new_project("kindling", folder).path
    described = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / "installed" / "kindling-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {described['name']}\nVersion: 0.1.0\n")
    points = [f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())
              for group, lines in described["entry-points"].items()]  # fmt: skip
    (info / "entry_points.txt").write_text("\n".join(points))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(project / "src"))
        patch.syspath_prepend(str(info.parent))
        patch.setattr(attention, "_outside", None)
        patch.setattr(attention, "_found", dict(attention._found))
        patch.chdir(project)
        yield project
    for name in [one for one in sys.modules if one.partition(".")[0] == "kindling"]:
        del sys.modules[name]


def test_the_linter_finds_nothing_in_it(lab):
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--line-length=120",
         "--select=E,F,W,I,UP,B,SIM,RUF", "--ignore=RUF001,RUF002,RUF003", "."],
        cwd=lab, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_program_is_checked_and_the_mechanism_is_listed_and_suggested(lab):
    shown = neural("check", "kindling.neural")
    assert 'attention="fading"' in shown and "17,970" in shown
    assert "Scores fall with the distance" in neural("layers", "fading")
    (lab / "misspelt.neural").write_text((lab / "kindling.neural").read_text().replace('"fading"', '"fadign"'))
    done = CliRunner().invoke(main, ["check", "misspelt.neural"])
    assert done.exit_code == 2 and "did you mean `fading`?" in done.output


def test_its_own_test_finds_every_promise_kept(lab):
    path = lab / "tests" / "test_contract.py"
    tests = runpy.run_path(str(path))
    (mark,) = tests["test_fading_keeps_its_promises"].pytestmark
    promises = mark.args[1]
    assert len({str(one) for one in promises}) == len(promises) > 150
    for promise in promises:
        tests["test_fading_keeps_its_promises"](promise)


def test_distance_counts_as_the_formula_says(lab):
    mechanism = attention.get("fading")()
    q, k = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4)
    w = mechanism.weights(q, k, Mask(), torch.tensor([0.0, 2.0]))
    torch.testing.assert_close(w[0, 0], torch.full((3, 3), 1 / 3))
    torch.testing.assert_close(w[0, 1, 0], torch.tensor([0.0, -2.0, -4.0]).softmax(-1))


def test_trained_with_tracking_its_rates_are_learned_and_its_maps_are_kept(lab):
    changes = ("training.steps=2", "tracking.track_every=1", "tracking.maps_every=1")
    neural("train", "experiment.yaml", "--quiet", *(word for one in changes for word in ("--set", one)))
    (path,) = (lab / "runs").iterdir()
    run = Run.open(path)
    heads = [f"transformer_encoder.{layer}.attention.part" for layer in range(2)]
    assert run.map_steps() == [0, 1, 2]
    assert all(any(one.startswith(head) for one in run.maps(2)) for head in heads), sorted(run.maps(2))
    assert {"entropy", "span"} <= {one.partition("/")[0] for one in run.measures()}
    rates = best_model(path).state_dict()["transformer_encoder.0.attention.part.learned.logarithms"].exp()
    first = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    assert not torch.equal(rates, first) and torch.allclose(rates, first, rtol=0.1)
    neural("report", str(path), "-o", "report.html")
    assert "fading" in (lab / "report.html").read_text(encoding="utf-8")


def test_compiled_it_needs_torch_alone(lab, tmp_path):
    ours, twin, _ = assert_twin((lab / "kindling.neural").read_text(encoding="utf-8"), tmp_path)
    assert type(twin).__module__ != type(ours).__module__
    assert "kindling" not in load("kindling.neural").to_pytorch().replace("Kindling", "")


def test_the_benchmark_goes_over_it(lab, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARK.parent)   # as where it is started by its path
    spec = importlib.util.spec_from_file_location("attention_benchmark", BENCHMARK)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    assert set(attention.names()) <= set(benchmark.ways(16, grad=True))
    run, leaves = benchmark.ways(16, grad=True)["fading"]
    assert benchmark.seconds(run, leaves, grad=True) > 0
    assert all(one.grad is not None for one in leaves) and len(leaves) == 4
    assert "fading" in benchmark.chosen(1024, ()) and "fading" not in benchmark.chosen(4096, ())
    assert benchmark.chosen(4096, ("fading",)) == [benchmark.BASE, "fading"]


@pytest.mark.parametrize(("broken", "words"), [
    ("class Fading(Mechanism): pass)", "SyntaxError"),
    ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    ("class Fading:\n    pass\n", "must be a Mechanism of that name"),
])  # fmt: skip
def test_a_broken_file_is_a_message_with_its_place(lab, broken, words, monkeypatch):
    monkeypatch.setattr(attention, "_found", {})
    path = lab / "src" / "kindling" / "attention" / "fading.py"
    whole = path.read_text(encoding="utf-8")
    monkeypatch.delitem(sys.modules, "kindling.attention.fading", raising=False)
    try:
        path.write_text(broken, encoding="utf-8")
        os.utime(path, (1, 1))   # another time than before, or the old bytecode is read
        done = CliRunner().invoke(main, ["check", "kindling.neural"])
    finally:
        path.write_text(whole, encoding="utf-8")
        sys.modules.pop("kindling.attention.fading", None)
    assert done.exit_code == 2, done.output
    assert "the attention mechanism `fading` of the package `kindling`" in done.output and words in done.output
    assert "Traceback" not in done.output
