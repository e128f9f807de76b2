"""A .keras file is the network in Keras' own layers; what it has no words for is named before anything is written."""

import keras
import pytest

from neural.export import export
from neural.export_inputs import CannotExport
from neural.exports.keras import Keras
from neural.modules.attention import registry as attention
from neural.modules.layers import registry as layers
from tests.exports.networks import network, segmenter

IN_KERAS = ("causal", "cross", "localized", "self")


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
def test_a_mechanism_is_keras_own_or_is_refused_by_name(name, tmp_path):
    block = f"TransformerEncoder(num_heads=2, d_model=6, dff=11, attention={attention.get(name).tiny()!r})"
    leaving = one_layer(block, "(9, 6)", masked=True)
    if name in IN_KERAS:
        exported(leaving, tmp_path)
        return
    with pytest.raises(CannotExport, match=f'transformer_encoder.attention.part: .* attention="{name}"'):
        export(leaving, Keras, tmp_path / "net.keras")


@pytest.mark.parametrize("said", [
    'norm="post", activation="gelu"', 'normalization="rms", bias=false', "num_kv_heads=1", 'positional="learned"',
    'dropout_rate=0.1, dropout_at="residual", activation="leaky_relu"', 'activation="squared_relu", final_norm=true',
])  # fmt: skip
def test_the_options_of_a_block_are_kept(said, tmp_path):
    exported(one_layer(f"TransformerDecoder(num_heads=2, d_model=6, dff=11, {said}) * 2", "(9, 6)"), tmp_path)


@pytest.mark.parametrize("said", ['positional="rotary"', 'positional="alibi"', 'positional="relative"', "qk_norm=true"])
def test_what_works_inside_attention_is_refused_with_a_way_out(said, tmp_path):
    block = f"TransformerDecoder(num_heads=1, d_model=6, dff=11, {said})"
    with pytest.raises(CannotExport, match="--to onnx") as refused:
        export(one_layer(block, "(9, 6)"), Keras, tmp_path / "net.keras")
    assert said in str(refused.value) or "qk_norm" in str(refused.value)


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
