"""One line per cause of failed contract checks: 61 failures with one cause are one line.

A contract check (rule.py) is one rule for one entry with one case. Its cause is what the rule says,
or else its message without the numbers, which differ from case to case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from neural.testing.rule import ContractCheck, ContractError

NUMBER = re.compile(r"-?\d[\d,.]*(e[+-]?\d+)?")


class ContractFailure(NamedTuple):
    """Why a check failed."""

    key: str
    """Equal for failures of one cause."""
    reason: str
    """The cause in one line."""


def describe_failure(error: BaseException) -> ContractFailure:
    """The cause of a check that raised `error`: a broken rule, or an exception of the entry."""
    if isinstance(error, ContractError):
        # the first line of the message names the rule and its case
        first_line, _, explanation = str(error).partition("\n")
        reason = error.cause or explanation.partition("\n")[0] or first_line
    else:
        reason = f"{type(error).__name__}: {error}".partition("\n")[0].removesuffix(": ")
    return ContractFailure(NUMBER.sub("#", reason), reason)


def summarize_failures(failures: Iterable[ContractFailure]) -> list[str]:
    """A line for each cause, the most frequent first; with the reason of its first failure."""
    counts: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for failure in failures:
        counts[failure.key] = counts.get(failure.key, 0) + 1
        reasons.setdefault(failure.key, failure.reason)
    return [
        f"1 rule failed: {reasons[key]}"
        if count == 1
        else f"{count} rules failed for one reason: {reasons[key]}"
        for key, count in sorted(counts.items(), key=lambda item: -item[1])
    ]


def run_checks(checks: Sequence[ContractCheck]) -> list[ContractFailure]:
    """Run all checks, and return the failures."""
    failures = []
    for check in checks:
        try:
            check()
        except Exception as error:  # an entry may raise anything
            failures.append(describe_failure(error))
    return failures
