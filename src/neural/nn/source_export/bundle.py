"""The definitions and imports that an exported file needs, with names that do not collide.

Source export (standalone_file.py) writes a network as one Python file: our own code and that of the
user is copied, libraries are imported. A symbol is a module-level name with its module; a unit is
the statements that define it, usually one class or function (symbols.py). A declaration is a class
whose arguments a `.neural` program may set. An annotation is a type annotation.
"""

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

from neural.core.names import to_snake_case
from neural.language.declaration import Declaration
from neural.nn.lazy_torch import nn, torch
from neural.nn.source_export.definitions import (
    DATACLASS,
    CopiedDefinition,
    SymbolReference,
    find_self_attributes,
    is_declaration,
)
from neural.nn.source_export.scopes import NameUse, collect_identifiers, find_name_uses
from neural.nn.source_export.symbols import (
    FUNCTIONAL,
    LAZY_TORCH_MODULE,
    NN,
    NN_MODULE,
    TENSOR,
    TORCH,
    SourceExportError,
    SourceModule,
    SourceSymbol,
    SourceUnit,
    find_definition,
    is_copied,
    is_installed,
    load_source_module,
    resolve_use,
)

STANDARD_IMPORTS = {TORCH: "torch", TENSOR: "Tensor", NN: "nn", FUNCTIONAL: "functional"}
"""Imports that every exported file may have, under fixed names."""
RESERVED_NAMES = frozenset({"print", "range", "super", "tuple", "annotations", "TYPE_CHECKING"})
"""Names that the generated text around the copied definitions uses."""


class SourceBundle:
    """Definitions and imports that an exported file needs.

    Methods must be called in this order: `add_value` adds values with everything they use,
    `choose_names` chooses names, the `format_` and `render_` methods return text.
    """

    def __init__(self) -> None:
        self.definitions_by_unit: dict[SourceUnit, CopiedDefinition] = {}
        """The copied definitions, by their unit in the original module."""
        self.imports: dict[SourceSymbol, bool] = {}
        """Whether an imported symbol is needed at run time, not only in annotations."""
        self.names: dict[SourceSymbol, str] = {}
        """Name of each symbol in the file; set by `choose_names`."""
        self._classes: list[type] = []
        """Classes of the modules and declarations that were added."""
        self._units: dict[SourceSymbol, SourceUnit] = {}
        """The copied unit that defines each symbol."""

    # --- dependencies -----------------------------------------------------------------------------

    def add_value(self, value: Any) -> None:
        """Add what is needed to write a module, a declaration or a constructor argument."""
        if isinstance(value, Declaration):
            self._add_class(type(value))
            self._add_values(getattr(value, name) for name in value.argument_specs())
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
                # Constructor arguments, which `Module` of lazy_torch.py records.
                args, keywords = getattr(module, "init_args", ((), {}))
                self._add_values([*args, *keywords.values()])

    def _add_values(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add_value(value)

    def _add_class(self, cls: type) -> None:
        """Add a class of our package or the user's, with everything that it uses."""
        self._classes.append(cls)
        self.add_symbol(find_definition(cls), cls.__module__)

    def _add_definition(self, value: type | FunctionType) -> None:
        """Add another class or function; one of a library is imported."""
        if value.__module__ == "builtins":
            return
        if is_installed(value.__module__):
            symbol = SourceSymbol(value.__module__, value.__qualname__.partition(".")[0])
            self.imports[symbol] = True
        else:
            self.add_symbol(find_definition(value), value.__module__)

    def add_symbol(self, symbol: SourceSymbol, user: str) -> None:
        """Add a symbol that the module named `user` uses, as a copy or an import.

        Symbols of our own modules and of the package that `user` belongs to are copied.
        """
        if not is_copied(symbol.module, user) or not symbol.name:
            self.imports[symbol] = True
            return
        if symbol.module == LAZY_TORCH_MODULE:
            raise SourceExportError(
                f"`{LAZY_TORCH_MODULE}.{symbol.name}` cannot be part of a file without neural"
            )
        unit = load_source_module(symbol.module).units[symbol.name]
        if unit in self.definitions_by_unit:
            return
        definition = self.definitions_by_unit[unit] = CopiedDefinition(unit)
        self._units |= dict.fromkeys(unit.symbols, unit)
        statements = definition.strip(self._members_in_use(unit))
        definition.identifiers.update(collect_identifiers(statements))
        if definition.has_fields:
            self.imports[DATACLASS] = True
        for use in find_name_uses(statements):
            self._add_reference(definition, use)

    def _members_in_use(self, unit: SourceUnit) -> set[str]:
        """Members of a declaration that its methods or those of added subclasses use.

        `strip` keeps them, although they are not needed in most files.
        """
        needed: set[str] = set()
        for name in unit.names:
            defined: Any = getattr(unit.module.module, name, None)
            if is_declaration(defined):
                derived = [cls for cls in self._classes if issubclass(cls, defined)]
                for cls in {base for subclass in (defined, *derived) for base in subclass.__mro__}:
                    if is_declaration(cls) and is_copied(cls.__module__, unit.module.name):
                        needed |= find_self_attributes(cls)
        return needed

    def _add_reference(self, definition: CopiedDefinition, use: NameUse) -> None:
        """Record the use of a name and add its symbol; ignores unresolved names in annotations."""
        module = definition.unit.module
        is_typing = use.in_annotation or definition.unit.type_only
        try:
            # Of a dotted name `a.b.c` the symbol may be `a.b`: `last_node` is where it ends.
            symbol, last_node = resolve_use(module, use)
        except (LookupError, SourceExportError) as error:
            if is_typing:
                return
            if isinstance(error, SourceExportError):
                raise
            where = f"{module.name}, line {use.node.lineno}"
            raise SourceExportError(
                f"{where}: no statement of the module defines `{use.name}`"
            ) from None
        if symbol is None:
            if use.local_import is None:
                definition.builtins.add(use.name)
            return
        if is_typing and symbol.module == "jaxtyping":
            return  # shape annotations are removed
        if isinstance(use.node, ast.Global):
            start, end = _find_in_global(module, use.node, use.name)
        else:
            start, end = module.span(use.node)[0], module.span(last_node)[1]
        spelling = module.text[start:end].decode(errors="replace")
        definition.references.append(SymbolReference(start, end, symbol, spelling, use))
        if symbol == NN_MODULE:  # our lazy `Module` is written as `nn.Module`, which needs `nn`
            self.imports[NN] = True
        elif not is_typing:
            self.add_symbol(symbol, module.name)
        elif not is_copied(symbol.module, module.name) or not symbol.name:
            # Types of the standard library are imported normally, others only for type checkers.
            root = symbol.module.partition(".")[0]
            self.imports.setdefault(symbol, root in sys.stdlib_module_names)
        elif not symbol.module.startswith("neural.") or symbol.module.startswith(
            ("neural.nn.", "neural.tasks.")
        ):
            self.add_symbol(symbol, module.name)
        # Annotations with types of our other packages stay without an import: the file has
        # `from __future__ import annotations`, so they are never evaluated.

    # --- names ------------------------------------------------------------------------------------

    def choose_names(self) -> None:
        """Choose a name for every symbol: its own unless another symbol or a local name has it."""
        references: dict[SourceSymbol, list[SymbolReference]] = {}
        definitions = self.definitions_by_unit.values()
        for definition in definitions:
            for reference in definition.references:
                references.setdefault(reference.symbol, []).append(reference)
        used_builtins = {name for definition in definitions for name in definition.builtins}
        all_identifiers = {name for definition in definitions for name in definition.identifiers}
        self.names = dict(STANDARD_IMPORTS)
        taken = {*STANDARD_IMPORTS.values(), *RESERVED_NAMES, *used_builtins}
        imported = set(self.imports) - set(STANDARD_IMPORTS)
        symbols = [symbol for unit in self.definitions_by_unit for symbol in unit.symbols]
        symbols += sorted(imported, key=lambda symbol: (symbol.module, symbol.name))

        def is_renamable(symbol: SourceSymbol) -> bool:
            return not any(reference.is_fixed for reference in references.get(symbol, []))

        # Symbols that cannot be renamed come first (False < True) and keep their own names.
        for symbol in sorted(symbols, key=is_renamable):
            uses = references.get(symbol, [])
            name = symbol.name or symbol.module.rpartition(".")[2]
            if symbol in imported and uses:
                name = uses[0].spelling.rpartition(".")[2]  # the alias in our code, e.g. `np`
            is_shadowed = any(
                reference.spelling != name and name in reference.use.local_names
                for reference in uses
            )
            if name in taken or is_shadowed or iskeyword(name):
                if not is_renamable(symbol):
                    raise SourceExportError(
                        f"{symbol.module}: `{name}` must be renamed, but is used in an f-string"
                    )
                name = _disambiguate_name(symbol, name, taken | all_identifiers)
            self.names[symbol] = name
            taken.add(name)

    def free_name(self, name: str, suffix: str) -> str:
        """`name`, with `suffix` appended until no symbol, keyword or builtin has that name."""
        taken = {*self.names.values(), *RESERVED_NAMES}
        while name in taken or iskeyword(name) or hasattr(builtins, name):
            name += suffix
        return name

    # --- expressions ------------------------------------------------------------------------------

    def format_call_name(self, definition: Any) -> str:
        """The name of a class or function in the file; with dots if it is nested in a class."""
        inner = definition.__qualname__.partition(".")[2]
        return self.names[find_definition(definition)] + (f".{inner}" if inner else "")

    def format_expression(self, value: Any) -> str:
        """The Python expression that creates a module, a declared value or a literal."""
        if isinstance(value, Declaration):
            specs = value.argument_specs().values()
            arguments = {spec.name: (getattr(value, spec.name), spec.default) for spec in specs}
            keywords = ", ".join(self._format_keywords(arguments))
            return f"{self.format_call_name(type(value))}({keywords})"
        if hasattr(value, "init_args"):
            args, kwargs = value.init_args
            parameters = inspect.signature(type(value).__init__).parameters
            defaults = {name: parameter.default for name, parameter in parameters.items()}
            arguments = {name: (arg, defaults.get(name, ...)) for name, arg in kwargs.items()}
            formatted = [*map(self.format_expression, args), *self._format_keywords(arguments)]
            return f"{self.format_call_name(type(value))}({', '.join(formatted)})"
        if isinstance(value, nn.Module):
            return self._format_module(value)
        if isinstance(value, type | FunctionType) and value.__module__ != "builtins":
            return self.format_call_name(value)
        return self._format_literal(value)

    def _format_keywords(self, arguments: dict[str, tuple[Any, Any]]) -> Iterator[str]:
        """`name=value` for each argument that differs from its default.

        `arguments` maps names to (value, default).
        """
        for name, (value, default) in arguments.items():
            if not (type(value) is type(default) and value == default):
                yield f"{name}={self.format_expression(value)}"

    def _format_module(self, module: nn.Module) -> str:
        """The expression of a module whose constructor arguments were not recorded.

        For modules of torch.nn it is their repr, if evaluating that gives an equal module.
        """
        cls, nn_name = type(module), self.names[NN]
        if cls in (nn.Sequential, nn.ModuleList):
            children = ", ".join(map(self.format_expression, module.children()))
            return (
                f"{nn_name}.Sequential({children})"
                if cls is nn.Sequential
                else f"{nn_name}.ModuleList([{children}])"
            )
        if cls.__module__.startswith("torch.nn") and not list(module.children()):
            # torch 2.9 leaves `bias` out of the repr of LayerNorm
            for expression in (repr(module), f"{repr(module)[:-1]}, bias=False)"):
                if _creates_equal_module(expression, module):
                    return f"{nn_name}.{expression}"
        required = [
            parameter
            for parameter in inspect.signature(cls).parameters.values()
            if parameter.default is parameter.empty and parameter.kind < parameter.VAR_POSITIONAL
        ]
        if cls.__module__.startswith("torch.") or required:
            raise SourceExportError(
                f"the arguments of `{cls.__name__}` are unknown; derive it from "
                f"`{LAZY_TORCH_MODULE}.Module`"
            )
        return f"{self.format_call_name(cls)}()"

    def _format_literal(self, value: Any) -> str:
        if isinstance(value, str):
            quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
            return quoted if value.isprintable() else repr(value)
        if isinstance(value, float) and not isfinite(value):
            return f'float("{value}")'
        if value is None or value is ... or isinstance(value, bool | int | float | complex | bytes):
            return repr(value)
        if isinstance(value, list | tuple):
            items = ", ".join(map(self.format_expression, value))
            comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
            return f"[{items}]" if isinstance(value, list) else f"({items}{comma})"
        if isinstance(value, dict):
            pairs = (
                f"{self.format_expression(key)}: {self.format_expression(value[key])}"
                for key in value
            )
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, torch.dtype):
            return repr(value)
        raise SourceExportError(f"a {type(value).__name__} argument cannot be written as Python")

    # --- text -------------------------------------------------------------------------------------

    def render_definitions(self) -> list[str]:
        """The text of the definitions, each after those it needs when the file is imported."""
        ordered: dict[SourceUnit, None] = {}
        for unit in self.definitions_by_unit:
            self._order_unit(unit, ordered, [])
        return [self.definitions_by_unit[unit].render(self.names) for unit in ordered]

    def _order_unit(
        self, unit: SourceUnit, ordered: dict[SourceUnit, None], in_progress: list[SourceUnit]
    ) -> None:
        """Append a unit to `ordered`, after the units that it needs at import.

        What its functions call comes before it too, unless that needs a unit in progress.
        `in_progress` are the units whose dependencies are being appended.
        """
        if unit in ordered or unit in in_progress:
            return
        in_progress.append(unit)
        for other in self._dependencies(unit, at_import=True):
            self._order_unit(other, ordered, in_progress)
        for other in self._dependencies(unit, at_import=False):
            if not self._import_dependencies(other) & set(in_progress):
                self._order_unit(other, ordered, in_progress)
        in_progress.pop()
        ordered[unit] = None

    def _dependencies(self, unit: SourceUnit, *, at_import: bool) -> list[SourceUnit]:
        """Copied units that a unit uses when it is imported, or only when it is called."""
        others = (
            self._units.get(reference.symbol)
            for reference in self.definitions_by_unit[unit].references
            if reference.use.at_import == at_import
        )
        return [other for other in dict.fromkeys(others) if other is not None and other is not unit]

    def _import_dependencies(self, unit: SourceUnit) -> set[SourceUnit]:
        """The unit, and all units that must come before it."""
        needed, todo = {unit}, [unit]
        while todo:
            added = set(self._dependencies(todo.pop(), at_import=True)) - needed
            needed |= added
            todo += added
        return needed

    def render_imports(self) -> tuple[list[str], list[str]]:
        """(import lines of the standard library, all other import lines)."""
        standard, others, for_types = list[str](), list[str](), list[str]()
        for symbol in set(self.imports) - set(STANDARD_IMPORTS):
            line = _format_import(symbol, self.names[symbol])
            if symbol.module.partition(".")[0] in sys.stdlib_module_names:
                standard.append(line)
            else:
                (others if self.imports[symbol] else for_types).append(line)
        if for_types or any(unit.type_only for unit in self.definitions_by_unit):
            standard.append("from typing import TYPE_CHECKING")
        others += [
            _format_import(symbol, name)
            for symbol, name in STANDARD_IMPORTS.items()
            if symbol != FUNCTIONAL
        ]
        if FUNCTIONAL in self.imports:
            others.append(_format_import(FUNCTIONAL, STANDARD_IMPORTS[FUNCTIONAL]))
        lines = _merge_imports(others)
        if for_types:
            lines += [
                "",
                "if TYPE_CHECKING:",
                *(f"    {line}" for line in _merge_imports(for_types)),
            ]
        return _merge_imports(standard), lines

    def required_packages(self) -> list[str]:
        """Packages that the file needs besides torch."""
        roots = {symbol.module.partition(".")[0] for symbol in self.imports if self.imports[symbol]}
        return sorted(roots - {"torch"} - set(sys.stdlib_module_names))


def _creates_equal_module(expression: str, module: nn.Module) -> bool:
    """Whether the repr of a module of torch.nn, evaluated, has the module's repr and weights."""
    with torch.device("meta"):
        # Safe: only the repr of a class of torch is evaluated.
        try:
            recreated = eval(f"nn.{expression}", {"nn": nn})
        except (TypeError, NameError, SyntaxError):
            return False
    return (
        repr(recreated) == repr(module)
        and recreated.state_dict().keys() == module.state_dict().keys()
    )


def _disambiguate_name(symbol: SourceSymbol, name: str, taken: set[str]) -> str:
    """The name with its module as prefix, in the same case: `LOCALIZED_BLOCK_SIZE`.

    A number is appended if that name is taken, too.
    """
    modules = [module for module in symbol.module.split(".") if module.isidentifier()]
    modules = [module for module in modules if module != to_snake_case(name)] or modules
    prefix = modules[-1].strip("_")
    if name.isupper():
        prefixed = f"{prefix.upper()}_{name}"
    elif name[:1].isupper():
        prefixed = "".join(word.capitalize() for word in prefix.split("_")) + name
    else:
        prefixed = f"{prefix}_{name.lstrip('_')}"
    number, candidate = 2, prefixed
    while candidate in taken or iskeyword(candidate) or hasattr(builtins, candidate):
        candidate, number = f"{prefixed}_{number}", number + 1
    return candidate


def _find_in_global(module: SourceModule, node: ast.Global, name: str) -> tuple[int, int]:
    """Byte offsets of a name in a `global` statement."""
    start, end = module.span(node)
    pattern = re.compile(rb"\b" + name.encode() + rb"\b")
    match = pattern.search(module.text, start + len("global"), end)
    assert match is not None
    return match.span()


def _format_import(symbol: SourceSymbol, name: str) -> str:
    """The import statement of a symbol under a name."""
    module, _, imported = symbol.module.rpartition(".")
    if symbol.name:
        module, imported = symbol.module, symbol.name
    alias = f" as {name}" if name != imported else ""
    return f"from {module} import {imported}{alias}" if module else f"import {imported}{alias}"


def _merge_imports(lines: Iterable[str]) -> list[str]:
    """Sorted imports; `from x import a` and `from x import b` become one line."""
    modules: dict[str, list[str]] = {}
    unique = sorted(set(lines))
    for line in (line for line in unique if line.startswith("from ")):
        module, _, name = line.removeprefix("from ").partition(" import ")
        modules.setdefault(module, []).append(name)
    plain = [line for line in unique if line.startswith("import ")]
    merged = (f"from {module} import {', '.join(names)}" for module, names in modules.items())
    return [*plain, *merged]
