"""Promises as tests: one per promise, by its name, over every entry that made it and every case."""

from collections.abc import Callable, Iterable
from types import ModuleType

import pytest

from neural.contract.promise import Check, Promise, named, promises_in


def as_tests(*files: ModuleType, entries: Iterable[tuple[str, type]]) -> dict[str, Callable[..., None]]:
    """What `globals().update(…)` makes tests of; `entries` are classes by what is to stand in a test's name."""
    found = list(entries)
    tests = {}
    for promise in (one for file in files for one in promises_in(file)):
        checks = [
            pytest.param(Check(promise, entry, case), id="-".join([*([named(case)] if case else []), name]))
            for name, entry in found if promise.applies(entry) for case in promise.cases
        ]  # fmt: skip
        if checks:   # nobody may have made it: what is asked of entries from outside alone
            tests[f"test_{promise.name}"] = _test(promise, checks)
    return tests


def _test(promise: Promise, checks: list) -> Callable[..., None]:
    @pytest.mark.parametrize("check", checks)
    def test(check: Check) -> None:
        check()

    test.__doc__ = promise.look.__doc__
    return test
