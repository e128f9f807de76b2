"""A registry is a folder; an entry is a file in it; its name is the file's name.

`modules/layers/dense.py` defines `class Dense`, and that is all there is to adding a layer. Listing the names
that a "did you mean" compares needs the folder alone; a file is imported when its entry is wanted. Entries from
outside come through an entry point group of the package's name, or through `registry.add(...)` in a notebook.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from neural.core.names import closest, key, snake

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Entry = TypeVar("Entry")


class UnknownName(LookupError):
    """Nothing of that name in the registry; `guess` is what was probably meant."""

    def __init__(self, noun: str, name: str, guess: str | None) -> None:
        super().__init__(f"no {noun} is called `{name}`" + (f"; did you mean `{guess}`?" if guess else ""))
        self.noun, self.name, self.guess = noun, name, guess


class BrokenEntry(ImportError):
    """An entry from another package that cannot be used: which one, and what is wrong with it."""


class Registry(Generic[Entry]):
    """The entries of one kind: classes, found by name.

    `spelling` is how programs write the name: "class" (`Dense`) or "file" (`"localized"`). `beside` are files of the
    folder that are no entries.
    """

    def __init__(
        self, package: str, base: type[Entry], *, noun: str, spelling: Literal["class", "file"] = "class",
        beside: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.package, self.base, self.noun, self.spelling = package, base, noun, spelling
        self._added: dict[str, type[Entry]] = {}
        self._found: dict[str, type[Entry]] = {}
        self._only: frozenset[str] | None = None
        self._beside = frozenset(beside)
        self._outside: dict[str, EntryPoint] | None = None

    def names(self) -> list[str]:
        """Every name as a program writes it, sorted. Imports the folder's files."""
        return sorted(self.spelt(entry) for entry in (self._load(one) for one in self._keys()) if entry)

    def get(self, name: str, *, loosely: bool = False) -> type[Entry]:
        """The entry that programs call `name` (`loosely`: in any case); UnknownName says what was probably meant."""
        entry = self._load(key(name))
        if entry is None or not (loosely or name == self.spelt(entry)):
            raise UnknownName(self.noun, name, self.guess(name))
        return entry

    def guess(self, name: str) -> str | None:
        """The name that was probably meant, or None."""
        near = closest(name, self._keys())
        entry = self._load(near) if near else None
        return self.spelt(entry) if entry else None

    def add(self, entry: type[Entry]) -> type[Entry]:
        """Add an entry for this process, as a notebook does; it is looked up and checked like any other."""
        if not (isinstance(entry, type) and issubclass(entry, self.base)):
            raise TypeError(f"a {self.noun} must be a subclass of {self.base.__name__}, got {entry!r}")
        self._added[key(entry.__name__)] = entry
        return entry

    def only(self, names: Iterable[str]) -> Registry[Entry]:
        """The same registry with these entries alone: a fixed catalogue for tests of messages."""
        fixed = Registry(self.package, self.base, noun=self.noun, spelling=self.spelling, beside=self._beside)
        fixed._only = frozenset(key(name) for name in names)
        return fixed

    def spelt(self, entry: type[Entry]) -> str:
        """How programs write the entry's name."""
        return entry.__name__ if self.spelling == "class" else snake(entry.__name__)

    def _files(self) -> dict[str, str]:
        if sys.modules[self.package].__file__ is None:
            return {}
        folder = Path(str(sys.modules[self.package].__file__)).parent
        stems = [module.name for module in pkgutil.iter_modules([str(folder)])]
        return {key(stem): stem for stem in stems if not stem.startswith("_") and stem not in self._beside}

    def _points(self) -> dict[str, EntryPoint]:
        if self._outside is None:
            from importlib.metadata import entry_points  # 30 ms, and only a name that is in no folder needs it

            self._outside = {key(point.name): point for point in entry_points(group=self.package)}
        return self._outside

    def _keys(self) -> list[str]:
        known = {*self._files(), *self._points(), *self._added}
        return sorted(known if self._only is None else known & self._only)

    def _load(self, wanted: str) -> type[Entry] | None:
        if self._only is not None and wanted not in self._only:
            return None
        if wanted in self._added:
            return self._added[wanted]
        if wanted not in self._found:
            entry = self._from_folder(wanted) or self._from_outside(wanted)
            if entry is None:
                return None
            self._found[wanted] = entry
        return self._found[wanted]

    def _from_folder(self, wanted: str) -> type[Entry] | None:
        stem = self._files().get(wanted)
        if stem is None:
            return None
        module = importlib.import_module(f"{self.package}.{stem}")
        for name, value in vars(module).items():
            if key(name) == wanted and isinstance(value, type) and issubclass(value, self.base):
                return value
        raise ImportError(f"{self.package}.{stem} must define a {self.base.__name__} named like the file")

    def _from_outside(self, wanted: str) -> type[Entry] | None:
        point = self._points().get(wanted)
        if point is None:
            return None
        package = f" of the package `{point.dist.name}`" if point.dist else ""
        subject = f"the {self.noun} `{point.name}`{package}"
        try:
            entry = point.load()
        except Exception as wrong:   # whatever somebody else's file raises
            said = f"{type(wrong).__name__}: {wrong}\n  --> {_place(wrong)}"
            raise BrokenEntry(f"{subject} cannot be loaded: {said}") from wrong
        if not (isinstance(entry, type) and issubclass(entry, self.base) and key(entry.__name__) == wanted):
            raise BrokenEntry(f"{subject} must be a {self.base.__name__} of that name, and is {entry!r}")
        return entry


def _place(wrong: Exception) -> str:
    """The file and the line that raised it."""
    if isinstance(wrong, SyntaxError):
        return f"{wrong.filename}:{wrong.lineno}"
    at = wrong.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}" if at is not None else "?"
