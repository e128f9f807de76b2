"""The pytest plugin of new projects: one line per cause, and pytest's own counts."""

import subprocess
import sys

import pytest

TEST_FILE = """
import pytest
from neural.testing.rule import ContractCheck, contract_rule, require

@contract_rule(size=range(61))
def rows_are_positive(entry, size):
    require(False, f"a weight is -0.{size}", "weights below 0; declare `signed = True`")

@contract_rule(size=range(4))
def sizes_are_small(entry, size):
    require(size < 3, f"size {size} is large")

CHECKS = [
    ContractCheck(rule, dict, case)
    for rule in (rows_are_positive, sizes_are_small)
    for case in rule.cases
]

@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_contract(check):
    check()

def test_other():
    assert 1 == 2
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_61_failures_with_one_cause_print_one_line(tmp_path, workers):
    (tmp_path / "test_contract.py").write_text(TEST_FILE)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p neural.testing.pytest_plugin\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", workers]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    output = process.stdout
    assert process.returncode == 1, output + process.stderr
    line = "61 rules failed for one reason: weights below 0; declare `signed = True`"
    assert output.count(line) == 1
    assert "1 rule failed: size 3 is large" in output
    assert output.count("dict breaks a contract rule: rows are positive") <= 2  # once, in two parts
    assert output.count("assert 1 == 2") >= 1  # other tests are shown as always
    assert "63 failed, 3 passed" in output
    assert len(output.splitlines()) < 45
