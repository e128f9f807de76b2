"""Trains in a process of its own and kills itself, as hard as can be, at the instants it is told: see test_resume.py.

    python -m tests.training.killed FOLDER SEED KILLS SETTINGS

Starts once; every attempt is a forked child, so that the imports are paid for once. Prints the run's folder.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from neural.tracking.run import Run
from neural.training.engine import fit
from tests.training.programs import begun, small


def attempt(folder: Path, path: Path | None, settings: dict, seconds: float | None) -> None:
    """Train, or go on; die after so many seconds of it."""
    task = small(folder, **settings)
    run = begun(task, folder) if path is None else Run.reopen(path)
    if seconds is not None:
        def die() -> None:
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=die, daemon=True).start()
    fit(task, run)


def main() -> None:
    """Kill so many times, at random instants, then let it end."""
    folder, seed, kills, settings = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
    chance, path, died = random.Random(seed), None, 0
    span = None
    while True:
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            limit = chance.uniform(0.02, 0.9) * span / 3 if span is not None and died < kills else None
            attempt(folder, path, settings, limit)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        chance.random()
        if span is None:   # the first one was not killed: it says how long it takes
            assert status == 0
            span = time.monotonic() - started
            print(next(iter((folder / "runs").iterdir())), flush=True)
            (folder / "runs").rename(folder / "straight")
            continue
        made = sorted((folder / "runs").glob("[!.]*")) if (folder / "runs").exists() else []
        path = made[-1] if made else None
        if status == 0:
            break
        assert os.WIFSIGNALED(status), status
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        died += 1
    print(died, flush=True)


if __name__ == "__main__":
    main()
