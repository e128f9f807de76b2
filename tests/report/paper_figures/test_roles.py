"""Grid of the roles of heads."""

import numpy as np
import pytest
import torch
from torch import nn

import neural
from neural.capture.map_encoding import encode_map
from neural.core.settings import dump_settings
from neural.findings.head_roles import NO_ROLES, ROLE_THRESHOLDS
from neural.report.attention_snapshot import load_run_snapshot
from neural.report.paper_figures.roles import ROLE_BADGES
from neural.runs.run import Run
from neural.tasks.language_model.task import LanguageModel
from tests.report.paper_figures.figure_files import check_figure, read_texts

POSITIONS = 12


def write_run(root):
    """At step 0 both heads are uniform; at step 10 head 0 attends to the previous token."""
    settings = dump_settings(LanguageModel.Settings.model_validate({"name": "roles", "data": "x"}))
    run = Run.create(root, "roles", settings=settings, program=None, environment={})
    run.set_metadata("attention/layers", ["decoder.0"])
    run.set_metadata("attention/heads", [2])
    run.set_metadata("probe/labels", [list("abcdefghijkl")])
    uniform = np.tril(np.ones((POSITIONS, POSITIONS)))
    uniform /= uniform.sum(axis=1, keepdims=True)
    previous = np.eye(POSITIONS, k=-1)
    previous[0, 0] = 1
    for step, first in ((0, uniform), (10, previous)):
        run.log_maps(step, {"decoder.0": encode_map(np.stack([first, uniform]), causal=True)})
        values = {"relative_entropy": [1.0, 1.0], "previous_token_mass": [0.1, 0.1]}
        if step:
            values = {"relative_entropy": [0.0, 1.0], "previous_token_mass": [1.0, 0.1]}
        run.log_arrays(step, {name: np.array([row], np.float32) for name, row in values.items()})
    run.finish("finished")
    return run.path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs"))


def test_roles_have_a_word_and_a_count(run, tmp_path):
    texts = read_texts(check_figure(neural.figure(run, "roles"), tmp_path))
    assert texts.count("prev") == 2, "in its cell and in the legend"
    assert "previous token, 1 of 2" in texts
    assert "uniform, 1 of 2" in texts


def test_roles_are_those_up_to_the_step(run, tmp_path):
    path = neural.figure(run, "roles", step=0).save(tmp_path / "start.svg")
    assert "uniform, 2 of 2" in read_texts(path)
    assert "prev" not in read_texts(path)


def test_the_head_with_a_role_is_chosen(run):
    with neural.open_run(run) as opened:
        snapshot = load_run_snapshot(opened)
        assert snapshot.select_head(None, None) == (0, 0)
        assert snapshot.describe_head(0, 0) == "L0 h0, previous token"
        assert snapshot.describe_head(0, 1) == "L0 h1", "uniform is no role"


def test_roles_of_a_capture(tmp_path):
    encoder = nn.TransformerEncoderLayer(32, 16, 16, batch_first=True).eval()
    capture = neural.watch(encoder, torch.randn(1, 6, 32))
    texts = read_texts(check_figure(neural.figure(capture, "roles"), tmp_path))
    assert [text for text in texts if text.startswith("h")] == [f"h{head}" for head in range(16)]


def test_inputs_that_are_too_short_for_roles_are_counted_in_the_legend(tmp_path):
    torch.manual_seed(0)
    encoder = nn.TransformerEncoderLayer(32, 4, 16, batch_first=True).eval()
    with torch.no_grad():  # no head is uniform
        encoder.self_attn.in_proj_weight *= 5
    texts = read_texts(
        check_figure(neural.figure(neural.watch(encoder, torch.randn(1, 6, 32)), "roles"), tmp_path)
    )
    assert "too short to tell, 4 of 4" in texts


def test_every_role_has_a_badge_and_badges_differ_in_grey():
    assert {*ROLE_THRESHOLDS, *NO_ROLES} == set(ROLE_BADGES)
    for length in (2, 5):
        words = [word[:length] for word, _ in ROLE_BADGES.values()]
        assert len(set(words)) == len(words)
