"""Pytest plugin: failed contract checks are reported once per cause, with a line that counts them.

    [tool.pytest.ini_options]
    addopts = "-p neural.testing.pytest_plugin"

A contract check (rule.py) is the parameter of a test. Of the checks that fail for one cause
(failure_summary.py), the first is shown with its message; a line at the end counts all of them. The
numbers of failed and passed tests and the exit code stay those of pytest.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from neural.testing.failure_summary import (
    ContractFailure,
    describe_failure,
    summarize_failures,
)
from neural.testing.rule import ContractCheck, ContractError

FAILURE_ATTRIBUTE = "contract_failure"
"""Attribute of a test report: key and reason of a `ContractFailure`, as a list for pytest-xdist."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the cause of a failed check; a broken rule needs no traceback."""
    report = yield
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    is_check = any(isinstance(value, ContractCheck) for value in parameters.values())
    if is_check and report.failed and call.excinfo is not None:
        error = call.excinfo.value
        setattr(report, FAILURE_ATTRIBUTE, list(describe_failure(error)))
        if isinstance(error, ContractError):
            report.longrepr = str(error)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None, None, None]:
    """Show the first failure of every cause, then one line per cause."""
    failed = terminalreporter.stats.get("failed", [])
    failures: dict[int, ContractFailure] = {
        id(report): ContractFailure(*getattr(report, FAILURE_ATTRIBUTE))
        for report in failed
        if hasattr(report, FAILURE_ATTRIBUTE)
    }
    if not failures:
        return (yield)
    shown_keys, shown_reports = set(), []
    for report in failed:
        failure = failures.get(id(report))
        if failure is None or failure.key not in shown_keys:
            shown_reports.append(report)
        if failure is not None:
            shown_keys.add(failure.key)
    terminalreporter.stats["failed"] = shown_reports
    try:
        yield
    finally:
        terminalreporter.stats["failed"] = failed  # the last line counts all of them
    terminalreporter.section("contract", sep="=")
    for line in summarize_failures(failures.values()):
        terminalreporter.line(line)
