"""Stop a child process when its parent is gone.

A sweep (many trainings) that was killed, or a killed worker of a cluster, cannot stop the processes
it started. So each child watches its parent. SIGTERM makes the child finish its training step, save
and stop; a later process resumes from there.
"""

from __future__ import annotations

import os
import signal
import threading
import time

POLL_SECONDS = 0.5
"""Interval between two checks of the parent."""


def watch_parent(parent_pid: int) -> None:
    """Send SIGTERM to this process, from a thread, once its parent is no longer `parent_pid`."""
    threading.Thread(target=_stop_with_parent, args=(parent_pid,), daemon=True).start()


def _stop_with_parent(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
