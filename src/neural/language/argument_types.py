"""Types of the arguments in a `.neural` program: conversion, and messages for wrong values.

An entry is a class that a registry finds by name, such as the attention mechanism "localized".
Codes such as "E0207" are diagnostic codes; explanations/ has a page on each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any

from neural.core.errors import NeuralError
from neural.core.names import find_closest
from neural.core.registry import Registry

MAX_INTEGER = 2**31 - 1
"""Larger integers are errors."""
MAX_AXES = 16
"""Largest number of axes in a shape; torch allows 64."""
MAX_LISTED_CHOICES = 4
"""Up to this many choices are named in the error message; more are listed in its help."""


class InvalidArgumentError(NeuralError):
    """A value that an argument does not accept.

    `expected` is what it accepts, `got` the value; `suggestion` is corrected text to replace it.
    """

    def __init__(
        self, code: str, expected: str, got: Any, *helps: str | None, suggestion: str | None = None
    ) -> None:
        super().__init__(f"must be {expected}, got {format_received(got)}")
        self.code, self.helps, self.suggestion = code, helps, suggestion

    def format_message(self, name: str) -> str:
        """For example: `units` must be a whole number of 1 or more, got -5."""
        return f"`{name}` {self}"


def _wrong_type_error(description: str, value: Any) -> InvalidArgumentError:
    """Create the error E0206, with a help if the value is a number or bool in quotes."""
    is_quoted = isinstance(value, str) and value.lower() in ("true", "false")
    if isinstance(value, str) and not is_quoted:
        with suppress(ValueError):
            is_quoted = isfinite(float(value))
    help_text = f"leave out the quotes: `{value[:40]}`" if is_quoted else None
    return InvalidArgumentError(
        "E0206", description, value, help_text, suggestion=value.lower() if is_quoted else None
    )


def format_received(value: Any) -> str:
    """Format a value for a message: as a program writes it, shortened."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value[:40]}"'
    is_call = getattr(value, "name_span", None) is not None  # a CallExpression
    text = f"{value.name}(…)" if is_call else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


class ArgumentType(ABC):
    """Base class: converts and checks the value of one argument."""

    @property
    def affects_shape(self) -> bool:
        """Whether the output shape of a layer may depend on an argument of this type."""
        return True

    @property
    @abstractmethod
    def description(self) -> str:
        """What the type accepts, after "must be"."""

    @abstractmethod
    def convert(self, value: Any) -> Any:
        """The converted value. Raises InvalidArgumentError if the value is not accepted."""


def _convert_item(outer: ArgumentType, inner: ArgumentType, item: Any, value: Any) -> Any:
    """Convert `item` of the list `value` by the type `inner`.

    An error shows the complete list and what `outer`, the type of the list, accepts.
    """
    try:
        return inner.convert(item)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(error.code, outer.description, value) from None


@dataclass(frozen=True)
class IntType(ArgumentType):
    """An integer."""

    at_least: int = 1
    is_odd: bool = False
    """Whether the integer must be odd, as the width of a window around a position."""

    @property
    def description(self) -> str:
        """What the type accepts, after "must be"."""
        return f"{'an odd' if self.is_odd else 'a whole'} number of {self.at_least} or more"

    def convert(self, value: Any) -> int:
        """An int; 2.0 is accepted, 2.5 is not."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong_type_error(self.description, value)
        if isinstance(value, float) and (not isfinite(value) or value != int(value)):
            raise InvalidArgumentError("E0208", self.description, value)
        if value < self.at_least:
            raise InvalidArgumentError("E0207", self.description, value)
        if value > MAX_INTEGER:
            raise InvalidArgumentError("E0207", f"at most {MAX_INTEGER:,}", value)
        if self.is_odd and value % 2 == 0:
            next_odd = str(int(value) + 1)
            raise InvalidArgumentError(
                "E0222", self.description, value, f"did you mean {next_odd}?", suggestion=next_odd
            )
        return int(value)


@dataclass(frozen=True)
class FloatType(ArgumentType):
    """A float within bounds."""

    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None
    code: str = "E0207"
    """Diagnostic code for a value out of bounds; E0209 for rates, where 10 may mean 10 %."""

    @property
    def affects_shape(self) -> bool:
        """False: no layer has an output shape that depends on it."""
        return False

    @property
    def description(self) -> str:
        """What the type accepts, after "must be"."""
        if self.at_least is not None and self.below is not None:
            return f"at least {self.at_least:g} and below {self.below:g}"
        if self.at_least is not None and self.at_most is not None:
            return f"from {self.at_least:g} to {self.at_most:g}"
        bounds = {
            "above": self.above,
            "at least": self.at_least,
            "at most": self.at_most,
            "below": self.below,
        }
        words = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        return "a number" + (f" {' and '.join(words)}" if words else "")

    def convert(self, value: Any) -> float:
        """A float within the bounds."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            description = (
                self.description if "number" in self.description else f"a number {self.description}"
            )
            raise _wrong_type_error(description, value)
        in_bounds = (
            isfinite(value)
            and (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )
        if not in_bounds:
            # A rate of 10 is probably meant as 10 %: suggest 0.1.
            fraction = f"{value / 100:g}" if self.code == "E0209" and 5 <= value < 100 else None
            help_text = f"did you mean {fraction}?" if fraction else None
            raise InvalidArgumentError(
                self.code, self.description, value, help_text, suggestion=fraction
            )
        return float(value)


@dataclass(frozen=True)
class BoolType(ArgumentType):
    """A bool."""

    @property
    def description(self) -> str:
        """What the type accepts, after "must be"."""
        return "true or false"

    def convert(self, value: Any) -> bool:
        """A bool; 0 and 1 are not accepted."""
        if not isinstance(value, bool):
            raise _wrong_type_error(self.description, value)
        return value


@dataclass(frozen=True)
class TextType(ArgumentType):
    """A string."""

    @property
    def description(self) -> str:
        """What the type accepts, after "must be"."""
        return "text in quotes"

    def convert(self, value: Any) -> str:
        """A string."""
        if not isinstance(value, str):
            raise InvalidArgumentError("E0206", self.description, value)
        return value


@dataclass(frozen=True)
class ChoiceType(ArgumentType):
    """One of a few strings."""

    options: tuple[str, ...]
    value_name: str
    """What one option is called in messages: "a known device"."""
    code: str
    """Diagnostic code for an unknown option."""

    @property
    def affects_shape(self) -> bool:
        """False for activations; an option such as "same" padding changes the shape."""
        return self.value_name != "activation"

    @property
    def description(self) -> str:
        """What the type accepts, after "must be"."""
        if len(self.options) > MAX_LISTED_CHOICES:
            return f"a known {self.value_name}"
        *others, last = [f'"{option}"' for option in self.options]
        return f"{', '.join(others)} or {last}" if others else last

    def convert(self, value: Any) -> str:
        """One of the options, in exact spelling."""
        if not isinstance(value, str):
            raise InvalidArgumentError("E0206", self.description, value)
        if value not in self.options:
            known = (
                f"known: {', '.join(self.options)}"
                if len(self.options) > MAX_LISTED_CHOICES
                else None
            )
            guess = find_closest(value, self.options)
            help_text, suggestion = (
                (f"did you mean `{guess}`?", f'"{guess}"') if guess else (known, None)
            )
            raise InvalidArgumentError(
                self.code, self.description, value, help_text, suggestion=suggestion
            )
        return value


@dataclass(frozen=True)
class IntPairType(ArgumentType):
    """Two integers, or one for both."""

    @property
    def description(self) -> str:
        """What the type accepts, after "must be"."""
        return "a whole number of 1 or more, or two in brackets"

    def convert(self, value: Any) -> tuple[int, int]:
        """Always a pair."""
        pair = tuple(value) if isinstance(value, tuple | list) else (value, value)
        if len(pair) != 2:
            raise InvalidArgumentError("E0206", self.description, value)
        first, second = (_convert_item(self, IntType(), item, value) for item in pair)
        return first, second


@dataclass(frozen=True)
class ShapeType(ArgumentType):
    """A tuple of sizes, at most one of them -1 (inferred)."""

    @property
    def description(self) -> str:
        """What the type accepts, after "must be"."""
        return "sizes of 1 or more in brackets, such as `(196, 768)`, or -1 for one of them"

    def convert(self, value: Any) -> tuple[int, ...]:
        """Always a tuple."""
        sizes = tuple(value) if isinstance(value, tuple | list) else (value,)
        if not 1 <= len(sizes) <= MAX_AXES or list(sizes).count(-1) > 1:
            raise InvalidArgumentError("E0206", self.description, value)
        return tuple(
            -1
            if size == -1 and not isinstance(size, bool)
            else _convert_item(self, IntType(), size, value)
            for size in sizes
        )


@dataclass(frozen=True)
class ListType(ArgumentType):
    """A list of values of one type."""

    item_type: ArgumentType
    noun: str
    """What the items are, plural, for messages."""

    @property
    def description(self) -> str:
        """What the type accepts, after "must be"."""
        return f"a list of {self.noun}, each {self.item_type.description}"

    def convert(self, value: Any) -> tuple[Any, ...]:
        """Always a tuple."""
        if not isinstance(value, tuple | list):
            raise InvalidArgumentError("E0206", self.description, value)
        return tuple(_convert_item(self, self.item_type, item, value) for item in value)


@dataclass(frozen=True)
class EntryType(ArgumentType):
    """A registry entry: its name, or an instance. With `or_number`: a number or an instance.

    The binder (binder.py) turns calls such as `CosineDecay(0.1)` into instances before.
    """

    registry: Registry[Any]
    or_number: FloatType | None = None

    @property
    def affects_shape(self) -> bool:
        """False: no layer has an output shape that depends on it."""
        return False

    @property
    def description(self) -> str:
        """What the type accepts, after "must be"."""
        noun = f"{'an' if self.registry.noun[0] in 'aeiou' else 'a'} {self.registry.noun}"
        return f"{self.or_number.description} or {noun}" if self.or_number else noun

    def convert(self, value: Any) -> Any:
        """An instance (or the number)."""
        if isinstance(value, self.registry.base):
            return value
        if (
            self.or_number is not None
            and isinstance(value, int | float)
            and not isinstance(value, bool)
        ):
            return self.or_number.convert(value)
        # Where a number is possible, entries have required arguments, so a name is not enough.
        if isinstance(value, str) and self.or_number is None:
            return self.registry.get(value)()
        raise _wrong_type_error(self.description, value)


@dataclass(frozen=True)
class EntryListType(ArgumentType):
    """Any number of registry entries."""

    registry: Registry[Any]

    @property
    def description(self) -> str:
        """What the type accepts, after "must be"."""
        return f"one {self.registry.noun} or more"

    def convert(self, value: Any) -> tuple[Any, ...]:
        """A tuple of instances."""
        entries = tuple(value) if isinstance(value, tuple | list) else (value,)
        if not entries or not all(isinstance(entry, self.registry.base) for entry in entries):
            raise InvalidArgumentError("E0206", self.description, value)
        return entries
