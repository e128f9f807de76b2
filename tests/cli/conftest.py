"""Commands that are interrupted and killed while they run."""

import os

import pytest

from tests.forked_commands import ForkedCommands


@pytest.fixture(scope="session")
def start_neural():
    """A function that starts `neural WORDS` in a folder, in a fork of a process that has torch.

    What the command itself starts, such as the trials of a sweep, are new processes as always.
    """
    with ForkedCommands() as commands:
        yield lambda folder, *words: commands.start(
            "neural", *words, cwd=folder, environment=os.environ
        )
