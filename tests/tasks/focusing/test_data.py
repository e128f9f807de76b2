"""Mosaics, segments and tokens: what they are made of, and what is said about those that cannot be used."""

import json

import numpy as np
import pytest

from neural.language.check import check
from neural.standard import CATALOGUE
from neural.tasks.focusing.networks import default_program
from neural.tasks.focusing.reading import read
from neural.tasks.task import TaskError

SIXTY_FOUR = check(default_program("Focus", (64,), 1, None), CATALOGUE).networks[0]


def mosaics(**changes):
    asked = {"segments": 6, "foreground": ("0", "1", "2"), "examples": (60, 30, 30), "seed": 0, **changes}
    return read("digits", SIXTY_FOUR, **asked)


def arrays(tmp_path, **changes):
    random = np.random.default_rng(0)
    made = {
        "segments": random.normal(size=(40, 5, 3)), "labels": np.arange(40) % 3, "foreground": np.arange(40) % 5,
        **changes,
    }  # fmt: skip
    np.savez(tmp_path / "own.npz", **{name: value for name, value in made.items() if value is not None})
    return read(tmp_path / "own.npz", None, segments=None, foreground=None, examples=(1, 1, 1), seed=0)


def texts(tmp_path, lines, name="texts.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return read(path, None, segments=None, foreground=None, examples=(1, 1, 1), seed=0)


def some_texts(count=20):
    return [
        {"tokens": ["a", "bad" if at % 2 else "good", "day"][: 2 + at % 2], "label": "no" if at % 2 else "yes",
         "rationale": [0, 1, 0][: 2 + at % 2]}
        for at in range(count)
    ]  # fmt: skip


def test_no_image_is_in_two_splits():
    splits = mosaics(examples=(3000, 2000, 2000)).splits
    used = {name: set(split.members.ravel().tolist()) for name, split in splits.items()}
    assert not used["train"] & used["valid"] and not used["train"] & used["test"] and not used["valid"] & used["test"]
    assert len(used["train"]) > 900


def test_one_segment_of_a_mosaic_is_of_its_class_and_the_others_of_no_foreground_class():
    from sklearn.datasets import load_digits

    target = load_digits().target
    for split in mosaics().splits.values():
        inside = target[split.members]
        assert split.foreground is not None
        np.testing.assert_array_equal(inside[split.foreground], split.labels)
        assert (inside[~split.foreground] > 2).all()
        assert len(set(np.argmax(split.foreground, axis=1))) == 6, "at any place"
        assert (np.bincount(split.labels) == len(split) / 3).all()


def test_the_seed_decides_the_mosaics():
    one, again, other = mosaics(), mosaics(), mosaics(seed=1)
    np.testing.assert_array_equal(one.splits["train"].members, again.splits["train"].members)
    assert not np.array_equal(one.splits["train"].members, other.splits["train"].members)


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"segments": 1}, "nothing to choose"), ({"foreground": ("0", "cat")}, "names the class `cat`"),
     ({"foreground": ("3",)}, "two classes or more"), ({"foreground": ("1", "1")}, "twice"),
     ({"foreground": tuple("0123456789")}, "left for the background")],
)  # fmt: skip
def test_mosaics_that_cannot_be_made_are_refused(changes, says):
    with pytest.raises(TaskError, match=says):
        mosaics(**changes)


def test_segments_of_ones_own_are_kept_as_they_are(tmp_path):
    data = arrays(tmp_path)
    assert (data.segments, data.shape, len(data.classes)) == (5, (3,), 3)
    assert sum(len(split) for split in data.splits.values()) == 40
    batch = data.splits["test"].take(slice(0, 2))
    assert tuple(batch["members"].shape) == (2, 5)
    assert batch["z"].sum(dim=1).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"labels": None}, "has no array `labels`"), ({"foreground": np.full(40, 5)}, "is 5 for example 0"),
     ({"labels": np.full(40, 2)}, "class 0 has no example"), ({"segments": np.zeros((40, 1, 3))}, "nothing to choose"),
     ({"segments": np.full((40, 5, 3), np.nan)}, "nan"), ({"labels": np.zeros(40, int)}, "one class"),
     ({"labels": np.arange(39) % 3}, "40 class numbers"), ({"foreground": np.zeros((40, 2))}, "a place 0 … 4"),
     ({"labels": np.arange(40) % 3 - 1}, "begin at 0")],
)  # fmt: skip
def test_arrays_that_cannot_be_used_are_refused(changes, says, tmp_path):
    with pytest.raises(TaskError, match=says):
        arrays(tmp_path, **changes)


def test_texts_have_a_vocabulary_a_mask_and_their_rationales(tmp_path):
    data = texts(tmp_path, some_texts())
    assert data.classes == ("no", "yes")
    assert data.vocabulary == ("<unknown>", "a", "bad", "day", "good")
    batch = data.splits["train"].take(slice(0, 3))
    assert tuple(batch["members"].shape) == (3, 3)
    assert batch["z"].sum(dim=1).tolist() == [1, 1, 1]
    for row, label in zip(batch["mask"], batch["y"], strict=True):
        assert int(row.sum()) == (3 if data.classes[int(label)] == "no" else 2)


def test_hatexplain_is_read_by_the_vote_of_its_annotators(tmp_path):
    lines = [
        {"post_tokens": ["x", "y", "z"], "rationales": [[1, 0, 0], [1, 1, 0], [0, 0, 0]],
         "annotators": [{"label": one} for one in ("hate", "normal" if at % 2 else "hate", "normal")]}
        for at in range(20)
    ]  # fmt: skip
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps({str(at): line for at, line in enumerate(lines)}), encoding="utf-8")
    data = read(path, None, segments=None, foreground=None, examples=(1, 1, 1), seed=0)
    assert data.classes == ("hate", "normal")
    assert data.splits["train"].foreground is not None
    np.testing.assert_array_equal(data.splits["train"].foreground[0], [True, False, False])


@pytest.mark.parametrize(
    ("change", "says"),
    [({"label": None}, "line 4: the label is missing"), ({"tokens": []}, "line 4: `tokens` must be a list"),
     ({"rationale": [1]}, "line 4: `rationale` must be 0 or 1 for each")],
)  # fmt: skip
def test_a_text_that_cannot_be_used_is_named(change, says, tmp_path):
    lines = some_texts()
    lines[3] |= change
    with pytest.raises(TaskError, match=says):
        texts(tmp_path, lines)


def test_what_a_file_says_itself_is_not_to_be_said_twice(tmp_path):
    np.savez(tmp_path / "own.npz", segments=np.zeros((9, 4, 2)), labels=np.arange(9) % 2)
    for asked, says in (({"foreground": ("0", "1")}, "says itself"), ({"segments": 7}, "its examples have 4")):
        with pytest.raises(TaskError, match=says):
            whole = {"segments": None, "foreground": None} | asked
            read(tmp_path / "own.npz", None, examples=(1, 1, 1), seed=0, **whole)
