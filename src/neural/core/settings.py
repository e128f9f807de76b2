"""Settings: what a file may say, and reading it so that every mistake has its line and a way out.

    class Training(Settings):
        batch_size: int = Field(32, ge=1, description="Examples per batch.")

    read_settings(Training, Source("small.yaml", "batch_sise: 32"))

error[E0801]: `batch_sise` is not known here
  --> small.yaml:1:1
 1 | batch_sise: 32
   | ^^^^^^^^^^
   = help: did you mean `batch_size`?
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from neural.core.changes import merged, read_change
from neural.core.diagnostics import Diagnostic, Fix, Source, Where, render
from neural.core.fitting import Fitting
from neural.core.mistakes import Contradiction, Contradictory, Mistakes, without
from neural.core.registry import UnknownName
from neural.core.yaml_places import Node, read, short


class Settings(BaseModel):
    """Frozen; unknown keys and values of another kind are refused; nothing is changed into what it is not."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def verify(self) -> Iterator[Contradiction]:
        """What cannot hold together, each as a Contradiction; a subclass yields from its base's first."""
        yield from ()

    @model_validator(mode="after")
    def _verified(self) -> Self:
        if found := list(self.verify()):
            raise Contradictory(found)
        return self


Kind = TypeVar("Kind", bound=Settings)


class SettingsError(ValueError):
    """Settings with mistakes; the message shows all of them, each in its text: the file, or a `--set`."""

    def __init__(self, *parts: tuple[Source, tuple[Diagnostic, ...]]) -> None:
        super().__init__("\n".join(render(one, source) for source, said in parts for one in said))
        self.parts = parts
        """Each text with what is wrong in it."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What is wrong, whichever text it is in."""
        return tuple(one for _, said in self.parts for one in said)


def read_settings(kind: type[Kind], source: Source | None, changes: Sequence[str] = ()) -> Kind:
    """Settings from a YAML file (None: from the defaults), with changes such as `training.seed=3`; or SettingsError."""
    return _Reading(source, changes).settings(kind)


def read_chosen(
    base: type[Kind], key: str, choose: Callable[[str], type[Kind]], source: Source | None, changes: Sequence[str] = ()
) -> Kind:
    """The same where one key says which kind is meant: `choose` finds it by name, or raises UnknownName.

    Where the key is missing or nobody knows the name, what all kinds share (`base`) is checked all the same.
    """
    reading = _Reading(source, changes)
    named = reading.value(key)
    if named is None or not isinstance(named.value, str):
        return reading.settings(base, loosely=named is not None or base.model_fields[key].is_required())
    try:
        kind = choose(named.value)
    except UnknownName as unknown:
        helps = [f"did you mean `{unknown.guess}`?" if unknown.guess else None]
        message = f"no {unknown.noun} is called `{short(unknown.name)}`"
        fix = Fix(named.where, unknown.guess) if unknown.guess else None
        reading.mistakes.of(named.source).say("E0808", message, named.where, helps=helps, fix=fix)
        return reading.settings(base, loosely=True)
    return reading.settings(kind)


def resolved(settings: Settings) -> dict[str, Any]:
    """Everything as plain data, defaults included: what is saved with a run."""
    return settings.model_dump(mode="json")


def restored(kind: type[Kind], data: Any, name: str = "settings.json") -> Kind:
    """The settings that `resolved` gave, or SettingsError where this version does not know them any more."""
    text = json.dumps(data, indent=2)
    try:
        return kind.model_validate_json(text)   # in a run's folder nothing is misspelt: no need of places
    except ValidationError:
        return read_settings(kind, Source(name, text))


class _Reading:
    """The texts that make one object, and what is wrong in them."""

    def __init__(self, source: Source | None, changes: Sequence[str]) -> None:
        self.mistakes = Mistakes()
        start = Source("defaults", "")
        self.root = self.file(source) if source else Node(start, Where(0, 0), {}, block=True)
        texts = [Source("--set", text) for text in changes]
        self.changes = [read_change(one, self.mistakes.of(one)) for one in texts]

    def file(self, source: Source) -> Node | None:
        findings = self.mistakes.of(source)
        root = read(source, findings)
        if root is None or isinstance(root.value, dict):
            return root
        if root.value is None:
            findings.say("E0809", "there is nothing in this file", root.where)
        else:
            findings.say("E0802", f"a file of settings holds keys with values, got {root.written}", root.where)
        return None

    def value(self, key: str) -> Node | None:
        """What the last text that has this key says."""
        found = [one.value[key].node for one in (self.root, *self.changes) if one and key in one.value]
        return found[-1] if found else None

    def settings(self, kind: type[Kind], *, loosely: bool = False) -> Kind:
        """The object, or SettingsError. `loosely`: there may be keys that a kind not known yet would know."""
        fitting = Fitting(kind, self.mistakes, loosely=loosely)
        tree = fitting.fit(self.root) if self.root else None
        for change in filter(None, [fitting.fit(one) for one in self.changes if one]):
            tree = merged(tree, change) if tree else None
        made = self.made(kind, tree, fitting) if tree else None
        if made is None or self.mistakes.any:
            raise SettingsError(*self.mistakes.parts())
        return made

    def made(self, kind: type[Kind], tree: Node, fitting: Fitting) -> Kind | None:
        """The object, or None and every mistake said."""
        try:
            return kind.model_validate_json(json.dumps(tree.data))
        except ValidationError as error:
            wrong = self.mistakes.values(error, kind, tree, fitting.meant)
            self.mistakes.contradictions(error, kind, tree)
        # what contradicts itself shows only where every value is good: look again without the wrong ones
        try:
            kind.model_validate_json(json.dumps(without(tree, wrong)))
        except ValidationError as error:
            self.mistakes.contradictions(error, kind, tree, wrong)
        return None
