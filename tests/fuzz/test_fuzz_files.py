"""Broken files of every untrusted kind are read or refused with a message; nothing else is raised.

`ROUNDS=5000 pytest tests/fuzz/test_fuzz_files.py` tries more, nightly.py hundreds of thousands.
"""

import os
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutations import Mutator
from tests.fuzz.targets import TARGETS

ROUNDS = int(os.environ.get("ROUNDS", "60"))
IN_MEMORY = ("parser", "map", "pickle")
"""Fast targets that need no file."""
every_target = pytest.mark.parametrize("name", [name for name in TARGETS if name != "program"])


@every_target
def test_valid_files_are_read(name):
    target = TARGETS[name]
    assert "" in [target.run(data) for data in target.seeds()]


@every_target
def test_broken_files_are_read_or_refused(name):
    target = TARGETS[name]
    factor = 10 if name in IN_MEMORY else 1

    @settings(
        max_examples=ROUNDS * factor,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 1 << 32))
    def run_one(seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # broken images and arrays may warn
            target.run(Mutator(target.seeds(), target.words, seed).next())

    run_one()


@every_target
def test_random_bytes_are_read_or_refused(name):
    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.binary(max_size=300))
    def run_one(data):
        TARGETS[name].run(data)

    run_one()
