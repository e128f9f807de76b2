"""What a program may set, declared once: name, meaning, kind, default.

A layer, mechanism, optimizer or loss is a class whose fields are its arguments:

    class Dense(Layer):
        units: int = count("Width of the output.")
        dropout_rate: float = rate("…", default=0.0, aliases=("dropout",))

The checker, the help, the suggestions, the Python constructor and the exporter all read these fields.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self, dataclass_transform

from neural.core.names import snake
from neural.core.registry import Registry, UnknownName
from neural.language.kinds import Choice, Entry, Flag, Kind, Pair, Real, Refused, Several, Sizes, Text, Whole


@dataclass(frozen=True, slots=True)
class Setting:
    """One argument of a declaration."""

    name: str
    doc: str
    kind: Kind
    default: Any
    aliases: tuple[str, ...]
    shown: bool
    """Printed even where it is the default."""

    @property
    def required(self) -> bool:
        """Whether a program must write it."""
        return self.default is MISSING


def setting(
    kind: Kind, doc: str, *, default: Any = MISSING, aliases: tuple[str, ...] = (), shown: bool = False
) -> Any:
    """An argument of any kind; the functions below are the usual ones."""
    metadata = {"doc": doc, "kind": kind, "aliases": aliases, "shown": shown}
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def count(
    doc: str, *, default: Any = MISSING, at_least: int = 1, odd: bool = False, aliases: tuple[str, ...] = (),
    shown: bool = False,
) -> Any:
    """A whole number."""
    return setting(Whole(at_least=at_least, odd=odd), doc, default=default, aliases=aliases, shown=shown)


def number(
    doc: str, *, default: Any = MISSING, above: float | None = None, at_least: float | None = None,
    at_most: float | None = None, below: float | None = None, aliases: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    """A real number within bounds."""
    kind = Real(above=above, at_least=at_least, at_most=at_most, below=below)
    return setting(kind, doc, default=default, aliases=aliases)


def rate(doc: str, *, default: Any = MISSING, aliases: tuple[str, ...] = ()) -> Any:
    """A share of something dropped: 0 is allowed, 1 is not."""
    return setting(Real(at_least=0, below=1, code="E0209"), doc, default=default, aliases=aliases)


def flag(doc: str, *, default: Any = MISSING, aliases: tuple[str, ...] = ()) -> Any:
    """true or false."""
    return setting(Flag(), doc, default=default, aliases=aliases)


def text(doc: str, *, default: Any = MISSING) -> Any:
    """Words in quotes."""
    return setting(Text(), doc, default=default)


def choice(
    options: tuple[str, ...], doc: str, *, default: Any = MISSING, noun: str = "value", code: str = "E0217"
) -> Any:
    """One of a few words."""
    return setting(Choice(options=options, noun=noun, code=code), doc, default=default)


def pair(doc: str, *, default: Any = MISSING) -> Any:
    """Two whole numbers, `(16, 16)`; one number stands for both."""
    return setting(Pair(), doc, default=default)


def sizes(doc: str, *, default: Any = MISSING) -> Any:
    """A tuple of sizes; one of them may be -1."""
    return setting(Sizes(), doc, default=default)


def entry(
    registry: Registry[Any], doc: str, *, default: Any = MISSING, or_number: Real | None = None, shown: bool = False,
    aliases: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    """An entry of a registry, by its name or as a call; its own arguments may stand beside it."""
    kind = Entry(registry=registry, or_number=or_number)
    return setting(kind, doc, default=default, shown=shown, aliases=aliases)


def several(registry: Registry[Any], doc: str) -> Any:
    """Any number of entries of a registry, as positional calls."""
    return setting(Several(registry=registry), doc)


@dataclass_transform(
    frozen_default=True,
    field_specifiers=(setting, count, number, rate, flag, text, choice, pair, sizes, entry, several),
)
class Declared:
    """Base of everything that a program can call. Subclasses are frozen dataclasses; bad values are refused."""

    names_all: ClassVar[bool] = False
    """Whether a printed call names even what has no default: `num_heads=8` says more than `8`."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, repr=False)(cls)

    def __post_init__(self) -> None:
        for one in self.settings().values():
            try:
                object.__setattr__(self, one.name, accept(one, getattr(self, one.name)))
            except Refused as refused:
                raise ValueError(f"{type(self).__name__}: {refused.sentence(one.name)}") from None
            except UnknownName as unknown:
                raise ValueError(f"{type(self).__name__}: {unknown}") from None
        self.verify()

    def verify(self) -> None:
        """Raise Misfit where the arguments contradict each other."""

    @classmethod
    def unverified(cls, **values: Any) -> Self:
        """An instance of values that were accepted one by one, without `verify`: the checker goes on after a misfit."""
        made = object.__new__(cls)
        for one in fields(cls):  # type: ignore[arg-type]  # every subclass is a dataclass
            object.__setattr__(made, one.name, values.get(one.name, one.default))
        return made

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """The arguments by name, in the order in which they may stand without names."""
        return _settings(cls)

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    def __repr__(self) -> str:
        """The call that makes this: `Dense(10, activation="softmax")`, defaults left out."""
        return written(self, type(self).__name__)


class Named(Declared):
    """Base of what programs name in lower case: `"localized"`, `"mse"`."""

    def __repr__(self) -> str:
        """The call that makes this, in lower case."""
        return written(self, snake(type(self).__name__))


def accept(one: Setting, value: Any) -> Any:
    """The value as the declaration wants it; Refused says why not. A default is always accepted."""
    if not one.required and (value is one.default or (type(value) is type(one.default) and value == one.default)):
        return value
    return one.kind.accept(value)


@cache
def _settings(cls: type[Declared]) -> dict[str, Setting]:
    return {
        one.name: Setting(name=one.name, default=one.default, **one.metadata)
        for one in fields(cls)  # type: ignore[arg-type]  # every subclass is a dataclass, see __init_subclass__
        if "kind" in one.metadata
    }


def written(declared: Declared, name: str) -> str:
    """A call as a program spells it: what has no default stands first, without its name."""
    parts: list[str] = []
    nameless = not declared.names_all
    for one in declared.settings().values():
        value = getattr(declared, one.name)
        if isinstance(one.kind, Several):
            parts += [repr(item) for item in value]
        elif one.required and nameless:
            parts.append(spelt(value))
        else:
            nameless = False
            if one.required or one.shown or value != one.default:
                parts.append(f"{one.name}={spelt(value)}")
    return f"{name}({', '.join(parts)})"


def spelt(value: Any) -> str:
    """A Python value as a program spells it."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return '"' + escaped.replace("\r", "\\r") + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"({', '.join(map(spelt, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(spelt, value))}]"
    if isinstance(value, Named) and repr(value).endswith("()"):
        return f'"{repr(value)[:-2]}"'
    return repr(value)


