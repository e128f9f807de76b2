"""The clock is set back: by an hour at a random moment of the training, and by a day before the next one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

from neural.tracking.run import Run
from tests.faults.survival._bench import Bench, Survived

HOUR, DAY = 3600.0, 86400.0


def survive(bench: Bench) -> Survived:
    """Train with such a clock, look at every time that was written or is shown."""
    least = 0.0
    for _ in range(bench.rounds):
        runs = bench.fresh("clock")
        ended = bench.train(runs, "--json", before=partial(_set_back, HOUR, bench.chance.randrange(3, 60))).ended()
        bench.expect(ended.code == 0, f"with the clock set back: {ended.text[-1500:]}")
        run = bench.run_in(runs)
        bench.same(run, "with the clock set back")
        told = [json.loads(line) for line in ended.text.splitlines() if line.startswith("{")]
        least = min([least, *(one[key] for one in told[:-1] for key in ("seconds_left", "steps_per_second"))])
        with Run.open(run) as found:
            bench.expect(found.events() == sorted(found.events(), key=lambda one: one[0]), "events are out of order")
            bench.expect(found.status.state == "finished", "its state is not finished")
        # what a day earlier looks at it: everything lies in the future
        for words in (["show", run], ["runs", "--runs", runs], ["analyze", run]):
            code, text = bench.neural(*words, before=partial(_set_back, DAY, 0)).ended()
            bench.expect(code == 0, f"neural {words[0]} a day before: {text[-1500:]}")
            bench.expect(" -" not in text.split("settings")[0], f"a negative age: {text[:400]}")
        code, text = bench.resume(run, before=partial(_set_back, DAY, 0)).ended()
        bench.expect(code == 0, f"--resume a day before: {text[-1500:]}")
        bench.same(run, "resumed a day before")
    bench.expect(least >= 0, f"a duration of {least} s")
    return Survived(
        rounds=bench.rounds,
        checked="bit for bit as undisturbed; no duration or age below 0; events in order; show, runs, analyze and "
        "`--resume` a day before the run was made",
        lost="nothing", said="nothing needs to be said",
    )  # fmt: skip


def _set_back(seconds: float, after: int) -> None:
    """From so many looks at the clock on."""
    real, looks = time.time, 0

    def now() -> float:
        nonlocal looks
        looks += 1
        return real() - (seconds if looks > after else 0)

    localtime: Callable[..., time.struct_time] = time.localtime
    time.time, time.time_ns = now, lambda: int(now() * 1e9)
    time.localtime = lambda when=None: localtime(now() if when is None else when)
