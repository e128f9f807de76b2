"""A file of another kind than the verb expects: one line with the right command."""

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.core.file_kind import detect_kind
from tests.sweeps import write_sweep

SWEEP = "experiment: tiny.neural\nseeds: [0, 1]\n"
EXPERIMENT = "task: supervised\nnetwork: tiny.neural\ndata: tiny.npz\n"


def invoke(*words):
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A sweep `rates.yaml` of `tiny.neural`; the tests work in it."""
    write_sweep(tmp_path, SWEEP)
    (tmp_path / "tiny.yaml").write_text(EXPERIMENT)
    (tmp_path / "study.yaml").write_text("experiment: model.yaml\ndata: [handbook]\n")
    (tmp_path / "notes.md").write_text("# Notes\n\nOne. Two! Three? `Four`.\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "status.json").write_text("{}")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "rates.yaml"], "rates.yaml is a sweep: `neural sweep rates.yaml` trains it"),
        (["train", "study.yaml"], "study.yaml is a study: `neural study study.yaml` trains it"),
        (
            ["sweep", "tiny.yaml"],
            "trains it; a sweep is a file that names it, `experiment: tiny.yaml`",
        ),
        (["sweep", "tiny.neural"], "tiny.neural is a program: "),
        (["study", "rates.yaml"], "rates.yaml is a sweep: "),
        (["dynamics", "tiny.yaml"], "tiny.yaml is an experiment: "),
        (["debug", "tiny.yaml"], "tiny.yaml is an experiment: "),
        (["check", "notes.md"], "notes.md is not a program: it has no line `network NAME {`"),
        (["fmt", "notes.md"], "notes.md is not a program"),
        (["train", "run"], "run is a run folder: `neural train --resume run` resumes it"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_file_of_another_kind_gets_the_right_command(words, message):
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{task: supervised, data: tiny.npz}", "experiment"),
        ("experiment: tiny.neural\nseeds: [0, 1", "sweep"),
        ("experiment: model.yaml\ndata: [handbook]\n  odd: indentation", "study"),
        ("network: |\n  task: not a key\n", None),
        ("nested:\n  task: supervised\n", None),
        ("- task: supervised\n", None),
        ("\0task: supervised\n", None),
    ],
    ids=["flow style", "not closed", "indentation", "block text", "nested", "list", "binary"],
)
def test_the_kind_is_that_of_the_top_level_keys_before_an_error(tmp_path, text, kind):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    assert detect_kind(path) == kind


@pytest.mark.usefixtures("folder")
def test_check_accepts_sweeps_and_continues_after_an_error():
    result = invoke("check", "empty.yaml", "rates.yaml")
    assert result.exit_code == 2
    assert "empty.yaml: no such file" in result.stderr
    assert result.stdout.splitlines()[:3] == [
        "sweep of tiny.neural, 2 trials",
        "  seed-0",
        "  seed-1",
    ]


@pytest.mark.parametrize(
    ("option", "key"),
    [("--steps", "steps"), ("--step", "steps"), ("--lr", "learning_rate")],
)
def test_a_key_used_as_an_option_gets_the_right_syntax(option, key):
    result = invoke("train", "net.neural", option, "5")
    assert result.exit_code == 2
    assert f"there is no option {option}: use --set training.{key}=5" in result.stderr
    result = invoke("train", "net.neural", f"{option}=7")
    assert f"use --set training.{key}=7" in result.stderr


def test_a_misspelt_option_is_not_taken_for_a_key():
    result = invoke("train", "net.neural", "--sed", "5")
    assert "--seed" in result.stderr
    assert "--set training" not in result.stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["train", "check"])
def test_a_misspelt_file_gets_a_suggestion(command):
    result = invoke(command, "rtaes.yaml")
    assert result.exit_code == 2
    assert "rtaes.yaml: no such file or directory; did you mean `rates.yaml`?" in result.stderr
