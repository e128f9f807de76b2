"""Collect all contract checks of one registry entry.

An entry is a registered class, such as a layer or an attention mechanism. Its contract is the rules
(rule.py) that all entries, or all entries of its kind, must keep. A case is the arguments of one
call of a rule, such as `{"kind": "causal"}`.

    from neural.nn.attention.uniform import Uniform
    from neural.testing.contract import check_contract, collect_checks, iter_rules

    check_contract(Uniform)  # ContractError if a rule is broken
    print(len(collect_checks(Uniform)), "checks of", len(list(iter_rules(Uniform))), "rules")
"""

from __future__ import annotations

from collections.abc import Iterator

from neural.language.layer import Layer
from neural.nn.mechanism import Mechanism
from neural.testing import attention_rules, entry_rules, layer_rules
from neural.testing.entry_rules import Entry, find_registry
from neural.testing.failure_summary import run_checks, summarize_failures
from neural.testing.rule import ContractCheck, ContractError, ContractRule, find_rules

RULES_BY_BASE = {Mechanism: attention_rules, Layer: layer_rules}
"""Modules with the rules of each kind of entry. Other kinds have only those of `entry_rules`."""


def collect_checks(entry: Entry) -> list[ContractCheck]:
    """The checks of a mechanism, a layer or another entry, one per rule and case."""
    find_registry(entry)  # raises TypeError for a class that is no entry
    return [
        ContractCheck(rule, entry, case)
        for rule in iter_rules(entry)
        if rule.applies(entry)
        for case in rule.cases
    ]


def check_contract(entry: Entry) -> None:
    """Run all checks of an entry; ContractError with one line per cause if any fails."""
    lines = summarize_failures(run_checks(collect_checks(entry)))
    if lines:
        raise ContractError("\n".join([f"{entry.__name__} breaks its contract", *lines]))


def iter_rules(entry: Entry) -> Iterator[ContractRule]:
    """The rules of every entry, then those of its kind."""
    yield from find_rules(entry_rules)
    for base, rules_module in RULES_BY_BASE.items():
        if issubclass(entry, base):
            yield from find_rules(rules_module)
