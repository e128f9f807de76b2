"""Errors during training name the step, the last checkpoint and what to try."""

import pytest

from neural.nn.lazy_torch import torch
from neural.runs.run import Run
from neural.training.engine import fit
from neural.training.errors import OutOfMemoryError
from tests.training.programs import create_small_run, create_small_task

TORCH_MESSAGE = (
    "[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 9 B."
)


def train_with_error(folder, error, *, at):
    """Train a task whose batches raise an error from batch `at` on; the run and the error."""
    task = create_small_task(folder, checkpoint_every=2)
    batch = task.batch

    def read_batch(index):
        if index >= at:
            raise error
        return batch(index)

    task.batch = read_batch
    run = create_small_run(task, folder)
    with pytest.raises(Exception) as raised:
        fit(task, run)
    return Run.open(run.path), raised.value


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError(TORCH_MESSAGE), torch.OutOfMemoryError("CUDA out of memory.")],
    ids=repr,
)
def test_an_out_of_memory_error_names_the_checkpoint_and_what_to_try(tmp_path, error):
    run, raised = train_with_error(tmp_path, error, at=3)
    assert isinstance(raised, OutOfMemoryError)
    assert str(raised).startswith(
        "out of memory at step 4; the last good checkpoint is of step 2. Halve "
    )
    assert "`training.batch_size` (4 now)" in str(raised)
    assert (run.status.state, run.status.message) == ("failed", f"OutOfMemoryError: {raised}")
    assert run.load_checkpoint().step == 2


def test_an_error_before_the_first_checkpoint_says_so(tmp_path):
    _, raised = train_with_error(tmp_path, MemoryError(), at=0)
    assert "at step 1; there is no checkpoint yet" in str(raised)


def test_other_errors_are_not_translated(tmp_path):
    run, raised = train_with_error(tmp_path, RuntimeError("shapes differ"), at=3)
    assert type(raised) is RuntimeError
    assert run.status.message == "RuntimeError: shapes differ"
