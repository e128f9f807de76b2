"""The attention mechanism of a new project works in every command like a built-in one."""

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from neural.cli.main import main
from neural.nn.attention import registry as attention
from neural.nn.mask import Mask
from neural.runs.run import Run
from neural.training.load_model import load_best_model
from neural.workflows.load import load
from neural.workflows.new import create_project
from tests.nn.source_export.test_standalone_file import assert_exported_equal
from tests.workflows.installed_project import use_installed_project

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "attention.py"


def run_command(*arguments: str) -> str:
    """Output of a command that must succeed."""
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Folder of a project, and the working folder of the tests.

    Its metadata are on the path, so its entry points are found as if it were installed.
    """
    folder = tmp_path_factory.mktemp("work")
    project = create_project("kindling", folder).path
    with use_installed_project(project):
        yield project


def test_the_linter_reports_nothing_in_the_project(project):
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--no-cache",
            "--line-length=120",
            "--select=E,F,W,I,UP,B,SIM,RUF",
            "--ignore=RUF001,RUF002,RUF003",
            ".",
        ],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


def test_the_program_is_checked_and_the_mechanism_is_listed_and_suggested(project):
    shown = run_command("check", "kindling.neural")
    assert 'attention="fading"' in shown and "17,970" in shown
    assert "Scores fall with the distance" in run_command("layers", "fading")
    (project / "misspelt.neural").write_text(
        (project / "kindling.neural").read_text().replace('"fading"', '"fadign"')
    )
    result = CliRunner().invoke(main, ["check", "misspelt.neural"])
    assert result.exit_code == 2 and "did you mean `fading`?" in result.output


def test_the_contract_tests_of_the_project_pass(project):
    path = project / "tests" / "test_contract.py"
    tests = runpy.run_path(str(path))
    (mark,) = tests["test_fading_keeps_the_contract"].pytestmark
    checks = mark.args[1]
    assert len({str(check) for check in checks}) == len(checks) > 150
    for check in checks:
        tests["test_fading_keeps_the_contract"](check)


def test_weights_fall_with_distance_as_in_the_formula(project):
    mechanism = attention.get("fading")()
    q, k = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4)
    w = mechanism.weights(q, k, Mask(), torch.tensor([0.0, 2.0]))
    torch.testing.assert_close(w[0, 0], torch.full((3, 3), 1 / 3))
    torch.testing.assert_close(w[0, 1, 0], torch.tensor([0.0, -2.0, -4.0]).softmax(-1))


def test_training_changes_its_rates_and_records_its_maps(project):
    overrides = ("training.steps=2", "tracking.track_every=1", "tracking.maps_every=1")
    run_command(
        "train",
        "experiment.yaml",
        "--quiet",
        *(word for text in overrides for word in ("--set", text)),
    )
    (path,) = (project / "runs").iterdir()
    run = Run.open(path)
    layers = [f"transformer_encoder.{layer}.attention.sublayer" for layer in range(2)]
    assert run.map_steps() == [0, 1, 2]
    maps = sorted(run.maps(2))
    assert all(any(name.startswith(layer) for name in maps) for layer in layers), maps
    assert {"entropy", "span"} <= {name.partition("/")[0] for name in run.measure_names()}
    rates = (
        load_best_model(path)
        .state_dict()["transformer_encoder.0.attention.sublayer.learned.logarithms"]
        .exp()
    )
    initial = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    assert not torch.equal(rates, initial) and torch.allclose(rates, initial, rtol=0.1)
    run_command("report", str(path), "-o", "report.html")
    assert "fading" in (project / "report.html").read_text(encoding="utf-8")


def test_the_compiled_network_needs_only_torch(project, tmp_path):
    text = (project / "kindling.neural").read_text(encoding="utf-8")
    model, compiled, _ = assert_exported_equal(text, tmp_path)
    assert type(compiled).__module__ != type(model).__module__
    assert "kindling" not in load("kindling.neural").to_pytorch().replace("Kindling", "")


def test_the_benchmark_includes_it(project, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARK.parent)  # as if started by its path
    spec = importlib.util.spec_from_file_location("attention_benchmark", BENCHMARK)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    assert set(attention.names()) <= set(benchmark.implementations(16, grad=True))
    run, leaves = benchmark.implementations(16, grad=True)["fading"]
    assert benchmark.time_run(run, leaves, grad=True) > 0
    assert all(leaf.grad is not None for leaf in leaves) and len(leaves) == 4
    assert "fading" in benchmark.select_names(1024, ()) and "fading" not in benchmark.select_names(
        4096, ()
    )
    assert benchmark.select_names(4096, ("fading",)) == [benchmark.BASELINE, "fading"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("class Fading(Mechanism): pass)", "SyntaxError"),
        (
            "import nothing_of_that_name",
            "ModuleNotFoundError: No module named 'nothing_of_that_name'",
        ),
        ("class Fading:\n    pass\n", "must be a Mechanism of that name"),
    ],
)
def test_a_broken_file_gives_a_message_with_package_and_mechanism(
    project, broken, message, monkeypatch
):
    monkeypatch.setattr(attention, "_loaded", {})
    path = project / "src" / "kindling" / "attention" / "fading.py"
    source = path.read_text(encoding="utf-8")
    monkeypatch.delitem(sys.modules, "kindling.attention.fading", raising=False)
    try:
        path.write_text(broken, encoding="utf-8")
        os.utime(path, (1, 1))  # a different time, else Python reads the old bytecode
        result = CliRunner().invoke(main, ["check", "kindling.neural"])
    finally:
        path.write_text(source, encoding="utf-8")
        sys.modules.pop("kindling.attention.fading", None)
    assert result.exit_code == 2, result.output
    assert (
        "the attention mechanism `fading` of the package `kindling`" in result.output
        and message in result.output
    )
    assert "Traceback" not in result.output
