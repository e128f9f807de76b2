"""Trains in processes that are killed, as hard as can be, at random instants: see test_resume.py.

    python -m tests.training.killed FOLDER SEED KILLS SETTINGS [SEED KILLS SETTINGS …]

Every attempt is a forked child; what the first one imports is imported here too, so that it is paid for once. FOLDER
gets a folder per case, 0 and on: `straight` has the run that was left alone, `runs` the one that was killed. Prints
how often each was.
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

from neural.tracking.run import Run
from neural.training.engine import Progress, fit
from tests.faults.survival._process import load
from tests.training.programs import begun, small


def attempt(folder: Path, settings: dict, death: tuple[int, float] | None) -> None:
    """Train, or go on; die so many seconds after that step."""
    task = small(folder, **settings)
    made = sorted((folder / "runs").glob("[!.]*"))
    run = Run.reopen(made[-1]) if made else begun(task, folder)
    waiting = threading.Event()

    def tell(progress: Progress) -> None:
        if death is not None and progress.step >= death[0]:
            waiting.set()

    if death is not None:
        threading.Thread(target=_die, args=(waiting, death[1]), daemon=True).start()
        if death[0] == 0:
            waiting.set()
    fit(task, run, tell=tell)
    (folder.parent / "modules.txt").write_text("\n".join(sys.modules))


def _die(waiting: threading.Event, seconds: float) -> None:
    waiting.wait()
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def forked(does: partial[None]) -> int:
    """What became of it in a process of its own: its exit code, or minus the signal."""
    child = os.fork()
    if child == 0:
        does()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def case(folder: Path, seed: int, kills: int, settings: dict) -> int:
    """One run that is left alone, and one that is killed so many times at random instants, then left alone."""
    folder.mkdir()
    begun_at = time.monotonic()
    assert forked(partial(attempt, folder, settings, None)) == 0
    step = (time.monotonic() - begun_at) / settings["steps"]
    load(folder.parent / "modules.txt")
    (folder / "runs").rename(folder / "straight")
    chance, died = random.Random(seed), 0
    # the first one before its first step; each a bit further than the last
    for after in [0, *sorted(chance.sample(range(1, settings["steps"] * 9 // 10), kills - 1))]:
        died += forked(partial(attempt, folder, settings, (after, chance.uniform(0, 3 * step)))) == -signal.SIGKILL
    assert forked(partial(attempt, folder, settings, None)) == 0
    return died


def main() -> None:
    """All cases."""
    folder, *words = sys.argv[1:]
    load()
    for number in range(len(words) // 3):
        seed, kills, settings = words[3 * number : 3 * number + 3]
        print(case(Path(folder) / str(number), int(seed), int(kills), json.loads(settings)), flush=True)


if __name__ == "__main__":
    main()
