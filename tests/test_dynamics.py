"""A comparison from end to end: trained runs → results → table, verdicts, pictures."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from neural import dynamics
from neural.cli.main import main
from neural.experiments import new_run, task_of
from neural.sweep import created
from neural.tasks.task import TaskError
from neural.training.engine import fit
from neural.trials import read_sweep
from tests.tasks.test_focus import plain

EXPERIMENT = """task: focus
data: plain.npz
training: {steps: 30, batch_size: 16, optimizer: AdamW(learning_rate=0.05), validate_every: 10}
"""
COMPARISON = """experiment: focus.yaml
seeds: [0, 1]
grid: {paradigm: [soft, hybrid, lvml]}
"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Six small runs, trained here and not in processes of their own."""
    folder = tmp_path_factory.mktemp("comparison")
    plain(folder, m=9, classes=8)
    (folder / "focus.yaml").write_text(EXPERIMENT, encoding="utf-8")
    (folder / "compare.yaml").write_text(COMPARISON, encoding="utf-8")
    settings, experiment, trials = read_sweep(folder / "compare.yaml")
    made = created(folder / "runs", "compare", settings, experiment, trials)
    for row in made.rows:
        task = task_of(experiment, [*row.trial.changes, f"name={row.trial.name}"])
        fit(task, new_run(task, made.path))
    made.refresh()
    made.write()
    return made


@pytest.fixture(scope="module")
def compared(sweep):
    return dynamics.compared(sweep)


def test_every_paradigm_and_seed_is_in_the_results(compared):
    groups, _, _ = compared
    assert {key: [one.seed for one in group] for key, group in groups.items()} == {
        ("soft", 9): [0, 1], ("hybrid", 9): [0, 1], ("lvml", 9): [0, 1]
    }  # fmt: skip


def test_calls_are_those_that_were_counted_while_learning(compared):
    groups, _, _ = compared
    assert {one.scores["calls"] for one in groups["soft", 9]} == {1.0}
    assert {one.scores["calls"] for one in groups["lvml", 9]} == {9.0}


def test_the_heat_map_holds_all_test_examples(compared):
    for group in compared[0].values():
        for one in group:
            assert one.heat.sum() == pytest.approx(1.0)


def test_two_seeds_decide_nothing(compared):
    _, verdicts, _ = compared
    assert verdicts
    assert {one.supported for one in verdicts} == {"undecided"}


def test_the_report_has_the_table_the_claims_and_every_picture(compared, sweep):
    _, _, files = compared
    report = (sweep.path / "dynamics" / "report.md").read_text(encoding="utf-8")
    assert "| lvml | 9 |" in report
    assert "| soft then stalls" in report
    assert "after Holm's correction for the 0 tests" in report
    assert "SAIF, soft − lvml: " in report and ", 2 seeds; at least 5 seeds are needed" in report
    names = {file.name for file in files}
    pictures = {f"{name}_9.png" for name in ("curves", "heat_maps", "cells", "mosaics", "costs")}
    assert names == {"report.md", "table.json", *pictures}
    assert all(file.stat().st_size > 0 and (file.suffix != ".png" or f"({file.name})" in report) for file in files)


def test_what_was_examined_is_not_computed_again(compared, sweep, monkeypatch):
    monkeypatch.setattr(dynamics, "examined", lambda path: pytest.fail("computed again"))
    assert len(dynamics.results(sweep)) == 6


def test_the_command_goes_on_with_a_folder_and_prints_the_table(compared, sweep):
    done = CliRunner().invoke(main, ["dynamics", str(sweep.path)])
    assert done.exit_code == 0, done.output
    assert "paradigm" in done.output and "hybrid" in done.output and "report.md" in done.output
    as_json = CliRunner().invoke(main, ["dynamics", str(sweep.path), "--json"])
    data = json.loads(as_json.stdout)
    assert {row["paradigm"] for row in data["table"]} == {"soft", "hybrid", "lvml"}
    assert np.isfinite(data["table"][0]["scores"]["saif"]["value"])
    assert data["table"][0]["times"]["steps_to"]["seeds"] == 2
    assert {claim["p"] for claim in data["claims"]} == {None}


def test_a_comparison_without_paradigms_is_refused(tmp_path):
    plain(tmp_path)
    (tmp_path / "focus.yaml").write_text(EXPERIMENT, encoding="utf-8")
    with pytest.raises(TaskError, match="needs them in its grid"):
        dynamics.check(tmp_path / "focus.yaml", {"segments": (5,)})


@pytest.mark.parametrize(
    ("words", "says"), [(["nowhere.yaml"], "no such file"), ([], "--theory"), (["one.yaml", "two.yaml"], "--theory")]
)
def test_what_the_command_cannot_do_is_said_with_exit_code_2(words, says):
    done = CliRunner().invoke(main, ["dynamics", *words])
    assert done.exit_code == 2
    assert says in done.output
