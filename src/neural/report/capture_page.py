"""Captures of attention as one HTML file that works offline: heads, labels, measures, roles.

A capture (capture/capture_result.py) is the attention of one forward pass of any torch model. There
is no run and no training, so the page has no curves: it is the report's page with a single step.
Several captures of a series of checkpoints have the report's page of a run.

    write_capture_page(capture, Path("heads.html"), name="MyModel")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neural.capture.capture_result import Capture
from neural.capture.snapshot_writer import MAX_MAP_POSITIONS
from neural.core.files import write_atomically
from neural.findings.capture_record import CaptureRecord
from neural.findings.findings import FindingList
from neural.findings.head_roles import NO_ROLES, TOO_SHORT
from neural.report.html_page import render_page
from neural.report.page_data import MAX_MAP_BYTES
from neural.report.role_counts import count_head_roles
from neural.report.run_report import (
    PAGE_VERSION,
    build_page_data,
    build_run_entries,
    findings_to_dicts,
)
from neural.runs.errors import translate_errors


def write_record_page(record: CaptureRecord, path: Path, *, title: str) -> Path:
    """Write the page of a series of captures atomically; RunError if it cannot be written."""
    html = render_page(build_page_data([record], title=title), title)
    with translate_errors(f"{path} cannot be written"):
        write_atomically(path, html, durable=False)
    return path


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
    notes: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    max_map_bytes: int = MAX_MAP_BYTES,
) -> dict[str, Any]:
    """JSON data of the page of a capture; the maps of `example` have at most `max_map_bytes`.

    The page shows `notes` above the maps, and `settings` as those of a run. Calls without weights
    (NaN in the model) are left out.
    """
    _check_example(capture, example)
    record = CaptureRecord({0: capture.select_measured()}, name=name, example=example)
    (run,), maps = build_run_entries([record], [name], max_map_bytes)
    roles = count_head_roles(record)
    is_too_short = roles is not None and (roles.names == TOO_SHORT).any()
    role_notes = [f"{TOO_SHORT}: {NO_ROLES[TOO_SHORT]}"] if is_too_short else []
    run |= {
        "notes": [*notes, *_describe_capture(capture, example), *role_notes, *run["notes"]],
        "settings": dict(settings or {}),
        "changed_settings": list(settings or {}),
        "role_onsets": None,  # one snapshot has no start
        "started": None,
        "time": None,
    }
    return {
        "version": PAGE_VERSION,
        "title": name,
        "kind": "snapshot",
        "runs": [run],
        "groups": [{"label": name, "data": "", "runs": [name], "findings": []}],
        "experiments": [],
        "maps": maps,
    }


def _check_example(capture: Capture, example: int) -> None:
    batch = min((call.attention.batch for call in capture if call.attention), default=1)
    if not 0 <= example < batch:
        raise ValueError(f"example {example} does not exist: the batch has {batch}, counted from 0")


def _describe_capture(capture: Capture, example: int) -> list[str]:
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
    for layer, call in zip(capture.layer_names(), capture, strict=True):
        if call.attention is None:
            notes.append(f"{layer}: queries or keys are not finite, so there are no weights")
    if capture.image_note:
        notes.append(capture.image_note)
    notes += [f"not measured: {path}: {reason}" for path, reason in capture.refusals.items()]
    return notes
