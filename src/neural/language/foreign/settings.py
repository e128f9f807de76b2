"""Translate the sections `loss` and `optimizer`, with the schedule of the learning rate.

A setting is one of these sections. Some losses and optimizers do not exist here: the nearest one
is offered, and the help says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from neural.core.names import normalize_name
from neural.core.registry import Registry
from neural.language.catalogue import Catalogue
from neural.language.foreign.arguments import Reason, get_name, get_values
from neural.language.foreign.calls import CallTranslator, find_entry
from neural.language.foreign.schedules import make_schedule, read_schedule
from neural.language.foreign.training_names import (
    CROSS_ENTROPIES,
    LOSSES,
    NEAREST_LOSSES,
    NEAREST_OPTIMIZERS,
    OPTIMIZERS,
)
from neural.language.syntax import Argument, CallExpression, Literal, Value


@dataclass
class TranslatedSetting:
    """A loss or an optimizer with the names of this language."""

    body: Value
    reasons: list[Reason] = field(default_factory=list)


class SettingTranslator:
    """Translates losses and optimizers, which are looked up in `catalogue`."""

    def __init__(self, catalogue: Catalogue, calls: CallTranslator) -> None:
        self.catalogue, self.calls = catalogue, calls

    def translate(
        self, section: str, body: Value, last_call: CallExpression | None = None
    ) -> TranslatedSetting:
        """The value of the section `loss` or `optimizer` with the names of this language.

        `last_call` is the last layer, which decides between the cross-entropies.
        """
        unchanged = TranslatedSetting(body)
        is_loss = section == "loss"
        registry: Registry[Any] = self.catalogue.losses if is_loss else self.catalogue.optimizers
        name = get_name(body)
        call = body if isinstance(body, CallExpression) else None
        if name is None or (call is not None and call.broken):
            return unchanged
        base = name.rpartition(".")[2]
        if is_loss:
            target, is_nearest = self.find_loss(base, last_call)
        else:
            target, is_nearest = find_optimizer(base)
        entry = find_entry(target or base, registry, ignore_case=True)
        if entry is None:
            return unchanged
        is_renamed = target is not None or base != name
        arguments: tuple[Argument, ...] = ()
        reasons: list[Reason] = []
        if call is not None:
            given = [item for item in call.arguments if not _is_parameters(item.value)]
            has_parameters = len(given) < len(call.arguments)
            translated = self.calls.translate_arguments(
                replace(call, arguments=tuple(given)),
                entry,
                is_renamed=is_renamed or has_parameters,
            )
            arguments, reasons = translated.call.arguments, translated.reasons
            if has_parameters and not is_renamed:
                message = f"`{call.name}` takes no weights"
                help_text = "leave them out: all weights are trained"
                reasons.insert(0, Reason("E0210", message, call.arguments[0].span, help_text))
            arguments = tuple(self.translate_rate(item, reasons) for item in arguments)
        if not is_renamed and not reasons:
            return unchanged
        written = registry.name_of(entry)
        new_body: Value
        if arguments or not is_loss:
            new_body = CallExpression(
                name=written if is_renamed else name,
                name_span=call.name_span if call is not None else body.span,
                arguments=arguments,
                span=body.span,
            )
        else:
            new_body = Literal(value=written, text=f'"{written}"', span=body.span)
        if is_renamed:
            code = "E0404" if is_loss else "E0405"
            span = call.name_span if call is not None else body.span
            message = f"no {registry.noun} is called `{name[:40]}`"
            help_text = f"did you mean `{written}`?"
            if is_nearest:
                help_text = f"`{base}` does not exist here; `{written}` is the nearest"
            losses = (item for item in reasons if item.changes_meaning)
            notes = [
                f"`{item.argument}`: {item.help.removeprefix('leave it out: ')}"
                if item.argument
                else item.help
                for item in losses
            ]
            reasons = [Reason(code, message, span, "; ".join([help_text, *notes]))]
        return TranslatedSetting(new_body, reasons)

    def translate_rate(self, argument: Argument, reasons: list[Reason]) -> Argument:
        """The argument `learning_rate` with a schedule of this language."""
        value = argument.value
        if argument.name not in ("learning_rate", "lr") or not isinstance(value, CallExpression):
            return argument
        registry = self.catalogue.optimizers.get("Adam").argument_specs()["learning_rate"].kind
        entry = find_entry(value.name, registry.registry)  # type: ignore[attr-defined]
        if entry is not None:
            specs = entry.argument_specs()
            known = {*specs, *(alias for spec in specs.values() for alias in spec.aliases), None}
            if all(item.name in known for item in value.arguments):
                return argument
        request = read_schedule(value)
        if request is None:
            return argument
        schedule, change = make_schedule(request, None, None, value.span)
        if schedule is None:
            return argument
        shown = value.name.rpartition(".")[2]
        help_text = "; ".join(filter(None, [f"`{shown}` is another schedule here", change]))
        message = f"no schedule is called `{value.name[:40]}`"
        reasons.append(Reason("E0406", message, value.name_span, help_text))
        return replace(argument, value=schedule)

    def find_loss(self, name: str, last_call: CallExpression | None) -> tuple[str | None, bool]:
        """The name here of a loss of another library, and whether it is only the nearest.

        A cross-entropy depends on the last layer. None for a loss that is called so here too.
        """
        normalized = normalize_name(name).replace("-", "")
        if normalized in NEAREST_LOSSES:
            return NEAREST_LOSSES[normalized], True
        if find_entry(name, self.catalogue.losses, ignore_case=True) is not None:
            return None, False
        if normalized in LOSSES:
            return LOSSES[normalized], False
        is_kind = re.search("binary|sigmoid|categorical|sparse", normalized)
        if normalized not in CROSS_ENTROPIES and ("crossentropy" not in normalized or is_kind):
            return None, False
        units: object = None
        activation: object = None
        specs = self.calls.get_specs(last_call) if last_call is not None else None
        if last_call is not None and specs is not None:
            values = get_values(last_call, specs)
            units, activation = values.get("units"), values.get("activation")
        is_binary = activation == "sigmoid" or units == 1
        return ("binary_crossentropy" if is_binary else "sparse_categorical_crossentropy"), False


def find_optimizer(name: str) -> tuple[str | None, bool]:
    """The name here of an optimizer of another library, and whether it is only the nearest."""
    normalized = normalize_name(name).replace("-", "")
    if normalized in NEAREST_OPTIMIZERS:
        return NEAREST_OPTIMIZERS[normalized], True
    return OPTIMIZERS.get(normalized), False


def _is_parameters(value: Value) -> bool:
    """Whether a value is `model.parameters()`, which PyTorch's optimizers take."""
    name = get_name(value) or ""
    return name.rpartition(".")[2] in ("parameters", "named_parameters", "params")
