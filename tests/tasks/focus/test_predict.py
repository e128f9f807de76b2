"""Focus models applied to new data: classes, probabilities, and the segment in focus."""

import json

import numpy as np
import pytest

import neural
from neural.core.errors import TaskError
from neural.workflows.predict import describe_input
from neural.workflows.prediction_files import to_csv
from tests.tasks.focus.test_from_files import create_task as create_file_task
from tests.tasks.focus.test_from_files import make_posts
from tests.tasks.focus.test_task import create_task, train_run, write_segments

HYBRID = 'hybrid(first="soft", then="hard", switch="step", value=60)'


@pytest.mark.parametrize("paradigm", ["soft", "hard", "lvml", HYBRID, "annealed", "auto"])
def test_new_segments_are_predicted_as_the_validation_examples_are(paradigm, tmp_path):
    task = create_task(tmp_path, paradigm=paradigm)
    run, outcome = train_run(task, tmp_path / "runs")
    valid = task.data.splits["valid"]
    segments = valid.unit_bank[valid.members]
    np.savez(tmp_path / "new.npz", segments=segments)
    (tmp_path / "plain.npz").unlink()  # the data of the training is not needed
    rows = neural.predict(run, tmp_path / "new.npz").items[0]
    is_right = rows.predicted_labels() == np.array(task.data.classes)[valid.labels]
    assert is_right.mean() == pytest.approx(outcome.scores["valid/accuracy"])
    in_focus = valid.foreground[np.arange(len(valid)), rows.chosen_segments]
    assert in_focus.mean() == pytest.approx(outcome.scores["valid/focus_accuracy"])
    assert rows.focus.max(axis=1).mean() == pytest.approx(
        outcome.scores["valid/focus_confidence"], abs=1e-5
    )
    record = next(rows.to_records())
    assert list(record) == [
        "predicted",
        *(f"probability_{name}" for name in task.data.classes),
        "segment",
        "focus",
    ]
    assert len(record["focus"]) == segments.shape[1]
    assert sum(record["focus"]) == pytest.approx(1, abs=1e-5)
    assert record["focus"][record["segment"]] == max(record["focus"])
    header = to_csv([rows])[0].decode().partition("\n")[0]
    assert header.endswith(",segment,focus_0,focus_1,focus_2,focus_3")


def test_python_predicts_arrays_of_any_number_of_segments(tmp_path):
    write_segments(tmp_path)
    (tmp_path / "own.yaml").write_text(
        "task: focus\ndata: plain.npz\ntraining: {steps: 60, batch_size: 32}\n"
    )
    result = neural.fit(tmp_path / "own.yaml", runs=tmp_path / "runs", quiet=True)
    segments = np.load(tmp_path / "plain.npz")["segments"]
    labels = result.predict(np.concatenate([segments, segments * 0], axis=1))
    assert labels.shape == (200,)
    assert result.predict_proba({"segments": segments}).shape == (200, 3)
    assert "segment in focus" in str(neural.predict(result.run, segments[:2]))
    with pytest.raises(TaskError, match=r"has the shape \(4,\): \(N, m, 4\) is needed"):
        result.predict(segments[:, :, :3])
    with pytest.raises(TaskError, match="there is no array `segments`; there are a, b"):
        result.predict({"a": segments, "b": segments})


def test_texts_are_predicted_with_the_token_in_focus(tmp_path):
    (tmp_path / "dataset.json").write_text(json.dumps(make_posts()), encoding="utf-8")
    run, _ = train_run(create_file_task(tmp_path, "dataset.json"), tmp_path / "runs")
    (tmp_path / "dataset.json").unlink()
    texts = [["you", "vile", "scum"], ["what", "a", "nice", "day", "ok"]]
    lines = "".join(json.dumps({"tokens": tokens}) + "\n" for tokens in texts)
    (tmp_path / "new.jsonl").write_text(lines, encoding="utf-8")
    first, second = neural.predict(run, tmp_path / "new.jsonl").to_records()
    assert first["predicted"] == "hatespeech" and first["token"] in ("vile", "scum")
    assert second["predicted"] == "normal"
    assert [len(first["focus"]), len(second["focus"])] == [3, 5]
    assert "tokens" in describe_input(run)
