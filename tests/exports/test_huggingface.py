"""A Hugging Face folder loads by `from_pretrained`, and is the network to 1e-5."""

import json

import pytest
import torch
import transformers

from neural.export import export
from neural.exports import huggingface
from neural.exports.huggingface import Huggingface
from tests.exports.networks import CHARACTERS, segmenter, writer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("huggingface") / "writer"
    assert export(writer(masked=True), Huggingface, path).difference <= 1e-5
    return path


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """transformers copies the code of a folder before it runs it; not into the home of whoever tests."""
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.filterwarnings("ignore")   # of transformers, about itself
def test_from_pretrained_loads_it_and_writes_with_it(folder, elsewhere):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).eval()
    leaving = writer(scores=True)
    (ids,) = leaving.batch(3, 11)
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, leaving(ids), rtol=0, atol=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    text = "a !\nj"
    begun = tokenizer(text, return_tensors="pt").input_ids
    assert begun.tolist() == [[CHARACTERS.index(one) for one in text]]
    written = model.generate(begun, max_new_tokens=4, do_sample=False)
    following = begun
    for _ in range(4):
        following = torch.cat((following, leaving(following)[:, -1:].argmax(dim=-1)), dim=1)
    assert written.tolist() == following.tolist()
    assert tokenizer.decode(written[0]).startswith(text)


def test_the_folder_has_what_it_needs_and_nothing_else(folder):
    assert sorted(one.name for one in folder.iterdir()) == [
        "README.md", "config.json", "generation_config.json", "model.safetensors", "modeling.py", "network.py",
        "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    assert [one.name for one in folder.parent.iterdir()] == ["writer"]
    assert json.loads((folder / "config.json").read_text())["vocabulary"] == list(CHARACTERS)
    assert "import neural" not in (folder / "network.py").read_text()


@pytest.mark.parametrize("there", [True, False], ids=["with transformers", "without"])
def test_a_segmenter_is_compared_with_or_without_transformers(there, tmp_path, monkeypatch):
    if not there:
        monkeypatch.setattr(huggingface, "find_spec", lambda name: None)
    done = export(segmenter(masked=True), Huggingface, tmp_path / "segmenter")
    assert done.difference <= 1e-5
    assert not (tmp_path / "segmenter" / "__pycache__").exists()
    assert "tokenizer.json" not in [one.name for one in (tmp_path / "segmenter").iterdir()]
