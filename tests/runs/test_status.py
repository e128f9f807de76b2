"""Status of a run: heartbeats, lost processes, and the lock."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from neural.runs import run as run_module
from neural.runs.errors import RunError
from neural.runs.lock import RunLock
from neural.runs.run import Run
from neural.runs.status import (
    LOST_AFTER_SECONDS,
    RunStatus,
    current_status,
    parse_status,
    process_identity,
)
from tests.runs.runs import create_run

OTHER_HOST = RunStatus(state="running", pid=1, host="another machine", time=0.0)


def test_a_running_process_is_running_however_old_its_heartbeat():
    assert replace(current_status("running"), time=0.0).check_alive().state == "running"


def test_a_process_that_is_gone_is_lost_at_once():
    process = subprocess.Popen([sys.executable, "-c", ""])
    identity = process_identity(process.pid)
    status = replace(current_status("running"), pid=process.pid, process=identity)
    process.wait()
    assert status.check_alive().state == "lost"


def test_another_process_with_the_same_pid_does_not_count():
    assert (
        replace(current_status("running"), process="another boot:1").check_alive().state == "lost"
    )


def test_without_a_process_identity_the_heartbeat_counts_too():
    status = replace(current_status("running"), process=None)
    assert status.check_alive().state == "running"
    assert replace(status, time=time.time() - LOST_AFTER_SECONDS - 1).check_alive().state == "lost"


@pytest.mark.parametrize(
    ("ago", "state"), [(LOST_AFTER_SECONDS - 30, "running"), (LOST_AFTER_SECONDS + 30, "lost")]
)
def test_on_another_machine_the_heartbeat_counts(ago, state):
    assert replace(OTHER_HOST, time=time.time() - ago).check_alive().state == state


def test_a_finished_run_is_never_lost():
    assert replace(OTHER_HOST, state="finished").check_alive().state == "finished"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"state": 1, "step"}', '{"step": 3}'])
def test_a_status_that_cannot_be_read_is_lost(text):
    assert parse_status(text).state == "lost"


def test_unknown_keys_of_a_status_are_ignored():
    assert parse_status('{"state": "finished", "step": 3, "colour": "red"}').step == 3


def test_heartbeats_are_rarely_written_and_facts_stay(tmp_path, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(run_module.time, "monotonic", lambda: clock[0])
    run = create_run(tmp_path)
    run.heartbeat(1, loss=0.5)
    clock[0] += 1
    run.heartbeat(2, best=0.25)
    assert (run.status.step, run.status.facts) == (1, {"loss": 0.5})
    clock[0] += run_module.HEARTBEAT_SECONDS
    run.heartbeat(3)
    assert (run.status.step, run.status.facts) == (3, {"loss": 0.5, "best": 0.25})
    run.finish("finished")
    assert Run.open(run.path).status.best == 0.25


def test_a_heartbeat_that_cannot_be_written_does_not_stop_the_run(tmp_path, monkeypatch):
    run = create_run(tmp_path)

    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(run_module, "write_status", fail)
        run.heartbeat(1)
    run.finish("finished")
    assert Run.open(run.path).status.step == 1


def test_a_final_status_that_cannot_be_written_is_reported_once(tmp_path, monkeypatch):
    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    run, other = create_run(tmp_path), create_run(tmp_path)
    monkeypatch.setattr(run_module, "write_status", fail)
    with pytest.raises(RunError, match="cannot be finished: the disk is full"):
        run.finish("finished")
    other.finish("failed", "the disk is full")  # the caller knows already
    states = [
        parse_status((path / "status.json").read_text()).state for path in (run.path, other.path)
    ]
    assert states == ["running", "running"]


def test_the_status_file_is_plain_json(tmp_path):
    run = create_run(tmp_path)
    run.finish("failed", "no data")
    document = json.loads((run.path / "status.json").read_text())
    keys = ("state", "message", "pid", "host")
    assert tuple(document[key] for key in keys) == (
        "failed",
        "no data",
        os.getpid(),
        socket.gethostname(),
    )


def test_a_child_that_outlives_its_parent_does_not_hold_the_lock(tmp_path):
    script = (
        "import os, sys, time; from pathlib import Path; from neural.runs.lock import RunLock\n"
        "lock = RunLock(Path(sys.argv[1]))\n"
        "child = os.fork()\n"
        "if child == 0: time.sleep(60)\n"
        "print(child, flush=True); os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.wait()
        try:
            RunLock.acquire(tmp_path / "lock", OTHER_HOST).release()
        finally:
            os.kill(child, 9)
