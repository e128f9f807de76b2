"""Focus models trained on files: posts with rationales, folders of images, CIFAR."""

import json

import numpy as np
import pytest
from PIL import Image

from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.optim.catalogue import CATALOGUE
from neural.tasks.focus.task import Focus, FocusSettings
from tests.data.cifar_files import binary_files, write_files
from tests.tasks.focus.test_task import train_run

SMALL_MOSAICS = {"examples": 96, "valid_examples": 24, "test_examples": 24, "segments": 4}


def create_task(folder, data, steps=60, rate=0.03, **settings):
    training = TrainingSettings(
        steps=steps, batch_size=16, optimizer=f"AdamW(learning_rate={rate})", validate_every=steps
    )
    return Focus(FocusSettings(data=data, training=training, **settings), folder, CATALOGUE)


def make_posts(count=60):
    """Posts in HateXplain's format; half have two bad words, marked by two of three annotators."""
    posts_by_id = {}
    for index in range(count):
        bad = index % 2
        tokens = [
            "so",
            "it",
            f"w{index % 3}",
            *(["vile", "scum"] if bad else ["nice", "day"]),
            "ok",
        ][bad:]
        start = tokens.index("vile") if bad else 0
        marks = [int(start <= position < start + 2) for position in range(len(tokens))]
        votes = ["hatespeech", "hatespeech", "normal"] if bad else ["normal"] * 3
        posts_by_id[f"post_{index}"] = {
            "post_id": f"post_{index}",
            "post_tokens": tokens,
            "annotators": [{"label": label} for label in votes],
            "rationales": [marks, marks] if bad else [],
        }
    return posts_by_id


def test_the_focus_finds_the_tokens_that_annotators_marked(tmp_path):
    (tmp_path / "dataset.json").write_text(json.dumps(make_posts()), encoding="utf-8")
    task = create_task(tmp_path, "dataset.json")
    foreground = task.data.splits["train"].foreground
    assert task.data.classes == ("hatespeech", "normal")
    np.testing.assert_array_equal(
        foreground.sum(axis=1), 2 * (task.data.splits["train"].labels == 0)
    )
    _, outcome = train_run(task, tmp_path / "runs")
    assert outcome.scores["valid/accuracy"] == 1.0
    assert outcome.scores["valid/focus_accuracy"] == 1.0, "posts without a rationale do not count"
    assert outcome.scores["valid/foreground_mass"] > 0.8
    assert "valid/focus_accuracy_class_1" not in outcome.scores


def test_texts_without_rationales_give_no_focus_metrics(tmp_path):
    lines = [
        {"tokens": label["post_tokens"], "label": index % 2}
        for index, label in enumerate(make_posts().values())
    ]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    _, outcome = train_run(create_task(tmp_path, "texts.jsonl", steps=4), tmp_path / "runs")
    assert "valid/focus_accuracy" not in outcome.scores
    assert "valid/accuracy" in outcome.scores


def test_a_folder_of_images_becomes_mosaics(tmp_path):
    random = np.random.default_rng(0)
    colours = {
        "azure": (0, 90, 255),
        "brick": (220, 40, 20),
        "coral": (255, 240, 40),
        "dark": (25, 25, 25),
    }
    for name, colour in colours.items():
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for index in range(12):
            pixels = np.clip(
                np.array(colour) + random.normal(scale=8, size=(6, 6, 3)), 0, 255
            ).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{index}.png")
    task = create_task(tmp_path, "pictures", rate=0.003, **SMALL_MOSAICS)
    assert task.data.classes == ("azure", "brick", "coral")
    assert task.data.shape == (16, 16, 3)
    _, outcome = train_run(task, tmp_path / "runs")
    assert outcome.scores["valid/accuracy"] > 0.9
    assert outcome.scores["valid/focus_accuracy"] > 0.9


def test_cifar_mosaics_use_its_first_three_classes_and_its_test_images(tmp_path, monkeypatch):
    write_files(tmp_path / "cifar-10-batches-bin", binary_files())
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    task = create_task(tmp_path, "cifar10", steps=3, **SMALL_MOSAICS)
    assert task.data.classes == ("airplane", "automobile", "bird")
    assert task.data.shape == (32, 32, 3)
    assert task.data.splits["train"].members.max() < 200
    assert task.data.splits["test"].members.min() >= 200, "pictures that CIFAR keeps for the test"
    _, outcome = train_run(task, tmp_path / "runs")
    assert np.isfinite(outcome.scores["valid/loss"])


@pytest.mark.parametrize(
    ("arrays", "settings", "message"),
    [
        (
            {"segments": np.zeros((40, 1, 3))},
            {},
            "own.npz: an example has one segment, which leaves nothing to choose",
        ),
        (
            {"labels": np.arange(40) % 3 * 2},
            {},
            "own.npz: class 1 of 5 has no training example",
        ),
        (
            {"foreground": np.arange(40) % 6},
            {},
            "`foreground` is 5 for example 5, but there are 5 segments: 0 … 4",
        ),
        ({"foreground": np.arange(40) % 5 - 1}, {}, "`foreground` is -1 for example 0"),
        (
            {},
            {"estimator": "topk", "samples": 6},
            "`samples` is 6, but must be at most 5",
        ),
        ({"labels": None}, {}, "own.npz has no array `labels`; there are segments, foreground"),
        (
            {"labels": None, "label": np.arange(40) % 3},
            {},
            "own.npz has no array `labels`; did you mean `label`?",
        ),
        (
            {"labels": np.array([{}] * 40, dtype=object)},
            {},
            "own.npz cannot be read: it holds Python objects",
        ),
        (
            {"segments": np.zeros((40, 5))},
            {},
            r"`segments` is \(40, 5\) of float64, but must be numbers of shape \(N, m",
        ),
        (
            {"labels": np.zeros((40, 2), int)},
            {},
            r"`labels` is \(40, 2\) of int64, but must be 40 class numbers",
        ),
        ({"segments": np.array([["a"] * 5] * 40)}, {}, "but must be numbers of shape"),
    ],
)
def test_unusable_segments_are_refused_with_a_message(arrays, settings, message, tmp_path):
    defaults = {
        "segments": np.zeros((40, 5, 3)),
        "labels": np.arange(40) % 3,
        "foreground": np.arange(40) % 5,
    }
    np.savez(
        tmp_path / "own.npz",
        **{name: label for name, label in (defaults | arrays).items() if label is not None},
    )
    with pytest.raises(TaskError, match=message):
        create_task(tmp_path, "own.npz", **settings)


def test_an_error_in_the_data_is_a_message_not_a_traceback(tmp_path):
    from click.testing import CliRunner

    from neural.cli.main import main

    np.savez(tmp_path / "own.npz", segments=np.zeros((40, 1, 3)), labels=np.arange(40) % 3)
    (tmp_path / "own.yaml").write_text("task: focus\ndata: own.npz\n", encoding="utf-8")
    result = CliRunner().invoke(
        main, ["train", str(tmp_path / "own.yaml"), "--runs", str(tmp_path / "runs")]
    )
    assert (result.exit_code, "leaves nothing to choose" in result.output) == (2, True)
    assert "Traceback" not in result.output
    assert not (tmp_path / "runs").exists()
