"""Write captures of attention into a run folder: measures, maps, and what they are about.

A snapshot is the attention of a fixed probe batch at one step. The tracker of our own trainings
(capture/tracker.py) and `neural.track` write it with the same code, so their runs are alike.
"""

from __future__ import annotations

from collections.abc import Callable

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

MAP_EXAMPLES = 1
"""Number of probe examples whose maps are stored."""
MAX_MAP_POSITIONS = 512
"""Longer maps are cut to this many queries and keys."""
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
        arrays = capture.measure_arrays() | capture.compare_layers() | extra_arrays(capture)
        self.run.log_arrays(step, arrays)
        if with_maps:
            self.run.log_maps(step, encode_maps(capture))
            if capture.images:  # maps are cut if they are long; the rows of CLS never are
                rows, rollout = compute_image_attention(capture, capture.images[0])
                self.run.log_arrays(step, {ROWS_ARRAY: rows, ROLLOUT_ARRAY: rollout})
        if with_vectors:
            layers = encode_vectors(capture, max_positions=MAX_MAP_POSITIONS)
            self.run.set_metadata(VECTORS_KEY, {"step": step, "layers": layers})

    def _write_metadata(self, capture: Capture, labels: Labels | None) -> None:
        self._written_layers = capture.layer_names()
        self.run.set_metadata("attention/layers", self._written_layers)
        self.run.set_metadata("attention/heads", [call.heads for call in capture])
        measures = {
            name: registry.get(name)
            for name in (*capture.measure_arrays(), *capture.compare_layers())
        }
        descriptions = {
            name: {"unit": measure.unit, "description": measure.summary()}
            for name, measure in measures.items()
        }
        self.run.set_metadata("attention/measures", descriptions)
        self.run.set_metadata(
            "attention/maps", {"examples": MAP_EXAMPLES, "positions": MAX_MAP_POSITIONS}
        )
        if labels is not None:
            self.run.set_metadata("probe/labels", labels)
        if capture.images:
            self.run.set_metadata(IMAGE_KEY, capture.images[0].to_metadata())
        if capture.decoder_labels is not None:  # the axes of layers have different labels
            axis_labels = {
                name: {"queries": axes.queries or [], "keys": axes.keys or []}
                for layer, name in enumerate(self._written_layers)
                for axes in (capture.axis_labels(layer),)
            }
            self.run.set_metadata("attention/axis_labels", axis_labels)


def extra_arrays(capture: Capture) -> dict[str, np.ndarray]:
    """Further arrays for analyses, by their names in the run.

    They are the means of measures on even and odd examples, and the divergences of pairs of heads.
    """
    arrays = {f"{HALVES_PREFIX}{name}": values for name, values in capture.half_means().items()}
    divergence = capture.head_divergence()
    return arrays if divergence is None else {**arrays, HEAD_DIVERGENCE_KEY: divergence}


def encode_maps(capture: Capture) -> dict[str, bytes]:
    """Encoded maps of the first MAP_EXAMPLES examples, by layer name; `decode_map` reads them."""
    encoded = {}
    for name, call in zip(capture.layer_names(), capture, strict=True):
        if call.attention is None:
            continue
        offset, signed = call.attention.first_query_position, call.attention.is_signed
        all_weights = call.maps(MAP_EXAMPLES, MAX_MAP_POSITIONS, hidden=np.nan)
        for example, weights in enumerate(all_weights):
            key = name if example == 0 else f"{name}@{example}"
            encoded[key] = encode_map(weights, query_offset=offset, signed=signed)
    return encoded
