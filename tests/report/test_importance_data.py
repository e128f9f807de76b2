"""Importance of heads as page data: what is in the file is on the page, in few bytes."""

import base64
import json

import numpy as np
import pytest

from neural.report import importance_data
from neural.report.importance_data import format_command, load_importance_data
from neural.report.run_report import build_run_data
from neural.runs.importance_file import IMPORTANCE_FILE
from neural.runs.run import Run
from tests.findings.synthetic_runs import write_synthetic_run
from tests.importance_files import create_story, write_importance_file


def decode(data, text):
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(data["shape"])


@pytest.fixture
def run(tmp_path):
    return write_synthetic_run(tmp_path, 0)


def test_a_run_that_was_not_measured_has_none(run):
    assert load_importance_data(run) == (None, [])
    assert build_run_data(run)["importance"] is None


def test_arrays_decisions_and_texts_are_those_of_the_file(run):
    change = create_story()
    write_importance_file(
        run.path,
        change,
        pairs=[((0, 0), (0, 2), 0.01), ((1, 1), (1, 2), 0.31)],
        classes={"digits": 2 * change},
        heads=[4, 4, 3],
    )
    data, errors = load_importance_data(run)
    assert errors == [] and data["shape"] == [20, 3, 4]
    change[:, 2, 3] = np.nan
    whole, digits = data["classes"]
    np.testing.assert_allclose(decode(data, whole["change"]), change, atol=1e-5)
    np.testing.assert_allclose(decode(data, digits["change"])[:, :2], 2 * change[:, :2], atol=1e-5)
    np.testing.assert_allclose(
        decode(data, data["gradient"])[:, :2], 0.9 * change[:, :2], atol=1e-5
    )
    assert (whole["name"], whole["share"]) == ("all tokens", None)
    assert (digits["name"], digits["share"]) == ("digits", 0.4)
    assert data["onsets"][2] == [None, None, 550, None]
    assert data["without_effect"][2] == [True, True, False, False]
    assert data["takeovers"] == [{"earlier": [0, 1], "later": [1, 3], "step": 650}]
    # the most expensive pair first
    assert [pair["is_redundant"] for pair in data["pairs"]] == [True, False]
    assert data["pairs"][0]["first"] == [1, 1] and data["pair_step"] == 1000
    assert data["command"] == f"neural ablate {run.name} --over-training"
    assert data["half_onsets"][2] == [None, None, 550, None]
    assert data["smallest_change"] == pytest.approx(0.02) and data["is_better_than_chance"]
    json.dumps(data, allow_nan=False)


def test_tasks_without_tokens_speak_of_examples_and_other_methods_are_named(run):
    write_importance_file(run.path, np.zeros((1, 1, 2)), method="zero", chance_loss=None)
    data, _ = load_importance_data(run)
    assert data["classes"][0]["name"] == "all examples"
    assert data["command"].endswith(" --method zero")
    assert data["smallest_change"] is None, "nothing was learned that could be compared"
    assert not data["is_better_than_chance"]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("mean", ""),
        ("resample", " --method resample"),
        ("pattern uniform", " --method pattern"),
        ("pattern previous", " --method pattern --pattern previous"),
    ],
)
def test_the_command_is_the_one_that_measured_it(method, options):
    assert format_command("run", method, 1) == f"neural ablate run{options}"


def test_many_steps_are_thinned_but_the_ends_stay(run, monkeypatch):
    monkeypatch.setattr(importance_data, "MAX_IMPORTANCE_VALUES", 3 * 6 * 7)
    write_importance_file(run.path, np.zeros((50, 2, 3)))
    data, _ = load_importance_data(run)
    assert len(data["steps"]) == 7 and (data["steps"][0], data["steps"][-1]) == (50, 2500)
    assert decode(data, data["classes"][0]["change"]).shape == (7, 2, 3)


def test_a_damaged_file_is_a_note_on_the_page(run):
    (run.path / IMPORTANCE_FILE).write_text("[]")
    data = build_run_data(run)
    assert data["importance"] is None
    assert any("importance.json is not valid" in note for note in data["notes"])


def test_updates_of_a_running_training_leave_it_out(tmp_path):
    with Run.create(tmp_path, "live", settings={}, program=None, environment={}) as run:
        write_importance_file(run.path, np.zeros((1, 1, 2)))
        assert build_run_data(run)["importance"] is not None
        assert build_run_data(run, after_step=10)["importance"] is None
