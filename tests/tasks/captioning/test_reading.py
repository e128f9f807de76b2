"""Regions and captions of one's own: how they are read, and what is said about those that cannot be used."""

import json

import numpy as np
import pytest

from neural.tasks.captioning.data import UNKNOWN
from neural.tasks.captioning.reading import read
from neural.tasks.task import TaskError
from tests.tasks.captioning.own_files import pairs, write


def read_back(folder, regions, lines, **named):
    write(folder, regions, lines)
    return read(folder / "own.npz", folder / "own.jsonl", vocabulary=named.get("vocabulary"), seed=0)


def test_words_places_and_regions_are_kept(tmp_path):
    regions, lines = pairs()
    data = read_back(tmp_path, regions, lines)
    assert (data.segments, data.features) == (3, 4)
    assert data.vocabulary == ("<end>", "<unknown>", "a", "cat", "dog")
    assert sum(len(split) for split in data.splits.values()) == 40
    split = data.splits["test"]
    picture = split.picture[0]
    assert [data.vocabulary[one] for one in split.said[0]] == [*lines[picture]["caption"].split(), "<end>"]
    assert split.places[0].tolist() == [-1, lines[picture]["regions"][1], -1]


def test_all_captions_of_a_picture_are_in_one_split(tmp_path):
    regions, lines = pairs()
    more = [{"caption": ["one", "animal"], "picture": number % 40} for number in range(80)]
    numbered = [one | {"picture": number} for number, one in enumerate(lines)]
    data = read_back(tmp_path, regions, [*numbered, *more])
    inside = [set(split.picture.tolist()) for split in data.splits.values()]
    assert sum(len(one) for one in inside) == 40
    assert {len(one) for one in data.splits["train"].references().values()} == {3}


def test_a_word_that_was_never_learned_is_known_as_such(tmp_path):
    regions, lines = pairs()
    data = read_back(tmp_path, regions, lines, vocabulary=("<end>", "<unknown>", "a", "cat"))
    assert (np.concatenate([split.said[:, 1] for split in data.splits.values()]) == UNKNOWN).sum() == 20


@pytest.mark.parametrize(
    ("regions", "says"),
    [(np.zeros((40, 1, 4)), "a picture has one region, which leaves nothing to choose"),
     (np.zeros((40, 3)), r"`regions` is \(40, 3\) of float64, but must be numbers of shape \(N, m, d\)"),
     (np.zeros((4, 3, 4)), "4 pictures are too few; at least 10"), (np.full((40, 3, 4), np.nan), "nan"),
     (np.array([[["a"] * 4] * 3] * 40), "must be numbers"),
     (np.array([None] * 40, dtype=object), "own.npz cannot be read: it holds Python objects")],
)  # fmt: skip
def test_regions_that_cannot_be_used_are_refused(regions, says, tmp_path):
    with pytest.raises(TaskError, match=says):
        read_back(tmp_path, regions, pairs()[1])


@pytest.mark.parametrize(
    ("change", "says"),
    [({"caption": None}, "line 4: `caption` must be a text or a list of words"),
     ({"caption": " "}, "line 4: `caption` must be a text or a list of words"),
     ({"picture": 40}, "line 4: it is about picture 40, but there are 40: 0 … 39"),
     ({"regions": [None]}, "line 4: `regions` must name a region or null for each of the 2 words"),
     ({"regions": [None, 3]}, r"line 4: `\w+` is about region 3, but there are 3: 0 … 2"),
     ({"regions": [None, -1]}, "is about region -1"), ({"picture": 5}, "picture 3 of own.npz has no caption")],
)  # fmt: skip
def test_a_caption_that_cannot_be_used_is_named_by_its_line(change, says, tmp_path):
    regions, lines = pairs()
    lines[3] = lines[3] | change
    with pytest.raises(TaskError, match=says):
        read_back(tmp_path, regions, lines)


def test_a_line_without_a_caption_and_a_file_without_regions_are_refused(tmp_path):
    regions, lines = pairs()
    with pytest.raises(TaskError, match=r"own.jsonl, line 1: the caption is missing"):
        read_back(tmp_path, regions, [{"text": "a cat"}, *lines[1:]])
    np.savez(tmp_path / "own.npz", region=regions)
    with pytest.raises(TaskError, match=r"own.npz has no array `regions`; did you mean `region`?"):
        read(tmp_path / "own.npz", tmp_path / "own.jsonl", vocabulary=None, seed=0)
    (tmp_path / "own.jsonl").write_text(json.dumps(lines[0]) + "\n{", encoding="utf-8")
    write(tmp_path, regions, lines, "other")
    with pytest.raises(TaskError, match=r"own.jsonl, line 2 is no JSON"):
        read(tmp_path / "other.npz", tmp_path / "own.jsonl", vocabulary=None, seed=0)
