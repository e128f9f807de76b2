"""Our own classes as source text that needs torch alone: what a class uses comes along.

The exporter writes the very code that runs here, so that the two cannot drift apart.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

from neural.language.declaration import Declared

ONLY_DECLARED = {
    "advice", "build", "cost", "extra", "fits", "head_problem", "learned_cost", "parameters", "shape", "tiny", "verify",
}  # fmt: skip
"""Methods that the checker reads; a running network has no use for them."""
GIVEN = {"torch", "nn", "functional", "Tensor", "annotations", "TYPE_CHECKING"}
"""Names that the exported file's own first lines import."""
_SHAPED = re.compile(r'(?:Float|Int|Bool)\[Tensor, "[^"]*"\]')


@dataclass
class Bundle:
    """Pieces of source in the order in which they need each other, and the imports they need."""

    pieces: dict[str, str] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    _open: set[str] = field(default_factory=set)

    def add(self, name: str, module: ModuleType) -> None:
        """Add what `name` means in a module, and everything that it uses."""
        if name in self.pieces or name in self._open or name in GIVEN:
            return
        node, home, imported = _find(name, module)
        if imported is not None:
            self.imports.add(imported)
        if node is None or not comes_along(home.__name__):
            return
        self._open.add(name)
        node = _kept(node)
        for used in _names(node):
            self.add(used, home)
        text = inspect.getsource(home)
        self.pieces[name] = _SHAPED.sub("Tensor", _text(node, text, self.imports)).replace("  # fmt: skip", "")
        self._open.discard(name)


@cache
def _statements(module: ModuleType) -> dict[str, ast.stmt]:
    """What brings each name into a module: its definition, or an import anywhere in it."""
    found: dict[str, ast.stmt] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.stmt):
            found = dict.fromkeys(_brought(node), node) | found
    return found


def _brought(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [_called(one) for one in node.names]
    if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.col_offset == 0:
        return [node.name]
    if isinstance(node, ast.Assign) and node.col_offset == 0:
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _called(one: ast.alias) -> str:
    return one.asname or one.name.partition(".")[0]


def comes_along(module: str) -> bool:
    """Whether code of this module is written into the file: ours that runs, and what packages of others bring."""
    return module.startswith("neural.modules.") or _package(module) != "neural"


def _package(module: str) -> str:
    return module.partition(".")[0]


def _find(name: str, module: ModuleType) -> tuple[ast.stmt | None, ModuleType, str | None]:
    """Where a name is defined, following imports inside its package and ours; or the import line that brings it in."""
    node = _statements(module).get(name)
    if isinstance(node, ast.Assign):
        late = re.fullmatch(rf"late\('([\w.]+)\.{name}'\)", ast.unparse(node.value))
        return (None, module, f"from {late[1]} import {name}") if late else (node, module, None)
    if isinstance(node, ast.Import):
        one = next(one for one in node.names if _called(one) == name)
        return None, module, ast.unparse(ast.Import([one]))
    if isinstance(node, ast.ImportFrom):
        if _package(str(node.module)) not in ("neural", _package(module.__name__)):
            given = node.module in ("torch", "jaxtyping")
            return None, module, None if given else f"from {node.module} import {name}"
        if node.module == "neural.modules.late":
            return None, module, None
        return _find(name, importlib.import_module(str(node.module)))
    return node, module, None


def _kept(node: ast.stmt) -> ast.stmt:
    """A class without what only the checker reads."""
    if isinstance(node, ast.ClassDef):
        node.body = [
            part for part in node.body
            if not (isinstance(part, ast.FunctionDef) and part.name in ONLY_DECLARED)
            and not (isinstance(part, ast.AnnAssign) and ast.unparse(part.annotation).startswith("ClassVar"))
        ]  # fmt: skip
    return node


def _names(node: ast.AST) -> Iterator[str]:
    """The names that a piece of code uses; bases first."""
    if isinstance(node, ast.ClassDef):
        yield from (base.id for base in node.bases if isinstance(base, ast.Name))
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id


def _text(node: ast.stmt, text: str, imports: set[str]) -> str:
    """The source of a piece, rewritten to stand alone."""
    lines = text.splitlines()
    if not isinstance(node, ast.ClassDef):
        return "\n".join(lines[node.lineno - 1 : node.end_lineno])
    fields = [part for part in node.body if _is_setting(part)]
    bases = [_base(base) for base in node.bases]
    header = f"class {node.name}({', '.join(one for one in bases if one)}):".replace("()", "")
    out = ["@" + ast.unparse(one) for one in node.decorator_list]
    if fields:
        imports.add("from dataclasses import dataclass")
        out.append("@dataclass(frozen=True)")
    out.append(header)
    for index, part in enumerate(node.body):
        # a method with a compiled kernel is exported as its own body, which is plain torch
        decorators = [one for one in getattr(part, "decorator_list", []) if not _is_compiled(one)]
        first = min([part.lineno, *(one.lineno for one in decorators)])
        if index and not lines[first - 2].strip():
            out.append("")
        if _is_setting(part):
            assert isinstance(part, ast.AnnAssign) and isinstance(part.value, ast.Call)
            default = next((one.value for one in part.value.keywords if one.arg == "default"), None)
            value = f" = {ast.unparse(default)}" if default is not None else ""
            out.append(f"    {ast.unparse(part.target)}: {ast.unparse(part.annotation)}{value}")
        else:
            out += lines[first - 1 : part.end_lineno]
    return "\n".join(out)


def _base(base: ast.expr) -> str | None:
    name = ast.unparse(base)
    if name == "Module":
        return "nn.Module"
    return None if name in ("Declared", "Named", "Loss") else name


def _is_compiled(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).startswith("compiled(")


def _is_setting(part: ast.stmt) -> bool:
    """Whether this is an argument of a declaration: a field with a call for its value."""
    return isinstance(part, ast.AnnAssign) and isinstance(part.value, ast.Call)


def arguments(module: Any) -> list[Any]:
    """What one of our modules was made with."""
    args, named = getattr(module, "made_with", ((), {}))
    return [*args, *named.values()]


def expression(made: Any) -> str:
    """The call that makes a module or a declared value, as Python."""
    if isinstance(made, Declared):
        given = {one.name: getattr(made, one.name) for one in made.settings().values()}
        defaults = {one.name: one.default for one in made.settings().values()}
        said = [f"{name}={expression(value)}" for name, value in given.items() if value != defaults[name]]
        return f"{type(made).__name__}({', '.join(said)})"
    if hasattr(made, "made_with"):
        args, named = made.made_with
        defaults = {name: one.default for name, one in inspect.signature(type(made).__init__).parameters.items()}
        said = [f"{name}={expression(value)}" for name, value in named.items() if value != defaults.get(name)]
        return f"{type(made).__name__}({', '.join([*map(expression, args), *said])})"
    if isinstance(made, list):
        return f"[{', '.join(map(expression, made))}]"
    if type(made).__module__.startswith("torch.nn"):
        return f"nn.{made!r}"   # torch's own leaves print the call that makes them
    if isinstance(made, str):
        return '"' + made.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(made)
