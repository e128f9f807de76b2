"""Imports point one way, there are no cycles, torch is imported lazily, no module is named by a string."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "neural"
FILES = sorted(SOURCE.rglob("*.py"))
ORDER = (
    "core",
    "stats",
    "native",
    "language",
    "nn",
    "optim",
    "data",
    "tasks",
    "runs",
    "capture",
    "findings",
    "report",
    "training",
    "interpret",
    "workflows",
    "sklearn",
    "callbacks",
    "integrations",
    "exports",
    "imports",
    "lsp",
    "testing",
    "board",
    "cli",
)
"""A folder imports only folders left of it: findings and report read any run without training."""
EXPORTED_BY_NAME = {
    "nn/source_export/symbols.py",
    "nn/source_export/definitions.py",
    "nn/source_export/standalone_file.py",
    "nn/source_export/bundle.py",
}
"""Files that read our source as text, and therefore compare module names."""
PUBLIC_FOLDERS = {"sklearn", "callbacks", "integrations"}
"""Folders that users import names from: `from neural.sklearn import NetworkClassifier`."""


def id_of(file: Path) -> str:
    return file.relative_to(SOURCE).as_posix()


def module_name(file: Path) -> str:
    parts = ["neural", *file.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in FILES}
IN_FOLDERS = [file for file in FILES if file.parent != SOURCE]


def folder_of(module: str) -> str:
    return module.split(".")[1]


def is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def find_imports(node: ast.AST, *, typing: bool = True, functions: bool = True) -> Iterator[str]:
    """Imported modules; with or without imports for type checkers and imports inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute"
            for alias in child.names:
                full_name = f"{child.module}.{alias.name}"
                yield full_name if full_name in MODULES else str(child.module)
        elif is_typing(child) and not typing:
            for statement in child.orelse:
                wrapped = ast.Module([statement], [])
                yield from find_imports(wrapped, typing=typing, functions=functions)
        elif functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from find_imports(child, typing=typing, functions=functions)


@cache
def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def keep_torch(names: Iterator[str]) -> list[str]:
    return [name for name in names if name.partition(".")[0] == "torch"]


def select(*folders: str, but: str = "") -> pytest.MarkDecorator:
    files = [
        file for file in IN_FOLDERS if folder_of(module_name(file)) in folders and file.name != but
    ]
    return pytest.mark.parametrize("file", files, ids=id_of)


def test_the_package_holds_folders_and_nothing_loose():
    assert {path.name for path in SOURCE.glob("*.py")} == {"__init__.py", "__main__.py"}
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert folders == set(ORDER)


@select(*ORDER)
def test_a_folder_imports_only_folders_left_of_it(file):
    position = ORDER.index(folder_of(module_name(file)))
    for name in find_imports(parse(file)):
        if name.startswith("neural."):
            assert ORDER.index(folder_of(name)) <= position, f"{module_name(file)} imports {name}"


def test_there_are_no_import_cycles():
    edges = {
        name: {
            other
            for other in find_imports(parse(file), typing=False)
            if other in MODULES and other != name
        }
        for name, file in MODULES.items()
        if name != "neural"
    }
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name not in done:
            for other in sorted(edges.get(name, ())):
                visit(other, (*path, name))
            done.add(name)

    for name in sorted(edges):
        visit(name, ())
    assert done >= set(edges)


@select("core", "stats", "native", "language")
def test_what_comes_before_nn_does_not_import_torch(file):
    assert not keep_torch(find_imports(parse(file)))


@select("nn", "optim", "training", but="lazy_torch.py")
def test_torch_is_imported_lazily(file):
    imported = find_imports(parse(file), typing=False, functions=False)
    assert not keep_torch(imported), "import it from neural.nn.lazy_torch"


@pytest.mark.parametrize("file", FILES, ids=id_of)
def test_no_module_is_named_by_a_string(file):
    """A string hides a dependency from readers and tools; `module.__name__` does not."""
    if id_of(file) in EXPORTED_BY_NAME:
        return
    parsed = parse(file)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(parsed)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(parsed):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_name = re.fullmatch(r"neural(\.\w+)+", node.value) and node.value in MODULES
            assert not is_name or id(node) in documentation, node.value


@pytest.mark.parametrize(
    "file", [file for file in IN_FOLDERS if file.name == "__init__.py"], ids=id_of
)
def test_an_init_file_holds_a_description_and_perhaps_a_registry(file):
    code = parse(file)
    assert ast.get_docstring(code)
    values = [node for node in code.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom)]
    if file.parent.name in PUBLIC_FOLDERS:
        return
    statements = [ast.unparse(node).partition("(")[0] for node in values]
    assert statements in ([], ["registry = Registry"])
    imported = [node for node in code.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imported for alias in node.names}
    used = {node.id for value in values for node in ast.walk(value) if isinstance(node, ast.Name)}
    assert names - {"annotations"} <= used, "a re-export"
