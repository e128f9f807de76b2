"""Plant a fault: find a piece of code inside a symbol by its syntax tree and replace it.

Layout and names do not matter. A name in the pattern matches any name in the source, as long as the same
name always matches the same one; builtins match themselves, and an exact match is preferred. So a fault survives formatting and renaming.
"""

import ast
import builtins
from collections.abc import Iterator

IGNORED_FIELDS = {"ctx", "kind", "type_comment", "type_params"}
NAME_FIELDS = {"id": "", "attr": ".", "arg": "", "name": "", "asname": ""}
"""Fields that hold names; attributes are renamed apart from variables, so they get a prefix."""


class PlantingError(ValueError):
    """The pattern occurs in the symbol not exactly once."""


def parse(code: str) -> ast.expr | list[ast.stmt]:
    """One expression, or statements."""
    body = ast.parse(code).body
    if len(body) == 1 and isinstance(body[0], ast.Expr):
        return body[0].value
    return body


def unify(pattern: object, node: object, names: dict[str, str]) -> bool:
    """Whether the two are the same code but for names; `names` collects pattern name → source name."""
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(
            _unify_field(field, value, getattr(node, field, None), names)
            for field, value in ast.iter_fields(pattern)
            if field not in IGNORED_FIELDS
        )
    if isinstance(pattern, list):
        return (
            isinstance(node, list)
            and len(pattern) == len(node)
            and all(unify(a, b, names) for a, b in zip(pattern, node, strict=True))
        )
    return type(pattern) is type(node) and pattern == node


def _unify_field(field: str, pattern: object, node: object, names: dict[str, str]) -> bool:
    if field in NAME_FIELDS and isinstance(pattern, str) and isinstance(node, str):
        if hasattr(builtins, pattern):
            return pattern == node
        return names.setdefault(NAME_FIELDS[field] + pattern, node) == node
    return unify(pattern, node, names)


def find_symbol(tree: ast.Module, symbol: str) -> ast.AST:
    """`Mask.allowed`, `function.inner`; an empty name is the module."""
    found: ast.AST = tree
    for name in filter(None, symbol.split(".")):
        definitions = [
            node
            for node in _own_statements(found)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node.name == name
        ]
        if not definitions:
            raise PlantingError(f"there is no `{symbol}`")
        found = definitions[-1]
    return found


def _own_statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements of a definition, through `if` and `with` but not into other definitions."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            yield from _own_statements(child)


def find(
    scope: ast.AST, pattern: ast.expr | list[ast.stmt]
) -> tuple[ast.AST, str, int, dict[str, str]]:
    """Where the pattern occurs: the parent node, its field, the index in it (-1: no list), the names."""
    matches = []
    for parent in ast.walk(scope):
        for field, value in ast.iter_fields(parent):
            for index, part in _candidates(value, pattern):
                names: dict[str, str] = {}
                if unify(pattern, part, names):
                    matches.append((parent, field, index, names))
    exact = [
        match for match in matches if all(old.lstrip(".") == new for old, new in match[3].items())
    ]
    if len(exact) == 1:
        return exact[0]
    if len(matches) == 1:
        return matches[0]
    raise PlantingError(
        f"the code occurs {len(exact)} times, and {len(matches)} times under other names"
    )


def _candidates(value: object, pattern: ast.expr | list[ast.stmt]) -> Iterator[tuple[int, object]]:
    if isinstance(pattern, list):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            for index in range(len(value) - len(pattern) + 1):
                yield index, value[index : index + len(pattern)]
    elif isinstance(value, list):
        yield from enumerate(value)
    else:
        yield -1, value


class _Rename(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if field in NAME_FIELDS and isinstance(value, str):
                setattr(node, field, self.names.get(NAME_FIELDS[field] + value, value))
        return super().generic_visit(node)


def plant(source: str, symbol: str, old: str, new: str) -> str:
    """The source with `old` inside `symbol` replaced by `new`; layout and comments are lost."""
    tree = ast.parse(source)
    pattern, replacement = parse(old), parse(new)
    if isinstance(pattern, list) != isinstance(replacement, list):  # a statement, as `pass` is one
        pattern = pattern if isinstance(pattern, list) else [ast.Expr(pattern)]
        replacement = replacement if isinstance(replacement, list) else [ast.Expr(replacement)]
    parent, field, index, names = find(find_symbol(tree, symbol), pattern)
    if isinstance(replacement, list):
        replacement = [_Rename(names).visit(statement) for statement in replacement]
    else:
        replacement = _Rename(names).visit(replacement)
    if index < 0:
        setattr(parent, field, replacement)
    elif isinstance(pattern, list) and isinstance(replacement, list):
        getattr(parent, field)[index : index + len(pattern)] = replacement
    else:
        getattr(parent, field)[index] = replacement
    return ast.unparse(ast.fix_missing_locations(tree))
