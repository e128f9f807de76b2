"""What a field of settings takes, in words, and what lies inside it: read from its annotation.

    batch_size: Annotated[int, Field(ge=1)]      "a whole number of 1 or more"
    scheduler: Literal["cosine", "linear"]       "`cosine` or `linear`"

Messages, the documentation and the schema all say it with these words.
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

LARGEST = 2**31 - 1
"""An upper bound that nobody meets, so only who breaks it hears of it."""

_WORDS: dict[Any, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path", Any: "a value"
}  # fmt: skip
_MANY: dict[Any, str] = {int: "whole numbers", float: "numbers", str: "names", Path: "paths"}


@dataclass(frozen=True)
class Says:
    """Beside a type in `Annotated`: what it takes, after "must be"."""

    text: str


@dataclass(frozen=True, init=False)
class Also:
    """Beside a type in `Annotated`: other names that files may use for the field."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


def annotation(section: type[BaseModel], name: str) -> Any:
    """A field's type with everything that limits it."""
    field = section.model_fields[name]
    kind: Any = field.annotation
    for limit in field.metadata:
        kind = Annotated[kind, limit]
    return kind


def spellings(section: type[BaseModel]) -> dict[str, str]:
    """Every name that a file may use → the field's own."""
    found = {name: name for name in section.model_fields}
    for name, field in section.model_fields.items():
        found |= {other: name for one in field.metadata if isinstance(one, Also) for other in one.names}
    return found


def alternatives(kind: Any, limits: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The plain types that an annotation allows, without None, each with its limits."""
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *more = get_args(kind)
        for one in more:
            limits += tuple(one.metadata) if isinstance(one, FieldInfo) else (one,)
        yield from alternatives(inner, limits)
    elif origin in (Union, UnionType):
        for one in get_args(kind):
            yield from alternatives(one, limits)
    elif kind is not NoneType:
        yield kind, limits


def takes_null(kind: Any) -> bool:
    """Whether null is among what it takes."""
    if get_origin(kind) in (Annotated, Union, UnionType):
        return any(takes_null(one) for one in get_args(kind)[: 1 if get_origin(kind) is Annotated else None])
    return kind in (None, NoneType, Any)


def sections(kind: Any) -> list[type[BaseModel]]:
    """The sections among what it takes."""
    return [one for one, _ in alternatives(kind) if isinstance(one, type) and issubclass(one, BaseModel)]


def inside(kind: Any, step: str | int) -> Any:
    """The type of what lies under a key or an index."""
    for one, _ in alternatives(kind):
        origin, args = get_origin(one), get_args(one)
        if isinstance(one, type) and issubclass(one, BaseModel) and step in one.model_fields:
            return annotation(one, str(step))
        if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(step, str) and len(args) == 2:
            return args[1]
        if isinstance(origin, type) and issubclass(origin, Iterable) and isinstance(step, int) and args:
            fixed = origin is tuple and args[-1] is not Ellipsis
            return args[min(step, len(args) - 1)] if fixed else args[0]
    return Any


def options(kind: Any) -> list[str]:
    """The words that it allows, where it allows only some."""
    found: list[str] = []
    for one, _ in alternatives(kind):
        if get_origin(one) is Literal:
            found += [value for value in get_args(one) if isinstance(value, str)]
        elif isinstance(one, type) and issubclass(one, Enum):
            found += [str(member.value) for member in one]
    return found


def bounded(kind: Any) -> bool:
    """Whether the largest number there is for counts is its bound."""
    return any(getattr(one, "le", None) == LARGEST for _, limits in alternatives(kind) for one in limits)


def says(kind: Any) -> str:
    """What it takes, after "must be"."""
    found = list(dict.fromkeys(_one(one, limits) for one, limits in alternatives(kind)))
    return " or ".join(found) or "null"


def _one(kind: Any, limits: tuple[Any, ...]) -> str:
    own = [limit.text for limit in limits if isinstance(limit, Says)]
    origin = get_origin(kind)
    if own:
        return own[-1]
    if words := options(kind):
        return _listed(words)
    if origin is Literal:
        return _listed(["true" if one is True else "false" if one is False else str(one) for one in get_args(kind)])
    if kind in _WORDS:
        return _WORDS[kind] + _bounds(limits)
    if isinstance(origin or kind, type) and issubclass(origin or kind, BaseModel | Mapping):
        return "a section: keys with values"
    if isinstance(origin or kind, type) and issubclass(origin or kind, Iterable):
        many = " or ".join(dict.fromkeys(_MANY.get(one, "") for one, _ in alternatives(inside(kind, 0))))
        return f"a list of {many}" if many else "a list"
    return f"a {getattr(kind, '__name__', 'value').lower()}"


def _listed(words: list[str]) -> str:
    *others, last = [f"`{word}`" for word in words]
    return f"{', '.join(others)} or {last}" if others else last


def _bounds(limits: tuple[Any, ...]) -> str:
    """` of 1 or more`, ` above 0 and below 1`; nothing where there are none."""
    low = next((f"at least {one.ge:,}" for one in limits if getattr(one, "ge", None) is not None), None)
    low = next((f"above {one.gt:,}" for one in limits if getattr(one, "gt", None) is not None), low)
    high = next((f"below {one.lt:,}" for one in limits if getattr(one, "lt", None) is not None), None)
    top = next((one.le for one in limits if getattr(one, "le", None) is not None), None)
    high = high if top is None or top == LARGEST else f"at most {top:,}"
    if low and low.startswith("at least") and not high:
        return f" of {low.removeprefix('at least ')} or more"
    if low and high and low.startswith("at least") and high.startswith("at most"):
        return f" from {low.removeprefix('at least ')} to {high.removeprefix('at most ')}"
    of = " of" if low and low.startswith("at least") else ""
    return f"{of} {' and '.join(word for word in (low, high) if word)}" if low or high else ""
