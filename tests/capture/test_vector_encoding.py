"""Queries and keys of heads as JSON data."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import neural
from neural.capture.vector_encoding import (
    check_vectors,
    count_vector_bytes,
    decode_vectors,
    encode_vectors,
)


@pytest.fixture(scope="module")
def capture():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    model = nn.TransformerEncoder(layer, num_layers=2).eval()
    return neural.watch(model, torch.randn(3, 5, 8))


def test_decoded_queries_and_keys_give_the_weights(capture):
    layers = json.loads(json.dumps(encode_vectors(capture, example=1)))
    assert list(layers) == capture.layer_names()
    for call, layer in zip(capture, layers.values(), strict=True):
        queries, keys = decode_vectors(layer)
        scores = queries @ keys.transpose(0, 2, 1) * layer["score_scale"]
        weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        assert np.abs(weights - call.maps()[1]).max() < 1e-3


def test_positions_are_limited_as_those_of_maps(capture):
    (first, *_) = encode_vectors(capture, max_positions=2).values()
    assert first["shape"] == [2, 2, 2, 2, 4]


def test_nothing_is_kept_above_the_limit(capture):
    size = count_vector_bytes(encode_vectors(capture))
    # two layers of 2 heads × 5 positions × 4 numbers of 2 bytes for queries and for keys
    assert size == 4 * len("x" * 108)
    assert encode_vectors(capture, max_bytes=size)
    assert encode_vectors(capture, max_bytes=size // 2) == {}


def test_damaged_entries_of_a_folder_are_left_out(capture):
    layers = encode_vectors(capture)
    name = next(iter(layers))
    assert check_vectors(json.loads(json.dumps(layers))) == layers
    for damaged in [
        {"shape": [1, 1, 1, 1, 10**9]},
        {"shape": [2, 2, 5, 5]},
        {"shape": None},
        {"queries": layers[name]["queries"][:-4]},
        {"keys": 7},
        {"score_scale": float("nan")},
    ]:
        checked = check_vectors({**layers, name: {**layers[name], **damaged}})
        assert list(checked) == [other for other in layers if other != name]
    assert check_vectors(None) == {} and check_vectors({"a": 1, "b": {}}) == {}
