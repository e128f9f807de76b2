"""A checkpoint of nanoGPT becomes a run that writes, and gives the same scores."""

import pytest
import torch

from neural.experiments import best_model, open_run
from neural.generation import writer_of
from neural.importing import CannotImport, import_file
from neural.imports.nanogpt import Nanogpt
from tests.modules.test_nanogpt import CONTEXT, HEADS, IDS, reference

TEXT = "abcdefghijklmnopqrs"


@pytest.fixture(scope="module")
def gpt():
    return reference(layers=2, bias=True)


@pytest.fixture
def file(gpt, tmp_path):
    arguments = {"n_head": HEADS, "n_layer": 2, "block_size": CONTEXT, "vocab_size": IDS, "bias": True, "dropout": 0.0}
    state = {f"_orig_mod.{name}": one for name, one in gpt.state_dict().items()}
    whole = {"model": state, "model_args": arguments, "iter_num": 7, "config": {"dataset": "x"}}
    torch.save(whole, tmp_path / "ckpt.pt")
    (tmp_path / "input.txt").write_text(TEXT * 2)
    return tmp_path / "ckpt.pt"


def test_the_run_gives_the_scores_of_the_original(gpt, file, tmp_path):
    done = import_file(file, Nanogpt, runs=tmp_path / "runs")
    ids = torch.randint(0, IDS, (2, CONTEXT), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(best_model(done.path).scores(ids), gpt(ids), rtol=0, atol=1e-5)
    assert done.parameters == sum(one.numel() for one in gpt.parameters())
    assert open_run(done.path).status.state == "finished"
    assert [one.name for one in (tmp_path / "runs").iterdir()] == [done.path.name], "nothing is left beside it"


def test_with_its_text_the_run_writes(file, tmp_path):
    done = import_file(file, Nanogpt, [f"text={tmp_path / 'input.txt'}"], output=tmp_path / "gpt")
    assert done.path == tmp_path / "gpt"
    (text,) = writer_of(done.path).write("abc", 9)
    assert len(text) == 9 and set(text) <= set(TEXT)


def test_another_text_is_refused(file, tmp_path):
    (tmp_path / "input.txt").write_text("abc")
    with pytest.raises(CannotImport, match="has 3 different characters, the checkpoint 19: another text"):
        import_file(file, Nanogpt, [f"text={tmp_path / 'input.txt'}"], runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_heads_that_nobody_told_are_asked_for(gpt, tmp_path):
    torch.save({"model": gpt.state_dict()}, tmp_path / "bare.pt")
    with pytest.raises(CannotImport, match="--set num_heads=…"):
        import_file(tmp_path / "bare.pt", Nanogpt, runs=tmp_path / "runs")
    assert import_file(tmp_path / "bare.pt", Nanogpt, [f"num_heads={HEADS}"], runs=tmp_path / "runs").path.is_dir()


def test_what_is_no_checkpoint_is_named(gpt, tmp_path):
    state = {name: one for name, one in gpt.state_dict().items() if "wpe" not in name}
    torch.save({"model": state, "model_args": {"n_head": 3}}, tmp_path / "other.pt")
    with pytest.raises(CannotImport, match=r"there is no transformer\.wpe\.weight"):
        import_file(tmp_path / "other.pt", Nanogpt, runs=tmp_path / "runs")
