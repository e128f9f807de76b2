"""The disk is full: at the start, at a checkpoint, at a row; then there is space again."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from neural.runs.run import Run
from tests.faults.survival._bench import CHECKPOINT_EVERY, Bench, SurvivalResult
from tests.faults.survival._disk import remount, small_disk

MIN_KILOBYTES, MAX_KILOBYTES = 64, 2_600
"""From no space for a folder to space for all but the last checkpoints."""
MAX_OPERATION = 90


def survive(bench: Bench) -> SurvivalResult:
    """Fill the disk at some point, make space, resume."""
    lost, messages, early, method = [0], dict[str, str](), 0, ""
    for round_index in range(bench.rounds):
        runs = bench.create_folder("full")
        share = (round_index + bench.rng.random()) / bench.rounds
        size = MIN_KILOBYTES + round((MAX_KILOBYTES - MIN_KILOBYTES) * share)
        with small_disk(runs, f"{size}k") as mounted:
            method = (
                "a tmpfs that fills up"
                if mounted
                else "calls that fail, because mounting is not permitted"
            )
            operation = bench.rng.randrange(1, MAX_OPERATION)
            break_disk = partial(bench.breaker.break_at, runs, operation, "full")
            attempt = bench.train(runs, before=None if mounted else break_disk)
            code, text = attempt.wait_for_end()
            expected_code = 1 if attempt.last_step else 2  # nothing was trained yet
            bench.expect(
                code == expected_code, f"on a full disk of {size} kB the exit code is {code}"
            )
            bench.expect_message(text, "full" if "space left" not in text else "space left", runs)
            run = next(runs.glob("[!.]*"), None)
            message = bench.extract_message(text, run)
            messages[re.sub(r"\d", "", message)] = message  # one per message, whatever its step
            if mounted:
                remount(runs, "size=50m")
            early += run is None
            lost.append(_resume(bench, runs, run, attempt.last_step, attempt.saved_step))
        if bench.failures:
            break
    return SurvivalResult(
        rounds=bench.rounds,
        checked=f"exit code 1, the last checkpoint intact, no partial files ({early} could not start: 2); "
        "with space again, `--resume` ends bit for bit as undisturbed",
        lost=f"{max(lost)} steps of the {CHECKPOINT_EVERY} between checkpoints",
        message="; ".join(messages.values()),
        method=method,
    )


def _resume(bench: Bench, runs: Path, path: Path | None, last_step: int, saved_step: int) -> int:
    """Resume, or start again if there was no space to start; returns the number of lost steps."""
    step = 0
    if path is None:
        bench.expect(not list(runs.iterdir()), "a partial run was left behind")
        result = bench.train(runs).wait_for_end()
    else:
        with Run.open(path) as run:
            checkpoint, state = run.load_checkpoint(), run.status.state
        step = checkpoint.step if checkpoint else 0
        bench.expect(step >= saved_step, f"the checkpoint of step {saved_step} is gone")
        bench.expect(state in ("failed", "lost"), f"its state is {state}")
        result = bench.resume(path).wait_for_end()
    if bench.expect(result.code == 0, f"with space again: {result.code}, {result.text[-1500:]}"):
        bench.expect_same(bench.find_only_run(runs), "after a full disk")
    return last_step - step
