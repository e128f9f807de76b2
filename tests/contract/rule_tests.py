"""Contract rules as pytest tests: one test per rule, parametrized over entries and cases."""

from collections.abc import Callable, Iterable
from types import ModuleType

import pytest

from neural.testing.rule import ContractCheck, ContractRule, find_rules, format_case


def make_tests(
    rules_module: ModuleType, entries: Iterable[tuple[str, type]]
) -> dict[str, Callable[..., None]]:
    """Test functions by name, for `globals().update(…)`. `entries` are (id, class) pairs."""
    named_entries = list(entries)
    tests = {}
    for rule in find_rules(rules_module):
        checks = [
            pytest.param(
                ContractCheck(rule, entry, case),
                id="-".join([*([format_case(case)] if case else []), name]),
            )
            for name, entry in named_entries
            if rule.applies(entry)
            for case in rule.cases
        ]
        if checks:  # a rule may apply to entries of other packages only
            tests[f"test_{rule.name}"] = _make_test(rule, checks)
    return tests


def _make_test(rule: ContractRule, checks: list) -> Callable[..., None]:
    @pytest.mark.parametrize("check", checks)
    def test(check: ContractCheck) -> None:
        check()

    test.__doc__ = rule.check.__doc__
    return test
