"""Generated scenes with captions and the region of every word: two coloured shapes on a grid.

    a red circle left of a blue square
    a yellow cross above a red cross

The caption names the shape further left first, or the upper one if both are in one column. A region
is one cell of the grid; its features are its pixels and its position. Grey shapes are distractors:
captions do not mention them.
"""

from __future__ import annotations

import numpy as np

from neural.data.sampler import create_generator
from neural.tasks.captions.data import SPLIT_NAMES, CaptionData, CaptionSplit, build_vocabulary

CELL_PIXELS, SHAPE_PIXELS = 8, 6
"""Side of a cell in pixels, and of the shape in it, which is drawn at a random offset."""
MAX_GREY_SHAPES = 3
"""Largest number of grey shapes in a scene; fewer on a small grid."""
COLOURS = {
    "red": (1.0, 0.15, 0.1),
    "green": (0.1, 0.8, 0.2),
    "blue": (0.15, 0.3, 1.0),
    "yellow": (0.95, 0.85, 0.1),
}
"""RGB values, 0 to 1."""
GREY = (0.5, 0.5, 0.5)
SHAPES = {
    "circle": (" #### ", "######", "######", "######", "######", " #### "),
    "square": ("######", "######", "######", "######", "######", "######"),
    "triangle": ("  ##  ", "  ##  ", " #### ", " #### ", "######", "######"),
    "cross": ("  ##  ", "  ##  ", "######", "######", "  ##  ", "  ##  "),
}
"""Pixels of the shapes; `#` is drawn."""
SHAPE_MASKS = np.array(
    [[[pixel == "#" for pixel in row] for row in rows] for rows in SHAPES.values()]
)
"""(shape, row, column), boolean, in the order of SHAPES."""
SCENE_RNG_STREAM = 4
"""Random stream (data/sampler.py): different uses of one seed get independent random numbers."""


def create_scenes(
    grid: int, counts: tuple[int, int, int], seed: int, training_seed: int | None = None
) -> CaptionData:
    """Generate training, validation and test scenes from the seed.

    `grid` is the number of rows and of columns, `counts` the numbers of training, validation and
    test scenes. If `training_seed` is given, it generates the training scenes.
    """
    seeds = (seed if training_seed is None else training_seed, seed, seed)
    scene_sets = [
        _draw_scenes(
            grid, count, create_generator(split_seed, split_index, stream=SCENE_RNG_STREAM)
        )
        for split_index, (count, split_seed) in enumerate(zip(counts, seeds, strict=True))
    ]
    vocabulary = build_vocabulary(caption for _, captions, _ in scene_sets for caption in captions)
    splits = {}
    for name, (regions, captions, word_regions) in zip(SPLIT_NAMES, scene_sets, strict=True):
        picture_ids = np.arange(len(captions))  # one caption per picture
        splits[name] = CaptionSplit.from_captions(
            regions, picture_ids, captions, word_regions, vocabulary
        )
    return CaptionData(
        data_name="scenes",
        splits=splits,
        vocabulary=vocabulary,
        grid=(grid, grid),
        cell_size=CELL_PIXELS,
    )


def _draw_scenes(
    grid: int, count: int, random: np.random.Generator
) -> tuple[np.ndarray, list[list[str]], list[list[int | None]]]:
    """Regions (count, grid², 192 + 2 grid), captions, and the region of each word.

    Features are 8 × 8 × 3 pixels, then the row and the column one-hot.
    """
    m, grey_shapes = grid * grid, min(MAX_GREY_SHAPES, grid * grid - 2)
    # a dark background with noise
    pixels = np.clip(
        0.05 + 0.03 * random.normal(size=(count, m, CELL_PIXELS, CELL_PIXELS, 3)), 0, 1
    )
    captions, word_regions = [], []
    colours, shapes = list(COLOURS), list(SHAPES)
    for scene in range(count):
        cells = random.permutation(m)[
            : 2 + grey_shapes
        ]  # the first two are for the coloured shapes
        # A kind is a colour and a shape, numbered colour index × number of shapes + shape index.
        kinds = random.permutation(len(colours) * len(shapes))[:2]  # two different ones
        first, second = sorted(
            zip(cells[:2].tolist(), kinds.tolist(), strict=True),
            key=lambda placed_shape: _reading_order(placed_shape, grid),
        )
        for cell, kind in (first, second):
            colour, shape = divmod(kind, len(shapes))
            _draw_shape(pixels[scene, cell], SHAPE_MASKS[shape], COLOURS[colours[colour]], random)
        for cell in cells[2:]:
            _draw_shape(
                pixels[scene, cell], SHAPE_MASKS[random.integers(len(shapes))], GREY, random
            )
        words, regions_of_words = [], list[int | None]()
        relation = ["above"] if first[0] % grid == second[0] % grid else ["left", "of"]
        for (cell, kind), relation_words in ((first, relation), (second, [])):
            colour, shape = divmod(kind, len(shapes))
            words += ["a", colours[colour], shapes[shape], *relation_words]
            regions_of_words += [None, cell, cell, *[None] * len(relation_words)]
        captions.append(words)
        word_regions.append(regions_of_words)
    cell = np.arange(m)
    position_features = np.concatenate(
        [np.eye(grid)[cell // grid], np.eye(grid)[cell % grid]], axis=1
    )
    position_features = np.broadcast_to(position_features, (count, *position_features.shape))
    regions = np.concatenate([pixels.reshape(count, m, -1), position_features], axis=-1).astype(
        np.float32
    )
    return regions, captions, word_regions


def _reading_order(placed_shape: tuple[int, int], grid: int) -> tuple[int, int]:
    """Sort key of a (cell index, kind): column, then row."""
    row, column = divmod(placed_shape[0], grid)
    return column, row


def _draw_shape(
    cell: np.ndarray,
    mask: np.ndarray,
    colour: tuple[float, float, float],
    random: np.random.Generator,
) -> None:
    """Draw a shape into a cell, at a random offset and brightness."""
    top, left = random.integers(CELL_PIXELS - SHAPE_PIXELS + 1, size=2)
    brightness = random.uniform(0.75, 1.0)
    cell[top : top + SHAPE_PIXELS, left : left + SHAPE_PIXELS][mask] *= 0
    cell[top : top + SHAPE_PIXELS, left : left + SHAPE_PIXELS][mask] += brightness * np.array(
        colour
    )
