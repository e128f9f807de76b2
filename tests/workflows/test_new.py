"""`create_project` checks names, overwrites nothing and fills every placeholder."""

from pathlib import Path

import pytest

from neural.workflows.new import (
    TEMPLATE_DIR,
    TEMPLATE_FILES,
    ProjectError,
    create_project,
    suggest_name,
    to_camel_case,
)


def test_every_template_file_is_used_and_every_placeholder_is_filled(tmp_path):
    assert {path.name.removesuffix(".txt") for path in TEMPLATE_DIR.iterdir()} == set(
        TEMPLATE_FILES
    )
    project = create_project("glow", tmp_path)
    assert {
        path.relative_to(project.path) for path in project.path.rglob("*") if path.is_file()
    } == set(project.files)
    assert not [
        path
        for path in project.files
        if "§" in (project.path / path).read_text(encoding="utf-8") + path.name
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my-lab", "how about `my_lab`?"),
        ("2fast", "how about `fast`?"),
        ("Über uns", "how about `uber_uns`?"),
        ("class", "a keyword of Python; how about `class_lab`?"),
        ("", "how about `attention_lab`?"),
        ("torch", "a package called `torch` is installed already"),
        ("json", "how about `json_lab`?"),
        ("../away", "how about `away`?"),
        ("x" * 61, "cannot be imported"),
    ],
)
def test_a_name_that_cannot_be_imported_is_refused_with_a_suggestion(tmp_path, name, message):
    with pytest.raises(ProjectError) as caught:
        create_project(name, tmp_path)
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())
    create_project(suggest_name(name), tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("localized", "exists already, in neural.nn.attention.localized"),
        ("Warmth", "how about `warmth`?"),
        ("a_b", "how about `ab`?"),
        ("rates", "is used for something else in the"),
    ],
)
def test_an_invalid_or_taken_mechanism_name_is_refused(tmp_path, name, message):
    with pytest.raises(ProjectError) as caught:
        create_project("kindling_two", tmp_path, name)
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_is_never_overwritten(tmp_path):
    (tmp_path / "glow").mkdir()
    (tmp_path / "glow" / "mine.txt").write_text("mine")
    with pytest.raises(ProjectError, match="glow exists already and was not changed"):
        create_project("glow", tmp_path)
    assert [path.name for path in (tmp_path / "glow").rglob("*")] == ["mine.txt"]
    (tmp_path / "file").write_text("")
    with pytest.raises(ProjectError, match="cannot be created: not a directory"):
        create_project("glow", tmp_path / "file")


def test_a_failed_write_leaves_no_files(tmp_path, monkeypatch):
    def fail(path, text, *, durable):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("neural.workflows.new.write_atomically", fail)
    with pytest.raises(ProjectError, match="cannot be written: no space left on device"):
        create_project("glow", tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_name_of_the_mechanism_is_used_in_all_files(tmp_path):
    project = create_project("glow", tmp_path, "slow_warmth")
    assert to_camel_case("slow_warmth") == "SlowWarmth"
    texts = {path: (project.path / path).read_text(encoding="utf-8") for path in project.files}
    assert "class SlowWarmth(Mechanism)" in texts[Path("src/glow/attention/slow_warmth.py")]
    assert 'attention="slow_warmth"' in texts[Path("glow.neural")]
    assert 'slow_warmth = "glow.attention.slow_warmth:SlowWarmth"' in texts[Path("pyproject.toml")]
    assert not [path for path, text in texts.items() if "fading.py" in text or "Fading" in text]
