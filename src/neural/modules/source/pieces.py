"""A definition as it is written into a file: its own text, without what the file does not need.

The text is edited, not printed anew, so that comments and layout stay. An edit says what stands
between two bytes of the module once every symbol has its name.
"""

from __future__ import annotations

import ast
import copy
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from neural.language.declaration import Declared
from neural.modules.source.scopes import NameUse, binding_name, bound_names, same_scope
from neural.modules.source.symbols import (
    NN,
    NN_MODULE,
    CannotCompile,
    Import,
    SourceModule,
    Symbol,
    Unit,
    is_copied,
    is_removed,
    source_module,
)

COMPILED = Symbol("neural.modules.compiled", "compiled")
DATACLASS = Symbol("dataclasses", "dataclass")
DECLARATION = "neural.language.declaration"
CHECKER_ONLY = frozenset(
    {
        "advice",
        "build",
        "cost",
        "extra",
        "fits",
        "fuses",
        "head_problem",
        "learned_cost",
        "matrices",
        "parameters",
        "self_attention_only",
        "shape",
        "straight_through",
        "tiny",
        "verify",
    }
)
"""Members of declarations that the checker reads; a running network has no use for them."""

Names = Mapping[Symbol, str]
Edit = tuple[int, int, Callable[[Names], str]]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Reference:
    """A place in a source text that means a symbol."""

    start: int
    end: int
    symbol: Symbol
    spelling: str
    use: NameUse

    @property
    def is_fixed(self) -> bool:
        """Whether its place is not known: before Python 3.12, names in some f-strings have none."""
        return self.spelling.partition(".")[0] != self.use.name

    def text(self, names: Names) -> str:
        """What stands there in the file; a spelling that nothing renames stays as it is."""
        if self.symbol == NN_MODULE:
            return f"{names[NN]}.Module"
        return names.get(self.symbol, self.spelling)


@dataclass(eq=False)
class Piece:
    """A unit of a module, what it refers to, and what changes in its text."""

    unit: Unit
    references: list[Reference] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    builtins: set[str] = field(default_factory=set)
    """What it takes from Python."""
    identifiers: set[str] = field(default_factory=set)
    """Every name in it, of whatever scope."""
    has_fields: bool = False
    """Whether it is a declaration with settings, which is a dataclass in the file."""

    def strip(self, needed: set[str]) -> list[ast.stmt]:
        """The statements without what the file does not need; the edits do the same to the text.

        Members that the checker reads are kept where they are `needed`.
        """
        return [self._strip(statement, needed) for statement in self.unit.statements]

    def text(self, names: Names) -> str:
        """The definition in the file."""
        module, parts = self.unit.module, []
        for statement in self.unit.statements:
            decorators = getattr(statement, "decorator_list", [])
            first = min([statement.lineno, *(one.lineno for one in decorators)])
            start, end = module.line_starts[first - 1], module.span(statement)[1]
            text = self.edited(start, end, names).replace("  # fmt: skip", "").rstrip()
            parts.append(textwrap.dedent(text) if self.unit.type_only else text)
        whole = "\n".join(parts)
        if not self.unit.type_only:
            return whole
        return "if TYPE_CHECKING:\n" + textwrap.indent(whole, "    ")

    def edited(self, start: int, end: int, names: Names) -> str:
        """The text between two places with every edit done."""
        source, out, at = self.unit.module.text, [], start
        references = [(one.start, one.end, one.text) for one in self.references if not one.is_fixed]
        edits = [edit for edit in (*self.edits, *references) if start <= edit[0] < end]
        for first, last, replacement in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
            if first < at:
                continue  # part of what was replaced already
            out += [source[at:first].decode(), replacement(names)]
            at = min(last, end)
        return "".join([*out, source[at:end].decode()])

    def _strip(self, statement: ast.stmt, needed: set[str]) -> ast.stmt:
        node, module = copy.copy(statement), self.unit.module
        if isinstance(node, Definition):
            self._strip_kernels(node)
        if isinstance(node, ast.ClassDef):
            self._strip_class(node, needed)
        outside = list(same_scope([node]))
        for inner in outside:
            if isinstance(inner, Definition):
                self.edits.append(_definition_edit(inner, module))
            elif isinstance(inner, Import):
                self.edits += _import_edits(inner, module)
        for inner in ast.walk(node):
            if isinstance(inner, Import) and inner not in outside and is_removed(inner, module):
                self.edits.append((*module.span(inner), lambda names: "pass"))
            if isinstance(inner, ast.Subscript):
                self._strip_shape(inner)
        return node

    def _strip_kernels(self, node: Any) -> None:
        """What has a compiled kernel is written with its own body, which is plain torch."""
        module, kept = self.unit.module, []
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else None
            if _symbol_of(called, module) == COMPILED:
                first = module.line_starts[decorator.lineno - 1]
                last = module.line_starts[decorator.end_lineno]
                self.edits.append((first, last, lambda names: ""))
            else:
                kept.append(decorator)
        node.decorator_list = kept

    def _strip_class(self, node: ast.ClassDef, needed: set[str]) -> None:
        """Without members that only the checker reads, and with plain fields for settings."""
        module = self.unit.module
        bases = [base for base in node.bases if not _is_declaration_base(base, module)]
        if len(bases) < len(node.bases):
            self.edits.append(self._bases_edit(node, bases))
        is_declared = is_declaration(getattr(module.module, node.name, None))
        body: list[ast.stmt] = []
        is_dropped = False
        for index, member in enumerate(node.body):
            if is_dropped and _is_string(member):
                continue  # what the dropped member means
            names = bound_names([member])
            is_dropped = is_declared and bool(names) and names <= CHECKER_ONLY - needed
            if is_dropped:
                following = [one for one in node.body[index + 1 : index + 2] if _is_string(one)]
                self.edits.append(_deletion(member, [member, *following][-1], module))
                continue
            member = copy.copy(member)
            if isinstance(member, Definition):
                self._strip_kernels(member)
            if is_declared and isinstance(member, ast.AnnAssign):
                self._strip_setting(member)
            body.append(member)
        if self.has_fields:
            start = module.span(node)[0]
            self.edits.append((start, start, lambda names: f"@{names[DATACLASS]}(frozen=True)\n"))
        node.bases, node.body = bases, body

    def _bases_edit(self, node: ast.ClassDef, bases: list[ast.expr]) -> Edit:
        """The list of bases, shorter; without brackets where none is left."""
        module = self.unit.module
        before = [module.span(one) for one in (*node.bases, *node.keywords)]
        start, end = min(first for first, _ in before), max(last for _, last in before)
        spans = [module.span(one) for one in (*bases, *node.keywords)]
        if spans:
            return start, end, lambda names: ", ".join(self.edited(*span, names) for span in spans)
        opening = module.text.rindex(b"(", 0, start)
        return opening, module.text.index(b")", end) + 1, lambda names: ""

    def _strip_setting(self, member: ast.AnnAssign) -> None:
        """`k: int = count("…", default=8)` is `k: int = 8` in the file."""
        module, value = self.unit.module, member.value
        if "ClassVar" in ast.unparse(member.annotation):
            return
        self.has_fields = True
        if not isinstance(value, ast.Call):
            return
        symbol = _symbol_of(value.func, module)
        if symbol is None or symbol.module != DECLARATION:
            return
        default = next((one.value for one in value.keywords if one.arg == "default"), None)
        member.value = default
        start, end = module.span(value)
        if default is None:
            self.edits.append((module.span(member.annotation)[1], end, lambda names: ""))
        else:
            inner = module.span(default)
            self.edits.append((start, end, lambda names: self.edited(*inner, names)))

    def _strip_shape(self, node: ast.Subscript) -> None:
        """`Float[Tensor, "B T E"]` of jaxtyping is `Tensor` in the file."""
        module = self.unit.module
        symbol = _symbol_of(node.value, module)
        if symbol is None or symbol.module != "jaxtyping" or not isinstance(node.slice, ast.Tuple):
            return
        inner = module.span(node.slice.elts[0])
        self.edits.append((*module.span(node), lambda names: self.edited(*inner, names)))


def _symbol_of(node: ast.AST | None, module: SourceModule) -> Symbol | None:
    """What a plain name means in the module; None for anything else."""
    try:
        return module.resolve(node.id) if isinstance(node, ast.Name) else None
    except LookupError:  # a local name
        return None


def is_declaration(value: Any) -> bool:
    """Whether something is a class whose fields a program may set."""
    return isinstance(value, type) and issubclass(value, Declared)


def asked_of_self(cls: type) -> set[str]:
    """The attributes that the running methods of a class ask of `self`, `cls` or `super()`."""
    unit = source_module(cls.__module__).units.get(cls.__name__)
    members = [one for node in unit.statements for one in getattr(node, "body", [])] if unit else []
    return {
        node.attr
        for member in members
        if getattr(member, "name", None) not in CHECKER_ONLY
        for node in ast.walk(member)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls", "super()")
    }


def _is_declaration_base(base: ast.expr, module: SourceModule) -> bool:
    """Whether a base class belongs to the language: declarations are plain classes in the file."""
    symbol = _symbol_of(base, module)
    return symbol is not None and symbol.module.startswith("neural.language.")


def _is_string(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _deletion(first: Any, last: ast.stmt, module: SourceModule) -> Edit:
    """Whole lines: a member, its decorators, comments above it and empty lines below it."""
    top = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", []))])
    bottom = last.end_lineno or last.lineno

    def line(number: int) -> bytes:
        return module.text[module.line_starts[number - 1] : module.line_starts[number]].strip()

    while line(top - 1).startswith(b"#"):
        top -= 1
    while bottom < len(module.line_starts) - 1 and not line(bottom + 1):
        bottom += 1
    return module.line_starts[top - 1], module.line_starts[bottom], lambda names: ""


def _definition_edit(node: Definition, module: SourceModule) -> Edit:
    """The name of a function or a class where it is defined."""
    keyword = re.compile(rb"(?:async\s+def|def|class)\s+")
    opening = keyword.match(module.text, module.span(node)[0])
    assert opening is not None
    symbol, start = Symbol(module.name, node.name), opening.end()
    return start, start + len(node.name.encode()), lambda names: names[symbol]


def _import_edits(node: Import, module: SourceModule) -> Iterator[Edit]:
    """An import beside other definitions of a name, as under `try`: it must stay as it is."""
    for alias in node.names:
        symbol = Symbol(module.name, binding_name(alias))
        if is_copied(module.imported(node, alias).module, module.name):
            raise CannotCompile(
                f"{module.name}, line {node.lineno}: `{symbol.name}` is imported and also defined "
                "otherwise; the file can hold one of them"
            )
        yield (*module.span(alias), _alias_text(alias, symbol))


def _alias_text(alias: ast.alias, symbol: Symbol) -> Callable[[Names], str]:
    def text(names: Names) -> str:
        name = names[symbol]
        return alias.name if name == alias.name else f"{alias.name} as {name}"

    return text
