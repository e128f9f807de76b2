"""The Makefile installs what a target needs, once, and keeps the caller's number of threads."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def list_recipe(*arguments, **variables):
    """Commands that make would run in a checkout where nothing is installed; none is run."""
    environment = {
        name: value
        for name, value in os.environ.items()
        # set by make's own processes, by CI systems, by users who want torch from another index
        if name not in ("MAKEFLAGS", "MAKELEVEL", "OMP_NUM_THREADS", "CI", "TORCH_INDEX")
    }
    command = ["make", "--dry-run", "--no-print-directory", "VENV=build/no_such_folder", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment | variables, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_demo_installs_no_package_that_only_tests_need():
    recipe = list_recipe("demo")
    assert recipe.count("pip install") == 1
    assert "--editable ." in recipe


def test_the_native_library_is_compiled_once_for_the_tests():
    recipe = list_recipe("pytest")
    assert recipe.count("pip install") == 2
    assert recipe.count("--editable") == 1


def test_in_ci_every_package_but_torch_comes_with_a_known_hash():
    recipe = list_recipe("pytest", "integrations", CI="true")
    installs = [line for line in recipe.splitlines() if "pip install" in line]
    locked = [line for line in installs if "--no-deps --require-hashes" in line]
    assert len(locked) == 2  # tests and integrations
    torch, own = (line for line in installs if line not in locked)
    assert "pip install --quiet  torch==" in torch
    assert "--no-deps --no-build-isolation --editable" in own


def test_the_index_of_pytorch_serves_torch_alone():
    recipe = list_recipe("pytest", TORCH_INDEX="https://example.org/cpu")
    (line,) = [line for line in recipe.splitlines() if "https://example.org/cpu" in line]
    assert "--no-deps --index-url https://example.org/cpu torch==" in line
    assert "extra-index-url" not in recipe


@pytest.mark.parametrize("part", ["compiler", "npm", "browser"])
def test_the_tests_look_for_what_they_need_of_the_system(part):
    assert f"tests/set_up.py {part}" in list_recipe("test")


def test_the_installation_is_announced_before_it_starts():
    recipe = list_recipe("demo")
    assert recipe.index("some minutes") < recipe.index("-m venv")


def test_the_demo_keeps_the_number_of_threads_that_the_caller_has_set():
    assert "env -u OMP_NUM_THREADS" in list_recipe("demo")
    assert "env -u" not in list_recipe("demo", OMP_NUM_THREADS="3")
    assert "env -u" not in list_recipe("demo", "OMP_NUM_THREADS=3")
