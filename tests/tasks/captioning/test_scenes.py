"""Scenes: what is said is there, and it is known where."""

import numpy as np
import pytest

from neural.tasks.captioning.data import NOWHERE
from neural.tasks.captioning.scenes import CELL, COLOURS, SHAPES, scenes

COUNTS = (60, 11, 7)


@pytest.fixture(scope="module")
def made():
    return scenes(3, COUNTS, seed=0)


def colour_at(data, split, picture, place):
    """The colour that most of the lit pixels of a region are nearest to."""
    pixels = split.regions[picture, place, : 3 * CELL * CELL].reshape(-1, 3)
    lit = pixels[pixels.max(axis=1) > 0.3]
    mean = lit.mean(axis=0) / lit.mean(axis=0).max()
    return min(COLOURS, key=lambda name: np.abs(mean - np.array(COLOURS[name]) / max(COLOURS[name])).sum())


def test_a_colour_is_where_its_word_says(made):
    split = made.splits["train"]
    for row in range(20):
        for word, place in zip(split.said[row], split.places[row], strict=True):
            if made.vocabulary[word] in COLOURS:
                assert colour_at(made, split, row, place) == made.vocabulary[word]


def test_words_about_a_region_have_one_and_the_others_none(made):
    split = made.splits["valid"]
    for said, places in zip(split.said, split.places, strict=True):
        for word, place in zip(said, places, strict=True):
            about = made.vocabulary[word] in (*COLOURS, *SHAPES)
            assert (0 <= place < 9) if about else place == NOWHERE


def test_the_relation_is_that_of_the_two_places(made):
    split = made.splits["train"]
    seen = set()
    for said, places in zip(split.said, split.places, strict=True):
        words = [made.vocabulary[word] for word in said]
        first, second = dict.fromkeys(int(place) for place in places if place != NOWHERE)
        if "above" in words:
            assert first % 3 == second % 3 and first // 3 < second // 3
        else:
            assert first % 3 < second % 3
        seen.add("above" in words)
    assert seen == {True, False}


def test_the_seed_decides_and_no_scene_is_in_two_splits(made):
    again, other = scenes(3, COUNTS, seed=0), scenes(3, COUNTS, seed=1)
    np.testing.assert_array_equal(again.splits["train"].regions, made.splits["train"].regions)
    assert not np.array_equal(other.splits["train"].regions, made.splits["train"].regions)
    pictures = np.concatenate([split.regions for split in made.splits.values()])
    assert len(np.unique(pictures.reshape(len(pictures), -1), axis=0)) == sum(COUNTS)


def test_a_scene_can_be_seen_as_a_picture(made):
    regions = made.splits["train"].regions[0]
    picture = np.array(made.picture(regions))
    assert picture.shape == (24, 24, 3)
    np.testing.assert_allclose(picture[8:16, 16:24] / 255, regions[5, :192].reshape(8, 8, 3), atol=0.003)
