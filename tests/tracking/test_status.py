"""Who writes a run, and whether anybody is still there."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from neural.tracking import run as run_module
from neural.tracking.run import Run
from neural.tracking.status import SILENCE, Lock, Status, mine, process, read_status
from neural.tracking.trouble import RunError
from tests.tracking.runs import new_run

ELSEWHERE = Status(state="running", pid=1, host="another machine", time=0.0)


def test_a_running_process_is_running_however_silent():
    assert replace(mine("running"), time=0.0).as_seen_now().state == "running"


def test_a_process_that_is_gone_is_lost_at_once():
    done = subprocess.Popen([sys.executable, "-c", ""])
    status = replace(mine("running"), pid=done.pid, process=process(done.pid))
    done.wait()
    assert status.as_seen_now().state == "lost"


def test_another_process_of_the_same_number_is_not_the_one():
    assert replace(mine("running"), process="another boot:1").as_seen_now().state == "lost"


def test_without_a_way_to_tell_processes_apart_silence_counts_too():
    status = replace(mine("running"), process=None)
    assert status.as_seen_now().state == "running"
    assert replace(status, time=time.time() - SILENCE - 1).as_seen_now().state == "lost"


@pytest.mark.parametrize(("ago", "state"), [(SILENCE - 30, "running"), (SILENCE + 30, "lost")])
def test_on_another_machine_the_heartbeat_counts(ago, state):
    assert replace(ELSEWHERE, time=time.time() - ago).as_seen_now().state == state


def test_what_has_ended_is_never_lost():
    assert replace(ELSEWHERE, state="finished").as_seen_now().state == "finished"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"state": 1, "step"}', '{"step": 3}'])
def test_a_status_that_cannot_be_read_is_lost(text):
    assert read_status(text).state == "lost"


def test_a_status_with_more_in_it_than_is_known_is_read():
    assert read_status('{"state": "finished", "step": 3, "colour": "red"}').step == 3


def test_heartbeats_are_rare_and_facts_stay(tmp_path, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(run_module.time, "monotonic", lambda: clock[0])
    run = new_run(tmp_path)
    run.beat(1, loss=0.5)
    clock[0] += 1
    run.beat(2, best=0.25)
    assert (run.status.step, run.status.facts) == (1, {"loss": 0.5})
    clock[0] += run_module.BEAT
    run.beat(3)
    assert (run.status.step, run.status.facts) == (3, {"loss": 0.5, "best": 0.25})
    run.finish("finished")
    assert Run.open(run.path).status.best == 0.25


def test_a_heartbeat_that_cannot_be_written_does_not_stop_the_run(tmp_path, monkeypatch):
    run = new_run(tmp_path)

    def full(*_args: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(run_module, "write_status", full)
        run.beat(1)
    run.finish("finished")
    assert Run.open(run.path).status.step == 1


def test_an_end_that_cannot_be_written_is_said_once(tmp_path, monkeypatch):
    def full(*_args: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    run, other = new_run(tmp_path), new_run(tmp_path)
    monkeypatch.setattr(run_module, "write_status", full)
    with pytest.raises(RunError, match="cannot be finished: the disk is full"):
        run.finish("finished")
    other.finish("failed", "the disk is full")   # who says so knows it already
    assert {read_status((one.path / "status.json").read_text()).state for one in (run, other)} == {"running"}


def test_the_status_is_json_for_anybody(tmp_path):
    run = new_run(tmp_path)
    run.finish("failed", "no data")
    said = json.loads((run.path / "status.json").read_text())
    assert (said["state"], said["message"], said["pid"], said["host"]) == (
        "failed", "no data", os.getpid(), socket.gethostname(),
    )  # fmt: skip


def test_a_child_that_outlives_its_parent_does_not_hold_the_lock(tmp_path):
    script = (
        "import os, sys, time; from pathlib import Path; from neural.tracking.status import Lock\n"
        "lock = Lock(Path(sys.argv[1]))\n"
        "child = os.fork()\n"
        "if child == 0: time.sleep(60)\n"
        "print(child, flush=True); os.kill(os.getpid(), 9)\n"
    )
    call = [sys.executable, "-c", script, str(tmp_path / "lock")]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.wait()
        try:
            Lock.take(tmp_path / "lock", ELSEWHERE).release()
        finally:
            os.kill(child, 9)
