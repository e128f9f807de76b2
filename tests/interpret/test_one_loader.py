"""Models of others are loaded in one place, and one class is a model under study."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "neural"
LOADERS = re.compile(
    r"(.*\.)?(from_pretrained|load_file)|torch\.load|torch\.jit\.load|torch\.export\.load"
)
"""Calls, or functions that are called under another name, that read a model or its weights."""
ALLOWED = {
    "interpret/foreign_models.py": "the one place",
    "exports/huggingface.py": "reads its own export again, to compare it with the network",
    "workflows/import_model.py": "makes a run of a checkpoint; its architecture is in neural/imports",
    "runs/checkpoint.py": "checkpoints of runs",
    "runs/upgrade.py": "checkpoints of runs",
    "tasks/segmentation/features/embedded.py": "a table of word vectors, no model",
    "testing/layer_rules.py": "reads a state dict that it has just written",
}
STUDIED = re.compile(r"(Subject|Predictor|\w*(Watched|Token|Compared|Loaded)Model)$")


def iter_loaders(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and LOADERS.fullmatch(ast.unparse(node)):
            yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and "safetensors" in str(node.module):
            yield from (alias.name for alias in node.names if alias.name == "load_file")


def test_only_the_subject_loads_models_of_others():
    loading = {}
    for file in sorted(SOURCE.rglob("*.py")):
        found = list(iter_loaders(ast.parse(file.read_text(encoding="utf-8"))))
        if found:
            loading[file.relative_to(SOURCE).as_posix()] = found
    others = {name: found for name, found in loading.items() if name not in ALLOWED}
    assert not others, f"use neural.interpret.subject.load_subject: {others}"
    assert loading.keys() == ALLOWED.keys(), "an exception that is not needed any more"


def test_one_class_is_the_model_under_study():
    names = [
        node.name
        for file in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and STUDIED.search(node.name)
    ]
    assert names == ["Subject"]
