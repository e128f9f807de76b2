"""`neural export` and `neural import`, as a user types them."""

import json

import pytest
import torch
from click.testing import CliRunner

from neural.cli.main import main
from neural.exports import huggingface
from tests.written_runs import CHARACTERS, write_run


def typed(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface, "find_spec", lambda name: None)   # importing transformers takes seconds
    return write_run(tmp_path / "runs", vocabulary=list(CHARACTERS))


def test_a_run_is_exported_under_its_own_name(run, tmp_path):
    shown = typed("export", "--to", "huggingface")
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / f"{run.name}_huggingface" / "config.json").exists()
    first, second, third = shown.stdout.splitlines()
    assert "input_ids (batch, time), attention_mask (batch, time) → logits" in first
    assert second.startswith("equal to the network at (2, 16), (3, 15), (1, 8): the largest difference is")
    assert third.startswith("transformers.AutoModelForCausalLM.from_pretrained(")
    again = typed("export", "--to", "huggingface")
    assert again.exit_code == 2 and "name another place with -o" in again.stderr


def test_json_is_one_object(run):
    said = json.loads(typed("export", run, "--to", "huggingface", "-o", "out", "--scores", "--mask", "--json").stdout)
    assert (said["path"], said["output"]) == ("out", "logits")
    assert said["inputs"] == ["input_ids", "attention_mask"]
    assert said["difference"] <= said["allowed"] == 1e-5


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["export", "--to", "onxx"], "no form to export to is called `onxx`; did you mean `onnx`?"),
        (["export", "nothing", "--to", "torch"], "there is no run `nothing`"),
        (["export", "--to", "huggingface", "-o", "nowhere/out"], "nowhere/out cannot be written"),
        (["export"], "--to"),
        (["import", "none.pt", "--as", "nanogpt"], "there is no file none.pt"),
        (["import", "none.pt", "--as", "nanogtp"], "did you mean `nanogpt`?"),
        (["import", "none.pt", "--as", "nanogpt", "--set", "heads=3"], "heads"),
    ],
)
def test_a_mistake_is_a_message(run, words, says):
    shown = typed(*words)
    assert shown.exit_code == 2, shown.output
    assert says in shown.stderr
    assert "Traceback" not in shown.stderr


def test_an_encoder_comes_in_and_can_be_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layer = torch.nn.TransformerEncoderLayer(4, 2, 5, batch_first=True)
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    shown = typed("import", "layer.pt", "--as", "nn.TransformerEncoder", "--set", "num_heads=2")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("runs/") and "equal to torch's own" in shown.stdout
    assert typed("show").exit_code == 0
    assert "encoder" in typed("runs").stdout
