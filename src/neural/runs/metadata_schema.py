"""Checks of metadata entries (`Run.set_metadata`, `RunReader.metadata`), key by key.

Metadata entries are JSON values that describe a run, such as the names of its attention layers. A
field is the declared type of the entry with that key (core/metadata_fields.py).

Writing a value that no reader could use is an error. Readers check again, because a folder may come
from anybody: an entry of a wrong type is left out with a warning, and the rest of the run is shown.
Keys that are not declared may hold any JSON; their own readers check them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from neural.core.json_values import parse_json
from neural.core.metadata_fields import (
    COUNT,
    COUNTS,
    NUMBER,
    NUMBERS_BY_NAME,
    TEXTS,
    TEXTS_BY_STEP,
    MetadataField,
    is_text,
    list_of,
    mapping_of,
)
from neural.core.registry import BrokenEntryError, UnknownNameError

MAX_SHOWN_CHARS = 60
"""Characters of a rejected value that its error message shows."""
GENERAL_FIELDS: dict[str, MetadataField] = {
    "steps": COUNT,  # optimizer steps of the complete training
    "batches_per_epoch": NUMBER,  # counted in optimizer steps
    "parameters": COUNT,  # number of trainable numbers in the model
    "attention/layers": TEXTS,  # module names
    "attention/heads": COUNTS,  # number of heads of each layer
    "attention/measures": MetadataField(
        mapping_of(mapping_of(is_text)),
        "a mapping of measures to mappings of texts (`unit`, `description`)",
    ),
    # labels of the maps of each layer, if layers differ: an empty list for an axis without labels
    "attention/axis_labels": MetadataField(
        mapping_of(mapping_of(list_of(is_text))),
        "a mapping of layers to mappings of lists of texts (`queries`, `keys`)",
    ),
    # the probe: the fixed examples whose attention is recorded during training
    "probe/labels": MetadataField(
        list_of(list_of(is_text)), "a list of lists of texts, one list per example"
    ),
    "generation/samples": TEXTS_BY_STEP,  # texts that the model generated
    "generation/real_text": NUMBERS_BY_NAME,  # metrics of real text, to compare samples with
}
"""Keys that are read from all runs, whatever the task, so that readers can rely on their types."""


def collect_fields(task: Any) -> dict[str, MetadataField]:
    """The declared keys of a run: the general ones and those of the task named `task`.

    `task` comes from the run's settings and may be anything; an unknown task adds no keys.
    """
    if not isinstance(task, str):
        return GENERAL_FIELDS
    from neural.tasks import registry  # 0.2 s to import, which listing runs does not need

    try:
        return {**GENERAL_FIELDS, **registry.get(task).metadata_fields}
    except (UnknownNameError, BrokenEntryError):
        return GENERAL_FIELDS


def to_json(key: str, value: Any, fields: Mapping[str, MetadataField]) -> str:
    """Encode a metadata value; ValueError if it is not JSON or not what `fields` declares."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"`{key}` must be plain data that JSON can hold: {error}") from None
    # checked as readers will see it: tuples become lists, keys become strings
    if error := _find_error(key, json.loads(text), fields):
        shown = text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"
        raise ValueError(f"{error}, got {shown}")
    return text


def parse_rows(
    rows: Iterable[tuple[Any, Any]], fields: Mapping[str, MetadataField]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Decode (key, JSON) rows: values by key, and an error message for every unusable entry."""
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for stored_key, text in rows:
        key = str(stored_key)
        try:
            value = parse_json(text)
        except (ValueError, TypeError) as error:
            errors[key] = f"`{key}` is not JSON: {error}"
            continue
        if error := _find_error(key, value, fields):
            errors[key] = error
        else:
            values[key] = value
    return values, errors


def _find_error(key: str, value: Any, fields: Mapping[str, MetadataField]) -> str | None:
    """Error message for a value that its field rejects; undeclared keys accept everything."""
    field = fields.get(key)
    return None if field is None or field.accepts(value) else f"`{key}` must be {field.expected}"
