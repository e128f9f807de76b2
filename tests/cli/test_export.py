"""`neural export` and `neural import`, as a user types them."""

import json

import pytest
import torch
from click.testing import CliRunner

from neural.cli.main import main
from neural.exports import huggingface
from tests.written_runs import CHARACTERS, write_run


def invoke(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Importing transformers takes seconds.
    monkeypatch.setattr(huggingface, "find_spec", lambda name: None)
    return write_run(tmp_path / "runs", vocabulary=list(CHARACTERS))


def test_a_run_is_exported_under_its_own_name(run, tmp_path):
    result = invoke("export", "--to", "huggingface")
    assert result.exit_code == 0, result.output
    assert (tmp_path / f"{run.name}_huggingface" / "config.json").exists()
    first, second, third = result.stdout.splitlines()
    assert "input_ids (batch, time), attention_mask (batch, time) → logits" in first
    assert second.startswith(
        "equal to the network at (2, 16), (3, 15), (1, 8): the largest difference is"
    )
    assert third.startswith("transformers.AutoModelForCausalLM.from_pretrained(")
    again = invoke("export", "--to", "huggingface")
    assert again.exit_code == 2 and "choose another path with -o" in again.stderr


@pytest.mark.parametrize("words", [["-o", "net.pt2"], ["--format", "torch", "-o", "net.pt2"]])
def test_the_format_is_that_of_the_suffix_or_of_either_option(run, words):
    result = invoke("export", run, *words, "--json")
    assert json.loads(result.stdout)["form"] == "torch"


def test_json_is_one_object(run):
    data = json.loads(
        invoke(
            "export", run, "--to", "huggingface", "-o", "out", "--scores", "--mask", "--json"
        ).stdout
    )
    assert (data["path"], data["output"]) == ("out", "logits")
    assert data["inputs"] == ["input_ids", "attention_mask"]
    assert data["difference"] <= data["allowed"] == 1e-5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export", "--to", "onxx"], "no export format is called `onxx`; did you mean `onnx`?"),
        (["export", "nothing", "--to", "torch"], "there is no run `nothing`"),
        (["export", "--to", "huggingface", "-o", "nowhere/out"], "nowhere/out cannot be written"),
        (["export"], "choose a format: --to huggingface | keras | onnx | torch, or a file such as"),
        (["export", "-o", "net.tflite"], "choose a format: --to "),
        (["import", "none.pt", "--as", "nanogpt"], "there is no file none.pt"),
        (["import", "none.pt", "--as", "nanogtp"], "did you mean `nanogpt`?"),
        (["import", "none.pt", "--as", "nanogpt", "--set", "heads=3"], "heads"),
    ],
)
def test_an_error_is_a_message(run, words, message):
    result = invoke(*words)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_an_encoder_is_imported_and_can_be_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layer = torch.nn.TransformerEncoderLayer(4, 2, 5, batch_first=True)
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    result = invoke("import", "layer.pt", "--as", "nn.TransformerEncoder", "--set", "num_heads=2")
    assert result.exit_code == 0, result.output
    assert (
        result.stdout.startswith("runs/")
        and "largest difference to torch's module" in result.stdout
    )
    assert invoke("show").exit_code == 0
    assert "encoder" in invoke("runs").stdout
