"""Tests that can fail: every fault, planted in a copy of the source, is noticed by the tests named beside it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

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
WITHOUT = ["-pno:cacheprovider", "-pno:unraisableexception", "-pno:threadexception"]
"""Plugins that these runs start and end more quickly without; those of other packages are off, too."""
READY = """
import gc, json, os, signal, sys
# what takes long to import, once for all faults
import hypothesis, numpy, pydantic, pytest, ruamel.yaml, scipy.stats, torch._dynamo, torch.distributed.tensor
import click.testing, faulthandler, pdb, readline, tomllib, xml.etree.ElementTree
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
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source for all faults; each is planted in it and taken out again."""
    folder = tmp_path_factory.mktemp("copy")
    half_written = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(SOURCE, folder / "neural", ignore=half_written)
    return folder


@pytest.fixture(scope="module")
def run(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Tests in a process of their own that imports the copy: how they ended, and what they said."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    environment = {
        **inherited,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "NEURAL_NATIVE_LIBRARY": str(find_library()),  # a copy of the source has none
    }
    logs, numbers = tmp_path_factory.mktemp("logs"), count()
    call = [sys.executable, "-c", READY.format(without=WITHOUT)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(call, cwd=ROOT, env=environment, text=True, **pipes) as server:

        def one(tests: tuple[str, ...], **variables: str) -> tuple[int, str]:
            log = logs / f"{next(numbers)}.txt"
            server.stdin.write(json.dumps([str(copy), tests, str(log), variables]) + "\n")
            server.stdin.flush()
            return int(server.stdout.readline()), log.read_text(encoding="utf-8")

        yield one
        server.stdin.close()


@contextmanager
def replace_source(file: Path, text: str) -> Iterator[None]:
    """Inside the block the file has another text, and no bytecode of the old one."""
    bytecode = [*(file.parent / "__pycache__").glob(f"{file.stem}.*.pyc")]
    for path in (file, *bytecode):
        path.rename(path.with_name(f"{path.name}.original"))
    file.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        for path in (file, *bytecode):
            path.with_name(f"{path.name}.original").replace(path)


@pytest.mark.parametrize("fault", ALL, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_planted_fault_is_noticed(fault: Fault, copy: Path, run: Run):
    path, symbol = fault.symbol.split(":")
    file = copy / "neural" / path
    source = file.read_text(encoding="utf-8")
    with replace_source(file, plant(source, symbol, fault.old, fault.new)):
        code, said = run(fault.tests)
    assert code == pytest.ExitCode.TESTS_FAILED, said


BuildKernel = Callable[[str, str], str]


@pytest.fixture(scope="module")
def build_kernel(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> BuildKernel:
    """Compiles a library with one kernel, for any processor, from its name and source; its path.

    The same source is compiled once.
    """
    folder, native = tmp_path_factory.mktemp("kernels"), copy / "neural" / "native"
    flags = ["-std=gnu++17", "-O1", "-fPIC", "-Wno-psabi", "-fopenmp-simd"]
    flags += ["-DKERNEL_LEVEL=baseline", f"-I{native}", f"-I{native / 'kernels'}"]
    common = [folder / f"{name}.o" for name in ("levels", "threads")]
    for target in common:
        source = native / f"{target.stem}.cpp"
        subprocess.run(["c++", *flags, "-c", str(source), "-o", str(target)], check=True)

    @cache
    def build(kernel: str, text: str) -> str:
        build_folder = Path(mkdtemp(dir=folder))
        source, library = build_folder / f"{kernel}.cpp", build_folder / f"{kernel}.so"
        source.write_text(text, encoding="utf-8")
        files = [str(path) for path in (source, *common)]
        subprocess.run(["c++", *flags, "-shared", *files, "-o", str(library)], check=True)
        return str(library)

    return build


@pytest.fixture(scope="module")
def run_kernel(run: Run, build_kernel: BuildKernel) -> Callable[..., tuple[int, str]]:
    """Tests with a kernel of this name and source; the same tests of the same source run once."""

    @cache
    def run_tests(kernel: str, text: str, tests: tuple[str, ...]) -> tuple[int, str]:
        library = build_kernel(kernel, text)
        return run(tests, NEURAL_NATIVE_LIBRARY=library, NEURAL_KERNELS="baseline")

    return run_tests


@pytest.mark.parametrize("fault", NATIVE_FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_in_a_kernel_is_noticed(fault: NativeFault, copy: Path, run_kernel: Run):
    kernel = copy / "neural" / "native" / "kernels" / f"{fault.kernel}.cpp"
    source = kernel.read_text(encoding="utf-8")
    assert source.count(fault.old) == 1, f"{fault.old!r} is there {source.count(fault.old)} times"
    broken = source.replace(fault.old, fault.new)
    for text, expected in (
        (source, pytest.ExitCode.OK),
        (broken, pytest.ExitCode.TESTS_FAILED),
    ):
        code, said = run_kernel(fault.kernel, text, fault.tests)
        assert code == expected, said


def test_without_a_fault_such_tests_pass(run: Run):
    """Here too, and not only in the suite: the copy is whole, and it was the fault that was noticed."""
    some = tuple(dict.fromkeys(test for fault in ALL[::15] for test in fault.tests))
    code, said = run(some)
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
