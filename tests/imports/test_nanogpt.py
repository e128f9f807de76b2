"""A checkpoint of nanoGPT becomes a run with the same scores that generates text."""

import pytest
import torch

from neural.imports.nanogpt import Nanogpt
from neural.runs.find import open_run
from neural.training.load_model import load_best_model
from neural.workflows.generate import load_generator
from neural.workflows.import_model import ModelImportError, import_file
from tests.nn.test_nanogpt import CONTEXT, HEADS, IDS, build_reference

TEXT = "abcdefghijklmnopqrs"


@pytest.fixture(scope="module")
def gpt():
    return build_reference(layers=2, bias=True)


@pytest.fixture
def file(gpt, tmp_path):
    arguments = {
        "n_head": HEADS,
        "n_layer": 2,
        "block_size": CONTEXT,
        "vocab_size": IDS,
        "bias": True,
        "dropout": 0.0,
    }
    state = {f"_orig_mod.{name}": tensor for name, tensor in gpt.state_dict().items()}
    checkpoint = {
        "model": state,
        "model_args": arguments,
        "iter_num": 7,
        "config": {"dataset": "x"},
    }
    torch.save(checkpoint, tmp_path / "ckpt.pt")
    (tmp_path / "input.txt").write_text(TEXT * 2)
    return tmp_path / "ckpt.pt"


def test_an_imported_run_has_the_scores_of_the_original(gpt, file, tmp_path):
    result = import_file(file, Nanogpt, runs=tmp_path / "runs")
    ids = torch.randint(0, IDS, (2, CONTEXT), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        load_best_model(result.path).logits(ids), gpt(ids), rtol=0, atol=1e-5
    )
    assert result.num_parameters == sum(param.numel() for param in gpt.parameters())
    assert open_run(result.path).status.state == "finished"
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [result.path.name]


def test_with_its_text_an_imported_run_generates(file, tmp_path):
    result = import_file(file, Nanogpt, [f"text={tmp_path / 'input.txt'}"], output=tmp_path / "gpt")
    assert result.path == tmp_path / "gpt"
    (text,) = load_generator(result.path).generate("abc", 9)
    assert len(text) == 9 and set(text) <= set(TEXT)


def test_a_text_with_other_characters_is_an_error(file, tmp_path):
    (tmp_path / "input.txt").write_text("abc")
    with pytest.raises(
        ModelImportError,
        match="has 3 different characters, the checkpoint 19: it is not the training",
    ):
        import_file(file, Nanogpt, [f"text={tmp_path / 'input.txt'}"], runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_missing_number_of_heads_is_an_error(gpt, tmp_path):
    torch.save({"model": gpt.state_dict()}, tmp_path / "bare.pt")
    with pytest.raises(ModelImportError, match="--set num_heads=…"):
        import_file(tmp_path / "bare.pt", Nanogpt, runs=tmp_path / "runs")
    assert import_file(
        tmp_path / "bare.pt", Nanogpt, [f"num_heads={HEADS}"], runs=tmp_path / "runs"
    ).path.is_dir()


def test_a_missing_weight_is_named_in_the_error(gpt, tmp_path):
    state = {name: tensor for name, tensor in gpt.state_dict().items() if "wpe" not in name}
    torch.save({"model": state, "model_args": {"n_head": 3}}, tmp_path / "other.pt")
    with pytest.raises(ModelImportError, match=r"transformer\.wpe\.weight is missing"):
        import_file(tmp_path / "other.pt", Nanogpt, runs=tmp_path / "runs")
