"""Schema of the settings files: JSON schema for editors, Markdown tables for readers.

A section is a nested settings class; `kind` is a settings class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from neural.core.settings_fields import (
    Aliases,
    describe_type,
    find_sections,
    get_annotation,
    get_item_type,
)

JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build_json_schema(
    base: type[BaseModel], key: str, kinds: Mapping[str, type[BaseModel]]
) -> dict[str, Any]:
    """One schema for files in which the value of `key` selects a settings class.

    `kinds` maps values to classes; if it is empty, the schema is that of `base`.
    """
    settings_classes = [*kinds.values()] or [base]
    references, definitions = models_json_schema(
        [(kind, "validation") for kind in settings_classes]
    )
    for kind in _iter_sections(settings_classes):
        for definition in definitions["$defs"].values():
            if definition.get("title") == kind.__name__:
                _add_aliases(definition, kind)
    refs = [references[kind, "validation"] for kind in settings_classes]
    # `kinds` is empty if there is only `base`; then there are no branches.
    branches = [
        {"if": {"properties": {key: {"const": name}}}, "then": ref}
        for name, ref in zip(kinds, refs, strict=False)
    ]
    selection_schema: dict[str, Any] = {
        "properties": {key: {"enum": [*kinds]}},
        "required": [key],
        "allOf": branches,
    }
    return {
        "$schema": JSON_SCHEMA_DIALECT,
        "title": base.__name__,
        "type": "object",
        **(selection_schema if kinds else refs[0]),
        **definitions,
    }


def format_tables(kind: type[BaseModel], name: str = "") -> Iterator[str]:
    """Markdown lines: a table of the keys, then one per section. `name` is the heading."""
    yield from [f"### `{name}`", ""] if name else []
    yield from [
        (kind.__doc__ or "").strip().partition("\n")[0],
        "",
        "| key | takes | default | |",
        "|---|---|---|---|",
    ]
    for key, field in kind.model_fields.items():
        type_text = (
            "a section, see below"
            if find_sections(get_annotation(kind, key))
            else describe_type(get_annotation(kind, key))
        )
        default = (
            "needed"
            if field.is_required()
            else _format_default(field.get_default(call_default_factory=True))
        )
        names = [
            name for item in field.metadata if isinstance(item, Aliases) for name in item.names
        ]
        alias_note = f" Also `{'`, `'.join(names)}`." if names else ""
        type_cell = type_text.replace("|", r"\|")
        yield f"| `{key}` | {type_cell} | {default} | {field.description}{alias_note} |"
    for key in kind.model_fields:
        for section in find_sections(get_item_type(kind, key)):
            yield ""
            yield from format_tables(section, f"{name}.{key}" if name else key)


def _format_default(value: Any) -> str:
    if isinstance(value, BaseModel) or value is None or value == ():
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _iter_sections(kinds: list[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    """The settings classes and all classes nested in them."""
    for kind in kinds:
        yield kind
        yield from _iter_sections(
            [
                section
                for key in kind.model_fields
                for section in find_sections(get_item_type(kind, key))
            ]
        )


def _add_aliases(definition: dict[str, Any], kind: type[BaseModel]) -> None:
    """Add the other names of fields to the JSON schema of a settings class."""
    for key, field in kind.model_fields.items():
        for alias in (
            name for item in field.metadata if isinstance(item, Aliases) for name in item.names
        ):
            if key in definition["properties"]:
                definition["properties"][alias] = definition["properties"][key] | {
                    "description": f"Same as `{key}`."
                }
