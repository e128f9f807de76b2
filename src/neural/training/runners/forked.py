"""Processes of this machine that begin with torch imported: for trials so short that starting is most of them."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from neural.modules.late import torch
from neural.training.child import follow
from neural.training.runner import Job, words
from neural.training.runners.local import Local, Process

NEEDED = ("torch", "torch._dynamo", "neural.training.engine")
"""What every trial imports, the second behind its first step: seconds, which are paid once."""


class Forked(Local):
    """Like `local`, but a trial is a copy of this process and not a new one; where that cannot be, it is the same."""

    def __init__(self, workers: int | None, also: Sequence[str] = ()) -> None:
        """`also` are further modules that the trials will need."""
        super().__init__(workers)
        for name in (*NEEDED, *also) if hasattr(os, "fork") else ():
            import_module(name)

    def process(self, job: Job) -> Process:
        """Nothing has been computed here yet, so no thread is left behind by the copy."""
        if not hasattr(os, "fork"):
            return super().process(job)
        said, parent = words(job), os.getpid()
        number = os.fork()
        if number == 0:
            be_neural(said, job.output, partial(_prepare, parent, self.threads))
        return Copy(number)


class Copy:
    """A process that was forked, with what `subprocess.Popen` has."""

    def __init__(self, number: int) -> None:
        self.pid = number
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None while it runs; a signal's number is negative."""
        return self._look(os.WNOHANG)

    def wait(self) -> int:
        """Until it has ended."""
        found = self._look(0)
        assert found is not None
        return found

    def terminate(self) -> None:
        """Finish the step, save and stop."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """At once."""
        self._send(signal.SIGKILL)

    def _look(self, how: int) -> int | None:
        if self.returncode is None:
            number, status = os.waitpid(self.pid, how)
            self.returncode = os.waitstatus_to_exitcode(status) if number else None
        return self.returncode

    def _send(self, what: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, what)


def _prepare(parent: int, threads: int) -> None:
    threading.Thread(target=follow, args=(parent,), daemon=True).start()
    torch.set_num_threads(threads)


def be_neural(said: Sequence[str], told: Path, prepare: Callable[[], object]) -> NoReturn:
    """In a copy: `neural …` with its own session, signals and output, which is added to a file; never comes back."""
    code = 1
    try:
        os.setsid()
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_DFL)
        nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(told, os.O_WRONLY | os.O_APPEND)
        for old, new in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(old, new)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")   # noqa: SIM115 (open to the end)
        prepare()
        sys.argv = ["neural", *said]
        runpy.run_module("neural", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
