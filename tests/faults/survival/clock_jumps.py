"""The clock jumps during a training, and is wrong for the next command: minutes to decades."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from neural.runs.errors import RunError
from neural.runs.run import Run
from tests.faults.survival._bench import Bench, SurvivalResult, wait_until

HOUR, DAY, YEAR = 3600.0, 86400.0, 365.25 * 86400.0
JUMPS = {
    "back by an hour": -HOUR,
    "forward by an hour": HOUR,
    "back by half a second": -0.5,
    "forward by 40 years, beyond 2038": 40 * YEAR,
    "back to 1970": -56 * YEAR,
    "forward by a day": DAY,
}
"""Daylight saving changes the time by an hour only in clocks that count local time; NTP by less than
a second in steps; an empty battery starts in 1970."""
MAX_SECONDS_LEFT = 3600.0
"""A larger estimate for 30 steps means that the jump was counted as work."""


def survive(bench: Bench) -> SurvivalResult:
    """Train with such a clock; check every time that is written or shown."""
    names = list(JUMPS)
    for round_index in range(bench.rounds):
        name = names[round_index % len(names)]
        runs = bench.create_folder("clock")
        jump = partial(_shift_clock, JUMPS[name], bench.rng.randrange(3, 60))
        result = bench.train(runs, "--json", before=jump).wait_for_end()
        if not bench.expect(result.code == 0, f"clock {name}: {result.text[-1500:]}"):
            continue
        run = bench.find_only_run(runs)
        bench.expect_same(run, f"clock {name}")
        _check_durations(bench, name, result.text)
        with Run.open(run) as reader:
            events = reader.events()
        bench.expect(
            events == sorted(events, key=lambda event: event[0]), f"clock {name}: events mixed up"
        )
        _check_commands(bench, name, runs, run)
    _check_observers(bench)
    return SurvivalResult(
        rounds=bench.rounds,
        checked="bit for bit as undisturbed; no duration or age below 0, no estimate above an hour; events in "
        "order; show, runs, analyze and `--resume` with a clock that is wrong by the opposite jump, and with files "
        "from the future; a running training is not `lost`, and keeps its lock, for observers whose clock is wrong",
        lost="nothing",
        message="no message needed",
    )


def _check_durations(bench: Bench, name: str, text: str) -> None:
    """Check the speed and the remaining time that a training reports."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    for line in lines[:-1]:
        left, speed = line["seconds_left"], line["steps_per_second"]
        bench.expect(
            left is None or 0 <= left < MAX_SECONDS_LEFT, f"clock {name}: {left} seconds left"
        )
        bench.expect(speed is None or speed >= 0, f"clock {name}: {speed} steps per second")


def _check_commands(bench: Bench, name: str, runs: Path, run: Path) -> None:
    """Read and resume the run with another clock than the one that wrote it."""
    for path in run.rglob("*"):
        os.utime(path, (time.time() + DAY, time.time() + DAY))
    wrong_clock = partial(_shift_clock, -JUMPS[name], 0)
    for words in (["show", run], ["runs", "--runs", runs], ["analyze", run]):
        code, text = bench.run_neural(*words, before=wrong_clock).wait_for_end()
        bench.expect(code == 0, f"clock {name}, neural {words[0]}: {text[-1500:]}")
        bench.expect(
            " -" not in text.split("settings")[0], f"clock {name}, a negative age: {text[:400]}"
        )
    code, text = bench.resume(run, before=wrong_clock).wait_for_end()
    bench.expect(code == 0, f"clock {name}, --resume: {text[-1500:]}")
    bench.expect_same(run, f"resumed with the clock {name}")


def _check_observers(bench: Bench) -> None:
    """A training runs; commands whose clock is years ahead or behind must not take it for dead."""
    runs = bench.create_folder("clock")
    attempt = bench.train(runs, training__steps=100_000)
    wait_until(lambda: attempt.last_step > 0 or attempt.poll() is not None, "a step")
    run = bench.find_only_run(runs)
    for seconds in (40 * YEAR, -40 * YEAR):
        wrong_clock = partial(_shift_clock, seconds, 0)
        code, text = bench.run_neural("runs", "--runs", runs, before=wrong_clock).wait_for_end()
        bench.expect(code == 0 and "running" in text, f"an observer sees: {text}")
        code, text = bench.resume(run, before=wrong_clock).wait_for_end()
        bench.expect(code == 2, f"a second training with another clock: {code}, {text[-600:]}")
        bench.expect_message(text, "is being written by process")
    attempt.kill()
    attempt.wait_for_end()
    try:
        bench.expect(Run.open(run).status.state == "lost", "killed, and not lost")
    except RunError as error:
        bench.expect(False, str(error))


def _shift_clock(seconds: float, after: int) -> None:
    """Patch the clock to be wrong, after that many reads."""
    real, reads = time.time, 0

    def now() -> float:
        nonlocal reads
        reads += 1
        return max(0.0, real() + (seconds if reads > after else 0))

    localtime: Callable[..., time.struct_time] = time.localtime
    time.time, time.time_ns = now, lambda: int(now() * 1e9)
    time.localtime = lambda when=None: localtime(now() if when is None else when)
