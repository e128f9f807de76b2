"""Train in processes that are killed by SIGKILL at random instants: see test_resume.py.

    python -m tests.training.killed FOLDER SEED KILLS SETTINGS [SEED KILLS SETTINGS …]

Every attempt is a forked child; what the first one imports is then imported here, too, so that the
others need not. FOLDER gets a folder per case, 0 and on: `undisturbed` has the run that was not
killed, `runs` the one that was. Prints the number of kills of each case.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

from neural.runs.run import Run
from neural.training.engine import TrainingProgress, fit
from tests.faults.survival._process import load
from tests.training.programs import create_small_run, create_small_task


def train(folder: Path, settings: dict, kill_at: tuple[int, float] | None) -> None:
    """Train or resume. `kill_at`: the step after which, and the delay in seconds, to be killed."""
    task = create_small_task(folder, **settings)
    paths = sorted((folder / "runs").glob("[!.]*"))
    run = Run.reopen(paths[-1]) if paths else create_small_run(task, folder)
    reached = threading.Event()

    def on_step(progress: TrainingProgress) -> None:
        if kill_at is not None and progress.step >= kill_at[0]:
            reached.set()

    if kill_at is not None:
        threading.Thread(target=_kill_after, args=(reached, kill_at[1]), daemon=True).start()
        if kill_at[0] == 0:
            reached.set()
    fit(task, run, on_step=on_step)
    (folder.parent / "modules.txt").write_text("\n".join(sys.modules))


def _kill_after(reached: threading.Event, seconds: float) -> None:
    reached.wait()
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def run_forked(work: partial[None]) -> int:
    """Run a function in a forked process; its exit code, or minus the signal number."""
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run_case(folder: Path, seed: int, kills: int, settings: dict) -> int:
    """Train one undisturbed run, and one that is killed at random instants; the number of kills."""
    folder.mkdir()
    start_time = time.monotonic()
    assert run_forked(partial(train, folder, settings, None)) == 0
    seconds_per_step = (time.monotonic() - start_time) / settings["steps"]
    load(folder.parent / "modules.txt")
    (folder / "runs").rename(folder / "undisturbed")
    generator, killed = random.Random(seed), 0
    # the first kill comes before the first step; each later one at a later step
    kill_steps = [0, *sorted(generator.sample(range(1, settings["steps"] * 9 // 10), kills - 1))]
    for kill_step in kill_steps:
        kill_at = (kill_step, generator.uniform(0, 3 * seconds_per_step))
        killed += run_forked(partial(train, folder, settings, kill_at)) == -signal.SIGKILL
    assert run_forked(partial(train, folder, settings, None)) == 0
    return killed


def main() -> None:
    """Run all cases of the command line."""
    folder, *arguments = sys.argv[1:]
    load()
    for number in range(len(arguments) // 3):
        seed, kills, settings = arguments[3 * number : 3 * number + 3]
        killed = run_case(Path(folder) / str(number), int(seed), int(kills), json.loads(settings))
        print(killed, flush=True)


if __name__ == "__main__":
    main()
