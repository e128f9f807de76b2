"""Imports point one way, there are no cycles, and torch enters at one place."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "neural"
FILES = sorted(SOURCE.rglob("*.py"))
ORDER = (
    "core", "language", "modules", "tasks", "tracking", "training", "views", "top", "exports", "imports", "contract",
    "lsp", "cli",
)  # fmt: skip
"""Left never imports right; `top` are the files beside the folders: the catalogue and what `import neural` offers."""
every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))


def module_name(file: Path) -> str:
    parts = ["neural", *file.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in FILES}


def stage(module: str) -> str:
    """The folder that a module lies in."""
    parts = module.split(".")
    return "cli" if module == "neural.__main__" else parts[1] if len(parts) > 1 and parts[1] in ORDER else "top"


def is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(node: ast.AST, *, typing: bool = True, functions: bool = True) -> Iterator[str]:
    """The modules that a piece of code imports; with or without those for type checkers and those inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports name the file from the top"
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                yield whole if whole in MODULES else str(child.module)
        elif is_typing(child) and not typing:
            for other in child.orelse:
                yield from imports(ast.Module([other], []), typing=typing, functions=functions)
        elif functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(child, typing=typing, functions=functions)


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def of_torch(names: Iterator[str]) -> list[str]:
    return [name for name in names if name.partition(".")[0] == "torch"]


@every_file
def test_left_never_imports_right(file):
    here = ORDER.index(stage(module_name(file)))
    for name in imports(tree(file)):
        if name.partition(".")[0] == "neural" and name != "neural":
            assert ORDER.index(stage(name)) <= here, f"{module_name(file)} imports {name}"


def test_no_module_imports_itself_by_way_of_others():
    edges = {
        name: {one for one in imports(tree(file), typing=False) if one in MODULES and one != name}
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


@pytest.mark.parametrize(
    "file",
    [one for one in FILES if stage(module_name(one)) in ("core", "language")],
    ids=lambda file: str(file.relative_to(SOURCE)),
)
def test_core_and_language_do_not_know_torch(file):
    assert not of_torch(imports(tree(file)))


@pytest.mark.parametrize(
    "file",
    [one for one in FILES if stage(module_name(one)) in ("modules", "training") and one.name != "late.py"],
    ids=lambda file: str(file.relative_to(SOURCE)),
)
def test_torch_comes_late(file):
    assert not of_torch(imports(tree(file), typing=False, functions=False)), "take it from neural.modules.late"


@pytest.mark.parametrize(
    "file",
    [one for one in FILES if one.name == "__init__.py" and one.parent != SOURCE],
    ids=lambda file: str(file.parent.relative_to(SOURCE)),
)
def test_a_package_holds_its_map_and_perhaps_a_registry(file):
    code = tree(file)
    assert ast.get_docstring(code)
    values = [node for node in code.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node).partition("(")[0] for node in values] in ([], ["registry = Registry"])
    imported = [node for node in code.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imported for alias in node.names}
    used = {node.id for value in values for node in ast.walk(value) if isinstance(node, ast.Name)}
    assert names - {"annotations"} <= used, "a re-export"


def test_every_folder_is_a_stage():
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert folders <= set(ORDER), folders - set(ORDER)
