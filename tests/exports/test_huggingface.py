"""A Hugging Face folder loads by `from_pretrained`, and is the network to 1e-5."""

import inspect
import json
import sys
from dataclasses import replace

import pytest
import torch
import transformers
from torch.nn import functional

import neural
from neural.export import export
from neural.export_inputs import CannotExport
from neural.exports import huggingface
from neural.exports.huggingface import Huggingface
from neural.modules.attention import registry as attention
from neural.modules.attention.self import Self
from tests.exports.networks import CHARACTERS, network, segmenter, writer


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
    yield
    for name in [one for one in sys.modules if one.partition(".")[0] == "transformers_modules"]:
        del sys.modules[name]


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


# --- labels, attention and what else transformers passes ------------------------------------------


def program(*lines, size="(9,)", loss="sparse_categorical_crossentropy"):
    inner = "\n        ".join(lines)
    return f"network Net {{\n      input: {size}\n      layers:\n        {inner}\n      loss: \"{loss}\"\n    }}"


EMBEDDING = "Embedding(input_dim=19, output_dim=8, pad_id=0)"
ENCODER = "TransformerEncoder(num_heads=2, d_model=8, dff=11, attention={})"
NETWORKS = {
    "sequence": program(
        EMBEDDING, ENCODER.format('"topk"'), "GlobalAveragePooling1D()", 'Output(3, activation="softmax")'
    ),
    "tokens": program(
        EMBEDDING, ENCODER.format('"additive"'), 'Output(4, activation="softmax")',
        loss="sparse_categorical_crossentropy(label_smoothing=0.1)",
    ).replace('"sparse_categorical_crossentropy(label_smoothing=0.1)"',
              "sparse_categorical_crossentropy(label_smoothing=0.1)"),
    "several labels": program(
        ENCODER.format('"boundary_aware"'), "LSTM(5, return_sequences=false)",
        'Output(3, activation="sigmoid")', size="(9, 8)", loss="binary_crossentropy",
    ),
    "regression": program(
        ENCODER.format('"localized", num_kv_heads=1'), "GlobalAveragePooling1D()", "Output(1)",
        size="(9, 8)", loss="mse",
    ),
    "translation": program(
        EMBEDDING, ENCODER.format('"entmax15"'),
        'TransformerDecoder(num_heads=2, d_model=8, dff=11, attention="sparse") * 2',
        'Output(19, activation="softmax")',
    ),
}  # fmt: skip


def loaded(leaving, folder):
    """The class in a folder, as `from_pretrained` makes it without `trust_remote_code`."""
    assert export(leaving, Huggingface, folder).difference <= 1e-5
    with huggingface._package(folder):
        module = huggingface.importlib.import_module(f"{huggingface.PACKAGE}.modeling")
        return module.NeuralModel.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Every kind of head: the network here, and what transformers loads of it."""
    folder = tmp_path_factory.mktemp("heads")
    leavings = {name: network(text, name, scores=True, masked=True) for name, text in NETWORKS.items()}
    leavings |= {"writer": writer(scores=True, masked=True), "segmenter": segmenter(scores=True, masked=True)}
    return {name: (one, loaded(one, folder / name.replace(" ", "_"))) for name, one in leavings.items()}


EVERY_HEAD = [*NETWORKS, "writer", "segmenter"]
every_head = pytest.mark.parametrize("name", EVERY_HEAD)


def asked(leaving, lengths=(3, 9, 7)):
    count, length, target = lengths
    inputs = leaving.batch(count, length, target)
    return dict(zip(Huggingface().input_names(leaving), inputs, strict=True)), inputs


def labels_for(name, scores):
    torch.manual_seed(5)
    if name in ("several labels", "regression"):
        return torch.rand_like(scores).round() if name == "several labels" else torch.rand_like(scores)
    labels = torch.randint(0, scores.shape[-1], scores.shape[:-1])
    if labels.ndim > 1:
        labels[0, 2] = -100
    return labels


@every_head
def test_labels_give_the_loss_that_the_network_was_trained_with(models, name):
    leaving, model = models[name]
    named, inputs = asked(leaving)
    scores = leaving(*inputs)
    labels = labels_for(name, scores)
    output = model(**named, labels=labels)
    torch.testing.assert_close(output.logits, scores, rtol=0, atol=1e-5)
    if name == "writer":
        expected = functional.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        torch.testing.assert_close(leaving.model.loss(scores[:, :-1], labels[:, 1:]), expected)
    elif name == "several labels":
        expected = functional.binary_cross_entropy_with_logits(scores, labels)
    elif name == "regression":
        expected = functional.mse_loss(scores, labels)
    else:
        smoothing = 0.1 if name == "tokens" else 0.0
        flat = scores.reshape(-1, scores.shape[-1]), labels.flatten()
        expected = functional.cross_entropy(*flat, label_smoothing=smoothing)
    torch.testing.assert_close(output.loss, expected, rtol=0, atol=1e-5)
    if hasattr(leaving.model, "loss") and name != "writer":
        torch.testing.assert_close(output.loss, leaving.model.loss(scores, labels), rtol=0, atol=1e-5)
    output.loss.backward()
    assert all(param.grad is None or param.grad.isfinite().all() for param in model.parameters())
    assert model(**named).loss is None


@every_head
def test_output_attentions_gives_the_weights_of_every_attention(models, name):
    leaving, model = models[name]
    named, inputs = asked(leaving)
    with torch.no_grad():
        plain, output = model(**named), model(**named, output_attentions=True)
    assert torch.equal(plain.logits, output.logits)
    with neural.watch(leaving.model) as seen, torch.no_grad():
        leaving.model.scores(*inputs)
    expected = {call.path: torch.as_tensor(call.maps()) for call in seen}
    assert expected
    if name == "translation":
        blocks = ["transformer_decoder.0", "transformer_decoder.1"]
        groups = {
            "encoder_attentions": ["transformer_encoder.attention.part"],
            "decoder_attentions": [f"{block}.attention.part" for block in blocks],
            "cross_attentions": [f"{block}.cross.part" for block in blocks],
        }
        assert output.cross_attentions[0].shape == (3, 2, 7, 9)
    else:
        groups = {"attentions": list(expected)}
    for field, paths in groups.items():
        assert plain.get(field) is None
        assert len(output[field]) == len(paths)
        for weights, path in zip(output[field], paths, strict=True):
            assert weights.shape == expected[path].shape
            torch.testing.assert_close(weights, expected[path], rtol=0, atol=1e-5)
    with torch.no_grad():
        assert torch.equal(model(**named).logits, plain.logits), "the mechanisms are back in place"


@every_head
def test_unknown_arguments_are_refused(models, name):
    leaving, model = models[name]
    named, _ = asked(leaving)
    for argument in ("token_type_ids", "position_ids", "inputs_embeds", "head_mask", "lables", "past_key_values"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{argument}'"):
            model(**named, **{argument: None})


@every_head
def test_a_tuple_is_given_where_no_dictionary_is_wanted(models, name):
    leaving, model = models[name]
    named, inputs = asked(leaving)
    with torch.no_grad():
        (logits,) = model(**named, return_dict=False)
        assert torch.equal(logits, model(**named).logits)
        loss, _, *attentions = model(
            **named, labels=labels_for(name, leaving(*inputs)), output_attentions=True, return_dict=False
        )
    assert loss.ndim == 0 and attentions


def test_generation_never_uses_a_cache_that_is_not_there(models):
    _, model = models["writer"]
    ids = torch.tensor([[1, 2, 3]])
    plain = model.generate(ids, max_new_tokens=3, do_sample=False)
    assert plain.shape == (1, 6)
    with pytest.raises(ValueError, match="use_cache=False"):
        model.generate(ids, max_new_tokens=3, do_sample=False, use_cache=True)
    told = model.generate(
        ids, max_new_tokens=3, do_sample=False, output_attentions=True, return_dict_in_generate=True
    )
    assert torch.equal(told.sequences, plain)
    assert [step[0].shape[-1] for step in told.attentions] == [3, 4, 5]


@every_head
def test_the_trainer_of_transformers_finds_labels_and_passes_nothing_else(models, name):
    """It looks at the signature: columns of that name are passed, and loss arguments where there is `**`."""
    _, model = models[name]
    parameters = inspect.signature(model.forward).parameters
    assert transformers.utils.generic.find_labels(type(model)) == ["labels"]
    assert not [one for one in parameters.values() if one.kind is one.VAR_KEYWORD]
    assert next(iter(parameters)) == model.main_input_name


@pytest.mark.filterwarnings("ignore")   # of transformers, about itself
def test_what_a_tokenizer_gives_is_what_the_model_takes(folder, elsewhere):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    encoded = tokenizer("a !", return_tensors="pt")
    assert model(**encoded).logits.shape == (1, 3, len(CHARACTERS))
    pipeline = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer)
    (written,) = pipeline("a !", max_new_tokens=2, do_sample=False)
    assert written["generated_text"].startswith("a !")


@pytest.mark.filterwarnings("ignore")   # of transformers, about itself
def test_a_classifier_loads_by_its_own_auto_class_with_its_labels(tmp_path, elsewhere):
    export(segmenter(), Huggingface, tmp_path / "cuts")
    model = transformers.AutoModelForTokenClassification.from_pretrained(
        tmp_path / "cuts", trust_remote_code=True
    )
    assert model.config.id2label == {0: "verse", 1: "chorus", 2: "bridge"}
    assert model.config.num_labels == 3


def test_without_a_loss_labels_are_refused(tmp_path):
    text = "network Net {\n input: (9, 8)\n layers:\n TransformerEncoder(num_heads=2)\n}"
    leaving = network(text, "net", scores=True)
    model = loaded(leaving, tmp_path / "net")
    with pytest.raises(ValueError, match="net has no loss: its program names none"):
        model(inputs=torch.randn(2, 9, 8), labels=torch.randn(2, 9, 8))


def test_an_image_has_no_mask(tmp_path):
    text = "network Net {\n input: (8, 9, 1)\n layers:\n Conv2D(2)\n Flatten()\n Output(2)\n loss: \"mse\"\n}"
    model = loaded(network(text, "net"), tmp_path / "net")
    with pytest.raises(TypeError, match="attention_mask"):
        model(inputs=torch.randn(2, 8, 9, 1), attention_mask=None)
    assert model(inputs=torch.randn(2, 8, 9, 1), output_attentions=True).attentions == ()


def test_masks_are_compared_whether_asked_for_or_not(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface, "find_spec", lambda name: None)
    write = huggingface.network_file

    def without_masks(leaving):
        written = write(leaving)
        return written._replace(text=written.text.replace("mask = as_bool(mask)", "mask = None"))

    monkeypatch.setattr(huggingface, "network_file", without_masks)
    with pytest.raises(CannotExport, match="is not the network: it differs by"):
        export(network(NETWORKS["regression"]), Huggingface, tmp_path / "net")
    assert not list(tmp_path.iterdir())


def test_what_has_no_source_is_refused_by_its_layer(tmp_path, monkeypatch):
    class Inside(Self):
        """Defined in a function."""

    monkeypatch.setattr(attention, "_added", {})
    attention.add(Inside)
    text = program(EMBEDDING, ENCODER.format('"inside"'), "GlobalAveragePooling1D()", "Output(3)")
    with pytest.raises(CannotExport, match="transformer_encoder: `Inside` is defined inside a function"):
        export(network(text), Huggingface, tmp_path / "net")


def test_probabilities_are_asked_for_in_vain(tmp_path):
    """A folder gives logits, and says so."""
    leaving = Huggingface().adapt(replace(network(NETWORKS["sequence"]), scores=False))
    assert leaving.scores
    assert Huggingface().output_name(leaving) == "logits"
