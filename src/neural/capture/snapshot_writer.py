"""Write captures of attention into a run folder: measures, maps, and what they are about.

A snapshot is the attention of a fixed probe batch at one step. The tracker of our own trainings
(capture/tracker.py) and `neural.track` write it with the same code, so their runs are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neural.capture.capture_result import Capture
from neural.capture.map_encoding import encode_map
from neural.capture.measures import registry
from neural.capture.probe_image import (
    IMAGE_KEY,
    ROLLOUT_ARRAY,
    ROWS_ARRAY,
    compute_image_attention,
)
from neural.capture.vector_encoding import VECTORS_KEY, encode_vectors
from neural.runs.run import Run
from neural.runs.run_reader import HALVES_PREFIX, HEAD_DIVERGENCE_KEY

MAX_MAP_POSITIONS = 512
"""Longer maps are cut to this many queries and keys."""
ARRAY_GROUPS = ("", "halves", "heads", "image")
"""Arrays of a capture, by the part of their names before `/`; measures have none."""
Labels = list[list[str]]
"""Texts of the positions of each probe example, such as its tokens."""


class SnapshotWriter:
    """Writes the snapshots of one model into a run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._written_layers: list[str] | None = None
        """Layer names in the metadata; None before the first snapshot."""

    def write(
        self,
        step: int,
        capture: Capture,
        get_labels: Callable[[], Labels | None],
        *,
        with_maps: bool,
        with_vectors: bool = False,
    ) -> None:
        """Write the measures of a capture and, if asked, its maps, and its queries and keys.

        Queries and keys are those of the first example; later ones replace them.

        `get_labels` is called only when metadata is written: at the first snapshot, and again if
        the captured layers change.
        """
        if capture.layer_names() != self._written_layers:
            self._write_metadata(capture, get_labels())
        for group in ARRAY_GROUPS:
            if group != "image" or with_maps:
                self.run.log_arrays(step, collect_arrays(capture, group))
        if with_maps:
            self.run.log_maps(step, encode_maps(capture))
        if with_vectors:
            layers = encode_vectors(capture, max_positions=MAX_MAP_POSITIONS)
            self.run.set_metadata(VECTORS_KEY, {"step": step, "layers": layers})

    def _write_metadata(self, capture: Capture, labels: Labels | None) -> None:
        self._written_layers = capture.layer_names()
        for key, value in describe_capture(capture, labels).items():
            self.run.set_metadata(key, value)


def describe_capture(capture: Capture, labels: Labels | None, example: int = 0) -> dict[str, Any]:
    """Metadata of a run about its captures; `example` is the one whose maps are stored."""
    measures = {
        name: registry.get(name) for name in (*capture.measure_arrays(), *capture.compare_layers())
    }
    facts: dict[str, Any] = {
        "attention/layers": capture.layer_names(),
        "attention/heads": [call.heads for call in capture],
        "attention/measures": {
            name: {"unit": measure.unit, "description": measure.summary()}
            for name, measure in measures.items()
        },
        "attention/maps": {"examples": 1, "positions": MAX_MAP_POSITIONS},
    }
    if labels is not None:
        facts["probe/labels"] = labels
    if example < len(capture.images):
        facts[IMAGE_KEY] = capture.images[example].to_metadata()
    if capture.decoder_labels is not None:  # the axes of layers have different labels
        facts["attention/axis_labels"] = describe_axes(capture, example)
    return facts


def describe_axes(capture: Capture, example: int = 0) -> dict[str, dict[str, list[str]]]:
    """Labels of the queries and keys of every layer; empty for an axis without labels."""
    return {
        name: {"queries": axes.queries or [], "keys": axes.keys or []}
        for layer, name in enumerate(capture.layer_names())
        for axes in (capture.axis_labels(layer, example),)
    }


def collect_arrays(capture: Capture, group: str, example: int = 0) -> dict[str, np.ndarray]:
    """Arrays of one of ARRAY_GROUPS, by their names in the run."""
    if group == "":
        return capture.measure_arrays() | capture.compare_layers()
    if group == "halves":  # means on even and odd examples
        return {HALVES_PREFIX + name: values for name, values in capture.half_means().items()}
    if group == "heads" and (divergence := capture.head_divergence()) is not None:
        return {HEAD_DIVERGENCE_KEY: divergence}
    if group == "image" and example < len(capture.images):
        # maps are cut if they are long; the rows of CLS never are
        rows, rollout = compute_image_attention(capture, capture.images[example], example)
        return {ROWS_ARRAY: rows, ROLLOUT_ARRAY: rollout}
    return {}


def encode_maps(capture: Capture, example: int = 0) -> dict[str, bytes]:
    """Encoded maps of an example, by layer name; `decode_map` reads them."""
    encoded = {}
    for name, call in zip(capture.layer_names(), capture, strict=True):
        if call.attention is None:
            continue
        offset, signed = call.attention.first_query_position, call.attention.is_signed
        weights = call.maps(example + 1, MAX_MAP_POSITIONS, hidden=np.nan)[example]
        encoded[name] = encode_map(weights, query_offset=offset, signed=signed)
    return encoded
