"""Small files that claim to be large or take long are refused quickly, in little memory."""

import json
import multiprocessing
import os
import resource
import shutil
import socket
import warnings
from pathlib import Path

import pytest
import torch

from neural.core.errors import TaskError
from neural.core.files import read_small_file
from neural.data.class_folders import find_class_folders
from neural.data.numpy_files import map_npy
from neural.imports.nn_transformer_encoder import NnTransformerEncoder
from neural.optim.program import ProgramError
from neural.runs.checkpoint import read_newest
from neural.runs.copy import copy_run
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.tasks.segmentation.guess import guess_segmentation
from neural.tasks.segmentation.pipeline import SHIPPED_SEGMENTER, load_pipeline
from neural.training.load_model import build_untrained
from neural.workflows.copy_runs import copy_runs
from neural.workflows.generate import load_generator
from neural.workflows.import_model import ModelImportError, import_file
from neural.workflows.load import load, parse
from tests.cpu_time import limit_cpu_time
from tests.fuzz.bombs import BOMBS, PROGRAMS, MemoryPeak
from tests.fuzz.targets import TARGETS
from tests.written_runs import CHARACTERS, write_run

pytestmark = pytest.mark.no_cover  # time limits: tracing takes longer
EXTRA_MEMORY_BYTES = 1 << 30
MAX_GROWTH_BYTES = 80_000_000
"""An archive may contain 64 MB however small it is."""


@pytest.fixture
def limited_memory():
    """Limit the address space to a gigabyte more than now."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + EXTRA_MEMORY_BYTES, before[1])
    )
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_quickly_and_in_little_memory(name, limited_memory):
    target, make = TARGETS[BOMBS[name][0]], BOMBS[name][1]
    target.run(target.seeds()[0])  # so that late imports are not counted
    data = make()
    peak = MemoryPeak()
    with limit_cpu_time():
        assert target.run(data)
    assert peak.growth() < MAX_GROWTH_BYTES


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_takes_long_or_much_memory(name, limited_memory):
    target, data = TARGETS["program"], PROGRAMS[name]()
    target.run(b"network A { input: (7,) layers: Dense(3) }")
    peak = MemoryPeak()
    with limit_cpu_time():
        target.run(data)
    assert peak.growth() < MAX_GROWTH_BYTES


def make_sparse_file(path, size):
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_a_sparse_file_of_a_terabyte_is_not_read(tmp_path, limited_memory):
    with pytest.raises(OSError, match="it has more than 1,000 bytes"):
        read_small_file(make_sparse_file(tmp_path / "settings.json", 1 << 40), 1000)
    with pytest.raises(
        ProgramError, match="this file has 8 MB or more; a program has at most 2 MB"
    ):
        load(make_sparse_file(tmp_path / "net.neural", 1 << 40))


MAX_WAITING_SECONDS = 10
"""For a child process that has everything imported; it takes milliseconds."""


def check_in_child(check):
    """Call a function in a forked process, and fail if it fails or waits.

    Nobody writes to the pipes of these tests. A reader in native code cannot be interrupted by a
    signal whose handler is in Python, but its process can be killed.
    """
    child = multiprocessing.get_context("fork").Process(target=check)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which are idle here
        child.start()
    child.join(MAX_WAITING_SECONDS)
    is_waiting = child.exitcode is None
    child.kill()
    child.join()
    assert not is_waiting, "it waits for ever"
    assert child.exitcode == 0, "see the traceback of the child"


def test_a_pipe_instead_of_a_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "status.json")

    def check():
        with pytest.raises(OSError, match="it is no ordinary file"):
            read_small_file(tmp_path / "status.json")

    check_in_child(check)


def bind_socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


@pytest.mark.parametrize("create", [os.mkfifo, os.mkdir, bind_socket])
@pytest.mark.parametrize(
    "name", ["checkpoints/step-00000003.safetensors", "checkpoints/step-00000003.json"]
)
def test_a_pipe_instead_of_a_checkpoint_is_refused_without_waiting(
    name, create, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # the path of a socket has at most 107 characters
    path = write_run(tmp_path / "runs", vocabulary=list(CHARACTERS))
    (path / name).unlink()
    create((path / name).relative_to(tmp_path))

    def check():
        for read in (
            lambda: read_newest(path / "checkpoints"),
            lambda: load_generator(path),
            lambda: copy_run(path, tmp_path / "copy"),
        ):
            with pytest.raises(RunError):
                read()
        (refused,) = copy_runs([path.parent], tmp_path / "merged")
        assert refused.outcome == "refused"

    check_in_child(check)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_a_pipe_instead_of_a_file_of_sqlite_is_refused_without_waiting(suffix, tmp_path):
    path = write_run(tmp_path)
    rows = path / f"rows.sqlite{suffix}"
    rows.unlink(missing_ok=True)
    os.mkfifo(rows)

    def check():
        with pytest.raises(RunError, match=r"rows\.sqlite"):
            Run.open(path)

    check_in_child(check)


def test_a_pipe_instead_of_weights_beside_a_segmenter_is_refused_without_waiting(tmp_path):
    weights = json.loads(SHIPPED_SEGMENTER.read_text(encoding="utf-8"))["tensors"]["file"]
    shutil.copy(SHIPPED_SEGMENTER, tmp_path / "segmenter.json")
    os.mkfifo(tmp_path / weights)

    def check():
        with pytest.raises(TaskError, match="it is no ordinary file"):
            load_pipeline(tmp_path / "segmenter.json")

    check_in_child(check)


def test_pipes_in_a_folder_of_data_are_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    (tmp_path / "images" / "cat").mkdir(parents=True)
    os.mkfifo(tmp_path / "images" / "cat" / "a.png")
    for name in "abcdefghij":
        os.mkfifo(tmp_path / f"{name}.txt")

    def check():
        with pytest.raises(TaskError, match="it is no ordinary file"):
            map_npy(tmp_path / "x.npy")
        with pytest.raises(TaskError, match=r"no \.png files in class folders"):
            find_class_folders(tmp_path / "images", [".png"])
        assert guess_segmentation(tmp_path) is None

    check_in_child(check)


def test_a_run_whose_network_is_larger_than_its_weights_is_not_built(tmp_path, limited_memory):
    program = "network A { input: (7, 4) layers: Dense(100000) Dense(100000) }"
    run = Run.create(
        tmp_path, "large", settings={"task": "supervised"}, program=program, environment={}
    )
    with (
        run,
        pytest.raises(
            RunError,
            match=r"its network has 10,000,600,000 parameters, but its checkpoint 12 numbers",
        ),
    ):
        build_untrained(run, 12)


def test_a_network_larger_than_the_machine_is_refused(limited_memory):
    with pytest.raises(MemoryError, match=r"the weights of A take 4,000 GB; this machine has \d"):
        parse("network A { input: (7, 4) layers: Dense(1000000) Dense(1000000) }").build()


def test_a_state_dict_with_one_wide_row_does_not_build_a_wide_network(tmp_path, limited_memory):
    state = torch.nn.TransformerEncoderLayer(4, 2, 5, batch_first=True).state_dict()
    torch.save({**state, "linear1.weight": torch.ones(1, 1 << 16)}, tmp_path / "wide.pt")
    with pytest.raises(
        ModelImportError, match=r"is too small for the [\d,]+ parameters of its network"
    ):
        import_file(
            tmp_path / "wide.pt", NnTransformerEncoder, ["num_heads=2"], output=tmp_path / "run"
        )
