"""Translate the lines of `layers:`: containers, inputs, copies, and activations of the line above.

A line is one statement of the program; it may stand for several layers, or for none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from neural.core.diagnostics import DiagnosticCollector, Fix
from neural.language.foreign.argument_names import INPUT_ARGUMENTS
from neural.language.foreign.arguments import Reason
from neural.language.foreign.calls import (
    LAST_POSITION,
    CallTranslator,
    add_argument,
    get_order,
    has_argument,
    shorten,
)
from neural.language.foreign.expansions import expand_compound, expand_patches, expand_pooling
from neural.language.foreign.names import (
    COMPOUNDS,
    INPUT_LAYERS,
    LAYERS,
    PASSED_LAYERS,
    PATCHES,
    POOLINGS,
    SEQUENCES,
    STACKS,
    WRAPPED_ARGUMENTS,
)
from neural.language.formatter import format_flat, has_comments
from neural.language.syntax import (
    CallExpression,
    LayerStatement,
    Literal,
    SequenceLiteral,
    Value,
    to_python,
)

LAYER_INDENT = "\n    "
"""Between the layers that a fix writes instead of one."""


@dataclass
class TranslatedLayer:
    """A statement of `layers:` and the statements that are meant by it."""

    source: LayerStatement
    results: list[LayerStatement]
    reasons: list[Reason] = field(default_factory=list)
    input_shape: Value | None = None
    """Shape of the network's input, if the layer says it."""
    channels: int | None = None
    """Input channels of a convolution of PyTorch."""
    unmerged: list[LayerStatement] | None = None
    """The results without the activations of the lines below, if there are such."""
    merged_into: TranslatedLayer | None = None
    """The layer before, of which this one is the activation."""
    edits: tuple[Fix, ...] = ()
    """Changes elsewhere in the program that belong to the fix, such as a new `input:`."""


class LayerTranslator:
    """Translates the lines of `layers:`; errors go to `diagnostics`."""

    def __init__(self, calls: CallTranslator, diagnostics: DiagnosticCollector) -> None:
        self.calls, self.diagnostics = calls, diagnostics

    def translate_layers(self, statements: Iterable[LayerStatement]) -> list[TranslatedLayer]:
        """The layers that are meant, line by line; `report_layers` reports them."""
        lines: list[TranslatedLayer] = []
        for statement in statements:
            line = TranslatedLayer(statement, [statement])
            if not statement.call.broken:
                self.translate_statement(line, is_first=not any(line.results for line in lines))
            self.merge_activation(line, lines)
            lines.append(line)
        return lines

    def translate_statement(self, line: TranslatedLayer, *, is_first: bool) -> None:
        """Translate one statement into `line.results`."""
        statement = line.source
        call = statement.call
        base = call.name.rpartition(".")[2]
        wrapped = [item.value for item in call.arguments if item.name in WRAPPED_ARGUMENTS]
        if call.name in SEQUENCES or base in SEQUENCES:
            inner = [item for value in wrapped for item in _flatten_calls(value)]
            if not inner:
                return
            line.results = []
            for inner_call in inner:
                part = TranslatedLayer(
                    LayerStatement(call=inner_call, copies=None, span=inner_call.span), []
                )
                part.results = [part.source]
                self.translate_statement(part, is_first=is_first and not line.results)
                self.merge_activation(part, [line])
                if part.merged_into is None:
                    line.results += part.results
                line.input_shape = line.input_shape or part.input_shape
                line.channels = line.channels if line.results[:-1] else part.channels
            line.unmerged = None  # the activations inside belong to this line
            self.add_name_reason(line)
        elif base in INPUT_LAYERS:
            line.results = []
            named = [item.value for item in call.arguments if item.name in INPUT_ARGUMENTS]
            line.input_shape = next(iter([*named, *wrapped]), None)
            text = format_flat(line.input_shape) if line.input_shape else "(…)"
            self.add_name_reason(line, f"the shape is a section of the network: `input: {text}`")
        elif base == "Bidirectional" and wrapped and isinstance(wrapped[0], CallExpression):
            inner = self.calls.translate_call(wrapped[0], is_first=is_first, is_keras=True)
            named = [item for item in call.arguments if item.name is not None]
            around = replace(call, name="LSTM", arguments=tuple(named))
            outer = self.calls.translate_call(around, is_first=is_first)
            call = add_argument(inner.call, "bidirectional", True, call.span)
            line.results = [replace(statement, call=replace(call, span=statement.call.span))]
            line.input_shape = inner.input_shape or outer.input_shape
            self.add_name_reason(line)
            specs = self.calls.get_specs(call) or {}
            if not any(item.name == "return_sequences" for item in wrapped[0].arguments) and specs:
                first = line.reasons[0]
                line.reasons[0] = first._replace(help=f"{first.help}; {LAST_POSITION}")
        elif base in PATCHES and (patches := expand_patches(statement)):
            line.results = patches
            self.add_name_reason(line)
        elif base in COMPOUNDS:
            line.results, notes = expand_compound(statement, self.calls)
            self.add_name_reason(line, notes=notes)
        elif base in STACKS and wrapped and isinstance(wrapped[0], CallExpression):
            inner = self.calls.translate_call(wrapped[0], is_first=is_first)
            copies = [item.value for item in call.arguments if item.name == "num_layers"]
            count = next((v for v in [*copies, *wrapped[1:]] if isinstance(v, Literal)), None)
            inner_call = replace(inner.call, span=statement.call.span)
            line.results = [replace(statement, call=inner_call, copies=count)]
            self.add_name_reason(line)
        else:
            translated = self.calls.translate_call(call, is_first=is_first)
            line.reasons, line.input_shape = translated.reasons, translated.input_shape
            line.channels = _get_channels(call)
            copies = statement.copies or translated.copies
            if base in LAYERS and not LAYERS[base].name:
                line.results = []
            elif translated.call is not call:
                line.results = [replace(statement, call=translated.call, copies=copies)]

    def add_name_reason(
        self, line: TranslatedLayer, help_text: str = "", notes: Iterable[str] = ()
    ) -> None:
        """Add the error that a layer is unknown, with what it is called here and what changes."""
        call = line.source.call
        if not help_text:
            text = " and ".join(f"`{shorten(_format_layer(item))}`" for item in line.results)
            help_text = f"`{shorten(format_flat(call))}` is {text or 'nothing'} here"
        message = f"no layer is called `{call.name[:40]}`"
        help_text = "; ".join([help_text, *notes])
        line.reasons.insert(0, Reason("E0201", message, call.name_span, help_text))

    def expand_poolings(self, lines: list[TranslatedLayer], input_shape: Value | None) -> None:
        """Replace pooling over all positions, such as `GlobalMaxPooling1D()`, which needs shapes."""
        for index, line in enumerate(lines):
            base = line.source.call.name.rpartition(".")[2]
            if base not in POOLINGS or line.source.call.broken:
                continue
            before = [item for earlier in lines[:index] for item in earlier.results]
            after = [item for later in lines[index + 1 :] for item in later.results]
            results = expand_pooling(line.source, before, after, input_shape, self.calls.catalogue)
            if results:
                line.results = results
                self.add_name_reason(line)
            else:
                help_text = "pooling over all positions needs their number: `MaxPooling1D(N)`"
                self.add_name_reason(line, help_text)

    def merge_activation(self, line: TranslatedLayer, lines: list[TranslatedLayer]) -> None:
        """Make a layer that is only an activation, such as `ReLU()`, an argument of one before it.

        `lines` are the lines before it.
        """
        if len(line.results) != 1:
            return
        call = line.results[0].call
        activation, change = self.calls.get_layer_activation(call)
        if activation is None:
            return
        message = f"no layer is called `{call.name[:40]}`"
        place = self.find_activated_layer(lines, activation)
        if place is None:
            help_text = (
                f'an activation is an argument of a layer: `Dense(…, activation="{activation}")`'
            )
            line.reasons = [Reason("E0201", message, call.name_span, help_text)]
            return
        owner, index, move = place
        target = owner.results[index]
        merged = add_argument(target.call, "activation", activation, target.call.span)
        owner.unmerged = owner.unmerged or list(owner.results)
        owner.results[index] = replace(target, call=merged)
        help_text = f"an activation is an argument: `{shorten(format_flat(merged))}`"
        help_text = "; ".join(filter(None, [help_text, move, change]))
        line.reasons = [Reason("E0201", message, call.name_span, help_text)]
        line.results = []
        line.merged_into = owner

    def find_activated_layer(
        self, lines: list[TranslatedLayer], activation: str
    ) -> tuple[TranslatedLayer, int, str] | None:
        """The layer before that can take an activation: its line, its place there, what changes."""
        change = ""
        for line in reversed(lines):
            for index in reversed(range(len(line.results))):
                statement = line.results[index]
                specs = self.calls.get_specs(statement.call) or {}
                # in a transformer block `activation` is the one inside
                has_choice = "activation" in specs and ("units" in specs or "filters" in specs)
                if has_choice and statement.copies is None:
                    is_free = not has_argument(statement.call, specs, "activation")
                    return (line, index, change) if is_free else None
                if statement.call.name not in PASSED_LAYERS or activation == "softmax":
                    return None
                change = change or PASSED_LAYERS[statement.call.name]
        return None

    def report_layers(self, lines: list[TranslatedLayer]) -> None:
        """Report all reasons that are not reported yet."""
        for line in lines:
            self.report_layer(line)

    def report_layer(self, line: TranslatedLayer) -> None:
        """Report what is foreign in a line."""
        source = line.source
        edits = line.edits
        fix: Fix | None = None
        if line.reasons and not has_comments(source.call):
            others = list(edits)
            target = line.merged_into
            if target is not None and not has_comments(target.source.call):
                others.append(Fix(target.source.span, _format_results(target.results)))
                others += target.edits
            is_lost = target is not None and len(others) == len(edits)
            text = _format_results(line.unmerged or line.results)
            fix = None if is_lost else Fix(source.span, text, tuple(others))
        own = line.unmerged or line.results
        is_same = bool(own) and _format_results(own) == _format_layer(source)
        if line.merged_into is None and is_same and not line.edits:
            fix = None  # nothing is translated: the reason only explains
        for reason in line.reasons:
            self.diagnostics.add(
                reason.code,
                reason.message,
                reason.span,
                helps=[reason.help],
                fix=reason.fix if reason.fix and not edits else fix,
            )
        line.reasons = []


def _flatten_calls(value: Value) -> list[CallExpression]:
    """The calls in a value: itself, or the items of a list."""
    if isinstance(value, CallExpression):
        return [value]
    if isinstance(value, SequenceLiteral):
        return [call for item in value.items for call in _flatten_calls(item.value)]
    return []


def _get_channels(call: CallExpression) -> int | None:
    """`in_channels` of a convolution of PyTorch, if the call gives it."""
    base = call.name.rpartition(".")[2]
    if base not in ("Conv1d", "Conv2d"):
        return None
    order = get_order(call, LAYERS[base])
    for index, argument in enumerate(call.arguments):
        name = argument.name or (order[index] if index < len(order) else "")
        value = to_python(argument.value)
        if name == "in_channels" and isinstance(value, int):
            return value
    return None


def _format_layer(statement: LayerStatement) -> str:
    """A layer on one line, with its copies."""
    copies = f" * {statement.copies.text}" if statement.copies else ""
    return format_flat(statement.call) + copies


def _format_results(results: list[LayerStatement]) -> str:
    """The layers that a fix writes instead of a line."""
    return LAYER_INDENT.join(_format_layer(result) for result in results)
