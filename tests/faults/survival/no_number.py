"""A loss that is no number: a rate far too large, for real."""

from __future__ import annotations

from neural.tracking.run import Run
from tests.faults.survival._bench import Bench, Survived


def survive(bench: Bench) -> Survived:
    """Let it diverge."""
    runs = bench.fresh("diverged")
    attempt = bench.train(runs, training__optimizer="AdamW", training__learning_rate="1e30", architecture="classic",
                          training__checkpoint_every=1)  # fmt: skip
    code, text = attempt.ended()
    run = bench.run_in(runs)
    bench.expect(code == 1, f"a loss that is no number: exit code {code}")
    bench.clear(text, "step", "smaller learning rate")
    with Run.open(run) as found:
        bench.expect(found.status.state == "failed", f"its state is {found.status.state}")
        bench.expect([kind for _, kind, _, _ in found.events()] == ["diverged"], "there is no event `diverged`")
        bench.expect(all(value == value for _, _, value in found.rows()), "a row is no number")
        checkpoint = found.restore()
        bench.expect((checkpoint.step if checkpoint else 0) == attempt.made, "a good step was not kept")
    return Survived(
        rounds=1, checked="exit code 1, state `failed`, an event `diverged`; no step is taken with it, no row written",
        lost="0 steps", said=bench.message(text, run),
    )  # fmt: skip
