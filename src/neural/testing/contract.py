"""Collect all contract checks of one entry."""

from __future__ import annotations

from collections.abc import Iterator

from neural.language.layer import Layer
from neural.nn.mechanism import Mechanism
from neural.testing import attention_rules, entry_rules, layer_rules
from neural.testing.entry_rules import Entry, find_registry
from neural.testing.rule import ContractCheck, ContractRule, find_rules

RULES_BY_BASE = {Mechanism: attention_rules, Layer: layer_rules}
"""Rules by kind of entry. Other kinds have the rules of `entry_rules` only."""


def collect_checks(entry: Entry) -> list[ContractCheck]:
    """The checks of a mechanism, a layer or another entry, one per rule and case."""
    find_registry(entry)  # raises TypeError for a class that is no entry
    return [
        ContractCheck(rule, entry, case)
        for rule in iter_rules(entry)
        if rule.applies(entry)
        for case in rule.cases
    ]


def iter_rules(entry: Entry) -> Iterator[ContractRule]:
    """The rules of every entry, then those of its kind."""
    yield from find_rules(entry_rules)
    for base, rules_module in RULES_BY_BASE.items():
        if issubclass(entry, base):
            yield from find_rules(rules_module)
