"""Runner that forks this process, with torch already imported: for trials of a few seconds.

A trial is one training of a sweep (runner.py). Its request is what to train, as JSON; `job.worker`
names the module that trains a request.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from neural.core.platform_support import (
    CAN_FORK,
    ForkedProcess,
    detach_from_session,
    fork_process,
)
from neural.nn.lazy_torch import torch
from neural.training.parent_watch import watch_parent
from neural.training.runner import TrialJob, create_request
from neural.training.runners.local import Local, ProcessHandle


def preload_modules() -> None:
    """Import what every trial needs, once, before forking: torch and the engine."""
    import torch.export  # noqa: F401

    import neural.training.engine  # noqa: F401


class Forked(Local):
    """Like `local`, but each trial is a fork of this process. Where none can be made it is `local`."""

    def __init__(self, workers: int | None) -> None:
        super().__init__(workers)
        if CAN_FORK:
            preload_modules()

    def start_process(self, job: TrialJob) -> ProcessHandle:
        """Fork this process and train in the child.

        A fork has only the thread that called it, so torch must not have started its threads
        before. It has not, because this process has computed nothing.
        """
        if not CAN_FORK:
            return super().start_process(job)
        worker = import_module(job.worker)  # before the fork, so that it is imported once
        request, parent_pid = json.loads(create_request(job)), os.getpid()

        def prepare() -> None:
            watch_parent(parent_pid)
            torch.set_num_threads(self.threads)

        return ForkedProcess(
            fork_process(
                lambda: run_in_child(lambda: worker.run_request(request), job.log_path, prepare)
            )
        )


def run_in_child(
    work: Callable[[], int], log_path: Path, prepare: Callable[[], object]
) -> NoReturn:
    """Call `prepare` and `work` in a forked child, and exit with the exit code of `work`.

    The child gets its own session, so that Ctrl-C goes to the parent only, and the default signal
    handlers. Its output is appended to the file `log_path`.
    """
    exit_code = 1
    try:
        detach_from_session()
        null, log = os.open(os.devnull, os.O_RDONLY), os.open(log_path, os.O_WRONLY | os.O_APPEND)
        stdin, stdout, stderr = 0, 1, 2
        for source, target in ((null, stdin), (log, stdout), (log, stderr)):
            os.dup2(source, target)
        # never closed: they are needed until the process ends
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115
        prepare()
        exit_code = work()
    except SystemExit as end:
        exit_code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(exit_code)  # without the exit handlers, which belong to the parent
