"""Mosaics, array files and token files: contents, and errors of data that cannot be used."""

import json

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.language.check import check
from neural.optim.catalogue import CATALOGUE
from neural.tasks.focus.model import write_default_program
from neural.tasks.focus.task import read_segments

DIGIT_NETWORK = check(write_default_program("Focus", (64,), 1, None), CATALOGUE).networks[0]


def read_digit_mosaics(**changes):
    settings = {
        "segments": 6,
        "foreground": ("0", "1", "2"),
        "examples": (60, 30, 30),
        "seed": 0,
        **changes,
    }
    return read_segments("digits", DIGIT_NETWORK, **settings)


def read_arrays(tmp_path, **changes):
    random = np.random.default_rng(0)
    saved = {
        "segments": random.normal(size=(40, 5, 3)),
        "labels": np.arange(40) % 3,
        "foreground": np.arange(40) % 5,
        **changes,
    }
    np.savez(
        tmp_path / "own.npz", **{name: value for name, value in saved.items() if value is not None}
    )
    return read_segments(
        tmp_path / "own.npz", None, segments=None, foreground=None, examples=(1, 1, 1), seed=0
    )


def read_texts(tmp_path, lines, name="texts.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return read_segments(path, None, segments=None, foreground=None, examples=(1, 1, 1), seed=0)


def make_texts(count=20):
    return [
        {
            "tokens": ["a", "bad" if index % 2 else "good", "day"][: 2 + index % 2],
            "label": "no" if index % 2 else "yes",
            "rationale": [0, 1, 0][: 2 + index % 2],
        }
        for index in range(count)
    ]


def test_no_image_is_in_two_splits():
    splits = read_digit_mosaics(examples=(3000, 2000, 2000)).splits
    used = {name: set(split.members.ravel().tolist()) for name, split in splits.items()}
    assert (
        not used["train"] & used["valid"]
        and not used["train"] & used["test"]
        and not used["valid"] & used["test"]
    )
    assert len(used["train"]) > 900


def test_a_mosaic_has_one_foreground_segment_of_its_class():
    from sklearn.datasets import load_digits

    target = load_digits().target
    for split in read_digit_mosaics().splits.values():
        classes = target[split.members]
        assert split.foreground is not None
        np.testing.assert_array_equal(classes[split.foreground], split.labels)
        assert (classes[~split.foreground] > 2).all()
        assert len(set(np.argmax(split.foreground, axis=1))) == 6, "at any place"
        assert (np.bincount(split.labels) == len(split) / 3).all()


def test_the_seed_decides_the_mosaics():
    first, same, different = read_digit_mosaics(), read_digit_mosaics(), read_digit_mosaics(seed=1)
    np.testing.assert_array_equal(first.splits["train"].members, same.splits["train"].members)
    assert not np.array_equal(first.splits["train"].members, different.splits["train"].members)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"segments": 1}, "nothing to choose"),
        ({"foreground": ("0", "cat")}, "names the class `cat`"),
        ({"foreground": ("3",)}, "at least two classes"),
        ({"foreground": ("1", "1")}, "twice"),
        ({"foreground": tuple("0123456789")}, "at least one must be background"),
    ],
)
def test_invalid_mosaic_settings_are_refused(changes, message):
    with pytest.raises(TaskError, match=message):
        read_digit_mosaics(**changes)


def test_segments_of_an_array_file_are_unchanged(tmp_path):
    data = read_arrays(tmp_path)
    assert (data.segments, data.shape, len(data.classes)) == (5, (3,), 3)
    assert sum(len(split) for split in data.splits.values()) == 40
    batch = data.splits["test"].take(slice(0, 2))
    assert tuple(batch["members"].shape) == (2, 5)
    assert batch["foreground"].sum(dim=1).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "has no array `labels`"),
        ({"foreground": np.full(40, 5)}, "is 5 for example 0"),
        ({"labels": np.full(40, 2)}, "class 0 of 3 has no training example"),
        ({"segments": np.zeros((40, 1, 3))}, "nothing to choose"),
        ({"segments": np.full((40, 5, 3), np.nan)}, "nan"),
        ({"labels": np.zeros(40, int)}, "one class"),
        ({"labels": np.arange(39) % 3}, "40 class numbers"),
        ({"foreground": np.zeros((40, 2))}, "a position 0 … 4"),
        ({"labels": np.arange(40) % 3 - 1}, "start at 0"),
    ],
)
def test_arrays_that_cannot_be_used_are_refused(changes, message, tmp_path):
    with pytest.raises(TaskError, match=message):
        read_arrays(tmp_path, **changes)


def test_texts_have_a_vocabulary_a_mask_and_their_rationales(tmp_path):
    data = read_texts(tmp_path, make_texts())
    assert data.classes == ("no", "yes")
    assert data.vocabulary == ("<unknown>", "a", "bad", "day", "good")
    batch = data.splits["train"].take(slice(0, 3))
    assert tuple(batch["members"].shape) == (3, 3)
    assert batch["foreground"].sum(dim=1).tolist() == [1, 1, 1]
    for row, label in zip(batch["mask"], batch["y"], strict=True):
        assert int(row.sum()) == (3 if data.classes[int(label)] == "no" else 2)


def test_hatexplain_is_read_by_the_vote_of_its_annotators(tmp_path):
    lines = [
        {
            "post_tokens": ["x", "y", "z"],
            "rationales": [[1, 0, 0], [1, 1, 0], [0, 0, 0]],
            "annotators": [
                {"label": first} for first in ("hate", "normal" if index % 2 else "hate", "normal")
            ],
        }
        for index in range(20)
    ]
    path = tmp_path / "dataset.json"
    path.write_text(
        json.dumps({str(index): line for index, line in enumerate(lines)}), encoding="utf-8"
    )
    data = read_segments(path, None, segments=None, foreground=None, examples=(1, 1, 1), seed=0)
    assert data.classes == ("hate", "normal")
    assert data.splits["train"].foreground is not None
    np.testing.assert_array_equal(data.splits["train"].foreground[0], [True, False, False])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": None}, "line 4: the label is missing"),
        ({"tokens": []}, "line 4: `tokens` must be a list"),
        ({"rationale": [1]}, "line 4: `rationale` must be 0 or 1 for each"),
    ],
)
def test_a_text_that_cannot_be_used_is_named(change, message, tmp_path):
    lines = make_texts()
    lines[3] |= change
    with pytest.raises(TaskError, match=message):
        read_texts(tmp_path, lines)


def test_settings_that_a_file_defines_are_refused(tmp_path):
    np.savez(tmp_path / "own.npz", segments=np.zeros((9, 4, 2)), labels=np.arange(9) % 2)
    for settings, message in (
        ({"foreground": ("0", "1")}, "has its own foreground"),
        ({"segments": 7}, "its examples have 4"),
    ):
        with pytest.raises(TaskError, match=message):
            arguments = {"segments": None, "foreground": None} | settings
            read_segments(tmp_path / "own.npz", None, examples=(1, 1, 1), seed=0, **arguments)
