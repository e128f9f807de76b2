"""Page data of a capture: size limits, layers without weights, layers of two sequences."""

import base64
import struct

import numpy as np
import pytest
import torch
from torch import nn

import neural
from neural.capture import snapshot_writer
from neural.capture.attention_call import AttentionCall
from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.map_encoding import decode_map
from neural.findings import capture_record
from neural.findings.capture_roles import find_capture_roles
from neural.report import capture_page
from neural.report.capture_page import build_capture_page_data
from neural.report.page_data import compress_maps
from tests.map_pages import MapsRecord


def create_capture(*shapes, labels=None) -> Capture:
    """A capture of one call per (queries, keys), or of a call without weights for None."""
    capture = Capture()
    for index, shape in enumerate(shapes):
        attention = None
        if shape is not None:
            queries, keys = shape
            attention = AttentionCall(torch.randn(1, 2, queries, 4), torch.randn(1, 2, keys, 4))
        capture.calls.append(CapturedCall(f"layer{index}", 2, attention))
    capture.labels = labels
    return capture


def read_maps(data) -> dict[str, np.ndarray]:
    """The maps of a page by layer."""
    ((packed,),) = [steps.values() for steps in data["maps"].values()]
    block = base64.b64decode(packed)
    _, _, count = struct.unpack_from("<4sBI", block)
    position, maps = 9, {}
    for _ in range(count):
        (size,) = struct.unpack_from("<H", block, position)
        name = block[position + 2 : position + 2 + size].decode()
        position += 2 + size
        (size,) = struct.unpack_from("<I", block, position)
        maps[name] = decode_map(block[position + 4 : position + 4 + size])
        position += 4 + size
    return maps


def test_a_page_has_one_step_and_no_curves():
    capture = create_capture((4, 4), (4, 4))
    data = build_capture_page_data(capture)
    (run,) = data["runs"]
    assert data["kind"] == "snapshot" and run["map_steps"] == [0] and not run["scalars"]
    assert run["layers"] == ["layer0", "layer1"] and run["heads"] == [2, 2]
    assert run["layer_labels"] == {
        "layer0": {"queries": [], "keys": []},
        "layer1": {"queries": [], "keys": []},
    }
    assert run["labels"] is None
    np.testing.assert_allclose(read_maps(data)["layer1"], capture[1].maps()[0], atol=0.004)


def test_a_layer_without_weights_is_left_out_with_a_note():
    (run,) = build_capture_page_data(create_capture((12, 12), None, (12, 12)))["runs"]
    assert run["layers"] == ["layer0", "layer2"]
    assert run["measures"]["entropy"]["shape"] == [1, 2, 2]
    assert run["measures"]["cosine_between"]["shape"] == [1, 2, 2]
    assert len(run["roles"]) == 2
    assert run["notes"] == ["layer1: queries or keys are not finite, so there are no weights"]


def test_only_layers_of_the_labelled_sequence_have_labels():
    labels = ["a", "b", "c"]
    (run,) = build_capture_page_data(create_capture((4, 4), (1, 3), labels=[labels]))["runs"]
    assert run["layer_labels"]["layer0"] == {"queries": [], "keys": []}
    assert run["layer_labels"]["layer1"] == {"queries": ["c"], "keys": labels}
    assert run["labels"] == {"queries": ["c"], "keys": labels}


def test_modules_that_are_not_measured_are_named():
    capture = create_capture((12, 12))
    capture.refusals["other"] = "its attention is sampled"
    (run,) = build_capture_page_data(capture)["runs"]
    assert run["notes"] == ["not measured: other: its attention is sampled"]


def test_long_maps_are_cut_with_a_note(monkeypatch):
    for module in (capture_page, snapshot_writer, capture_record):
        monkeypatch.setattr(module, "MAX_MAP_POSITIONS", 11)
    data = build_capture_page_data(create_capture((16, 16), (12, 16)))
    maps = read_maps(data)
    assert maps["layer0"].shape == (2, 11, 11) and maps["layer1"].shape == (2, 11, 11)
    assert data["runs"][0]["notes"] == [
        "maps show the first 11 positions; measures include all positions"
    ]


def test_the_size_of_the_maps_is_limited():
    data = build_capture_page_data(create_capture((64, 64), (64, 64)), max_map_bytes=2000)
    (run,) = data["runs"]
    factor = run["downsampling"]["0"]
    assert factor > 1
    assert run["notes"] == [
        f"to keep this file small, a cell of a map stands for {factor} × {factor} positions"
    ]
    assert read_maps(data)["layer0"].shape == (2, -(-64 // factor), -(-64 // factor))


def test_rounding_comes_before_merging():
    weights = np.random.default_rng(0).dirichlet(np.ones(64), (2, 64)).astype(np.float32)
    record = MapsRecord("maps", {"layer": weights})
    exact = compress_maps(record, 10**6)
    assert exact.downsampling == {} and exact.notes == []
    rounded = compress_maps(record, len(exact.steps[0]) - 500)
    assert rounded.downsampling == {} and "weights are off by up to 0.0" in rounded.notes[0]
    page = {"maps": {"maps": {0: base64.b64encode(rounded.steps[0])}}}
    np.testing.assert_allclose(read_maps(page)["layer"], weights, atol=0.016)


def test_roles_of_layers_of_two_sequences_need_no_distances():
    """Distances between queries and keys of different sequences mean nothing."""
    capture = Capture()
    q, k = torch.zeros(1, 1, 12, 12), torch.zeros(1, 1, 12, 12)
    q[0, 0], k[0, 0] = 100 * torch.eye(12), torch.eye(12)  # every query attends to its own position
    for known_positions in ("queries_and_keys", "keys"):
        call = AttentionCall(q, k, known_positions=known_positions)
        capture.calls.append(CapturedCall(known_positions, 1, call))
    assert find_capture_roles(capture).tolist() == [["positional"], ["mixed"]]


@pytest.mark.parametrize("heads", [1, 2])
def test_layers_with_different_numbers_of_heads(heads):
    class Both(nn.Module):
        def forward(self, x):
            for count in (heads, 3):
                q = x.unflatten(-1, (count, -1)).transpose(1, 2)
                x = x + nn.functional.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(
                    2
                )
            return x

    capture = neural.watch(Both(), torch.randn(1, 5, 6))
    (run,) = build_capture_page_data(capture)["runs"]
    assert run["heads"] == [heads, 3]
    assert [len([name for name in names if name]) for names in run["roles"]] == [heads, 3]
