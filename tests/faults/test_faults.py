"""Tests that can fail: every fault, planted in a copy of the source, is noticed by the tests named beside it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import neural
from tests.faults.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "neural"
WITHOUT = ["-pno:cacheprovider", "-pno:xdist", "-pno:hypothesispytest", "-pno:jaxtyping"]
"""Plugins that these runs start more quickly without."""
RUN = """
import sys
from pathlib import Path
import neural
assert Path(neural.__path__[0]).is_relative_to({copy!r}), neural.__path__
import pytest
sys.exit(pytest.main(["-x", "-q", "--assert=plain", *{without!r}, *{tests!r}]))
"""


def run(copy: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """The tests, in a process that imports the copy."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**inherited, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    script = RUN.format(copy=str(copy), without=WITHOUT, tests=list(tests))
    call = [sys.executable, "-c", script]
    return subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


def copy_of_the_source(folder: Path) -> Path:
    shutil.copytree(SOURCE, folder / "neural", ignore=shutil.ignore_patterns("*.pyc.*"))   # half written
    return folder


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_planted_fault_is_noticed(fault: Fault, tmp_path: Path):
    copy = copy_of_the_source(tmp_path)
    file = copy / "neural" / fault.file
    text = file.read_text(encoding="utf-8")
    assert text.count(fault.old) == 1, f"{fault.file} has changed: it has {text.count(fault.old)} × `{fault.old}`"
    file.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    shutil.rmtree(file.parent / "__pycache__", ignore_errors=True)   # of the file as it was
    done = run(copy, fault.tests)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr


def test_without_a_fault_the_same_tests_pass(tmp_path: Path):
    named = tuple(dict.fromkeys(test for fault in FAULTS for test in fault.tests))
    done = run(copy_of_the_source(tmp_path), named)
    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr


def test_every_fault_has_a_name_of_its_own():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert Path(neural.__path__[0]).name == "neural"
