"""Move what stands in the wrong place: keys of `train`, arguments of the optimizer, sections.

In other libraries `epochs`, `lr` or a schedule may stand anywhere: beside the network, in
`compile { … }`, in `model.fit(…)`. A source is where such a value stands in the program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from neural.core.diagnostics import DiagnosticCollector, Fix, SourceSpan
from neural.language.foreign.arguments import Reason
from neural.language.foreign.calls import find_entry
from neural.language.foreign.moved_values import (
    MovedValues,
    convert_train_value,
    find_patience,
    get_train_specs,
)
from neural.language.foreign.schedules import make_schedule
from neural.language.foreign.settings import SettingTranslator
from neural.language.foreign.training_names import (
    HUGGING_FACE_KEYS,
    IGNORED_SECTIONS,
    OPTIMIZER_KEYS,
    SCHEDULE_KEYS,
    SECTIONS,
    SETUP_CALLS,
    TRAIN_KEYS,
)
from neural.language.formatter import format_flat, has_comments
from neural.language.syntax import (
    SECTION_NAMES,
    Argument,
    CallExpression,
    LayerStatement,
    Literal,
    Section,
)

SECTION_INDENT = "\n  "
"""Between the sections that a fix writes instead of one."""


class ValueMover:
    """Moves values to their places; errors go to `diagnostics`."""

    def __init__(self, settings: SettingTranslator, diagnostics: DiagnosticCollector) -> None:
        self.settings, self.diagnostics = settings, diagnostics

    def collect(self, sections: list[Section]) -> tuple[list[Section], MovedValues]:
        """The sections without what stands in the wrong place, and the values of that."""
        moved = MovedValues()
        kept: list[Section] = []
        for section in sections:
            if section.name == "train" and section.is_block and isinstance(section.body, tuple):
                kept.append(replace(section, body=self.take_train_keys(section.body, moved)))
            elif section.name == "layers" and has_layers(section):
                kept.append(replace(section, body=self.take_setup_calls(section.body, moved)))
            elif not self.take_section(section, moved):
                kept.append(section)
        return kept, moved

    def take_section(self, section: Section, moved: MovedValues) -> bool:
        """Take a section whose value belongs elsewhere; return whether it does."""
        name, body = section.name, section.body
        if section.broken or (name in SECTION_NAMES and not section.is_block):
            return False
        before = replace(moved, train=dict(moved.train), optimizer=list(moved.optimizer))
        if isinstance(body, CallExpression) and _is_setup(body):
            known = True
            for item in body.arguments:
                moved.take(item.name or "", item.value)
        elif section.is_block and isinstance(body, tuple):
            known = name not in ("train", "layers") and moved.take_pairs(name, body)
        else:
            known = not isinstance(body, tuple) and moved.take(name, body)
        if not known:
            moved.train, moved.optimizer = before.train, before.optimizer
            return False
        is_optimizer = name in OPTIMIZER_KEYS or name in SCHEDULE_KEYS or name == "optimizer"
        help_text = "it belongs to the optimizer" if is_optimizer else "it belongs in `train { … }`"
        if section.is_block or (isinstance(body, CallExpression) and _is_setup(body)):
            help_text = "`loss:`, `optimizer:` and `train { … }` are sections of the network"
        moved.sources.append(section.span)
        message = f"`{name}` is no section of a network"
        if name == "optimizer":
            message = "`optimizer` is a call, not a block"
        moved.reasons.append(Reason("E0401", message, section.name_span, help_text))
        return True

    def take_train_keys(self, pairs: tuple[Any, ...], moved: MovedValues) -> tuple[Section, ...]:
        """The keys of `train` under their names here, without those that stand elsewhere."""
        kept: list[Section] = []
        pairs = tuple(pair for pair in pairs if isinstance(pair, Section))
        names = {pair.name for pair in pairs}
        for pair in pairs:
            name = pair.name
            moved.names.add(name)
            key = TRAIN_KEYS.get(name, name)
            if pair.broken:
                kept.append(pair)
                continue
            if name in IGNORED_SECTIONS and name not in get_train_specs():
                self.drop_key(pair, kept)
                continue
            is_value = not (pair.is_block or isinstance(pair.body, tuple))
            if key in get_train_specs():
                is_new = is_value and (name == key or key not in names)
                kept += self.rename_key(pair, key) if is_new else [pair]
                continue
            is_pairs = isinstance(pair.body, tuple)
            if not (moved.take_pairs if is_pairs else moved.take)(name, pair.body):  # type: ignore[arg-type]
                kept.append(pair)
                continue
            moved.sources.append(pair.span)
            help_text = "it is an argument of the optimizer: `optimizer: Adam(learning_rate=…)`"
            if SECTIONS.get(name, name) in ("loss", "optimizer"):
                help_text = f"`{SECTIONS.get(name, name)}:` is a section beside `train {{ … }}`"
            message = f"`train` has no key `{name[:40]}`"
            moved.reasons.append(Reason("E0501", message, pair.name_span, help_text))
        return tuple(kept)

    def drop_key(self, pair: Section, kept: list[Section]) -> None:
        """Leave out a key of `train` that has no counterpart; keep the patience of a callback."""
        help_text = f"leave it out: {IGNORED_SECTIONS[pair.name]}"
        fix = Fix(pair.span, "")
        patience = None
        if pair.name == "callbacks" and not isinstance(pair.body, tuple):
            patience = find_patience(pair.body)
        if patience is not None:
            help_text = f"write `early_stopping_patience: {format_flat(patience)}`"
            fix = Fix(pair.span, f"early_stopping_patience: {format_flat(patience)}")
            kept.append(replace(pair, name="early_stopping_patience", body=patience))
        message = f"`train` has no key `{pair.name[:40]}`"
        self.diagnostics.add("E0501", message, pair.name_span, helps=[help_text], fix=fix)

    def rename_key(self, pair: Section, key: str) -> list[Section]:
        """A key of `train` under its name here, with a value of this language; [] if left out."""
        body = pair.body
        assert not isinstance(body, tuple)  # checked by the caller
        value, why = convert_train_value(pair.name, key, body)
        if value is body and pair.name == key:
            return [pair]
        message = f"`train` has no key `{pair.name[:40]}`"
        code = "E0501"
        if pair.name == key:
            code, message = "E0206", f"`{key}` must be {get_train_specs()[key].kind.description}"
        if value is None:
            fix, help_text = Fix(pair.span, ""), f"leave it out: {why}"
        elif value is body:
            fix, help_text = Fix(pair.name_span, key), f"did you mean `{key}`?"
        else:
            text = f"{key}: {format_flat(value)}"
            fix, help_text = Fix(pair.span, text), f"write `{text}`"
        self.diagnostics.add(code, message, pair.name_span, helps=[help_text], fix=fix)
        return [] if value is None else [replace(pair, name=key, body=value)]

    def take_setup_calls(self, statements: Any, moved: MovedValues) -> tuple[LayerStatement, ...]:
        """The layers without `model.compile(…)` and `model.fit(…)`."""
        kept: list[LayerStatement] = []
        for statement in statements:
            call = statement.call
            if not _is_setup(call) or call.broken:
                kept.append(statement)
                continue
            for argument in call.arguments:
                moved.take(argument.name or "", argument.value)
            moved.sources.append(statement.span)
            help_text = "`loss:`, `optimizer:` and `train { … }` are sections of the network"
            message = f"no layer is called `{call.name[:40]}`"
            moved.reasons.append(Reason("E0201", message, call.name_span, help_text))
        return tuple(kept)

    def place(
        self, sections: list[Section], moved: MovedValues, last_call: CallExpression | None
    ) -> list[Section]:
        """The sections with the moved values; reports them with one fix for all."""
        if not moved.reasons:
            return sections
        span = moved.sources[0]
        by_name = {section.name: section for section in reversed(sections)}
        if any(name in by_name for name in moved.sections):
            return self.report(sections, moved, None)  # it is given twice
        lines: list[str] = []
        edits: list[Fix] = []
        for name, value in moved.sections.items():
            value = self.settings.translate(name, value, last_call).body
            sections = [*sections, make_section(name, value, span)]
            if name == "loss":
                lines.append(f"loss: {format_flat(value)}")
        given = next((item for item in sections if item.name == "optimizer"), None)
        needs_optimizer = moved.optimizer or moved.schedule or "optimizer" in moved.sections
        if needs_optimizer:
            body = given.body if given is not None else None
            call = self.complete_optimizer(body, moved, sections, span)
            if call is None:
                return self.report(sections, moved, None)
            if given is None:
                sections = [*sections, make_section("optimizer", call, span)]
            else:
                sections = replace_section(sections, "optimizer", replace(given, body=call))
            is_written = "optimizer" in by_name and body is not None and not isinstance(body, tuple)
            if not is_written:
                lines.append(f"optimizer: {format_flat(call)}")
            elif format_flat(call) != format_flat(body):  # type: ignore[arg-type]
                edits.append(Fix(body.span, format_flat(call)))  # type: ignore[union-attr]
        if moved.train:
            placed = self.place_train(sections, moved, lines, edits)
            if placed is None:
                return self.report(sections, moved, None)
            sections = placed
        fix = self.join_edits(sections, moved, lines, edits)
        return self.report(sections, moved, fix)

    def complete_optimizer(
        self, body: object, moved: MovedValues, sections: list[Section], span: SourceSpan
    ) -> CallExpression | None:
        """The optimizer with the arguments and the schedule that stand elsewhere; None if wrong."""
        if body is None:
            name = "AdamW" if moved.names & HUGGING_FACE_KEYS else "Adam"
            body = CallExpression(name=name, name_span=span, arguments=(), span=span)
        if isinstance(body, Literal) and isinstance(body.value, str):
            body = CallExpression(
                name=body.value, name_span=body.span, arguments=(), span=body.span
            )
        if not isinstance(body, CallExpression) or body.broken or has_comments(body):
            return None
        translated = self.settings.translate("optimizer", body).body
        call = translated if isinstance(translated, CallExpression) else body
        entry = find_entry(call.name, self.settings.catalogue.optimizers, ignore_case=True)
        if entry is None:
            return None
        call = replace(call, name=self.settings.catalogue.optimizers.name_of(entry))
        extra = replace(call, arguments=tuple(moved.optimizer))
        new = self.settings.calls.translate_arguments(extra, entry, is_renamed=True).call.arguments
        aliases = {"lr": "learning_rate"}
        given = {aliases.get(item.name or "", item.name) for item in call.arguments}
        has_rate = "learning_rate" in given or any(item.name is None for item in call.arguments)
        if has_rate:
            given.add("learning_rate")
        lost = [item.name for item in new if item.name in given]
        moved.changes += [f"the `{name}` of `optimizer:` stays" for name in lost]
        new = tuple(item for item in new if item.name not in given)
        call = replace(call, arguments=(*call.arguments, *new))
        return self.add_schedule(call, moved, sections) if moved.schedule else call

    def add_schedule(
        self, call: CallExpression, moved: MovedValues, sections: list[Section]
    ) -> CallExpression:
        """The optimizer with a schedule as its learning rate."""
        request = moved.get_schedule()
        rate = next(
            (item for item in call.arguments if item.name in (None, "lr", "learning_rate")), None
        )
        schedule, change = make_schedule(
            request, rate.value if rate else None, find_steps(sections, moved), call.span
        )
        if change:
            moved.changes.append(change)
        if schedule is None:
            return call
        if rate is None:
            argument = Argument(name="learning_rate", value=schedule, span=call.span)
            return replace(call, arguments=(argument, *call.arguments))
        new = replace(rate, value=schedule)
        return replace(
            call, arguments=tuple(new if item is rate else item for item in call.arguments)
        )

    def place_train(
        self, sections: list[Section], moved: MovedValues, lines: list[str], edits: list[Fix]
    ) -> list[Section] | None:
        """The sections with the moved keys of `train`; None where `train` is wrong.

        Adds what a fix writes to `lines` (new sections) or `edits`.
        """
        span = moved.sources[0]
        pairs = [make_section(key, value, span) for key, value in moved.train.items()]
        train = next((item for item in sections if item.name == "train"), None)
        if train is None:
            texts = [f"\n    {key}: {format_flat(value)}" for key, value in moved.train.items()]
            lines.append("train {" + "".join(texts) + "\n  }")
            return [*sections, make_section("train", tuple(pairs), span, is_block=True)]
        if not (train.is_block and isinstance(train.body, tuple) and train.body):
            return None
        old = [pair for pair in train.body if isinstance(pair, Section)]
        given_names = {pair.name for pair in old}
        new = [pair for pair in pairs if pair.name not in given_names]
        text = "".join(f"\n    {pair.name}: {format_flat(moved.train[pair.name])}" for pair in new)
        last = old[-1].span.end
        edits += [Fix(SourceSpan(last, last), text)] if text else []
        return replace_section(sections, "train", replace(train, body=(*old, *new)))

    def join_edits(
        self, sections: list[Section], moved: MovedValues, lines: list[str], edits: list[Fix]
    ) -> Fix:
        """One fix that writes `lines`, applies `edits` and removes the sources."""
        trains = [item.span for item in sections if item.name == "train" and item.is_block]
        outer = [
            source
            for source in moved.sources
            if not any(train.start < source.start < train.end for train in trains)
        ]
        text = SECTION_INDENT.join(lines)
        remaining = list(moved.sources)
        if outer:
            edits.append(Fix(outer[0], text))
            remaining.remove(outer[0])
        elif text:
            start = min(train.start for train in trains)
            edits.append(Fix(SourceSpan(start, start), text + SECTION_INDENT))
        edits += [Fix(source, "") for source in remaining]
        return Fix(edits[0].span, edits[0].text, tuple(edits[1:]))

    def report(self, sections: list[Section], moved: MovedValues, fix: Fix | None) -> list[Section]:
        """Report all moved values with the same fix; returns the sections."""
        for reason in moved.reasons:
            changes = moved.changes if "optimizer" in reason.help else []
            help_text = "; ".join([reason.help, *changes])
            self.diagnostics.add(
                reason.code, reason.message, reason.span, helps=[help_text], fix=fix
            )
        return sections


def _is_setup(call: CallExpression) -> bool:
    """Whether a call sets up training, as `model.fit(…)` does."""
    return call.name.rpartition(".")[2] in SETUP_CALLS


def find_steps(sections: list[Section], moved: MovedValues) -> float | None:
    """The number of steps in `train { … }`; None if it says epochs, or nothing."""
    values = dict(moved.train)
    for section in sections:
        if section.name == "train" and isinstance(section.body, tuple):
            values |= {
                pair.name: pair.body
                for pair in section.body
                if isinstance(pair, Section) and not isinstance(pair.body, tuple)
            }
    steps = values.get("steps")
    number = steps.value if isinstance(steps, Literal) else None
    return number if isinstance(number, int | float) else None


def has_layers(section: Section) -> bool:
    """Whether a section holds layers, and nothing else."""
    body = section.body
    return isinstance(body, tuple) and all(isinstance(item, LayerStatement) for item in body)


def make_section(name: str, body: Any, span: SourceSpan, *, is_block: bool = False) -> Section:
    """A section that is not written in the program; `span` is where messages point."""
    return Section(name=name, name_span=span, body=body, is_block=is_block, span=span)


def replace_section(sections: list[Section], name: str, new: Section) -> list[Section]:
    """The sections with the first one of that name replaced."""
    index = next(i for i, section in enumerate(sections) if section.name == name)
    return [*sections[:index], new, *sections[index + 1 :]]
