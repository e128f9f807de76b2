"""Broken files of every kind that may come from anybody: there is an answer or a refusal in words, never another error.

`ROUNDS=5000 pytest tests/fuzz/test_fuzz_files.py` tries more; nightly.py tries hundreds of thousands.
"""

import os
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutations import Mutator
from tests.fuzz.targets import TARGETS

ROUNDS = int(os.environ.get("ROUNDS", "60"))
IN_MEMORY = ("parser", "interchange", "map", "pickle")
"""Quick ones: what they read need not be a file."""
every_target = pytest.mark.parametrize("name", [name for name in TARGETS if name != "program"])


@every_target
def test_good_files_are_read(name):
    target = TARGETS[name]
    assert "" in [target.outcome(one) for one in target.seeds()]


@every_target
def test_broken_files_are_read_or_refused(name):
    target = TARGETS[name]
    times = 10 if name in IN_MEMORY else 1

    @settings(max_examples=ROUNDS * times, deadline=None, derandomize=True, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.integers(0, 1 << 32))
    def survives(seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")   # a broken picture or array may well be worth one
            target.outcome(Mutator(target.seeds(), target.words, seed).next())

    survives()


@every_target
def test_bytes_that_are_nothing_at_all_are_read_or_refused(name):
    @settings(max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=300))
    def survives(data):
        TARGETS[name].outcome(data)

    survives()
