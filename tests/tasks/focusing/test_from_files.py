"""Focus models from files of one's own, from end to end: posts with rationales, folders of pictures, CIFAR."""

import json

import numpy as np
import pytest
from PIL import Image

from neural.standard import CATALOGUE
from neural.tasks.experiment import Training
from neural.tasks.focus import Focus, FocusSettings
from neural.tasks.task import TaskError
from tests.tasks.data.cifar_files import binary, write
from tests.tasks.test_focus import trained

FEW = {"examples": 96, "valid_examples": 24, "test_examples": 24, "segments": 4}


def task(folder, data, steps=60, rate=0.03, **settings):
    training = Training(steps=steps, batch_size=16, optimizer=f"AdamW(learning_rate={rate})", validate_every=steps)
    return Focus(FocusSettings(data=data, training=training, **settings), folder, CATALOGUE)


def posts(count=60):
    """HateXplain's form: half of the posts have two bad words, which two of three annotators mark."""
    found = {}
    for number in range(count):
        bad = number % 2
        tokens = ["so", "it", f"w{number % 3}", *(["vile", "scum"] if bad else ["nice", "day"]), "ok"][bad:]
        at = tokens.index("vile") if bad else 0
        marks = [int(at <= place < at + 2) for place in range(len(tokens))]
        votes = ["hatespeech", "hatespeech", "normal"] if bad else ["normal"] * 3
        found[f"post_{number}"] = {
            "post_id": f"post_{number}", "post_tokens": tokens, "annotators": [{"label": one} for one in votes],
            "rationales": [marks, marks] if bad else [],
        }  # fmt: skip
    return found


def test_the_focus_finds_the_tokens_that_annotators_marked(tmp_path):
    (tmp_path / "dataset.json").write_text(json.dumps(posts()), encoding="utf-8")
    made = task(tmp_path, "dataset.json")
    front = made.data.splits["train"].foreground
    assert made.data.classes == ("hatespeech", "normal")
    np.testing.assert_array_equal(front.sum(axis=1), 2 * (made.data.splits["train"].labels == 0))
    _, outcome = trained(made, tmp_path / "runs")
    assert outcome.scores["valid/accuracy"] == 1.0
    assert outcome.scores["valid/focus_accuracy"] == 1.0, "posts without a rationale do not count"
    assert outcome.scores["valid/foreground_mass"] > 0.8
    assert "valid/focus_accuracy_class_1" not in outcome.scores


def test_texts_without_any_rationale_say_nothing_about_the_focus(tmp_path):
    lines = [{"tokens": one["post_tokens"], "label": number % 2} for number, one in enumerate(posts().values())]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    _, outcome = trained(task(tmp_path, "texts.jsonl", steps=4), tmp_path / "runs")
    assert "valid/focus_accuracy" not in outcome.scores
    assert "valid/accuracy" in outcome.scores


def test_a_folder_of_pictures_becomes_mosaics(tmp_path):
    random = np.random.default_rng(0)
    colours = {"azure": (0, 90, 255), "brick": (220, 40, 20), "coral": (255, 240, 40), "dark": (25, 25, 25)}
    for name, colour in colours.items():
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(12):
            pixels = np.clip(np.array(colour) + random.normal(scale=8, size=(6, 6, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{number}.png")
    made = task(tmp_path, "pictures", rate=0.003, **FEW)
    assert made.data.classes == ("azure", "brick", "coral")
    assert made.data.shape == (16, 16, 3)
    _, outcome = trained(made, tmp_path / "runs")
    assert outcome.scores["valid/accuracy"] > 0.9
    assert outcome.scores["valid/focus_accuracy"] > 0.9


def test_cifar_becomes_mosaics_of_its_first_three_classes_and_is_tested_on_its_own_test_pictures(tmp_path, monkeypatch):
    write(tmp_path / "cifar-10-batches-bin", binary())
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    made = task(tmp_path, "cifar10", steps=3, **FEW)
    assert made.data.classes == ("airplane", "automobile", "bird")
    assert made.data.shape == (32, 32, 3)
    assert made.data.splits["train"].members.max() < 200
    assert made.data.splits["test"].members.min() >= 200, "pictures that CIFAR keeps for the test"
    _, outcome = trained(made, tmp_path / "runs")
    assert np.isfinite(outcome.scores["valid/loss"])


@pytest.mark.parametrize(
    ("arrays", "settings", "says"),
    [({"segments": np.zeros((40, 1, 3))}, {}, "own.npz: an example has one segment, which leaves nothing to choose"),
     ({"labels": np.arange(40) % 3 * 2}, {}, "own.npz: class 1 has no example to learn from, of 5 classes"),
     ({"foreground": np.arange(40) % 6}, {}, "`foreground` is 5 for example 5, but there are 5 segments: 0 … 4"),
     ({"foreground": np.arange(40) % 5 - 1}, {}, "`foreground` is -1 for example 0"),
     ({}, {"estimator": "topk", "samples": 6}, "`samples` is 6, but an example has 5 segments; 5 at most"),
     ({"labels": None}, {}, "own.npz has no array `labels`; there are segments, foreground"),
     ({"labels": None, "label": np.arange(40) % 3}, {}, "own.npz has no array `labels`; did you mean `label`?"),
     ({"labels": np.array([{}] * 40, dtype=object)}, {}, "own.npz cannot be read: it holds Python objects; save plain"),
     ({"segments": np.zeros((40, 5))}, {}, r"`segments` is \(40, 5\) of float64, but must be numbers of shape \(N, m"),
     ({"labels": np.zeros((40, 2), int)}, {}, r"`labels` is \(40, 2\) of int64, but must be 40 class numbers"),
     ({"segments": np.array([["a"] * 5] * 40)}, {}, "but must be numbers of shape")],
)  # fmt: skip
def test_segments_that_cannot_be_used_are_refused_in_words(arrays, settings, says, tmp_path):
    plain = {"segments": np.zeros((40, 5, 3)), "labels": np.arange(40) % 3, "foreground": np.arange(40) % 5}
    np.savez(tmp_path / "own.npz", **{name: one for name, one in (plain | arrays).items() if one is not None})
    with pytest.raises(TaskError, match=says):
        task(tmp_path, "own.npz", **settings)


def test_a_mistake_in_the_data_is_a_message_and_no_traceback(tmp_path):
    from click.testing import CliRunner

    from neural.cli.main import main

    np.savez(tmp_path / "own.npz", segments=np.zeros((40, 1, 3)), labels=np.arange(40) % 3)
    (tmp_path / "own.yaml").write_text("task: focus\ndata: own.npz\n", encoding="utf-8")
    done = CliRunner().invoke(main, ["train", str(tmp_path / "own.yaml"), "--runs", str(tmp_path / "runs")])
    assert (done.exit_code, "leaves nothing to choose" in done.output) == (2, True)
    assert "Traceback" not in done.output
    assert not (tmp_path / "runs").exists()
