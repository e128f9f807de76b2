"""Which names in a top-level statement mean something of its module, and not a local variable.

Python's scopes, as far as copying source needs them: functions, lambdas, comprehensions and class
bodies bind names of their own; everything else is looked up in the module, then among the builtins.
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
"""Subscripts of these hold strings that are no annotations."""


@dataclass(frozen=True)
class NameUse:
    """A name that is looked up, or bound, in the module's own scope."""

    node: ast.Name | ast.Global
    name: str
    chain: tuple[ast.Attribute, ...]
    """The attributes behind the name, innermost first: `a.b.c` is `a` with `a.b` and `a.b.c`."""
    local_names: frozenset[str]
    """What the scopes around it bind: another name that is put here must not be one of these."""
    in_annotation: bool
    at_import: bool
    """Whether it is evaluated when the module is imported, not when a function is called."""
    local_import: ast.ImportFrom | ast.Import | None = None
    """The import inside a function that binds the name, where there is one."""


@dataclass
class _Scope:
    """What one function, lambda, comprehension or class body binds."""

    bound: set[str]
    is_class: bool = False
    runs_later: bool = False
    """Whether its code runs when it is called, not when the module is imported."""
    globals: frozenset[str] = frozenset()
    imports: dict[str, ast.ImportFrom | ast.Import] = field(default_factory=dict)
    """Names that nothing but an import inside this scope binds."""


def uses_of(statements: Iterable[ast.AST]) -> Iterator[NameUse]:
    """Every use of a module-level name in some statements of a module."""
    finder = _Finder()
    for statement in statements:
        finder.visit(statement)
        yield from finder.uses
        finder.uses.clear()


def identifiers(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Every name that occurs in some statements, of whatever scope."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.arg):
                yield node.arg
            elif isinstance(node, ast.Global | ast.Nonlocal):
                yield from node.names
            else:
                yield from _bound_by(node)


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """What statements of one scope bind, without the scopes inside it."""
    return {name for node in same_scope(nodes) for name in _bound_by(node)}


def binding_name(alias: ast.alias) -> str:
    """The name that an import binds."""
    return alias.asname or alias.name.partition(".")[0]


def _bound_by(node: ast.AST) -> list[str]:
    """What one node binds in its own scope."""
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


def same_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of one scope; of an inner one only what is evaluated outside it."""
    for node in nodes:
        yield node
        if isinstance(node, Comprehension):
            # a walrus inside a comprehension binds in the scope around it
            yield from (
                inner.target for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)
            )
        elif isinstance(node, Scoped | ast.ClassDef):
            yield from same_scope(_evaluated_outside(node))
        else:
            yield from same_scope(ast.iter_child_nodes(node))


def _evaluated_outside(node: Scoped | ast.ClassDef) -> list[ast.AST]:
    """Decorators, defaults and bases: what a definition evaluates in the scope around it."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
    defaults = [one for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None]
    return [*getattr(node, "decorator_list", []), *defaults]


def _arguments(node: Scoped) -> list[ast.arg]:
    args = node.args
    more = [one for one in (args.vararg, args.kwarg) if one is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *more]


def _type_parameters(node: ast.AST) -> set[str]:
    return {parameter.name for parameter in getattr(node, "type_params", [])}


class _Finder(ast.NodeVisitor):
    """Walks a top-level statement and collects the uses of module-level names."""

    def __init__(self) -> None:
        self.scopes: list[_Scope] = []
        self.uses: list[NameUse] = []
        self.annotation = False
        self.chains: dict[int, tuple[ast.Attribute, ...]] = {}

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
        self._use(node, node.id, self.chains.get(id(node), ()))

    def visit_Global(self, node: ast.Global) -> None:
        for name in node.names:
            self._use(node, name, ())

    def visit_FunctionDef(self, node: Function) -> None:
        self._visit_all(_evaluated_outside(node))
        arguments = _arguments(node)
        self.scopes.append(_Scope(_type_parameters(node)))
        self._visit_annotations([*(one.annotation for one in arguments), node.returns])
        self._visit_body(node.body, {one.arg for one in arguments})
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_all(_evaluated_outside(node))
        self._visit_body([node.body], {one.arg for one in _arguments(node)})

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all(node.decorator_list)
        self.scopes.append(_Scope(_type_parameters(node)))
        self._visit_all([*node.bases, *(keyword.value for keyword in node.keywords)])
        body = _Scope(set(), is_class=True)
        self.scopes.append(body)
        for statement in node.body:
            # a class body looks names up as it runs: before it binds one, the module's is meant
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
        """A string in an annotation is an annotation, too."""
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
        before, self.annotation = self.annotation, True
        self._visit_all(node for node in nodes if node is not None)
        self.annotation = before

    def _visit_body(self, body: list[ast.stmt] | list[ast.expr], arguments: set[str]) -> None:
        """A body that runs when it is called, with names of its own."""
        bound, outer, global_names = set(arguments), set[str](), set[str]()
        imports: dict[str, ast.Import | ast.ImportFrom] = {}
        for node in same_scope(body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports |= {binding_name(alias): node for alias in node.names}
            elif isinstance(node, ast.Global | ast.Nonlocal):
                outer.update(node.names)
                global_names.update(node.names if isinstance(node, ast.Global) else [])
            else:
                bound.update(_bound_by(node))
        only_imported = {name: node for name, node in imports.items() if name not in bound}
        self.scopes.append(
            _Scope(
                (bound | set(imports)) - outer,
                runs_later=True,
                globals=frozenset(global_names),
                imports=only_imported,
            )
        )
        before, self.annotation = self.annotation, False
        self._visit_all(body)
        self.annotation = before
        self.scopes.pop()

    def _use(
        self, node: ast.Name | ast.Global, name: str, chain: tuple[ast.Attribute, ...]
    ) -> None:
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
        bound = frozenset(one for scope in self.scopes for one in scope.bound)
        at_import = not self.annotation and not any(scope.runs_later for scope in self.scopes)
        self.uses.append(
            NameUse(node, name, chain, bound, self.annotation, at_import, local_import)
        )


def _names_in_string(node: ast.Constant, text: str) -> list[ast.AST]:
    """The names of an annotation in quotes, at their places; none where it is no code."""
    try:
        parsed = ast.parse(text, mode="eval").body
    except SyntaxError:
        return []
    one_line = node.lineno == node.end_lineno
    width = (node.end_col_offset or 0) - node.col_offset
    if not one_line or width != len(text.encode()) + 2:
        return []  # escapes, or three quotes: places cannot be known
    for part in cast(Iterator[Any], ast.walk(parsed)):
        if hasattr(part, "lineno"):
            part.lineno = part.end_lineno = node.lineno
            part.col_offset += node.col_offset + 1
            part.end_col_offset += node.col_offset + 1
    return [parsed]
