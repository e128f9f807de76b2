"""Commands that add files to a finished run, killed at a file operation: evaluation, importance."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from neural.runs.evaluation_file import load_evaluation_sections
from neural.runs.importance_file import load_importance
from tests.faults.survival._bench import Bench, SurvivalResult
from tests.faults.survival.damaged_files import DERIVING_COMMANDS

READERS: dict[str, Callable[[Path], object]] = {
    "evaluate": load_evaluation_sections,
    "ablate": load_importance,
}
"""Readers of the files that commands write; a damaged file is ValueError."""
MAX_OPERATION = 12
"""A file is written by fewer operations."""


def survive(bench: Bench) -> SurvivalResult:
    """Kill a command, read the run, and repeat the command."""
    ends, source = Counter[str](), bench.reference_run
    for round_index in range(bench.rounds):
        verb = list(READERS)[round_index % len(READERS)]
        options, read_file = DERIVING_COMMANDS[verb], READERS[verb]
        run = bench.create_folder("derived") / source.name
        shutil.copytree(source, run)
        operation = 1 + round_index // len(READERS) % MAX_OPERATION
        mode = bench.rng.choice(["kill", "half"])
        break_command = partial(bench.breaker.break_at, run, operation, mode)
        code, text = bench.run_neural(verb, run, *options, before=break_command).wait_for_end()
        ends["killed" if code == -signal.SIGKILL else "ended before"] += 1
        bench.expect(code in (0, -signal.SIGKILL), f"{verb} ended with {code}: {text[-900:]}")
        try:
            read_file(run)
        except ValueError as error:
            bench.expect(False, f"after a killed {verb}: {error}")
        code, text = bench.run_neural(verb, run, *options).wait_for_end()
        bench.expect(code == 0 and read_file(run), f"{verb} again: {code}, {text[-900:]}")
        bench.expect_same(run, f"after {verb}")
    return SurvivalResult(
        rounds=bench.rounds,
        checked=f"{', '.join(READERS)}: {ends['killed']} killed before an operation or in a write, {ends['ended before']} "
        "ended before it; the file is absent or complete, the run is unchanged, and the command can be repeated",
        lost="the result of the killed command",
        message="no message is possible",
    )
