"""The library that breaks file operations, compiled once."""

from pathlib import Path

import pytest

from tests.faults.breaker import build_library


@pytest.fixture(scope="session")
def breaker(tmp_path_factory) -> Path:
    """Path of the library that breaks file operations."""
    return build_library(tmp_path_factory.mktemp("breaker"))
