"""Why a training came to grief, in words: what happened at which step, what is kept, what to try."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from neural.tasks.experiment import Training
from neural.tracking.run import Run

NO_MEMORY = ("out of memory", "can't allocate memory", "Cannot allocate memory", "not enough memory")
"""How torch says it, which has a class of its own for it on graphics cards alone."""


class Failure(RuntimeError):
    """It was begun and cannot go on like this; what was saved is there."""


class Diverged(Failure):
    """The loss is no number any more."""


class OutOfMemory(Failure):
    """There was not enough for a step."""


@contextmanager
def memory_in_words(run: Run | None, settings: Training) -> Iterator[None]:
    """Turn an error for want of memory inside the block into an OutOfMemory that says what to try."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)):
            raise
        where = f" at step {run.reached + 1}; {last_checkpoint(run)}" if run is not None else ""
        raise OutOfMemory(
            f"the memory is full{where}. Try half of `training.batch_size` (it is {settings.batch_size}) with twice "
            "the `training.gradient_accumulation_steps`, or `training.gradient_checkpointing=true`; "
            "or see who else has the memory"
        ) from error


def last_checkpoint(run: Run) -> str:
    """What is kept, as a part of a sentence."""
    saved = run.checkpoints()
    return f"the last good checkpoint is of step {saved[-1].step}" if saved else "there is no checkpoint yet"
