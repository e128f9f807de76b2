"""Contract rules of every registry entry: a name, docstrings, and a `repr` that recreates it.

An entry is a class, such as a layer, that `.neural` programs can name; a registry
(core/registry.py) finds the entries of one kind by name. The catalogue holds the registries of
layers, losses and optimizers. Arguments may name entries of further registries, as in
`attention="self"`. A rule (rule.py) is called with the entry; its docstring says why it exists.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import Any

from neural.core.diagnostics import DiagnosticCollector
from neural.core.names import normalize_name
from neural.core.registry import Registry, UnknownNameError
from neural.language.binder import Binder
from neural.language.parser import parse
from neural.language.syntax import LayerStatement
from neural.optim.catalogue import CATALOGUE
from neural.testing.rule import contract_rule, require

Entry = type[Any]  # a subclass of Declaration that has `example`

# exits with 1 if creating an example of the entry imports torch
NO_TORCH_SCRIPT = """
import importlib, sys
entry = getattr(importlib.import_module({module!r}), {name!r})
entry.example(), entry.summary()
sys.exit("torch" in sys.modules)
"""


@cache
def find_registries() -> dict[str, Registry[Any]]:
    """All registries by package: those of the catalogue, and those that arguments refer to."""
    registries: dict[str, Registry[Any]] = {}
    queue: list[Registry[Any]] = [CATALOGUE.layers, CATALOGUE.losses, CATALOGUE.optimizers]
    while queue:
        registry = queue.pop()
        if registry.package in registries:
            continue
        registries[registry.package] = registry
        for name in registry.names():
            argument_kinds = [spec.kind for spec in registry.get(name).argument_specs().values()]
            queue += [kind.registry for kind in argument_kinds if hasattr(kind, "registry")]
    return registries


def find_registry(entry: Entry) -> Registry[Any]:
    """The registry that an entry belongs to. Raises TypeError if there is none."""
    for registry in find_registries().values():
        if issubclass(entry, registry.base):
            return registry
    bases = ", ".join(registry.base.__name__ for registry in find_registries().values())
    raise TypeError(f"{entry!r} is no registry entry: it must be a subclass of one of {bases}")


def is_in_file(entry: Entry) -> bool:
    """Whether the class is defined in a file, not in a notebook."""
    return entry.__module__ != "__main__"


def is_external(entry: Entry) -> bool:
    """Whether the class is from another package.

    For the built-in entries, one test imports all of them without torch at once.
    """
    return is_in_file(entry) and not entry.__module__.startswith("neural.")


@contract_rule()
def an_entry_is_found_by_its_name(entry: Entry) -> None:
    """Programs and the command line look it up by name."""
    registry = find_registry(entry)
    name, noun = registry.name_of(entry), registry.noun
    try:
        registered = registry.get(name)
    except UnknownNameError:
        entry_point = f'{normalize_name(name)} = "{entry.__module__}:{entry.__name__}"'
        raise AssertionError(
            f"no {noun} is called `{name}`: name it in pyproject.toml, below "
            f'[project.entry-points."{registry.package}"], as\n    {entry_point}\n'
            f"and install the project again (pip install -e .); or, in a notebook, `registry.add({entry.__name__})`"
        ) from None
    require(
        registered is entry,
        f"another {noun} is called `{name}`, from {registered.__module__}: choose another name",
    )


@contract_rule(applies=is_in_file)
def an_entry_is_a_file_of_its_own_name(entry: Entry) -> None:
    """`Fading` is in `fading.py`."""
    folder, _, stem = entry.__module__.rpartition(".")
    require(
        normalize_name(stem) == normalize_name(entry.__name__),
        f"{entry.__name__} is in a file called {stem}.py",
    )
    package = find_registry(entry).package
    in_registry_folder = folder == package or not folder.startswith("neural.")
    require(in_registry_folder, f"{entry} is defined in {folder}, must be in {package}")


@contract_rule()
def an_entry_and_its_file_have_docstrings(entry: Entry) -> None:
    """The help and the documentation show the docstrings."""
    require(bool(vars(entry).get("__doc__")), "the class has no docstring of its own")
    require(
        entry.summary().endswith("."),
        f"the first line of the docstring must be a sentence: `{entry.summary()}`",
    )
    if is_in_file(entry):
        require(bool(sys.modules[entry.__module__].__doc__), "the module has no docstring")
    undocumented = [spec.name for spec in entry.argument_specs().values() if not spec.doc]
    require(not undocumented, f"the arguments {undocumented} have no description")


@contract_rule()
def repr_is_the_call_that_recreates_the_entry(entry: Entry) -> None:
    """Programs are formatted, saved and parsed again."""
    registry, example = find_registry(entry), entry.example()
    instance = example[0] if isinstance(example, tuple) else example  # layers: (layer, shape)
    diagnostics = DiagnosticCollector()
    items = parse(repr(instance), diagnostics).items
    (call,) = [item.call for item in items if isinstance(item, LayerStatement)]
    binder = Binder(diagnostics)
    recreated = binder.bind_call(call, registry, ignore_case=registry.spelling == "file").instance
    messages = "; ".join(error.message for error in diagnostics.errors)
    require(not diagnostics.errors, f"`{instance!r}` cannot be parsed: {messages}")
    require(
        recreated == instance and repr(recreated) == repr(instance),
        f"`{instance!r}` creates a different instance: `{recreated!r}`",
    )


@contract_rule()
def an_entry_is_guessed_from_its_name_in_the_wrong_case(entry: Entry) -> None:
    """Error messages suggest it: "did you mean …?"."""
    registry = find_registry(entry)
    name = registry.name_of(entry)
    guess = registry.guess(name.swapcase())
    require(guess == name, f"the suggestion for `{name.swapcase()}` is `{guess}`, must be `{name}`")


@contract_rule(applies=is_external)
def its_declaration_is_read_without_torch(entry: Entry) -> None:
    """`neural check` must not wait for `import torch`."""
    script = NO_TORCH_SCRIPT.format(module=entry.__module__, name=entry.__name__)
    paths = os.pathsep.join(sys.path)
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    remedy = "import it lazily: `from neural.nn.lazy_torch import torch, nn, functional, Module`"
    require(
        process.returncode == 0,
        f"{entry.__module__} imports torch at import time; {remedy}\n{process.stderr}".rstrip(),
    )
