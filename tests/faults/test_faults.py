"""Tests that can fail: every fault, planted in a copy of the source, is noticed by the tests named beside it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import neural
from neural.native.library import find_library
from tests.faults.fault import Fault
from tests.faults.faults import FAULTS
from tests.faults.look_faults import LOOK_FAULTS
from tests.faults.native_faults import NATIVE_FAULTS, NativeFault
from tests.faults.planting import PlantingError, plant
from tests.faults.task_faults import TASK_FAULTS
from tests.faults.verdict_faults import VERDICT_FAULTS

ALL = (*FAULTS, *TASK_FAULTS, *LOOK_FAULTS, *VERDICT_FAULTS)
ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "neural"
WITHOUT = ["-pno:cacheprovider", "-pno:xdist", "-pno:hypothesispytest", "-pno:jaxtyping"]
"""Plugins that these runs start more quickly without."""
READY = """
import gc, json, os, signal, sys
# what takes long to import, once for all faults
import hypothesis, numpy, pydantic, pytest, ruamel.yaml, scipy.stats, torch._dynamo, torch.distributed.tensor
gc.freeze()   # it is not looked through again in every copy of this process
for line in sys.stdin:
    copy, tests, log, variables = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        for out in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), out)
        sys.path.insert(0, copy)
        os.environ.update(variables, PYTHONPATH=copy)
        import neural
        assert neural.__path__[0].startswith(copy), neural.__path__
        code = pytest.main(["-x", "-q", "--assert=plain", *{without!r}, *tests])
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Tests in a process of their own that imports a copy of the source: how they ended, and what they said."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    environment = {
        **inherited,
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "NEURAL_NATIVE_LIBRARY": str(find_library()),  # a copy of the source has none
    }
    call = [sys.executable, "-c", READY.format(without=WITHOUT)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(call, cwd=ROOT, env=environment, text=True, **pipes) as server:

        def one(copy: Path, tests: tuple[str, ...], **variables: str) -> tuple[int, str]:
            log = copy / "log.txt"
            server.stdin.write(json.dumps([str(copy), tests, str(log), variables]) + "\n")
            server.stdin.flush()
            return int(server.stdout.readline()), log.read_text(encoding="utf-8")

        yield one
        server.stdin.close()


def copy_of_the_source(folder: Path) -> Path:
    shutil.copytree(
        SOURCE, folder / "neural", ignore=shutil.ignore_patterns("*.pyc.*")
    )  # half written
    return folder


@pytest.mark.parametrize("fault", ALL, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_planted_fault_is_noticed(fault: Fault, tmp_path: Path, run: Run):
    copy = copy_of_the_source(tmp_path)
    path, symbol = fault.symbol.split(":")
    file = copy / "neural" / path
    source = file.read_text(encoding="utf-8")
    file.write_text(plant(source, symbol, fault.old, fault.new), encoding="utf-8")
    for old in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        old.unlink()
    code, said = run(copy, fault.tests)
    assert code == pytest.ExitCode.TESTS_FAILED, said


@pytest.mark.parametrize("fault", NATIVE_FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_in_a_kernel_is_noticed(fault: NativeFault, tmp_path: Path, run: Run):
    copy = copy_of_the_source(tmp_path)
    kernel = copy / "neural" / "native" / "kernels" / f"{fault.kernel}.cpp"
    source = kernel.read_text(encoding="utf-8")
    assert source.count(fault.old) == 1, f"{fault.old!r} is there {source.count(fault.old)} times"
    for text, expected in ((source, pytest.ExitCode.OK), (None, pytest.ExitCode.TESTS_FAILED)):
        kernel.write_text(text or source.replace(fault.old, fault.new), encoding="utf-8")
        variables = {
            "NEURAL_NATIVE_LIBRARY": build_kernel(kernel),
            "NEURAL_KERNELS": "baseline",
        }
        code, said = run(copy, fault.tests, **variables)
        assert code == expected, said


def build_kernel(kernel: Path) -> str:
    """A library with one kernel, for any processor."""
    native, library = kernel.parents[1], kernel.with_suffix(".so")
    sources = [str(file) for file in (kernel, native / "levels.cpp", native / "threads.cpp")]
    flags = ["-std=gnu++17", "-O1", "-shared", "-fPIC", "-Wno-psabi", "-fopenmp-simd"]
    flags += ["-DKERNEL_LEVEL=baseline", f"-I{native}"]
    subprocess.run(["c++", *flags, *sources, "-o", str(library)], check=True)
    return str(library)


def test_without_a_fault_such_tests_pass(tmp_path: Path, run: Run):
    """Here too, and not only in the suite: the copy is whole, and it was the fault that was noticed."""
    some = tuple(dict.fromkeys(test for fault in ALL[::15] for test in fault.tests))
    code, said = run(copy_of_the_source(tmp_path), some)
    assert code == pytest.ExitCode.OK, said


def test_every_fault_has_a_name_of_its_own():
    assert len({fault.name for fault in ALL}) == len(ALL)
    assert Path(neural.__path__[0]).name == "neural"


SOURCE_TO_BREAK = """
def area(width, height):
    if width < 0:
        raise ValueError("negative")
    return width * height
"""


def test_a_fault_is_found_by_structure_whatever_layout_and_names():
    broken = plant(SOURCE_TO_BREAK, "area", "return a   *   b", "return a + b")
    assert "return width + height" in broken
    assert "pass" in plant(SOURCE_TO_BREAK, "area", "raise ValueError('negative')", "pass")


@pytest.mark.parametrize("old", ["a / b", "c", "return"])
def test_code_that_is_not_there_exactly_once_is_refused(old):
    with pytest.raises(PlantingError):
        plant(SOURCE_TO_BREAK, "area", old, "pass")
    with pytest.raises(PlantingError, match="no `volume`"):
        plant(SOURCE_TO_BREAK, "volume", old, "pass")
