"""Break copies and conversions of run folders at every file operation, with broken_copies.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.breaker import RunBroken, start_script


@pytest.fixture(scope="module")
def run_broken(breaker: Path) -> Iterator[RunBroken]:
    """A function that runs broken_copies.py in a mode, in one process for all modes."""
    with start_script("broken_copies.py", breaker) as run:
        yield run


def test_a_copy_killed_before_any_operation_is_absent_or_complete(run_broken, tmp_path):
    report = run_broken(tmp_path, "kill")
    assert report["ends"] == {"killed": report["operations"]}
    assert report["operations"] > 10


def test_a_copy_killed_inside_any_write_is_absent_or_complete(run_broken, tmp_path):
    report = run_broken(tmp_path, "half")
    assert report["ends"] == {"killed": report["tried"]}
    assert report["tried"] > 10


def test_a_copy_to_a_full_disk_is_reported_and_completed_later(run_broken, tmp_path):
    report = run_broken(tmp_path, "full")
    assert report["ends"]["reported"] > 0.8 * report["tried"]
    for action in ("copy", "convert"):
        advice = f"the disk is full; free some space and {action} again"
        assert any(text.startswith(advice) for text in report["messages"])
