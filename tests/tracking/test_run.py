"""The run folder from outside: written by one process, read by any, and nothing overwritten."""

import errno
import json
import math
import os
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from neural.tracking.run import Run
from neural.tracking.status import Lock
from neural.tracking.trouble import RunError
from tests.tracking.runs import new_run


def test_what_was_written_is_what_is_read(tmp_path):
    run = new_run(tmp_path)
    run.log(1, {"loss": 0.1 + 0.2, "valid/loss": math.nan})
    run.log(2, {"loss": -math.inf})
    run.log_arrays(2, {"entropy": np.arange(6, dtype=np.float64).reshape(2, 3)})
    run.log_maps(2, {"block1": bytearray(b"\x00\xff")})
    run.describe("attention/layers", ["block1", "block2"])
    run.event(2, "switch", "a longer window")
    run.beat(2, best={"valid/loss": 0.5})
    run.finish("stopped", "by hand")
    with Run.open(run.path) as seen:
        assert seen.rows() == [(1, "loss", 0.30000000000000004), (1, "valid/loss", math.nan), (2, "loss", -math.inf)]
        assert seen.names() == ["loss", "valid/loss"]
        steps, values = seen.scalars("loss", after=1)
        assert (steps.tolist(), values.tolist()) == ([2], [-math.inf])
        steps, entropy = seen.measure("entropy")
        assert (steps.tolist(), entropy.tolist(), entropy.dtype) == ([2], [[[0, 1, 2], [3, 4, 5]]], np.float32)
        assert (seen.measures(), seen.map_steps(), seen.maps(2)) == (["entropy"], [2], {"block1": b"\x00\xff"})
        assert seen.described("attention/layers") == ["block1", "block2"]
        assert seen.described("other") is None
        assert [event[:3] for event in seen.events()] == [(2, "switch", "a longer window")]
        assert (seen.settings, seen.program) == ({"training": {"steps": 7}}, "network A {}\n")
        assert seen.environment == {"a": 1}
        assert (seen.status.state, seen.status.step, seen.status.message) == ("stopped", 2, "by hand")
        assert seen.status.best == {"valid/loss": 0.5}


def test_a_name_logged_again_replaces_the_old(tmp_path):
    run = new_run(tmp_path)
    run.log(1, {"loss": 1.0})
    run.commit()
    run.log(1, {"loss": 2.0})
    run.finish("finished")
    with Run.open(run.path) as seen:
        assert seen.rows() == [(1, "loss", 2.0)]


def test_arrays_of_different_shapes_end_in_nan(tmp_path):
    run = new_run(tmp_path)
    run.log_arrays(1, {"span": np.ones((2, 3))})
    run.log_arrays(2, {"span": np.ones((3, 1))})
    run.finish("finished")
    with Run.open(run.path) as seen:
        _, span = seen.measure("span")
    assert np.isnan(span).tolist() == [[[False] * 3] * 2 + [[True] * 3], [[False, True, True]] * 3]


def test_two_runs_of_one_second_are_two_folders(tmp_path):
    runs = [new_run(tmp_path) for _ in range(5)]
    assert len({run.path for run in runs}) == 5
    assert len(list(tmp_path.iterdir())) == 5
    for run in runs:
        run.finish("finished")


@pytest.mark.parametrize(
    ("name", "end"),
    [("a b/c", "_a-b-c"), ("../..", "_run"), ("", "_run"), ("網絡", "_網絡"), ("é" * 300, "é"), ("a\nb\0c", "_a-b-c")],
)
def test_any_name_becomes_a_folder_in_the_root(tmp_path, name, end):
    run = new_run(tmp_path, name)
    assert run.path.parent == tmp_path
    assert run.name.endswith(end)
    run.finish("finished")


def test_the_environment_holds_versions_and_no_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "do-not-write-me")
    run = Run.create(tmp_path, "small", settings={}, program=None)
    run.finish("finished")
    text = (run.path / "environment.json").read_text()
    assert "do-not-write-me" not in text
    assert json.loads(text)["packages"]["torch"] == torch.__version__
    assert not (run.path / "program.neural").exists()
    assert Run.open(run.path).program is None


def test_one_process_writes_at_a_time(tmp_path):
    run = new_run(tmp_path)
    with pytest.raises(RunError, match="is being written by this process"):
        Run.reopen(run.path)
    script = "import sys; from neural.tracking.run import Run; Run.reopen(sys.argv[1])"
    call = [sys.executable, "-c", script, str(run.path)]
    other = subprocess.run(call, capture_output=True, text=True, check=False)
    assert f"is being written by process {os.getpid()} on" in other.stderr
    run.finish("finished")
    Run.reopen(run.path).finish("finished")


def test_a_reader_and_a_refused_writer_leave_the_lock_alone(tmp_path):
    run = new_run(tmp_path)
    with Run.open(run.path) as seen:
        seen.rows()
    with pytest.raises(RunError):
        Run.reopen(run.path)
    with pytest.raises(RunError, match="being written"):   # closing any other handle of the file would have dropped it
        Run.reopen(run.path)
    run.finish("finished")


WRITER = """
import sys
from pathlib import Path
from neural.tracking.run import Run
run = Run.create(Path(sys.argv[1]), "live", settings={}, program=None, environment={})
print(run.path, flush=True)
for step in range(1, 100_000):
    run.log(step, {"a": step, "b": -step})
    run.commit()
    run.beat(step)
    if step == 50:
        print("going", flush=True)
"""


def test_a_reader_sees_whole_steps_while_another_process_writes_and_after_it_is_killed(tmp_path):
    call = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        path = Path(writer.stdout.readline().strip())
        writer.stdout.readline()
        lengths = []
        with Run.open(path) as run:
            assert run.status.state == "running"
            deadline = time.monotonic() + 30
            while (len(lengths) < 20 or lengths[-1] == lengths[0]) and time.monotonic() < deadline:
                rows = run.rows()
                lengths.append(len(rows))
                steps = range(1, len(rows) // 2 + 1)
                assert rows == [row for step in steps for row in ((step, "a", step), (step, "b", -step))]
            writer.kill()
            writer.wait()
            assert lengths[0] >= 100
            assert lengths[-1] > lengths[0]
            assert len(run.rows()) >= lengths[-1]
            assert run.status.state == "lost"
    again = Run.reopen(path)
    assert again.status.state == "running"
    again.forget_after(10)
    again.log(11, {"a": 0.5})
    again.finish("finished")
    with Run.open(path) as run:
        assert [row for row in run.rows() if row[0] > 9] == [(10, "a", 10), (10, "b", -10), (11, "a", 0.5)]


def test_going_back_forgets_rows_arrays_maps_events_and_checkpoints(tmp_path):
    run = new_run(tmp_path)
    for step in (1, 2, 3):
        run.log(step, {"loss": step, f"only{step}": 1})
        run.log_arrays(step, {"span": np.zeros(2), f"only{step}": np.zeros(2)})
        run.log_maps(step, {"m": b"1"})
        run.event(step, "switch", "")
        run.save(step, {"w": torch.tensor(step)}, {}, keep=3)
    run.forget_after(1)
    assert run.rows() == [(1, "loss", 1), (1, "only1", 1)]
    assert (run.names(), run.measures(), run.map_steps()) == (["loss", "only1"], ["only1", "span"], [1])
    assert [event[0] for event in run.events()] == [1]
    assert [one.step for one in run.checkpoints()] == [1]
    run.finish("finished")


def test_a_missing_name_is_refused_with_what_was_meant(tmp_path):
    run = new_run(tmp_path)
    run.log(1, {"valid/loss": 1})
    run.log_arrays(1, {"entropy": np.zeros(2)})
    run.commit()
    with pytest.raises(RunError, match="no scalar `valid/los`; did you mean `valid/loss`"):
        run.scalars("valid/los")
    with pytest.raises(RunError, match="no measure `entrop`; did you mean `entropy`"):
        run.measure("entrop")
    assert run.scalars("valid/loss", after=5)[0].size == 0
    run.finish("finished")


def test_a_reader_cannot_write(tmp_path):
    run = new_run(tmp_path)
    run.finish("finished")
    with Run.open(run.path) as seen, pytest.raises(RunError, match="opened for reading"):
        seen.log(1, {"loss": 1})


def test_what_is_not_a_run_is_said(tmp_path):
    run = new_run(tmp_path / "runs")
    run.finish("finished")
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for path, words in {
        tmp_path / "runs": f"not a run folder: it has no rows.sqlite; there are runs in it, the last one is {run.path}",
        tmp_path / "empty": "not a run folder: it has no rows.sqlite",
        tmp_path / "file": "is a file; a run is a folder",
        tmp_path / "file" / "x": "there is no run",
        run.path.with_name(run.name[:-1]): f"did you mean `{run.name}`?",
    }.items():
        for opened in (Run.open, Run.reopen):
            with pytest.raises(RunError) as told:
                opened(path)
            assert words in str(told.value)


def test_a_root_that_cannot_hold_a_run_is_said_and_left_as_it_was(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(RunError, match=r"no run can be created in .*file"):
        new_run(tmp_path / "file")
    with pytest.raises(RunError, match="a part of that path is a file"):
        new_run(tmp_path / "file" / "runs")
    assert (tmp_path / "file").read_text() == "kept"


def test_a_run_that_cannot_be_put_in_place_leaves_no_lock_and_no_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "no space left")

    held = set(Lock._here)
    monkeypatch.setattr("neural.tracking.run.put_in_place", full)
    with pytest.raises(RunError, match="the disk is full"):
        new_run(tmp_path)
    assert held == Lock._here
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_folder_is_said_and_finished_runs_in_it_are_read(tmp_path):
    run = new_run(tmp_path)
    run.log(1, {"loss": 1})
    run.finish("finished")
    for one in (run.path, tmp_path):
        one.chmod(0o555)
    script = textwrap.dedent("""
        import os, sys
        from pathlib import Path
        from neural.tracking.run import Run, RunError
        if os.getuid() == 0:
            os.setuid(65534)   # a right to write anywhere would be no test
        with Run.open(sys.argv[1]) as run:
            print(run.rows())
        for opened in (lambda: Run.reopen(sys.argv[1]), lambda: Run.create(
            Path(sys.argv[1]).parent, "x", settings={}, program=None, environment={}
        )):
            try:
                opened()
            except RunError as error:
                print(error)
    """)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and not parent.stat().st_mode & 0o005 and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    done = subprocess.run([sys.executable, "-c", script, str(run.path)], capture_output=True, text=True, check=False)
    for one in (tmp_path, run.path):
        one.chmod(0o755)
    assert done.returncode == 0, done.stderr
    rows, again, new = done.stdout.splitlines()
    assert rows == "[(1, 'loss', 1.0)]"
    assert again.endswith("no right to write there; choose another folder")
    assert new == f"no run can be created in {tmp_path}: no right to write there; choose another folder"
    assert sorted(one.name for one in tmp_path.iterdir()) == [run.name]


def test_a_newer_version_is_refused_and_nothing_is_touched(tmp_path):
    run = new_run(tmp_path)
    run.finish("finished")
    with sqlite3.connect(run.path / "rows.sqlite") as db:
        db.execute("UPDATE meta SET value = '3' WHERE key = 'version'")
    db.close()
    before = {file.name: file.read_bytes() for file in run.path.iterdir() if file.is_file() and "-" not in file.suffix}
    for opened in (Run.open, Run.reopen):
        with pytest.raises(RunError, match="version 3 of the run format; this neural reads up to 2"):
            opened(run.path)
    assert before == {name: (run.path / name).read_bytes() for name in before}


# as files of that version are, whatever today's look like: it must not follow the schema
VERSION_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE scalars (name INTEGER NOT NULL, step INTEGER NOT NULL, value REAL, PRIMARY KEY (name, step)) WITHOUT ROWID;
CREATE TABLE arrays (name INTEGER NOT NULL, step INTEGER NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL,
                     PRIMARY KEY (name, step)) WITHOUT ROWID;
CREATE TABLE events (id INTEGER PRIMARY KEY, step INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
                     time REAL NOT NULL);
CREATE TABLE described (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('version', '1'), ('status', '{"state": "finished", "step": 5, "message": "done"}');
INSERT INTO names VALUES (1, 'loss'), (2, 'entropy');
INSERT INTO scalars VALUES (1, 5, 0.25);
INSERT INTO arrays VALUES (2, 5, '[1, 2]', x'0000803f00000040');
INSERT INTO events VALUES (1, 5, 'switch', 'a', 100.5);
INSERT INTO described VALUES ('layers', '["a"]');
"""


@pytest.fixture
def version_1(tmp_path) -> Path:
    """A folder as version 1 wrote it: no maps, and the status among the rows."""
    path = tmp_path / "old"
    path.mkdir()
    (path / "settings.json").write_text('{"steps": 5}')
    db = sqlite3.connect(path / "rows.sqlite")
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(VERSION_1)
    db.close()
    return path


def test_a_run_of_the_version_before_is_read(version_1):
    with Run.open(version_1) as run:
        assert (run.rows(), run.settings) == ([(5, "loss", 0.25)], {"steps": 5})
        assert run.measure("entropy")[1].tolist() == [[[1.0, 2.0]]]
        assert (run.map_steps(), run.maps(5), run.events()) == ([], {}, [(5, "switch", "a", 100.5)])
        assert (run.status.state, run.status.step, run.status.message) == ("finished", 5, "done")
        assert (run.checkpoints(), run.restore(), run.described("layers")) == ([], None, ["a"])


def test_a_run_of_the_version_before_goes_on_as_one_of_today(version_1):
    run = Run.reopen(version_1)
    run.log_maps(6, {"m": b"1"})
    run.finish("stopped")
    with Run.open(version_1) as seen:
        assert (seen.map_steps(), seen.rows(), seen.status.state) == ([6], [(5, "loss", 0.25)], "stopped")
        assert [event[0] for event in seen.events()] == [5]


def test_a_damaged_settings_file_is_said(tmp_path):
    run = new_run(tmp_path)
    run.finish("finished")
    (run.path / "settings.json").write_bytes(b'{"a": ')
    (run.path / "program.neural").write_bytes(b"\xff\xfe")
    with Run.open(run.path) as seen:
        with pytest.raises(RunError, match=r"settings\.json is damaged"):
            _ = seen.settings
        with pytest.raises(RunError, match=r"program\.neural is damaged"):
            _ = seen.program
