"""release/locks: what CI and releases install, by version and hash."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = {path.stem: path for path in sorted((ROOT / "release" / "locks").glob("*.txt"))}
PIN = re.compile(r"(?m)^([\w.-]+)==([^\s;]+)")


def normalize(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(path):
    return {normalize(name): version for name, version in PIN.findall(path.read_text("utf-8"))}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_has_a_version_and_a_hash(lock):
    blocks = re.split(r"\n(?=\S)", LOCKS[lock].read_text("utf-8").strip())[1:]
    assert blocks
    assert [
        block for block in blocks if not PIN.match(block) or "--hash=sha256:" not in block
    ] == []


@pytest.mark.parametrize("lock", ["image", "integrations", "tests"])
def test_versions_are_those_of_the_constraints(lock):
    constraints = read_pins(ROOT / "constraints.txt")
    pins = read_pins(LOCKS[lock])
    shared = pins.keys() & constraints.keys()
    assert {name: pins[name] for name in shared} == {name: constraints[name] for name in shared}


def test_every_requirement_of_the_tests_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    required = [*project["project"]["dependencies"], *extras["dev"]]
    required += project["build-system"]["requires"]
    names = {normalize(re.match(r"[\w.-]+", requirement)[0]) for requirement in required}
    assert names - read_pins(LOCKS["tests"]).keys() == {"torch"}


@pytest.mark.parametrize("lock", LOCKS)
def test_no_hash_of_the_package_index_leads_to_torch_for_cuda(lock):
    """pip prefers a file whose hash the index states to a better version beside it."""
    assert "torch" not in read_pins(LOCKS[lock])


def test_the_base_image_has_a_digest():
    text = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.search(r"(?m)^ARG BASE=python:[\w.-]+@sha256:[0-9a-f]{64}$", text)
    assert set(re.findall(r"(?m)^FROM (\S+)", text)) == {"${BASE}"}


def test_no_second_index_can_answer_for_a_package():
    files = [ROOT / "Dockerfile", ROOT / "Makefile", ROOT / "pyproject.toml"]
    files += (ROOT / ".github" / "workflows").glob("*.yml")
    assert [
        file.name for file in files if re.search("extra.index", file.read_text("utf-8"), re.I)
    ] == []
