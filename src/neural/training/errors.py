"""Errors during training: what happened at which step, what is saved, what to try."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from neural.core.errors import EXIT_FAILED, NeuralError
from neural.core.experiment import TrainingSettings
from neural.runs.run import Run

OUT_OF_MEMORY_MESSAGES = (
    "out of memory",
    "can't allocate memory",
    "Cannot allocate memory",
    "not enough memory",
)
"""If a RuntimeError contains one of these texts, memory ran out. (On the CPU torch raises a plain
RuntimeError; its class OutOfMemoryError, a subclass, is for accelerators only.)"""


class TrainingError(NeuralError, RuntimeError):
    """Training failed; saved checkpoints remain."""

    exit_code = EXIT_FAILED


class DivergenceError(TrainingError):
    """The loss or the gradient norm is NaN or infinite."""


class OutOfMemoryError(TrainingError):
    """There was not enough memory for a step."""


@contextmanager
def translate_memory_errors(run: Run | None, settings: TrainingSettings) -> Iterator[None]:
    """Turn out-of-memory errors inside the block into OutOfMemoryError, with advice.

    `run` is None on ranks other than 0: only rank 0 writes the run.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not (
            isinstance(error, MemoryError)
            or any(text in str(error) for text in OUT_OF_MEMORY_MESSAGES)
        ):
            raise
        # `last_step` is the last completed step, so the error is in the next one
        location = (
            f" at step {run.last_step + 1}; {describe_last_checkpoint(run)}"
            if run is not None
            else ""
        )
        raise OutOfMemoryError(
            f"out of memory{location}. Halve `training.batch_size` ({settings.batch_size} now) and "
            "double `training.gradient_accumulation_steps`, set "
            "`training.gradient_checkpointing=true`, or stop other programs that use memory"
        ) from error


def describe_last_checkpoint(run: Run) -> str:
    """Say of which step the newest checkpoint is, as a clause of an error message."""
    checkpoints = run.checkpoints()
    return (
        f"the last good checkpoint is of step {checkpoints[-1].step}"
        if checkpoints
        else "there is no checkpoint yet"
    )
