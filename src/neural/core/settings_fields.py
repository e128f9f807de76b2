"""Describe what a settings field accepts, from its type annotation.

    batch_size: Annotated[int, Field(ge=1)]      "a whole number of 1 or more"
    scheduler: Literal["cosine", "linear"]       "`cosine` or `linear`"

Used by error messages, the documentation and the schema. A settings class is a pydantic model; a
section is one nested in another. `kind` is a type annotation; its alternatives are the members of
a union; `limits` are its constraints, such as `ge=1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

MAX_COUNT = 2**31 - 1
"""Upper bound of counts. Only the error for a larger value mentions it."""

_TYPE_NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    Any: "a value",
}
_PLURAL_TYPE_NAMES: dict[Any, str] = {
    int: "whole numbers",
    float: "numbers",
    str: "names",
    Path: "paths",
}


@dataclass(frozen=True)
class ValueDescription:
    """In `Annotated`: what the field accepts, after "must be"."""

    text: str


@dataclass(frozen=True, init=False)
class Aliases:
    """In `Annotated`: other names that files may use for the field."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


def get_annotation(section: type[BaseModel], name: str) -> Any:
    """A field's type with all its constraints."""
    field = section.model_fields[name]
    kind: Any = field.annotation
    for constraint in field.metadata:
        kind = Annotated[kind, constraint]
    return kind


def collect_spellings(section: type[BaseModel]) -> dict[str, str]:
    """Every accepted key, field names and aliases → the field's name."""
    spellings = {name: name for name in section.model_fields}
    for name, field in section.model_fields.items():
        spellings |= {
            alias: name
            for item in field.metadata
            if isinstance(item, Aliases)
            for alias in item.names
        }
    return spellings


def iter_alternatives(
    kind: Any, limits: tuple[Any, ...] = ()
) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The types of a union, without None, each with its constraints (`Annotated` metadata).

    `limits` are constraints of the enclosing annotation.
    """
    origin = get_origin(kind)
    if origin is Annotated:
        inner_type, *metadata = get_args(kind)
        for item in metadata:
            limits += tuple(item.metadata) if isinstance(item, FieldInfo) else (item,)
        yield from iter_alternatives(inner_type, limits)
    elif origin in (Union, UnionType):
        for alternative in get_args(kind):
            yield from iter_alternatives(alternative, limits)
    elif kind is not NoneType:
        yield kind, limits


def accepts_none(kind: Any) -> bool:
    """Whether the type allows None, null in YAML."""
    if get_origin(kind) in (Annotated, Union, UnionType):
        return any(
            accepts_none(alternative)
            for alternative in get_args(kind)[: 1 if get_origin(kind) is Annotated else None]
        )
    return kind in (None, NoneType, Any)


def find_sections(kind: Any) -> list[type[BaseModel]]:
    """The settings classes among the alternatives of a type."""
    return [
        alternative
        for alternative, _ in iter_alternatives(kind)
        if isinstance(alternative, type) and issubclass(alternative, BaseModel)
    ]


def get_item_type(kind: Any, step: str | int) -> Any:
    """The type of the value under `step`, a key or an index; Any if unknown."""
    for alternative, _ in iter_alternatives(kind):
        origin, args = get_origin(alternative), get_args(alternative)
        if (
            isinstance(alternative, type)
            and issubclass(alternative, BaseModel)
            and step in alternative.model_fields
        ):
            return get_annotation(alternative, str(step))
        if (
            isinstance(origin, type)
            and issubclass(origin, Mapping)
            and isinstance(step, str)
            and len(args) == 2
        ):
            return args[1]
        if (
            isinstance(origin, type)
            and issubclass(origin, Iterable)
            and isinstance(step, int)
            and args
        ):
            has_fixed_length = origin is tuple and args[-1] is not Ellipsis
            return args[min(step, len(args) - 1)] if has_fixed_length else args[0]
    return Any


def list_choices(kind: Any) -> list[str]:
    """The allowed words of a Literal or Enum; empty for other types."""
    choices: list[str] = []
    for alternative, _ in iter_alternatives(kind):
        if get_origin(alternative) is Literal:
            choices += [value for value in get_args(alternative) if isinstance(value, str)]
        elif isinstance(alternative, type) and issubclass(alternative, Enum):
            choices += [str(member.value) for member in alternative]
    return choices


def has_count_limit(kind: Any) -> bool:
    """Whether MAX_COUNT is the upper bound of the type."""
    return any(
        getattr(limit, "le", None) == MAX_COUNT
        for _, limits in iter_alternatives(kind)
        for limit in limits
    )


def describe_type(kind: Any) -> str:
    """What the type accepts, after "must be"."""
    descriptions = list(
        dict.fromkeys(
            _describe_alternative(alternative, limits)
            for alternative, limits in iter_alternatives(kind)
        )
    )
    return " or ".join(descriptions) or "null"


def _describe_alternative(kind: Any, limits: tuple[Any, ...]) -> str:
    custom_descriptions = [limit.text for limit in limits if isinstance(limit, ValueDescription)]
    origin = get_origin(kind)
    if custom_descriptions:
        return custom_descriptions[-1]
    if choices := list_choices(kind):
        return _join_choices(choices)
    if origin is Literal:
        return _join_choices(
            [
                "true" if item is True else "false" if item is False else str(item)
                for item in get_args(kind)
            ]
        )
    if kind in _TYPE_NAMES:
        return _TYPE_NAMES[kind] + _describe_bounds(limits)
    if isinstance(origin or kind, type) and issubclass(origin or kind, BaseModel | Mapping):
        return "a section: keys with values"
    if isinstance(origin or kind, type) and issubclass(origin or kind, Iterable):
        plural = " or ".join(
            dict.fromkeys(
                _PLURAL_TYPE_NAMES.get(item, "")
                for item, _ in iter_alternatives(get_item_type(kind, 0))
            )
        )
        return f"a list of {plural}" if plural else "a list"
    return f"a {getattr(kind, '__name__', 'value').lower()}"


def _join_choices(words: list[str]) -> str:
    *others, last = [f"`{word}`" for word in words]
    return f"{', '.join(others)} or {last}" if others else last


def _describe_bounds(limits: tuple[Any, ...]) -> str:
    """` of 1 or more`, ` above 0 and below 1`; empty without bounds."""
    low = next(
        (f"at least {limit.ge:,}" for limit in limits if getattr(limit, "ge", None) is not None),
        None,
    )
    low = next(
        (f"above {limit.gt:,}" for limit in limits if getattr(limit, "gt", None) is not None), low
    )
    high = next(
        (f"below {limit.lt:,}" for limit in limits if getattr(limit, "lt", None) is not None), None
    )
    maximum = next((limit.le for limit in limits if getattr(limit, "le", None) is not None), None)
    high = high if maximum is None or maximum == MAX_COUNT else f"at most {maximum:,}"
    if low and low.startswith("at least") and not high:
        return f" of {low.removeprefix('at least ')} or more"
    if low and high and low.startswith("at least") and high.startswith("at most"):
        return f" from {low.removeprefix('at least ')} to {high.removeprefix('at most ')}"
    preposition = " of" if low and low.startswith("at least") else ""
    return (
        f"{preposition} {' and '.join(bound for bound in (low, high) if bound)}"
        if low or high
        else ""
    )
