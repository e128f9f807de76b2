"""A comparison of paradigms end to end: trained runs → results → table, verdicts, plots."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli._formatting import relative_path
from neural.cli.main import main
from neural.core.errors import TaskError
from neural.training.engine import fit
from neural.training.load_task import load_task
from neural.workflows import dynamics
from neural.workflows.sweep import create_sweep
from neural.workflows.sweep_trials import read_sweep
from neural.workflows.train import create_run
from tests.contract.test_results import check_result
from tests.tasks.focus.test_task import write_segments

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
    """A sweep of six small runs, trained in this process."""
    folder = tmp_path_factory.mktemp("comparison")
    write_segments(folder, m=9, classes=8)
    (folder / "focus.yaml").write_text(EXPERIMENT, encoding="utf-8")
    (folder / "compare.yaml").write_text(COMPARISON, encoding="utf-8")
    settings, experiment, trials = read_sweep(folder / "compare.yaml")
    sweep = create_sweep(folder / "runs", "compare", settings, experiment, trials)
    for row in sweep.rows:
        task = load_task(experiment, [*row.trial.overrides, f"name={row.trial.name}"])
        fit(task, create_run(task, sweep.path))
    sweep.refresh()
    sweep.write()
    return sweep


@pytest.fixture(scope="module")
def comparison(sweep):
    return dynamics.compare_paradigms(sweep)


def test_every_paradigm_and_seed_is_in_the_results(comparison):
    groups = comparison.groups
    assert {key: [result.seed for result in group] for key, group in groups.items()} == {
        ("soft", 9): [0, 1],
        ("hybrid", 9): [0, 1],
        ("lvml", 9): [0, 1],
    }


def test_classifier_calls_are_those_counted_during_training(comparison):
    groups = comparison.groups
    assert {result.scores["classifier_calls"] for result in groups["soft", 9]} == {1.0}
    assert {result.scores["classifier_calls"] for result in groups["lvml", 9]} == {9.0}


def test_the_heat_map_covers_all_test_examples(comparison):
    for group in comparison.groups.values():
        for result in group:
            assert result.heat_map.sum() == pytest.approx(1.0)


def test_a_comparison_is_a_result(comparison, tmp_path):
    check_result(comparison, tmp_path)


def test_two_seeds_leave_every_claim_undecided(comparison):
    verdicts = comparison.verdicts
    assert verdicts
    assert {verdict.supported for verdict in verdicts} == {"undecided"}


def test_the_report_has_the_table_the_claims_and_every_plot(comparison, sweep):
    files = comparison.files
    report = (sweep.path / "dynamics" / "report.md").read_text(encoding="utf-8")
    assert "| lvml | 9 |" in report
    assert "| soft then stalls" in report
    assert "after Holm's correction for the 0 tests" in report
    assert "Student's t over seeds, corrected for skewness" in report
    assert "SAIF, soft − lvml: " in report and ", 2 seeds; needs 5 seeds, has 2" in report
    names = {file.name for file in files}
    plots = {f"{name}_9.png" for name in ("curves", "heat_maps", "cells", "mosaics", "costs")}
    assert names == {"report.md", "table.json", *plots}
    assert all(
        file.stat().st_size > 0 and (file.suffix != ".png" or f"({file.name})" in report)
        for file in files
    )


def test_saved_results_are_not_computed_again(comparison, sweep, monkeypatch):
    monkeypatch.setattr(dynamics, "evaluate_run", lambda path: pytest.fail("computed again"))
    assert len(dynamics.collect_results(sweep)) == 6


def test_the_command_resumes_a_sweep_folder_and_prints_the_table(comparison, sweep):
    result = CliRunner().invoke(main, ["dynamics", str(sweep.path)])
    assert result.exit_code == 0, result.output
    assert (
        "paradigm" in result.output and "hybrid" in result.output and "report.md" in result.output
    )
    assert f"neural report {relative_path(sweep.path)}" in result.output
    as_json = CliRunner().invoke(main, ["dynamics", str(sweep.path), "--json"])
    data = json.loads(as_json.stdout)
    assert {row["paradigm"] for row in data["table"]} == {"soft", "hybrid", "lvml"}
    assert np.isfinite(data["table"][0]["scores"]["saif"]["value"])
    assert data["table"][0]["times"]["steps_to_target"]["seeds"] == 2
    assert {claim["p"] for claim in data["claims"]} == {None}


def test_a_comparison_without_paradigms_is_refused(tmp_path):
    write_segments(tmp_path)
    (tmp_path / "focus.yaml").write_text(EXPERIMENT, encoding="utf-8")
    with pytest.raises(TaskError, match="the grid of a comparison needs paradigms"):
        dynamics.check_comparison(tmp_path / "focus.yaml", {"segments": (5,)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nowhere.yaml"], "no such file"), ([], "--theory"), (["one.yaml", "two.yaml"], "--theory")],
)
def test_wrong_arguments_have_a_message_and_exit_code_2(arguments, message):
    result = CliRunner().invoke(main, ["dynamics", *arguments])
    assert result.exit_code == 2
    assert message in result.output
