"""Meaning of a name in a source file: a definition that is copied, or an import that stays.

For source export (standalone_file.py), which copies the code that a network uses into one file,
"the file" below. `user` is the name of the module in which a name is used.
"""

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

from neural.core.errors import NeuralError
from neural.nn import lazy_torch
from neural.nn.source_export.scopes import NameUse, binding_name, bound_names


class SourceExportError(NeuralError, ValueError):
    """The source of a network cannot be exported; the message names the obstacle."""


@dataclass(frozen=True)
class SourceSymbol:
    """A module-level name with its module, or the module itself if `name` is empty."""

    module: str
    name: str = ""


TORCH, TENSOR = SourceSymbol("torch"), SourceSymbol("torch", "Tensor")
NN, NN_MODULE = SourceSymbol("torch.nn"), SourceSymbol("torch.nn", "Module")
FUNCTIONAL = SourceSymbol("torch.nn.functional")
LAZY_TORCH_MODULE = lazy_torch.__name__
"""Name of our module whose objects stand for torch, which they import at first use."""
LAZY_TORCH_SYMBOLS = {"torch": TORCH, "nn": NN, "functional": FUNCTIONAL, "Module": NN_MODULE}

Import = ast.Import | ast.ImportFrom


class SourceModule:
    """The parsed source of a module: the statements that bind each of its names."""

    def __init__(self, module: ModuleType) -> None:
        self.name, self.module = module.__name__, module
        try:
            text = inspect.getsource(module)
        except (OSError, TypeError):
            if not hasattr(module, "__path__"):  # a package may have no or an empty __init__.py
                raise SourceExportError(
                    f"the source of the module `{self.name}` cannot be read: put the code in a file"
                ) from None
            text = ""
        self.text = text.encode()
        self.line_starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.line_starts.append(self.line_starts[-1] + len(line))
        self.imports: dict[str, list[tuple[Import, ast.alias]]] = {}
        self.star_imports: list[ast.ImportFrom] = []
        self.units: dict[str, SourceUnit] = {}
        self._read(ast.parse(text))

    def _read(self, tree: ast.Module) -> None:
        """Fill `imports`, `star_imports` and `units` from the top-level statements."""
        statements = [(statement, False) for statement in tree.body]
        while statements:
            statement, type_only = statements.pop(0)  # type_only: inside `if TYPE_CHECKING`
            if isinstance(statement, ast.If) and _is_type_checking(statement.test):
                body = [(inner, True) for inner in statement.body]
                otherwise = [(inner, type_only) for inner in statement.orelse]
                statements = [*body, *otherwise, *statements]
            elif isinstance(statement, Import):
                self._read_import(statement)
            else:
                self._define(statement, type_only)
        for name in set(self.units) & set(self.imports):
            # Imported and bound again: keep all statements, in their order.
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
        """Add a statement to the unit that binds or changes the same names."""
        names = bound_names([statement])
        changed = _find_changed_name(statement)
        if not names and changed in self.units:
            names = {str(changed)}
        if not names:
            return
        unit = SourceUnit(self, [statement], names, type_only)
        for other in {self.units[name] for name in names & set(self.units)}:
            unit.statements += other.statements
            unit.names = unit.names | other.names
        unit.statements.sort(key=lambda node: node.lineno)
        self.units |= dict.fromkeys(unit.names, unit)

    def span(self, node: Any) -> tuple[int, int]:
        """Start and end (exclusive) of a syntax node, as byte offsets in `text`."""
        start = self.line_starts[node.lineno - 1] + node.col_offset
        return start, self.line_starts[node.end_lineno - 1] + node.end_col_offset

    def resolve(self, name: str) -> SourceSymbol | None:
        """Symbol of a module-level name; None for builtins, LookupError if nothing binds it."""
        if self.name == LAZY_TORCH_MODULE and name in LAZY_TORCH_SYMBOLS:
            return LAZY_TORCH_SYMBOLS[name]
        if name in self.units:
            return self._resolve_lazy_import(self.units[name]) or SourceSymbol(self.name, name)
        if name in self.imports:
            return self.resolve_import(*self.imports[name][-1])
        for statement in self.star_imports:
            module = importlib.import_module(self._absolute_name(statement))
            if name in getattr(module, "__all__", vars(module)):
                return resolve_attribute(module.__name__, name, self.name)
        if hasattr(builtins, name) or (name.startswith("__") and name.endswith("__")):
            return None
        raise LookupError(name)

    def resolve_import(self, statement: Import, alias: ast.alias) -> SourceSymbol:
        """Symbol that an import names.

        If that module is copied, its own imports are followed to the definition.
        """
        if isinstance(statement, ast.Import):
            return SourceSymbol(alias.name if alias.asname else alias.name.partition(".")[0])
        return resolve_attribute(self._absolute_name(statement), alias.name, self.name)

    def _absolute_name(self, statement: ast.ImportFrom) -> str:
        """Absolute name of the module that a `from` import, maybe a relative one, names."""
        package = self.module.__package__ or self.name.rpartition(".")[0]
        return resolve_name("." * statement.level + (statement.module or ""), package)

    def _resolve_lazy_import(self, unit: SourceUnit) -> SourceSymbol | None:
        """The module in `checkpoint = lazy_import("torch.utils.checkpoint")`; None for others."""
        value = getattr(unit.statements[0], "value", None)
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.args):
            return None
        imports, argument = self.imports.get(value.func.id), value.args[0]
        if not imports or self.resolve_import(*imports[-1]) != SourceSymbol(
            LAZY_TORCH_MODULE, "lazy_import"
        ):
            return None
        return SourceSymbol(str(argument.value)) if isinstance(argument, ast.Constant) else None


@dataclass(eq=False)
class SourceUnit:
    """Statements that define names together; usually one statement and one name.

    Several statements are one unit if they bind or change the same name, as `if … else` or
    `TABLE = {}` and `TABLE["a"] = 1`.
    """

    module: SourceModule
    statements: list[ast.stmt]
    names: set[str]
    type_only: bool = False
    """Whether the statements are inside `if TYPE_CHECKING`."""

    @property
    def symbols(self) -> list[SourceSymbol]:
        """The symbols that the statements define."""
        return [SourceSymbol(self.module.name, name) for name in sorted(self.names)]


@cache
def _parse_module(module: ModuleType) -> SourceModule:
    return SourceModule(module)


def load_source_module(name: str) -> SourceModule:
    """The parsed source of a module, imported if necessary."""
    return _parse_module(sys.modules.get(name) or importlib.import_module(name))


def resolve_attribute(base: str, name: str, user: str) -> SourceSymbol:
    """Symbol of `from base import name` in the module `user`."""
    full_name = f"{base}.{name}"
    if is_copied(base, user):
        module = load_source_module(base)
        is_bound = (
            name in module.units or name in module.imports or module.name == LAZY_TORCH_MODULE
        )
        if not is_bound and full_name in sys.modules:  # a submodule
            return SourceSymbol(full_name)
        return module.resolve(name) or SourceSymbol(base, name)
    return SourceSymbol(full_name) if full_name in sys.modules else SourceSymbol(base, name)


def resolve_use(module: SourceModule, use: NameUse) -> tuple[SourceSymbol | None, ast.AST]:
    """Symbol of a name or, if the name is a module, of its attribute (`module.attribute`).

    Also returns the syntax node where that expression ends. The symbol is None for builtins, and
    for a name that an import inside a function binds if that import is copied with the function.
    """
    if use.local_import is not None:
        alias = next(alias for alias in use.local_import.names if binding_name(alias) == use.name)
        symbol: SourceSymbol | None = module.resolve_import(use.local_import, alias)
        if not is_removed(use.local_import, module):
            return None, use.node
        imports = [(use.local_import, alias)]
    else:
        symbol = module.resolve(use.name)
        imports = module.imports.get(use.name, [])
    # `import a.b.c` binds `a`, but a use of `a.b.c` means the submodule.
    dotted_imports = [
        alias.name for node, alias in imports if isinstance(node, ast.Import) and not alias.asname
    ]
    last_node: ast.AST = use.node
    for attribute in use.chain:
        if symbol is None or symbol.name:
            break
        submodule = f"{symbol.module}.{attribute.attr}"
        if is_copied(symbol.module, module.name):
            symbol = resolve_attribute(symbol.module, attribute.attr, module.name)
            if not isinstance(attribute.ctx, ast.Load):
                where = f"{module.name}, line {attribute.lineno}"
                raise SourceExportError(f"{where}: sets `{attribute.attr}` of another module")
        elif any(name == submodule or name.startswith(f"{submodule}.") for name in dotted_imports):
            symbol = SourceSymbol(submodule)
        else:
            break
        last_node = attribute
    if symbol is not None and not symbol.name and is_copied(symbol.module, module.name):
        where = f"{module.name}, line {use.node.lineno}"
        raise SourceExportError(f"{where}: uses the module `{symbol.module}` as a value")
    return symbol, last_node


def is_removed(node: Import, module: SourceModule) -> bool:
    """Whether an import inside a function is removed because the file has copies instead."""
    if isinstance(node, ast.ImportFrom) and node.module == LAZY_TORCH_MODULE:
        return True
    symbols = [module.resolve_import(node, alias) for alias in node.names if alias.name != "*"]
    copied = [is_copied(symbol.module, module.name) for symbol in symbols]
    if any(copied) and not all(copied):
        raise SourceExportError(f"{module.name}, line {node.lineno}: write one import per line")
    return any(copied)


def find_definition(value: Any) -> SourceSymbol:
    """The top-level definition of a class or a function."""
    module, qualname = value.__module__, value.__qualname__
    root = qualname.partition(".")[0]
    if "<" in qualname:
        name = value.__name__
        raise SourceExportError(
            f"`{name}` is defined inside a function of `{module}`: move it to the top level"
        )
    if is_copied(module, module) and root not in load_source_module(module).units:
        raise SourceExportError(f"no statement of the module `{module}` defines `{root}`")
    return SourceSymbol(module, root)


def is_copied(name: str, user: str) -> bool:
    """Whether code of the module `name` is copied into the file if the module `user` uses it.

    Our own code, the package of `user` and files beside that package are copied. All other modules
    are imported.
    """
    root, user_root = name.partition(".")[0], user.partition(".")[0]
    if root in ("neural", user_root):
        return root != "torch" and root not in sys.stdlib_module_names
    if user_root == "neural" or root in sys.stdlib_module_names:
        return False
    folder = _find_folder(user_root)
    return (
        folder is not None
        and folder not in _find_library_folders()
        and _find_folder(root) == folder
    )


def is_installed(module: str) -> bool:
    """Whether a module belongs to the standard library or to an installed package."""
    root = module.partition(".")[0]
    return root in sys.stdlib_module_names or _find_folder(root) in _find_library_folders()


@cache
def _find_library_folders() -> frozenset[Path]:
    """Folders of the standard library and of installed packages."""
    folders = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    return frozenset(Path(folder).resolve() for folder in folders)


def _find_folder(root: str) -> Path | None:
    """The folder that contains a top-level module or package; None if it has no file."""
    file = getattr(sys.modules.get(root), "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    return path.parent.parent if path.stem == "__init__" else path.parent


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _find_changed_name(statement: ast.stmt) -> str | None:
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
