"""Attention of a captioner over the regions of an image, word by word.

A captioner is a network that describes an image in words. The probe is a fixed set of validation
examples whose attention maps (weights) are recorded during training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neural.capture.map_encoding import add_map_location, decode_map
from neural.findings.run_loading import MissingDataError
from neural.runs.run import Run

CAPTION_ATTENTION_NAME = "focus"
"""Name of the captioner's attention layer in a run."""
PADDING = "·"
"""Label of the positions after the end of a caption."""


@dataclass(frozen=True, kw_only=True)
class CaptionAttention:
    """A caption with the attention of each word over the regions of the image."""

    words: Sequence[str]
    focus: np.ndarray
    """(words, regions); rows sum to 1."""
    grid: tuple[int, int] | None = None
    """Rows and columns of the regions; None draws them in one row."""
    image: np.ndarray | None = None
    """(height, width, 3), RGB from 0 to 255."""
    regions: Sequence[int | None] = ()
    """Index of the region that each word describes; None if it is not known."""


def load_caption_attention(run: Run) -> CaptionAttention:
    """Load the first probe image and its maps; MissingDataError where the run has none."""
    steps = run.map_steps()
    labels = run.metadata("probe/labels")
    encoded_map = run.maps(steps[-1]).get(CAPTION_ATTENTION_NAME) if steps else None
    # a task of another package may store any type here
    regions = run.metadata("captions/word_regions")
    if encoded_map is None or not labels or not isinstance(regions, list):
        raise MissingDataError(
            f"{run.name} has no attention maps of a captioner; see `tracking.maps_every`"
        )
    words, image, grid = (
        labels[0],
        run.metadata("captions/picture"),
        run.metadata("captions/grid"),
    )
    count = words.index(PADDING) if PADDING in words else len(words)
    with add_map_location(run.path, steps[-1]):
        focus = decode_map(encoded_map)[0, :count]
    return CaptionAttention(
        words=words[:count],
        focus=focus,
        grid=(grid[0], grid[1]) if grid else None,
        image=None if image is None else np.array(image, dtype=np.uint8),
        regions=regions[:count],
    )
