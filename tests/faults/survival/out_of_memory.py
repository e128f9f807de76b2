"""No memory left inside a step: as Python says it, as torch says it, and a batch that is really too large."""

from __future__ import annotations

import resource
from functools import partial

from neural.modules.late import torch
from neural.tasks.language_model import LanguageModel
from neural.tracking.run import Run
from tests.faults.survival._bench import SAVED_EVERY, STEPS, Bench, Survived

ERRORS = {
    "Python": lambda: MemoryError(),
    "a graphics card": lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    "torch": lambda: RuntimeError("[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: "
                                  "you tried to allocate 123456789012 bytes. Error code 12 (Cannot allocate memory)"),
}  # fmt: skip
ROOM = 6 << 30
"""Bytes of address space that a training with batches of a million windows does not fit into."""


def survive(bench: Bench) -> Survived:
    """Run out of memory at a step, then go on where there is enough."""
    said, lost = "", [0]
    for turn in range(bench.rounds):
        kind, step = list(ERRORS)[turn % len(ERRORS)], bench.chance.randrange(2, STEPS)
        runs = bench.fresh("memory")
        attempt = bench.train(runs, before=partial(_raise_at, step, ERRORS[kind]))
        code, text = attempt.ended()
        run = bench.run_in(runs)
        bench.expect(code == 1, f"out of memory, as {kind} says it: exit code {code}")
        bench.clear(text, "memory", "batch_size", f"step {step}")
        said = bench.message(text, run)
        with Run.open(run) as found:
            bench.expect(found.status.state == "failed", f"its state is {found.status.state}")
            checkpoint = found.restore()
        lost.append(attempt.made - (checkpoint.step if checkpoint else 0))
        ended = bench.resume(run).ended()
        if bench.expect(ended.code == 0, f"with enough memory again: {ended.text[-1500:]}"):
            bench.same(run, "after it ran out of memory")
    code, text = bench.train(bench.fresh("memory"), before=_little_memory, training__batch_size=1_000_000).ended()
    bench.expect(code == 1, f"a batch that is too large: exit code {code}")
    bench.clear(text, "memory", "batch_size")
    return Survived(
        rounds=bench.rounds + 1,
        checked="exit code 1, state `failed`; `--resume` ends bit for bit as undisturbed; one batch was too large",
        lost=f"{max(lost)} steps of the {SAVED_EVERY} between checkpoints", said=said,
    )  # fmt: skip


def _raise_at(step: int, error) -> None:
    """In place of the batch of that step, which is the number before it."""
    batch = LanguageModel.batch

    def batches(task, number: int):
        if number == step - 1:
            raise error()
        return batch(task, number)

    LanguageModel.batch = batches


def _little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
