"""Attention over an image: the rows of CLS and of patches, for figures and pages.

A run with a probe image has, at each step with maps, the row of CLS in every head and the rollout up
to every layer (capture/probe_image.py). Pages get them as 16-bit integers, 65535 · √weight: weights
of a thousand patches are too small for the 8 bits of maps.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neural.capture.capture_result import Capture
from neural.capture.probe_image import (
    IMAGE_KEY,
    ROLLOUT_ARRAY,
    ROWS_ARRAY,
    ProbeImage,
    compute_image_attention,
)
from neural.findings.record import Record
from neural.runs.errors import RunError

MAX_ROW_BYTES = 1_500_000
"""Size of all rows of a page; of more steps, some are left out."""


@dataclass(frozen=True, eq=False)
class ImageAttention:
    """The image of a snapshot and what attends to it; layers are those of the snapshot."""

    image: ProbeImage
    rows: np.ndarray
    """[layer, head, token]: weights of CLS, or means over all patches without CLS; NaN: none."""
    rollout: np.ndarray | None
    """[token]: rollout of the same query through all layers; None if it cannot be computed."""


def load_run_image(run: Record, step: int, layers: Sequence[int]) -> ImageAttention | None:
    """The image of a run with the rows of the chosen layers at a step; None without an image."""
    image = ProbeImage.from_metadata(run.metadata(IMAGE_KEY))
    if image is None:
        return None
    steps, rows, rollouts = _load_arrays(run, image)
    if step not in steps:
        return None
    index = steps.index(step)
    chosen = [layer for layer in layers if layer < rows.shape[1]]
    return ImageAttention(image, rows[index, chosen], select_last_rollout(rollouts[index]))


def load_capture_image(
    capture: Capture, example: int, layers: Sequence[int]
) -> ImageAttention | None:
    """The image of an example of a capture; None without one."""
    if example >= len(capture.images):
        return None
    image = capture.images[example]
    rows, rollouts = compute_image_attention(capture, image, example)
    return ImageAttention(image, rows[list(layers)], select_last_rollout(rollouts))


def select_last_rollout(rollouts: np.ndarray) -> np.ndarray | None:
    """The rollout through all layers, of those up to each layer, [layer, token]."""
    known = [rollout for rollout in rollouts if np.isfinite(rollout).all()]
    return known[-1] if known else None


def load_image_page_data(run: Record, *, after: int = -1) -> dict[str, Any] | None:
    """Page data of the image of a run, with rows of the steps > `after`; None without an image."""
    image = ProbeImage.from_metadata(run.metadata(IMAGE_KEY))
    if image is None:
        return None
    steps, rows, rollouts = _load_arrays(run, image, after)
    return encode_image(image, steps, rows, rollouts)


def encode_image(
    image: ProbeImage, steps: Sequence[int], rows: np.ndarray, rollouts: np.ndarray
) -> dict[str, Any]:
    """JSON data: the picture, its grid, and [step, layer, head, token] rows in base64."""
    bytes_per_step = max(1, 2 * int(rows[:1].size + rollouts[:1].size))
    count = max(1, MAX_ROW_BYTES // bytes_per_step)
    if len(steps) > count:
        chosen = np.unique(np.linspace(0, len(steps) - 1, count).astype(int))
        steps, rows, rollouts = [steps[i] for i in chosen], rows[chosen], rollouts[chosen]
    return {
        **image.to_metadata(),
        "query": image.query_name,
        "steps": list(steps),
        "heads": int(rows.shape[2]) if rows.ndim == 4 else 0,
        "rows": _encode_weights(rows),
        "rollout": _encode_weights(rollouts),
        "has_rollout": [bool(np.isfinite(rollout).any()) for rollout in rollouts],
    }


def _load_arrays(
    run: Record, image: ProbeImage, after: int = -1
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Steps, rows [step, layer, head, token] and rollouts [step, layer, token]; empty if damaged."""
    try:
        steps, rows = run.measure(ROWS_ARRAY, after=after)
        rollout_steps, rollouts = run.measure(ROLLOUT_ARRAY, after=after)
    except RunError:
        steps, rows, rollout_steps, rollouts = np.empty(0), np.empty(0), np.empty(0), np.empty(0)
    is_sound = (
        rows.ndim == 4
        and rollouts.shape == (*rows.shape[:2], image.tokens)
        and rows.shape[-1] == image.tokens
        and np.array_equal(steps, rollout_steps)
    )
    if not is_sound:
        return [], np.empty((0, 0, 0, image.tokens)), np.empty((0, 0, image.tokens))
    return [int(step) for step in steps], rows, rollouts


def _encode_weights(weights: np.ndarray) -> str:
    roots = np.sqrt(np.clip(np.nan_to_num(weights), 0, 1))
    return base64.b64encode(np.rint(roots * 65535).astype("<u2").tobytes()).decode()
