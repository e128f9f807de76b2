"""Copies of run folders: complete, resumable, also of runs that are being written."""

import errno
import json
import sqlite3
import threading

import pytest
import torch

from neural.runs import copy as run_copy
from neural.runs.copy import compare_runs, copy_run
from neural.runs.errors import RunError
from neural.runs.run import Run
from tests.runs.runs import create_run


def write_steps(run, first, last, *, scale=1.0, **options):
    """Log steps and save a checkpoint of the last one."""
    for step in range(first, last + 1):
        run.log(step, {"train/loss": scale / step})
    run.save(last, {"weight": torch.full((3,), float(last))}, {"step": last}, **options)


def write_run(root, steps=4):
    run = create_run(root)
    write_steps(run, 1, steps, best=True)
    run.log_maps(steps, {"layer": b"\x00\x01"})
    run.finish("finished")
    return run.path


def continue_run(path, last, **options):
    """Resume a run from its checkpoint."""
    run = Run.reopen(path)
    step = run.load_checkpoint().step
    run.delete_after(step)
    write_steps(run, step + 1, last, **options)
    run.finish("finished")


def read_all(path):
    with Run.open(path) as run:
        checkpoint = run.load_checkpoint()
        tensors = {name: tensor.tolist() for name, tensor in checkpoint.tensors.items()}
        maps = {step: run.maps(step) for step in run.map_steps()}
        return run.scalar_rows(), maps, checkpoint.step, tensors, run.settings, run.program


def test_a_copy_has_everything(tmp_path):
    source = write_run(tmp_path / "runs")
    (source / "evaluation.json").write_text("{}")
    (source / "tensorboard").mkdir()
    (source / "tensorboard" / "events").write_bytes(b"\x01" * 5000)
    target = tmp_path / "shared" / source.name
    copy_run(source, target)
    assert read_all(target) == read_all(source)
    files = {
        path.relative_to(source)
        for path in source.rglob("*")
        if not path.name.startswith("rows.sqlite-")
    }
    assert {path.relative_to(target) for path in target.rglob("*")} == files
    assert compare_runs(source, target) == "same"
    assert [path.name for path in target.parent.iterdir()] == [source.name]


def test_reading_a_copy_needs_no_shared_memory(tmp_path):
    """A network file system has none: no write-ahead log, and no file beside the rows."""
    source = write_run(tmp_path / "runs")
    target = tmp_path / "copy"
    copy_run(source, target)
    with Run.open(target) as run:
        run.scalar_rows()
        assert list(target.glob("rows.sqlite-*")) == []
        with sqlite3.connect(target / "rows.sqlite") as db:
            assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        db.close()
    continue_run(target, 6)  # turns the log on again
    with sqlite3.connect(target / "rows.sqlite") as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_a_run_that_is_being_written_is_copied_with_its_committed_rows_and_resumes(tmp_path):
    run = create_run(tmp_path / "runs")
    write_steps(run, 1, 4)
    run.log(5, {"train/loss": 0.2})
    run.commit()
    run.log(6, {"train/loss": 0.1})  # in memory only
    target = tmp_path / "copy"
    copy_run(run.path, target)
    with Run.open(target) as copy:
        assert [step for step, _, _ in copy.scalar_rows()] == [1, 2, 3, 4, 5]
        assert (copy.status.state, copy.status.message) == (
            "stopped",
            "copied while it was running",
        )
    write_steps(run, 5, 9)
    run.finish("finished")
    continue_run(target, 9)
    assert read_all(target) == read_all(run.path)


def test_every_copy_of_a_busy_writer_is_consistent(tmp_path):
    """Checkpoints come and go while they are copied; none is without its rows."""
    run = create_run(tmp_path / "runs")
    write_steps(run, 1, 1)
    stop = threading.Event()

    def write_on():
        step = 1
        while not stop.is_set():
            step += 1
            write_steps(run, step, step, keep=1)

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        for index in range(8):
            copy_run(run.path, tmp_path / f"copy-{index}")
    finally:
        stop.set()
        writer.join()
    steps = []
    for index in range(8):
        with Run.open(tmp_path / f"copy-{index}") as copy:
            checkpoint = copy.load_checkpoint()
            assert not checkpoint.skipped
            assert checkpoint.tensors["weight"].tolist() == [checkpoint.step] * 3
            assert checkpoint.step <= copy.scalar_rows()[-1][0]
            steps.append(checkpoint.step)
    assert steps == sorted(steps)


def test_a_newer_copy_replaces_an_older_one_and_keeps_the_files_made_from_it(tmp_path):
    source, target = write_run(tmp_path / "runs"), tmp_path / "copy"
    copy_run(source, target)
    (target / "evaluation.json").write_text('{"of": "the copy"}')
    old_checkpoint = (target / "checkpoints" / "step-00000004.safetensors").stat().st_ino
    continue_run(source, 8)
    assert compare_runs(source, target) == "newer"
    assert compare_runs(target, source) == "older"
    copy_run(source, target)
    assert read_all(target) == read_all(source)
    assert json.loads((target / "evaluation.json").read_text()) == {"of": "the copy"}
    # what was copied before is not copied again
    checkpoint = target / "checkpoints" / "step-00000004.safetensors"
    assert checkpoint.stat().st_ino == old_checkpoint


def test_copies_that_were_trained_separately_have_diverged(tmp_path):
    source, target = write_run(tmp_path / "runs"), tmp_path / "copy"
    copy_run(source, target)
    continue_run(source, 8)
    continue_run(target, 9, scale=2.0)
    assert compare_runs(source, target) == compare_runs(target, source) == "diverged"


def test_rows_after_the_last_common_checkpoint_may_differ(tmp_path):
    """A run that resumes on another machine writes them again, rounded differently."""
    run, target = create_run(tmp_path / "runs"), tmp_path / "copy"
    write_steps(run, 1, 4)
    run.log(5, {"train/loss": 0.5})
    run.commit()
    copy_run(run.path, target)
    run.finish("stopped")
    continue_run(run.path, 8, scale=1.0000001)
    assert compare_runs(run.path, target) == "newer"


def test_two_trainings_are_other_runs_even_with_equal_rows(tmp_path):
    first, second = write_run(tmp_path / "a"), write_run(tmp_path / "b")
    assert compare_runs(first, second) == "other"


def test_runs_without_an_id_are_told_apart_by_environment_and_start(tmp_path):
    first, second = write_run(tmp_path / "a"), write_run(tmp_path / "b")
    copy_run(first, tmp_path / "copy")
    for path in (first, second, tmp_path / "copy"):
        with sqlite3.connect(path / "rows.sqlite") as db:
            db.execute("DELETE FROM meta WHERE key = 'id'")
        db.close()
    assert compare_runs(first, tmp_path / "copy") == "same"
    assert compare_runs(first, second) == "other"


def test_a_copy_that_is_being_written_is_not_replaced(tmp_path):
    source, target = write_run(tmp_path / "runs"), tmp_path / "copy"
    copy_run(source, target)
    writer = Run.reopen(target)
    continue_run(source, 8)
    with pytest.raises(RunError, match="is being written by this process"):
        copy_run(source, target)
    writer.finish("stopped")


def test_a_damaged_checkpoint_stays_damaged_and_is_reported_by_readers(tmp_path):
    source, target = write_run(tmp_path / "runs"), tmp_path / "copy"
    tensors = source / "checkpoints" / "step-00000004.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1] + b"\xff")
    copy_run(source, target)
    with pytest.raises(RunError, match="its checksum is wrong"):
        Run.open(target).load_checkpoint()


def test_damaged_settings_are_reported(tmp_path):
    source = write_run(tmp_path / "runs")
    (source / "settings.json").write_text("{}")
    with pytest.raises(RunError, match=r"settings\.json is damaged"):
        copy_run(source, tmp_path / "shared" / "copy")
    assert list((tmp_path / "shared").iterdir()) == []


def test_a_run_of_another_version_is_refused_and_nothing_is_left_behind(tmp_path):
    source = write_run(tmp_path / "runs")
    with sqlite3.connect(source / "rows.sqlite") as db:
        db.execute("UPDATE meta SET value = '4' WHERE key = 'version'")
    db.close()
    with pytest.raises(RunError, match="written in version 4"):
        copy_run(source, tmp_path / "shared" / "copy")
    assert list((tmp_path / "shared").iterdir()) == []


def test_a_folder_that_is_no_run_is_not_replaced(tmp_path):
    source = write_run(tmp_path / "runs")
    (tmp_path / "copy").mkdir()
    with pytest.raises(RunError, match=r"copy is not a run folder: it has no rows\.sqlite"):
        copy_run(source, tmp_path / "copy")
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="file is a file; a run is a folder"):
        copy_run(source, tmp_path / "file")


def test_a_link_is_not_followed(tmp_path):
    source = write_run(tmp_path / "runs")
    (source / "members").mkdir()
    (source / "members" / "secret").symlink_to(tmp_path)
    with pytest.raises(RunError, match="is a link; it is not followed"):
        copy_run(source, tmp_path / "copy")


def test_a_private_run_stays_private(tmp_path):
    source = write_run(tmp_path / "runs")
    source.chmod(0o700)
    (source / "settings.json").chmod(0o600)
    copy_run(source, tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "copy" / "settings.json").stat().st_mode & 0o777 == 0o600


def test_a_disk_without_locks_is_no_obstacle(tmp_path, monkeypatch):
    source = write_run(tmp_path / "runs")

    def refuse_lock(descriptor):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(run_copy, "lock_file", refuse_lock)
    copy_run(source, tmp_path / "copy")
    assert read_all(tmp_path / "copy") == read_all(source)


def test_a_copy_waits_for_another_one_to_the_same_target(tmp_path, monkeypatch):
    """A process can lock a file twice, so the lock of another one is simulated."""
    source = write_run(tmp_path / "runs")
    attempts = []

    def lock_third_time(descriptor):
        attempts.append(descriptor)
        if len(attempts) < 3:
            raise BlockingIOError

    monkeypatch.setattr(run_copy, "lock_file", lock_third_time)
    copy_run(source, tmp_path / "copy")
    assert len(attempts) == 3
    attempts.clear()
    monkeypatch.setattr(run_copy, "MAX_WAIT_SECONDS", 0.0)
    with pytest.raises(RunError, match="another process has been copying to"):
        copy_run(source, tmp_path / "other")
