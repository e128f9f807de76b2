"""One capture of attention as one HTML file that works offline: heads, labels, measures, roles.

A capture (capture/capture_result.py) is the attention of one forward pass of any torch model. There
is no run and no training, so the page has no curves: it is the report's page with a single step.

    write_capture_page(capture, Path("heads.html"), name="MyModel")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.labels import AxisLabels
from neural.capture.map_encoding import encode_map
from neural.capture.measures import registry
from neural.capture.snapshot_writer import MAX_MAP_POSITIONS
from neural.capture.vector_encoding import encode_vectors
from neural.core.files import write_atomically
from neural.findings.capture_roles import score_capture
from neural.findings.findings import FindingList
from neural.findings.head_roles import NO_ROLES, TOO_SHORT, assign_head_roles
from neural.report.head_role_data import list_role_strengths
from neural.report.html_page import render_page
from neural.report.image_attention import build_capture_page_image
from neural.report.page_data import MAX_MAP_BYTES, compress_step
from neural.report.run_report import build_attention_page_data, findings_to_dicts
from neural.runs.errors import translate_errors


def write_capture_page(
    capture: Capture,
    path: Path,
    *,
    name: str = "attention",
    example: int = 0,
    findings: FindingList | None = None,
) -> Path:
    """Write the page atomically; `name` is its title, `example` the one whose maps it shows.

    `findings` have their figures already, with `name` as the id of the run (`add_figures`).
    ValueError if the file's name does not end with .html, if there is no such example, or if no
    attention was captured; RunError if the file cannot be written.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(
            f"{path}: a capture is saved as an HTML page; name it {path.with_suffix('.html')}"
        )
    if all(call.attention is None for call in capture):
        raise ValueError("no attention was captured, so there is nothing to save")
    data = build_capture_page_data(capture, name=name, example=example)
    data["groups"][0]["findings"] = findings_to_dicts(findings or FindingList())
    html = render_page(data, f"{name}: attention")
    with translate_errors(f"{path} cannot be written"):
        write_atomically(path, html, durable=False)
    return path


def build_capture_page_data(
    capture: Capture,
    *,
    name: str = "attention",
    example: int = 0,
    layer_labels: Sequence[AxisLabels] | None = None,
    notes: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    max_map_bytes: int = MAX_MAP_BYTES,
) -> dict[str, Any]:
    """JSON data of the page of a capture; the maps of `example` have at most `max_map_bytes`.

    `layer_labels` are the labels of each call's map; those of the capture if None. The page shows
    `notes` above the maps, and `settings` as those of a run. Calls without weights (NaN in the model) are
    left out.
    """
    _check_example(capture, example)
    scores = score_capture(capture, layer_labels)
    layers = np.array([i for i, call in enumerate(capture) if call.attention is not None], int)
    names = capture.layer_names()
    if layer_labels is None:
        layer_labels = [capture.axis_labels(layer, example) for layer in range(len(capture))]
    maps = {layer: _compute_maps(capture[layer], example) for layer in layers}
    step = compress_step(
        {names[layer]: _encode(capture[layer], maps[layer]) for layer in layers}, max_map_bytes
    )
    measures = {key: values[layers] for key, values in capture.measure_arrays().items()}
    between = {
        key: values[np.ix_(layers, layers)] for key, values in capture.compare_layers().items()
    }
    roles = assign_head_roles(scores) if scores else np.empty((len(capture), 0), object)
    strengths = list_role_strengths(roles, scores)
    role_notes = [f"{TOO_SHORT}: {NO_ROLES[TOO_SHORT]}"] if (roles == TOO_SHORT).any() else []
    entries = {key: registry.get(key) for key in (*measures, *between)}
    data = build_attention_page_data(
        name,
        step.maps,
        measures=measures,
        between=between,
        units={key: measure.unit for key, measure in entries.items()},
        descriptions={key: measure.summary() for key, measure in entries.items()},
        notes=[*notes, *_describe_capture(capture, example, names), *role_notes, *step.notes],
        settings=settings,
        layer_labels={names[layer]: layer_labels[layer] for layer in layers},
        # pages know "mixed" as the name of no role
        roles=np.where(roles == TOO_SHORT, "mixed", roles)[layers].tolist() if roles.size else None,
        role_strengths=[strengths[layer] for layer in layers] if roles.size else None,
        vectors=encode_vectors(capture, example=example, max_positions=MAX_MAP_POSITIONS)
        if step.downsampling == 1  # merged cells have no vector of their own
        else None,
        downsampling=step.downsampling,
    )
    data["runs"][0]["image"] = build_capture_page_image(capture, example, layers.tolist())
    return data


def _compute_maps(call: CapturedCall, example: int) -> np.ndarray:
    """Maps of one example, [head, query, key], the first MAX_MAP_POSITIONS; NaN: masked."""
    return call.maps(examples=example + 1, positions=MAX_MAP_POSITIONS, hidden=np.nan)[example]


def _encode(call: CapturedCall, maps: np.ndarray) -> bytes:
    assert call.attention is not None
    return encode_map(
        maps,
        query_offset=call.attention.first_query_position,
        signed=call.attention.is_signed,
    )


def _check_example(capture: Capture, example: int) -> None:
    batch = min((call.attention.batch for call in capture if call.attention), default=1)
    if not 0 <= example < batch:
        raise ValueError(f"example {example} does not exist: the batch has {batch}, counted from 0")


def _describe_capture(capture: Capture, example: int, names: Sequence[str]) -> list[str]:
    """Notes for readers of the page: which example it shows, and what is missing."""
    calls = [call.attention for call in capture if call.attention is not None]
    notes = []
    batch = max((call.batch for call in calls), default=0)
    if batch > 1:
        notes.append(
            f"maps of example {example} of {batch}, counted from 0; measures and roles are those of all"
        )
    if any(max(call.queries, call.positions) > MAX_MAP_POSITIONS for call in calls):
        notes.append(
            f"maps show the first {MAX_MAP_POSITIONS} positions; measures include all positions"
        )
    if not calls:
        notes.append("no attention was captured")
    for layer, call in zip(names, capture, strict=True):
        if call.attention is None:
            notes.append(f"{layer}: queries or keys are not finite, so there are no weights")
    if capture.image_note:
        notes.append(capture.image_note)
    notes += [f"not measured: {path}: {reason}" for path, reason in capture.refusals.items()]
    return notes
