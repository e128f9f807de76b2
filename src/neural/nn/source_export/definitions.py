"""A definition copied into an exported file: its source text, without what is not needed there.

"The file" is the exported one (standalone_file.py). A symbol is a module-level name with its
module; a unit is the statements that define it, usually one class or function (symbols.py).

The text is edited, not generated from the syntax tree, so that comments and layout stay. An edit
replaces the text between two byte offsets of the original module. Its new text is a function of
`names`, because symbols get their names in the file after all definitions are collected.
"""

from __future__ import annotations

import ast
import copy
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from neural.language.declaration import Declaration
from neural.nn.kernel_dispatch import use_kernel
from neural.nn.source_export.scopes import NameUse, binding_name, bound_names, walk_scope
from neural.nn.source_export.symbols import (
    NN,
    NN_MODULE,
    Import,
    SourceExportError,
    SourceModule,
    SourceSymbol,
    SourceUnit,
    is_copied,
    is_removed,
    load_source_module,
)

KERNEL_DECORATOR = SourceSymbol(use_kernel.__module__, use_kernel.__name__)
DATACLASS = SourceSymbol("dataclasses", "dataclass")
DECLARATION_MODULE = Declaration.__module__
CHECKER_MEMBERS = frozenset(
    {
        "advice",
        "build",
        "cost",
        "example_extra",
        "validate",
        "fused_activations",
        "output_problem",
        "learned_cost",
        "saved_matrices",
        "count_parameters",
        "self_attention_only",
        "shape",
        "straight_through",
        "example",
        "verify",
    }
)
"""Members of declarations (classes that a `.neural` program names) that the file leaves out.

They check, build and test networks; a running network does not need them.
"""

SymbolNames = Mapping[SourceSymbol, str]
"""Name of each symbol in the exported file."""
TextEdit = tuple[int, int, Callable[[SymbolNames], str]]
"""Start, end (exclusive) and the new text, as a function of the chosen names."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class SymbolReference:
    """A reference to a symbol, from byte offset `start` to `end` (exclusive) of a module's text."""

    start: int
    end: int
    symbol: SourceSymbol
    spelling: str
    """The text between the offsets: a name or a dotted name."""
    use: NameUse

    @property
    def is_fixed(self) -> bool:
        """Whether it cannot be renamed, because the text at the offsets is not the name.

        That happens in f-strings: before Python 3.12, names in them have wrong offsets.
        """
        return self.spelling.partition(".")[0] != self.use.name

    def render(self, names: SymbolNames) -> str:
        """The text of the reference in the file; a symbol without a new name keeps its spelling."""
        if self.symbol == NN_MODULE:
            return f"{names[NN]}.Module"
        return names.get(self.symbol, self.spelling)


@dataclass(eq=False)
class CopiedDefinition:
    """A unit of a module, its references, and the edits of its text."""

    unit: SourceUnit
    references: list[SymbolReference] = field(default_factory=list)
    edits: list[TextEdit] = field(default_factory=list)
    builtins: set[str] = field(default_factory=set)
    """Builtin names that the definition uses."""
    identifiers: set[str] = field(default_factory=set)
    """Every name in the definition, in all scopes."""
    has_fields: bool = False
    """Whether this is a declaration with arguments, which becomes a dataclass in the file."""

    def strip(self, needed: set[str]) -> list[ast.stmt]:
        """Remove what the file does not need.

        Adds text edits, and returns the statements' syntax trees without what is removed. Members
        in `CHECKER_MEMBERS` stay if their names are in `needed`.
        """
        return [self._strip(statement, needed) for statement in self.unit.statements]

    def render(self, names: SymbolNames) -> str:
        """The text of the definition in the file."""
        module, texts = self.unit.module, []
        for statement in self.unit.statements:
            decorators = getattr(statement, "decorator_list", [])
            first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
            start, end = module.line_starts[first - 1], module.span(statement)[1]
            text = self.apply_edits(start, end, names).rstrip()
            texts.append(textwrap.dedent(text) if self.unit.type_only else text)
        joined = "\n".join(texts)
        if not self.unit.type_only:
            return joined
        return "if TYPE_CHECKING:\n" + textwrap.indent(joined, "    ")

    def apply_edits(self, start: int, end: int, names: SymbolNames) -> str:
        """The text between two offsets with all edits applied."""
        source, chunks, position = self.unit.module.text, [], start
        references = [
            (reference.start, reference.end, reference.render)
            for reference in self.references
            if not reference.is_fixed
        ]
        edits = [edit for edit in (*self.edits, *references) if start <= edit[0] < end]
        for edit_start, edit_end, render in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
            if edit_start < position:
                continue  # inside text that an outer edit has replaced
            chunks += [source[position:edit_start].decode(), render(names)]
            position = min(edit_end, end)
        return "".join([*chunks, source[position:end].decode()])

    def _strip(self, statement: ast.stmt, needed: set[str]) -> ast.stmt:
        """`strip` for one top-level statement."""
        node, module = copy.copy(statement), self.unit.module
        if isinstance(node, Definition):
            self._strip_kernels(node)
        if isinstance(node, ast.ClassDef):
            self._strip_class(node, needed)
        outer_scope = list(walk_scope([node]))
        for inner in outer_scope:
            if isinstance(inner, Definition):
                self.edits.append(_definition_edit(inner, module))
            elif isinstance(inner, Import):
                self.edits += _import_edits(inner, module)
        for inner in ast.walk(node):
            if isinstance(inner, Import) and inner not in outer_scope and is_removed(inner, module):
                self.edits.append((*module.span(inner), lambda names: "pass"))
            if isinstance(inner, ast.Subscript):
                self._strip_shape(inner)
        return node

    def _strip_kernels(self, node: Any) -> None:
        """Remove `use_kernel`, which dispatches to native kernels: the file has the body in torch."""
        module, remaining = self.unit.module, []
        for decorator in node.decorator_list:
            function = decorator.func if isinstance(decorator, ast.Call) else None
            if _resolve_name(function, module) == KERNEL_DECORATOR:
                first = module.line_starts[decorator.lineno - 1]
                last = module.line_starts[decorator.end_lineno]
                self.edits.append((first, last, lambda names: ""))
            else:
                remaining.append(decorator)
        node.decorator_list = remaining

    def _strip_class(self, node: ast.ClassDef, needed: set[str]) -> None:
        """Remove checker members and replace argument declarations by plain defaults."""
        module = self.unit.module
        bases = [base for base in node.bases if not _is_declaration_base(base, module)]
        if len(bases) < len(node.bases):
            self.edits.append(self._bases_edit(node, bases))
        is_declared = is_declaration(getattr(module.module, node.name, None))
        body: list[ast.stmt] = []
        is_dropped = False
        for index, member in enumerate(node.body):
            if is_dropped and _is_string(member):
                continue  # the docstring of the dropped member
            names = bound_names([member])
            is_dropped = is_declared and bool(names) and names <= CHECKER_MEMBERS - needed
            if is_dropped:
                docstring = [
                    statement
                    for statement in node.body[index + 1 : index + 2]
                    if _is_string(statement)
                ]
                self.edits.append(_delete_member_edit(member, [member, *docstring][-1], module))
                continue
            member = copy.copy(member)
            if isinstance(member, Definition):
                self._strip_kernels(member)
            if is_declared and isinstance(member, ast.AnnAssign):
                self._strip_argument(member)
            body.append(member)
        if self.has_fields:
            start = module.span(node)[0]
            self.edits.append((start, start, lambda names: f"@{names[DATACLASS]}(frozen=True)\n"))
        node.bases, node.body = bases, body

    def _bases_edit(self, node: ast.ClassDef, bases: list[ast.expr]) -> TextEdit:
        """Edit that leaves only `bases` as base classes; no parentheses if none is left."""
        module = self.unit.module
        old_spans = [module.span(base) for base in (*node.bases, *node.keywords)]
        start, end = min(first for first, _ in old_spans), max(last for _, last in old_spans)
        spans = [module.span(base) for base in (*bases, *node.keywords)]
        if spans:
            return (
                start,
                end,
                lambda names: ", ".join(self.apply_edits(*span, names) for span in spans),
            )
        opening = module.text.rindex(b"(", 0, start)
        return opening, module.text.index(b")", end) + 1, lambda names: ""

    def _strip_argument(self, member: ast.AnnAssign) -> None:
        """`k: int = int_field("…", default=8)` becomes `k: int = 8`."""
        module, value = self.unit.module, member.value
        if "ClassVar" in ast.unparse(member.annotation):
            return
        self.has_fields = True
        if not isinstance(value, ast.Call):
            return
        symbol = _resolve_name(value.func, module)
        if symbol is None or symbol.module != DECLARATION_MODULE:
            return
        default = next(
            (keyword.value for keyword in value.keywords if keyword.arg == "default"), None
        )
        member.value = default
        start, end = module.span(value)
        if default is None:
            self.edits.append((module.span(member.annotation)[1], end, lambda names: ""))
        else:
            inner = module.span(default)
            self.edits.append((start, end, lambda names: self.apply_edits(*inner, names)))

    def _strip_shape(self, node: ast.Subscript) -> None:
        """`Float[Tensor, "B T E"]` of jaxtyping becomes `Tensor`."""
        module = self.unit.module
        symbol = _resolve_name(node.value, module)
        if symbol is None or symbol.module != "jaxtyping" or not isinstance(node.slice, ast.Tuple):
            return
        inner = module.span(node.slice.elts[0])
        self.edits.append((*module.span(node), lambda names: self.apply_edits(*inner, names)))


def _resolve_name(node: ast.AST | None, module: SourceModule) -> SourceSymbol | None:
    """Symbol of a module-level name; None for anything else."""
    try:
        return module.resolve(node.id) if isinstance(node, ast.Name) else None
    except LookupError:  # a local name
        return None


def is_declaration(value: Any) -> bool:
    """Whether a value is a declaration class, whose arguments a program may set."""
    return isinstance(value, type) and issubclass(value, Declaration)


def find_self_attributes(cls: type) -> set[str]:
    """Names of attributes of `self`, `cls` or `super()` that a class uses.

    Uses in `CHECKER_MEMBERS` do not count, because these methods are removed.
    """
    unit = load_source_module(cls.__module__).units.get(cls.__name__)
    statements = unit.statements if unit else []
    members = [member for node in statements for member in getattr(node, "body", [])]
    return {
        node.attr
        for member in members
        if getattr(member, "name", None) not in CHECKER_MEMBERS
        for node in ast.walk(member)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls", "super()")
    }


def _is_declaration_base(base: ast.expr, module: SourceModule) -> bool:
    """Whether a base class is of neural.language, e.g. `Declaration`: the file leaves it out."""
    symbol = _resolve_name(base, module)
    return symbol is not None and symbol.module.startswith("neural.language.")


def _is_string(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _delete_member_edit(member: Any, last_node: ast.stmt, module: SourceModule) -> TextEdit:
    """Edit that deletes the lines from a member to `last_node` (itself or its docstring).

    Decorators, comments before it and empty lines after it are deleted as well.
    """
    decorators = getattr(member, "decorator_list", [])
    top = min([member.lineno, *(decorator.lineno for decorator in decorators)])
    bottom = last_node.end_lineno or last_node.lineno

    def read_line(number: int) -> bytes:
        return module.text[module.line_starts[number - 1] : module.line_starts[number]].strip()

    while read_line(top - 1).startswith(b"#"):
        top -= 1
    while bottom < len(module.line_starts) - 1 and not read_line(bottom + 1):
        bottom += 1
    return module.line_starts[top - 1], module.line_starts[bottom], lambda names: ""


def _definition_edit(node: Definition, module: SourceModule) -> TextEdit:
    """Edit that renames a function or class at its definition."""
    keyword = re.compile(rb"(?:async\s+def|def|class)\s+")
    match = keyword.match(module.text, module.span(node)[0])
    assert match is not None
    symbol, start = SourceSymbol(module.name, node.name), match.end()
    return start, start + len(node.name.encode()), lambda names: names[symbol]


def _import_edits(node: Import, module: SourceModule) -> Iterator[TextEdit]:
    """Edits that rename what an import binds.

    For imports that stay because other statements bind the same name, as in `try … except`.
    """
    for alias in node.names:
        symbol = SourceSymbol(module.name, binding_name(alias))
        if is_copied(module.resolve_import(node, alias).module, module.name):
            raise SourceExportError(
                f"{module.name}, line {node.lineno}: `{symbol.name}` is imported and also defined "
                "otherwise; the file can hold one of them"
            )
        yield (*module.span(alias), _format_alias(alias, symbol))


def _format_alias(alias: ast.alias, symbol: SourceSymbol) -> Callable[[SymbolNames], str]:
    """Function that writes `name as new_name` for one name of an import."""

    def render(names: SymbolNames) -> str:
        name = names[symbol]
        return alias.name if name == alias.name else f"{alias.name} as {name}"

    return render
