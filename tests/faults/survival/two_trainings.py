"""A second training into the folder of one that is running; and one that died and can hold nothing any more."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

from neural.tracking.run import Run
from tests.faults.survival._bench import Bench, Survived, wait_until


def survive(bench: Bench) -> Survived:
    """Resume what is running, then kill it, then resume again."""
    said = ""
    for _ in range(bench.rounds):
        runs = bench.fresh("two")
        first, step = bench.train(runs), bench.chance.randrange(5, 20)
        wait_until(lambda: first.made >= step or first.poll() is not None, "a step")   # noqa: B023 (called here)
        run = bench.run_in(runs)
        first.send(signal.SIGSTOP)   # so that nothing but the second could have changed a file
        before = _files(run)
        second = bench.resume(run)
        code, text = second.ended()
        bench.expect(code == 2 and second.made == 0, f"the second ended with {code} after {second.made} steps")
        bench.clear(text, first.pid, socket.gethostname(), run)
        bench.expect(_files(run) == before, "the second changed files of the first")
        said = bench.message(text, run).replace(str(first.pid), "4711")
        first.send(signal.SIGCONT)
        if bench.chance.random() < 0.5:
            bench.expect(first.ended().code == 0, "the first did not end well")
        else:
            first.kill()
            first.ended()
            bench.expect(Run.open(run).status.state in ("lost", "finished"), "it was killed, and is not `lost`")
            bench.expect(bench.resume(run).ended().code == 0, "what a killed process held is still held")
        bench.same(run, "after a second training was refused")
    return Survived(
        rounds=bench.rounds,
        checked="the second is refused with exit code 2 and changes no byte; the first ends bit for bit as "
        "undisturbed; killed, it holds nothing: `--resume` goes on at once",
        lost="nothing", said=said,
    )  # fmt: skip


def _files(run: Path) -> dict[str, bytes]:
    """All but SQLite's index of its log, which readers write too."""
    files = [one for one in run.rglob("*") if one.is_file() and not one.name.endswith("-shm")]
    return {str(one): one.read_bytes() for one in files}
