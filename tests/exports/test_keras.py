"""A .keras file is the network in Keras' own layers; what is not supported is named in an error."""

from dataclasses import replace

import keras
import pytest
import torch

from neural.exports.keras import Keras
from neural.language.layer import Layer
from neural.language.shapes import Cost
from neural.nn.attention import registry as attention
from neural.nn.layers import registry as layers
from neural.workflows.export import export
from neural.workflows.export_bundle import ExportError
from tests.exports.networks import network, segmenter
from tests.exports.user_attentions.fading import Fading


def export_to_keras(bundle, folder):
    """Export and return the path. The export itself loads the file in Keras and compares."""
    path = folder / "net.keras"
    assert export(bundle, Keras, path).max_difference <= 1e-4
    return path


def export_and_load(bundle, folder):
    return keras.models.load_model(export_to_keras(bundle, folder))


def assert_keras_layers_only(model):
    keras_layers = model._flatten_layers(include_self=False)
    assert all(type(layer).__module__.startswith("keras.") for layer in keras_layers)


def one_layer(line, shape, **options):
    return network(f"network Net {{\n  input: {shape}\n  layers:\n    {line}\n}}", **options)


@pytest.mark.parametrize("name", layers.names())
def test_every_layer_is_exported_to_keras_layers_or_named_in_the_error(name, tmp_path):
    layer, shape = layers.get(name).example()
    bundle = one_layer(f"{layer!r}", f"({', '.join(map(str, shape))},)", with_mask=layer.uses_mask)
    try:
        model = export_and_load(bundle, tmp_path)
    except ExportError as error:
        assert "Keras" in str(error) and bundle.model.network.layers[-1].name in str(error)
        assert not list(tmp_path.iterdir())
    else:
        assert_keras_layers_only(model)


@pytest.mark.parametrize("name", attention.names())
def test_every_mechanism_is_exported_with_every_position(name, tmp_path):
    mechanism = attention.get(name).example()
    if name == "sparse":
        mechanism = replace(mechanism, random_blocks=0)
    blocks = [
        f"Transformer{kind}(num_heads=2, d_model=8, dff=11, attention={mechanism!r}, "
        f"positional={position})"
        for kind, position in (
            ("Decoder", "rotary()"),
            ("Encoder", "alibi()"),
            ("Encoder", "relative(buckets=8)"),
            ("Encoder", "none()"),
        )
    ]
    # apart: an encoder before a decoder would make two sequences
    for number, chosen in enumerate((blocks[:1], blocks[1:])):
        folder = tmp_path / str(number)
        folder.mkdir()
        model = export_and_load(one_layer("\n    ".join(chosen), "(9, 8)", with_mask=True), folder)
        assert_keras_layers_only(model)


@pytest.mark.parametrize("name", ["self", "localized", "topk", "linear"])
def test_grouped_heads_dropout_and_qk_norm_are_exported(name, tmp_path):
    options = f'attention="{name}", num_kv_heads=2, qk_norm=true, dropout_rate=0.1, bias=false'
    block = f"TransformerDecoder(num_heads=4, d_model=8, dff=11, {options})"
    export_to_keras(one_layer(block, "(9, 8)"), tmp_path)


def test_random_blocks_are_named_in_the_error(tmp_path):
    sparse = attention.get("sparse").example()
    block = f"TransformerEncoder(num_heads=2, d_model=6, dff=11, attention={sparse!r})"
    path = r"transformer_encoder\.attention\.sublayer"
    with pytest.raises(ExportError, match=f"{path}: Keras has no random_blocks") as raised:
        export(one_layer(block, "(9, 6)"), Keras, tmp_path / "net.keras")
    assert "--to onnx" in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_a_mechanism_of_another_package_is_named_in_the_error(tmp_path, monkeypatch):
    monkeypatch.setattr(attention, "_added", {})
    attention.add(Fading)
    block = 'TransformerEncoder(num_heads=2, d_model=6, dff=11, attention="fading")'
    with pytest.raises(
        ExportError, match='Keras has no attention="fading": the mechanism of another package'
    ):
        export(one_layer(block, "(9, 6)"), Keras, tmp_path / "net.keras")


@pytest.mark.parametrize(
    "options",
    [
        'norm="post", activation="gelu"',
        'normalization="rms", bias=false',
        "num_kv_heads=1",
        'positional="learned"',
        'dropout_rate=0.1, dropout_at="residual", activation="leaky_relu"',
        'activation="squared_relu", final_norm=true',
    ],
)
def test_the_options_of_a_block_are_exported(options, tmp_path):
    export_to_keras(
        one_layer(f"TransformerDecoder(num_heads=2, d_model=6, dff=11, {options}) * 2", "(9, 6)"),
        tmp_path,
    )


def test_two_sequences_with_padding_go_through_the_same_embedding(tmp_path):
    text = """network Translator {
      input: (11,)
      layers:
        Embedding(input_dim=19, output_dim=6, pad_id=0)
        TransformerEncoder(num_heads=2, d_model=6, dff=7)
        TransformerDecoder(num_heads=2, d_model=6, dff=7)
        Dense(19, activation="softmax")
      loss: "sparse_categorical_crossentropy"
    }"""
    model = export_and_load(network(text, with_mask=True), tmp_path)
    assert [tensor.name for tensor in model.inputs] == ["source", "target", "mask", "target_mask"]
    assert sum(isinstance(layer, keras.layers.Embedding) for layer in model.layers) == 1


@pytest.mark.parametrize(
    "layer",
    [
        'Conv1D(6, kernel_size=3, strides=2, padding="same")',
        "Conv1D(6, kernel_size=2)",
        'MaxPooling1D(3, strides=2, padding="same")',
        "MaxPooling1D(2)",
        'Residual(MaxPooling1D(3, strides=1, padding="same"), Conv1D(6, padding="same"))',
    ],
)
def test_windows_over_time_map_the_padding_mask(layer, tmp_path):
    lines = f"{layer}\n    MultiHeadAttention(num_heads=2)\n    GlobalAveragePooling1D()"
    export_to_keras(one_layer(lines, "(None, 6)", with_mask=True), tmp_path)


def test_a_tied_output_and_scores_before_softmax(tmp_path):
    text = """network Writer {
      input: (11,)
      layers:
        Embedding(input_dim=19, output_dim=6)
        TransformerDecoder(num_heads=2, d_model=6, dff=7)
        Output(19, activation="softmax", tied=true)
      loss: "sparse_categorical_crossentropy"
    }"""
    export_to_keras(network(text, return_logits=True), tmp_path)


def test_a_segmenter_reads_padded_documents(tmp_path):
    export_to_keras(segmenter(with_mask=True), tmp_path)


def test_a_file_name_that_keras_cannot_load_is_an_error(tmp_path):
    with pytest.raises(ExportError, match=r"-o net\.h5\.keras"):
        export(segmenter(), Keras, tmp_path / "net.h5")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
@pytest.mark.parametrize("options", ["", ", bidirectional=true"])
def test_the_last_state_is_that_of_the_last_real_step(cell, options, tmp_path):
    export_to_keras(
        one_layer(f"{cell}(5, return_sequences=false{options})", "(9, 6)", with_mask=True), tmp_path
    )


@pytest.mark.parametrize(
    "layer",
    [
        "MultiHeadAttention(num_heads=2)",
        'MultiHeadAttention(num_heads=2, attention="topk")',
        "GRU(6)",
    ],
)
def test_a_sequence_of_padding_alone_gives_the_same_output(layer, tmp_path):
    bundle = one_layer(f"{layer}\n    GlobalAveragePooling1D()", "(9, 6)", with_mask=True)
    export_to_keras(bundle, tmp_path)
    run = Keras().read(bundle, tmp_path / "net.keras")
    x, mask = bundle.create_batch(3, 9)
    mask[1] = False
    torch.testing.assert_close(run(x, mask), bundle(x, mask), rtol=0, atol=1e-5)


def test_noise_that_keras_does_not_support_is_named_in_the_error(tmp_path):
    with pytest.raises(
        ExportError, match="gaussian_noise: Keras' GaussianNoise takes a stddev up to 1, not 10"
    ):
        export(one_layer("GaussianNoise(10.0)", "(9, 6)"), Keras, tmp_path / "net.keras")


def test_topk_breaks_ties_as_the_network_does(tmp_path):
    text = """network Net {
      input: (None,)
      layers:
        Embedding(input_dim=3, output_dim=4)
        MultiHeadAttention(num_heads=2, attention="topk", k=3)
    }"""
    export_to_keras(network(text), tmp_path)


class Doubling(Layer):
    """A layer of another package, whose module has the name of one of torch."""

    def shape(self, x):
        return x

    def cost(self, x):
        return Cost()

    def build(self, x):
        return Linear()


class Linear(torch.nn.Module):
    def forward(self, x):
        return 2 * x


@pytest.mark.parametrize("line", ["Doubling()", "Residual(Doubling())"])
def test_a_module_of_another_package_is_not_taken_for_one_of_ours(line, tmp_path, monkeypatch):
    monkeypatch.setattr(layers, "_added", {})
    layers.add(Doubling)
    with pytest.raises(ExportError, match=r": Keras has no tests\.exports\.test_keras\.Linear"):
        export(one_layer(line, "(9, 6)"), Keras, tmp_path / "net.keras")
