"""The clock is set back: by an hour during the training, and by a day before the next command."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

from neural.runs.run import Run
from tests.faults.survival._bench import Bench, SurvivalResult

HOUR, DAY = 3600.0, 86400.0


def survive(bench: Bench) -> SurvivalResult:
    """Train with such a clock; check every time that is written or shown."""
    shortest = 0.0
    for _ in range(bench.rounds):
        runs = bench.create_folder("clock")
        result = bench.train(
            runs, "--json", before=partial(_set_back, HOUR, bench.rng.randrange(3, 60))
        ).wait_for_end()
        bench.expect(result.code == 0, f"with the clock set back: {result.text[-1500:]}")
        run = bench.find_only_run(runs)
        bench.expect_same(run, "with the clock set back")
        lines = [json.loads(line) for line in result.text.splitlines() if line.startswith("{")]
        durations = [
            line[key]
            for line in lines[:-1]
            for key in ("seconds_left", "steps_per_second")
            if line[key] is not None  # the first steps have no estimate
        ]
        shortest = min([shortest, *durations])
        with Run.open(run) as reader:
            bench.expect(
                reader.events() == sorted(reader.events(), key=lambda event: event[0]),
                "events are out of order",
            )
            bench.expect(reader.status.state == "finished", "its state is not finished")
        # commands whose clock is a day earlier: all times lie in the future
        for words in (["show", run], ["runs", "--runs", runs], ["analyze", run]):
            code, text = bench.run_neural(*words, before=partial(_set_back, DAY, 0)).wait_for_end()
            bench.expect(code == 0, f"neural {words[0]} a day before: {text[-1500:]}")
            bench.expect(" -" not in text.split("settings")[0], f"a negative age: {text[:400]}")
        code, text = bench.resume(run, before=partial(_set_back, DAY, 0)).wait_for_end()
        bench.expect(code == 0, f"--resume a day before: {text[-1500:]}")
        bench.expect_same(run, "resumed a day before")
    bench.expect(shortest >= 0, f"a duration of {shortest} s")
    return SurvivalResult(
        rounds=bench.rounds,
        checked="bit for bit as undisturbed; no duration or age below 0; events in order; show, runs, analyze and "
        "`--resume` a day before the run was created",
        lost="nothing",
        message="no message needed",
    )


def _set_back(seconds: float, after: int) -> None:
    """Patch the clock to be slow, after that many reads."""
    real, reads = time.time, 0

    def now() -> float:
        nonlocal reads
        reads += 1
        return real() - (seconds if reads > after else 0)

    localtime: Callable[..., time.struct_time] = time.localtime
    time.time, time.time_ns = now, lambda: int(now() * 1e9)
    time.localtime = lambda when=None: localtime(now() if when is None else when)
