"""What a file may say, for editors (JSON schema) and for readers (tables)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from neural.core.fields import Also, annotation, inside, says, sections

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(base: type[BaseModel], key: str, kinds: Mapping[str, type[BaseModel]]) -> dict[str, Any]:
    """One schema for files whose `key` says which of the `kinds` they are; for `base` alone where there are none."""
    every = [*kinds.values()] or [base]
    places, whole = models_json_schema([(kind, "validation") for kind in every])
    for kind in _with_inner(every):
        for definition in whole["$defs"].values():
            if definition.get("title") == kind.__name__:
                _name_aliases(definition, kind)
    refs = [places[kind, "validation"] for kind in every]
    chosen = [
        {"if": {"properties": {key: {"const": name}}}, "then": ref} for name, ref in zip(kinds, refs, strict=False)
    ]
    shape: dict[str, Any] = {"properties": {key: {"enum": [*kinds]}}, "required": [key], "allOf": chosen}
    return {"$schema": DIALECT, "title": base.__name__, "type": "object", **(shape if kinds else refs[0]), **whole}


def tables(kind: type[BaseModel], name: str = "") -> Iterator[str]:
    """Lines of Markdown: a table of the keys, then the sections one after the other."""
    yield from [f"### `{name}`", ""] if name else []
    yield from [(kind.__doc__ or "").strip().partition("\n")[0], "", "| key | takes | default | |", "|---|---|---|---|"]
    for key, field in kind.model_fields.items():
        takes = "a section, see below" if sections(annotation(kind, key)) else says(annotation(kind, key))
        default = "needed" if field.is_required() else _default(field.get_default(call_default_factory=True))
        names = [name for one in field.metadata if isinstance(one, Also) for name in one.names]
        also = f" Also `{'`, `'.join(names)}`." if names else ""
        yield f"| `{key}` | {takes.replace('|', chr(92) + '|')} | {default} | {field.description}{also} |"
    for key in kind.model_fields:
        for section in sections(inside(kind, key)):
            yield ""
            yield from tables(section, f"{name}.{key}" if name else key)


def _default(value: Any) -> str:
    if isinstance(value, BaseModel) or value is None or value == ():
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _with_inner(kinds: list[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    for kind in kinds:
        yield kind
        yield from _with_inner([one for key in kind.model_fields for one in sections(inside(kind, key))])


def _name_aliases(definition: dict[str, Any], kind: type[BaseModel]) -> None:
    for key, field in kind.model_fields.items():
        for alias in (name for one in field.metadata if isinstance(one, Also) for name in one.names):
            if key in definition["properties"]:
                definition["properties"][alias] = definition["properties"][key] | {"description": f"Same as `{key}`."}
