"""Rules that every result keeps: it prints itself, has data without NaN, tables and files."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import neural
from neural.core.errors import NeuralError
from neural.core.result import Result
from neural.runs.run import Run
from neural.stats.estimate import Estimate
from neural.tasks.language_model.evaluation import LanguageModelEvaluation
from neural.tasks.task import HeldOutScores
from neural.workflows.compare import compare_runs
from neural.workflows.compare_models import compare_captures
from tests.report_runs import write_run as write_report_run
from tests.workflows.test_ablation_result import make_result as make_ablation
from tests.workflows.test_patching_result import make_result as make_patching
from tests.written_runs import CHARACTERS, write_run

SOURCE = Path(__file__).parents[2] / "src" / "neural"
SENTENCES = "The harbour was full of ships. Sailors sang. Bread is baked at night. Ovens are hot. "
PROGRAM = """network Rows {
    input: (4,)
    layers:
        Dense(8, activation="relu")
        Output(2, activation="softmax")
    loss: "sparse_categorical_crossentropy"
    optimizer: Adam(learning_rate=0.01)
}
"""


def find_result_classes() -> set[str]:
    """Names of all classes of the package that have Result as a base."""
    return {
        node.name
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base) in ("Result", "FindingList") for base in node.bases)
    }


class Attention(torch.nn.Module):
    """One layer of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x)[0]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)).astype(np.float32)
    program = tmp_path_factory.mktemp("program") / "rows.neural"
    program.write_text(PROGRAM)
    runs = tmp_path_factory.mktemp("runs")
    return neural.fit(program, x, (x[:, 0] > 0).astype(int), epochs=2, quiet=True, runs=runs)


@pytest.fixture(scope="module")
def results(fitted, tmp_path_factory):
    """One result of every class that is made quickly."""
    folder = tmp_path_factory.mktemp("results")
    names = [write_report_run(folder / "runs", name).name for name in ("first", "second")]
    write_run(folder / "characters", vocabulary=list(CHARACTERS))
    torch.manual_seed(0)
    model, x = Attention().eval(), torch.randn(2, 12, 8)
    capture = neural.watch(model, x)
    analysis = neural.analyze(names[0], runs=folder / "runs")
    for index, part in enumerate((SENTENCES, SENTENCES[::-1])):
        (folder / f"{index}.txt").write_text(f"{part}\n==========\n{SENTENCES}")
    with (
        Run.open(folder / "runs" / names[0]) as first,
        Run.open(folder / "runs" / names[1]) as second,
    ):
        comparison = compare_runs([first, second])
    estimate = Estimate(1.5, 1.25, 1.75, 40)
    made = [
        make_ablation(),
        make_patching(),
        analysis,
        analysis.groups[0].findings,
        capture,
        compare_captures(capture, neural.watch(Attention().eval(), x)),
        comparison,
        fitted,
        fitted.evaluate(),
        neural.attribute("small", "abc abc", runs=folder / "characters", answer="d"),
        neural.check(PROGRAM),
        neural.list_runs(folder / "runs"),
        neural.segment(SENTENCES),
        neural.predict(fitted, np.zeros((3, 4), np.float32)),
        HeldOutScores("run", "task", {"valid/loss": float("nan"), "valid/accuracy": 0.5}),
        LanguageModelEvaluation(
            run_name="run",
            description="40 windows",
            losses={"this run": estimate, "unigram": Estimate(2.5)},
            lifts={"unigram": estimate},
            windows=40,
            standard_error=0.1,
        ),
    ]
    return {type(result).__name__: result for result in made}


ELSEWHERE = {
    "ParadigmComparison": "tests/workflows/test_dynamics.py",
    "SegmentationEvaluation": "tests/cli/test_evaluate.py",
    "SweepResult": "tests/workflows/test_sweep.py",
}
"""Results whose making takes long: their own tests call `check_result`."""


def check_result(result: Result, folder: Path) -> None:
    """Print, tabulate, convert and save a result."""
    assert repr(result).strip()
    assert "<" in result._repr_html_()
    assert all(section.title is not None for section in result.to_sections(80))
    json.dumps(result.to_dict(), allow_nan=False)
    json.loads(result.to_json())
    assert result.tables
    for name, table in result.tables.items():
        assert len(result.to_dataframe(name)) == len(table)
        assert table.to_csv().count("\n") >= 1
    for suffix in (".json", ".csv", ".html"):
        path = result.save(folder / f"result{suffix}")
        assert path.read_text(encoding="utf-8").strip()
    assert (
        (folder / "result.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    )
    with pytest.raises(NeuralError, match="name it"):
        result.save(folder / "result.docx")
    with pytest.raises(NeuralError, match="no table is called"):
        result.to_dataframe("no such table")


def test_results_print_tabulate_and_save(results, tmp_path):
    for name, result in results.items():
        folder = tmp_path / name
        folder.mkdir()
        check_result(result, folder)


def test_every_result_is_checked(results):
    assert find_result_classes() == {*results, *ELSEWHERE}
    for name, file in ELSEWHERE.items():
        assert "check_result(" in (SOURCE.parents[1] / file).read_text("utf-8"), name
