"""Maps of one step: which step, layer and head, and what is masked."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
import torch
from torch import nn

import neural
from neural.capture.map_encoding import decode_map
from neural.capture.snapshot_writer import encode_maps
from neural.report.attention_snapshot import (
    FigureError,
    load_capture_snapshot,
    load_run_snapshot,
)
from neural.runs.run import Run
from tests.report_runs import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with Run.open(write_run(tmp_path_factory.mktemp("runs"), layers=2, heads=3)) as run:
        yield run


def test_the_last_step_is_the_default(run):
    assert load_run_snapshot(run).step == 30
    assert [maps.shape for maps in load_run_snapshot(run, 10).maps] == [(3, 17, 17)] * 2


def test_masked_keys_are_nan_and_rows_sum_to_one(run):
    (weights, _) = load_run_snapshot(run).maps
    assert np.isnan(weights[:, np.triu_indices(17, 1)[0], np.triu_indices(17, 1)[1]]).all()
    assert np.allclose(np.nansum(weights, axis=-1), 1, atol=0.05)


def test_a_step_without_maps_is_answered_with_the_nearest(run):
    with pytest.raises(FigureError, match=r"no maps at step 12; the nearest steps are 0, 10, 20"):
        load_run_snapshot(run, 12)


def test_maps_whose_layers_are_unknown_are_refused(tmp_path):
    path = write_run(tmp_path, layers=1, heads=2)
    with closing(sqlite3.connect(path / "rows.sqlite")) as rows, rows:
        rows.execute("UPDATE metadata SET value = '[]' WHERE key = 'attention/layers'")
    with Run.open(path) as run, pytest.raises(FigureError, match="its attention maps cannot be"):
        load_run_snapshot(run)


@pytest.mark.parametrize(
    ("layer", "head", "message"),
    [
        (2, None, r"has no layer 2: layers are 0 … 1"),
        (1, 3, r"layer 1 of six has no head 3: heads are 0 … 2"),
        (None, 9, r"six has no head 9: heads are 0 … 2"),
    ],
)
def test_a_layer_or_head_that_does_not_exist_is_refused(run, layer, head, message):
    with pytest.raises(FigureError, match=message):
        load_run_snapshot(run).select_head(layer, head)


def test_a_chosen_layer_or_head_is_kept(run):
    snapshot = load_run_snapshot(run)
    assert snapshot.select_head(1, 2) == (1, 2)
    assert snapshot.select_head(1, None)[0] == 1
    assert snapshot.select_head(None, 2)[1] == 2


def test_a_run_without_maps_says_why(tmp_path):
    run = Run.create(tmp_path, "plain", settings={}, program=None, environment={})
    with pytest.raises(FigureError, match=r"has no attention maps.*tracking\.maps_every"):
        load_run_snapshot(run)


def test_a_mask_is_known_in_figures_and_on_pages_and_never_guessed_from_weights_of_0():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with torch.no_grad():
        layer.self_attn.in_proj_weight[:16] *= 40  # most visible weights are stored as 0
    padding = torch.arange(9) >= torch.tensor([[7], [9]])
    with neural.watch(layer) as capture:
        layer(torch.randn(2, 9, 8), src_key_padding_mask=padding)
    (figure,) = load_capture_snapshot(capture).maps
    assert (np.isnan(figure) == padding[0].numpy()).all()
    (encoded,) = encode_maps(capture).values()
    page = decode_map(encoded, hidden=np.nan)
    assert (np.isnan(page) == np.isnan(figure)).all()
    assert (page == 0).any(axis=(1, 2)).all()


def test_a_capture_has_its_causal_mask():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    with neural.watch(layer) as capture:
        layer(torch.randn(2, 5, 8), src_mask=mask, is_causal=True)
    snapshot = load_capture_snapshot(capture, example=1)
    (weights,) = snapshot.maps
    expected = capture[0].maps()[1]
    assert np.allclose(np.nan_to_num(weights), expected)
    assert snapshot.step is None
    with pytest.raises(FigureError, match="example 2 does not exist: the batch has 2"):
        load_capture_snapshot(capture, example=2)
