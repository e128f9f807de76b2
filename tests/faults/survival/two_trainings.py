"""A second training in the folder of a running one; and one whose process was killed."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

from neural.runs.run import Run
from tests.faults.survival._bench import Bench, SurvivalResult, wait_until


def survive(bench: Bench) -> SurvivalResult:
    """Resume a running training, then kill it, then resume again."""
    message = ""
    for _ in range(bench.rounds):
        runs = bench.create_folder("two")
        first, step = bench.train(runs), bench.rng.randrange(5, 20)
        wait_until(lambda: first.last_step >= step or first.poll() is not None, "a step")  # noqa: B023 (called here)
        run = bench.find_only_run(runs)
        first.send(signal.SIGSTOP)  # so that only the second can change files
        before = _read_files(run)
        second = bench.resume(run)
        code, text = second.wait_for_end()
        bench.expect(
            code == 2 and second.last_step == 0,
            f"the second ended with {code} after {second.last_step} steps",
        )
        bench.expect_message(text, first.pid, socket.gethostname(), run)
        bench.expect(_read_files(run) == before, "the second changed files of the first")
        message = bench.extract_message(text, run).replace(str(first.pid), "4711")
        first.send(signal.SIGCONT)
        if bench.rng.random() < 0.5:
            bench.expect(first.wait_for_end().code == 0, "the first did not end well")
        else:
            first.kill()
            first.wait_for_end()
            bench.expect(
                Run.open(run).status.state in ("lost", "finished"),
                "it was killed, and is not `lost`",
            )
            bench.expect(
                bench.resume(run).wait_for_end().code == 0,
                "the lock of a killed process is still held",
            )
        bench.expect_same(run, "after a second training was refused")
    return SurvivalResult(
        rounds=bench.rounds,
        checked="the second is refused with exit code 2 and changes no byte; the first ends bit for bit as "
        "undisturbed; killed, it holds no lock: `--resume` works at once",
        lost="nothing",
        message=message,
    )


def _read_files(run: Path) -> dict[str, bytes]:
    """Contents of all files, except SQLite's index of its log, which readers write too."""
    files = [path for path in run.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
    return {str(path): path.read_bytes() for path in files}
