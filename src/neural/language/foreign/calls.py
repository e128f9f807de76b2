"""Translate calls of layers, losses and optimizers: `nn.Linear(64, 10)` → `Dense(10)`.

A foreign name is one of another library. A reason is an error that is reported about it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from neural.core.diagnostics import SourceSpan
from neural.core.registry import Registry
from neural.language.argument_types import ChoiceType, EntryListType
from neural.language.catalogue import Catalogue
from neural.language.declaration import ArgumentSpec, Declaration, format_value
from neural.language.foreign.argument_names import ARGUMENTS
from neural.language.foreign.arguments import (
    ArgumentTranslator,
    Reason,
    TranslatedCall,
    find_activation,
    get_name,
    get_values,
)
from neural.language.foreign.names import (
    ACTIVATION_LAYERS,
    COMPOUNDS,
    LAYERS,
    MISSING_LAYERS,
    PATCHES,
    POOLINGS,
    RECURRENT_LAYERS,
    TORCH_MARKS,
    TORCH_ORDER,
    TORCH_REQUIRED,
    ForeignLayer,
)
from neural.language.formatter import format_flat
from neural.language.syntax import Argument, CallExpression, Literal

MAX_SHOWN_CALL = 70
"""Longer calls are cut in messages."""
TORCH_MODULES = ("nn", "torch")
"""Last part of the module before a class of PyTorch, as in `torch.nn.LSTM`."""
KERAS_MODULES = ("layers", "keras", "tf", "recurrent")
"""Last part of the module before a class of Keras, as in `keras.layers.LSTM`."""
LAST_POSITION = "Keras returns only the last position, so `return_sequences=false`"


class CallTranslator:
    """Translates calls. Names of layers are looked up in `catalogue`."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def translate_call(
        self, call: CallExpression, *, is_first: bool = False, is_keras: bool = False
    ) -> TranslatedCall:
        """A call of a layer with the names of this language; the same call if nothing is foreign.

        `is_first`: it is the first layer, which may say the shape of the input. `is_keras`: the
        call is known to be one of Keras.
        """
        module, _, base = call.name.rpartition(".")
        layers = self.catalogue.layers
        entry = find_entry(base, layers)
        is_torch = module.rpartition(".")[2] in TORCH_MODULES or _is_torch_call(base, call)
        if entry is not None:
            order = TORCH_ORDER.get(base, ()) if is_torch else ()
            foreign = ForeignLayer(base, order, required=TORCH_REQUIRED.get(base, 0))
        elif base in LAYERS:
            foreign = LAYERS[base]
            entry = find_entry(foreign.name, layers) if foreign.name else None
        elif base in MISSING_LAYERS:
            return TranslatedCall(call, [_make_name_reason(call, MISSING_LAYERS[base])])
        elif base in COMPOUNDS or base in POOLINGS or base in PATCHES:
            return TranslatedCall(call)
        else:
            return self.translate_misspelt_call(call, is_first=is_first)
        if entry is None:
            if foreign.name:
                return TranslatedCall(call)
            reason = _make_name_reason(call, f"leave it out: {foreign.note}")
            return TranslatedCall(replace(call), [reason])
        order = get_order(call, foreign)
        is_renamed = entry.__name__ != call.name
        translated = self.translate_arguments(
            call, entry, order, foreign.added, is_first=is_first, is_renamed=is_renamed
        )
        is_keras = (
            is_keras or module.rpartition(".")[2] in KERAS_MODULES or bool(translated.reasons)
        )
        is_short = entry.__name__ in RECURRENT_LAYERS and is_keras and not is_torch
        is_short = is_short and not has_argument(
            translated.call, entry.argument_specs(), "return_sequences"
        )
        if is_short:
            translated.call = add_argument(translated.call, "return_sequences", False, call.span)
        if is_renamed:
            given = {argument.name for argument in translated.call.arguments}
            for name, value in foreign.added.items():
                if name not in given:
                    translated.call = add_argument(translated.call, name, value, call.name_span)
            ordered = _order_arguments(translated.call.arguments, entry)
            translated.call = replace(translated.call, name=entry.__name__, arguments=ordered)
            copies = f" * {translated.copies.text}" if translated.copies else ""
            text = f"{shorten(format_flat(translated.call))}{copies}"
            losses = (item for item in translated.reasons if item.changes_meaning)
            notes = [foreign.note, *(item.help.removeprefix("leave it out: ") for item in losses)]
            help_text = f"`{shorten(format_flat(call))}` is `{text}` here"
            help_text = "; ".join([help_text, *filter(None, notes)])
            translated.reasons = [_make_name_reason(call, help_text)]
        if is_short and translated.reasons:
            first = translated.reasons[0]
            translated.reasons[0] = first._replace(help=f"{first.help}; {LAST_POSITION}", fix=None)
        return translated

    def translate_misspelt_call(self, call: CallExpression, *, is_first: bool) -> TranslatedCall:
        """A call of a layer that is probably misspelt: translated if its arguments are foreign."""
        layers = self.catalogue.layers
        guess = layers.guess(call.name.rpartition(".")[2])
        if guess is None or self.get_layer_activation(call)[0] is not None:
            return TranslatedCall(call)
        translated = self.translate_arguments(call, layers.get(guess), is_first=is_first)
        if translated.reasons or "." in call.name:
            translated.call = replace(translated.call, name=guess)
            translated.reasons = [
                _make_name_reason(call, f"did you mean `{guess}`?"),
                *(reason._replace(fix=None) for reason in translated.reasons),
            ]
        return translated

    def translate_arguments(
        self,
        call: CallExpression,
        entry: type[Declaration],
        order: tuple[str, ...] = (),
        added: dict[str, object] | None = None,
        *,
        is_first: bool = False,
        is_renamed: bool = False,
    ) -> TranslatedCall:
        """The arguments of a call under the names of `entry`; see ArgumentTranslator."""
        if any(isinstance(spec.kind, EntryListType) for spec in entry.argument_specs().values()):
            return self.translate_nested(call)
        return ArgumentTranslator(
            call, entry, order, added, is_first=is_first, is_renamed=is_renamed
        ).translate()

    def translate_nested(self, call: CallExpression) -> TranslatedCall:
        """A call whose arguments are layers, such as `Residual(…)`, with each of them translated."""
        result = TranslatedCall(call)
        arguments: list[Argument] = []
        for argument in call.arguments:
            if isinstance(argument.value, CallExpression) and not argument.value.broken:
                inner = self.translate_call(argument.value)
                result.reasons += inner.reasons
                argument = replace(argument, value=inner.call)
            arguments.append(argument)
        if result.reasons:
            result.call = replace(call, arguments=tuple(arguments))
        return result

    def get_layer_activation(self, call: CallExpression) -> tuple[str | None, str]:
        """The activation that a layer such as `ReLU()` or `Activation("relu")` is, and what changes.

        None for another layer.
        """
        base = call.name.rpartition(".")[2]
        if base in LAYERS or self.get_specs(call) is not None:
            return None, ""
        name = ACTIVATION_LAYERS.get(base, base)
        given = [
            argument.value for argument in call.arguments if argument.name in (None, "activation")
        ]
        if not name:
            name = get_name(given[0] if given else None) or ""
        options = self.get_activation_options()
        activation, note = find_activation(name, options) if options else (None, "")
        slopes = [item for item in call.arguments if item.name in (None, "alpha", "negative_slope")]
        if activation in ("leaky_relu", "elu") and base not in ACTIVATION_LAYERS and slopes:
            note = note or "its slope cannot be chosen here"
        return activation, note

    def get_activation_options(self) -> tuple[str, ...]:
        """The activations that layers of the catalogue take."""
        for name in ("Dense", "Output", "Conv1D"):
            entry = find_entry(name, self.catalogue.layers)
            kind = entry.argument_specs()["activation"].kind if entry else None
            if isinstance(kind, ChoiceType):
                return kind.options
        return ()

    def get_specs(self, call: CallExpression) -> dict[str, ArgumentSpec] | None:
        """The arguments of the layer that a call names exactly, or None."""
        entry = find_entry(call.name, self.catalogue.layers)
        return entry.argument_specs() if entry else None


def _make_name_reason(call: CallExpression, help_text: str) -> Reason:
    """The error that no layer has that name."""
    return Reason("E0201", f"no layer is called `{call.name[:40]}`", call.name_span, help_text)


def _is_torch_call(base: str, call: CallExpression) -> bool:
    """Whether a recurrent layer is written as PyTorch's: `LSTM(64, 128)`, `GRU(hidden_size=8)`."""
    positional = [argument.value for argument in call.arguments if argument.name is None]
    has_sizes = len(positional) >= 2 and all(
        isinstance(value, Literal) and type(value.value) is int for value in positional[:2]
    )
    has_marks = any(argument.name in TORCH_MARKS for argument in call.arguments)
    return base in RECURRENT_LAYERS and (has_sizes or has_marks)


def get_order(call: CallExpression, foreign: ForeignLayer) -> tuple[str, ...]:
    """Names of the positional arguments of a call of another library.

    `Conv2d(32, 3)` has too few of them for PyTorch: the size of the input was left out.
    """
    needed = foreign.order[: foreign.required]
    positional = sum(argument.name is None for argument in call.arguments)
    given = {
        target
        for argument in call.arguments
        if argument.name is not None
        for target in (argument.name, *ARGUMENTS.get(argument.name, ()))
    }
    missing = [name for name in needed[positional:] if not given & {name, *ARGUMENTS.get(name, ())}]
    return foreign.order[1:] if missing and positional else foreign.order


def find_entry(
    name: str, registry: Registry[Any], *, ignore_case: bool = False
) -> type[Declaration] | None:
    """The entry that is called exactly so, or None."""
    try:
        return registry.get(name, ignore_case=ignore_case)
    except LookupError:
        return None


def add_argument(
    call: CallExpression, name: str, value: object, span: SourceSpan
) -> CallExpression:
    """The call with one more argument."""
    literal = Literal(value=value, text=format_value(value), span=span)  # type: ignore[arg-type]
    argument = Argument(name=name, value=literal, span=span)
    return replace(call, arguments=(*call.arguments, argument))


def _order_arguments(
    arguments: Iterable[Argument], entry: type[Declaration]
) -> tuple[Argument, ...]:
    """Arguments as `repr` of a declaration writes them: required ones first, without names."""
    remaining = list(arguments)
    ordered = [argument for argument in remaining if argument.name is None]
    remaining = [argument for argument in remaining if argument.name is not None]
    specs = list(entry.argument_specs().values())
    for spec in specs[len(ordered) :]:
        argument = next((item for item in remaining if item.name == spec.name), None)
        if entry.print_all_names or not spec.is_required or argument is None:
            break
        ordered.append(replace(argument, name=None))
        remaining.remove(argument)
    return (*ordered, *remaining)


def has_argument(call: CallExpression, specs: dict[str, ArgumentSpec], name: str) -> bool:
    """Whether a call gives an argument, by name or position."""
    return name in get_values(call, specs)


def shorten(text: str) -> str:
    """A call in a message."""
    return text if len(text) <= MAX_SHOWN_CALL else f"{text[: MAX_SHOWN_CALL - 1]}…"
