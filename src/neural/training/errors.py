"""Errors during training: what happened at which step, what is saved, what to try."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from neural.core.experiment import TrainingSettings
from neural.runs.run import Run

OUT_OF_MEMORY_MESSAGES = (
    "out of memory",
    "can't allocate memory",
    "Cannot allocate memory",
    "not enough memory",
)
"""Texts in the RuntimeErrors of torch: only on GPUs has it an error class for lack of memory."""


class TrainingError(RuntimeError):
    """Training failed; saved checkpoints remain."""


class DivergenceError(TrainingError):
    """The loss or the gradient norm is NaN or infinite."""


class OutOfMemoryError(TrainingError):
    """There was not enough memory for a step."""


@contextmanager
def translate_memory_errors(run: Run | None, settings: TrainingSettings) -> Iterator[None]:
    """Turn out-of-memory errors inside the block into OutOfMemoryError, with advice.

    `run` is None in processes that write no run.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not (
            isinstance(error, MemoryError)
            or any(text in str(error) for text in OUT_OF_MEMORY_MESSAGES)
        ):
            raise
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
    """Which checkpoint is the newest, as a clause of a message."""
    checkpoints = run.checkpoints()
    return (
        f"the last good checkpoint is of step {checkpoints[-1].step}"
        if checkpoints
        else "there is no checkpoint yet"
    )
