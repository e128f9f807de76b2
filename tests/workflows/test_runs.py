"""`neural.runs`, `neural.analyze`, `neural.report` and how a run prints, from Python."""

import json
import shutil
from pathlib import Path

import pytest

import neural
from neural.findings.findings import FindingList
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.workflows.analyze import Analysis, FindingGroup
from tests.report_runs import write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("project") / "runs"
    write_run(root, "tiny-seed-0", layers=1, heads=2, positions=5)
    write_run(root, "tiny-seed-1", layers=1, heads=2, positions=5, seed=1)
    (root / "2026-01-01_00-00-00_damaged").mkdir()
    (root / "2026-01-01_00-00-00_damaged" / "status.json").write_text("{}")
    return root


def test_runs_are_a_list_that_prints_as_a_table(folder):
    runs = neural.list_runs(folder)
    assert [run["kind"] for run in runs] == ["broken", "run", "run"]
    lines = repr(runs).splitlines()
    assert lines[0].split() == ["run", "state", "step", "best", "age"]
    assert "tiny-seed-0" in lines[2]
    assert "finished" in lines[2]
    assert "is broken" in lines[-1]
    assert runs._repr_html_().count("<tr>") == 4


def test_runs_are_a_frame(folder):
    frame = neural.list_runs(folder).to_dataframe()
    assert len(frame) == 3
    assert frame["valid/loss"].notna().sum() == 2


def test_a_folder_without_runs_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert repr(neural.list_runs()) == "no runs in runs"
    assert "no runs in runs" in neural.list_runs()._repr_html_()
    with pytest.raises(RunError, match="there is no folder other"):
        neural.list_runs("other")


def test_a_run_is_opened_by_a_part_of_its_name(folder, monkeypatch):
    run = neural.open_run("TINY-seed-0", runs=folder)
    assert run.path.name.endswith("_tiny-seed-0")
    assert neural.open_run(run) is run
    assert neural.open_run(run.path).path == run.path
    monkeypatch.chdir(folder.parent)
    assert neural.open_run().path.name.endswith("_tiny-seed-1")
    with pytest.raises(RunError, match="there is no run `third`"):
        neural.open_run("third")


def test_a_run_prints_its_state_and_last_scores(folder):
    run = neural.open_run("seed-0", runs=folder)
    lines = repr(run).splitlines()
    assert lines[0] == f"run {run.name}: language_model, finished, step 40"
    assert any(line.split()[0] == "valid/loss" for line in lines[2:])


def test_a_closed_run_prints_its_name(folder):
    run = neural.open_run("seed-0", runs=folder)
    run.close()
    assert repr(run) == f"run {run.name}: closed"


def test_the_name_of_a_run_is_escaped_when_printed(tmp_path):
    path = write_run(tmp_path, layers=1, heads=1, positions=5)
    run = Run.open(path.rename(path.with_name("clear\x1b[2Jscreen")))
    assert repr(run).startswith("run clear�[2Jscreen: ")


def test_analyses_give_findings_and_advice(folder):
    analysis = neural.analyze("seed-0", runs=folder)
    codes = [finding.code for finding in analysis]
    assert codes == sorted(codes)
    assert len(codes) > 3
    assert repr(analysis).count(codes[0]) >= 1
    assert codes[0] in analysis._repr_html_()
    assert isinstance(analysis.advice, list)


def test_an_analysis_without_findings_says_so(folder):
    group = neural.analyze("seed-0", runs=folder).groups[0]
    empty = FindingGroup("tiny", group.runs, FindingList(), not_found=["TRN003", "TRN007"])
    name = group.runs[0].name
    assert repr(Analysis([empty])) == f"tiny ({name})\n  nothing notable in 2 checks"
    assert "nothing notable" not in repr(Analysis([group]))


def test_claims_are_tested_only_if_asked_for(folder):
    assert {finding.kind for finding in neural.analyze("seed-0", runs=folder)} <= {
        "warning",
        "note",
    }
    analysis = neural.analyze("seed-0", runs=folder, claims=True)
    assert "claim" in {finding.kind for finding in analysis}


def test_runs_that_differ_by_their_seed_are_analyzed_together(folder):
    analysis = neural.analyze(["seed-0", "seed-1"], runs=folder)
    assert [len(group.runs) for group in analysis.groups] == [2]
    assert len(analysis) == sum(len(group.findings) for group in analysis.groups)


def test_a_report_is_written_and_its_path_returned(folder, tmp_path):
    path = neural.write_report("seed-1", tmp_path / "page.html", title="A page", runs=folder)
    assert path == tmp_path / "page.html"
    assert "<title>A page</title>" in path.read_text()
    assert isinstance(path, Path)


def test_a_list_without_findings_says_so():
    assert repr(FindingList()) == "no findings"


def test_the_newest_runs_of_a_large_folder_leave_the_others_in_the_index(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("neural.workflows.runs.MIN_INDEXED_RUNS", 2)
    folder = tmp_path / "runs"
    for name in ("a", "b", "c", "d"):
        with Run.create(folder, name, settings={}, program=None, environment={}) as run:
            run.finish("finished")
    every = neural.list_runs(folder)
    (index,) = (tmp_path / "cache" / "runs").iterdir()
    with Run.reopen(every[3]["path"]) as run:
        run.finish("stopped")
    assert neural.list_runs(folder, newest=2)[1]["state"] == "stopped"
    assert len(json.loads(index.read_bytes())) == 4
    shutil.rmtree(every[0]["path"])  # one that was not asked for
    with Run.reopen(every[3]["path"]) as run:
        run.finish("failed")
    assert neural.list_runs(folder, newest=2).older_count == 1
    assert len(json.loads(index.read_bytes())) == 3


def test_a_large_folder_is_read_once_and_changes_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("neural.workflows.runs.MIN_INDEXED_RUNS", 2)
    folder = tmp_path / "runs"
    for name in ("a", "b", "c"):
        with Run.create(folder, name, settings={}, program=None, environment={}) as run:
            run.log(1, {"train/loss": 1.0})
            run.finish("finished")
    first = neural.list_runs(folder)
    opened = []
    open_run = Run.open.__func__
    monkeypatch.setattr(
        Run, "open", classmethod(lambda cls, path: opened.append(path.name) or open_run(cls, path))
    )
    assert neural.list_runs(folder) == first
    assert opened == []
    with Run.reopen(first[1]["path"]) as run:
        run.log(5, {"train/loss": 0.5})
        run.finish("stopped")
    shutil.rmtree(first[0]["path"])
    opened.clear()
    changed = neural.list_runs(folder)
    assert [summary["state"] for summary in changed] == ["stopped", "finished"]
    assert opened == [changed[0]["name"]]
    next((tmp_path / "cache" / "runs").iterdir()).write_text("{", encoding="utf-8")
    assert neural.list_runs(folder) == changed
