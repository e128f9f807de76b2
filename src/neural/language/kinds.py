"""The kinds of values that an argument takes: what each accepts, and how it says no."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any

from neural.core.names import closest
from neural.core.registry import Registry

LARGEST = 2**31 - 1
MOST_AXES = 16
"""Sizes of an example; torch itself ends at 64, and the product of thousands is a number that nothing can print."""
FEW = 4
"""Up to this many choices are named in the sentence itself."""


class Refused(Exception):
    """A value that a kind does not take: `must` be what, and which mistake it is; `meant` is how to write it."""

    def __init__(self, code: str, must: str, got: Any, *helps: str | None, meant: str | None = None) -> None:
        super().__init__(f"must be {must}, got {shown(got)}")
        self.code, self.helps, self.meant = code, helps, meant

    def sentence(self, name: str) -> str:
        """`units` must be a whole number of 1 or more, got -5."""
        return f"`{name}` {self}"


def _of_another_kind(says: str, value: Any) -> Refused:
    """A refusal; where a number or a truth value stands in quotes, with that way out."""
    quoted = isinstance(value, str) and value.lower() in ("true", "false")
    if isinstance(value, str) and not quoted:
        with suppress(ValueError):
            quoted = isfinite(float(value))
    way_out = f"leave out the quotes: `{value[:40]}`" if quoted else None
    return Refused("E0206", says, value, way_out, meant=value.lower() if quoted else None)


def shown(value: Any) -> str:
    """A value in a message: short, as it was written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value[:40]}"'
    called = getattr(value, "name_where", None)
    text = f"{value.name}(…)" if called is not None else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


class Kind(ABC):
    """What an argument may be."""

    @property
    @abstractmethod
    def says(self) -> str:
        """In words, after "must be"."""

    @abstractmethod
    def accept(self, value: Any) -> Any:
        """The value, made the right type; Refused where it cannot be."""


def _accept_item(outer: Kind, inner: Kind, item: Any, value: Any) -> Any:
    """One item of a value; a refusal speaks of the whole value, which is what the program wrote."""
    try:
        return inner.accept(item)
    except Refused as refused:
        raise Refused(refused.code, outer.says, value) from None


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number."""

    at_least: int = 1
    odd: bool = False
    """Whether it must be odd: the width of something with a middle."""

    @property
    def says(self) -> str:
        """In words."""
        return f"{'an odd' if self.odd else 'a whole'} number of {self.at_least} or more"

    def accept(self, value: Any) -> int:
        """An int; 2.0 is one, 2.5 is not."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _of_another_kind(self.says, value)
        if isinstance(value, float) and (not isfinite(value) or value != int(value)):
            raise Refused("E0208", self.says, value)
        if value < self.at_least:
            raise Refused("E0207", self.says, value)
        if value > LARGEST:
            raise Refused("E0207", f"at most {LARGEST:,}", value)
        if self.odd and value % 2 == 0:
            wider = str(int(value) + 1)
            raise Refused("E0222", self.says, value, f"did you mean {wider}?", meant=wider)
        return int(value)


@dataclass(frozen=True)
class Real(Kind):
    """A real number within bounds."""

    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None
    code: str = "E0207"

    @property
    def says(self) -> str:
        """In words."""
        if self.at_least is not None and self.below is not None:
            return f"at least {self.at_least:g} and below {self.below:g}"
        if self.at_least is not None and self.at_most is not None:
            return f"from {self.at_least:g} to {self.at_most:g}"
        bounds = {"above": self.above, "at least": self.at_least, "at most": self.at_most, "below": self.below}
        words = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        return "a number" + (f" {' and '.join(words)}" if words else "")

    def accept(self, value: Any) -> float:
        """A float within the bounds."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            says = self.says if "number" in self.says else f"a number {self.says}"
            raise _of_another_kind(says, value)
        fits = (
            isfinite(value)
            and (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )
        if not fits:
            percent = f"{value / 100:g}" if self.code == "E0209" and 5 <= value < 100 else None
            way_out = f"did you mean {percent}?" if percent else None
            raise Refused(self.code, self.says, value, way_out, meant=percent)
        return float(value)


@dataclass(frozen=True)
class Flag(Kind):
    """true or false."""

    @property
    def says(self) -> str:
        """In words."""
        return "true or false"

    def accept(self, value: Any) -> bool:
        """A bool and nothing else."""
        if not isinstance(value, bool):
            raise _of_another_kind(self.says, value)
        return value


@dataclass(frozen=True)
class Text(Kind):
    """Words."""

    @property
    def says(self) -> str:
        """In words."""
        return "text in quotes"

    def accept(self, value: Any) -> str:
        """A string."""
        if not isinstance(value, str):
            raise Refused("E0206", self.says, value)
        return value


@dataclass(frozen=True)
class Choice(Kind):
    """One of a few words."""

    options: tuple[str, ...]
    noun: str
    code: str

    @property
    def says(self) -> str:
        """In words."""
        if len(self.options) > FEW:
            return f"a known {self.noun}"
        *others, last = [f'"{option}"' for option in self.options]
        return f"{', '.join(others)} or {last}" if others else last

    def accept(self, value: Any) -> str:
        """One of the options, spelt exactly."""
        if not isinstance(value, str):
            raise Refused("E0206", self.says, value)
        if value not in self.options:
            known = f"known: {', '.join(self.options)}" if len(self.options) > FEW else None
            guess = closest(value, self.options)
            way_out, meant = (f"did you mean `{guess}`?", f'"{guess}"') if guess else (known, None)
            raise Refused(self.code, self.says, value, way_out, meant=meant)
        return value


@dataclass(frozen=True)
class Pair(Kind):
    """Two whole numbers, or one for both."""

    @property
    def says(self) -> str:
        """In words."""
        return "a whole number of 1 or more, or two in brackets"

    def accept(self, value: Any) -> tuple[int, int]:
        """Always a pair."""
        both = tuple(value) if isinstance(value, tuple | list) else (value, value)
        if len(both) != 2:
            raise Refused("E0206", self.says, value)
        first, second = (_accept_item(self, Whole(), one, value) for one in both)
        return first, second


@dataclass(frozen=True)
class Sizes(Kind):
    """A tuple of sizes, at most one of them -1."""

    @property
    def says(self) -> str:
        """In words."""
        return "sizes of 1 or more in brackets, such as `(196, 768)`, or -1 for one of them"

    def accept(self, value: Any) -> tuple[int, ...]:
        """Always a tuple."""
        given = tuple(value) if isinstance(value, tuple | list) else (value,)
        if not 1 <= len(given) <= MOST_AXES or list(given).count(-1) > 1:
            raise Refused("E0206", self.says, value)
        return tuple(
            -1 if one == -1 and not isinstance(one, bool) else _accept_item(self, Whole(), one, value) for one in given
        )


@dataclass(frozen=True)
class Numbers(Kind):
    """A list of numbers."""

    each: Kind
    noun: str

    @property
    def says(self) -> str:
        """In words."""
        return f"a list of {self.noun}, each {self.each.says}"

    def accept(self, value: Any) -> tuple[Any, ...]:
        """Always a tuple."""
        if not isinstance(value, tuple | list):
            raise Refused("E0206", self.says, value)
        return tuple(_accept_item(self, self.each, one, value) for one in value)


@dataclass(frozen=True)
class Entry(Kind):
    """An entry of a registry: its name, a call of it, or an instance; perhaps a plain number instead."""

    registry: Registry[Any]
    or_number: Real | None = None

    @property
    def says(self) -> str:
        """In words."""
        noun = f"{'an' if self.registry.noun[0] in 'aeiou' else 'a'} {self.registry.noun}"
        return f"{self.or_number.says} or {noun}" if self.or_number else noun

    def accept(self, value: Any) -> Any:
        """An instance (or the number)."""
        if isinstance(value, self.registry.base):
            return value
        if self.or_number is not None and isinstance(value, int | float) and not isinstance(value, bool):
            return self.or_number.accept(value)
        if isinstance(value, str) and self.or_number is None:
            return self.registry.get(value)()
        raise _of_another_kind(self.says, value)


@dataclass(frozen=True)
class Several(Kind):
    """Any number of entries of a registry."""

    registry: Registry[Any]

    @property
    def says(self) -> str:
        """In words."""
        return f"one {self.registry.noun} or more"

    def accept(self, value: Any) -> tuple[Any, ...]:
        """A tuple of instances."""
        given = tuple(value) if isinstance(value, tuple | list) else (value,)
        if not given or not all(isinstance(one, self.registry.base) for one in given):
            raise Refused("E0206", self.says, value)
        return given
