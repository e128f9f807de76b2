"""The definitions and imports that a file needs, under names that cannot collide."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from keyword import iskeyword
from math import isfinite
from types import FunctionType
from typing import Any

from neural.core.names import snake
from neural.language.declaration import Declared
from neural.modules.late import nn, torch
from neural.modules.source.pieces import (
    DATACLASS,
    Piece,
    Reference,
    asked_of_self,
    is_declaration,
)
from neural.modules.source.scopes import NameUse, identifiers, uses_of
from neural.modules.source.symbols import (
    FUNCTIONAL,
    LATE,
    NN,
    NN_MODULE,
    TENSOR,
    TORCH,
    CannotCompile,
    SourceModule,
    Symbol,
    Unit,
    definition_of,
    is_copied,
    is_installed,
    meaning,
    source_module,
)

HEAD = {TORCH: "torch", TENSOR: "Tensor", NN: "nn", FUNCTIONAL: "functional"}
"""What every written file may import, under fixed names."""
RESERVED = frozenset({"print", "range", "super", "tuple", "annotations", "TYPE_CHECKING"})
"""Names that the written file itself uses."""


class Bundle:
    """Definitions and imports that a file needs.

    First values are added with all that they use, then names are chosen, then text is made.
    """

    def __init__(self) -> None:
        self.pieces: dict[Unit, Piece] = {}
        self.imports: dict[Symbol, bool] = {}
        """Whether an imported symbol is needed at run time, or by annotations alone."""
        self.names: dict[Symbol, str] = {}
        """What each symbol is called in the file; known after `choose_names`."""
        self._classes: list[type] = []
        self._units: dict[Symbol, Unit] = {}

    # --- what is needed ---------------------------------------------------------------------------

    def add_value(self, value: Any) -> None:
        """Add what the expression of a module, a declaration or any other argument needs."""
        if isinstance(value, Declared):
            self._add_class(type(value))
            self._add_values(getattr(value, setting) for setting in value.settings())
        elif isinstance(value, type | FunctionType):
            self._add_definition(value)
        elif isinstance(value, list | tuple):
            self._add_values(value)
        elif isinstance(value, dict):
            self._add_values([*value.keys(), *value.values()])
        elif isinstance(value, nn.Module):
            for module in value.modules():
                if not type(module).__module__.startswith("torch."):
                    self._add_class(type(module))
                args, keywords = getattr(module, "made_with", ((), {}))
                self._add_values([*args, *keywords.values()])

    def _add_values(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add_value(value)

    def _add_class(self, cls: type) -> None:
        """Add a class of ours, or of another package, and everything that it uses."""
        self._classes.append(cls)
        self.add_symbol(definition_of(cls), cls.__module__)

    def _add_definition(self, value: type | FunctionType) -> None:
        """Add any other class or function; from a library, it is imported."""
        if value.__module__ == "builtins":
            return
        if is_installed(value.__module__):
            self.imports[Symbol(value.__module__, value.__qualname__.partition(".")[0])] = True
        else:
            self.add_symbol(definition_of(value), value.__module__)

    def add_symbol(self, symbol: Symbol, user: str) -> None:
        """Add what a symbol means in the module `user`."""
        if not is_copied(symbol.module, user) or not symbol.name:
            self.imports[symbol] = True
            return
        if symbol.module == LATE:
            raise CannotCompile(f"`{LATE}.{symbol.name}` cannot be part of a file without neural")
        unit = source_module(symbol.module).units[symbol.name]
        if unit in self.pieces:
            return
        piece = self.pieces[unit] = Piece(unit)
        self._units |= dict.fromkeys(unit.symbols, unit)
        kept = piece.strip(self._members_in_use(unit))
        piece.identifiers.update(identifiers(kept))
        if piece.has_fields:
            self.imports[DATACLASS] = True
        for use in uses_of(kept):
            self._refer(piece, use)

    def _members_in_use(self, unit: Unit) -> set[str]:
        """What running code asks of `self` in a declaration and in what derives from it."""
        needed: set[str] = set()
        for name in unit.names:
            declared: Any = getattr(unit.module.module, name, None)
            if is_declaration(declared):
                derived = [cls for cls in self._classes if issubclass(cls, declared)]
                for cls in {base for one in (declared, *derived) for base in one.__mro__}:
                    if is_declaration(cls) and is_copied(cls.__module__, unit.module.name):
                        needed |= asked_of_self(cls)
        return needed

    def _refer(self, piece: Piece, use: NameUse) -> None:
        """Note what a name means, and add that. Annotations do without what cannot be added."""
        module = piece.unit.module
        is_typing = use.in_annotation or piece.unit.type_only
        try:
            symbol, last = meaning(module, use)
        except (LookupError, CannotCompile) as problem:
            if is_typing:
                return
            if isinstance(problem, CannotCompile):
                raise
            where = f"{module.name}, line {use.node.lineno}"
            raise CannotCompile(
                f"{where}: no statement of the module defines `{use.name}`"
            ) from None
        if symbol is None:
            if use.local_import is None:
                piece.builtins.add(use.name)
            return
        if is_typing and symbol.module == "jaxtyping":
            return  # shapes are left out
        if isinstance(use.node, ast.Global):
            start, end = _word_in(module, use.node, use.name)
        else:
            start, end = module.span(use.node)[0], module.span(last)[1]
        spelling = module.text[start:end].decode(errors="replace")
        piece.references.append(Reference(start, end, symbol, spelling, use))
        if symbol == NN_MODULE:
            self.imports[NN] = True
        elif not is_typing:
            self.add_symbol(symbol, module.name)
        elif not is_copied(symbol.module, module.name) or not symbol.name:
            root = symbol.module.partition(".")[0]
            self.imports.setdefault(symbol, root in sys.stdlib_module_names)
        elif not symbol.module.startswith("neural.") or symbol.module.startswith("neural.modules."):
            self.add_symbol(symbol, module.name)

    # --- names ------------------------------------------------------------------------------------

    def choose_names(self) -> None:
        """A name for every symbol: its own, unless that would mean something else somewhere."""
        references: dict[Symbol, list[Reference]] = {}
        for piece in self.pieces.values():
            for reference in piece.references:
                references.setdefault(reference.symbol, []).append(reference)
        used_builtins = {name for piece in self.pieces.values() for name in piece.builtins}
        everything = {name for piece in self.pieces.values() for name in piece.identifiers}
        self.names = dict(HEAD)
        taken = {*HEAD.values(), *RESERVED, *used_builtins}
        imported = set(self.imports) - set(HEAD)
        symbols = [symbol for unit in self.pieces for symbol in unit.symbols]
        symbols += sorted(imported, key=lambda symbol: (symbol.module, symbol.name))

        def is_renamable(symbol: Symbol) -> bool:
            return not any(reference.is_fixed for reference in references.get(symbol, []))

        for symbol in sorted(symbols, key=is_renamable):
            uses = references.get(symbol, [])
            name = symbol.name or symbol.module.rpartition(".")[2]
            if symbol in imported and uses:
                name = uses[0].spelling.rpartition(".")[2]  # `np`, where numpy is imported so
            is_captured = any(use.spelling != name and name in use.use.local_names for use in uses)
            if name in taken or is_captured or iskeyword(name):
                if not is_renamable(symbol):
                    raise CannotCompile(
                        f"{symbol.module}: `{name}` must be renamed, but stands in an f-string"
                    )
                name = _another_name(symbol, name, taken | everything)
            self.names[symbol] = name
            taken.add(name)

    def free_name(self, name: str, suffix: str) -> str:
        """The name for something else that the file defines."""
        taken = {*self.names.values(), *RESERVED}
        while name in taken or iskeyword(name) or hasattr(builtins, name):
            name += suffix
        return name

    # --- expressions ------------------------------------------------------------------------------

    def call_name(self, definition: Any) -> str:
        """How the file refers to a class or a function."""
        inner = definition.__qualname__.partition(".")[2]
        return self.names[definition_of(definition)] + (f".{inner}" if inner else "")

    def expression(self, value: Any) -> str:
        """The call that makes a module or a declared value, or a literal, as Python."""
        if isinstance(value, Declared):
            settings = value.settings().values()
            given = {one.name: (getattr(value, one.name), one.default) for one in settings}
            return f"{self.call_name(type(value))}({', '.join(self._keywords(given))})"
        if hasattr(value, "made_with"):
            args, keywords = value.made_with
            parameters = inspect.signature(type(value).__init__).parameters
            defaults = {name: parameter.default for name, parameter in parameters.items()}
            given = {name: (one, defaults.get(name, ...)) for name, one in keywords.items()}
            inside = [*map(self.expression, args), *self._keywords(given)]
            return f"{self.call_name(type(value))}({', '.join(inside)})"
        if isinstance(value, nn.Module):
            return self._module_expression(value)
        if isinstance(value, type | FunctionType) and value.__module__ != "builtins":
            return self.call_name(value)
        return self._literal(value)

    def _keywords(self, given: dict[str, tuple[Any, Any]]) -> Iterator[str]:
        """The arguments that differ from their defaults."""
        for name, (value, default) in given.items():
            if not (type(value) is type(default) and value == default):
                yield f"{name}={self.expression(value)}"

    def _module_expression(self, module: nn.Module) -> str:
        """Of a module that does not know how it was made: torch's leaves print the call."""
        cls, own = type(module), self.names[NN]
        if cls in (nn.Sequential, nn.ModuleList):
            inside = ", ".join(map(self.expression, module.children()))
            return (
                f"{own}.Sequential({inside})"
                if cls is nn.Sequential
                else f"{own}.ModuleList([{inside}])"
            )
        if cls.__module__.startswith("torch.nn") and not list(module.children()):
            with torch.device("meta"):
                try:
                    again = eval(f"nn.{module!r}", {"nn": nn})  # torch's text about its own class
                except (TypeError, NameError, SyntaxError):
                    again = None
            if repr(again) == repr(module):
                return f"{own}.{module!r}"
        required = [
            parameter
            for parameter in inspect.signature(cls).parameters.values()
            if parameter.default is parameter.empty and parameter.kind < parameter.VAR_POSITIONAL
        ]
        if cls.__module__.startswith("torch.") or required:
            raise CannotCompile(
                f"`{cls.__name__}` does not say how it was made; derive it from `{LATE}.Module`"
            )
        return f"{self.call_name(cls)}()"

    def _literal(self, value: Any) -> str:
        if isinstance(value, str):
            plain = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
            return plain if value.isprintable() else repr(value)
        if isinstance(value, float) and not isfinite(value):
            return f'float("{value}")'
        if value is None or value is ... or isinstance(value, bool | int | float | complex | bytes):
            return repr(value)
        if isinstance(value, list | tuple):
            inside = ", ".join(map(self.expression, value))
            comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
            return f"[{inside}]" if isinstance(value, list) else f"({inside}{comma})"
        if isinstance(value, dict):
            items = (f"{self.expression(key)}: {self.expression(value[key])}" for key in value)
            return "{" + ", ".join(items) + "}"
        if isinstance(value, torch.dtype):
            return repr(value)
        kind = type(value).__name__
        raise CannotCompile(f"a {kind} among the arguments cannot be written as Python")

    # --- text -------------------------------------------------------------------------------------

    def definitions(self) -> list[str]:
        """The definitions, each behind what it needs when the file is imported."""
        ordered: dict[Unit, None] = {}
        for unit in self.pieces:
            self._order(unit, ordered, [])
        return [self.pieces[unit].text(self.names) for unit in ordered]

    def _order(self, unit: Unit, ordered: dict[Unit, None], under_way: list[Unit]) -> None:
        """Put a unit behind what it needs at import, and behind its helpers where that can be."""
        if unit in ordered or unit in under_way:
            return
        under_way.append(unit)
        for other in self._needs(unit, at_import=True):
            self._order(other, ordered, under_way)
        for other in self._needs(unit, at_import=False):
            if not self._needed_at_import(other) & set(under_way):
                self._order(other, ordered, under_way)
        under_way.pop()
        ordered[unit] = None

    def _needs(self, unit: Unit, *, at_import: bool) -> list[Unit]:
        others = (
            self._units.get(reference.symbol)
            for reference in self.pieces[unit].references
            if reference.use.at_import == at_import
        )
        return [other for other in dict.fromkeys(others) if other is not None and other is not unit]

    def _needed_at_import(self, unit: Unit) -> set[Unit]:
        """Everything that must stand before a unit, itself included."""
        needed, todo = {unit}, [unit]
        while todo:
            new = set(self._needs(todo.pop(), at_import=True)) - needed
            needed |= new
            todo += new
        return needed

    def import_lines(self) -> tuple[list[str], list[str]]:
        """The lines that import the standard library, and those that import everything else."""
        standard, others, for_types = list[str](), list[str](), list[str]()
        for symbol in set(self.imports) - set(HEAD):
            line = _import_line(symbol, self.names[symbol])
            if symbol.module.partition(".")[0] in sys.stdlib_module_names:
                standard.append(line)
            else:
                (others if self.imports[symbol] else for_types).append(line)
        if for_types or any(unit.type_only for unit in self.pieces):
            standard.append("from typing import TYPE_CHECKING")
        others += [
            _import_line(symbol, name) for symbol, name in HEAD.items() if symbol != FUNCTIONAL
        ]
        if FUNCTIONAL in self.imports:
            others.append(_import_line(FUNCTIONAL, HEAD[FUNCTIONAL]))
        lines = _merged(others)
        if for_types:
            lines += ["", "if TYPE_CHECKING:", *(f"    {line}" for line in _merged(for_types))]
        return _merged(standard), lines

    def packages(self) -> list[str]:
        """What must be installed beside torch for the file to run."""
        roots = {symbol.module.partition(".")[0] for symbol in self.imports if self.imports[symbol]}
        return sorted(roots - {"torch"} - set(sys.stdlib_module_names))


def _another_name(symbol: Symbol, name: str, taken: set[str]) -> str:
    """A name that says where a thing comes from, in its style: `DenseLinear`, `LOCALIZED_BLOCK`."""
    parts = [part for part in symbol.module.split(".") if part.isidentifier()]
    parts = [part for part in parts if part != snake(name)] or parts
    prefix = parts[-1].strip("_")
    if name.isupper():
        wanted = f"{prefix.upper()}_{name}"
    elif name[:1].isupper():
        wanted = "".join(part.capitalize() for part in prefix.split("_")) + name
    else:
        wanted = f"{prefix}_{name.lstrip('_')}"
    number, candidate = 2, wanted
    while candidate in taken or iskeyword(candidate) or hasattr(builtins, candidate):
        candidate, number = f"{wanted}_{number}", number + 1
    return candidate


def _word_in(module: SourceModule, node: ast.Global, name: str) -> tuple[int, int]:
    """Where a name stands in a `global` statement."""
    start, end = module.span(node)
    pattern = re.compile(rb"\b" + name.encode() + rb"\b")
    word = pattern.search(module.text, start + len("global"), end)
    assert word is not None
    return word.span()


def _import_line(symbol: Symbol, name: str) -> str:
    """The import that brings a symbol in under a name."""
    module, _, last = symbol.module.rpartition(".")
    if symbol.name:
        module, last = symbol.module, symbol.name
    renamed = f" as {name}" if name != last else ""
    return f"from {module} import {last}{renamed}" if module else f"import {last}{renamed}"


def _merged(lines: Iterable[str]) -> list[str]:
    """`from x import a` and `from x import b` in one line."""
    modules: dict[str, list[str]] = {}
    for line in sorted(one for one in set(lines) if one.startswith("from ")):
        module, _, name = line.removeprefix("from ").partition(" import ")
        modules.setdefault(module, []).append(name)
    plain = sorted(one for one in set(lines) if one.startswith("import "))
    joined = (f"from {module} import {', '.join(names)}" for module, names in modules.items())
    return [*plain, *joined]
