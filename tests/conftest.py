"""One thread per test process: the suite runs on as many processes as there are cores."""

import os
import signal

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # a shell starts background jobs with SIGINT ignored; processes that tests interrupt would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("KERAS_BACKEND", "torch")

LONG = (
    "test_equality", "test_workers", "test_resume", "test_faults", "test_survive", "test_broken_runs",
    "test_sweep_on_ray", "test_study", "test_sweep", "test_statistics", "test_properties",
)  # fmt: skip
"""Files of tests that take long: begun first, so that no process waits for another at the end, and those that prepare
much before all, so that they are not shared out among processes."""


def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))
