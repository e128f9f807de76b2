"""Declarations: what a `.neural` program may call, with type, default and text per argument.

A layer, attention mechanism, optimizer or loss is a class whose fields are its arguments:

    class Dense(Layer):
        units: int = int_field("Width of the output.")
        dropout_rate: float = rate_field("…", default=0.0, aliases=("dropout",))

The checker, the help, the suggestions, the constructor and the exporters all read these fields.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self, dataclass_transform

from neural.core.names import to_snake_case
from neural.core.registry import Registry, UnknownNameError
from neural.language.argument_types import (
    ArgumentType,
    BoolType,
    ChoiceType,
    EntryListType,
    EntryType,
    FloatType,
    IntPairType,
    IntType,
    InvalidArgumentError,
    ShapeType,
    TextType,
)


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """One argument of a declaration."""

    name: str
    doc: str
    kind: ArgumentType
    default: Any
    """MISSING if the argument is required."""
    aliases: tuple[str, ...]
    """Other names that programs may use."""
    shown: bool
    """Whether `repr` prints the argument even if it has its default value."""

    @property
    def is_required(self) -> bool:
        """Whether a program must give the argument."""
        return self.default is MISSING


def argument_field(
    kind: ArgumentType,
    doc: str,
    *,
    default: Any = MISSING,
    aliases: tuple[str, ...] = (),
    shown: bool = False,
) -> Any:
    """An argument of any type; the functions below create the usual ones."""
    metadata = {"doc": doc, "kind": kind, "aliases": aliases, "shown": shown}
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def int_field(
    doc: str,
    *,
    default: Any = MISSING,
    at_least: int = 1,
    odd: bool = False,
    aliases: tuple[str, ...] = (),
    shown: bool = False,
) -> Any:
    """An integer argument."""
    return argument_field(
        IntType(at_least=at_least, is_odd=odd), doc, default=default, aliases=aliases, shown=shown
    )


def float_field(
    doc: str,
    *,
    default: Any = MISSING,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    aliases: tuple[str, ...] = (),
) -> Any:
    """A float argument within bounds."""
    kind = FloatType(above=above, at_least=at_least, at_most=at_most, below=below)
    return argument_field(kind, doc, default=default, aliases=aliases)


def rate_field(doc: str, *, default: Any = MISSING, aliases: tuple[str, ...] = ()) -> Any:
    """A dropout rate: 0 is allowed, 1 is not."""
    return argument_field(
        FloatType(at_least=0, below=1, code="E0209"), doc, default=default, aliases=aliases
    )


def bool_field(doc: str, *, default: Any = MISSING, aliases: tuple[str, ...] = ()) -> Any:
    """A bool argument."""
    return argument_field(BoolType(), doc, default=default, aliases=aliases)


def text_field(doc: str, *, default: Any = MISSING) -> Any:
    """A string argument."""
    return argument_field(TextType(), doc, default=default)


def choice_field(
    options: tuple[str, ...],
    doc: str,
    *,
    default: Any = MISSING,
    value_name: str = "value",
    code: str = "E0217",
) -> Any:
    """One of a few strings.

    `value_name` is what messages call one of them: "a known device". `code` is the diagnostic for
    another string.
    """
    kind = ChoiceType(options=options, value_name=value_name, code=code)
    return argument_field(kind, doc, default=default)


def int_pair_field(doc: str, *, default: Any = MISSING) -> Any:
    """Two integers, `(16, 16)`; one number stands for both."""
    return argument_field(IntPairType(), doc, default=default)


def shape_field(doc: str, *, default: Any = MISSING) -> Any:
    """A tuple of sizes; one of them may be -1."""
    return argument_field(ShapeType(), doc, default=default)


def entry_field(
    registry: Registry[Any],
    doc: str,
    *,
    default: Any = MISSING,
    or_number: FloatType | None = None,
    shown: bool = False,
    aliases: tuple[str, ...] = (),
) -> Any:
    """A registry entry, by name or as a call, or a number with `or_number`.

    The arguments of an entry given by name stand beside it: `attention="localized", window=7`.
    """
    kind = EntryType(registry=registry, or_number=or_number)
    return argument_field(kind, doc, default=default, shown=shown, aliases=aliases)


def entries_field(registry: Registry[Any], doc: str) -> Any:
    """Any number of registry entries, as positional calls."""
    return argument_field(EntryListType(registry=registry), doc)


@dataclass_transform(
    frozen_default=True,
    field_specifiers=(
        argument_field,
        int_field,
        float_field,
        rate_field,
        bool_field,
        text_field,
        choice_field,
        int_pair_field,
        shape_field,
        entry_field,
        entries_field,
    ),
)
class Declaration:
    """Base class of everything a program can call.

    Subclasses are frozen dataclasses that validate their arguments.
    """

    print_all_names: ClassVar[bool] = False
    """Whether `repr` names required arguments too: `num_heads=8` is clearer than `8`."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, repr=False)(cls)

    def __post_init__(self) -> None:
        for spec in self.argument_specs().values():
            try:
                object.__setattr__(
                    self, spec.name, convert_argument(spec, getattr(self, spec.name))
                )
            except InvalidArgumentError as error:
                raise ValueError(
                    f"{type(self).__name__}: {error.format_message(spec.name)}"
                ) from None
            except UnknownNameError as unknown:
                raise ValueError(f"{type(self).__name__}: {unknown}") from None
        self.verify()

    def verify(self) -> None:
        """Raise ShapeError where arguments contradict each other."""

    @classmethod
    def create_unverified(cls, **values: Any) -> Self:
        """Create an instance from values that are already converted, without calling `verify`."""
        instance = object.__new__(cls)
        for item in fields(cls):  # type: ignore[arg-type]  # every subclass is a dataclass
            object.__setattr__(instance, item.name, values.get(item.name, item.default))
        return instance

    @classmethod
    def argument_specs(cls) -> dict[str, ArgumentSpec]:
        """Arguments by name, in positional order."""
        return _collect_specs(cls)

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    def __repr__(self) -> str:
        """The call that creates this: `Dense(10, activation="softmax")`, without defaults."""
        return format_call(self, type(self).__name__)


class RegistryEntry(Declaration):
    """Base class of registry entries that users name in lower case: `"mse"`, `topk(tail=0.5)`.

    Layers, optimizers and schedules are written as `Dense(10)` and derive from `Declaration`.
    """

    def __repr__(self) -> str:
        """The call that creates this, in lower case."""
        return format_call(self, to_snake_case(type(self).__name__))


def convert_argument(spec: ArgumentSpec, value: Any) -> Any:
    """The value converted to the argument's type, or InvalidArgumentError."""
    # A default is accepted as it is: it may be None, which the type itself does not accept.
    if not spec.is_required and (
        value is spec.default or (type(value) is type(spec.default) and value == spec.default)
    ):
        return value
    return spec.kind.convert(value)


@cache
def _collect_specs(cls: type[Declaration]) -> dict[str, ArgumentSpec]:
    return {
        item.name: ArgumentSpec(name=item.name, default=item.default, **item.metadata)
        for item in fields(cls)  # type: ignore[arg-type]  # see __init_subclass__
        if "kind" in item.metadata
    }


def format_call(declaration: Declaration, name: str) -> str:
    """The call that creates `declaration`, as a program writes it; `name` is that of the function.

    Required arguments come first, without names (unless `print_all_names`).
    """
    parts: list[str] = []
    is_positional = not declaration.print_all_names
    for spec in declaration.argument_specs().values():
        value = getattr(declaration, spec.name)
        if isinstance(spec.kind, EntryListType):
            parts += [repr(item) for item in value]
        elif spec.is_required and is_positional:
            parts.append(format_value(value))
        else:
            is_positional = False
            if spec.is_required or spec.shown or value != spec.default:
                parts.append(f"{spec.name}={format_value(value)}")
    return f"{name}({', '.join(parts)})"


def format_value(value: Any) -> str:
    """A Python value as a program writes it."""
    if isinstance(value, str):
        escaped = (
            value.replace("\\", "\\\\")
            .replace('"', '\\"')
            .replace("\n", "\\n")
            .replace("\t", "\\t")
        )
        return '"' + escaped.replace("\r", "\\r") + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"({', '.join(map(format_value, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, RegistryEntry) and repr(value).endswith("()"):
        return f'"{repr(value)[:-2]}"'
    return repr(value)
