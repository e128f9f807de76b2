"""SIGKILL at random moments, before random file operations and inside random writes."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path
from statistics import median

from neural.runs.run import Run
from tests.faults.survival._bench import CHECKPOINT_EVERY, Bench, SurvivalResult, wait_until
from tests.faults.survival._process import Attempt

MAX_OPERATION_SHARE = 0.4
"""An attempt killed at an operation gets at most this far in the operations of a training."""
MAX_STEPS = 12
"""An attempt killed at a moment makes at most this many steps."""


def survive(bench: Bench) -> SurvivalResult:
    """Kill, check the run, resume; compare a finished run, and start another."""
    kinds, lost, delays, runs, run = Counter[str](), [0], list[float](), 0, None
    operations, folder = _list_operations(bench), bench.create_folder("killed")
    while True:
        mode = (
            bench.rng.choice(["moment", "kill", "half"]) if kinds.total() < bench.rounds else "no"
        )
        attempt = _attempt(bench, folder, run, mode, operations)
        code, text = attempt.wait_for_end()
        delays += [attempt.seconds_to_first_step] * (attempt.last_step > 0)
        if code == -signal.SIGKILL:
            kinds[mode] += 1
            run = next(folder.glob("[!.]*"), None)
            if run is not None:
                lost.append(_count_lost_steps(bench, run, attempt))
            elif attempt.last_step:
                bench.expect(False, "the run has vanished")
            continue
        if not bench.expect(
            code == 0, f"the attempt after {kinds.total()} kills ended with {code}: {text[-1500:]}"
        ):
            break
        bench.expect_same(bench.find_only_run(folder), f"after {kinds.total()} kills")
        runs += 1
        shutil.rmtree(folder)
        folder, run = bench.create_folder("killed"), None
        if mode == "no" or bench.failures:
            break
    bench.expect(
        max(lost) <= CHECKPOINT_EVERY,
        f"{max(lost)} steps lost, with a checkpoint every {CHECKPOINT_EVERY}",
    )
    return SurvivalResult(
        rounds=kinds.total(),
        checked=f"{kinds['moment']} at a random moment, {kinds['kill']} before a file operation, {kinds['half']} in "
        f"one; {runs} runs ended with rows, measures, maps, weights and optimizer bit for bit as undisturbed",
        lost=f"{max(lost)} steps of the {CHECKPOINT_EVERY} between checkpoints; "
        f"the next step came after {median(delays):.1f} s, {max(delays):.1f} s at most",
        message="no message is possible; `neural runs` shows `lost`",
    )


def _list_operations(bench: Bench) -> list[tuple[int, int]]:
    """Numbers of the file operations of a training: (first, last), one long write together."""
    folder = bench.create_folder("killed")
    bench.expect(
        bench.train(folder, before=partial(_record_operations, bench, folder)).wait_for_end().code
        == 0,
        "it did not end",
    )
    kinds = (bench.folder / "kinds.txt").read_text()
    return [
        (match.start() + 1, match.end())
        for match in re.finditer("w+|.", kinds)
        if match.end() <= MAX_OPERATION_SHARE * len(kinds)
    ]


def _record_operations(bench: Bench, folder: Path) -> None:
    """In the child: write the kinds of its file operations at the end."""
    bench.breaker.break_at(folder, 0, "kill")
    finish = Run.finish

    def finish_and_record(run: Run, *args: str) -> None:
        finish(run, *args)
        (bench.folder / "kinds.txt").write_text(bench.breaker.operation_kinds())

    Run.finish = finish_and_record


def _attempt(
    bench: Bench, folder: Path, run: Path | None, mode: str, operations: list[tuple[int, int]]
) -> Attempt:
    """Start or resume, and kill at random."""
    before = None
    if mode in ("kill", "half"):
        before = partial(
            bench.breaker.break_at, folder, bench.rng.randint(*bench.rng.choice(operations)), mode
        )
    attempt = (
        bench.train(folder, before=before) if run is None else bench.resume(run, before=before)
    )
    if mode == "moment":  # sometimes during startup, mostly inside or between steps
        step, pause = bench.rng.randrange(MAX_STEPS), bench.rng.uniform(0, 0.2)
        wait_until(lambda: attempt.step_count >= step or attempt.poll() is not None, "a step")
        time.sleep(pause)
        attempt.kill()
    return attempt


def _count_lost_steps(bench: Bench, path: Path, attempt: Attempt) -> int:
    """Number of steps to repeat; checks the folder."""
    with Run.open(path) as run:
        checkpoint = run.load_checkpoint()
        bench.expect(
            run.status.state in ("lost", "finished"), f"killed, and its state is {run.status.state}"
        )
        bench.expect(not (checkpoint and checkpoint.skipped), "a checkpoint was damaged by a kill")
        step = checkpoint.step if checkpoint else 0
        bench.expect(
            step >= attempt.saved_step,
            f"the checkpoint of step {attempt.saved_step} is gone; there is {step}",
        )
    return max(0, attempt.last_step - step)
