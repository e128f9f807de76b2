"""A Hugging Face folder loads by `from_pretrained` and equals the network to 1e-5."""

import inspect
import json
import sys
from dataclasses import replace

import pytest
import torch
import transformers
from torch.nn import functional

import neural
from neural.exports import huggingface
from neural.exports.huggingface import Huggingface
from neural.nn.attention import registry as attention
from neural.nn.attention.self import Self
from neural.workflows.export import export
from neural.workflows.export_bundle import ExportError
from tests.exports.networks import CHARACTERS, network, segmenter, writer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("huggingface") / "writer"
    assert export(writer(with_mask=True), Huggingface, path).max_difference <= 1e-5
    return path


@pytest.fixture
def modules_cache(tmp_path, monkeypatch):
    """transformers copies the code of a folder before it runs it: here into a temporary folder."""
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.startswith("transformers_modules")]:
        del sys.modules[name]


@pytest.mark.filterwarnings("ignore")  # warnings of transformers
def test_from_pretrained_loads_the_folder_and_generates(folder, modules_cache):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).eval()
    bundle = writer(return_logits=True)
    (ids,) = bundle.create_batch(3, 11)
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, bundle(ids), rtol=0, atol=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    text = "a !\nj"
    prompt = tokenizer(text, return_tensors="pt").input_ids
    assert prompt.tolist() == [[CHARACTERS.index(character) for character in text]]
    generated = model.generate(prompt, max_new_tokens=4, do_sample=False)
    expected = prompt
    for _ in range(4):
        expected = torch.cat((expected, bundle(expected)[:, -1:].argmax(dim=-1)), dim=1)
    assert generated.tolist() == expected.tolist()
    assert tokenizer.decode(generated[0]).startswith(text)


def test_the_folder_has_exactly_the_files_it_needs(folder):
    assert sorted(file.name for file in folder.iterdir()) == [
        "README.md",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "modeling.py",
        "network.py",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["writer"]
    assert json.loads((folder / "config.json").read_text())["vocabulary"] == list(CHARACTERS)
    assert "import neural" not in (folder / "network.py").read_text()


@pytest.mark.parametrize("installed", [True, False], ids=["with transformers", "without"])
def test_a_segmenter_is_compared_with_or_without_transformers(installed, tmp_path, monkeypatch):
    if not installed:
        monkeypatch.setattr(huggingface, "find_spec", lambda name: None)
    result = export(segmenter(with_mask=True), Huggingface, tmp_path / "segmenter")
    assert result.max_difference <= 1e-5
    assert not (tmp_path / "segmenter" / "__pycache__").exists()
    assert "tokenizer.json" not in [file.name for file in (tmp_path / "segmenter").iterdir()]


# Labels, attention and other arguments that transformers passes.


def program(*lines, size="(9,)", loss="sparse_categorical_crossentropy"):
    layers = "\n    ".join(lines)
    return f'network Net {{\n  input: {size}\n  layers:\n    {layers}\n  loss: "{loss}"\n}}'


EMBEDDING = "Embedding(input_dim=19, output_dim=8, pad_id=0)"
ENCODER = "TransformerEncoder(num_heads=2, d_model=8, dff=11, attention={})"
NETWORKS = {
    "sequence": program(
        EMBEDDING,
        ENCODER.format('"topk"'),
        "GlobalAveragePooling1D()",
        'Output(3, activation="softmax")',
    ),
    "tokens": program(
        EMBEDDING,
        ENCODER.format('"additive"'),
        'Output(4, activation="softmax")',
        loss="sparse_categorical_crossentropy(label_smoothing=0.1)",
    ).replace(
        '"sparse_categorical_crossentropy(label_smoothing=0.1)"',
        "sparse_categorical_crossentropy(label_smoothing=0.1)",
    ),
    "several labels": program(
        ENCODER.format('"boundary_aware"'),
        "LSTM(5, return_sequences=false)",
        'Output(3, activation="sigmoid")',
        size="(9, 8)",
        loss="binary_crossentropy",
    ),
    "regression": program(
        ENCODER.format('"localized", num_kv_heads=1'),
        "GlobalAveragePooling1D()",
        "Output(1)",
        size="(9, 8)",
        loss="mse",
    ),
    "translation": program(
        EMBEDDING,
        ENCODER.format('"entmax15"'),
        'TransformerDecoder(num_heads=2, d_model=8, dff=11, attention="sparse") * 2',
        'Output(19, activation="softmax")',
    ),
}


def export_and_load(bundle, folder):
    """The model of a folder, loaded without transformers' copy of its code."""
    assert export(bundle, Huggingface, folder).max_difference <= 1e-5
    with huggingface._import_folder(folder):
        module = huggingface.importlib.import_module(f"{huggingface.PACKAGE}.modeling")
        return module.NeuralModel.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """For every kind of head the network, and the model that transformers loads."""
    folder = tmp_path_factory.mktemp("heads")
    bundles = {
        name: network(text, name, return_logits=True, with_mask=True)
        for name, text in NETWORKS.items()
    }
    bundles |= {
        "writer": writer(return_logits=True, with_mask=True),
        "segmenter": segmenter(return_logits=True, with_mask=True),
    }
    return {
        name: (bundle, export_and_load(bundle, folder / name.replace(" ", "_")))
        for name, bundle in bundles.items()
    }


EVERY_HEAD = [*NETWORKS, "writer", "segmenter"]
every_head = pytest.mark.parametrize("name", EVERY_HEAD)


def create_inputs(bundle, sizes=(3, 9, 7)):
    """Inputs by Hugging Face's names, and by position."""
    inputs = bundle.create_batch(*sizes)
    return dict(zip(Huggingface().input_names(bundle), inputs, strict=True)), inputs


def create_labels(name, scores):
    torch.manual_seed(5)
    if name in ("several labels", "regression"):
        return (
            torch.rand_like(scores).round() if name == "several labels" else torch.rand_like(scores)
        )
    labels = torch.randint(0, scores.shape[-1], scores.shape[:-1])
    if labels.ndim > 1:
        labels[0, 2] = -100
    return labels


@every_head
def test_labels_give_the_loss_that_the_network_was_trained_with(models, name):
    bundle, model = models[name]
    named, inputs = create_inputs(bundle)
    scores = bundle(*inputs)
    labels = create_labels(name, scores)
    output = model(**named, labels=labels)
    torch.testing.assert_close(output.logits, scores, rtol=0, atol=1e-5)
    if name == "writer":
        expected = functional.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        torch.testing.assert_close(bundle.model.loss(scores[:, :-1], labels[:, 1:]), expected)
    elif name == "several labels":
        expected = functional.binary_cross_entropy_with_logits(scores, labels)
    elif name == "regression":
        expected = functional.mse_loss(scores, labels)
    else:
        smoothing = 0.1 if name == "tokens" else 0.0
        flat = scores.reshape(-1, scores.shape[-1]), labels.flatten()
        expected = functional.cross_entropy(*flat, label_smoothing=smoothing)
    torch.testing.assert_close(output.loss, expected, rtol=0, atol=1e-5)
    if hasattr(bundle.model, "loss") and name != "writer":
        torch.testing.assert_close(
            output.loss, bundle.model.loss(scores, labels), rtol=0, atol=1e-5
        )
    output.loss.backward()
    assert all(param.grad is None or param.grad.isfinite().all() for param in model.parameters())
    assert model(**named).loss is None


@every_head
def test_output_attentions_gives_the_weights_of_every_attention(models, name):
    bundle, model = models[name]
    named, inputs = create_inputs(bundle)
    with torch.no_grad():
        plain, output = model(**named), model(**named, output_attentions=True)
    assert torch.equal(plain.logits, output.logits)
    with neural.watch(bundle.model) as seen, torch.no_grad():
        bundle.model.logits(*inputs)
    expected = {call.path: torch.as_tensor(call.maps()) for call in seen}
    assert expected
    if name == "translation":
        blocks = ["transformer_decoder.0", "transformer_decoder.1"]
        groups = {
            "encoder_attentions": ["transformer_encoder.attention.sublayer"],
            "decoder_attentions": [f"{block}.attention.sublayer" for block in blocks],
            "cross_attentions": [f"{block}.cross.sublayer" for block in blocks],
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
    bundle, model = models[name]
    named, _ = create_inputs(bundle)
    for argument in (
        "token_type_ids",
        "position_ids",
        "inputs_embeds",
        "head_mask",
        "lables",
        "past_key_values",
    ):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{argument}'"):
            model(**named, **{argument: None})


@every_head
def test_return_dict_false_gives_a_tuple(models, name):
    bundle, model = models[name]
    named, inputs = create_inputs(bundle)
    with torch.no_grad():
        (logits,) = model(**named, return_dict=False)
        assert torch.equal(logits, model(**named).logits)
        loss, _, *attentions = model(
            **named,
            labels=create_labels(name, bundle(*inputs)),
            output_attentions=True,
            return_dict=False,
        )
    assert loss.ndim == 0 and attentions


def test_generation_uses_no_cache(models):
    _, model = models["writer"]
    ids = torch.tensor([[1, 2, 3]])
    plain = model.generate(ids, max_new_tokens=3, do_sample=False)
    assert plain.shape == (1, 6)
    with pytest.raises(ValueError, match="use_cache=False"):
        model.generate(ids, max_new_tokens=3, do_sample=False, use_cache=True)
    output = model.generate(
        ids, max_new_tokens=3, do_sample=False, output_attentions=True, return_dict_in_generate=True
    )
    assert torch.equal(output.sequences, plain)
    assert [step[0].shape[-1] for step in output.attentions] == [3, 4, 5]


@every_head
def test_the_trainer_of_transformers_finds_labels_and_passes_nothing_else(models, name):
    """The trainer passes columns named like parameters, and loss arguments if there is `**`."""
    _, model = models[name]
    parameters = inspect.signature(model.forward).parameters
    assert transformers.utils.generic.find_labels(type(model)) == ["labels"]
    assert not [param for param in parameters.values() if param.kind is param.VAR_KEYWORD]
    assert next(iter(parameters)) == model.main_input_name


@pytest.mark.filterwarnings("ignore")  # warnings of transformers
def test_the_model_takes_the_output_of_the_tokenizer(folder, modules_cache):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    encoded = tokenizer("a !", return_tensors="pt")
    assert model(**encoded).logits.shape == (1, 3, len(CHARACTERS))
    pipeline = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer)
    (generated,) = pipeline("a !", max_new_tokens=2, do_sample=False)
    assert generated["generated_text"].startswith("a !")


@pytest.mark.filterwarnings("ignore")  # warnings of transformers
def test_a_classifier_loads_by_its_own_auto_class_with_its_labels(tmp_path, modules_cache):
    export(segmenter(), Huggingface, tmp_path / "cuts")
    model = transformers.AutoModelForTokenClassification.from_pretrained(
        tmp_path / "cuts", trust_remote_code=True
    )
    assert model.config.id2label == {0: "verse", 1: "chorus", 2: "bridge"}
    assert model.config.num_labels == 3


def test_labels_without_a_loss_are_an_error(tmp_path):
    text = "network Net {\n input: (9, 8)\n layers:\n TransformerEncoder(num_heads=2)\n}"
    bundle = network(text, "net", return_logits=True)
    model = export_and_load(bundle, tmp_path / "net")
    with pytest.raises(ValueError, match="net has no loss: its program names none"):
        model(inputs=torch.randn(2, 9, 8), labels=torch.randn(2, 9, 8))


def test_an_image_has_no_mask(tmp_path):
    text = program("Conv2D(2)", "Flatten()", "Output(2)", size="(8, 9, 1)", loss="mse")
    model = export_and_load(network(text, "net"), tmp_path / "net")
    with pytest.raises(TypeError, match="attention_mask"):
        model(inputs=torch.randn(2, 8, 9, 1), attention_mask=None)
    assert model(inputs=torch.randn(2, 8, 9, 1), output_attentions=True).attentions == ()


def test_masks_are_always_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface, "find_spec", lambda name: None)
    network_file = huggingface.network_file

    def ignore_masks(bundle):
        source = network_file(bundle)
        return source._replace(text=source.text.replace("mask = as_bool(mask)", "mask = None"))

    monkeypatch.setattr(huggingface, "network_file", ignore_masks)
    with pytest.raises(ExportError, match="differs by"):
        export(network(NETWORKS["regression"]), Huggingface, tmp_path / "net")
    assert not list(tmp_path.iterdir())


def test_a_layer_without_source_is_named_in_the_error(tmp_path, monkeypatch):
    class Inside(Self):
        """Defined in a function."""

    monkeypatch.setattr(attention, "_added", {})
    attention.add(Inside)
    text = program(EMBEDDING, ENCODER.format('"inside"'), "GlobalAveragePooling1D()", "Output(3)")
    with pytest.raises(
        ExportError, match="transformer_encoder: `Inside` is defined inside a function"
    ):
        export(network(text), Huggingface, tmp_path / "net")


def test_the_output_is_always_logits(tmp_path):
    """Even if probabilities are requested."""
    bundle = Huggingface().adapt(replace(network(NETWORKS["sequence"]), return_logits=False))
    assert bundle.return_logits
    assert Huggingface().output_name(bundle) == "logits"
