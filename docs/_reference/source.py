"""Signatures and docstrings of the package, read from its source without importing it.

The source shows defaults as they are written (`method="mean"`, never the address of a function),
and modules whose libraries are not installed, such as those of `neural.integrations`, can be read.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

MAX_SIGNATURE_LENGTH = 80
"""A longer signature has a line per parameter."""
CONSTANT_DEFAULT = re.compile(r"(?<== )[A-Z][A-Z_]+\b")
"""A default that names a constant, of which a reader wants to see the value."""
PROPERTY_DECORATORS = {"property", "cached_property"}
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Member:
    """A field, property or method of a class. Only methods have a signature."""

    name: str
    signature: str
    doc: str


@dataclass(frozen=True)
class Definition:
    """A function or a class, with the module that defines it."""

    module: str
    node: FunctionNode | ast.ClassDef

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def doc(self) -> str:
        """The docstring without its indentation."""
        return inspect.cleandoc(ast.get_docstring(self.node) or "")

    @property
    def signature(self) -> str:
        """Parameters and return type; of a class those of `__init__`, if it has one."""
        if not isinstance(self.node, ast.ClassDef):
            return format_signature(self.node, self.module)
        if constructor := find_function(self.node, "__init__"):
            return format_signature(constructor, self.module)
        return next(filter(None, (base.signature for base in self.bases())), "")

    def returned_classes(self) -> Iterator[Definition]:
        """Classes of this package in the return type of a function."""
        if isinstance(self.node, ast.ClassDef) or self.node.returns is None:
            return
        for name in find_names(self.node.returns):
            definition = find_definition(self.module, name)
            if definition is not None and definition.is_class:
                yield definition

    def members(self) -> list[Member]:
        """Public fields, properties and methods, also those of base classes in this package."""
        if not isinstance(self.node, ast.ClassDef):
            return []
        members = {member.name: member for member in read_members(self.node, self.module)}
        for base in self.bases():
            members = {member.name: member for member in base.members()} | members
        return list(members.values())

    def bases(self) -> Iterator[Definition]:
        """Base classes in this package."""
        for base in self.node.bases if isinstance(self.node, ast.ClassDef) else ():
            generic = base.value if isinstance(base, ast.Subscript) else base
            for name in find_names(generic):
                definition = find_definition(self.module, name)
                if definition is not None:
                    yield definition


@cache
def read_module(module: str) -> ast.Module | None:
    """The syntax tree of a module of this package; None for other modules."""
    if module.partition(".")[0] != "neural":
        return None
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def find_definition(module: str, name: str) -> Definition | None:
    """A function or class by the name that it has in a module, followed through its imports."""
    tree = read_module(module)
    if tree is None:
        return None
    # the last one: overloads come before the function itself
    for node in reversed(tree.body):
        if isinstance(node, FunctionNode | ast.ClassDef) and node.name == name:
            return Definition(module, node)
    imported = find_import(tree, name)
    return find_definition(*imported) if imported else None


def find_import(tree: ast.Module, name: str) -> tuple[str, str] | None:
    """Module and name from which a module imports a name, also for type checkers only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return node.module, alias.name
    return None


def find_constant(module: str, name: str) -> str | None:
    """The source of a constant's value, followed through imports; None if it is not a literal.

    A path is shown as a text, which users write in its place.
    """
    tree = read_module(module)
    if tree is None:
        return None
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            value = node.value
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "Path":
                value = value.args[0]
            return ast.unparse(value) if isinstance(value, ast.Constant) else None
    imported = find_import(tree, name)
    return find_constant(*imported) if imported else None


def list_definitions(module: str) -> list[Definition]:
    """Public classes and functions that a module defines."""
    tree = read_module(module)
    assert tree is not None, module
    return [
        Definition(module, node)
        for node in tree.body
        if isinstance(node, FunctionNode | ast.ClassDef) and not node.name.startswith("_")
    ]


def read_module_doc(module: str) -> str:
    """The docstring of a module."""
    tree = read_module(module)
    assert tree is not None, module
    return inspect.cleandoc(ast.get_docstring(tree) or "")


def read_members(node: ast.ClassDef, module: str) -> Iterator[Member]:
    """Public fields, properties and methods that have a docstring."""
    for child, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            is_documented = isinstance(following, ast.Expr) and isinstance(
                following.value, ast.Constant
            )
            if is_documented and not child.target.id.startswith("_"):
                yield Member(child.target.id, "", inspect.cleandoc(str(following.value.value)))
        elif isinstance(child, FunctionNode):
            decorators = {name for item in child.decorator_list for name in find_names(item)}
            doc = inspect.cleandoc(ast.get_docstring(child) or "")
            is_public = not child.name.startswith("_") or child.name == "__call__"
            if is_public and doc and "overload" not in decorators:
                is_property = bool(decorators & PROPERTY_DECORATORS)
                yield Member(
                    child.name, "" if is_property else format_signature(child, module), doc
                )


def find_function(node: ast.ClassDef, name: str) -> FunctionNode | None:
    """A method of a class by its name."""
    return next(
        (child for child in node.body if isinstance(child, FunctionNode) and child.name == name),
        None,
    )


def find_names(node: ast.expr) -> list[str]:
    """Names in an expression, such as the classes of a type."""
    return [child.id for child in ast.walk(node) if isinstance(child, ast.Name)]


def format_signature(node: FunctionNode, module: str) -> str:
    """Parameters without `self`, and the return type; a long one has a line per parameter."""
    parameters = split_parameters(remove_first_parameter(node.args))
    returned = ast.unparse(node.returns) if node.returns else "None"
    arrow = "" if returned == "None" else f" -> {returned}"
    text = f"({', '.join(parameters)}){arrow}"
    if len(text) > MAX_SIGNATURE_LENGTH:
        lines = ",\n    ".join(parameters)
        text = f"(\n    {lines},\n){arrow}"
    text = CONSTANT_DEFAULT.sub(lambda match: find_constant(module, match[0]) or match[0], text)
    return re.sub(r"'([^'\"]*)'", r'"\1"', text)


def remove_first_parameter(arguments: ast.arguments) -> ast.arguments:
    """The parameters of a method without `self` or `cls`; of a function, all of them."""
    positional = [*arguments.posonlyargs, *arguments.args]
    is_method = bool(positional) and positional[0].arg in ("self", "cls")
    return ast.arguments(
        posonlyargs=[],
        args=positional[is_method:],
        vararg=arguments.vararg,
        kwonlyargs=arguments.kwonlyargs,
        kw_defaults=arguments.kw_defaults,
        kwarg=arguments.kwarg,
        defaults=arguments.defaults,
    )


def split_parameters(arguments: ast.arguments) -> list[str]:
    """The parameters of a function, each as it is written."""
    missing = len(arguments.args) - len(arguments.defaults)
    defaults: list[ast.expr | None] = [*[None] * missing, *arguments.defaults]
    parameters = [
        format_parameter(argument, default)
        for argument, default in zip(arguments.args, defaults, strict=True)
    ]
    if arguments.vararg:
        parameters.append(f"*{ast.unparse(arguments.vararg)}")
    elif arguments.kwonlyargs:
        parameters.append("*")
    parameters += [
        format_parameter(argument, default)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return parameters + ([f"**{ast.unparse(arguments.kwarg)}"] if arguments.kwarg else [])


def format_parameter(argument: ast.arg, default: ast.expr | None) -> str:
    """Name, type and default of a parameter."""
    equals = " = " if argument.annotation else "="
    return ast.unparse(argument) + (equals + ast.unparse(default) if default else "")
