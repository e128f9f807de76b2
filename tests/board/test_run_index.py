"""Summaries of all runs in a folder, and of nothing outside of it."""

import json
import os

import pytest

from neural.board.run_cache import RunCache, RunNotFoundError
from neural.board.run_index import RunIndex
from neural.runs.errors import RunError
from neural.runs.folder import find_escaping_link
from neural.runs.run import Run
from tests.board.boards import LiveRun, write_finished_run


def summaries_by_name(root):
    return {summary["id"]: summary for summary in RunIndex(root).summarize_runs()}


def test_the_summary_of_a_run(tmp_path):
    run = write_finished_run(tmp_path, seed=5)
    (summary,) = RunIndex(tmp_path).summarize_runs()
    assert summary["id"] == summary["name"] == run.name
    assert (
        summary["kind"],
        summary["state"],
        summary["step"],
        summary["steps"],
        summary["seed"],
    ) == (
        "run",
        "finished",
        100,
        1000,
        5,
    )
    assert summary["best"] == {"name": "valid/loss", "score": 1.5}


def test_the_summary_follows_a_run_until_its_end(tmp_path):
    run, run_index = LiveRun(tmp_path), RunIndex(tmp_path)
    assert run_index.summarize_runs()[0]["state"] == "running"
    run.write_step(50)
    assert run_index.summarize_runs()[0]["step"] == 50
    run.run.finish("stopped", "enough")
    assert (run_index.summarize_runs()[0]["state"], run_index.summarize_runs()[0]["message"]) == (
        "stopped",
        "enough",
    )


def test_a_run_whose_process_died_is_lost_although_no_file_changes(tmp_path):
    run, run_index = LiveRun(tmp_path), RunIndex(tmp_path)
    assert run_index.summarize_runs()[0]["state"] == "running"
    status = run.path / "status.json"
    content, stat = json.loads(status.read_text()), status.stat()
    run.run.close()
    status.write_text(json.dumps({**content, "process": "another boot:1"}))
    os.utime(status, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert run_index.summarize_runs()[0]["state"] == "lost"


def test_runs_of_a_sweep_are_listed_below_its_name(tmp_path):
    (tmp_path / "rates").mkdir()
    (tmp_path / "rates" / "trials.json").write_text("{}")
    run = write_finished_run(tmp_path / "rates", steps=(0,))
    assert list(summaries_by_name(tmp_path)) == [f"rates/{run.name}"]
    assert summaries_by_name(tmp_path)[f"rates/{run.name}"]["sweep"] == "rates"


def test_results_beside_the_runs_of_a_sweep_are_not_listed(tmp_path):
    (tmp_path / "rates" / "dynamics").mkdir(parents=True)
    (tmp_path / "rates" / "trials.json").write_text("{}")
    run = write_finished_run(tmp_path / "rates", steps=(0,))
    assert list(summaries_by_name(tmp_path)) == [f"rates/{run.name}"]
    assert RunCache(RunIndex(tmp_path))[f"rates/{run.name}"].path == run.path


def test_a_folder_that_is_a_run_is_the_one_run(tmp_path):
    run = write_finished_run(tmp_path, steps=(0,))
    assert list(summaries_by_name(run.path)) == [run.name]


def write_damaged_run(root, name, **files):
    """Write a run folder and replace some of its files."""
    path = write_finished_run(root, name, steps=(0,)).path
    for file, text in files.items():
        (path / file.replace("__", ".")).write_bytes(text)
    return path.name


@pytest.mark.parametrize(
    "files",
    [
        {"rows__sqlite": b"no database"},
        {"settings__json": b"[1, 2"},
        {"settings__json": b"[1, 2]"},
        {"settings__json": b"\xff\xfe"},
    ],
    ids=str,
)
def test_a_damaged_run_is_listed_and_hides_no_other(tmp_path, files):
    name, intact = (
        write_damaged_run(tmp_path, "bad", **files),
        write_finished_run(tmp_path, "well", steps=(0,)).name,
    )
    summaries = summaries_by_name(tmp_path)
    assert summaries[intact]["state"] == "finished"
    if "rows__sqlite" not in files:  # the rows are read when the run is opened
        assert (summaries[name]["kind"], summaries[name]["state"]) == ("broken", "broken")
        assert summaries[name]["message"]
    else:
        with pytest.raises(RunError, match="damaged"):
            RunCache(RunIndex(tmp_path))[name]


def test_an_invalid_status_is_that_of_a_lost_run(tmp_path):
    name = write_damaged_run(tmp_path, "bad", status__json=b'{"state": "finished", "facts": 7}')
    summaries = summaries_by_name(tmp_path)[name]
    assert (summaries["kind"], summaries["state"], summaries["message"]) == (
        "run",
        "lost",
        "its status cannot be read",
    )


def test_a_folder_without_rows_is_listed_with_the_reason(tmp_path):
    (tmp_path / "notes").mkdir()
    assert "no rows.sqlite" in summaries_by_name(tmp_path)["notes"]["message"]


def test_hidden_folders_and_files_are_not_listed(tmp_path):
    (tmp_path / ".new-17").mkdir()
    (tmp_path / "readme.txt").write_text("")
    assert summaries_by_name(tmp_path) == {}


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "runs"
    secret = write_finished_run(outside, "secret", steps=(0,))
    root.mkdir()
    (root / "link").symlink_to(secret.path)
    assert summaries_by_name(root)["link"]["kind"] == "broken"
    assert "not followed" in summaries_by_name(root)["link"]["message"]
    with pytest.raises(RunError, match="not followed"):
        RunCache(RunIndex(root))["link"]


@pytest.mark.parametrize(
    "file", ["program.neural", "settings.json", "rows.sqlite", "checkpoints/step-1.json"]
)
def test_a_run_that_contains_a_link_to_the_outside_is_not_opened(tmp_path, file):
    (tmp_path / "secret").write_text("{}")
    root = tmp_path / "runs"
    run = write_finished_run(root, steps=(0,))
    (run.path / file).unlink(missing_ok=True)
    (run.path / file).symlink_to(tmp_path / "secret")
    assert summaries_by_name(root)[run.name]["kind"] == "broken"
    with pytest.raises(RunError, match="not followed"):
        RunCache(RunIndex(root))[run.name]


def test_a_link_that_stays_inside_is_followed(tmp_path):
    run = write_finished_run(tmp_path, steps=(0,))
    (tmp_path / "newest").symlink_to(run.path)
    assert summaries_by_name(tmp_path)["newest"]["state"] == "finished"


@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "../outside", "/etc", "x/../../outside", "runs/../..", "\0", "a" * 999],
    ids=ascii,
)
def test_a_name_is_looked_up_and_never_made_into_a_path(tmp_path, name):
    root = tmp_path / "runs"
    write_finished_run(root, steps=(0,))
    write_finished_run(tmp_path / "outside", steps=(0,))
    with pytest.raises(RunNotFoundError):
        RunCache(RunIndex(root))[name]


def test_a_name_that_is_not_valid_utf8_can_be_listed_and_opened(tmp_path):
    run = write_finished_run(tmp_path, steps=(0,))
    run.path.rename(tmp_path / os.fsdecode(b"\xff\xfe"))
    (summary,) = RunIndex(tmp_path).summarize_runs()
    summary["id"].encode()
    assert RunCache(RunIndex(tmp_path))[summary["id"]].run.status.state == "finished"


def test_a_run_is_opened_once_and_again_when_its_folder_is_replaced(tmp_path):
    run = write_finished_run(tmp_path, steps=(0,))
    run_cache = RunCache(RunIndex(tmp_path))
    first = run_cache[run.name]
    assert run_cache[run.name] is first
    other = write_finished_run(tmp_path / "aside", steps=(0, 50))
    run.path.rename(tmp_path / ".gone")
    other.path.rename(run.path)
    assert run_cache[run.name].run.map_steps() == [0, 50]
    assert isinstance(first.run, Run)


def test_a_link_to_itself_hides_no_run(tmp_path):
    run = write_finished_run(tmp_path, steps=(0,))
    (tmp_path / "round").symlink_to("round")
    (run.path / "round").symlink_to("round")
    assert list(summaries_by_name(tmp_path)) == [run.name]
    assert RunCache(RunIndex(tmp_path))[run.name].path == run.path


def test_names_that_differ_in_invalid_bytes_have_different_ids(tmp_path):
    for name in (b"\xff", b"\xfe"):
        (tmp_path / os.fsdecode(name)).mkdir()
        (tmp_path / os.fsdecode(name) / "rows.sqlite").touch()
    assert len({entry.id for entry in RunIndex(tmp_path).list_entries()}) == 2


def test_unchanged_runs_are_not_searched_for_links_again_until_they_are_opened(
    tmp_path, monkeypatch
):
    root = tmp_path / "runs"
    first, second = (write_finished_run(root, name, steps=(0,)) for name in ("first", "second"))
    run_index = RunIndex(root)
    summaries = run_index.summarize_runs()
    searched = []
    monkeypatch.setattr(
        "neural.board.run_index.find_escaping_link",
        lambda path, root: searched.append(path) or find_escaping_link(path, root),
    )
    assert run_index.summarize_runs() == summaries
    assert searched == []
    (tmp_path / "secret").write_text("{}")
    (second.path / "notes").symlink_to(tmp_path / "secret")
    with pytest.raises(RunError, match="not followed"):
        RunCache(run_index)[second.name]
    assert RunCache(run_index)[first.name].path == first.path
    assert searched == [second.path, first.path]
