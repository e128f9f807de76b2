"""Stop a child process when its parent is gone.

A sweep (many trainings) that was killed, or a killed worker of a cluster, cannot stop the processes
it started. So each child watches its parent. A stop signal makes the child finish its training
step, save and stop; a later process resumes from there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from neural.core.platform_support import request_own_stop, watch_process

POLL_SECONDS = 0.5
"""Interval between two checks of the parent."""


def watch_parent(parent_pid: int) -> None:
    """Send a stop signal to this process, from a thread, once its parent `parent_pid` is gone."""
    is_running = watch_process(parent_pid)
    threading.Thread(target=_stop_with_parent, args=(is_running,), daemon=True).start()


def _stop_with_parent(is_running: Callable[[], bool]) -> None:
    while is_running():
        time.sleep(POLL_SECONDS)
    request_own_stop()
