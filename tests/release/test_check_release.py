"""The checks before a release notice what they are for."""

from zipfile import ZipFile

import pytest

import neural
from release import check_release, check_wheels

NAMES = [name.replace("*", "1.0") for name in check_wheels.REQUIRED_FILES]
LIBRARY = "neural/native/libneural_kernels.so"


@pytest.fixture
def write_wheel(tmp_path):
    """A function that writes a wheel of empty files."""

    def write(system, names):
        path = tmp_path / f"neural_lab-1.0-py3-none-{system}.whl"
        with ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "")
        return path

    return write


def test_complete_wheels_have_no_problems(write_wheel):
    assert {"neural/py.typed", "neural_lab-1.0.dist-info/sboms/neural-lab.cdx.json"} <= set(NAMES)
    assert check_wheels.find_problems(write_wheel("any", NAMES)) == []
    assert check_wheels.find_problems(write_wheel("linux_x86_64", [*NAMES, LIBRARY])) == []


@pytest.mark.parametrize("missing", NAMES)
def test_every_missing_file_is_noticed(missing, write_wheel):
    names = [name for name in NAMES if name != missing]
    (problem,) = check_wheels.find_problems(write_wheel("any", names))
    assert problem.startswith("no file")


def test_the_native_library_belongs_to_wheels_of_one_system(write_wheel):
    assert check_wheels.find_problems(write_wheel("linux_x86_64", NAMES)) == [
        "has no native library"
    ]
    assert check_wheels.find_problems(write_wheel("any", [*NAMES, LIBRARY])) == [
        "has the native library"
    ]


def test_sources_and_large_wheels_are_noticed(write_wheel, monkeypatch):
    path = write_wheel("any", [*NAMES, "neural/native/kernels/rms_norm.cpp"])
    monkeypatch.setattr(check_wheels, "MAX_BYTES", 100)
    source, size = check_wheels.find_problems(path)
    assert source == "unwanted file neural/native/kernels/rms_norm.cpp"
    assert size.endswith("more than 100")


def write_checkout(folder, *, version, citation, heading):
    """The files that name the version, in another folder."""
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n## Unreleased\n\n{heading}\n")
    (folder / "CITATION.cff").write_text(f"version: {citation}\n")
    return {"ROOT": folder, "read_version": lambda: version}


@pytest.mark.parametrize(
    ("tag", "citation", "heading", "words"),
    [
        ("v1.2.0", "1.2.0", "## 1.2.0 – 2026-11-18", []),
        ("1.2.0", "1.2.0", "## 1.2.0 – 2026-11-18", ["the tag is 1.2.0"]),
        ("v1.2.0", "1.1.0", "## 1.2.0 – 2026-11-18", ["CITATION.cff"]),
        ("v1.2.0", "1.2.0", "## 1.1.0 – 2026-11-18", ["CHANGELOG.md"]),
        ("v1.2.0", "1.2.0", "## 1.2.0", ["CHANGELOG.md"]),
    ],
    ids=["complete", "tag", "citation", "changelog", "undated"],
)
def test_the_release_check_names_what_disagrees(
    tag, citation, heading, words, tmp_path, monkeypatch
):
    files = write_checkout(tmp_path, version="1.2.0", citation=citation, heading=heading)
    for name, value in files.items():
        monkeypatch.setattr(check_release, name, value)
    problems = check_release.find_problems(tag)
    assert len(problems) == len(words)
    assert all(word in problem for word, problem in zip(words, problems, strict=True))


def test_an_old_bill_of_materials_stops_a_release(monkeypatch, tmp_path):
    old = tmp_path / "sbom.cdx.json"
    old.write_text('{"metadata": {"component": {"version": "0.0.1"}}}')
    monkeypatch.setattr(check_release, "SBOM_FILE", old)
    problems = check_release.find_problems(f"v{neural.__version__}")
    assert any("0.0.1" in problem and "make sbom" in problem for problem in problems)
