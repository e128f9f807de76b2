"""The disk is full: at the start, at a checkpoint, at a row; then there is room again."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from neural.tracking.run import Run
from tests.faults.survival._bench import SAVED_EVERY, Bench, Survived
from tests.faults.survival._disk import changed, small_disk

LEAST, MOST = 64, 2_600
"""Kilobytes: from no room for a folder to room for all but the last checkpoints."""
OPERATIONS = 90


def survive(bench: Bench) -> Survived:
    """Fill the disk at some point, make room, go on."""
    lost, said, early, way = [0], dict[str, str](), 0, ""
    for turn in range(bench.rounds):
        runs = bench.fresh("full")
        size = LEAST + round((MOST - LEAST) * (turn + bench.chance.random()) / bench.rounds)
        with small_disk(runs, f"{size}k") as mounted:
            way = "a tmpfs that fills up" if mounted else "calls that fail, since nothing may be mounted"
            at = partial(bench.breaker.at, runs, bench.chance.randrange(1, OPERATIONS), "full")
            attempt = bench.train(runs, before=None if mounted else at)
            code, text = attempt.ended()
            bench.expect(code == 2, f"on a full disk of {size} kB the exit code is {code}")
            bench.clear(text, "full" if "space left" not in text else "space left", runs)
            run = next(runs.glob("[!.]*"), None)
            message = bench.message(text, run)
            said[re.sub(r"\d", "", message)] = message   # which step it was makes no other message
            if mounted:
                changed(runs, "size=50m")
            early += run is None
            lost.append(_goes_on(bench, runs, run, attempt.made, attempt.saved))
        if bench.broken:
            break
    return Survived(
        rounds=bench.rounds,
        checked=f"exit code 2, the last checkpoint intact, nothing half made ({early} could not begin); "
        "with room again, `--resume` ends bit for bit as undisturbed",
        lost=f"{max(lost)} steps of the {SAVED_EVERY} between checkpoints",
        said="; ".join(said.values()),
        how=way,
    )  # fmt: skip


def _goes_on(bench: Bench, runs: Path, path: Path | None, made: int, saved: int) -> int:
    """Resume, or begin where there was no room to begin; the steps that were lost."""
    step = 0
    if path is None:
        bench.expect(not list(runs.iterdir()), "half a run was left behind")
        ended = bench.train(runs).ended()
    else:
        with Run.open(path) as run:
            checkpoint, state = run.restore(), run.status.state
        step = checkpoint.step if checkpoint else 0
        bench.expect(step >= saved, f"the checkpoint of step {saved} is gone")
        bench.expect(state in ("failed", "lost"), f"its state is {state}")
        ended = bench.resume(path).ended()
    if bench.expect(ended.code == 0, f"with room again: {ended.code}, {ended.text[-1500:]}"):
        bench.same(bench.run_in(runs), "after a full disk")
    return made - step
