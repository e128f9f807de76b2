"""Bind a call such as `Dense(10)` to the class it names: an instance, or diagnostics.

These classes are declarations (declaration.py): their fields are the arguments, and an ArgumentSpec
describes one of them. They are entries of registries: layers, activations, attention mechanisms,
losses, optimizers, schedules. Some arguments choose an entry of another registry, as
`attention="localized"` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from neural.core.diagnostics import DiagnosticCollector, Fix, Label, SourceSpan
from neural.core.names import find_closest
from neural.core.registry import Registry, UnknownNameError
from neural.language.argument_types import (
    ChoiceType,
    EntryListType,
    EntryType,
    InvalidArgumentError,
)
from neural.language.declaration import ArgumentSpec, Declaration, convert_argument
from neural.language.shapes import LayerAdvice, ShapeError
from neural.language.syntax import Argument, CallExpression, Literal, Value, to_python

DeclarationT = TypeVar("DeclarationT", bound=Declaration)

UNKNOWN_NAME_CODES = {
    "layer": "E0201",
    "activation": "E0213",
    "attention mechanism": "E0214",
    "positional encoding": "E0215",
    "loss": "E0404",
    "optimizer": "E0405",
    "schedule": "E0406",
}
"""Diagnostic code for an unknown name, by the registry's noun; E0217 for other registries."""


@dataclass(slots=True)
class BoundCall:
    """The instance that a call creates (None after an error) and the spans of its arguments."""

    instance: Any
    call: CallExpression
    argument_spans: dict[str, SourceSpan] = field(default_factory=dict)
    """Where the program gives each argument, by name."""

    def find_span(self, names: Iterable[str]) -> SourceSpan:
        """Span of the first of these arguments that the program gives, else of the call's name."""
        return next(
            (self.argument_spans[name] for name in names if name in self.argument_spans),
            self.call.name_span,
        )

    def report_shape_error(
        self, diagnostics: DiagnosticCollector, error: ShapeError, suffix: str = ""
    ) -> None:
        """Report a ShapeError at the arguments it names; `suffix` is added to the message."""
        labels = [
            Label(self.argument_spans[name], note)
            for name, note in error.notes.items()
            if name in self.argument_spans
        ]
        notes_without_span = [
            f"`{name}`: {note}"
            for name, note in error.notes.items()
            if name not in self.argument_spans
        ]
        helps = [*notes_without_span, *error.helps]
        start = SourceSpan(self.call.span.start, self.call.span.start)
        has_nested_layers = any(
            isinstance(argument.value, CallExpression) for argument in self.call.arguments
        )
        layer_before = None if has_nested_layers else error.layer_before
        diagnostics.add(
            error.code,
            error.message + suffix,
            self.find_span(error.at),
            labels=labels,
            helps=helps,
            fix=Fix(start, f"{layer_before}\n    ") if layer_before else None,
        )

    def report_advice(self, diagnostics: DiagnosticCollector, advice: LayerAdvice) -> None:
        """Report a warning or note about a layer at the arguments it names."""
        diagnostics.add(advice.code, advice.message, self.find_span(advice.at), helps=advice.helps)


class Binder:
    """Creates the instances that calls describe; errors go to `diagnostics`."""

    def __init__(self, diagnostics: DiagnosticCollector) -> None:
        self.diagnostics = diagnostics
        self.silent_error_count = 0
        """Wrong values that are not reported here, because the parser did."""

    @property
    def failure_count(self) -> int:
        """Number of errors so far, reported by anyone."""
        return self.diagnostics.error_count + self.silent_error_count

    def bind_call(
        self,
        call: CallExpression,
        registry: Registry[DeclarationT],
        *,
        ignore_case: bool = False,
        defaults: Mapping[str, Any] | None = None,
    ) -> BoundCall:
        """Create an instance of the registry entry that the call names.

        `defaults` are values for arguments that the call does not give.
        """
        if call.broken and call.span == call.name_span:  # a lone word, already reported
            return BoundCall(None, call)
        declaration = self.find_declaration(
            call.name, registry, call.name_span, ignore_case=ignore_case
        )
        if call.broken:
            return BoundCall(None, call)
        if declaration is None:
            return self._bind_guess(call, registry)
        return self.bind_arguments(call, declaration, defaults)

    def _bind_guess(self, call: CallExpression, registry: Registry[Any]) -> BoundCall:
        """Bind a call with an unknown name, already reported, to the closest entry.

        Its instance is for shape inference. Further errors are reported if all have a fix: then
        the guess is right, most likely.
        """
        guess = registry.guess(call.name)
        if guess is None:
            return BoundCall(None, call)
        trial = Binder(DiagnosticCollector())
        bound = trial.bind_arguments(call, registry.get(guess))
        errors = trial.diagnostics.errors
        self.silent_error_count += trial.silent_error_count
        if all(error.fix is not None for error in errors):
            self.diagnostics.extend(errors)
            return bound
        return BoundCall(None, call)

    def find_declaration(
        self,
        name: str,
        registry: Registry[DeclarationT],
        span: SourceSpan,
        *,
        ignore_case: bool = False,
    ) -> type[DeclarationT] | None:
        """The declaration of that name; None after reporting an error with the closest name."""
        try:
            return registry.get(name, ignore_case=ignore_case)
        except UnknownNameError as unknown:
            listing = "`neural layers` lists all layers" if registry.noun == "layer" else None
            known = f"known: {', '.join(registry.names())}" if listing is None else listing
            help_text = f"did you mean `{unknown.guess}`?" if unknown.guess else known
            own = None
            if not unknown.guess and registry.noun == "attention mechanism":
                own = (
                    "one of your own needs a line in pyproject.toml below "
                    f'[project.entry-points."{registry.package}"], and `pip install -e .` again'
                )
            message = f"no {registry.noun} is called `{name[:40]}`"
            in_quotes = span.end - span.start > len(name)
            fix = (
                Fix(span, f'"{unknown.guess}"' if in_quotes else unknown.guess)
                if unknown.guess
                else None
            )
            self.diagnostics.add(
                UNKNOWN_NAME_CODES.get(registry.noun, "E0217"),
                message,
                span,
                helps=[help_text, own],
                fix=fix,
            )
            return None

    def bind_arguments(
        self,
        call: CallExpression,
        declaration: type[DeclarationT],
        defaults: Mapping[str, Any] | None = None,
    ) -> BoundCall:
        """Create an instance from the call's arguments, each converted by its ArgumentType."""
        failures_before = self.failure_count
        bound = BoundCall(None, call)
        specs = declaration.argument_specs()
        chosen_entries = self._find_chosen_entries(call, specs)
        matched, guessed_names = self._match_arguments(
            call, declaration, specs, chosen_entries, bound
        )
        entry_arguments = {
            name: argument for name, argument in matched.items() if name not in specs
        }
        values = {
            name: self._bind_value(specs[name], argument, chosen_entries, entry_arguments)
            for name, argument in matched.items()
            if name in specs
        }
        for spec in specs.values():
            if isinstance(spec.kind, EntryListType):
                positional = [argument for argument in call.arguments if argument.name is None]
                registry = spec.kind.registry
                values[spec.name] = tuple(
                    self._bind_nested(argument, registry) for argument in positional
                )
                if not positional:
                    self._report_missing(call, declaration, [spec])
        values |= {
            name: default
            for name, default in (defaults or {}).items()
            if name in specs and name not in matched
        }
        missing = [
            required
            for required in specs.values()
            if required.is_required and required.name not in {*values, *guessed_names}
        ]
        self._report_missing(call, declaration, missing)
        if self.failure_count == failures_before:
            bound.instance = declaration.create_unverified(**values)
            try:
                bound.instance.verify()
            except ShapeError as error:
                bound.report_shape_error(self.diagnostics, error)
        else:
            bound.instance = self._assume_instance(call, declaration)
        return bound

    def _assume_instance(
        self, call: CallExpression, declaration: type[DeclarationT]
    ) -> DeclarationT | None:
        """The instance that a call with errors probably means, so that shapes are followed past it.

        Misspelt names and choices are corrected, unknown arguments are left out. None if an
        argument that the output shape depends on is missing or wrong.
        """
        specs = declaration.argument_specs()
        if any(isinstance(spec.kind, EntryListType) for spec in specs.values()):
            return None
        order = list(specs)
        names = {alias: spec.name for spec in specs.values() for alias in spec.aliases}
        names |= {name: name for name in specs}
        values: dict[str, Any] = {}
        for index, argument in enumerate(call.arguments):
            given_name = argument.name or (order[index] if index < len(order) else "")
            name = names.get(given_name) or names.get(find_closest(given_name, names) or "")
            if name is None or name in values:
                continue
            kind = specs[name].kind
            trial = Binder(DiagnosticCollector())
            values[name] = trial._bind_value(specs[name], argument, {}, {})
            if not trial.failure_count:
                continue
            if isinstance(kind, ChoiceType) and isinstance(argument.value, Literal):
                values[name] = find_closest(str(argument.value.value), kind.options)
            if values[name] is None and kind.affects_shape:
                return None
            if values[name] is None and not specs[name].is_required:
                del values[name]  # the default
        if any(spec.is_required and spec.name not in values for spec in specs.values()):
            return None
        return declaration.create_unverified(**values)

    def _report_missing(
        self, call: CallExpression, declaration: type[Declaration], missing: list[ArgumentSpec]
    ) -> None:
        """Report required arguments that are not given."""
        # Layers that were given but are wrong are not missing: they have errors of their own.
        if missing and not (
            len(missing) == 1 and isinstance(missing[0].kind, EntryListType) and call.arguments
        ):
            names = " and ".join(f"`{spec.name}`" for spec in missing)
            helps = [
                f"`{spec.name}`: {spec.doc[0].lower()}{spec.doc[1:].rstrip('.')}"
                for spec in missing
            ]
            self.diagnostics.add(
                "E0204", f"`{call.name}` needs {names}", call.name_span, helps=helps
            )

    def _find_chosen_entries(
        self, call: CallExpression, specs: dict[str, ArgumentSpec]
    ) -> dict[str, type[Declaration]]:
        """The entries that arguments choose by name, by argument name.

        The arguments of a chosen entry may stand in the same call:
        `attention="localized", window=7` is the same as `attention=localized(window=7)`.
        """
        chosen: dict[str, type[Declaration]] = {}
        order = list(specs)
        for index, argument in enumerate(call.arguments):
            spec = specs.get(argument.name or (order[index] if index < len(order) else ""))
            if (
                spec is None
                or not isinstance(spec.kind, EntryType)
                or not isinstance(argument.value, Literal)
            ):
                continue
            if isinstance(argument.value.value, str) and not _is_quoted_number(
                spec.kind, argument.value.value
            ):
                entry = self.find_declaration(
                    argument.value.value, spec.kind.registry, argument.value.span
                )
                if entry is not None:
                    chosen[spec.name] = entry
        return chosen

    def _match_arguments(
        self,
        call: CallExpression,
        declaration: type[Declaration],
        specs: dict[str, ArgumentSpec],
        chosen_entries: dict[str, type[Declaration]],
        bound: BoundCall,
    ) -> tuple[dict[str, Argument], set[str]]:
        """Match arguments to specs by position, name and alias.

        Fills `bound.argument_spans`. Reports duplicates and unknown names. Returns the arguments by
        name, and the names that wrong arguments were probably meant for: those are not reported as
        missing.
        """
        order = list(specs)
        aliases = {alias: spec.name for spec in specs.values() for alias in spec.aliases}
        entry_names = {name for entry in chosen_entries.values() for name in entry.argument_specs()}
        # Positional arguments of such a declaration are the items of its list, such as layers.
        takes_entry_list = any(isinstance(spec.kind, EntryListType) for spec in specs.values())
        matched: dict[str, Argument] = {}
        guessed_names: set[str] = set()
        keyword_seen = False
        position = 0
        for argument in call.arguments:
            if argument.name is None:
                if takes_entry_list:
                    continue
                if keyword_seen:
                    start = SourceSpan(argument.span.start, argument.span.start)
                    given = {*matched, *(other.name for other in call.arguments)}
                    free = next((name for name in order if name not in given), None)
                    guessed_names.update(order)
                    if _is_lone_word(argument.value):
                        self.silent_error_count += 1
                        continue
                    self.diagnostics.add(
                        "E0211",
                        "a value without a name stands behind one with a name",
                        argument.span,
                        helps=["write the nameless values first, or name this one"],
                        fix=Fix(start, f"{free}=") if free else None,
                    )
                    continue
                if position >= len(order):
                    limit = f"at most {len(order)}" if order else "no"
                    self.diagnostics.add(
                        "E0210",
                        f"`{call.name}` takes {limit} argument{'s' if len(order) != 1 else ''}",
                        argument.span,
                        helps=[f"they are {', '.join(order)}" if len(order) > 1 else None],
                    )
                    break
                name, position = order[position], position + 1
            else:
                keyword_seen = True
                name = aliases.get(argument.name, argument.name)
                if name != argument.name:
                    name_span = SourceSpan(
                        argument.span.start, argument.span.start + len(argument.name)
                    )
                    message = f"`{argument.name}` is another name for `{name}`"
                    self.diagnostics.add("N0701", message, argument.span, fix=Fix(name_span, name))
                if name not in specs and name not in entry_names:
                    given_names = {other.name for other in call.arguments if other.name} - set(
                        chosen_entries
                    )
                    guess = self._report_unknown_argument(
                        call, declaration, argument, [*specs, *aliases, *entry_names], given_names
                    )
                    guessed_names.add(aliases.get(guess, guess))
                    continue
            if name in matched:
                first = matched[name]
                spellings = {other.name for other in (first, argument) if other.name} - {name}
                helps = [f"`{other}` is another name for `{name}`" for other in sorted(spellings)]
                if first.name is None:
                    helps.append(f"the value without a name is `{name}` already")
                label = Label(first.span, "first here")
                self.diagnostics.add(
                    "E0205", f"`{name}` is given twice", argument.span, labels=[label], helps=helps
                )
                continue
            matched[name], bound.argument_spans[name] = argument, argument.span
        return matched, guessed_names

    def _report_unknown_argument(
        self,
        call: CallExpression,
        declaration: type[Declaration],
        argument: Argument,
        known: list[str],
        unresolved_names: set[str],
    ) -> str:
        """Report an argument that the declaration does not have; return the likely name, or "".

        `known` are the names that the call accepts. `unresolved_names` are arguments whose entry
        is unknown, probably misspelt: nothing is reported if the argument may belong to one.
        """
        name = argument.name or ""
        name_span = SourceSpan(argument.span.start, argument.span.start + len(name))
        for spec in declaration.argument_specs().values():
            if isinstance(spec.kind, EntryType) and spec.kind.or_number is None:
                registry = spec.kind.registry
                owners = [
                    owner
                    for owner in registry.names()
                    if name in registry.get(owner).argument_specs()
                ]
                if owners and spec.name in unresolved_names:
                    return ""
                if owners:
                    self.diagnostics.add(
                        "E0216",
                        f'`{name}` belongs to `{spec.name}="{owners[0]}"`',
                        name_span,
                        helps=[f'add `{spec.name}="{owners[0]}"`, or leave `{name}` out'],
                    )
                    return ""
        guess = find_closest(name, known)
        takes = (
            f"`{call.name}` takes {', '.join(declaration.argument_specs())}"
            if known
            else f"`{call.name}` takes none"
        )
        self.diagnostics.add(
            "E0202",
            f"`{call.name}` has no argument `{name[:40]}`",
            name_span,
            helps=[f"did you mean `{guess}`?" if guess else takes],
            fix=Fix(name_span, guess) if guess else None,
        )
        return guess or ""

    def _bind_value(
        self,
        spec: ArgumentSpec,
        argument: Argument,
        chosen_entries: dict[str, type[Declaration]],
        entry_arguments: dict[str, Argument],
    ) -> Any:
        """The value of an argument converted by its spec, or None after an error."""
        literal = argument.value.value if isinstance(argument.value, Literal) else None
        if (
            isinstance(spec.kind, EntryType)
            and isinstance(literal, str)
            and not _is_quoted_number(spec.kind, literal)
        ):
            entry = chosen_entries.get(spec.name) or self.find_declaration(
                literal, spec.kind.registry, argument.value.span
            )
            return self._bind_chosen_entry(entry, argument, entry_arguments) if entry else None
        if isinstance(spec.kind, EntryType) and isinstance(argument.value, CallExpression):
            return self._bind_nested(argument, spec.kind.registry)
        return self.convert_value(spec, argument.value, argument.span)

    def _bind_chosen_entry(
        self, entry: type[Declaration], argument: Argument, entry_arguments: dict[str, Argument]
    ) -> Declaration | None:
        """An instance of an entry chosen by name, with its arguments that stand beside it."""
        failures_before = self.failure_count
        specs_and_arguments = {
            name: (spec, entry_arguments[name])
            for name, spec in entry.argument_specs().items()
            if name in entry_arguments
        }
        values = {
            name: self._bind_value(spec, entry_argument, {}, {})
            for name, (spec, entry_argument) in specs_and_arguments.items()
        }
        missing = [
            spec
            for spec in entry.argument_specs().values()
            if spec.is_required and spec.name not in values
        ]
        name_span = argument.value.span
        call = CallExpression(
            name=entry.__name__, name_span=name_span, arguments=(), span=name_span
        )
        self._report_missing(call, entry, missing)
        if missing or self.failure_count > failures_before:
            return None
        instance = entry.create_unverified(**values)
        try:
            instance.verify()
        except ShapeError as error:
            BoundCall(
                None,
                call,
                {
                    name: entry_argument.span
                    for name, (_, entry_argument) in specs_and_arguments.items()
                },
            ).report_shape_error(self.diagnostics, error)
        return instance

    def convert_value(self, spec: ArgumentSpec, value: Value, span: SourceSpan) -> Any:
        """A value that is no registry entry, converted by the spec; None after an error."""
        if isinstance(value, CallExpression) and value.broken:
            return None
        try:
            return convert_argument(spec, to_python(value))
        except InvalidArgumentError as error:
            fix = Fix(value.span, error.suggestion) if error.suggestion else None
            if _is_lone_word(value) and fix is None:
                self.silent_error_count += 1
                return None
            self.diagnostics.add(
                error.code, error.format_message(spec.name), span, helps=error.helps, fix=fix
            )
            return None

    def _bind_nested(self, argument: Argument, registry: Registry[Any]) -> Any:
        """The instance of a call inside a call: a schedule, a layer in a `Residual`."""
        if isinstance(argument.value, CallExpression):
            return self.bind_call(
                argument.value, registry, ignore_case=registry.spelling == "file"
            ).instance
        self.diagnostics.add("E0206", f"expected a {registry.noun} here", argument.span)
        return None


def _is_lone_word(value: Value) -> bool:
    """Whether a value is a word without quotes, which the parser reported."""
    return isinstance(value, Literal) and value.text == value.value


def _is_quoted_number(kind: EntryType, text: str) -> bool:
    """Whether a string is a number where one is accepted, as in `learning_rate="0.001"`.

    Then the quotes are the error: the text is not an unknown entry name.
    """
    if kind.or_number is None:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True
