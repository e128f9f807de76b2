"""A NaN loss, caused by a learning rate that is far too large."""

from __future__ import annotations

from neural.runs.run import Run
from tests.faults.survival._bench import Bench, SurvivalResult


def survive(bench: Bench) -> SurvivalResult:
    """Let the training diverge."""
    runs = bench.create_folder("diverged")
    attempt = bench.train(
        runs,
        training__optimizer="AdamW",
        training__learning_rate="1e6",
        architecture="classic",
        training__checkpoint_every=1,
    )
    code, text = attempt.wait_for_end()
    run = bench.find_only_run(runs)
    bench.expect(code == 1, f"a NaN loss: exit code {code}")
    bench.expect_message(text, "step", "smaller learning rate")
    with Run.open(run) as reader:
        bench.expect(reader.status.state == "failed", f"its state is {reader.status.state}")
        bench.expect(
            [kind for _, kind, _, _ in reader.events()] == ["diverged"],
            "there is no event `diverged`",
        )
        bench.expect(all(value == value for _, _, value in reader.scalar_rows()), "a row is NaN")
        checkpoint = reader.load_checkpoint()
        bench.expect(
            (checkpoint.step if checkpoint else 0) == attempt.last_step, "a good step was not saved"
        )
    return SurvivalResult(
        rounds=1,
        checked="exit code 1, state `failed`, an event `diverged`; no optimizer step with it, no row written",
        lost="0 steps",
        message=bench.extract_message(text, run),
    )
