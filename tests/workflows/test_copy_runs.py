"""Copy runs and merge folders of runs: which copy stays, which is replaced, which is refused."""

import json
import shutil

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.workflows.copy_runs import copy_runs
from tests.runs.test_copy import continue_run, read_all, write_run


def list_outcomes(*sources, target, **options):
    results = copy_runs(sources, target, **options)
    return [(result.outcome, result.target.name) for result in results]


def write_named_run(root, name):
    """A run with a chosen folder name: two nodes may choose the same one."""
    path = write_run(root)
    return path.rename(path.with_name(name))


def test_folders_of_several_nodes_are_merged(tmp_path):
    for node in ("one", "two"):
        write_named_run(tmp_path / node, f"2026-01-01_00-00-00_{node}")
    sources, target = (tmp_path / "one", tmp_path / "two"), tmp_path / "all"
    names = ["2026-01-01_00-00-00_one", "2026-01-01_00-00-00_two"]
    assert list_outcomes(*sources, target=target) == [("copied", name) for name in names]
    assert list_outcomes(*sources, target=target) == [("unchanged", name) for name in names]


def test_a_newer_copy_replaces_an_older_one_and_not_the_reverse(tmp_path):
    source = write_run(tmp_path / "node")
    copy_runs([tmp_path / "node"], tmp_path / "old")
    continue_run(source, 8)
    assert list_outcomes(tmp_path / "node", target=tmp_path / "all")[0][0] == "copied"
    assert list_outcomes(tmp_path / "old", target=tmp_path / "all")[0][0] == "kept"
    assert list_outcomes(tmp_path / "node", target=tmp_path / "old")[0][0] == "updated"
    assert read_all(tmp_path / "old" / source.name) == read_all(source)


def test_another_run_of_the_same_name_is_refused_or_renamed(tmp_path):
    for node in ("one", "two"):
        write_named_run(tmp_path / node, "same")
    sources, target = (tmp_path / "one", tmp_path / "two"), tmp_path / "all"
    first, second = copy_runs(sources, target)
    assert (first.outcome, second.outcome) == ("copied", "refused")
    assert "another run of the same name; `--rename` copies" in second.message
    assert list_outcomes(*sources, target=target, rename=True) == [
        ("unchanged", "same"),
        ("copied", "same-2"),
    ]
    # and again: the numbered copy is found
    assert list_outcomes(*sources, target=target, rename=True)[1] == ("unchanged", "same-2")
    continue_run(tmp_path / "two" / "same", 8)
    assert list_outcomes(*sources, target=target, rename=True)[1] == ("updated", "same-2")


def test_a_diverged_copy_is_refused(tmp_path):
    source = write_run(tmp_path / "one")
    copy_runs([source], tmp_path / "two")
    continue_run(source, 8)
    continue_run(tmp_path / "two" / source.name, 9, scale=2.0)
    before = read_all(tmp_path / "two" / source.name)
    (result,) = copy_runs([source], tmp_path / "two")
    assert result.outcome == "refused"
    assert "trained separately" in result.message
    assert read_all(tmp_path / "two" / source.name) == before


def test_a_sweep_stays_together_and_its_newest_table_is_kept(tmp_path):
    sweep = tmp_path / "node" / "2026-01-01_00-00-00_rates"
    write_named_run(sweep, "trial")
    (sweep / "trials.json").write_text("{}")
    (sweep / "trial.log").write_text("output")
    target = tmp_path / "all"
    assert list_outcomes(tmp_path / "node", target=target) == [("copied", "trial")]
    copied = target / sweep.name
    assert sorted(path.name for path in copied.iterdir()) == ["trial", "trial.log", "trials.json"]
    (copied / "trials.json").write_text('{"newer": 1}')
    copy_runs([sweep], target)
    assert (copied / "trials.json").read_text() == '{"newer": 1}'


def test_one_bad_run_does_not_keep_the_others_from_being_copied(tmp_path):
    write_named_run(tmp_path / "node", "good")
    bad = write_named_run(tmp_path / "node", "bad")
    (bad / "rows.sqlite").write_bytes(b"no database" * 100)
    outcomes = list_outcomes(tmp_path / "node", target=tmp_path / "all")
    assert outcomes == [("refused", "bad"), ("copied", "good")]


def test_a_run_is_not_copied_into_itself(tmp_path):
    source = write_run(tmp_path / "runs")
    for target in (tmp_path / "runs", source / "backup"):
        (result,) = copy_runs([source], target)
        assert result.outcome == "refused"
        assert "into itself" in result.message
    assert not (source / "backup").exists()


def test_a_missing_source_is_an_error(tmp_path):
    with pytest.raises(RunError, match="there is no folder"):
        copy_runs([tmp_path / "missing"], tmp_path / "all")


def test_a_table_that_cannot_be_copied_does_not_keep_other_folders_from_being_copied(tmp_path):
    sweep = tmp_path / "one" / "sweep"
    sweep.mkdir(parents=True)
    (sweep / "trials.json").write_text("{}")
    write_named_run(tmp_path / "two", "run")
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "sweep").write_text("a file")
    outcomes = list_outcomes(tmp_path / "one", tmp_path / "two", target=tmp_path / "all")
    assert outcomes == [("refused", "sweep"), ("copied", "run")]


def invoke(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_the_commands_print_what_happened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = write_run(tmp_path / "runs")
    result = invoke("runs", "copy", "small", "shared")
    assert (result.exit_code, result.output.split()[0]) == (0, "copied")
    result = invoke("runs", "merge", "runs", "shared", "--json")
    assert [entry["outcome"] for entry in json.loads(result.output)] == ["unchanged"]
    shutil.rmtree(source)
    write_named_run(tmp_path / "runs", source.name)
    result = invoke("runs", "merge", "runs", "shared")
    assert result.exit_code == 2
    assert "another run of the same name" in result.output
    assert invoke("runs", "merge", "runs", "shared", "--rename").exit_code == 0
    assert len(json.loads(invoke("runs", "--runs", "shared", "--json").output)) == 2
    assert Run.open(tmp_path / "shared" / f"{source.name}-2").status.state == "finished"


def test_a_folder_without_runs_is_a_note(tmp_path):
    """A job that is stopped before its first step has none; its script must not fail."""
    result = invoke("runs", "merge", tmp_path, tmp_path / "all")
    assert result.exit_code == 0
    assert "no runs in" in result.output
