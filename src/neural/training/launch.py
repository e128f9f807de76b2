"""Several processes on this machine, without torchrun's command line; and finding the way back after one died."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from neural.tracking.run import Run
from neural.tracking.trouble import RunError

RESTARTS = 3
"""Times that all processes are started again after one of them died."""


def launch(count: int) -> int:
    """This very command in `count` processes; the exit code of the worst."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
    options = ["--standalone", f"--nproc-per-node={count}", f"--max-restarts={RESTARTS}", "-m", "neural"]
    try:
        main([*options, *sys.argv[1:]])
    except ChildFailedError as failed:
        return max(one.exitcode for one in failed.failures.values()) or 1
    return 0


def launched() -> str | None:
    """What torchrun calls this training, however often it starts it again."""
    return os.environ.get("TORCHELASTIC_RUN_ID")


def attempt_before(runs: Path) -> Path | None:
    """The folder of the attempt that died, where torchrun has started us again."""
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) == 0:
        return None
    for path in sorted(runs.glob("*"), reverse=True):
        with suppress(RunError), Run.open(path) as run:
            if run.environment.get("launch") == launched() and run.status.state != "finished":
                return path
    return None
