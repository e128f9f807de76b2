"""A training is copied while it runs, by copies that are killed; it dies, and the copy resumes."""

from __future__ import annotations

import signal
import time
from functools import partial

from neural.runs.run import Run
from tests.faults.survival._bench import CHECKPOINT_EVERY, STEPS, Bench, SurvivalResult, wait_until

MAX_OPERATION = 120
"""A copy has about this many file operations."""


def survive(bench: Bench) -> SurvivalResult:
    """Copy at a random step, kill most copies, kill the training, resume from the copy."""
    copies, kills, lost = 0, 0, [0]
    for _ in range(bench.rounds):
        runs, target = bench.create_folder("copied"), bench.create_folder("copies")
        attempt, last_step = bench.train(runs), bench.rng.randrange(1, STEPS - 1)
        wait_until(lambda: attempt.last_step > 0 or attempt.poll() is not None, "a step")  # noqa: B023 (called here)
        run = bench.find_only_run(runs)
        while attempt.last_step < last_step and attempt.poll() is None:
            operation = bench.rng.randrange(1, MAX_OPERATION)
            mode = bench.rng.choice(["kill", "half"])
            break_copy = partial(bench.breaker.break_at, target, operation, mode)
            copying = bench.run_neural("runs", "copy", run, target, before=break_copy)
            if bench.rng.random() < 0.3:
                time.sleep(bench.rng.uniform(0, 0.5))
                copying.kill()
            code, text = copying.wait_for_end()
            copies, kills = copies + 1, kills + (code == -signal.SIGKILL)
            bench.expect(code in (0, -signal.SIGKILL), f"a copy ended with {code}: {text[-900:]}")
            for path in target.glob("[!.]*"):
                with Run.open(path) as copy:
                    checkpoint = copy.load_checkpoint()
                    copy.scalar_rows()
                    bench.expect(
                        not (checkpoint and checkpoint.skipped), "a checkpoint of a copy is damaged"
                    )
        code, text = bench.run_neural("runs", "copy", run, target).wait_for_end()
        copies += 1
        bench.expect(code == 0, f"the last copy ended with {code}: {text[-900:]}")
        saved_step = attempt.saved_step
        attempt.kill()
        attempt.wait_for_end()
        copy = bench.find_only_run(target)
        bench.expect(not list(target.glob(".*")), f"left behind: {list(target.glob('.*'))}")
        with Run.open(copy) as reader:
            checkpoint = reader.load_checkpoint()
        lost.append(saved_step - (checkpoint.step if checkpoint else 0))
        result = bench.resume(copy).wait_for_end()
        if bench.expect(result.code == 0, f"the copy does not resume: {result.text[-1500:]}"):
            bench.expect_same(copy, "resumed from a copy")
    return SurvivalResult(
        rounds=bench.rounds,
        checked=f"{copies} copies of running trainings, {kills} of them killed before a file operation, in a write or "
        "at a random moment: the target is absent or readable after each; the training is killed, and `--resume` of "
        "the copy ends bit for bit as undisturbed",
        lost=f"{max(lost)} steps between the last checkpoint and that of the copy ({CHECKPOINT_EVERY} apart)",
        message="no message is possible",
    )
