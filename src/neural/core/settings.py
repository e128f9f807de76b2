"""Settings read from YAML, with every error located in its source line.

    class Training(Settings):
        batch_size: int = Field(32, ge=1, description="Examples per batch.")

    read_settings(Training, SourceText("small.yaml", "batch_sise: 32"))

error[E0801]: `batch_sise` is not known here
  --> small.yaml:1:1
 1 | batch_sise: 32
   | ^^^^^^^^^^
   = help: did you mean `batch_size`?

A source text is the file or a `--set KEY=VALUE` override. A section is a mapping in the file that
a nested settings class describes. `kind` is a settings class or another type annotation. YamlNode
and YamlEntry (yaml_positions.py) hold values and keys with their positions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from neural.core.diagnostics import (
    Diagnostic,
    DiagnosticCollector,
    Fix,
    Label,
    SourceSpan,
    SourceText,
    render_diagnostic,
)
from neural.core.errors import NeuralError
from neural.core.names import find_closest
from neural.core.registry import UnknownNameError
from neural.core.settings_errors import (
    SettingsConflictError,
    SettingsConflictErrors,
    SettingsDiagnostics,
    drop_paths,
)
from neural.core.settings_fields import (
    accepts_none,
    collect_spellings,
    find_sections,
    get_item_type,
)
from neural.core.yaml_positions import YamlEntry, YamlNode, parse_yaml, shorten

_OVERRIDE_KEY = re.compile(r"\s*([^\s=.]+(?:\.[^\s=.]+)*)\s*=")


def parse_override(source: SourceText, diagnostics: DiagnosticCollector) -> YamlNode | None:
    """Parse `a.b=VALUE` (`--set`) into nested mappings with a YAML value; None after an error."""
    match = _OVERRIDE_KEY.match(source.text)
    if match is None:
        diagnostics.add(
            "E0805",
            "a change is KEY=VALUE, the key with dots between its parts",
            SourceSpan(0, len(source.text)),
            helps=["write it like `training.learning_rate=3e-4`"],
        )
        return None
    value = parse_yaml(source, diagnostics, start=match.end())
    if value is None:
        return None
    # From the last key to the first: `a.b=3` becomes {b: 3}, then {a: {b: 3}}.
    for key in reversed([*re.finditer(r"[^.]+", match[1])]):
        span = SourceSpan(match.start(1) + key.start(), match.start(1) + key.end())
        entry = YamlEntry(YamlNode(source, span, key[0]), value)
        value = YamlNode(source, span, {key[0]: entry}, is_block=True, from_dotted_key=True)
    return value


def merge_override(tree: YamlNode, override: YamlNode) -> YamlNode:
    """The tree with an override applied: `a.b=VALUE` merges into `a` and replaces its key `b`."""
    if not (
        override.from_dotted_key
        and isinstance(tree.value, dict)
        and isinstance(override.value, dict)
    ):
        return override
    entries = dict(tree.value)
    for name, entry in override.value.items():
        existing = entries.get(name)
        entries[name] = YamlEntry(
            entry.key, merge_override(existing.node, entry.node) if existing else entry.node
        )
    return replace(tree, value=entries)


MAX_LISTED_KEYS = 12
"""If a section has more keys than this, the error for an unknown key does not list them."""
SCHEMA_HELP = "`neural schema --format markdown` lists what a file may say"


class KeyMatcher:
    """Matches the keys of a file to the fields of the settings class `kind`.

    Resolves aliases; reports unknown keys and keys given twice, and drops them.
    """

    def __init__(
        self,
        kind: type[BaseModel],
        diagnostics: SettingsDiagnostics,
        *,
        ignore_unknown: bool = False,
    ) -> None:
        self.kind, self.diagnostics, self.ignore_unknown = kind, diagnostics, ignore_unknown
        self.guessed_paths: set[tuple[str | int, ...]] = set()
        """Fields that misspelt keys probably stand for: they are not reported as missing."""

    def match(self, node: YamlNode) -> YamlNode:
        """Match all keys of the tree."""
        return self._match_node(node, self.kind, ())

    def _match_node(self, node: YamlNode, kind: object, path: tuple[str | int, ...]) -> YamlNode:
        section_types = find_sections(kind)
        if section_types and node.value is None and not accepts_none(kind):
            return replace(node, value={})  # all lines of the section are comments
        if section_types and isinstance(node.value, dict):
            return self._match_section(node, section_types, kind, path)
        if isinstance(node.value, list):
            items = [
                self._match_node(child, get_item_type(kind, index), (*path, index))
                for index, child in enumerate(node.value)
            ]
            return replace(node, value=items)
        if isinstance(node.value, dict):
            items = {
                name: YamlEntry(
                    child.key,
                    self._match_node(child.node, get_item_type(kind, name), (*path, name)),
                )
                for name, child in node.value.items()
            }
            return replace(node, value=items)
        return node

    def _match_section(
        self,
        node: YamlNode,
        section_types: list[type[BaseModel]],
        kind: object,
        path: tuple[str | int, ...],
    ) -> YamlNode:
        name_by_spelling = {
            spelling: name
            for section in section_types
            for spelling, name in collect_spellings(section).items()
        }
        entries: dict[str, YamlEntry] = {}
        for spelling, entry in node.value.items():
            name = name_by_spelling.get(spelling)
            if name is None:
                self._report_unknown_key(entry.key, spelling, name_by_spelling, path)
            elif name in entries:
                labels = [Label(entries[name].key.span, "first here")]
                message = (
                    f"`{spelling}` and `{entries[name].key.value}` are two names for one thing"
                )
                self.diagnostics.for_source(entry.key.source).add(
                    "E0806", message, entry.key.span, labels=labels
                )
            else:
                entries[name] = YamlEntry(
                    entry.key,
                    self._match_node(entry.node, get_item_type(kind, name), (*path, name)),
                )
        return replace(node, value=entries)

    def _report_unknown_key(
        self, key: YamlNode, spelling: str, names: dict[str, str], path: tuple[str | int, ...]
    ) -> None:
        if self.ignore_unknown:
            return
        guess, fix = find_closest(spelling, names), None
        owner_sections = [
            name
            for name in self.kind.model_fields
            for section in find_sections(get_item_type(self.kind, name))
            if spelling in collect_spellings(section) and (name,) != path
        ]
        if owner_sections:
            help_text = f"it belongs in the section `{owner_sections[0]}`"
        elif guess:
            help_text = f"did you mean `{guess}`?"
            fix = Fix(key.span, guess)
            self.guessed_paths.add((*path, names[guess]))
        elif spelling == "<<":
            help_text = "merging is not part of YAML 1.2: write the keys out"
        else:
            help_text = (
                f"known here: {', '.join(dict.fromkeys(names.values()))}"
                if len(names) <= MAX_LISTED_KEYS
                else SCHEMA_HELP
            )
        section = f"in `{path[-1]}`" if path and isinstance(path[-1], str) else "here"
        message = f"`{shorten(spelling)}` is not known {section}"
        self.diagnostics.for_source(key.source).add(
            "E0801", message, key.span, helps=[help_text], fix=fix
        )


class Settings(BaseModel):
    """Base class of settings: frozen, no unknown keys, no type coercion."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def verify(self) -> Iterator[SettingsConflictError]:
        """Yield conflicts between values. A subclass begins with `yield from super().verify()`."""
        yield from ()

    @model_validator(mode="after")
    def _check_conflicts(self) -> Self:
        if conflicts := list(self.verify()):
            raise SettingsConflictErrors(conflicts)
        return self


SettingsT = TypeVar("SettingsT", bound=Settings)


class SettingsError(NeuralError, ValueError):
    """Invalid settings. The message renders all errors, each in its text: the file or a `--set`."""

    def __init__(self, *diagnostics_by_source: tuple[SourceText, tuple[Diagnostic, ...]]) -> None:
        super().__init__(
            "\n".join(
                render_diagnostic(diagnostic, source)
                for source, diagnostics in diagnostics_by_source
                for diagnostic in diagnostics
            )
        )
        self.diagnostics_by_source = diagnostics_by_source
        """Each text with its diagnostics."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of all texts."""
        return tuple(
            diagnostic
            for _, diagnostics in self.diagnostics_by_source
            for diagnostic in diagnostics
        )


def read_settings(
    kind: type[SettingsT], source: SourceText | None, overrides: Sequence[str] = ()
) -> SettingsT:
    """Read settings from a YAML file and overrides (`training.seed=3`), or raise SettingsError.

    If `source` is None, all values are defaults or overrides.
    """
    return _SettingsReader(source, overrides).build(kind)


def read_settings_by_key(
    base: type[SettingsT],
    key: str,
    find_kind: Callable[[str], type[SettingsT]],
    source: SourceText | None,
    overrides: Sequence[str] = (),
) -> SettingsT:
    """Read settings whose class depends on one key, or raise SettingsError.

    `find_kind` returns the class for the key's value, or raises UnknownNameError. If that value is
    unknown, only the keys of `base`, which all classes share, are checked.
    """
    reader = _SettingsReader(source, overrides)
    node = reader.find_value(key)
    misspelt = reader.find_misspelt(key) if node is None else None
    if misspelt is not None and isinstance(misspelt.value, str):
        with suppress(UnknownNameError):  # the class is known, and so are its keys
            return reader.build(find_kind(misspelt.value))
    if node is None or not isinstance(node.value, str):
        # The key is missing or no string, so the class is unknown: a key that `base` does not have
        # may belong to one of the classes. Only if the key has a default is `base` the class.
        return reader.build(
            base, ignore_unknown=node is not None or base.model_fields[key].is_required()
        )
    try:
        kind = find_kind(node.value)
    except UnknownNameError as unknown:
        helps = [f"did you mean `{unknown.guess}`?" if unknown.guess else None]
        helps += [f"there are {', '.join(unknown.choices)}" if unknown.choices else None]
        message = f"no {unknown.noun} is called `{shorten(unknown.name)}`"
        fix = Fix(node.span, unknown.guess) if unknown.guess else None
        reader.diagnostics.for_source(node.source).add(
            "E0808", message, node.span, helps=helps, fix=fix
        )
        return reader.build(base, ignore_unknown=True)
    return reader.build(kind)


def dump_settings(settings: Settings) -> dict[str, Any]:
    """All settings as JSON values, defaults included; saved with a run."""
    return settings.model_dump(mode="json")


def flatten_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings with dotted keys: {"training": {"steps": 5}} → {"training.steps": 5}.

    `prefix` is put before every key.
    """
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten_settings(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def load_settings(kind: type[SettingsT], data: Any, name: str = "settings.json") -> SettingsT:
    """Load what `dump_settings` returned; SettingsError where this version cannot read it."""
    text = json.dumps(data, indent=2)
    try:
        return kind.model_validate_json(text)
    except ValidationError:  # parse again, slower, for errors with positions
        return read_settings(kind, SourceText(name, text))


class _SettingsReader:
    """Reads one settings object from a file and overrides, and collects their diagnostics."""

    def __init__(self, source: SourceText | None, overrides: Sequence[str]) -> None:
        self.diagnostics = SettingsDiagnostics()
        empty_root = YamlNode(SourceText("defaults", ""), SourceSpan(0, 0), {}, is_block=True)
        self.root = self.read_file(source) if source else empty_root
        override_sources = [SourceText("--set", text) for text in overrides]
        self.overrides = [
            parse_override(text, self.diagnostics.for_source(text)) for text in override_sources
        ]

    def read_file(self, source: SourceText) -> YamlNode | None:
        diagnostics = self.diagnostics.for_source(source)
        root = parse_yaml(source, diagnostics)
        if root is None or isinstance(root.value, dict):
            return root
        if root.value is None:
            diagnostics.add("E0809", "there is nothing in this file", root.span)
        else:
            diagnostics.add(
                "E0802",
                f"a file of settings holds keys with values, got {root.source_text}",
                root.span,
            )
        return None

    def find_value(self, key: str) -> YamlNode | None:
        """The value of a top-level key; an override wins over the file."""
        nodes = [
            tree.value[key].node
            for tree in (self.root, *self.overrides)
            if tree and key in tree.value
        ]
        return nodes[-1] if nodes else None

    def find_misspelt(self, key: str) -> YamlNode | None:
        """The value of a top-level key whose name is close to `key`, such as `taks` to `task`."""
        trees = (self.root, *self.overrides)
        entries = {name: entry for tree in trees if tree for name, entry in tree.value.items()}
        guess = next((name for name in entries if find_closest(name, [key])), None)
        return None if guess is None else entries[guess].node

    def build(self, kind: type[SettingsT], *, ignore_unknown: bool = False) -> SettingsT:
        """The settings object, or SettingsError. `ignore_unknown`: do not report unknown keys."""
        matcher = KeyMatcher(kind, self.diagnostics, ignore_unknown=ignore_unknown)
        tree = matcher.match(self.root) if self.root else None
        for override in [matcher.match(node) for node in self.overrides if node]:
            tree = merge_override(tree, override) if tree else None
        settings = self.validate(kind, tree, matcher) if tree else None
        if settings is None or self.diagnostics.has_errors:
            raise SettingsError(*self.diagnostics.iter_sources())
        return settings

    def validate(
        self, kind: type[SettingsT], tree: YamlNode, matcher: KeyMatcher
    ) -> SettingsT | None:
        """The settings object, or None after reporting every error."""
        try:
            return kind.model_validate_json(json.dumps(tree.data))
        except ValidationError as error:
            invalid_paths = self.diagnostics.report_values(error, kind, tree, matcher.guessed_paths)
            self.diagnostics.report_conflicts(error, kind, tree)
        # `verify` runs only when every value is valid: validate again without the invalid ones.
        try:
            kind.model_validate_json(json.dumps(drop_paths(tree, invalid_paths)))
        except ValidationError as error:
            self.diagnostics.report_conflicts(error, kind, tree, invalid_paths)
        return None
