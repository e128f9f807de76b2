"""Tests that need a browser or a compiler are left out and counted where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEST = """
import pytest
@pytest.fixture
def chromium():
    raise AssertionError("there is none")
def test_page(chromium): pass
def test_other_page(chromium): pass
@pytest.mark.needs_compiler
def test_build(): pass
def test_plain(): pass
"""


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_left_out_tests_are_counted_and_an_error_in_ci(tmp_path, ci, code):
    (tmp_path / "test_pages.py").write_text(TEST)
    program = (
        "import sys, pytest, tests.set_up as set_up; set_up.find_part = lambda part: None; "
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'tests.conftest', {str(tmp_path)!r}]))"
    )
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "2 tests were left out: this machine has no browser" in done.stdout
    assert "1 test was left out: this machine has no compiler" in done.stdout
    assert "1 passed, 3 skipped" in done.stdout


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_a_part_that_cannot_be_installed_is_named(tmp_path, ci, code):
    program = (
        "import sys, tests.set_up as set_up; sys.argv = ['set_up.py', 'npm']; "
        "set_up.find_part = lambda part: None; set_up.install_packages = lambda packages: None; "
        "set_up.main()"
    )
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == code
    assert "There is no npm on this machine, and none could be installed" in done.stdout


def test_a_driver_of_playwright_that_does_not_start_is_no_browser():
    program = "import tests.set_up as set_up; print(set_up.find_part('browser'))"
    settings = {"PATH": "", "PYTHONPATH": str(ROOT), "PLAYWRIGHT_NODEJS_PATH": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")
