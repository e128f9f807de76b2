"""A folder that cannot be written: said before anything is trained; reading goes on."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numba

from tests.faults.survival._bench import Bench, Survived
from tests.faults.survival._disk import changed, small_disk


def survive(bench: Bench) -> Survived:
    """Begin a run, go on with one, and read one, where nothing can be written."""
    runs, out = bench.fresh("closed"), bench.fresh("out")
    out.chmod(0o777)
    with small_disk(runs, "20m") as mounted:
        run = runs / bench.straight.name
        shutil.copytree(bench.straight, run)
        if mounted:
            changed(runs, "ro")
        else:
            _modes(runs, 0o555)
        nobody = None if mounted or os.getuid() else _be_nobody
        try:
            before = {one: one.stat().st_mtime_ns for one in runs.rglob("*")}
            said = []
            for attempt in (bench.train(runs, before=nobody), bench.resume(run, before=nobody)):
                code, text = attempt.ended()
                bench.expect(code == 2 and attempt.made == 0, f"exit code {code} after {attempt.made} steps")
                bench.clear(text, runs, "no right to write")
                said.append(bench.message(text, run))
            for words in (["show", run], ["runs", "--runs", runs], ["analyze", run], ["generate", run, "--tokens", 3],
                          ["report", run, "-o", out / "a.html"]):  # fmt: skip
                code, text = bench.neural(*words, before=nobody).ended()
                bench.expect(code == 0, f"neural {words[0]} of a folder that cannot be written: {code}, {text[-1500:]}")
            after = {one: one.stat().st_mtime_ns for one in runs.rglob("*")}
            bench.expect(before == after, "something was written")
        finally:
            if not mounted:
                _modes(runs, 0o755)
    return Survived(
        rounds=2, checked="a new run and `--resume` are refused with exit code 2, reading goes on",
        lost="no step was made", said=said[-1], how="mounted read-only" if mounted else "the folder's mode",
    )  # fmt: skip


def _modes(runs: Path, mode: int) -> None:
    for one in (runs, *runs.rglob("*")):
        if one.is_dir():
            one.chmod(mode)


def _be_nobody() -> None:
    """Who has no folder of his own either: numba needs one, which place_for_kernels gives to a new process."""
    os.setgid(65534)
    os.setuid(65534)
    numba.config.CACHE_DIR = tempfile.mkdtemp()
