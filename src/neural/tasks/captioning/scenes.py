"""Scenes with captions in which it is known where every word is: two coloured shapes among grey ones, on a grid.

    a red circle left of a blue square
    a yellow cross above a red cross

The one further left comes first; in one column, the upper one. A region is one cell of the grid: its pixels, and where
it lies. Grey shapes are in the way and are never spoken of.
"""

from __future__ import annotations

import numpy as np

from neural.tasks.captioning.data import SPLITS, Captioned, Split, coded
from neural.tasks.data.split import generator

CELL, SHAPE = 8, 6
"""Pixels along the side of a cell, and of the shape in it, which lies anywhere inside."""
GREYS = 3
"""Grey shapes in a scene, at most; fewer where the grid is small."""
COLOURS = {"red": (1.0, 0.15, 0.1), "green": (0.1, 0.8, 0.2), "blue": (0.15, 0.3, 1.0), "yellow": (0.95, 0.85, 0.1)}
GREY = (0.5, 0.5, 0.5)
SHAPES = {
    "circle": (" #### ", "######", "######", "######", "######", " #### "),
    "square": ("######", "######", "######", "######", "######", "######"),
    "triangle": ("  ##  ", "  ##  ", " #### ", " #### ", "######", "######"),
    "cross": ("  ##  ", "  ##  ", "######", "######", "  ##  ", "  ##  "),
}
MASKS = np.array([[[pixel == "#" for pixel in row] for row in rows] for rows in SHAPES.values()])


def scenes(
    grid: int, counts: tuple[int, int, int], seed: int, training_seed: int | None = None
) -> Captioned:
    """So many scenes to train, to validate and to test with; all of them follow from the seed.

    Those to train on follow from `training_seed` where it is given.
    """
    seeds = (seed if training_seed is None else training_seed, seed, seed)
    made = [
        _drawn(grid, count, generator(own, number, purpose=4))
        for number, (count, own) in enumerate(zip(counts, seeds, strict=True))
    ]
    vocabulary = coded(words for _, captions, _ in made for words in captions)
    splits = {}
    for name, (regions, words, places) in zip(SPLITS, made, strict=True):
        splits[name] = Split.of(regions, np.arange(len(words)), words, places, vocabulary)
    return Captioned(where="scenes", splits=splits, vocabulary=vocabulary, grid=(grid, grid), cell=CELL)


def _drawn(
    grid: int, count: int, random: np.random.Generator
) -> tuple[np.ndarray, list[list[str]], list[list[int | None]]]:
    """Regions (count, grid², 192 + 2 grid), captions, and the place of each of their words."""
    m, behind = grid * grid, min(GREYS, grid * grid - 2)
    pixels = np.clip(0.05 + 0.03 * random.normal(size=(count, m, CELL, CELL, 3)), 0, 1)
    captions, places = [], []
    colours, shapes = list(COLOURS), list(SHAPES)
    for scene in range(count):
        cells = random.permutation(m)[: 2 + behind]
        kinds = random.permutation(len(colours) * len(shapes))[:2]   # two that differ
        first, second = sorted(zip(cells[:2].tolist(), kinds.tolist(), strict=True), key=lambda one: _order(one, grid))
        for cell, kind in (first, second):
            colour, shape = divmod(kind, len(shapes))
            _draw(pixels[scene, cell], MASKS[shape], COLOURS[colours[colour]], random)
        for cell in cells[2:]:
            _draw(pixels[scene, cell], MASKS[random.integers(len(shapes))], GREY, random)
        words, where = [], list[int | None]()
        relation = ["above"] if first[0] % grid == second[0] % grid else ["left", "of"]
        for (cell, kind), after in ((first, relation), (second, [])):
            colour, shape = divmod(kind, len(shapes))
            words += ["a", colours[colour], shapes[shape], *after]
            where += [None, cell, cell, *[None] * len(after)]
        captions.append(words)
        places.append(where)
    cell = np.arange(m)
    lies = np.concatenate([np.eye(grid)[cell // grid], np.eye(grid)[cell % grid]], axis=1)
    lies = np.broadcast_to(lies, (count, *lies.shape))
    regions = np.concatenate([pixels.reshape(count, m, -1), lies], axis=-1).astype(np.float32)
    return regions, captions, places


def _order(one: tuple[int, int], grid: int) -> tuple[int, int]:
    """Column by column."""
    row, column = divmod(one[0], grid)
    return column, row


def _draw(cell: np.ndarray, mask: np.ndarray, colour: tuple[float, float, float], random: np.random.Generator) -> None:
    """Anywhere in the cell, more or less bright."""
    top, left = random.integers(CELL - SHAPE + 1, size=2)
    bright = random.uniform(0.75, 1.0)
    cell[top : top + SHAPE, left : left + SHAPE][mask] *= 0
    cell[top : top + SHAPE, left : left + SHAPE][mask] += bright * np.array(colour)
