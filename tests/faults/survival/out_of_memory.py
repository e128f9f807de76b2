"""Out of memory inside a step: errors of Python, of torch, and a batch that is really too large."""

from __future__ import annotations

import resource
from functools import partial

from neural.nn.lazy_torch import torch
from neural.runs.run import Run
from neural.tasks.language_model.task import LanguageModel
from tests.faults.survival._bench import CHECKPOINT_EVERY, STEPS, Bench, SurvivalResult

ERRORS = {
    "Python": lambda: MemoryError(),
    "a graphics card": lambda: torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB."
    ),
    "torch": lambda: RuntimeError(
        "[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 123456789012 bytes. Error code 12 (Cannot allocate memory)"
    ),
}
MAX_MEMORY_BYTES = 6 << 30
"""Address space that is too small for batches of a million windows."""


def survive(bench: Bench) -> SurvivalResult:
    """Run out of memory at a step, then resume with enough."""
    message, lost = "", [0]
    for round_index in range(bench.rounds):
        kind, step = list(ERRORS)[round_index % len(ERRORS)], bench.rng.randrange(2, STEPS)
        runs = bench.create_folder("memory")
        attempt = bench.train(runs, before=partial(_raise_at, step, ERRORS[kind]))
        code, text = attempt.wait_for_end()
        run = bench.find_only_run(runs)
        bench.expect(code == 1, f"out of memory, an error of {kind}: exit code {code}")
        bench.expect_message(text, "memory", "batch_size", f"step {step}")
        message = bench.extract_message(text, run)
        with Run.open(run) as reader:
            bench.expect(reader.status.state == "failed", f"its state is {reader.status.state}")
            checkpoint = reader.load_checkpoint()
        lost.append(attempt.last_step - (checkpoint.step if checkpoint else 0))
        result = bench.resume(run).wait_for_end()
        if bench.expect(result.code == 0, f"with enough memory again: {result.text[-1500:]}"):
            bench.expect_same(run, "after it ran out of memory")
    code, text = bench.train(
        bench.create_folder("memory"), before=_limit_memory, training__batch_size=1_000_000
    ).wait_for_end()
    bench.expect(code == 1, f"a batch that is too large: exit code {code}")
    bench.expect_message(text, "memory", "batch_size")
    return SurvivalResult(
        rounds=bench.rounds + 1,
        checked="exit code 1, state `failed`; `--resume` ends bit for bit as undisturbed; one batch was too large",
        lost=f"{max(lost)} steps of the {CHECKPOINT_EVERY} between checkpoints",
        message=message,
    )


def _raise_at(step: int, error) -> None:
    """Patch the task to raise instead of returning the batch of that step."""
    batch = LanguageModel.batch

    def batch_or_raise(task, index: int):
        if index == step - 1:
            raise error()
        return batch(task, index)

    LanguageModel.batch = batch_or_raise


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
