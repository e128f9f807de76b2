"""Small files that claim to be large, or that take long, are refused at once and without the memory: see bombs.py."""

import os
import resource
import time
from pathlib import Path

import pytest
import torch

from neural.blueprint import ProgramError, load, parse
from neural.core.files import read_small
from neural.experiments import built
from neural.importing import CannotImport, import_file
from neural.imports.nn_transformer_encoder import NnTransformerEncoder
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from tests.fuzz.bombs import BOMBS, PROGRAMS, Peak
from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.no_cover   # there are limits of time, and tracing every line takes longer
ROOM = 1 << 30
MOST = 80_000_000
"""Bytes, 64 MB of which an archive may hold however small it is."""


@pytest.fixture
def limited():
    """No more memory than there is now, and a gigabyte."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("name", BOMBS)
def test_what_claims_to_be_large_is_refused_and_not_made(name, limited):
    target, make = TARGETS[BOMBS[name][0]], BOMBS[name][1]
    target.outcome(target.seeds()[0])   # what is imported late is not the file's fault
    data = make()
    peak, start = Peak(), time.process_time()
    assert target.outcome(data)
    assert time.process_time() - start < 2
    assert peak.grown() < MOST


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_takes_long_or_much(name, limited):
    target, data = TARGETS["program"], PROGRAMS[name]()
    target.outcome(b"network A { input: (7,) layers: Dense(3) }")
    peak, start = Peak(), time.process_time()
    target.outcome(data)
    assert time.process_time() - start < 2
    assert peak.grown() < MOST


def sparse(path, size):
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_a_file_of_a_terabyte_of_nothing_is_not_read(tmp_path, limited):
    with pytest.raises(OSError, match="it has more than 1,000 bytes"):
        read_small(sparse(tmp_path / "settings.json", 1 << 40), 1000)
    with pytest.raises(ProgramError, match="this file has 8 MB or more; a program has at most 2 MB"):
        load(sparse(tmp_path / "net.neural", 1 << 40))


def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "status.json")
    with pytest.raises(OSError, match="it is no ordinary file"):
        read_small(tmp_path / "status.json")


def test_a_run_whose_network_is_larger_than_its_weights_is_not_built(tmp_path, limited):
    program = "network A { input: (7, 4) layers: Dense(100000) Dense(100000) }"
    run = Run.create(tmp_path, "large", settings={"task": "supervised"}, program=program, environment={})
    with run, pytest.raises(RunError, match=r"its network has 10,000,600,000 parameters, its checkpoint 12 numbers"):
        built(run, 12)


def test_a_network_larger_than_the_machine_is_refused_in_words(limited):
    with pytest.raises(MemoryError, match=r"the weights of A take 4,000 GB; this machine has \d"):
        parse("network A { input: (7, 4) layers: Dense(1000000) Dense(1000000) }").build()


def test_a_state_dict_of_one_wide_row_does_not_make_a_wide_network(tmp_path, limited):
    state = torch.nn.TransformerEncoderLayer(4, 2, 5, batch_first=True).state_dict()
    torch.save({**state, "linear1.weight": torch.ones(1, 1 << 16)}, tmp_path / "wide.pt")
    with pytest.raises(CannotImport, match=r"has not the [\d,]+ numbers that a network of its sizes has"):
        import_file(tmp_path / "wide.pt", NnTransformerEncoder, ["num_heads=2"], output=tmp_path / "run")
