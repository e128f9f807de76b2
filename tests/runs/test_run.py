"""The run folder: written by one process, read by any, and no run overwritten."""

import errno
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

from neural.runs.errors import RunError
from neural.runs.lock import RunLock
from neural.runs.run import Run
from neural.runs.store import STORE_VERSION
from tests.runs.runs import create_run


def test_what_was_written_is_read_back(tmp_path):
    run = create_run(tmp_path)
    run.log(1, {"loss": 0.1 + 0.2, "valid/loss": math.nan})
    run.log(2, {"loss": -math.inf})
    run.log_arrays(2, {"entropy": np.arange(6, dtype=np.float64).reshape(2, 3)})
    run.log_maps(2, {"block1": bytearray(b"\x00\xff")})
    run.set_metadata("attention/layers", ["block1", "block2"])
    run.log_event(2, "switch", "a longer window")
    run.heartbeat(2, best={"valid/loss": 0.5})
    run.finish("stopped", "by hand")
    with Run.open(run.path) as reader:
        assert reader.scalar_rows() == [
            (1, "loss", 0.30000000000000004),
            (1, "valid/loss", math.nan),
            (2, "loss", -math.inf),
        ]
        assert reader.scalar_names() == ["loss", "valid/loss"]
        steps, values = reader.scalars("loss", after=1)
        assert (steps.tolist(), values.tolist()) == ([2], [-math.inf])
        steps, entropy = reader.measure("entropy")
        assert (steps.tolist(), entropy.tolist(), entropy.dtype) == (
            [2],
            [[[0, 1, 2], [3, 4, 5]]],
            np.float32,
        )
        assert (reader.measure_names(), reader.map_steps(), reader.maps(2)) == (
            ["entropy"],
            [2],
            {"block1": b"\x00\xff"},
        )
        assert reader.metadata("attention/layers") == ["block1", "block2"]
        assert reader.metadata("other") is None
        assert [event[:3] for event in reader.events()] == [(2, "switch", "a longer window")]
        assert (reader.settings, reader.program) == ({"training": {"steps": 7}}, "network A {}\n")
        assert reader.environment == {"a": 1}
        assert (reader.status.state, reader.status.step, reader.status.message) == (
            "stopped",
            2,
            "by hand",
        )
        assert reader.status.best == {"valid/loss": 0.5}


def test_logging_a_name_again_replaces_its_value(tmp_path):
    run = create_run(tmp_path)
    run.log(1, {"loss": 1.0})
    run.commit()
    run.log(1, {"loss": 2.0})
    run.finish("finished")
    with Run.open(run.path) as reader:
        assert reader.scalar_rows() == [(1, "loss", 2.0)]


def test_arrays_of_different_shapes_are_padded_with_nan(tmp_path):
    run = create_run(tmp_path)
    run.log_arrays(1, {"span": np.ones((2, 3))})
    run.log_arrays(2, {"span": np.ones((3, 1))})
    run.finish("finished")
    with Run.open(run.path) as reader:
        _, span = reader.measure("span")
    assert np.isnan(span).tolist() == [[[False] * 3] * 2 + [[True] * 3], [[False, True, True]] * 3]


def test_runs_of_the_same_second_get_different_folders(tmp_path):
    runs = [create_run(tmp_path) for _ in range(5)]
    assert len({run.path for run in runs}) == 5
    assert len(list(tmp_path.iterdir())) == 5
    for run in runs:
        run.finish("finished")


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("a b/c", "_a-b-c"),
        ("../..", "_run"),
        ("", "_run"),
        ("網絡", "_網絡"),
        ("é" * 300, "é"),
        ("a\nb\0c", "_a-b-c"),
    ],
)
def test_any_name_becomes_a_folder_in_the_root(tmp_path, name, end):
    run = create_run(tmp_path, name)
    assert run.path.parent == tmp_path
    assert run.name.endswith(end)
    run.finish("finished")


def test_the_environment_holds_versions_and_no_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "do-not-write-me")
    run = Run.create(tmp_path, "small", settings={}, program=None)
    run.finish("finished")
    text = (run.path / "environment.json").read_text()
    assert "do-not-write-me" not in text
    assert json.loads(text)["packages"]["torch"] == metadata.version("torch")
    assert not (run.path / "program.neural").exists()
    assert Run.open(run.path).program is None


def test_one_process_writes_at_a_time(tmp_path):
    run = create_run(tmp_path)
    with pytest.raises(RunError, match="is being written by this process"):
        Run.reopen(run.path)
    script = "import sys; from neural.runs.run import Run; Run.reopen(sys.argv[1])"
    command = [sys.executable, "-c", script, str(run.path)]
    other = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"is being written by process {os.getpid()} on" in other.stderr
    run.finish("finished")
    Run.reopen(run.path).finish("finished")


def test_a_reader_and_a_refused_writer_do_not_release_the_lock(tmp_path):
    run = create_run(tmp_path)
    with Run.open(run.path) as reader:
        reader.scalar_rows()
    with pytest.raises(RunError):
        Run.reopen(run.path)
    # closing any other handle of the file would have released the lock
    with pytest.raises(RunError, match="being written"):
        Run.reopen(run.path)
    run.finish("finished")


WRITER = """
import sys
from pathlib import Path
from neural.runs.run import Run
run = Run.create(Path(sys.argv[1]), "live", settings={}, program=None, environment={})
print(run.path, flush=True)
for step in range(1, 100_000):
    run.log(step, {"a": step, "b": -step})
    run.commit()
    run.heartbeat(step)
    if step == 50:
        print("running", flush=True)
"""


def test_a_reader_sees_complete_steps_while_another_process_writes_and_after_it_is_killed(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        path = Path(writer.stdout.readline().strip())
        writer.stdout.readline()
        lengths = []
        with Run.open(path) as run:
            assert run.status.state == "running"
            deadline = time.monotonic() + 30
            while (len(lengths) < 20 or lengths[-1] == lengths[0]) and time.monotonic() < deadline:
                rows = run.scalar_rows()
                lengths.append(len(rows))
                steps = range(1, len(rows) // 2 + 1)
                assert rows == [
                    row for step in steps for row in ((step, "a", step), (step, "b", -step))
                ]
            writer.kill()
            writer.wait()
            assert lengths[0] >= 100
            assert lengths[-1] > lengths[0]
            assert len(run.scalar_rows()) >= lengths[-1]
            assert run.status.state == "lost"
    reopened = Run.reopen(path)
    assert reopened.status.state == "running"
    reopened.delete_after(10)
    reopened.log(11, {"a": 0.5})
    reopened.finish("finished")
    with Run.open(path) as run:
        assert [row for row in run.scalar_rows() if row[0] > 9] == [
            (10, "a", 10),
            (10, "b", -10),
            (11, "a", 0.5),
        ]


def test_delete_after_removes_rows_arrays_maps_events_and_checkpoints(tmp_path):
    run = create_run(tmp_path)
    for step in (1, 2, 3):
        run.log(step, {"loss": step, f"only{step}": 1})
        run.log_arrays(step, {"span": np.zeros(2), f"only{step}": np.zeros(2)})
        run.log_maps(step, {"m": b"1"})
        run.log_event(step, "switch", "")
        run.save(step, {"w": torch.tensor(step)}, {}, keep=3)
    run.delete_after(1)
    assert run.scalar_rows() == [(1, "loss", 1), (1, "only1", 1)]
    assert (run.scalar_names(), run.measure_names(), run.map_steps()) == (
        ["loss", "only1"],
        ["only1", "span"],
        [1],
    )
    assert [event[0] for event in run.events()] == [1]
    assert [info.step for info in run.checkpoints()] == [1]
    run.finish("finished")


def test_an_unknown_name_is_refused_with_a_suggestion(tmp_path):
    run = create_run(tmp_path)
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
    run = create_run(tmp_path)
    run.finish("finished")
    with Run.open(run.path) as reader, pytest.raises(RunError, match="opened for reading"):
        reader.log(1, {"loss": 1})


def test_a_path_that_is_not_a_run_is_explained(tmp_path):
    run = create_run(tmp_path / "runs")
    run.finish("finished")
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for path, message in {
        tmp_path / "runs": f"it has no rows.sqlite; it contains runs, the last one is {run.path}",
        tmp_path / "empty": "not a run folder: it has no rows.sqlite",
        tmp_path / "file": "is a file; a run is a folder",
        tmp_path / "file" / "x": "there is no run",
        run.path.with_name(run.name[:-1]): f"did you mean `{run.name}`?",
    }.items():
        for open_run in (Run.open, Run.reopen):
            with pytest.raises(RunError) as raised:
                open_run(path)
            assert message in str(raised.value)


def test_a_root_that_cannot_hold_a_run_is_reported_and_unchanged(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(RunError, match=r"no run can be created in .*file"):
        create_run(tmp_path / "file")
    with pytest.raises(RunError, match="a component of that path is a file"):
        create_run(tmp_path / "file" / "runs")
    assert (tmp_path / "file").read_text() == "kept"


def test_a_run_that_cannot_be_published_leaves_no_lock_and_no_file(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "no space left")

    held = set(RunLock._held_here)
    monkeypatch.setattr("neural.runs.run.publish_folder", fail)
    with pytest.raises(RunError, match="the disk is full; free some space and try again"):
        create_run(tmp_path)
    assert held == RunLock._held_here
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def public_folder():
    """A folder that other users may enter, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path
        for inner in (path, *path.iterdir()):
            inner.chmod(0o755)


def test_a_read_only_folder_is_reported_and_finished_runs_in_it_are_read(public_folder):
    run = create_run(public_folder)
    run.log(1, {"loss": 1})
    run.finish("finished")
    for folder in (run.path, public_folder):
        folder.chmod(0o555)
    script = textwrap.dedent("""
        import os, sys
        from pathlib import Path
        from neural.runs.errors import RunError
        from neural.runs.run import Run
        if os.getuid() == 0:
            import urllib.parse    # Python 3.13 imports it late; root's Python may be closed to others
            os.setuid(65534)   # root may write anywhere
        with Run.open(sys.argv[1]) as run:
            print(run.scalar_rows())
        for open_run in (lambda: Run.reopen(sys.argv[1]), lambda: Run.create(
            Path(sys.argv[1]).parent, "x", settings={}, program=None, environment={}
        )):
            try:
                open_run()
            except RunError as error:
                print(error)
    """)
    completed = subprocess.run(
        [sys.executable, "-c", script, str(run.path)], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    rows, reopened, created = completed.stdout.splitlines()
    assert rows == "[(1, 'loss', 1.0)]"
    assert reopened.endswith("no permission to write there; choose another folder")
    reason = "no permission to write there; choose another folder"
    assert created == f"no run can be created in {public_folder}: {reason}"
    assert sorted(path.name for path in public_folder.iterdir()) == [run.name]


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (STORE_VERSION - 2, "train again"),
        (STORE_VERSION - 1, "convert it with `neural runs upgrade .*`"),
        (STORE_VERSION + 1, "install a newer neural"),
    ],
)
def test_a_folder_of_another_version_is_refused_and_unchanged(tmp_path, version, advice):
    run = create_run(tmp_path)
    run.finish("finished")
    with sqlite3.connect(run.path / "rows.sqlite") as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (str(version),))
    db.close()
    before = {
        file.name: file.read_bytes()
        for file in run.path.iterdir()
        if file.is_file() and "-" not in file.suffix
    }
    message = f"version {version} of the run format; this neural reads version {STORE_VERSION}"
    for open_run in (Run.open, Run.reopen):
        with pytest.raises(RunError, match=f"{message}: {advice}"):
            open_run(run.path)
    assert before == {name: (run.path / name).read_bytes() for name in before}


def test_a_damaged_settings_file_is_reported(tmp_path):
    run = create_run(tmp_path)
    run.finish("finished")
    (run.path / "settings.json").write_bytes(b'{"a": ')
    (run.path / "program.neural").write_bytes(b"\xff\xfe")
    with Run.open(run.path) as reader:
        with pytest.raises(RunError, match=r"settings\.json is damaged"):
            _ = reader.settings
        with pytest.raises(RunError, match=r"program\.neural is damaged"):
            _ = reader.program
