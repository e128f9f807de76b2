"""`neural generate`, as a user types it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from tests.written_runs import CHARACTERS, program, write_run


def typed(*words):
    return CliRunner().invoke(main, ["generate", *(str(word) for word in words)])


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_run(tmp_path / "runs", vocabulary=list(CHARACTERS))


def test_text_goes_on_from_the_prompt(path):
    shown = typed("--prompt", "abc", "--tokens", 30)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("abc")
    assert len(shown.stdout) == 3 + 30 + 1
    assert "30 tokens in" in shown.stderr
    assert typed(path, "--prompt", "abc", "--tokens", 30).stdout == shown.stdout, "the same seed, the same text"
    assert typed(path, "--prompt", "abc", "--tokens", 30, "--seed", 1).stdout != shown.stdout


def test_several_samples_are_numbered(path):
    shown = typed("--prompt", "a", "--tokens", 5, "--samples", 3, "--temperature", "1.0", "--top-k", 200)
    assert shown.exit_code == 0, shown.output
    assert [line for line in shown.stdout.splitlines() if line.startswith("---")] == [
        "--- 1 of 3", "--- 2 of 3", "--- 3 of 3",
    ]  # fmt: skip


def test_json_is_one_object(path):
    shown = typed("--tokens", 7, "--samples", 2, "--json", "--top-p", "0.9", "--way", "cached")
    said = json.loads(shown.stdout)
    assert [len(one) for one in said["samples"]] == [7, 7]
    assert said["prompt"] == "\n"
    assert said["tokens"] == 14
    assert said["way"] == "cached"
    assert said["top_p"] == 0.9


def test_what_every_character_looked_at_is_written(path, tmp_path):
    shown = typed("--prompt", "ab", "--tokens", 9, "--samples", 40, "--attention", "seen.npz", "--json")
    assert shown.exit_code == 0, shown.output
    with np.load(tmp_path / "seen.npz") as found:
        assert found["weights"].shape == (40, 9, 2, 2, 10)
        assert found["weights"].sum(axis=-1) == pytest.approx(1, abs=1e-2)
        texts = [str(one) for one in found["text"]]
    assert texts == ["ab" + one for one in json.loads(shown.stdout)["samples"]]
    assert json.loads(typed("--prompt", "ab", "--tokens", 9, "--samples", 40, "--json").stdout)["samples"] == [
        one[2:] for one in texts
    ], "looking changes nothing"


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_eight_bits_write_too(path, weights):
    assert typed("--tokens", 5, "--weights", weights).exit_code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--prompt", "abZ"], "character 3 of the prompt, 'Z', does not occur"),
        (["--prompt", ""], "the prompt is empty"),
        (["nothing"], "there is no run `nothing`"),
        (["--temperature", "-1"], "--temperature"),
        (["--temperature", "nan"], "nan is not a finite number"),
        (["--tokens", "0"], "--tokens"),
        (["--attention", "nowhere/seen.npz"], "there is no folder nowhere"),
        (["--attention", "seen.txt"], "seen.npz"),
        (["--attention", "seen.npz", "--way", "compiled"], "leave out --way compiled"),
    ],
)
def test_a_mistake_is_a_message(path, words, says):
    shown = typed(*words)
    assert shown.exit_code == 2
    assert says in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_network_that_writes_no_text_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = program(20).replace("Output(20", "GlobalAveragePooling1D()\n    Output(20")
    write_run(tmp_path / "runs", text=text, vocabulary=list(CHARACTERS))
    shown = typed()
    assert shown.exit_code == 2
    assert "does not write text" in shown.stderr


def test_a_run_that_takes_no_text_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "network Rows { input: (5, 6) layers: Dense(3) loss: \"mse\" }"
    write_run(tmp_path / "runs", text=text, settings={"task": "supervised", "name": "rows"})
    shown = typed()
    assert shown.exit_code == 2
    assert "is a run of `supervised`: it does not write" in shown.stderr
