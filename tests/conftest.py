"""One thread per test process: the suite runs on as many processes as there are cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("KERAS_BACKEND", "torch")

LONG = {
    "test_survive", "test_sweep_on_ray", "test_study", "test_workers", "test_resume", "test_sweep", "test_broken_runs",
    "test_faults", "test_statistics", "test_properties",
}  # fmt: skip
"""Files of tests that take long: begun first, so that no process waits for another at the end."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG)
