"""Break copies and conversions of run folders at every file operation, with broken_copies.py."""

from tests.faults.breaker import run_broken


def test_a_copy_killed_before_any_operation_is_absent_or_complete(breaker, tmp_path):
    report = run_broken("broken_copies.py", breaker, str(tmp_path), "kill")
    assert report["ends"] == {"killed": report["operations"]}
    assert report["operations"] > 10


def test_a_copy_killed_inside_any_write_is_absent_or_complete(breaker, tmp_path):
    report = run_broken("broken_copies.py", breaker, str(tmp_path), "half")
    assert report["ends"] == {"killed": report["tried"]}
    assert report["tried"] > 10


def test_a_copy_to_a_full_disk_is_reported_and_completed_later(breaker, tmp_path):
    report = run_broken("broken_copies.py", breaker, str(tmp_path), "full")
    assert report["ends"]["reported"] > 0.8 * report["tried"]
    for action in ("copy", "convert"):
        advice = f"the disk is full; free some space and {action} again"
        assert any(text.startswith(advice) for text in report["messages"])
