"""Held-out documents of segmentation runs as data of a page."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from neural.report.page_data import collect_recorded_data
from neural.report.segmentation_data import (
    load_held_out,
    load_segmentation_data,
    share_documents,
)
from neural.runs.run import Run
from neural.tasks.segmentation.decoding import decode_boundaries
from neural.tasks.segmentation.held_out import HELD_OUT_KEY, PROBABILITIES_KEY
from neural.tasks.segmentation.metrics import registry as metrics
from tests.report_runs import score_boundaries, write_run, write_segmentation_run

SCORES_FILE = Path(__file__).parents[2] / "web" / "test" / "segmentation_scores.json"


def decode(data):
    return np.frombuffer(base64.b64decode(data), "<f4")


def test_the_page_has_the_probabilities_of_the_best_validation(tmp_path):
    with Run.open(write_segmentation_run(tmp_path)) as run:
        data = load_segmentation_data(run)
        steps, values = run.measure(PROBABILITIES_KEY)
        f1 = run.scalars("valid/f1")[1]
    assert (data["step"], f1.argmax()) == (20, 1)
    (prediction,) = data["predictions"]
    assert (prediction["method"], prediction["threshold"]) == ("none", 0.4)
    np.testing.assert_array_equal(decode(prediction["data"]), values[steps == 20][0])
    assert sum(data["lengths"]) == len(decode(prediction["data"]))
    json.dumps(data, allow_nan=False)


def test_the_score_of_the_validation_can_be_computed_from_the_page_data(tmp_path):
    with Run.open(write_segmentation_run(tmp_path)) as run:
        held_out, f1 = load_held_out(run), run.scalars("valid/f1")[1][1]
    prediction = held_out.predictions[0]
    assert 0 < f1 < 1
    assert score_boundaries(held_out.truths, prediction.documents, prediction.threshold) == f1


def test_a_calibrated_run_has_both_probabilities(tmp_path):
    with Run.open(write_segmentation_run(tmp_path, calibrated=True)) as run:
        plain, calibrated = load_held_out(run).predictions
    assert plain.method == "none"
    assert calibrated.threshold == 0.35
    assert all(document[0] == 0 for document in calibrated.documents)
    assert calibrated.method != "none"
    assert not np.allclose(plain.documents[0], calibrated.documents[0])


def test_the_calibration_of_other_weights_is_ignored(tmp_path):
    path = write_segmentation_run(tmp_path, calibrated=True)
    file = path / "calibration.json"
    file.write_text(file.read_text().replace('"step 20"', '"step 10"'))
    with Run.open(path) as run:
        assert len(load_held_out(run).predictions) == 1


def test_labels_are_those_of_the_shown_elements(tmp_path):
    with Run.open(write_segmentation_run(tmp_path, labels=True)) as run:
        data = load_segmentation_data(run)
    assert data["labels"] == ["verse", "chorus"]
    for shown, predicted in zip(data["shown"], data["predicted_labels"], strict=True):
        assert predicted == shown["labels"]
        assert len(shown["labels"]) == len(shown["texts"])


def test_runs_with_the_same_documents_have_their_texts_once(tmp_path):
    # the documents depend on the seed of the writer, as those of a data file do not
    paths = [
        write_segmentation_run(tmp_path, "first"),
        write_segmentation_run(tmp_path, "second", attention=None, quality=1.0),
        write_segmentation_run(tmp_path, "third", seed=1),
    ]
    entries = []
    for path in paths:
        with Run.open(path) as run:
            entries.append({"id": path.name, "segmentation": load_segmentation_data(run)})
    entries.append({"id": "other", "segmentation": None})
    share_documents(entries)
    first, second, third, other = [entry["segmentation"] for entry in entries]
    assert len(first["shown"]) == len(third["shown"]) == 3
    assert second["documents_of"] == entries[0]["id"]
    assert set(second) == {"step", "predictions", "predicted_labels", "documents_of"}
    assert other is None


def test_runs_that_recorded_nothing_have_no_data(tmp_path):
    for path in (
        write_segmentation_run(tmp_path, "old", recorded=False),
        write_segmentation_run(tmp_path, "unvalidated", validated=False),
        write_run(tmp_path, layers=1, heads=1, snapshots=1),
    ):
        with Run.open(path) as run:
            assert load_segmentation_data(run) is None
            assert collect_recorded_data(run)["segmentation"] is None


@pytest.mark.parametrize("damage", ["length", "range", "nan"])
def test_data_that_does_not_fit_together_is_left_out(tmp_path, damage):
    path = write_segmentation_run(tmp_path, documents=1)
    run = Run.reopen(path)
    values = np.linspace(0, 1, 24)
    damaged = {"length": values[:-1], "range": values + 0.5, "nan": np.full(24, np.nan)}[damage]
    run.log_arrays(20, {PROBABILITIES_KEY: damaged})
    run.finish("finished")
    with Run.open(path) as run:
        assert load_segmentation_data(run) is None


def test_a_record_of_another_form_cannot_be_written(tmp_path):
    run = Run.reopen(write_segmentation_run(tmp_path))
    with pytest.raises(ValueError, match="validation documents"):
        run.set_metadata(HELD_OUT_KEY, {"lengths": [1]})
    run.finish("finished")


def test_the_expected_scores_of_the_front_end_are_those_of_the_metrics():
    """web/test/segmentation_scores.test.ts compares the scores of the page with this file."""
    expected = json.loads(SCORES_FILE.read_text(encoding="utf-8"))
    documents = [np.array(entry["probabilities"]) for entry in expected["documents"]]
    truths = [
        np.isin(np.arange(len(document)), entry["truth"])
        for document, entry in zip(documents, expected["documents"], strict=True)
    ]
    for row in expected["scores"]:
        predicted = [decode_boundaries(p, threshold=row["threshold"]) for p in documents]
        for name in ("boundary_f1", "pk", "window_diff"):
            metric = metrics.get(name)()
            totals = metric.count_documents(truths, predicted).sum(axis=0)
            for score, value in metric.scores(totals).items():
                if not score.endswith("_macro"):
                    assert row[score] == pytest.approx(float(value), abs=1e-12), (row, score)
