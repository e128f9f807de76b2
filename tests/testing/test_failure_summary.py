"""Failures of contract checks are summarized by cause."""

from neural.testing.failure_summary import describe_failure, run_checks, summarize_failures
from neural.testing.rule import ContractCheck, ContractError, contract_rule, require


@contract_rule(size=(3, 5, 7))
def sizes_are_large(entry, size):
    require(size > 9, f"the size is {size}, must be above 9")


@contract_rule(size=(3, 5))
def entries_work(entry, size):
    raise ValueError(f"no size {size}")


@contract_rule()
def the_sky_is_blue(entry):
    require(False, "the sky is -1.5e-3 nm grey", "clouds; wait")


def collect(*rules):
    return [ContractCheck(rule, dict, case) for rule in rules for case in rule.cases]


def test_failures_that_differ_in_numbers_have_one_cause():
    failures = run_checks(collect(sizes_are_large))
    assert summarize_failures(failures) == [
        "3 rules failed for one reason: the size is 3, must be above 9"
    ]


def test_the_most_frequent_cause_comes_first_and_exceptions_of_the_entry_count():
    failures = run_checks(collect(the_sky_is_blue, entries_work, sizes_are_large))
    assert summarize_failures(failures) == [
        "3 rules failed for one reason: the size is 3, must be above 9",
        "2 rules failed for one reason: ValueError: no size 3",
        "1 rule failed: clouds; wait",
    ]


def test_a_cause_that_the_rule_names_is_shown_instead_of_its_message():
    error = ContractError("X breaks a contract rule: y\nweight -0.3", "weights below 0")
    assert describe_failure(error).reason == "weights below 0"
    assert describe_failure(ContractError("all in one line")).reason == "all in one line"
    assert describe_failure(NotImplementedError()).reason == "NotImplementedError"


def test_no_failures_have_no_lines():
    assert summarize_failures([]) == []
