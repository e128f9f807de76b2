"""Start processes that train one network together, forked with torch imported.

    python -m tests.training.together FOLDER CASES

Used by test_process_group.py. CASES is JSON: by name the number of processes, the experiment's
file, and the step at which all are killed and then resumed, or null. Each case leaves its run in
FOLDER/NAME/runs. Prints nothing but errors.
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


def start_processes(words: list[str], processes: int, folder: Path) -> list[Attempt]:
    """Start `neural train …` in processes with the environment that torchrun would give them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    names = folder.parent / "modules.txt"
    return [
        Attempt(words, folder, partial(_set_environment, rank, processes, port), modules_file=names)
        for rank in range(processes)
    ]


def _set_environment(rank: int, processes: int, port: int) -> None:
    if processes > 1:
        os.environ |= {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(processes),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }


def wait_for_all(attempts: list[Attempt]) -> None:
    """Wait for all processes; exits with a message if one failed."""
    for attempt in attempts:
        code, text = attempt.wait_for_end()
        if code:
            sys.exit(f"exit code {code}: {text}")


def run_case(folder: Path, processes: int, file: str, killed_at: int | None) -> None:
    """Train one case."""
    folder.mkdir()
    words = ["train", file, "--runs", str(folder / "runs")]
    attempts = start_processes(words, processes, folder)
    if killed_at is not None:
        while attempts[0].last_step < killed_at:
            if attempts[0].poll() is not None:
                sys.exit(
                    f"it ended at step {attempts[0].last_step}: {attempts[0].wait_for_end().text}"
                )
            time.sleep(0.002)
        for attempt in attempts:
            attempt.kill()
            attempt.wait_for_end()
        (run,) = (folder / "runs").glob("[!.]*")
        attempts = start_processes(["train", "--resume", str(run)], processes, folder)
    wait_for_all(attempts)
    load(folder.parent / "modules.txt")


if __name__ == "__main__":
    load()
    for name, case in json.loads(sys.argv[2]).items():
        run_case(Path(sys.argv[1]) / name, *case)
