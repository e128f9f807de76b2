"""Generated scenes: captions describe them, and word regions are correct."""

import numpy as np
import pytest

from neural.tasks.captions.data import NO_REGION
from neural.tasks.captions.scenes import CELL_PIXELS, COLOURS, SHAPES, create_scenes

COUNTS = (60, 11, 7)


@pytest.fixture(scope="module")
def scenes():
    return create_scenes(3, COUNTS, seed=0)


def colour_at(data, split, picture, region):
    """Name of the colour nearest to the mean of the bright pixels of a region."""
    pixels = split.regions[picture, region, : 3 * CELL_PIXELS * CELL_PIXELS].reshape(-1, 3)
    lit = pixels[pixels.max(axis=1) > 0.3]
    mean = lit.mean(axis=0) / lit.mean(axis=0).max()
    return min(
        COLOURS, key=lambda name: np.abs(mean - np.array(COLOURS[name]) / max(COLOURS[name])).sum()
    )


def test_a_colour_is_where_its_word_says(scenes):
    split = scenes.splits["train"]
    for row in range(20):
        for word, region in zip(split.word_ids[row], split.word_regions[row], strict=True):
            if scenes.vocabulary[word] in COLOURS:
                assert colour_at(scenes, split, row, region) == scenes.vocabulary[word]


def test_only_colours_and_shapes_have_a_region(scenes):
    split = scenes.splits["valid"]
    for word_ids, regions in zip(split.word_ids, split.word_regions, strict=True):
        for word, region in zip(word_ids, regions, strict=True):
            has_region = scenes.vocabulary[word] in (*COLOURS, *SHAPES)
            assert (0 <= region < 9) if has_region else region == NO_REGION


def test_the_relation_matches_the_positions_of_the_shapes(scenes):
    split = scenes.splits["train"]
    relations = set()
    for word_ids, regions in zip(split.word_ids, split.word_regions, strict=True):
        words = [scenes.vocabulary[word] for word in word_ids]
        first, second = dict.fromkeys(int(region) for region in regions if region != NO_REGION)
        if "above" in words:
            assert first % 3 == second % 3 and first // 3 < second // 3
        else:
            assert first % 3 < second % 3
        relations.add("above" in words)
    assert relations == {True, False}


def test_the_seed_decides_and_no_scene_is_in_two_splits(scenes):
    same, different = create_scenes(3, COUNTS, seed=0), create_scenes(3, COUNTS, seed=1)
    np.testing.assert_array_equal(same.splits["train"].regions, scenes.splits["train"].regions)
    assert not np.array_equal(different.splits["train"].regions, scenes.splits["train"].regions)
    pictures = np.concatenate([split.regions for split in scenes.splits.values()])
    assert len(np.unique(pictures.reshape(len(pictures), -1), axis=0)) == sum(COUNTS)


def test_a_scene_can_be_rendered_as_a_picture(scenes):
    regions = scenes.splits["train"].regions[0]
    picture = np.array(scenes.render_picture(regions))
    assert picture.shape == (24, 24, 3)
    np.testing.assert_allclose(
        picture[8:16, 16:24] / 255, regions[5, :192].reshape(8, 8, 3), atol=0.003
    )
