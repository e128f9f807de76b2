"""What is wrong with settings, in plain words: every complaint of the validator becomes a diagnostic with a place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from neural.core.diagnostics import Diagnostic, Findings, Fix, Label, Source
from neural.core.fields import LARGEST, alternatives, bounded, inside, options, says, sections
from neural.core.names import closest, did_you_mean
from neural.core.yaml_places import Entry, Node, plain, short

Path = tuple[str | int, ...]

CODES = dict.fromkeys(["literal_error", "enum"], "E0808") | dict.fromkeys(
    ["greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of", "finite_number", "too_short",
     "too_long", "string_too_short", "string_too_long", "string_pattern_mismatch"], "E0803"
)  # fmt: skip
"""The validator's names for what is wrong with a value; all others are E0802, another kind of value than wanted."""
_YES_AND_NO = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


class Contradiction(ValueError):
    """Values that cannot stand together: a sentence, the keys it speaks of, and a way out."""

    def __init__(self, message: str, *keys: str, help: str | None = None) -> None:  # noqa: A002  # reads best
        super().__init__(message)
        self.keys, self.help = keys, help


class Contradictory(ValueError):
    """All the contradictions of one section."""

    def __init__(self, found: list[Contradiction]) -> None:
        super().__init__("; ".join(map(str, found)))
        self.found = found


@dataclass(frozen=True, slots=True)
class Found:
    """Where a complaint leads in the tree."""

    path: Path
    entry: Entry
    kind: Any
    required: bool

    @property
    def name(self) -> str:
        """How a message calls it."""
        names = [step for step in self.path if isinstance(step, str)]
        last = f"`{names[-1]}`" if names else "the file"
        return f"item {self.path[-1] + 1} of {last}" if self.path and isinstance(self.path[-1], int) else last


@dataclass
class Mistakes:
    """What was found in each of the texts that make one object."""

    texts: dict[Source, Findings] = field(default_factory=dict)

    def of(self, source: Source) -> Findings:
        """Where to say something about this text."""
        return self.texts.setdefault(source, Findings())

    @property
    def any(self) -> bool:
        """Whether anything is wrong."""
        return any(one.wrong for one in self.texts.values())

    def parts(self) -> Iterator[tuple[Source, tuple[Diagnostic, ...]]]:
        """Each text with its mistakes, in the order of its lines."""
        for source, findings in self.texts.items():
            if findings.items:
                yield source, tuple(sorted(findings.items, key=lambda one: one.where.start))

    def values(self, error: ValidationError, kind: type[BaseModel], tree: Node, meant: Iterable[Path]) -> set[Path]:
        """Say what is wrong with keys and values; gives their paths."""
        together: dict[Path, list[tuple[Found, str]]] = {}
        for one in error.errors(include_url=False):
            if one["type"] in ("value_error", "assertion_error") and isinstance(_cause(one), Contradictory):
                continue
            found = follow(kind, tree, one["loc"])
            if one["type"] == "missing":
                self._missing(found, str(one["loc"][-1]), meant)
            elif one["type"] in ("value_error", "assertion_error"):
                self._refused(found, str(_cause(one)))
            else:   # the alternatives of one value complain one by one
                together.setdefault(found.path, []).append((found, one["type"]))
        for complaints in together.values():
            self._value(complaints[0][0], {kind for _, kind in complaints})
        return set(together)

    def contradictions(
        self, error: ValidationError, kind: type[BaseModel], tree: Node, wrong: Iterable[Path] = ()
    ) -> None:
        """Say what does not hold together, unless it speaks of a value that is `wrong` by itself."""
        for one in error.errors(include_url=False):
            cause = _cause(one)
            if not isinstance(cause, Contradictory):
                continue
            found = follow(kind, tree, one["loc"])
            entries = found.entry.node.value
            for each in cause.found:
                if any((*found.path, key) in wrong for key in each.keys):
                    continue
                named = [entries[key] for key in each.keys if key in entries] or [found.entry]
                first, *others = sorted(named, key=lambda entry: entry.key.source == tree.source)   # changes first
                source = first.key.source
                labels = [Label(other.key.where, "and this") for other in others if other.key.source == source]
                self.of(source).say("E0807", str(each), first.key.where, labels=labels, helps=[each.help])

    def _missing(self, found: Found, name: str, meant: Iterable[Path]) -> None:
        if (*found.path, name) in meant:
            return
        known = [section.model_fields[name] for section in sections(found.kind) if name in section.model_fields]
        about = known[0].description if known else None
        home = f" in {found.name}" if found.path else ""
        key = found.entry.key
        helps = [f"`{name}`: {about}" if about else None]
        self.of(key.source).say("E0804", f"`{name}` is missing{home}", key.where, helps=helps)

    def _refused(self, found: Found, reason: str) -> None:
        place = found.entry.place
        code = "E0807" if isinstance(found.entry.node.value, dict) else "E0803"
        self.of(place.source).say(code, f"{found.name}: {reason}", place.where)

    def _value(self, found: Found, complaints: set[str]) -> None:
        node, place = found.entry.node, found.entry.place
        codes = {CODES.get(one, "E0802") for one in complaints}
        code = next(code for code in ("E0803", "E0808", "E0802") if code in codes)
        wanted = says(found.kind)
        if isinstance(node.value, int) and node.value > LARGEST and bounded(found.kind):
            wanted = f"at most {LARGEST:,}"
        message = f"{found.name} must be {wanted}, got {node.written}"
        guess = closest(node.value, options(found.kind)) if isinstance(node.value, str) else None
        fix = Fix(node.where, guess) if guess else None
        self.of(place.source).say(code, message, place.where, helps=[way_out(found)], fix=fix)


def _cause(error: Any) -> BaseException | None:
    return error.get("ctx", {}).get("error")


def follow(kind: Any, tree: Node, steps: Iterable[str | int]) -> Found:
    """As far into the tree as it goes."""
    entry, path, required = Entry(tree, tree), [], True
    for step in steps:
        value = entry.node.value
        if isinstance(value, dict) and step in value:
            entry = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            entry = Entry(entry.key if value[step].block else value[step], value[step])
        else:   # a missing key, or the validator's name for one of several alternatives
            continue
        path.append(step)
        required = any(one.model_fields[step].is_required() for one in sections(kind) if step in one.model_fields)
        kind = inside(kind, step)
    return Found(tuple(path), entry, kind, required)


def way_out(found: Found) -> str | None:
    """How to write what was probably meant."""
    node, kind = found.entry.node, found.kind
    value, wanted = node.value, {one for one, _ in alternatives(kind)}
    if isinstance(value, str) and options(kind):
        return did_you_mean(value, options(kind))
    if isinstance(value, str) and str not in wanted:
        if node.quoted and not isinstance(plain(value), str):
            return f"write it without quotes: `{short(value)}`"
        if bool in wanted and value.lower() in _YES_AND_NO:
            return f"write `{_YES_AND_NO[value.lower()]}`"
    if isinstance(value, float) and int in wanted and value.is_integer():
        return f"write `{int(value)}`"
    if value is None:
        return None if found.required else "leave the line out to have the default"
    if str in wanted and not isinstance(value, str | list | dict):
        return f'write it in quotes: `"{node.written}"`'
    return None


def without(tree: Node, paths: Iterable[Path]) -> Any:
    """The tree's data without what lies at these paths; with an item of a list goes the whole list."""
    data = tree.data
    for path in paths:
        names = path
        while names and isinstance(names[-1], int):
            names = names[:-1]
        inner: Any = data
        for step in names[:-1]:
            inner = inner[step] if isinstance(step, int) and isinstance(inner, list) else inner.get(step, {})
        if names:
            inner.pop(names[-1], None)
    return data


def briefly(error: ValidationError) -> str:
    """All complaints in one line, for settings that come from several places and stand in no text."""
    said = [(".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")) for one in error.errors()]
    return "; ".join(f"{where}: {what}" if where else what for where, what in said)
