"""A .keras file is the network in Keras' own layers; what it has no words for is named before anything is written."""

from dataclasses import replace

import keras
import pytest
import torch

from neural.export import export
from neural.export_inputs import CannotExport
from neural.exports.keras import Keras
from neural.language.layer import Layer
from neural.language.shapes import Cost
from neural.modules.attention import registry as attention
from neural.modules.layers import registry as layers
from tests.exports.networks import network, segmenter
from tests.exports.user_attentions.fading import Fading


def exported(leaving, folder):
    path = folder / "net.keras"
    done = export(leaving, Keras, path)
    assert done.difference <= 1e-4
    return keras.models.load_model(path)


def one_layer(line, sizes, **how):
    return network(f"network Net {{\n  input: {sizes}\n  layers:\n    {line}\n}}", **how)


@pytest.mark.parametrize("name", layers.names())
def test_every_layer_is_keras_own_or_is_refused_by_name(name, tmp_path):
    layer, given = layers.get(name).tiny()
    leaving = one_layer(f"{layer!r}", f"({', '.join(map(str, given))},)", masked=layer.uses_mask)
    try:
        model = exported(leaving, tmp_path)
    except CannotExport as refused:
        assert "Keras" in str(refused) and leaving.model.network.layers[-1].name in str(refused)
        assert not list(tmp_path.iterdir())
    else:
        parts = list(model._flatten_layers(include_self=False))
        assert all(type(one).__module__.startswith("keras.") for one in parts), "no class of ours"


@pytest.mark.parametrize("name", attention.names())
def test_every_mechanism_is_said_in_keras_with_every_position(name, tmp_path):
    mechanism = attention.get(name).tiny()
    if name == "sparse":
        mechanism = replace(mechanism, random_blocks=0)
    blocks = [
        f"Transformer{kind}(num_heads=2, d_model=8, dff=11, attention={mechanism!r}, positional={position})"
        for kind, position in (
            ("Decoder", "rotary()"), ("Encoder", "alibi()"), ("Encoder", "relative(buckets=8)"), ("Encoder", "none()")
        )
    ]  # fmt: skip
    for number, chosen in enumerate((blocks[:1], blocks[1:])):   # an encoder before a decoder makes two sequences
        folder = tmp_path / str(number)
        folder.mkdir()
        model = exported(one_layer("\n    ".join(chosen), "(9, 8)", masked=True), folder)
        parts = list(model._flatten_layers(include_self=False))
        assert all(type(one).__module__.startswith("keras.") for one in parts), "no class of ours"


@pytest.mark.parametrize("name", ["self", "localized", "topk", "linear"])
def test_groups_of_heads_dropout_and_normed_queries_are_kept(name, tmp_path):
    block = f'TransformerDecoder(num_heads=4, d_model=8, dff=11, attention="{name}", num_kv_heads=2, qk_norm=true'
    exported(one_layer(f"{block}, dropout_rate=0.1, bias=false)", "(9, 8)"), tmp_path)


def test_random_blocks_are_refused_by_name(tmp_path):
    block = f"TransformerEncoder(num_heads=2, d_model=6, dff=11, attention={attention.get('sparse').tiny()!r})"
    where = r"transformer_encoder\.attention\.part"
    with pytest.raises(CannotExport, match=f"{where}: Keras has no random_blocks") as refused:
        export(one_layer(block, "(9, 6)"), Keras, tmp_path / "net.keras")
    assert "--to onnx" in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_a_mechanism_of_somebody_else_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(attention, "_added", {})
    attention.add(Fading)
    block = 'TransformerEncoder(num_heads=2, d_model=6, dff=11, attention="fading")'
    with pytest.raises(CannotExport, match='Keras has no attention="fading": the mechanism of another package'):
        export(one_layer(block, "(9, 6)"), Keras, tmp_path / "net.keras")


@pytest.mark.parametrize("said", [
    'norm="post", activation="gelu"', 'normalization="rms", bias=false', "num_kv_heads=1", 'positional="learned"',
    'dropout_rate=0.1, dropout_at="residual", activation="leaky_relu"', 'activation="squared_relu", final_norm=true',
])  # fmt: skip
def test_the_options_of_a_block_are_kept(said, tmp_path):
    exported(one_layer(f"TransformerDecoder(num_heads=2, d_model=6, dff=11, {said}) * 2", "(9, 6)"), tmp_path)


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
    model = exported(network(text, masked=True), tmp_path)
    assert [one.name for one in model.inputs] == ["source", "target", "mask", "target_mask"]
    assert sum(isinstance(one, keras.layers.Embedding) for one in model.layers) == 1


@pytest.mark.parametrize("layer", [
    'Conv1D(6, kernel_size=3, strides=2, padding="same")', "Conv1D(6, kernel_size=2)",
    'MaxPooling1D(3, strides=2, padding="same")', "MaxPooling1D(2)",
    'Residual(MaxPooling1D(3, strides=1, padding="same"), Conv1D(6, padding="same"))',
])  # fmt: skip
def test_windows_over_time_hand_the_padding_mask_on(layer, tmp_path):
    lines = f"{layer}\n    MultiHeadAttention(num_heads=2)\n    GlobalAveragePooling1D()"
    exported(one_layer(lines, "(None, 6)", masked=True), tmp_path)


def test_a_tied_output_and_scores_before_softmax(tmp_path):
    text = """network Writer {
      input: (11,)
      layers:
        Embedding(input_dim=19, output_dim=6)
        TransformerDecoder(num_heads=2, d_model=6, dff=7)
        Output(19, activation="softmax", tied=true)
      loss: "sparse_categorical_crossentropy"
    }"""
    exported(network(text, scores=True), tmp_path)


def test_a_segmenter_reads_padded_documents(tmp_path):
    exported(segmenter(masked=True), tmp_path)


def test_a_name_that_keras_could_not_load_is_refused_with_one_that_it_can(tmp_path):
    with pytest.raises(CannotExport, match=r"-o net\.h5\.keras"):
        export(segmenter(), Keras, tmp_path / "net.h5")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
@pytest.mark.parametrize("options", ["", ", bidirectional=true"])
def test_the_last_memory_is_that_of_the_last_real_step(cell, options, tmp_path):
    exported(one_layer(f"{cell}(5, return_sequences=false{options})", "(9, 6)", masked=True), tmp_path)


@pytest.mark.parametrize("layer", [
    "MultiHeadAttention(num_heads=2)", 'MultiHeadAttention(num_heads=2, attention="topk")', "GRU(6)",
])  # fmt: skip
def test_a_sequence_of_nothing_but_padding_gives_what_it_gives_here(layer, tmp_path):
    leaving = one_layer(f"{layer}\n    GlobalAveragePooling1D()", "(9, 6)", masked=True)
    exported(leaving, tmp_path)
    read = Keras().read(leaving, tmp_path / "net.keras")
    x, mask = leaving.batch(3, 9)
    mask[1] = False
    torch.testing.assert_close(read(x, mask), leaving(x, mask), rtol=0, atol=1e-5)


def test_noise_that_keras_does_not_make_is_refused_by_name(tmp_path):
    with pytest.raises(CannotExport, match="gaussian_noise: Keras' GaussianNoise takes a stddev up to 1, not 10"):
        export(one_layer("GaussianNoise(10.0)", "(9, 6)"), Keras, tmp_path / "net.keras")


def test_of_equal_scores_as_many_are_looked_at_as_there_is_room_for(tmp_path):
    text = """network Net {
      input: (None,)
      layers:
        Embedding(input_dim=3, output_dim=4)
        MultiHeadAttention(num_heads=2, attention="topk", k=3)
    }"""
    exported(network(text), tmp_path)


class Doubling(Layer):
    """A layer of somebody else, whose module is called like one of ours."""

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
def test_a_module_of_somebody_else_is_not_taken_for_one_of_ours(line, tmp_path, monkeypatch):
    monkeypatch.setattr(layers, "_added", {})
    layers.add(Doubling)
    with pytest.raises(CannotExport, match=r": Keras has no tests\.exports\.test_keras\.Linear"):
        export(one_layer(line, "(9, 6)"), Keras, tmp_path / "net.keras")
