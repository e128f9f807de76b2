"""Uses of module-level names in a statement, as opposed to local variables.

For source export (standalone_file.py), which copies definitions to one file and may rename
module-level names. Functions, lambdas, comprehensions and class bodies are scopes that bind names
of their own. All other names belong to the module or the builtins. An annotation is a type
annotation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scoped = Function | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
LITERAL_TYPES = ("Literal", "Annotated")
"""Types whose subscripts may contain strings that are no annotations: `Literal["a"]`."""


@dataclass(frozen=True)
class NameUse:
    """A name that is read or bound in the module's own scope."""

    node: ast.Name | ast.Global
    name: str
    chain: tuple[ast.Attribute, ...]
    """Attribute nodes around the name, shortest first: for `a` in `a.b.c`, `a.b` and `a.b.c`."""
    local_names: frozenset[str]
    """Names that the enclosing scopes bind: they would shadow a symbol renamed to one of them."""
    in_annotation: bool
    at_import: bool
    """Whether the name is evaluated at import, not when a function is called."""
    local_import: ast.ImportFrom | ast.Import | None = None
    """The import inside a function that binds the name, if any.

    Such a name is recorded although it is a local variable: it stands for a definition of another
    module, which the export may copy as well (`resolve_use` in symbols.py).
    """


@dataclass
class _Scope:
    """Names that one function, lambda, comprehension or class body binds."""

    bound: set[str]
    is_class: bool = False
    runs_later: bool = False
    """Whether the code of the scope runs when it is called, not at import."""
    globals: frozenset[str] = frozenset()
    """Names in `global` statements of this scope."""
    imports: dict[str, ast.ImportFrom | ast.Import] = field(default_factory=dict)
    """Names that only an import inside this scope binds."""


def find_name_uses(statements: Iterable[ast.AST]) -> Iterator[NameUse]:
    """Every use of a module-level name in some statements of a module."""
    finder = _NameUseFinder()
    for statement in statements:
        finder.visit(statement)
        yield from finder.uses
        finder.uses.clear()


def collect_identifiers(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Every name in some statements, in all scopes."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.arg):
                yield node.arg
            elif isinstance(node, ast.Global | ast.Nonlocal):
                yield from node.names
            else:
                yield from _names_bound_by(node)


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that statements bind in their own scope, without inner scopes."""
    return {name for node in walk_scope(nodes) for name in _names_bound_by(node)}


def binding_name(alias: ast.alias) -> str:
    """The name that an import binds."""
    return alias.asname or alias.name.partition(".")[0]


def _names_bound_by(node: ast.AST) -> list[str]:
    """Names that one node binds in its own scope."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, Function | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [binding_name(alias) for alias in node.names]
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def walk_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of one scope, with the expressions of inner scopes that are evaluated in it."""
    for node in nodes:
        yield node
        if isinstance(node, Comprehension):
            # An assignment expression in a comprehension binds in the enclosing scope.
            yield from (
                inner.target for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)
            )
        elif isinstance(node, Scoped | ast.ClassDef):
            yield from walk_scope(_outer_expressions(node))
        else:
            yield from walk_scope(ast.iter_child_nodes(node))


def _outer_expressions(node: Scoped | ast.ClassDef) -> list[ast.AST]:
    """Decorators, defaults and bases, which are evaluated in the enclosing scope."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
    all_defaults = (*node.args.defaults, *node.args.kw_defaults)
    defaults = [default for default in all_defaults if default is not None]
    return [*getattr(node, "decorator_list", []), *defaults]


def _arguments(node: Scoped) -> list[ast.arg]:
    args = node.args
    variadic = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *variadic]


def _type_parameters(node: ast.AST) -> set[str]:
    return {parameter.name for parameter in getattr(node, "type_params", [])}


class _NameUseFinder(ast.NodeVisitor):
    """Visitor that collects the uses of module-level names in a top-level statement."""

    def __init__(self) -> None:
        self.scopes: list[_Scope] = []
        self.uses: list[NameUse] = []
        self.annotation = False
        """Whether the visited node is part of an annotation."""
        self.chains: dict[int, tuple[ast.Attribute, ...]] = {}
        """`NameUse.chain` by the id of its name's node."""

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain, value = [node], node.value
        while isinstance(value, ast.Attribute):
            chain.append(value)
            value = value.value
        if isinstance(value, ast.Name):
            self.chains[id(value)] = tuple(reversed(chain))
        self.visit(value)

    def visit_Name(self, node: ast.Name) -> None:
        if self.scopes and self.scopes[-1].is_class and not isinstance(node.ctx, ast.Load):
            return  # a member of the class
        self._record_use(node, node.id, self.chains.get(id(node), ()))

    def visit_Global(self, node: ast.Global) -> None:
        for name in node.names:
            self._record_use(node, name, ())

    def visit_FunctionDef(self, node: Function) -> None:
        self._visit_all(_outer_expressions(node))
        arguments = _arguments(node)
        self.scopes.append(_Scope(_type_parameters(node)))
        self._visit_annotations([*(arg.annotation for arg in arguments), node.returns])
        self._visit_body(node.body, {arg.arg for arg in arguments})
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_all(_outer_expressions(node))
        self._visit_body([node.body], {arg.arg for arg in _arguments(node)})

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all(node.decorator_list)
        self.scopes.append(_Scope(_type_parameters(node)))
        self._visit_all([*node.bases, *(keyword.value for keyword in node.keywords)])
        body = _Scope(set(), is_class=True)
        self.scopes.append(body)
        for statement in node.body:
            # A class body resolves names as it runs: before it binds one, the module's is used.
            self.visit(statement)
            body.bound |= bound_names([statement])
        del self.scopes[-2:]

    def visit_ListComp(self, node: Comprehension) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        targets = bound_names(generator.target for generator in node.generators)
        self.scopes.append(_Scope(targets))
        if isinstance(node, ast.DictComp):
            self._visit_all([node.key, node.value])
        else:
            self.visit(node.elt)
        self._visit_all([first.target, *first.ifs])
        for generator in others:
            self._visit_all([generator.target, generator.iter, *generator.ifs])
        self.scopes.pop()

    visit_SetComp = visit_ListComp
    visit_DictComp = visit_ListComp
    visit_GeneratorExp = visit_ListComp

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._visit_annotations([node.annotation])
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A string in an annotation is an annotation."""
        if self.annotation and isinstance(node.value, str):
            self._visit_all(_names_in_string(node, node.value))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        name = node.value.attr if isinstance(node.value, ast.Attribute) else None
        name = node.value.id if isinstance(node.value, ast.Name) else name
        if not (self.annotation and name in LITERAL_TYPES):
            self.visit(node.slice)

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _visit_annotations(self, nodes: Iterable[ast.AST | None]) -> None:
        was_annotation, self.annotation = self.annotation, True
        self._visit_all(node for node in nodes if node is not None)
        self.annotation = was_annotation

    def _visit_body(self, body: list[ast.stmt] | list[ast.expr], arguments: set[str]) -> None:
        """Visit a body that runs when it is called, in its own scope."""
        bound, outer_names, global_names = set(arguments), set[str](), set[str]()
        imports: dict[str, ast.Import | ast.ImportFrom] = {}
        for node in walk_scope(body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports |= {binding_name(alias): node for alias in node.names}
            elif isinstance(node, ast.Global | ast.Nonlocal):
                outer_names.update(node.names)
                global_names.update(node.names if isinstance(node, ast.Global) else [])
            else:
                bound.update(_names_bound_by(node))
        only_imported = {name: node for name, node in imports.items() if name not in bound}
        self.scopes.append(
            _Scope(
                (bound | set(imports)) - outer_names,
                runs_later=True,
                globals=frozenset(global_names),
                imports=only_imported,
            )
        )
        was_annotation, self.annotation = self.annotation, False
        self._visit_all(body)
        self.annotation = was_annotation
        self.scopes.pop()

    def _record_use(
        self, node: ast.Name | ast.Global, name: str, chain: tuple[ast.Attribute, ...]
    ) -> None:
        """Append a use of `name`, unless an enclosing scope binds the name."""
        local_import = None
        for depth, scope in enumerate(reversed(self.scopes)):
            if scope.is_class and depth:
                continue  # functions inside a class do not see the names of its body
            if name in scope.globals:
                break
            if name in scope.imports:
                local_import = scope.imports[name]
                break
            if name in scope.bound:
                return
        local_names = frozenset(name for scope in self.scopes for name in scope.bound)
        at_import = not self.annotation and not any(scope.runs_later for scope in self.scopes)
        self.uses.append(
            NameUse(node, name, chain, local_names, self.annotation, at_import, local_import)
        )


def _names_in_string(node: ast.Constant, text: str) -> list[ast.AST]:
    """The parsed expression of a quoted annotation, with its position in the source file.

    The list is empty if the text is no expression or its position cannot be computed.
    """
    try:
        parsed = ast.parse(text, mode="eval").body
    except SyntaxError:
        return []
    is_one_line = node.lineno == node.end_lineno
    width = (node.end_col_offset or 0) - node.col_offset
    if not is_one_line or width != len(text.encode()) + 2:
        return []  # escapes or triple quotes: positions are unknown
    for inner in cast(Iterator[Any], ast.walk(parsed)):
        if hasattr(inner, "lineno"):
            inner.lineno = inner.end_lineno = node.lineno
            inner.col_offset += node.col_offset + 1
            inner.end_col_offset += node.col_offset + 1
    return [parsed]
