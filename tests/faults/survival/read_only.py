"""A read-only folder: reported before anything is trained; reading still works."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.faults.survival._bench import Bench, SurvivalResult
from tests.faults.survival._disk import remount, small_disk


def survive(bench: Bench) -> SurvivalResult:
    """Start a run, resume one, and read one, in a read-only folder."""
    runs, out = bench.create_folder("closed"), bench.create_folder("out")
    out.chmod(0o777)
    with small_disk(runs, "20m") as mounted:
        run = runs / bench.reference_run.name
        shutil.copytree(bench.reference_run, run)
        if mounted:
            remount(runs, "ro")
        else:
            _set_modes(runs, 0o555)
        nobody = None if mounted or os.getuid() else _become_nobody
        try:
            before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
            messages = []
            for attempt in (bench.train(runs, before=nobody), bench.resume(run, before=nobody)):
                code, text = attempt.wait_for_end()
                bench.expect(
                    code == 2 and attempt.last_step == 0,
                    f"exit code {code} after {attempt.last_step} steps",
                )
                bench.expect_message(text, runs, "no permission to write")
                messages.append(bench.extract_message(text, run))
            for words in (
                ["show", run],
                ["runs", "--runs", runs],
                ["analyze", run],
                ["generate", run, "--tokens", 3],
                ["report", run, "-o", out / "a.html"],
            ):
                code, text = bench.run_neural(*words, before=nobody).wait_for_end()
                bench.expect(
                    code == 0,
                    f"neural {words[0]} of a folder that cannot be written: {code}, {text[-1500:]}",
                )
            after = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
            bench.expect(before == after, "a file was changed")
        finally:
            if not mounted:
                _set_modes(runs, 0o755)
    return SurvivalResult(
        rounds=2,
        checked="a new run and `--resume` are refused with exit code 2, reading works",
        lost="no step",
        message=messages[-1],
        method="mounted read-only" if mounted else "the folder's mode",
    )


def _set_modes(runs: Path, mode: int) -> None:
    for path in (runs, *runs.rglob("*")):
        if path.is_dir():
            path.chmod(mode)


def _become_nobody() -> None:
    """Become the user `nobody`, who has no home folder."""
    os.setgid(65534)
    os.setuid(65534)
