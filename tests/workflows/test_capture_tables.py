"""Captures as tables: pandas, JSON, xarray."""

import json
import sys

import numpy as np
import pytest
import torch
from torch import nn

import neural
from neural.core.errors import TaskError
from neural.workflows import capture_tables
from neural.workflows.capture_tables import describe_dataset
from tests.hugging_face_folders import (
    build_gpt2,
    build_t5,
    plant_previous_token_head,
    train_tokenizer,
)

SOURCE, TARGET = "the cat sat on the mat and the cat sat on the rug", "a dog sat"


@pytest.fixture(scope="module")
def planted():
    """Two texts read by GPT-2 with a previous-token head in layer 1."""
    tokenizer = train_tokenizer()
    model = plant_previous_token_head(build_gpt2(tokenizer))
    return neural.watch(model, [SOURCE, "a dog saw the cat"], tokenizer=tokenizer)


@pytest.fixture(scope="module")
def translator():
    """T5: encoder, decoder, and attention between them."""
    tokenizer = train_tokenizer()
    model = build_t5(tokenizer)
    return neural.watch(model, SOURCE, TARGET, tokenizer=tokenizer)


class TwoWidths(nn.Module):
    """Layers with three heads and with one."""

    def __init__(self):
        super().__init__()
        self.wide = nn.MultiheadAttention(6, 3, batch_first=True)
        self.narrow = nn.MultiheadAttention(6, 1, batch_first=True)

    def forward(self, x):
        x = self.wide(x, x, x)[0]
        return self.narrow(x, x, x)[0]


@pytest.fixture(scope="module")
def uneven():
    torch.manual_seed(0)
    return neural.watch(TwoWidths().eval(), torch.randn(2, 5, 6))


def test_a_dataframe_has_a_row_per_head_with_its_role_and_all_measures(planted):
    frame = planted.to_dataframe()
    assert frame[["layer", "head"]].values.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert list(frame.columns[:4]) == ["layer", "head", "path", "role"]
    assert set(frame.columns[4:]) == set(planted.measure_arrays())
    (head,) = frame[frame.role == "previous token"].itertuples()
    assert (head.layer, head.head, head.path) == (1, 0, "transformer.h.1.attn")
    np.testing.assert_array_equal(
        frame["entropy"].to_numpy(np.float32).reshape(2, 2), planted.measure_arrays()["entropy"]
    )


def test_a_measure_of_a_layer_is_in_all_rows_of_the_layer(planted):
    frame, values = planted.to_dataframe(), planted.measure_arrays()["head_diversity"]
    assert frame["head_diversity"].tolist() == np.repeat(values, 2).tolist()
    assert values[0] != values[1]


def test_layers_with_fewer_heads_have_fewer_rows(uneven):
    frame = uneven.to_dataframe()
    assert frame["path"].tolist() == ["wide", "wide", "wide", "narrow"]
    assert frame["entropy"].notna().all()


def test_a_dict_is_json_and_has_the_same_numbers(planted):
    data = json.loads(json.dumps(planted.to_dict(), allow_nan=False))
    assert data["model"] == "GPT2LMHeadModel"
    assert data["tokens"] == planted.labels and data["decoder_tokens"] is None
    layer = data["layers"][1]
    assert (layer["name"], layer["queries"], layer["keys"]) == ("transformer.h.1.attn", 13, 13)
    assert [head["role"] for head in layer["heads"]] == planted.head_roles()[1].tolist()
    arrays = planted.measure_arrays()
    assert layer["heads"][0]["measures"]["entropy"] == float(arrays["entropy"][1, 0])
    assert layer["measures"]["head_diversity"] == float(arrays["head_diversity"][1])
    divergence = planted.compare_layers()["js_between"]
    assert data["between_layers"]["js_between"] == [[None, float(divergence[0, 1])], [None, None]]


def test_what_is_not_finite_is_null():
    class Broken(TwoWidths):
        def forward(self, x):
            return super().forward(x * float("nan"))

    capture = neural.watch(Broken().eval(), torch.randn(1, 3, 6), on_warning=lambda message: None)
    data = json.loads(json.dumps(capture.to_dict(), allow_nan=False))
    assert data["layers"][0]["queries"] is None
    assert data["layers"][0]["heads"][0]["measures"]["entropy"] is None
    assert capture.to_dataframe()["entropy"].isna().all()
    assert not [name for name in describe_dataset(capture)[0] if name.startswith("map_")]


def test_two_sequences_have_axes_and_labels_of_their_own(translator):
    variables, coordinates = describe_dataset(translator)
    check_sizes(variables, coordinates)
    source, target = SOURCE.split(), ["[PAD]", *TARGET.split()[:-1]]
    paths = coordinates["path"][1].tolist()
    (cross,) = [layer for layer, path in enumerate(paths) if "EncDec" in path]
    dims = variables[f"map_{cross}"][0]
    tokens = {
        dim: coordinates[dim.replace(kind, f"{kind}_token")][1][0].tolist()
        for kind, dim in zip(("query", "key"), dims[2:], strict=True)
    }
    assert list(tokens.values()) == [target, source]
    assert len({variables[f"map_{layer}"][0] for layer in range(3)}) == 3
    # the keys of the encoder are those of the attention between encoder and decoder
    assert dims[3] == variables["map_0"][0][3] == "key"


def test_variables_of_a_dataset_have_the_measures_and_maps(planted):
    variables, coordinates = describe_dataset(planted)
    check_sizes(variables, coordinates)
    assert variables["role"][1].tolist() == planted.head_roles().tolist()
    assert variables["entropy"][0] == ("layer", "head")
    assert variables["entropy"][2]["units"] == "nats"
    assert variables["head_diversity"][0] == ("layer",)
    assert variables["js_between"][0] == ("layer", "later_layer")
    for layer in range(2):
        dims, weights, _ = variables[f"map_{layer}"]
        assert dims == ("example", "head", "query", "key")
        np.testing.assert_array_equal(weights, planted[layer].maps())
    assert coordinates["key_token"][1].tolist() == planted.labels


def test_missing_heads_are_nan_in_the_maps(uneven):
    variables, coordinates = describe_dataset(uneven)
    check_sizes(variables, coordinates)
    weights = variables["map_1"][1]
    np.testing.assert_array_equal(weights[:, :1], uneven[1].maps())
    assert np.isnan(weights[:, 1:]).all()
    assert "query_token" not in coordinates
    assert variables["role"][1][1].tolist()[1:] == ["", ""]


def test_maps_can_be_limited_or_left_out(planted, monkeypatch):
    variables, coordinates = describe_dataset(planted, examples=1, positions=3)
    check_sizes(variables, coordinates)
    assert variables["map_0"][1].shape == (1, 2, 3, 3)
    assert coordinates["query_token"][1].tolist() == [planted.labels[0][:3]]
    assert "map_0" not in describe_dataset(planted, maps=False)[0]
    monkeypatch.setattr(capture_tables, "MAX_MAP_BYTES", 2 * 2 * 2 * 13 * 13 * 4 - 1)
    with pytest.raises(ValueError, match="pass maps=False, or fewer of them"):
        describe_dataset(planted)
    assert "map_0" in describe_dataset(planted, examples=1)[0]


def check_sizes(variables, coordinates):
    """A dimension has one size, as xarray demands, and every dimension has a coordinate."""
    sizes = {name: len(values) for name, values in coordinates.items() if type(values) is not tuple}
    labelled = [values for values in coordinates.values() if type(values) is tuple]
    for dims, values, *_ in [*variables.values(), *labelled]:
        assert values.shape == tuple(sizes[dim] for dim in dims)


def test_a_dataset_of_xarray(planted, translator):
    dataset = planted.to_xarray()
    assert dataset.attrs == {"model": "GPT2LMHeadModel"}
    (head,) = np.argwhere(dataset.role.values == "previous token").tolist()
    assert head == [1, 0]
    row = dataset.map_1.isel(example=0, head=0, query=2)
    assert row.key_token.values[int(row.argmax("key"))] == "cat"  # before "sat"
    cut = translator.to_xarray(positions=2)
    assert cut.sizes["query"] == 2 and "map_2" in cut


def test_a_missing_package_is_a_message(planted, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(TaskError, match="to_xarray needs xarray: pip install xarray"):
        planted.to_xarray()


@pytest.mark.filterwarnings("ignore::neural.capture.watch.AttentionWarning")
def test_a_model_without_attention_has_an_empty_table():
    capture = neural.watch(nn.Linear(3, 3), torch.zeros(2, 3))
    assert capture.to_dict()["layers"] == []
    assert list(capture.to_dataframe().columns) == ["layer", "head", "path", "role"]
    check_sizes(*describe_dataset(capture))
