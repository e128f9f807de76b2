"""`--devices N`: run this command in several processes with torchrun; resume after a crash."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from neural.core.experiment import world_size
from neural.core.platform_support import IS_HANGUP_IGNORED, count_cores
from neural.runs.errors import RunError
from neural.runs.run import Run

MAX_RESTARTS = 3
"""How often torchrun restarts all processes after one of them died."""


def launch_processes(count: int) -> int:
    """Run this command line in `count` processes; returns its exit code.

    That is 0, 130 after a signal to stop, or the highest exit code of the processes that failed.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, count_cores() // count)))
    options = [
        "--standalone",
        f"--nproc-per-node={count}",
        f"--max-restarts={MAX_RESTARTS}",
        "-m",
        "neural",
    ]
    if IS_HANGUP_IGNORED:
        options.insert(0, "--signals-to-handle=SIGTERM,SIGINT,SIGQUIT")
    # torchrun would leave its own folder of logs behind
    with tempfile.TemporaryDirectory(prefix="neural-devices-") as folder:
        try:
            main([f"--log-dir={folder}", *options, *sys.argv[1:]])
        except SignalException:
            return 130
        except ChildFailedError as error:
            return max(failure.exitcode for failure in error.failures.values()) or 1
    return 0


@contextmanager
def plan_processes(count: int) -> Iterator[None]:
    """Let settings count the steps of a training in `count` processes; none of them is started."""
    os.environ["WORLD_SIZE"] = str(count)
    try:
        yield
    finally:
        del os.environ["WORLD_SIZE"]


def count_devices() -> int:
    """Most processes that can train together here: one on each core or GPU, but always two."""
    from neural.nn.lazy_torch import torch

    return max(2, count_cores(), torch.cuda.device_count())


def exit_worker(code: int) -> NoReturn:
    """Exit with a code; a process of torchrun without the destructors of C++ libraries.

    On a busy machine, 4 of 54 finished trainings were aborted by a destructor ("terminate called
    without an active exception"), and torchrun reported them as failed.
    """
    if world_size() > 1:
        atexit._run_exitfuncs()  # `os._exit` calls no exit handlers
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)


def launch_id() -> str | None:
    """torchrun's id of this training, the same after restarts; None without torchrun."""
    return os.environ.get("TORCHELASTIC_RUN_ID")


def describe_separate_tasks() -> str | None:
    """A note if `srun` started several tasks that do not train together; None otherwise."""
    count = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
    if not count.isdecimal() or int(count) < 2 or "WORLD_SIZE" in os.environ:
        return None
    return (
        f"srun started {count} tasks, and each trains the whole network by itself. To train "
        "together, start one torchrun on each node: examples/slurm/several_nodes.sbatch"
    )


def find_previous_attempt(runs: Path) -> Path | None:
    """The folder in `runs` of the attempt that died, if torchrun restarted this process.

    environment.json of a run holds the `launch_id` under the key "launch".
    """
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) == 0:
        return None
    for path in sorted(runs.glob("*"), reverse=True):
        with suppress(RunError), Run.open(path) as run:
            if run.environment.get("launch") == launch_id() and run.status.state != "finished":
                return path
    return None
