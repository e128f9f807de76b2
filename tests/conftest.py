"""Configuration of all tests: one thread per process, and the longest test files first."""

import gc
import os
import signal

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # shells start background jobs with SIGINT ignored; child processes that tests interrupt would
    # inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
# the suite runs on as many processes as there are cores
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("KERAS_BACKEND", "torch")


def check_descriptor(descriptor):
    """Stands in for `os.fsync`: OSError for a bad descriptor, without waiting for the disk.

    Only a power cut would show a difference. Tests that a file is synced replace `os.fsync`
    themselves, and processes that tests start have the real one.
    """
    os.fstat(descriptor if isinstance(descriptor, int) else descriptor.fileno())


os.fsync = check_descriptor

LONG_TEST_FILES = (
    "test_equality",
    "test_process_group",
    "test_resume",
    "test_faults",
    "test_survive",
    "test_broken_runs",
    "test_sweep_on_ray",
    "test_study",
    "test_sweep",
    "test_statistics",
    "test_properties",
)
"""They start first, so that no process works alone at the end. Those with expensive fixtures come
before all, so that xdist does not distribute them among processes.
"""


def pytest_collection_modifyitems(items):
    order = {name: index for index, name in enumerate(LONG_TEST_FILES)}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONG_TEST_FILES)))


def pytest_collection_finish():
    """Exclude imported modules and collected tests from garbage collection, for speed."""
    gc.freeze()
