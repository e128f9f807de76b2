"""Turn pydantic's validation errors into diagnostics with positions.

A conflict is a set of values that contradict each other, reported by `Settings.verify`
(settings.py). A section is a mapping that a nested settings class describes. `kind` is a type
annotation, or a settings class. `neural explain E0803` explains a code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from neural.core.diagnostics import Diagnostic, DiagnosticCollector, Fix, Label, SourceText
from neural.core.errors import NeuralError
from neural.core.names import find_closest, suggest_name
from neural.core.settings_fields import (
    MAX_COUNT,
    describe_type,
    find_sections,
    get_item_type,
    has_count_limit,
    iter_alternatives,
    list_choices,
)
from neural.core.yaml_positions import YamlEntry, YamlNode, parse_scalar, shorten

KeyPath = tuple[str | int, ...]
"""Keys of mappings and indices of lists, from the root of the file."""

CODE_BY_ERROR_TYPE = dict.fromkeys(["literal_error", "enum"], "E0808") | dict.fromkeys(
    [
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
        "multiple_of",
        "finite_number",
        "too_short",
        "too_long",
        "string_too_short",
        "string_too_long",
        "string_pattern_mismatch",
    ],
    "E0803",
)
"""Diagnostic code by pydantic error type; all others are E0802, a value of the wrong type."""
_YAML_1_1_BOOLS = {  # in YAML 1.2 these words are texts
    "yes": "true",
    "on": "true",
    "y": "true",
    "no": "false",
    "off": "false",
    "n": "false",
}


class SettingsConflictError(NeuralError, ValueError):
    """Values that contradict each other: a message, the keys concerned, and a help."""

    def __init__(self, message: str, *keys: str, help: str | None = None) -> None:  # noqa: A002  # reads best
        super().__init__(message)
        self.keys, self.help = keys, help


class SettingsConflictErrors(NeuralError, ValueError):
    """All conflicts of one section."""

    def __init__(self, conflicts: list[SettingsConflictError]) -> None:
        super().__init__("; ".join(map(str, conflicts)))
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True)
class ErrorLocation:
    """Where in the YAML tree a validation error applies."""

    path: KeyPath
    entry: YamlEntry
    kind: Any
    """Type annotation of the value."""
    is_required: bool
    """Whether the key has no default."""

    @property
    def display_name(self) -> str:
        """Name of the location in messages: "`steps`", "item 2 of `measures`" or "the file"."""
        names = [step for step in self.path if isinstance(step, str)]
        last = f"`{names[-1]}`" if names else "the file"
        return (
            f"item {self.path[-1] + 1} of {last}"
            if self.path and isinstance(self.path[-1], int)
            else last
        )


@dataclass
class SettingsDiagnostics:
    """Diagnostics of one settings object, by source text."""

    by_source: dict[SourceText, DiagnosticCollector] = field(default_factory=dict)

    def for_source(self, source: SourceText) -> DiagnosticCollector:
        """The collector of one text."""
        return self.by_source.setdefault(source, DiagnosticCollector())

    @property
    def has_errors(self) -> bool:
        """Whether any text has an error."""
        return any(collector.error_count for collector in self.by_source.values())

    def iter_sources(self) -> Iterator[tuple[SourceText, tuple[Diagnostic, ...]]]:
        """Each text with its diagnostics, in line order."""
        for source, collector in self.by_source.items():
            if collector.items:
                yield (
                    source,
                    tuple(sorted(collector.items, key=lambda diagnostic: diagnostic.span.start)),
                )

    def report_values(
        self,
        error: ValidationError,
        kind: type[BaseModel],
        tree: YamlNode,
        guessed_paths: Iterable[KeyPath],
    ) -> set[KeyPath]:
        """Report invalid values and missing keys; return the paths of invalid values.

        `guessed_paths` are fields that misspelt keys probably stand for; those are not reported as
        missing.
        """
        failures_by_path: dict[KeyPath, list[tuple[ErrorLocation, str]]] = {}
        for details in error.errors(include_url=False):
            if details["type"] in ("value_error", "assertion_error") and isinstance(
                _get_cause(details), SettingsConflictErrors
            ):
                continue
            location = locate(kind, tree, details["loc"])
            if details["type"] == "missing":
                self._report_missing(location, str(details["loc"][-1]), guessed_paths)
            elif details["type"] in ("value_error", "assertion_error"):
                self._report_rejected(location, str(_get_cause(details)))
            else:  # a union reports one error per alternative
                failures_by_path.setdefault(location.path, []).append((location, details["type"]))
        for failures in failures_by_path.values():
            self._report_value(failures[0][0], {error_type for _, error_type in failures})
        return set(failures_by_path)

    def report_conflicts(
        self,
        error: ValidationError,
        kind: type[BaseModel],
        tree: YamlNode,
        invalid_paths: Iterable[KeyPath] = (),
    ) -> None:
        """Report conflicts, except those of a value that is invalid by itself."""
        for details in error.errors(include_url=False):
            cause = _get_cause(details)
            if not isinstance(cause, SettingsConflictErrors):
                continue
            location = locate(kind, tree, details["loc"])
            entries = location.entry.node.value
            for conflict in cause.conflicts:
                if any((*location.path, key) in invalid_paths for key in conflict.keys):
                    continue
                conflicting_entries = [entries[key] for key in conflict.keys if key in entries] or [
                    location.entry
                ]
                # `--set` overrides first: they are the newest change.
                first, *others = sorted(
                    conflicting_entries, key=lambda entry: entry.key.source == tree.source
                )
                source = first.key.source
                labels = [
                    Label(other.key.span, "and this")
                    for other in others
                    if other.key.source == source
                ]
                self.for_source(source).add(
                    "E0807", str(conflict), first.key.span, labels=labels, helps=[conflict.help]
                )

    def _report_missing(
        self, location: ErrorLocation, name: str, guessed_paths: Iterable[KeyPath]
    ) -> None:
        if (*location.path, name) in guessed_paths:
            return
        fields = [
            section.model_fields[name]
            for section in find_sections(location.kind)
            if name in section.model_fields
        ]
        description = fields[0].description if fields else None
        location_text = f" in {location.display_name}" if location.path else ""
        key = location.entry.key
        helps = [f"`{name}`: {description}" if description else None]
        self.for_source(key.source).add(
            "E0804", f"`{name}` is missing{location_text}", key.span, helps=helps
        )

    def _report_rejected(self, location: ErrorLocation, reason: str) -> None:
        """Report a value that a custom validator refused."""
        node = location.entry.error_node
        code = "E0807" if isinstance(location.entry.node.value, dict) else "E0803"
        self.for_source(node.source).add(code, f"{location.display_name}: {reason}", node.span)

    def _report_value(self, location: ErrorLocation, error_types: set[str]) -> None:
        node, error_node = location.entry.node, location.entry.error_node
        codes = {CODE_BY_ERROR_TYPE.get(error_type, "E0802") for error_type in error_types}
        # Of several alternatives in a union, report the error of the one that came closest: the
        # right type but out of bounds, then an unknown word, then a wrong type.
        code = next(code for code in ("E0803", "E0808", "E0802") if code in codes)
        expected = describe_type(location.kind)
        if (
            isinstance(node.value, int)
            and node.value > MAX_COUNT
            and has_count_limit(location.kind)
        ):
            expected = f"at most {MAX_COUNT:,}"
        message = f"{location.display_name} must be {expected}, got {node.source_text}"
        guess = (
            find_closest(node.value, list_choices(location.kind))
            if isinstance(node.value, str)
            else None
        )
        fix = Fix(node.span, guess) if guess else None
        self.for_source(error_node.source).add(
            code, message, error_node.span, helps=[suggest_fix(location)], fix=fix
        )


def _get_cause(error: Any) -> BaseException | None:
    """The exception that a validator raised, from one item of `ValidationError.errors()`."""
    return error.get("ctx", {}).get("error")


def locate(kind: Any, tree: YamlNode, steps: Iterable[str | int]) -> ErrorLocation:
    """Find the node that a pydantic error location (`loc`) names, or its last existing parent."""
    entry, path, is_required = YamlEntry(tree, tree), [], True
    for step in steps:
        value = entry.node.value
        if isinstance(value, dict) and step in value:
            entry = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            entry = YamlEntry(entry.key if value[step].is_block else value[step], value[step])
        else:  # a missing key, or the validator's name for one of several alternatives
            continue
        path.append(step)
        is_required = any(
            section.model_fields[step].is_required()
            for section in find_sections(kind)
            if step in section.model_fields
        )
        kind = get_item_type(kind, step)
    return ErrorLocation(tuple(path), entry, kind, is_required)


def suggest_fix(location: ErrorLocation) -> str | None:
    """A help that shows how to write what was probably meant, or None."""
    node, kind = location.entry.node, location.kind
    value, accepted_types = node.value, {alternative for alternative, _ in iter_alternatives(kind)}
    if isinstance(value, str) and list_choices(kind):
        return suggest_name(value, list_choices(kind))
    if isinstance(value, str) and str not in accepted_types:
        if node.is_quoted and not isinstance(parse_scalar(value), str):
            return f"write it without quotes: `{shorten(value)}`"
        if bool in accepted_types and value.lower() in _YAML_1_1_BOOLS:
            return f"write `{_YAML_1_1_BOOLS[value.lower()]}`"
    if isinstance(value, float) and int in accepted_types and value.is_integer():
        return f"write `{int(value)}`"
    if value is None:
        return None if location.is_required else "leave the line out to have the default"
    if str in accepted_types and not isinstance(value, str | list | dict):
        return f'write it in quotes: `"{node.source_text}"`'
    return None


def drop_paths(tree: YamlNode, paths: Iterable[KeyPath]) -> Any:
    """The tree as plain data, without the values at these paths.

    The path of a list item removes the complete list.
    """
    data = tree.data
    for path in paths:
        keys = path
        while keys and isinstance(keys[-1], int):
            keys = keys[:-1]
        container: Any = data
        for step in keys[:-1]:
            container = (
                container[step]
                if isinstance(step, int) and isinstance(container, list)
                else container.get(step, {})
            )
        if keys:
            container.pop(keys[-1], None)
    return data


def format_validation_error(error: ValidationError) -> str:
    """All errors in one line, for settings that have no source text."""
    problems = [
        (".".join(map(str, details["loc"])), details["msg"].removeprefix("Value error, "))
        for details in error.errors()
    ]
    return "; ".join(f"{key}: {message}" if key else message for key, message in problems)
