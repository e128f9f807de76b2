"""SIGTERM and Ctrl-C: the step is completed and saved, and a message says how to resume."""

from __future__ import annotations

import re
import signal
import time

from neural.runs.run import Run
from tests.faults.survival._bench import STEPS, Bench, SurvivalResult, wait_until


def survive(bench: Bench) -> SurvivalResult:
    """Stop, check, resume; every third round with a second signal, which stops immediately."""
    lost, message, immediate = [0], "", 0
    for round_index in range(bench.rounds):
        number, is_repeated = (signal.SIGTERM, signal.SIGINT)[round_index % 2], round_index % 3 == 2
        runs = bench.create_folder("stopped")
        attempt, step = bench.train(runs), bench.rng.randrange(1, STEPS - 3)
        wait_until(lambda: attempt.last_step >= step or attempt.poll() is not None, "a step")  # noqa: B023 (called here)
        time.sleep(bench.rng.uniform(0, 0.05))
        attempt.send(number)
        if is_repeated:
            time.sleep(0.01)  # pending signals are delivered in the order of their numbers
            attempt.send(signal.SIGINT)
        code, text = attempt.wait_for_end()
        run = bench.find_only_run(runs)
        bench.expect(code == 130, f"{number.name}: exit code {code}")
        bench.expect_message(text, "--resume", run.name)
        with Run.open(run) as reader:
            state, checkpoint = reader.status.state, reader.load_checkpoint()
        bench.expect(state == "stopped", f"{number.name}: its state is {state}")
        reached = checkpoint.step if checkpoint else 0
        if "at once" in text:
            immediate += 1
        else:
            bench.expect(
                reached == attempt.last_step,
                f"{number.name}: the last step is {attempt.last_step}, {reached} is saved",
            )
            lost.append(attempt.last_step - reached)
            message = re.sub(
                r"\S*/(\S*survivor|\S*tiny)", "RUN", "; ".join(text.strip().splitlines()[-2:])
            )
        result = bench.resume(run).wait_for_end()
        if bench.expect(result.code == 0, f"after {number.name}: {result.text[-1500:]}"):
            # there is one more checkpoint, at the step of the stop
            bench.expect_same(run, f"after {number.name}", ignore="checkpoints")
    return SurvivalResult(
        rounds=bench.rounds,
        checked=f"exit code 130, state `stopped`, saved at the same step ({immediate} got two signals: stopped at once, "
        "back to the checkpoint); `--resume` ends bit for bit as undisturbed",
        lost=f"{max(lost)} steps",
        message=message,
    )
