"""What every entry of every registry promises, whatever it is: a name, words, and a call that makes it again."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import Any

from neural.contract.promise import hold, promise
from neural.core.diagnostics import Findings
from neural.core.names import key
from neural.core.registry import Registry, UnknownName
from neural.language.binding import Binder
from neural.language.parser import parse
from neural.language.syntax import Layer
from neural.standard import CATALOGUE

Entry = type[Any]   # of a subclass of Declared that has a `tiny`

LIGHT = """
import importlib, sys
entry = getattr(importlib.import_module({module!r}), {name!r})
entry.tiny(), entry.summary()
sys.exit("torch" in sys.modules)
"""


@cache
def registries() -> dict[str, Registry[Any]]:
    """By package: those of the catalogue, and those that the settings of their entries lead to."""
    found: dict[str, Registry[Any]] = {}
    waiting: list[Registry[Any]] = [CATALOGUE.layers, CATALOGUE.losses, CATALOGUE.optimizers]
    while waiting:
        registry = waiting.pop()
        if registry.package in found:
            continue
        found[registry.package] = registry
        for name in registry.names():
            kinds = [one.kind for one in registry.get(name).settings().values()]
            waiting += [kind.registry for kind in kinds if hasattr(kind, "registry")]
    return found


def registry_of(entry: Entry) -> Registry[Any]:
    """The one that such an entry belongs to."""
    for registry in registries().values():
        if issubclass(entry, registry.base):
            return registry
    kinds = ", ".join(one.base.__name__ for one in registries().values())
    raise TypeError(f"{entry!r} is no entry of a registry: it must be a subclass of one of {kinds}")


def in_a_file(entry: Entry) -> bool:
    """Not in a notebook."""
    return entry.__module__ != "__main__"


def from_outside(entry: Entry) -> bool:
    """From a file of another package. Ours are read without torch all at once, by a test."""
    return in_a_file(entry) and not entry.__module__.startswith("neural.")


@promise()
def an_entry_is_found_by_its_name(entry: Entry) -> None:
    """By programs and by the command line."""
    registry = registry_of(entry)
    name, noun = registry.spelt(entry), registry.noun
    try:
        found = registry.get(name)
    except UnknownName:
        said = f'{key(name)} = "{entry.__module__}:{entry.__name__}"'
        raise AssertionError(
            f"no {noun} is called `{name}`: name it in pyproject.toml, below "
            f'[project.entry-points."{registry.package}"], as\n    {said}\nand install the project again '
            f"(pip install -e .); or, in a notebook, `registry.add({entry.__name__})`"
        ) from None
    hold(found is entry, f"another {noun} is called `{name}`, from {found.__module__}: choose another name")


@promise(applies=in_a_file)
def an_entry_is_a_file_of_its_own_name(entry: Entry) -> None:
    """`Fading` is in `fading.py`."""
    folder, _, stem = entry.__module__.rpartition(".")
    hold(key(stem) == key(entry.__name__), f"{entry.__name__} is in a file called {stem}.py")
    right = folder == registry_of(entry).package or not folder.startswith("neural.")
    hold(right, f"{entry} is defined somewhere else")


@promise()
def an_entry_and_its_file_say_what_they_are(entry: Entry) -> None:
    """The help shows it."""
    hold(bool(vars(entry).get("__doc__")), "it has no docstring of its own")
    hold(entry.summary().endswith("."), f"the first line of its docstring is no sentence: `{entry.summary()}`")
    if in_a_file(entry):
        hold(bool(sys.modules[entry.__module__].__doc__), "its file does not begin with a docstring")
    silent = [one.name for one in entry.settings().values() if not one.doc]
    hold(not silent, f"its arguments {silent} do not say what they mean")


@promise()
def what_an_entry_prints_is_the_call_that_makes_it(entry: Entry) -> None:
    """Programs are printed, saved and read again."""
    registry, made = registry_of(entry), entry.tiny()
    made = made[0] if isinstance(made, tuple) else made
    findings = Findings()
    (call,) = [one.call for one in parse(repr(made), findings).items if isinstance(one, Layer)]
    again = Binder(findings).call(call, registry, loosely=registry.spelling == "file").made
    hold(not findings.mistakes, f"`{made!r}` cannot be read: {'; '.join(one.message for one in findings.mistakes)}")
    hold(again == made and repr(again) == repr(made), f"`{made!r}` makes another one: `{again!r}`")


@promise()
def an_entry_is_guessed_from_its_name_in_the_wrong_case(entry: Entry) -> None:
    """Did you mean …?"""
    registry = registry_of(entry)
    name = registry.spelt(entry)
    guess = registry.guess(name.swapcase())
    hold(guess == name, f"who types `{name.swapcase()}` is asked whether they meant `{guess}`")


@promise(applies=from_outside)
def its_declaration_is_read_without_torch(entry: Entry) -> None:
    """So that `neural check` answers at once."""
    script = LIGHT.format(module=entry.__module__, name=entry.__name__)
    paths = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    way = "take it from `neural.modules.late`: `from neural.modules.late import torch, nn, functional, Module`"
    hold(done.returncode == 0, f"reading {entry.__module__} imports torch; {way}\n{done.stderr}".rstrip())
