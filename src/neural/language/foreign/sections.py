"""Translate a network: the names of its sections, its input, and each section."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from neural.core.diagnostics import DiagnosticCollector, Fix, SourceSpan
from neural.language.catalogue import Catalogue
from neural.language.foreign.argument_names import ARGUMENTS, INFERRED_ARGUMENTS
from neural.language.foreign.calls import CallTranslator
from neural.language.foreign.expansions import has_extra_axis, read_shape
from neural.language.foreign.layers import LayerTranslator, TranslatedLayer
from neural.language.foreign.moves import (
    SECTION_INDENT,
    ValueMover,
    has_layers,
    make_section,
    replace_section,
)
from neural.language.foreign.settings import SettingTranslator
from neural.language.foreign.training_names import (
    IGNORED_SECTIONS,
    OPTIMIZER_KEYS,
    SECTIONS,
    SETUP_CALLS,
)
from neural.language.formatter import format_flat, has_comments
from neural.language.syntax import (
    Argument,
    CallExpression,
    LayerStatement,
    Literal,
    NetworkBlock,
    Section,
    SequenceLiteral,
    Value,
    to_python,
)

BATCH_NAMES = ("B", "N", "batch", "batch_size", "bs", None)
"""First size of an input that stands for the batch, which is not written here."""


class NetworkTranslator:
    """Translates networks; errors go to `diagnostics`, names are looked up in `catalogue`."""

    def __init__(self, catalogue: Catalogue, diagnostics: DiagnosticCollector) -> None:
        self.catalogue, self.diagnostics = catalogue, diagnostics
        self.calls = CallTranslator(catalogue)
        self.layers = LayerTranslator(self.calls, diagnostics)
        self.settings = SettingTranslator(catalogue, self.calls)
        self.mover = ValueMover(self.settings, diagnostics)

    def translate_network(self, block: NetworkBlock) -> NetworkBlock:
        """The network that is meant. Reports what is foreign."""
        sections = self.rename_sections(block.sections)
        sections = self.drop_sizes(sections)
        sections, moved = self.mover.collect(sections)
        last_call: CallExpression | None = None
        layers = next((section for section in sections if section.name == "layers"), None)
        if layers is not None and has_layers(layers):
            body = layers.body if isinstance(layers.body, tuple) else ()
            statements = [item for item in body if isinstance(item, LayerStatement)]
            lines = self.layers.translate_layers(statements)
            sections = self.place_input(sections, lines)
            sections = self.drop_batch_axis(sections, lines)
            self.layers.expand_poolings(lines, _get_input(sections))
            self.layers.report_layers(lines)
            results = tuple(result for line in lines for result in line.results)
            sections = replace_section(sections, "layers", replace(layers, body=results))
            last_call = results[-1].call if results else None
        sections = [
            self.translate_setting(section, last_call)
            if section.name in ("loss", "optimizer")
            else section
            for section in sections
        ]
        return replace(block, sections=tuple(self.mover.place(sections, moved, last_call)))

    def rename_sections(self, sections: Iterable[Section]) -> list[Section]:
        """The sections under their names here, without those that have no counterpart."""
        names = {section.name for section in sections}
        renamed: list[Section] = []
        for section in sections:
            name = SECTIONS.get(section.name)
            is_call = isinstance(section.body, CallExpression)
            is_setup = section.name in SETUP_CALLS and (section.is_block or is_call)
            if section.name in IGNORED_SECTIONS and not is_setup:
                message = f"`{section.name}` is no section of a network"
                help_text = f"leave it out: {IGNORED_SECTIONS[section.name]}"
                self.diagnostics.add(
                    "E0401",
                    message,
                    section.name_span,
                    helps=[help_text],
                    fix=Fix(section.span, ""),
                )
                continue
            is_block = name == "train" or (name == "optimizer" and section.is_block)
            is_known = name is not None and name not in names and section.is_block == is_block
            if name is not None and is_known and not section.broken:
                self.diagnostics.add(
                    "E0401",
                    f"`{section.name}` is no section of a network",
                    section.name_span,
                    helps=[f"did you mean `{name}`?"],
                    fix=Fix(section.name_span, name),
                )
                body = section.body
                if name == "layers" and isinstance(body, CallExpression):
                    body = (LayerStatement(call=body, copies=None, span=body.span),)
                section = replace(section, name=name, body=body)
                names.add(name)
            renamed.append(section)
        return renamed

    def drop_sizes(self, sections: list[Section]) -> list[Section]:
        """Leave out sections such as `vocab_size: 5000` if a layer or the input says the same."""
        texts = [
            format_flat(item.call)
            for section in sections
            if section.name == "layers" and isinstance(section.body, tuple)
            for item in section.body
            if isinstance(item, LayerStatement)
        ]
        shape = _get_input(sections)
        texts += [format_flat(shape)] if shape is not None else []
        numbers = {number for text in texts for number in re.findall(r"[\w.]+", text)}
        kept: list[Section] = []
        for section in sections:
            is_size = section.name in ARGUMENTS or section.name in INFERRED_ARGUMENTS
            value = section.body.text if isinstance(section.body, Literal) else ""
            is_said = is_size and value in numbers and section.name not in SECTIONS
            if not is_said or section.name in OPTIMIZER_KEYS:
                kept.append(section)
                continue
            self.diagnostics.add(
                "E0401",
                f"`{section.name}` is no section of a network",
                section.name_span,
                helps=[f"leave it out: a layer says {value}"],
                fix=Fix(section.span, ""),
            )
        return kept

    def place_input(self, sections: list[Section], lines: list[TranslatedLayer]) -> list[Section]:
        """Add `input:` if only a layer says the shape; put channels last.

        Such a change belongs to the fix of the layer that says the shape.
        """
        layers = next(section for section in sections if section.name == "layers")
        given = next((section for section in sections if section.name == "input"), None)
        line = next((line for line in lines if line.input_shape is not None), None)
        if given is None and line is not None and line.input_shape is not None:
            shape = line.input_shape
            if isinstance(shape, Literal):
                item = Argument(name=None, value=shape, span=shape.span)
                shape = SequenceLiteral(bracket="(", items=(item,), span=shape.span)
            start = SourceSpan(layers.span.start, layers.span.start)
            line.edits = (Fix(start, f"input: {format_flat(shape)}{SECTION_INDENT}"),)
            new = replace(make_section("input", shape, start), name_span=layers.name_span)
            return [new, *sections]
        body = given.body if given is not None else None
        if line is not None and isinstance(body, Literal | SequenceLiteral):
            if _get_sizes(body) != _get_sizes(line.input_shape):
                line.results = [line.source]  # two shapes contradict each other: no fix
            return sections
        first = lines[0] if lines else None
        if first is None or first.channels is None or not isinstance(body, SequenceLiteral):
            return sections
        sizes = [to_python(item.value) for item in body.items]
        if len(sizes) >= 2 and sizes[0] == first.channels != sizes[-1] and given is not None:
            last = replace(body, items=(*body.items[1:], body.items[0]))
            help_text = f"channels are last here: `input: {format_flat(last)}`"
            reason = first.reasons[0]
            first.reasons[0] = reason._replace(help=f"{reason.help}; {help_text}")
            first.edits = (Fix(body.span, format_flat(last)),)
            return replace_section(sections, "input", replace(given, body=last))
        return sections

    def drop_batch_axis(
        self, sections: list[Section], lines: list[TranslatedLayer]
    ) -> list[Section]:
        """Leave the batch out of `input:` if the first layer accepts only the other sizes."""
        given = next((section for section in sections if section.name == "input"), None)
        body = given.body if given is not None else None
        first = [item for line in lines for item in line.results][:1]
        if (
            given is None
            or not isinstance(body, SequenceLiteral)
            or len(body.items) < 2
            or not first
        ):
            return sections
        size = to_python(body.items[0].value)
        shape = read_shape(body)
        if size not in BATCH_NAMES or shape is None:
            return sections
        if not has_extra_axis(first[0], shape, self.catalogue):
            return sections
        rest = replace(body, items=body.items[1:])
        self.diagnostics.add(
            "E0410",
            "`input` is the shape of one example, without the batch",
            body.items[0].span,
            helps=[f"leave the batch out: `input: {format_flat(rest)}`"],
            fix=Fix(body.span, format_flat(rest)),
        )
        return replace_section(sections, "input", replace(given, body=rest))

    def translate_setting(
        self, section: Section, last_call: CallExpression | None = None
    ) -> Section:
        """The section `loss` or `optimizer` with the names of this language; reports changes."""
        body = section.body
        if isinstance(body, tuple) or section.broken:
            return section
        translated = self.settings.translate(section.name, body, last_call)
        has_fix = not isinstance(body, CallExpression) or not has_comments(body)
        fix = Fix(body.span, format_flat(translated.body)) if has_fix else None
        for reason in translated.reasons:
            self.diagnostics.add(
                reason.code,
                reason.message,
                reason.span,
                helps=[reason.help],
                fix=reason.fix or fix,
            )
        return replace(section, body=translated.body)


def _get_input(sections: list[Section]) -> Value | None:
    """The value of `input:`."""
    body = next((section.body for section in sections if section.name == "input"), None)
    return body if isinstance(body, Literal | SequenceLiteral) else None


def _get_sizes(shape: Value | None) -> tuple[object, ...]:
    """The sizes of a shape, which may be one number."""
    value = to_python(shape) if shape is not None else None
    return tuple(value) if isinstance(value, tuple | list) else (value,)
