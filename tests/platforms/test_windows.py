"""Neural on simulated Windows (windows_startup/sitecustomize.py): imports, locks, stopping, verbs."""

from __future__ import annotations

import json
import signal
import sys
import time

import pytest

from neural.runs.run import Run
from neural.runs.status import status_from_dict
from tests.platforms.simulation import TIMEOUT_SECONDS, run_python, start_python
from tests.sweeps import write_sweep

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the simulation reads open files and locks from Linux"
)
BREAK_STAND_IN = signal.SIGUSR1
"""The signal that stands for Ctrl-Break in the simulation."""
IMPORT_ALL = """
import importlib, sys
from pathlib import Path
import neural
from neural.core import platform_support
assert platform_support.IS_WINDOWS and not hasattr(platform_support, "fcntl")
package = Path(neural.__file__).parent
foreign = {"haystack", "langchain_core", "langchain_text_splitters", "llama_index"}
for path in sorted(package.rglob("*.py")):
    parts = path.relative_to(package.parent).with_suffix("").parts
    if parts[-1] in ("__main__",) or not all(part.isidentifier() for part in parts):
        continue
    try:
        importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    except ModuleNotFoundError as error:
        assert error.name.partition(".")[0] in foreign, error
    print(".".join(parts))
"""


def test_every_module_is_imported_without_posix(tmp_path):
    modules = run_python("windows", "-c", IMPORT_ALL, folder=tmp_path).split()
    assert len(modules) > 500
    assert "neural.runs.lock" in modules


@pytest.mark.parametrize(
    "statement",
    ["import fcntl", "import os; os.fork()", "import signal; signal.SIGKILL", "import pwd"],
)
def test_the_simulation_refuses_what_windows_lacks(statement, tmp_path):
    script = f"exec({statement!r}, {{'__name__': 'neural.planted'}})"
    with start_python("windows", "-c", script, folder=tmp_path) as process:
        _, errors = process.communicate()
    assert process.returncode == 1
    assert "Windows" in errors


def test_the_simulation_refuses_to_replace_move_and_delete_open_files(tmp_path):
    script = """
import os
from pathlib import Path
Path("folder").mkdir()
opened = open("folder/a", "w")
Path("b").touch()
for action in (
    lambda: os.replace("b", "folder/a"), lambda: Path("folder/a").unlink(),
    lambda: Path("folder").rename("moved"), lambda: Path("a:b").touch(), lambda: Path("nul.txt").touch(),
):
    try:
        action()
    except OSError as error:
        print(type(error).__name__)
opened.close()
Path("folder").rename("moved")
"""
    output = run_python("windows", "-c", script, folder=tmp_path).split()
    assert output == ["PermissionError"] * 3 + ["OSError"] * 2
    assert (tmp_path / "moved" / "a").exists()


HOLD_LOCK = """
import sys, time
from pathlib import Path
from neural.core import platform_support
from neural.runs.errors import RunError
from neural.runs.lock import RunLock
from neural.runs.status import RunStatus
assert platform_support.IS_WINDOWS
status = RunStatus(state="running", pid=1, host="here")
try:
    lock = RunLock.acquire(Path("run/lock"), status)
except RunError as error:
    print("refused", error)
    sys.exit()
print("locked", flush=True)
try:
    RunLock.acquire(Path("run/lock"), status)
except RunError as error:
    print(error, flush=True)
if "wait" in sys.argv:
    time.sleep(300)
lock.release()
RunLock.acquire(Path("run/lock"), status).release()
"""


def test_of_two_processes_one_gets_the_lock_and_its_death_frees_it(tmp_path):
    (tmp_path / "run").mkdir()
    with start_python("windows", "-c", HOLD_LOCK, "wait", folder=tmp_path) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "locked\n"
            assert "written by this process" in holder.stdout.readline()
            output = run_python("windows", "-c", HOLD_LOCK, folder=tmp_path)
            assert output.startswith("refused")
            assert "is being written by process 1 on here" in output
        finally:
            holder.kill()
    assert run_python("windows", "-c", HOLD_LOCK, folder=tmp_path).startswith("locked")


PROCESSES = """
import os, signal, subprocess, sys, time
from neural.core.platform_support import (
    lower_priority, new_session_options, physical_memory_bytes, process_exists, process_identity,
    request_own_stop, request_stop, watch_process,
)
windows = sys.modules["sitecustomize"]
child_script = "; ".join((
    "import signal, sys, time",
    "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))",
    "print(1, flush=True)",
    "time.sleep(300)",
))
child = windows.WindowsPopen(
    [sys.executable, "-S", "-c", child_script], stdout=subprocess.PIPE, **new_session_options()
)
child.stdout.readline()
is_running = watch_process(child.pid)
identity = process_identity(child.pid)
assert process_exists(child.pid) and is_running() and identity.startswith("windows:")
request_stop(child)
assert child.wait() == 7, child.returncode
assert not is_running() and process_identity(child.pid) is None and not process_exists(child.pid)
request_stop(child)  # it has ended: nothing happens
assert not process_exists(1 << 40)
lower_priority(5)
assert windows.Kernel32.priority_class == 0x4000
assert physical_memory_bytes() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
received = []
signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
request_own_stop()
assert received == [signal.SIGTERM]
"""


def test_processes_are_asked_watched_and_recognised_through_the_kernel_of_windows(tmp_path):
    run_python("windows", "-c", PROCESSES, folder=tmp_path)


VERBS = """
import os, sys
from neural.cli.main import main
from neural.runs.run import Run

def call(*words, code=0):
    try:
        main(list(words), prog_name="neural")
    except SystemExit as error:
        assert (error.code or 0) == code, (words, error.code)

log, steps = Run.log, []
def log_and_stop(run, step, values):
    log(run, step, values)
    steps.append(step)
    if len(steps) == 3:
        os.kill(os.getpid(), sys.modules["sitecustomize"].BREAK_STAND_IN)  # Ctrl-Break
Run.log = log_and_stop
call("train", "tiny.neural", "--quiet", "--set", "training.steps=9", code=130)
call("train", "--resume", "--quiet")
call("report", "--out", "report.html")
call("show")
call("runs")
call("doctor")
call("segment", "text.txt")
call("sweep", "rates.yaml", "--workers", "2")
"""


def test_train_stop_resume_report_segment_and_sweep(tmp_path):
    write_sweep(tmp_path, "experiment: tiny.neural\nseeds: [0, 1]\n")
    (tmp_path / "text.txt").write_text("The sea is cold. The sea is deep. Bread is baked.\n" * 9)
    output = run_python(
        "windows", "-c", VERBS, folder=tmp_path, PYTHONIOENCODING="cp1252", LOCALAPPDATA="cache"
    )
    (run_path,) = tmp_path.glob("runs/*_Tiny")
    with Run.open(run_path) as run:
        assert run.status.state == "finished"
        steps, _ = run.scalars("train/loss")
        assert list(steps) == sorted(set(steps))
        assert steps[-1] == 9
    assert (tmp_path / "report.html").stat().st_size > 10_000
    (table,) = tmp_path.glob("runs/*_rates/trials.json")
    assert [row["state"] for row in json.loads(table.read_text())["trials"]] == ["finished"] * 2
    # the console of cp1252 has neither arrows nor the dots of the chart
    assert "(B, 5, 6) -> (B, 3)" in output
    assert "\\u28" not in output


def test_a_killed_sweep_stops_its_children_and_ctrl_break_lets_them_save(tmp_path):
    long = "set: [training.steps=100000, training.checkpoint_every=5, tracking.track_every=0]\n"
    write_sweep(tmp_path, "experiment: tiny.neural\nseeds: [0]\n" + long)
    command = ("-m", "neural", "sweep")
    with start_python("windows", *command, "rates.yaml", folder=tmp_path) as sweep:
        run_path = _wait_for_checkpoint(tmp_path, sweep, after_step=0)
        sweep.kill()
    status = _wait_for_end(run_path)
    assert status.state == "stopped"
    with start_python("windows", *command, "--resume", folder=tmp_path) as sweep:
        _wait_for_checkpoint(tmp_path, sweep, after_step=status.step)
        sweep.send_signal(BREAK_STAND_IN)
        assert sweep.wait(TIMEOUT_SECONDS) == 130
    resumed_status = _wait_for_end(run_path)
    assert resumed_status.state == "stopped"
    assert resumed_status.step > status.step


def _wait_for_checkpoint(folder, process, after_step):
    """The run of the trial, once it has a checkpoint of a later step."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for path in folder.glob("runs/*_rates/*/checkpoints/step-*.json"):
            if int(path.stem.removeprefix("step-")) > after_step:
                return path.parents[1]
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"no checkpoint: {process.communicate()}")


def _wait_for_end(run_path):
    """The status of the run once its process has ended."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    # not `Run.status`: the real system does not know the identity that simulated Windows writes
    while (status := _read_status(run_path)).state == "running" and time.monotonic() < deadline:
        time.sleep(0.05)
    return status


def _read_status(run_path):
    return status_from_dict(json.loads((run_path / "status.json").read_text(encoding="utf-8")))
