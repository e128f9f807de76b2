"""SIGKILL at random moments, before random file operations and in the middle of random writes, again and again."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path
from statistics import median

from neural.tracking.run import Run
from tests.faults.survival._bench import SAVED_EVERY, Bench, Survived, wait_until
from tests.faults.survival._process import Attempt

PART = 0.4
"""Of the operations of a whole training: that far an attempt comes at most, where they decide."""
AHEAD = 12
"""Steps that an attempt makes at most, where time decides."""


def survive(bench: Bench) -> Survived:
    """Kill, look at what is left, go on; a run that was finished is compared, and another one begun."""
    kinds, lost, until, runs, run = Counter[str](), [0], list[float](), 0, None
    places, folder = _places(bench), bench.fresh("killed")
    while True:
        how = bench.chance.choice(["moment", "kill", "half"]) if kinds.total() < bench.rounds else "no"
        attempt = _attempt(bench, folder, run, how, places)
        code, text = attempt.ended()
        until += [attempt.until_a_step] * (attempt.made > 0)
        if code == -signal.SIGKILL:
            kinds[how] += 1
            run = next(folder.glob("[!.]*"), None)
            if run is not None:
                lost.append(_lost(bench, run, attempt))
            elif attempt.made:
                bench.expect(False, "the run has vanished")
            continue
        if not bench.expect(code == 0, f"the attempt after {kinds.total()} kills ended with {code}: {text[-1500:]}"):
            break
        bench.same(bench.run_in(folder), f"after {kinds.total()} kills")
        runs += 1
        shutil.rmtree(folder)
        folder, run = bench.fresh("killed"), None
        if how == "no" or bench.broken:
            break
    bench.expect(max(lost) <= SAVED_EVERY, f"{max(lost)} steps lost, with a checkpoint every {SAVED_EVERY}")
    return Survived(
        rounds=kinds.total(),
        checked=f"{kinds['moment']} at a random moment, {kinds['kill']} before a file operation, {kinds['half']} in "
        f"one; {runs} runs ended with rows, measures, maps, weights and optimizer bit for bit as undisturbed",
        lost=f"{max(lost)} steps of the {SAVED_EVERY} between checkpoints; "
        f"the next step came after {median(until):.1f} s, {max(until):.1f} s at most",
        said="nothing can be said; `neural runs` says `lost`",
    )  # fmt: skip


def _places(bench: Bench) -> list[tuple[int, int]]:
    """The file operations of a training by their numbers, those of one long write together: first and last."""
    folder = bench.fresh("killed")
    bench.expect(bench.train(folder, before=partial(_count, bench, folder)).ended().code == 0, "it did not end")
    kinds = (bench.folder / "kinds.txt").read_text()
    return [(one.start() + 1, one.end()) for one in re.finditer("w+|.", kinds) if one.end() <= PART * len(kinds)]


def _count(bench: Bench, folder: Path) -> None:
    """In the process: say at the end what its file operations were."""
    bench.breaker.at(folder, 0, "kill")
    finish = Run.finish

    def finishes(run: Run, *rest: str) -> None:
        finish(run, *rest)
        (bench.folder / "kinds.txt").write_text(bench.breaker.kinds())

    Run.finish = finishes


def _attempt(bench: Bench, folder: Path, run: Path | None, how: str, places: list[tuple[int, int]]) -> Attempt:
    """Start, and kill as chance has it."""
    before = None
    if how in ("kill", "half"):
        before = partial(bench.breaker.at, folder, bench.chance.randint(*bench.chance.choice(places)), how)
    attempt = bench.train(folder, before=before) if run is None else bench.resume(run, before=before)
    if how == "moment":   # some while it starts, most somewhere in a step or between two
        step, pause = bench.chance.randrange(AHEAD), bench.chance.uniform(0, 0.2)
        wait_until(lambda: attempt.done >= step or attempt.poll() is not None, "a step")
        time.sleep(pause)
        attempt.kill()
    return attempt


def _lost(bench: Bench, path: Path, attempt: Attempt) -> int:
    """Steps that will be made again; expects the folder to be whole."""
    with Run.open(path) as run:
        checkpoint = run.restore()
        bench.expect(run.status.state in ("lost", "finished"), f"killed, and its state is {run.status.state}")
        bench.expect(not (checkpoint and checkpoint.skipped), "a checkpoint was damaged by a kill")
        step = checkpoint.step if checkpoint else 0
        bench.expect(step >= attempt.saved, f"the checkpoint of step {attempt.saved} is gone; there is {step}")
    return max(0, attempt.made - step)
