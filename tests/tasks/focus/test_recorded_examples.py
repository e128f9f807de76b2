"""Recorded examples of focus runs: pictures, weights at every validation, no influence on training."""

import json

import numpy as np
import pytest
import torch

from neural.runs.run import Run
from neural.tasks.focus.data import SegmentData, SegmentSplit
from neural.tasks.focus.recorded_examples import (
    EXAMPLES_KEY,
    FOCUS_ARRAY,
    MAX_EXAMPLES,
    MAX_IMAGE_BYTES,
    MAX_TILES,
    MIN_EXAMPLES,
    PREDICTION_ARRAY,
    RecordedExamples,
    select_examples,
)
from neural.tasks.focus.task import Focus
from neural.training.engine import fit
from tests.tasks.focus.test_data import read_digit_mosaics
from tests.tasks.focus.test_task import create_task, train_run


def create_data(shape, *, examples=40, m=5, dtype=np.float32, **split_fields):
    """Random segments of one shape; segment 2 of every example is its foreground."""
    random = np.random.default_rng(0)
    bank = random.integers(0, 256, size=(examples * m, *shape)).astype(dtype)
    split = SegmentSplit(
        unit_bank=bank,
        members=np.arange(examples * m).reshape(examples, m),
        labels=np.arange(examples) % 3,
        foreground=np.tile(np.arange(m) == 2, (examples, 1)),
        **split_fields,
    )
    return SegmentData(
        data_name="random", splits=dict.fromkeys(("train", "valid"), split), classes=("a", "b", "c")
    )


def read_tile(examples, example, tile):
    height, width, channels = examples.image_shape
    pixels = np.frombuffer(examples.image_of(example), np.uint8)
    return pixels.reshape(len(examples.tiles[example]), height, width, channels)[tile]


def test_vectors_of_64_values_are_pictures_of_8_by_8_pixels():
    data = read_digit_mosaics(examples=(60, 500, 30))
    examples = select_examples(data)
    assert (len(examples.labels), examples.image_shape, examples.segments) == (24, (8, 8, 1), 6)
    valid = data.splits["valid"]
    bank_tile = valid.unit_bank[valid.members[7, 3]].reshape(8, 8).astype(float)
    tile = read_tile(examples, 7, 3)[..., 0]
    # the largest of all pixels is 255, so tiles are proportional to the stored images
    np.testing.assert_allclose(tile / 255, bank_tile / valid.unit_bank.max(), atol=0.5 / 255)
    assert examples.labels == valid.labels[:24].tolist()
    assert examples.foreground == [[position] for position in valid.foreground[:24].argmax(axis=1)]


def test_pictures_of_bytes_keep_their_values():
    data = create_data((16, 16, 3), dtype=np.uint8)
    examples = select_examples(data)
    np.testing.assert_array_equal(read_tile(examples, 1, 4), data.splits["valid"].unit_bank[9])


def test_large_pictures_are_averaged_down_and_fewer_examples_recorded():
    data = create_data((32, 48, 3), examples=600, m=10, dtype=np.uint8)
    examples = select_examples(data)
    assert examples.image_shape == (10, 16, 3)
    tile = data.splits["valid"].unit_bank[0][:30].reshape(10, 3, 16, 3, 3).mean(axis=(1, 3))
    np.testing.assert_array_equal(read_tile(examples, 0, 0), np.rint(tile))
    assert MIN_EXAMPLES <= len(examples.labels) < MAX_EXAMPLES
    assert len(examples.images) <= MAX_IMAGE_BYTES


def test_of_many_segments_the_foreground_and_the_first_others_are_recorded():
    split = create_data((3,), m=100).splits["valid"]
    foreground = np.zeros((40, 100), dtype=bool)
    foreground[:, 77] = True
    data = SegmentData(
        data_name="many",
        splits={
            "train": split,
            "valid": SegmentSplit(
                unit_bank=split.unit_bank,
                members=split.members,
                labels=split.labels,
                foreground=foreground,
            ),
        },
        classes=("a", "b", "c"),
    )
    examples = select_examples(data)
    assert examples.tiles[0] == [*range(MAX_TILES - 1), 77]
    assert examples.image_shape is None, "three numbers are no picture"


def test_padding_is_not_recorded_and_words_are():
    mask = np.ones((40, 5), dtype=bool)
    mask[1, 3:] = False
    split = create_data((1,), m=5, dtype=np.int64, mask=mask).splits["valid"]
    ids = np.arange(200)[:, None] % 4
    split = SegmentSplit(
        unit_bank=ids,
        members=split.members,
        labels=split.labels,
        foreground=split.foreground,
        mask=mask,
    )
    data = SegmentData(
        data_name="words",
        splits={"train": split, "valid": split},
        classes=("a", "b", "c"),
        vocabulary=("<unknown>", "so", "it", "goes"),
    )
    examples = select_examples(data)
    assert examples.words[:2] == [
        ["<unknown>", "so", "it", "goes", "<unknown>"],
        ["so", "it", "goes"],
    ]
    assert examples.tiles[1] == [0, 1, 2]


def test_metadata_comes_back_and_damaged_metadata_is_refused():
    examples = select_examples(create_data((8, 8)))
    stored = json.loads(json.dumps(examples.to_metadata()))
    assert RecordedExamples.from_metadata(stored) == examples
    for damage in (
        {"images": stored["images"][:-8]},
        {"tiles": stored["tiles"][1:]},
        {"labels": ["many"]},
        {"image_shape": [8, 8, 2]},
        {"words": [["a"]]},
        {"foreground": []},
    ):
        assert RecordedExamples.from_metadata(stored | damage) is None
    assert RecordedExamples.from_metadata(None) is None


@pytest.mark.parametrize("paradigm", ["soft", "lvml"])
def test_every_validation_records_what_the_model_predicts(paradigm, tmp_path):
    task = create_task(tmp_path, steps=40, paradigm=paradigm)
    run, _ = train_run(task, tmp_path / "runs")
    steps, weights = run.measure(FOCUS_ARRAY)
    assert steps.tolist() == run.scalars("valid/accuracy")[0].tolist()
    assert RecordedExamples.from_metadata(run.metadata(EXAMPLES_KEY)) == task.recorded_examples
    model = task.build()
    saved = run.load_checkpoint()
    model.load_state_dict(
        {
            name.removeprefix("model."): tensor
            for name, tensor in saved.tensors.items()
            if name.startswith("model.")
        }
    )
    model.eval()
    count = len(task.recorded_examples.labels)
    with torch.no_grad():
        focus = task.forward(model, task.data.splits["valid"].take(slice(0, count)))
        predictions = task.predict_split(model, "valid")
    np.testing.assert_allclose(weights[-1], focus.numpy(), atol=1e-6)
    _, recorded = run.measure(PREDICTION_ARRAY)
    expected = [predictions.predicted, predictions.confidence, predictions.likelihood]
    np.testing.assert_allclose(
        recorded[-1], np.stack([array[:count] for array in expected], axis=1), atol=1e-6
    )


def test_recording_does_not_change_training(tmp_path, monkeypatch):
    recorded, _ = train_run(create_task(tmp_path, steps=40), tmp_path / "runs", "with")
    monkeypatch.setattr(RecordedExamples, "record", lambda self, task, model: {})
    plain, _ = train_run(create_task(tmp_path, steps=40), tmp_path / "runs", "without")
    assert FOCUS_ARRAY not in plain._store.array_names()
    tensors, plain_tensors = (run.load_checkpoint().tensors for run in (recorded, plain))
    assert tensors.keys() == plain_tensors.keys()
    assert all(torch.equal(tensors[name], plain_tensors[name]) for name in tensors)
    losses = [run.scalars("train/loss")[1] for run in (recorded, plain)]
    np.testing.assert_array_equal(*losses)


def test_a_resumed_run_records_the_same_weights(tmp_path):
    complete, _ = train_run(create_task(tmp_path, steps=60), tmp_path / "runs", "complete")
    task = create_task(tmp_path, steps=60)
    run = Run.create(
        tmp_path / "runs", "broken", settings=task.experiment.model_dump(mode="json"), program=None
    )

    def on_step(progress):
        if progress.step == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(task, run, on_step=on_step)
    fit(create_task(tmp_path, steps=60), Run.reopen(run.path))
    resumed = Run.open(run.path)
    for name in (FOCUS_ARRAY, PREDICTION_ARRAY):
        for own, expected in zip(resumed.measure(name), complete.measure(name), strict=True):
            np.testing.assert_array_equal(own, expected)


def test_the_example_task_records(tmp_path):
    from neural.optim.catalogue import CATALOGUE

    task = Focus.example(tmp_path, CATALOGUE)
    with torch.no_grad():
        arrays = task.recorded_examples.record(task, task.build().eval())
    np.testing.assert_allclose(arrays[FOCUS_ARRAY].sum(axis=1), 1, atol=1e-6)
