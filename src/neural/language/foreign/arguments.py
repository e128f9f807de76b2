"""Translate the arguments of a call: `num_heads` for `nhead`, `norm="post"` for `norm_first=False`.

An argument is renamed, says the same in another form, stands elsewhere (the shape of the input,
the number of copies), or is left out. A reason is the error that is reported about it. A mark is
the word before a call that names a library, as `nn` in `nn.LSTM`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from neural.core.diagnostics import Fix, SourceSpan
from neural.core.names import find_closest, normalize_name
from neural.language.argument_types import ChoiceType, EntryType
from neural.language.declaration import ArgumentSpec, Declaration, format_value
from neural.language.foreign.argument_names import (
    ARGUMENTS,
    COPIES,
    IGNORED_ARGUMENTS,
    IGNORED_VALUES,
    INFERRED_ARGUMENTS,
    INPUT_ARGUMENTS,
    SECONDARY_ARGUMENTS,
    VALUES,
)
from neural.language.foreign.names import ACTIVATIONS, NEAREST_ACTIVATIONS
from neural.language.formatter import format_flat
from neural.language.syntax import (
    Argument,
    CallExpression,
    Literal,
    SequenceLiteral,
    Value,
    to_python,
)

CAUSAL_PADDING = (
    'causal padding is not available; `padding="same"` keeps the length, but sees later positions '
    "too; `LSTM` and `GRU` see only earlier ones"
)
"""What to use instead of Keras' `padding="causal"`. There is no fix: the meaning would change."""


class Reason(NamedTuple):
    """An error that is reported about something foreign. Without `fix`, that of its statement."""

    code: str
    message: str
    span: SourceSpan
    help: str
    fix: Fix | None = None
    argument: str = ""
    """The argument that the error is about, if it is one."""

    @property
    def changes_meaning(self) -> bool:
        """Whether the help says that something is lost: then it is repeated for the whole call."""
        return "not available" in self.help or "nearest" in self.help


@dataclass
class TranslatedCall:
    """A call with the names of this language."""

    call: CallExpression
    reasons: list[Reason] = field(default_factory=list)
    copies: Literal | None = None
    input_shape: Value | None = None


class ArgumentTranslator:
    """Translates the arguments of one call for the declaration that it means."""

    def __init__(
        self,
        call: CallExpression,
        entry: type[Declaration],
        order: tuple[str, ...] = (),
        added: Mapping[str, object] | None = None,
        *,
        is_first: bool = False,
        is_renamed: bool = False,
    ) -> None:
        """`order` are the names of positional arguments in the other library, if it has others.

        `added` are arguments that the call gets later. `is_first`: the layer may say the shape of
        the input. `is_renamed`: the call itself is foreign, so that aliases and misspelt names are
        renamed too.
        """
        self.call, self.order = call, order
        self.is_first, self.is_renamed = is_first, is_renamed
        self.specs = entry.argument_specs()
        self.aliases = {alias: spec.name for spec in self.specs.values() for alias in spec.aliases}
        self.result = TranslatedCall(call)
        self.kept: list[Argument] = []
        self.arguments = [
            replace(argument, name=order[index])
            if argument.name is None and index < len(order)
            else argument
            for index, argument in enumerate(call.arguments)
        ]
        positional = [argument for argument in self.arguments if argument.name is None]
        self.taken = {*list(self.specs)[: len(positional)]}
        self.taken |= {
            self.aliases.get(item.name or "", item.name or "") for item in self.arguments
        }
        self.names = {*self.specs, *_get_entry_names(self.arguments, self.specs, added or {})}
        first_targets = (
            self.find_target(item.name or "")
            for item in self.arguments
            if item.name not in SECONDARY_ARGUMENTS
        )
        self.first_targets = {target for target in first_targets if target is not None}

    def translate(self) -> TranslatedCall:
        """The call with its arguments under the names of the declaration."""
        for argument in self.arguments:
            self.translate_argument(argument)
        if self.result.reasons or self.is_renamed:
            self.result.call = replace(self.call, arguments=tuple(self.kept))
        return self.result

    def translate_argument(self, argument: Argument) -> None:
        """Put what an argument means into `kept` or `result`."""
        name = argument.name or ""
        if not name or name in self.names or (name in self.aliases and not self.is_renamed):
            self.keep(argument)
            return
        target = self.aliases.get(name) or self.find_target(name)
        if name in SECONDARY_ARGUMENTS and target in self.first_targets:
            target = None
        converted = convert_argument(argument, self.specs, self.arguments)
        known_target = next((item for item in ARGUMENTS.get(name, ()) if item in self.specs), None)
        if converted is not None:
            text = ", ".join(f"{item.name}={format_flat(item.value)}" for item in converted)
            self.kept += converted
            self.add_reason(
                argument, f"write `{text}`" if text else "leave it out: it is the default"
            )
        elif name in INPUT_ARGUMENTS and self.is_first and target is None:
            self.result.input_shape = argument.value
            text = format_flat(argument.value)
            self.add_reason(argument, f"it is a section of the network: `input: {text}`")
        elif target == COPIES:
            self.set_copies(argument)
        elif target is not None:
            self.taken.add(target)
            span = _get_name_span(argument)
            self.keep(replace(argument, name=target), is_new=True)
            fix = None if self.order else Fix(span, target)
            self.add_reason(argument, f"did you mean `{target}`?", fix)
        elif known_target is not None:
            self.add_reason(argument, f"leave it out: `{known_target}` says it for the whole layer")
        elif name in INFERRED_ARGUMENTS:
            self.add_reason(argument, "leave it out: the size of the input is known")
        elif _is_ignored(argument):
            why = IGNORED_ARGUMENTS.get(name, "no other value is possible here")
            self.add_reason(argument, f"leave it out: {why}")
        else:
            guess = find_closest(name, self.specs) if self.is_renamed else None
            is_new = guess is not None and guess not in self.taken
            self.kept.append(replace(argument, name=guess) if is_new else argument)

    def find_target(self, name: str) -> str | None:
        """What an argument of another library is called here, or None."""
        for target in ARGUMENTS.get(name, ()):
            if target == COPIES or (target in self.names and target not in self.taken):
                return target
        return None

    def add_reason(self, argument: Argument, help_text: str, fix: Fix | None = None) -> None:
        """Note that the call has no such argument."""
        message = f"`{self.call.name}` has no argument `{(argument.name or '')[:40]}`"
        name = argument.name or ""
        reason = Reason("E0202", message, _get_name_span(argument), help_text, fix, name)
        self.result.reasons.append(reason)

    def set_copies(self, argument: Argument) -> None:
        """Make the number of layers the number of copies."""
        count = argument.value
        if not isinstance(count, Literal) or not isinstance(count.value, int):
            self.kept.append(argument)
            return
        self.result.copies = count if count.value != 1 else None
        help_text = f"`* {count.text}` behind the layer makes {count.text} copies"
        self.add_reason(
            argument, help_text if count.value != 1 else "leave it out: it is one layer"
        )

    def keep(self, argument: Argument, *, is_new: bool = False) -> None:
        """Keep an argument that is known here, with its value translated.

        `is_new`: its name has just been translated.
        """
        order = list(self.specs)
        index = len(self.kept)
        name = argument.name or (order[index] if index < len(order) else "")
        spec = self.specs.get(name)
        value = argument.value
        if spec is not None and name == "padding" and not isinstance(to_python(value), str):
            self.keep_padding(argument, spec)
            return
        text = get_name(value)
        if spec is not None and isinstance(spec.kind, EntryType) and not isinstance(value, Literal):
            text = None  # a call has arguments of its own
        is_activation = name == "activation"
        if is_activation and isinstance(value, Literal) and value.value is None:
            reason = Reason("E0206", "`activation` is no activation", value.span, "leave it out")
            self.result.reasons.append(reason)
            return
        if spec is not None and name == "padding" and text == "causal":
            message = f'`padding` must be {spec.kind.description}, got "causal"'
            reason = Reason("E0217", message, argument.span, CAUSAL_PADDING, argument=name)
            self.result.reasons.append(reason)
        choice, note = self.find_choice(spec, text, is_new=is_new) if text else (None, "")
        if spec is None or choice is None:
            self.kept.append(argument)
            return
        literal = Literal(value=choice, text=f'"{choice}"', span=value.span)
        shown = f'"{text}"' if isinstance(value, Literal) else f"{text}(…)"
        message = f"`{name}` must be {spec.kind.description}, got {shown[:42]}"
        help_text = note or f"did you mean `{choice}`?"
        code = getattr(spec.kind, "code", "E0206")
        self.result.reasons.append(
            Reason(code, message, value.span, help_text, Fix(value.span, literal.text))
        )
        self.kept.append(replace(argument, value=literal))

    def find_choice(
        self, spec: ArgumentSpec | None, text: str, *, is_new: bool
    ) -> tuple[str | None, str]:
        """The value here that a text means, if it is another one, and what changes with it."""
        if spec is not None and isinstance(spec.kind, EntryType):
            options: Iterable[str] = spec.kind.registry.names()
        elif spec is not None and isinstance(spec.kind, ChoiceType):
            options = spec.kind.options
        else:
            return None, ""
        if text in options:
            return None, ""
        normalized = normalize_name(text.rpartition(".")[2]).replace("-", "")
        if spec.name == "activation":
            return find_activation(text, tuple(options))
        known = VALUES.get(spec.name, {}).get(normalized)
        same = next((item for item in options if normalize_name(item) == normalized), None)
        choice = known or same
        if choice is None and isinstance(spec.kind, ChoiceType) and (self.is_renamed or is_new):
            choice = find_closest(text, options)
        return (choice if choice is not None and choice in options else None), ""

    def keep_padding(self, argument: Argument, spec: ArgumentSpec) -> None:
        """PyTorch's `padding=1` as "same" or "valid"; unchanged where it is neither."""
        size = next(
            (item for item in self.arguments if item.name in ("kernel_size", "pool_size")), None
        )
        if size is None:
            index = list(self.specs).index("padding") - 2  # before strides and padding
            given = [item for item in self.arguments if item.name is None]
            size = given[index] if index < len(given) else None
        paddings = _to_tuple(to_python(argument.value))
        sizes = _to_tuple(to_python(size.value)) if size is not None else (3,)
        if all(item == 0 for item in paddings):
            choice = None
        elif all(
            isinstance(item, int) and item % 2 and padding == item // 2
            for item in sizes
            for padding in paddings
        ):
            choice = "same"
        else:
            self.kept.append(argument)
            return
        text = f'"{choice}"' if choice else '"valid"'
        message = f"`padding` must be {spec.kind.description}, got {format_flat(argument.value)}"
        help_text = f"`padding={text}` is the same" + ("" if choice else ", and the default")
        self.result.reasons.append(Reason("E0206", message, argument.value.span, help_text))
        if choice:
            value = Literal(value=choice, text=text, span=argument.value.span)
            self.kept.append(replace(argument, value=value))


def convert_argument(
    argument: Argument, specs: Mapping[str, ArgumentSpec], arguments: Iterable[Argument]
) -> list[Argument] | None:
    """Arguments that say the same in another form; None if there is no such form."""
    name, value = argument.name, argument.value
    if name == "betas" and "beta_1" in specs and isinstance(value, SequenceLiteral):
        names = ("beta_1", "beta_2")
        return [replace(item, name=beta) for beta, item in zip(names, value.items, strict=False)]
    literal = value.value if isinstance(value, Literal) else None
    new: tuple[str, object] | None = None
    if isinstance(literal, bool):
        if name in ("norm_first", "normalize_first", "pre_norm", "do_layer_norm_before"):
            new = ("norm", "pre" if literal else "post")
        elif name in ("post_norm", "apply_residual_connection_post_layernorm"):
            new = ("norm", "post" if literal else "pre")
        elif name == "mask_zero":
            new = ("pad_id", 0 if literal else None)
        elif name in ("causal", "is_causal", "use_causal_mask"):
            new = ("attention", "causal" if literal and "cross_attention" not in specs else None)
        elif name in ("rms_norm", "use_rms_norm", "rmsnorm"):
            new = ("normalization", "rms" if literal else None)
        elif name in ("rotary", "use_rope", "rope"):
            new = ("positional", "rotary" if literal else None)
    width = next((item.value for item in arguments if "d_model" in _list_targets(item.name)), None)
    size = width.value if isinstance(width, Literal) else None
    if name in ("mlp_ratio", "ffn_expansion", "ff_mult", "widening_factor", "expansion_factor"):
        is_number = isinstance(literal, int | float) and isinstance(size, int)
        if literal == 4:
            return [] if "dff" in specs else None
        new = ("dff", int(literal * size)) if is_number else None  # type: ignore[operator]
    if new is None or new[0] not in specs:
        return None
    key, choice = new
    if choice is None:
        return []
    literal_value = Literal(value=choice, text=format_value(choice), span=value.span)  # type: ignore[arg-type]
    return [replace(argument, name=key, value=literal_value)]


def _list_targets(name: str | None) -> tuple[str, ...]:
    """All names here that an argument may stand for, its own included."""
    return (name or "", *ARGUMENTS.get(name or "", ()))


def _get_entry_names(
    arguments: Iterable[Argument], specs: Mapping[str, ArgumentSpec], added: Mapping[str, object]
) -> set[str]:
    """Arguments of the entries that a call chooses, such as `rotary_base` of `"rotary"`."""
    given = {item.name: get_name(item.value) for item in arguments}
    chosen = {**given, **added}
    for argument in arguments:
        for target in ARGUMENTS.get(argument.name or "", ()):
            chosen.setdefault(target, get_name(argument.value))
    names: set[str] = set()
    for key, choice in chosen.items():
        spec = specs.get(key or "")
        if spec is None or not isinstance(spec.kind, EntryType) or not isinstance(choice, str):
            continue
        choice = VALUES.get(spec.name, {}).get(normalize_name(choice), choice)
        if choice in spec.kind.registry.names():
            names |= set(spec.kind.registry.get(choice).argument_specs())
    return names


def find_activation(name: str, options: tuple[str, ...]) -> tuple[str | None, str]:
    """The activation that another library calls so, and what changes if it is only the nearest."""
    normalized = normalize_name(name.rpartition(".")[2]).replace("-", "")
    nearest = NEAREST_ACTIVATIONS.get(normalized)
    if nearest in options:
        return nearest, f"`{normalized}` does not exist here; `{nearest}` is the nearest"
    normalized = normalize_name(ACTIVATIONS.get(normalized, normalized))
    return next((item for item in options if normalize_name(item) == normalized), None), ""


def _get_name_span(argument: Argument) -> SourceSpan:
    """Where the name of an argument stands."""
    return SourceSpan(argument.span.start, argument.span.start + len(argument.name or ""))


def _is_ignored(argument: Argument) -> bool:
    """Whether an argument can be left out."""
    name = argument.name or ""
    if name in IGNORED_VALUES:
        return all(item == IGNORED_VALUES[name] for item in _to_tuple(to_python(argument.value)))
    return name in IGNORED_ARGUMENTS


def _to_tuple(value: object) -> tuple[object, ...]:
    """The items of a sequence, or the value alone."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def get_name(value: object) -> str | None:
    """The string, or the name of a call: `"relu"`, `nn.ReLU()`."""
    if isinstance(value, Literal) and isinstance(value.value, str):
        return value.value
    return value.name if isinstance(value, CallExpression) else None


def get_values(call: CallExpression, specs: Mapping[str, ArgumentSpec]) -> dict[str, object]:
    """Literal values of a call's arguments by name."""
    order = list(specs)
    values: dict[str, object] = {}
    for index, argument in enumerate(call.arguments):
        name = argument.name or (order[index] if index < len(order) else "")
        values[name] = argument.value.value if isinstance(argument.value, Literal) else None
    return values
