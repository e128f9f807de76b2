"""What a name in a source file means: a definition that is copied, or an import that stays."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import site
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

from neural.modules.source.scopes import NameUse, binding_name, bound_names


class CannotCompile(ValueError):
    """The source of a network cannot be written; the message names what stands in the way."""


@dataclass(frozen=True)
class Symbol:
    """What a name means: a definition of a module, or the module itself where `name` is empty."""

    module: str
    name: str = ""


TORCH, TENSOR = Symbol("torch"), Symbol("torch", "Tensor")
NN, NN_MODULE = Symbol("torch.nn"), Symbol("torch.nn", "Module")
FUNCTIONAL = Symbol("torch.nn.functional")
LATE = "neural.modules.late"
LATE_SYMBOLS = {"torch": TORCH, "nn": NN, "functional": FUNCTIONAL, "Module": NN_MODULE}

Import = ast.Import | ast.ImportFrom


class SourceModule:
    """The parsed source of a module: what binds each of its names."""

    def __init__(self, module: ModuleType) -> None:
        self.name, self.module = module.__name__, module
        try:
            text = inspect.getsource(module)
        except (OSError, TypeError):
            if not hasattr(module, "__path__"):  # the file of a package may be empty or missing
                raise CannotCompile(
                    f"the source of the module `{self.name}` cannot be read: put the code in a file"
                ) from None
            text = ""
        self.text = text.encode()
        self.line_starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.line_starts.append(self.line_starts[-1] + len(line))
        self.imports: dict[str, list[tuple[Import, ast.alias]]] = {}
        self.star_imports: list[ast.ImportFrom] = []
        self.units: dict[str, Unit] = {}
        self._read(ast.parse(text))

    def _read(self, tree: ast.Module) -> None:
        statements = [(statement, False) for statement in tree.body]
        while statements:
            statement, type_only = statements.pop(0)
            if isinstance(statement, ast.If) and _is_type_checking(statement.test):
                body = [(part, True) for part in statement.body]
                otherwise = [(part, type_only) for part in statement.orelse]
                statements = [*body, *otherwise, *statements]
            elif isinstance(statement, Import):
                self._read_import(statement)
            else:
                self._define(statement, type_only)
        for name in set(self.units) & set(self.imports):
            # imported and bound again: all statements count, in their order
            unit = self.units[name]
            unit.statements += [statement for statement, _ in self.imports.pop(name)]
            unit.statements.sort(key=lambda node: node.lineno)

    def _read_import(self, statement: Import) -> None:
        for alias in statement.names:
            if alias.name == "*" and isinstance(statement, ast.ImportFrom):
                self.star_imports.append(statement)
            else:
                self.imports.setdefault(binding_name(alias), []).append((statement, alias))

    def _define(self, statement: ast.stmt, type_only: bool) -> None:
        """Join the statement with those that bind or change the same names."""
        names = bound_names([statement])
        changed = _changed_name(statement)
        if not names and changed in self.units:
            names = {str(changed)}
        if not names:
            return
        unit = Unit(self, [statement], names, type_only)
        for other in {self.units[name] for name in names & set(self.units)}:
            unit.statements += other.statements
            unit.names = unit.names | other.names
        unit.statements.sort(key=lambda node: node.lineno)
        self.units |= dict.fromkeys(unit.names, unit)

    def span(self, node: Any) -> tuple[int, int]:
        """The bytes at which a node begins and ends."""
        start = self.line_starts[node.lineno - 1] + node.col_offset
        return start, self.line_starts[node.end_lineno - 1] + node.end_col_offset

    def resolve(self, name: str) -> Symbol | None:
        """What a module-level name means; None for builtins, LookupError where nothing binds it."""
        if self.name == LATE and name in LATE_SYMBOLS:
            return LATE_SYMBOLS[name]
        if name in self.units:
            return self._late_module(self.units[name]) or Symbol(self.name, name)
        if name in self.imports:
            return self.imported(*self.imports[name][-1])
        for statement in self.star_imports:
            module = importlib.import_module(self._absolute(statement))
            if name in getattr(module, "__all__", vars(module)):
                return attribute_of(module.__name__, name, self.name)
        if hasattr(builtins, name) or (name.startswith("__") and name.endswith("__")):
            return None
        raise LookupError(name)

    def imported(self, statement: Import, alias: ast.alias) -> Symbol:
        """What an import brings in, followed to its definition where that is copied as well."""
        if isinstance(statement, ast.Import):
            return Symbol(alias.name if alias.asname else alias.name.partition(".")[0])
        return attribute_of(self._absolute(statement), alias.name, self.name)

    def _absolute(self, statement: ast.ImportFrom) -> str:
        """The module that an import names, also where it is relative."""
        package = self.module.__package__ or self.name.rpartition(".")[0]
        return resolve_name("." * statement.level + (statement.module or ""), package)

    def _late_module(self, unit: Unit) -> Symbol | None:
        """`checkpoint = late("torch.utils.checkpoint")` is an import."""
        value = getattr(unit.statements[0], "value", None)
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.args):
            return None
        origin, named = self.imports.get(value.func.id), value.args[0]
        if not origin or self.imported(*origin[-1]) != Symbol(LATE, "late"):
            return None
        return Symbol(str(named.value)) if isinstance(named, ast.Constant) else None


@dataclass(eq=False)
class Unit:
    """The statements that define some names together; most often one statement and one name."""

    module: SourceModule
    statements: list[ast.stmt]
    names: set[str]
    type_only: bool = False
    """Whether it stands under `if TYPE_CHECKING`."""

    @property
    def symbols(self) -> list[Symbol]:
        """What it defines."""
        return [Symbol(self.module.name, name) for name in sorted(self.names)]


@cache
def _parsed(module: ModuleType) -> SourceModule:
    return SourceModule(module)


def source_module(name: str) -> SourceModule:
    """The parsed source of a module."""
    return _parsed(sys.modules.get(name) or importlib.import_module(name))


def attribute_of(base: str, name: str, user: str) -> Symbol:
    """What `from base import name` means in the module `user`."""
    full = f"{base}.{name}"
    if is_copied(base, user):
        module = source_module(base)
        is_bound = name in module.units or name in module.imports or module.name == LATE
        if not is_bound and full in sys.modules:
            return Symbol(full)
        return module.resolve(name) or Symbol(base, name)
    return Symbol(full) if full in sys.modules else Symbol(base, name)


def meaning(module: SourceModule, use: NameUse) -> tuple[Symbol | None, ast.AST]:
    """What a name, or an attribute of a module by that name, means; and the node that ends it."""
    if use.local_import is not None:
        alias = next(one for one in use.local_import.names if binding_name(one) == use.name)
        symbol: Symbol | None = module.imported(use.local_import, alias)
        if not is_removed(use.local_import, module):
            return None, use.node
        imports = [(use.local_import, alias)]
    else:
        symbol = module.resolve(use.name)
        imports = module.imports.get(use.name, [])
    # `import a.b.c` binds `a`, but it is `a.b.c` that is meant
    dotted = [
        alias.name for node, alias in imports if isinstance(node, ast.Import) and not alias.asname
    ]
    last: ast.AST = use.node
    for attribute in use.chain:
        if symbol is None or symbol.name:
            break
        deeper = f"{symbol.module}.{attribute.attr}"
        if is_copied(symbol.module, module.name):
            symbol = attribute_of(symbol.module, attribute.attr, module.name)
            if not isinstance(attribute.ctx, ast.Load):
                where = f"{module.name}, line {attribute.lineno}"
                raise CannotCompile(f"{where}: sets `{attribute.attr}` of another module")
        elif any(name == deeper or name.startswith(f"{deeper}.") for name in dotted):
            symbol = Symbol(deeper)
        else:
            break
        last = attribute
    if symbol is not None and not symbol.name and is_copied(symbol.module, module.name):
        where = f"{module.name}, line {use.node.lineno}"
        raise CannotCompile(f"{where}: uses the module `{symbol.module}` as a value")
    return symbol, last


def is_removed(node: Import, module: SourceModule) -> bool:
    """Whether an import inside a function is left out, because what it brings in is copied."""
    if isinstance(node, ast.ImportFrom) and node.module == LATE:
        return True
    symbols = [module.imported(node, alias) for alias in node.names if alias.name != "*"]
    copied = [is_copied(symbol.module, module.name) for symbol in symbols]
    if any(copied) and not all(copied):
        raise CannotCompile(f"{module.name}, line {node.lineno}: write one import per line")
    return any(copied)


def definition_of(value: Any) -> Symbol:
    """The top-level definition that a class or a function belongs to."""
    module, qualname = value.__module__, value.__qualname__
    root = qualname.partition(".")[0]
    if "<" in qualname:
        name = value.__name__
        raise CannotCompile(
            f"`{name}` is defined inside a function of `{module}`: move it to the top level"
        )
    if is_copied(module, module) and root not in source_module(module).units:
        raise CannotCompile(f"`{root}` is defined by no statement of the module `{module}`")
    return Symbol(module, root)


def is_copied(name: str, user: str) -> bool:
    """Whether code of a module is written into the file, where the module `user` uses it.

    That is our own code, that of the package which uses it, and files beside that package; what is
    installed otherwise is imported.
    """
    root, own = name.partition(".")[0], user.partition(".")[0]
    if root in ("neural", own):
        return root != "torch" and root not in sys.stdlib_module_names
    if own == "neural" or root in sys.stdlib_module_names:
        return False
    folder = _folder_of(own)
    return folder is not None and folder not in _library_folders() and _folder_of(root) == folder


def is_installed(module: str) -> bool:
    """Whether a module belongs to Python or to an installed package."""
    root = module.partition(".")[0]
    return root in sys.stdlib_module_names or _folder_of(root) in _library_folders()


@cache
def _library_folders() -> frozenset[Path]:
    folders = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    return frozenset(Path(folder).resolve() for folder in folders)


def _folder_of(root: str) -> Path | None:
    """The folder that a top-level module or package lies in."""
    file = getattr(sys.modules.get(root), "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    return path.parent.parent if path.stem == "__init__" else path.parent


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _changed_name(statement: ast.stmt) -> str | None:
    """The name whose value a statement changes without binding it: `TABLE[1] = 2`."""
    node: Any = None
    if isinstance(statement, ast.Assign):
        node = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        node = statement.target
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        node = statement.value.func
    if not isinstance(node, ast.Attribute | ast.Subscript):
        return None
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
