"""Registries: a registry is a folder, an entry is a file in it, and the file name is its name.

`nn/layers/dense.py` defines `class Dense`; nothing else is needed to add a layer. Listing names
reads only the folder; a file is imported when its entry is used. Other packages add entries
through an entry point group named like the folder's package, notebooks through
`registry.add(...)`.

An alias is a common synonym of a name, such as `hf` for `huggingface`. An entry declares its own in
the class attribute `aliases`, if its base class has that attribute.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from neural.core.errors import NeuralError
from neural.core.names import find_closest, normalize_name, to_snake_case

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EntryT = TypeVar("EntryT")


MAX_LISTED_NAMES = 40
"""An error lists the known names if there are not more than this."""


class UnknownNameError(NeuralError, LookupError):
    """The registry has no such name. `noun` is the kind of entry, `guess` the closest name.

    `choices` are the known names, which the message lists.
    """

    def __init__(
        self, noun: str, name: str, guess: str | None, choices: Sequence[str] = ()
    ) -> None:
        is_listed = 0 < len(choices) <= MAX_LISTED_NAMES
        super().__init__(
            f"no {noun} is called `{name}`"
            + (f"; did you mean `{guess}`?" if guess else "")
            + (f"{' There' if guess else '; there'} are {', '.join(choices)}" * is_listed)
        )
        self.noun, self.name, self.guess, self.choices = noun, name, guess, tuple(choices)


class BrokenEntryError(NeuralError, ImportError):
    """An entry of another package cannot be loaded. The message names the package and the cause."""


class Registry(Generic[EntryT]):
    """The entries of one kind: subclasses of `base`, found by name.

    `package` is the dotted name of the folder, `noun` what messages call an entry. `spelling` is
    how programs write a name: "class" (`Dense`) or "file" (`"localized"`). An entry is a file of
    the folder, or a sub-folder with a file called after the noun (`tasks/segmentation/task.py`).
    Files that begin with `_` and the file of the base class are no entries.
    """

    def __init__(
        self,
        package: str,
        base: type[EntryT],
        *,
        noun: str,
        spelling: Literal["class", "file"] = "class",
    ) -> None:
        self.package, self.base, self.noun, self.spelling = package, base, noun, spelling
        # The keys of all of these are normalized names: lower case without underscores.
        self._added: dict[str, type[EntryT]] = {}  # by `add`
        self._loaded: dict[str, type[EntryT]] = {}  # imported from the folder or another package
        self._allowed: frozenset[str] | None = None  # set by `restrict_to`; None allows all
        self._entry_point_cache: dict[str, EntryPoint] | None = None

    def names(self) -> list[str]:
        """All names as programs write them, sorted. Imports the folder's files."""
        return sorted(
            self.name_of(entry) for entry in (self._load(key) for key in self._list_keys()) if entry
        )

    def get(self, name: str, *, ignore_case: bool = False) -> type[EntryT]:
        """The entry called `name` or with that alias; UnknownNameError with the closest name."""
        entry = self._load(normalize_name(name))
        if entry is not None and (ignore_case or name == self.name_of(entry)):
            return entry
        aliased_entry = self._find_alias(name)
        if aliased_entry is not None:
            return aliased_entry
        raise UnknownNameError(self.noun, name, self.guess(name), self._list_choices())

    def guess(self, name: str) -> str | None:
        """The closest known name, or None."""
        closest = find_closest(name, self._list_keys())
        entry = self._load(closest) if closest else None
        return self.name_of(entry) if entry else None

    def add(self, entry: type[EntryT]) -> type[EntryT]:
        """Add an entry to this process, for notebooks. Replaces an entry of the same name."""
        if not (isinstance(entry, type) and issubclass(entry, self.base)):
            raise TypeError(
                f"a {self.noun} must be a subclass of {self.base.__name__}, got {entry!r}"
            )
        self._added[normalize_name(entry.__name__)] = entry
        return entry

    def restrict_to(self, names: Iterable[str]) -> Registry[EntryT]:
        """A copy with these entries only, for tests whose messages list all known names."""
        restricted = Registry(self.package, self.base, noun=self.noun, spelling=self.spelling)
        restricted._allowed = frozenset(normalize_name(name) for name in names)
        return restricted

    def name_of(self, entry: type[EntryT]) -> str:
        """The entry's name as programs write it."""
        return entry.__name__ if self.spelling == "class" else to_snake_case(entry.__name__)

    def _list_files(self) -> dict[str, str]:
        """Key of every entry in the folder → its module, relative to the package."""
        if sys.modules[self.package].__file__ is None:
            return {}
        folder = Path(str(sys.modules[self.package].__file__)).parent
        modules = {
            module_info.name: f"{module_info.name}.{self.noun}"
            if module_info.ispkg
            else module_info.name
            for module_info in pkgutil.iter_modules([str(folder)])
            if not module_info.ispkg or (folder / module_info.name / f"{self.noun}.py").exists()
        }
        return {
            normalize_name(name): module
            for name, module in modules.items()
            if not name.startswith("_") and f"{self.package}.{module}" != self.base.__module__
        }

    def _load_entry_points(self) -> dict[str, EntryPoint]:
        if self._entry_point_cache is None:
            # Imported here because it takes 30 ms; only a name that is not in the folder needs it.
            from importlib.metadata import entry_points

            self._entry_point_cache = {
                normalize_name(point.name): point for point in entry_points(group=self.package)
            }
        return self._entry_point_cache

    def _find_alias(self, name: str) -> type[EntryT] | None:
        """The entry that declares this alias, in any case and with any separators."""
        if not hasattr(self.base, "aliases"):
            return None
        typed_key = normalize_name(name.replace("-", "_"))
        for key in self._list_keys():
            with suppress(BrokenEntryError):  # another package's entry does not hide the alias
                entry = self._load(key)
                # of the class itself: a subclass has not the synonyms of its base class
                aliases = vars(entry).get("aliases", ()) if entry else ()
                if typed_key in map(normalize_name, aliases):
                    return entry
        return None

    def _list_choices(self) -> list[str]:
        """Names for a message: without those of broken entries of other packages."""
        choices = []
        for key in self._list_keys():
            with suppress(BrokenEntryError):
                entry = self._load(key)
                choices += [self.name_of(entry)] if entry else []
        return sorted(choices)

    def _list_keys(self) -> list[str]:
        known_keys = {*self._list_files(), *self._load_entry_points(), *self._added}
        return sorted(known_keys if self._allowed is None else known_keys & self._allowed)

    def _load(self, name_key: str) -> type[EntryT] | None:
        """The entry with this key, imported if needed; None if there is none."""
        if self._allowed is not None and name_key not in self._allowed:
            return None
        if name_key in self._added:
            return self._added[name_key]
        if name_key not in self._loaded:
            entry = self._load_from_folder(name_key) or self._load_from_entry_point(name_key)
            if entry is None:
                return None
            self._loaded[name_key] = entry
        return self._loaded[name_key]

    def _load_from_folder(self, name_key: str) -> type[EntryT] | None:
        module_name = self._list_files().get(name_key)
        if module_name is None:
            return None
        module = importlib.import_module(f"{self.package}.{module_name}")
        for name, value in vars(module).items():
            if (
                normalize_name(name) == name_key
                and isinstance(value, type)
                and issubclass(value, self.base)
            ):
                return value
        raise ImportError(
            f"{self.package}.{module_name} must define a {self.base.__name__} named like the file"
        )

    def _load_from_entry_point(self, name_key: str) -> type[EntryT] | None:
        entry_point = self._load_entry_points().get(name_key)
        if entry_point is None:
            return None
        package = f" of the package `{entry_point.dist.name}`" if entry_point.dist else ""
        subject = f"the {self.noun} `{entry_point.name}`{package}"
        try:
            entry = entry_point.load()
        except Exception as error:  # another package's file may raise anything
            cause = f"{type(error).__name__}: {error}\n  --> {_format_location(error)}"
            raise BrokenEntryError(f"{subject} cannot be loaded: {cause}") from error
        if not (
            isinstance(entry, type)
            and issubclass(entry, self.base)
            and normalize_name(entry.__name__) == name_key
        ):
            raise BrokenEntryError(
                f"{subject} must be a {self.base.__name__} of that name, got {entry!r}"
            )
        return entry


def _format_location(error: Exception) -> str:
    """`file:line` of the code that raised the error."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return (
        f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        if traceback is not None
        else "?"
    )
