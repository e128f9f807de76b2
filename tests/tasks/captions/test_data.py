"""Regions and captions from files: reading, and errors of files that cannot be used."""

import json

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.tasks.captions.data import UNKNOWN_ID, read_captions
from tests.tasks.captions.caption_files import make_captioned_regions, write_files


def read_back(folder, regions, lines, **settings):
    write_files(folder, regions, lines)
    return read_captions(
        folder / "own.npz", folder / "own.jsonl", vocabulary=settings.get("vocabulary"), seed=0
    )


def test_words_and_their_regions_are_read(tmp_path):
    regions, lines = make_captioned_regions()
    data = read_back(tmp_path, regions, lines)
    assert (data.segments, data.features) == (3, 4)
    assert data.vocabulary == ("<end>", "<unknown>", "a", "cat", "dog")
    assert sum(len(split) for split in data.splits.values()) == 40
    split = data.splits["test"]
    picture = split.picture_ids[0]
    assert [data.vocabulary[word_id] for word_id in split.word_ids[0]] == [
        *lines[picture]["caption"].split(),
        "<end>",
    ]
    assert split.word_regions[0].tolist() == [-1, lines[picture]["regions"][1], -1]


def test_all_captions_of_a_picture_are_in_one_split(tmp_path):
    regions, lines = make_captioned_regions()
    extra_lines = [{"caption": ["one", "animal"], "picture": index % 40} for index in range(80)]
    indexed_lines = [line | {"picture": index} for index, line in enumerate(lines)]
    data = read_back(tmp_path, regions, [*indexed_lines, *extra_lines])
    pictures_by_split = [set(split.picture_ids.tolist()) for split in data.splits.values()]
    assert sum(len(pictures) for pictures in pictures_by_split) == 40
    assert {len(captions) for captions in data.splits["train"].references().values()} == {3}


def test_a_word_outside_the_vocabulary_is_unknown(tmp_path):
    regions, lines = make_captioned_regions()
    data = read_back(tmp_path, regions, lines, vocabulary=("<end>", "<unknown>", "a", "cat"))
    assert (
        np.concatenate([split.word_ids[:, 1] for split in data.splits.values()]) == UNKNOWN_ID
    ).sum() == 20


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        (np.zeros((40, 1, 4)), "a picture has one region, which leaves nothing to choose"),
        (
            np.zeros((40, 3)),
            r"`regions` is \(40, 3\) of float64, but must be numbers of shape \(N, m, d\)",
        ),
        (np.zeros((4, 3, 4)), "4 pictures are too few; at least 10"),
        (np.full((40, 3, 4), np.nan), "nan"),
        (np.array([[["a"] * 4] * 3] * 40), "must be numbers"),
        (np.array([None] * 40, dtype=object), "own.npz cannot be read: it holds Python objects"),
    ],
)
def test_regions_that_cannot_be_used_are_refused(regions, message, tmp_path):
    with pytest.raises(TaskError, match=message):
        read_back(tmp_path, regions, make_captioned_regions()[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"caption": None}, "line 4: `caption` must be a text or a non-empty list of words"),
        ({"caption": " "}, "line 4: `caption` must be a text or a non-empty list of words"),
        ({"picture": 40}, "line 4: `picture` is 40, but there are 40 pictures: 0 … 39"),
        (
            {"regions": [None]},
            "line 4: `regions` must hold a region or null for each of the 2 words",
        ),
        (
            {"regions": [None, 3]},
            r"line 4: the region of `\w+` is 3, but there are 3 regions: 0 … 2",
        ),
        ({"regions": [None, -1]}, r"the region of `\w+` is -1"),
        ({"picture": 5}, "picture 3 of own.npz has no caption"),
    ],
)
def test_a_caption_that_cannot_be_used_is_named_by_its_line(change, message, tmp_path):
    regions, lines = make_captioned_regions()
    lines[3] = lines[3] | change
    with pytest.raises(TaskError, match=message):
        read_back(tmp_path, regions, lines)


def test_a_line_without_a_caption_and_a_file_without_regions_are_refused(tmp_path):
    regions, lines = make_captioned_regions()
    with pytest.raises(TaskError, match=r"own.jsonl, line 1: the caption is missing"):
        read_back(tmp_path, regions, [{"text": "a cat"}, *lines[1:]])
    np.savez(tmp_path / "own.npz", region=regions)
    with pytest.raises(TaskError, match=r"own.npz has no array `regions`; did you mean `region`?"):
        read_captions(tmp_path / "own.npz", tmp_path / "own.jsonl", vocabulary=None, seed=0)
    (tmp_path / "own.jsonl").write_text(json.dumps(lines[0]) + "\n{", encoding="utf-8")
    write_files(tmp_path, regions, lines, "other")
    with pytest.raises(TaskError, match=r"own.jsonl, line 2 is not valid JSON"):
        read_captions(tmp_path / "other.npz", tmp_path / "own.jsonl", vocabulary=None, seed=0)
