"""SIGTERM and Ctrl-C: the step is finished and saved, and the run says how to go on."""

from __future__ import annotations

import re
import signal
import time

from neural.tracking.run import Run
from tests.faults.survival._bench import STEPS, Bench, Survived, wait_until


def survive(bench: Bench) -> Survived:
    """Stop in the middle, look, go on; every third time twice: at once."""
    lost, said, twice = [0], "", 0
    for turn in range(bench.rounds):
        number, hasty = (signal.SIGTERM, signal.SIGINT)[turn % 2], turn % 3 == 2
        runs = bench.fresh("stopped")
        attempt, step = bench.train(runs), bench.chance.randrange(1, STEPS - 3)
        wait_until(lambda: attempt.made >= step or attempt.poll() is not None, "a step")   # noqa: B023 (called here)
        time.sleep(bench.chance.uniform(0, 0.05))
        attempt.send(number)
        if hasty:
            time.sleep(0.01)   # two signals that wait together are taken in the order of their numbers
            attempt.send(signal.SIGINT)
        code, text = attempt.ended()
        run = bench.run_in(runs)
        bench.expect(code == 130, f"{number.name}: exit code {code}")
        bench.clear(text, "--resume", run.name)
        with Run.open(run) as found:
            state, checkpoint = found.status.state, found.restore()
        bench.expect(state == "stopped", f"{number.name}: its state is {state}")
        reached = checkpoint.step if checkpoint else 0
        if "at once" in text:
            twice += 1
        else:
            bench.expect(reached == attempt.made, f"{number.name}: step {attempt.made} was made, {reached} saved")
            lost.append(attempt.made - reached)
            said = re.sub(r"\S*/(\S*survivor|\S*tiny)", "RUN", "; ".join(text.strip().splitlines()[-2:]))
        ended = bench.resume(run).ended()
        if bench.expect(ended.code == 0, f"after {number.name}: {ended.text[-1500:]}"):
            bench.same(run, f"after {number.name}", but="checkpoints")   # there was one more, where it stopped
    return Survived(
        rounds=bench.rounds,
        checked=f"exit code 130, state `stopped`, saved at the very step ({twice} were asked twice: stopped at once, "
        "back to the checkpoint); `--resume` ends bit for bit as undisturbed",
        lost=f"{max(lost)} steps", said=said,
    )  # fmt: skip
