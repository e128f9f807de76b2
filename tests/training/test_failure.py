"""What comes to grief says what happened, what is kept, what to try."""

import pytest

from neural.modules.late import torch
from neural.tracking.run import Run
from neural.training.engine import fit
from neural.training.failure import OutOfMemory
from tests.training.programs import begun, small

TORCH = "[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 B."


def failing(folder, error, *, at):
    """The run of a task whose batches raise an error from one on, and what came of it."""
    task = small(folder, checkpoint_every=2)
    batch = task.batch

    def batches(number):
        if number >= at:
            raise error
        return batch(number)

    task.batch = batches
    run = begun(task, folder)
    with pytest.raises(Exception) as raised:
        fit(task, run)
    return Run.open(run.path), raised.value


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError(TORCH), torch.OutOfMemoryError("CUDA out of memory.")], ids=repr
)
def test_a_step_without_memory_says_what_is_kept_and_what_to_try(tmp_path, error):
    run, raised = failing(tmp_path, error, at=3)
    assert isinstance(raised, OutOfMemory)
    assert str(raised).startswith("the memory is full at step 4; the last good checkpoint is of step 2. Try half of")
    assert "`training.batch_size` (it is 4)" in str(raised)
    assert (run.status.state, run.status.message) == ("failed", f"OutOfMemory: {raised}")
    assert run.restore().step == 2


def test_before_the_first_checkpoint_there_is_none(tmp_path):
    _, raised = failing(tmp_path, MemoryError(), at=0)
    assert "at step 1; there is no checkpoint yet" in str(raised)


def test_another_error_stays_what_it_is(tmp_path):
    run, raised = failing(tmp_path, RuntimeError("shapes differ"), at=3)
    assert type(raised) is RuntimeError
    assert run.status.message == "RuntimeError: shapes differ"
