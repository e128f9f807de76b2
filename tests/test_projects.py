"""A new project: its names are checked, nothing is overwritten, every blank is filled."""

from pathlib import Path

import pytest

from neural.projects import FILES, TEMPLATE, ProjectError, camel, new_project, suggested


def test_every_file_of_the_template_is_used_and_every_blank_is_filled(tmp_path):
    assert {path.name.removesuffix(".txt") for path in TEMPLATE.iterdir()} == set(FILES)
    made = new_project("glow", tmp_path)
    assert {path.relative_to(made.path) for path in made.path.rglob("*") if path.is_file()} == set(made.files)
    assert not [path for path in made.files if "§" in (made.path / path).read_text(encoding="utf-8") + path.name]


@pytest.mark.parametrize(("name", "words"), [
    ("my-lab", "how about `my_lab`?"), ("2fast", "how about `fast`?"), ("Über uns", "how about `uber_uns`?"),
    ("class", "a word of Python's own; how about `class_lab`?"), ("", "how about `attention_lab`?"),
    ("torch", "a package called `torch` is installed already"), ("json", "how about `json_lab`?"),
    ("../away", "how about `away`?"), ("x" * 61, "cannot be imported"),
])  # fmt: skip
def test_a_name_that_cannot_be_imported_is_refused_with_one_that_can(tmp_path, name, words):
    with pytest.raises(ProjectError) as caught:
        new_project(name, tmp_path)
    assert words in str(caught.value)
    assert not list(tmp_path.iterdir())
    new_project(suggested(name), tmp_path)


@pytest.mark.parametrize(("name", "words"), [
    ("localized", "is there already, in neural.modules.attention.localized"),
    ("Warmth", "how about `warmth`?"), ("a_b", "how about `ab`?"), ("rates", "means something else in the"),
])  # fmt: skip
def test_a_mechanism_that_programs_could_not_name_is_refused(tmp_path, name, words):
    with pytest.raises(ProjectError) as caught:
        new_project("kindling_two", tmp_path, name)
    assert words in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_never_overwritten(tmp_path):
    (tmp_path / "glow").mkdir()
    (tmp_path / "glow" / "mine.txt").write_text("mine")
    with pytest.raises(ProjectError, match="glow is there already, and is left as it is"):
        new_project("glow", tmp_path)
    assert [path.name for path in (tmp_path / "glow").rglob("*")] == ["mine.txt"]
    (tmp_path / "file").write_text("")
    with pytest.raises(ProjectError, match="cannot be made: not a directory"):
        new_project("glow", tmp_path / "file")


def test_a_project_that_could_not_be_written_leaves_nothing(tmp_path, monkeypatch):
    def full(path, text, *, durable):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("neural.projects.write_atomically", full)
    with pytest.raises(ProjectError, match="cannot be written: no space left on device"):
        new_project("glow", tmp_path)
    assert not list(tmp_path.iterdir())


def test_another_name_for_the_mechanism_goes_through_all_files(tmp_path):
    made = new_project("glow", tmp_path, "slow_warmth")
    assert camel("slow_warmth") == "SlowWarmth"
    texts = {path: (made.path / path).read_text(encoding="utf-8") for path in made.files}
    assert "class SlowWarmth(Mechanism)" in texts[Path("src/glow/attention/slow_warmth.py")]
    assert 'attention="slow_warmth"' in texts[Path("glow.neural")]
    assert 'slow_warmth = "glow.attention.slow_warmth:SlowWarmth"' in texts[Path("pyproject.toml")]
    assert not [path for path, text in texts.items() if "fading.py" in text or "Fading" in text]
