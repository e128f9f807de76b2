"""Processes that train one network together, as torchrun starts them, but with torch imported: see test_workers.py.

    python -m tests.training.together FOLDER CASES

CASES is JSON: for each name how many processes, the experiment's file, and the step at which all are killed, to go on
after it, or null. Each leaves its run in FOLDER/name/runs. Prints nothing, or what went wrong.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from functools import partial
from pathlib import Path

from tests.faults.survival._process import Attempt, load


def started(words: list[str], processes: int, folder: Path) -> list[Attempt]:
    """`neural train …` in so many processes that will find one another."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    names = folder.parent / "modules.txt"
    return [
        Attempt(words, folder, partial(_be, rank, processes, port), names=names) for rank in range(processes)
    ]


def _be(rank: int, processes: int, port: int) -> None:
    if processes > 1:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}  # fmt: skip


def ended(attempts: list[Attempt]) -> None:
    """Wait for all."""
    for attempt in attempts:
        code, text = attempt.ended()
        if code:
            sys.exit(f"exit code {code}: {text}")


def trained(folder: Path, processes: int, file: str, killed_at: int | None) -> None:
    """One case."""
    folder.mkdir()
    words = ["train", file, "--runs", str(folder / "runs")]
    attempts = started(words, processes, folder)
    if killed_at is not None:
        while attempts[0].made < killed_at:
            if attempts[0].poll() is not None:
                sys.exit(f"it ended at step {attempts[0].made}: {attempts[0].ended().text}")
            time.sleep(0.002)
        for attempt in attempts:
            attempt.kill()
            attempt.ended()
        (run,) = (folder / "runs").glob("[!.]*")
        attempts = started(["train", "--resume", str(run)], processes, folder)
    ended(attempts)
    load(folder.parent / "modules.txt")


if __name__ == "__main__":
    load()
    for name, case in json.loads(sys.argv[2]).items():
        trained(Path(sys.argv[1]) / name, *case)
