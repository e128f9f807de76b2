"""`python -m neural.training.child PID train …`: the command `neural train …`, which stops when process PID is gone.

A killed sweep, or a killed worker of a cluster, cannot stop what it has started. So the child looks after itself: it
finishes the step, saves and stops, and whoever starts the trial again goes on from there.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

EVERY = 0.5
"""Seconds between two looks at the parent."""


def follow(parent: int) -> None:
    """Ask this process to stop, as by SIGTERM, once its parent is another one."""
    while os.getppid() == parent:
        time.sleep(EVERY)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=follow, args=(int(sys.argv.pop(1)),), daemon=True).start()
    runpy.run_module("neural", run_name="__main__", alter_sys=True)
