"""Configuration of all tests: one thread per process, the longest test files first, and a count of
the tests that are left out because the machine has no browser or no compiler.
"""

import gc
import os
import signal

import pytest

from tests.set_up import find_part

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

LEFT_OUT = "left out, there is no "
"""Beginning of the reason why a test was left out; the missing part follows."""
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


def needs_part(item, part):
    """Whether a test needs a browser or a compiler, by its fixtures or its mark."""
    if part == "browser":
        return "chromium" in item.fixturenames
    fixtures = {"breaker", "build_kernel"}
    return item.get_closest_marker("needs_compiler") or not fixtures.isdisjoint(item.fixturenames)


def pytest_collection_modifyitems(items):
    order = {name: index for index, name in enumerate(LONG_TEST_FILES)}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONG_TEST_FILES)))
    for part in ("browser", "compiler"):
        needing = [item for item in items if needs_part(item, part)]
        if needing and not find_part(part):
            for item in needing:
                item.add_marker(pytest.mark.skip(reason=f"{LEFT_OUT}{part}"))


def count_left_out(reporter):
    """Number of tests that were left out, by the part of the system that is missing."""
    reasons = [str(report.longrepr[2]) for report in reporter.getreports("skipped")]
    reasons = [reason.rpartition(LEFT_OUT)[2] for reason in reasons if LEFT_OUT in reason]
    return {part: reasons.count(part) for part in sorted(set(reasons))}


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(session.config, "workerinput")
    if os.environ.get("CI") and not is_worker and count_left_out(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    for part, count in count_left_out(terminalreporter).items():
        tests = "1 test was" if count == 1 else f"{count} tests were"
        terminalreporter.write_line(
            f"{tests} left out: this machine has no {part}, and none could be installed", red=True
        )


def pytest_collection_finish():
    """Exclude imported modules and collected tests from garbage collection, for speed."""
    gc.freeze()
