"""`neural generate`, as a user types it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from tests.written_runs import CHARACTERS, program, write_run


def invoke(*words):
    return CliRunner().invoke(main, ["generate", *(str(word) for word in words)])


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_run(tmp_path / "runs", vocabulary=list(CHARACTERS))


def test_the_text_continues_the_prompt(path):
    result = invoke("--prompt", "abc", "--tokens", 30)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("abc")
    assert len(result.stdout) == 3 + 30 + 1
    assert "30 tokens in" in result.stderr
    assert invoke(path, "--prompt", "abc", "--tokens", 30).stdout == result.stdout, (
        "the same seed, the same text"
    )
    assert invoke(path, "--prompt", "abc", "--tokens", 30, "--seed", 1).stdout != result.stdout


def test_several_samples_are_numbered(path):
    result = invoke(
        "--prompt", "a", "--tokens", 5, "--samples", 3, "--temperature", "1.0", "--top-k", 200
    )
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if line.startswith("---")] == [
        "--- 1 of 3",
        "--- 2 of 3",
        "--- 3 of 3",
    ]


def test_json_is_one_object(path):
    result = invoke(
        "--tokens", 7, "--samples", 2, "--json", "--top-p", "0.9", "--decoder", "cached"
    )
    data = json.loads(result.stdout)
    assert [len(sample) for sample in data["samples"]] == [7, 7]
    assert data["prompt"] == "\n"
    assert data["tokens"] == 14
    assert data["decoder"] == "cached"
    assert data["top_p"] == 0.9


def test_the_attention_of_every_token_is_written(path, tmp_path):
    result = invoke(
        "--prompt", "ab", "--tokens", 9, "--samples", 40, "--attention", "weights.npz", "--json"
    )
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "weights.npz") as arrays:
        assert arrays["weights"].shape == (40, 9, 2, 2, 10)
        assert arrays["weights"].sum(axis=-1) == pytest.approx(1, abs=1e-2)
        texts = [str(text) for text in arrays["text"]]
    assert texts == ["ab" + sample for sample in json.loads(result.stdout)["samples"]]
    assert json.loads(invoke("--prompt", "ab", "--tokens", 9, "--samples", 40, "--json").stdout)[
        "samples"
    ] == [text[2:] for text in texts], "capture does not change the text"


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_weights_can_be_float32_or_int8(path, weights):
    assert invoke("--tokens", 5, "--weights", weights).exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--prompt", "abZ"], "character 3 of the prompt, 'Z', does not occur"),
        (["--prompt", ""], "the prompt is empty"),
        (["nothing"], "there is no run `nothing`"),
        (["--temperature", "-1"], "--temperature"),
        (["--temperature", "nan"], "nan is not a finite number"),
        (["--tokens", "0"], "--tokens"),
        (["--attention", "nowhere/weights.npz"], "there is no folder nowhere"),
        (["--attention", "weights.txt"], "weights.npz"),
        (["--attention", "weights.npz", "--decoder", "compiled"], "leave out --decoder compiled"),
    ],
)
def test_an_error_is_a_message(path, words, message):
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_network_that_cannot_generate_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = program(20).replace("Output(20", "GlobalAveragePooling1D()\n    Output(20")
    write_run(tmp_path / "runs", text=text, vocabulary=list(CHARACTERS))
    result = invoke()
    assert result.exit_code == 2
    assert "does not generate text" in result.stderr


def test_a_run_of_another_task_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = 'network Rows { input: (5, 6) layers: Dense(3) loss: "mse" }'
    write_run(tmp_path / "runs", text=text, settings={"task": "supervised", "name": "rows"})
    result = invoke()
    assert result.exit_code == 2
    assert "is a run of `supervised`: it generates no text" in result.stderr
