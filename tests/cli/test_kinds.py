"""A file of another kind than the verb takes: said in one line, with what to type."""

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from tests.sweeps import write_sweep

SWEEP = "experiment: tiny.neural\nseeds: [0, 1]\n"
EXPERIMENT = "task: supervised\nnetwork: tiny.neural\ndata: tiny.npz\n"


def typed(*words):
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
    ("words", "said"),
    [
        (["train", "rates.yaml"], "rates.yaml is a sweep: `neural sweep rates.yaml` trains it"),
        (["train", "study.yaml"], "study.yaml is a study: `neural study study.yaml` trains it"),
        (["sweep", "tiny.yaml"], "trains it; a sweep is a file that names it, `experiment: tiny.yaml`"),
        (["sweep", "tiny.neural"], "tiny.neural is a program: "),
        (["study", "rates.yaml"], "rates.yaml is a sweep: "),
        (["dynamics", "tiny.yaml"], "tiny.yaml is an experiment: "),
        (["debug", "tiny.yaml"], "tiny.yaml is an experiment: "),
        (["check", "notes.md"], "notes.md is no program: nowhere in it stands `network NAME {`"),
        (["fmt", "notes.md"], "notes.md is no program"),
        (["train", "run"], "run is a folder: `neural train --resume run` goes on with that run"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_file_of_another_kind_is_told_with_what_to_type(words, said):
    shown = typed(*words)
    assert shown.exit_code == 2
    assert said in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


@pytest.mark.usefixtures("folder")
def test_check_knows_sweeps_and_looks_at_every_file():
    shown = typed("check", "empty.yaml", "rates.yaml")
    assert shown.exit_code == 2
    assert "empty.yaml: no such file" in shown.stderr
    assert shown.stdout.splitlines()[:3] == ["sweep of tiny.neural, 2 trials", "  seed-0", "  seed-1"]


@pytest.mark.parametrize(("option", "key"), [("--steps", "steps"), ("--lr", "learning_rate")])
def test_a_key_taken_for_an_option_is_told_how_to_write_it(option, key):
    shown = typed("train", "net.neural", option, "5")
    assert shown.exit_code == 2
    assert f"no option is called {option}: write --set training.{key}=…" in shown.stderr
