"""Read the sections of a network in a `.neural` program: input, layers, loss, optimizer, train.

The syntax tree (syntax.py) becomes instances of the classes that the catalogue lists: layers,
losses, optimizers. A BoundCall is such an instance with the call it was written as; a LayerStep is
a layer and its number of copies. Shapes are inferred later (assembly.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from neural.core.diagnostics import DiagnosticCollector, Fix, Label, SourceSpan
from neural.core.names import find_closest
from neural.language.argument_types import MAX_AXES
from neural.language.binder import Binder, BoundCall
from neural.language.catalogue import Catalogue
from neural.language.foreign.sections import NetworkTranslator
from neural.language.loss import Loss
from neural.language.shape_inference import LayerStep, UnreadableLayer
from neural.language.shapes import Shape
from neural.language.syntax import (
    SECTION_NAMES,
    CallExpression,
    LayerStatement,
    Literal,
    NetworkBlock,
    Section,
    SequenceLiteral,
    to_python,
)
from neural.language.train_options import TrainOptions

MAX_COPIES = 10_000
"""Largest N of `Layer(…) * N`, which makes N copies of a layer with weights of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSections:
    """Content of the sections of one network; after errors a value is None or empty."""

    name: str
    input_shape: Shape | None
    input_span: SourceSpan
    steps: list[LayerStep]
    """The layers with their copies, in program order."""
    has_all_layers: bool
    """Whether every layer could be read."""
    loss: Loss | None
    loss_span: SourceSpan
    optimizer: BoundCall | None
    train: TrainOptions


class SectionReader:
    """Reads sections; errors go to `diagnostics`."""

    def __init__(self, catalogue: Catalogue, diagnostics: DiagnosticCollector) -> None:
        self.catalogue, self.diagnostics = catalogue, diagnostics
        self.binder = Binder(diagnostics)
        self.translator = NetworkTranslator(catalogue, diagnostics)

    def read_network(
        self, block: NetworkBlock, shared_train: Section | None, has_syntax_errors: bool
    ) -> NetworkSections:
        """Read all sections. After syntax errors nothing is reported as missing.

        `shared_train` is a `train { … }` beside the networks, for those that have none.
        """
        sections = self.group_by_name(self.translator.translate_network(block))
        steps, has_all_layers = self.read_layers(sections.get("layers"), block, has_syntax_errors)
        loss = (
            self.read_named_call(sections["loss"], self.catalogue.losses)
            if "loss" in sections
            else None
        )
        body = sections["input"].body if "input" in sections else ()
        input_span = block.name_span if isinstance(body, tuple) else body.span
        return NetworkSections(
            name=block.name,
            input_shape=self.read_input(sections.get("input"), block, has_syntax_errors),
            input_span=input_span,
            steps=steps,
            has_all_layers=has_all_layers,
            loss=loss.instance if loss else None,
            loss_span=loss.call.span if loss else block.name_span,
            optimizer=self.read_optimizer(sections.get("optimizer")),
            train=self.read_train(sections.get("train") or shared_train),
        )

    def group_by_name(self, block: NetworkBlock) -> dict[str, Section]:
        """The sections by name; unknown and repeated ones are errors."""
        sections: dict[str, Section] = {}
        for section in block.sections:
            name = section.name
            if name not in SECTION_NAMES:
                self.report_unknown_section(section)
                name = find_closest(name, SECTION_NAMES) or name
            if name in sections:
                first = Label(sections[name].name_span, "first here")
                self.diagnostics.add(
                    "E0402", f"`{name}` is given twice", section.name_span, labels=[first]
                )
                continue
            sections[name] = section
        return sections

    def read_input(
        self, section: Section | None, block: NetworkBlock, has_syntax_errors: bool
    ) -> Shape | None:
        """The shape in `input:`; None after an error. An open size (`None`) becomes "T", "T2", …"""
        if section is None and not has_syntax_errors:
            self.diagnostics.add(
                "E0403",
                f"`{block.name}` has no `input:`",
                block.name_span,
                helps=["for example `input: (100, 64)`"],
            )
        if section is None or section.broken:
            return None
        value = (
            to_python(section.body) if isinstance(section.body, Literal | SequenceLiteral) else None
        )
        # A missing or empty value becomes one None, which is refused below like any wrong size.
        dims = (tuple(value) or (None,)) if isinstance(value, tuple | list) else (value,)
        shape: list[int | str] = []
        # With too many axes, the size 0 takes their place and is refused below.
        for index, dim in enumerate(dims if len(dims) <= MAX_AXES else [0]):
            if dim is None and value:  # the program leaves this size open
                shape.append("T" if index == 0 else f"T{index + 1}")
            elif (isinstance(dim, int) and not isinstance(dim, bool) and 0 < dim < 2**31) or (
                isinstance(dim, str) and dim.isidentifier()
            ):
                shape.append(dim)
            else:
                span = (
                    section.span
                    if section.is_block or isinstance(section.body, tuple)
                    else section.body.span
                )
                if isinstance(section.body, SequenceLiteral) and section.body.items:
                    span = section.body.items[index].span
                self.diagnostics.add(
                    "E0410",
                    "`input` must be whole sizes of 1 or more in brackets",
                    span,
                    helps=[
                        "for example `(100, 64)`: 100 positions with 64 features; "
                        "`None` leaves a size open"
                    ],
                )
                return None
        return tuple(shape)

    def read_layers(
        self, section: Section | None, block: NetworkBlock, has_syntax_errors: bool
    ) -> tuple[list[LayerStep], bool]:
        """The layers, and whether all of them could be read."""
        if section is None:
            if not has_syntax_errors:
                helps = ["below a line `layers:`, one layer per line, such as `Dense(10)`"]
                self.diagnostics.add(
                    "E0403", f"`{block.name}` has no `layers:`", block.name_span, helps=helps
                )
            return [], False
        body = section.body
        if isinstance(body, CallExpression):  # a misspelt `layers:` with one layer
            body = (LayerStatement(call=body, copies=None, span=body.span),)
        layers = (
            [item for item in body if isinstance(item, LayerStatement)]
            if isinstance(body, tuple)
            else []
        )
        if not layers and not has_syntax_errors:
            helps = ["one layer per line, such as `Dense(10)`"]
            self.diagnostics.add(
                "E0411", f"`{block.name}` has no layers", section.name_span, helps=helps
            )
        steps: list[LayerStep] = []
        is_complete = True
        for layer in layers:
            if self.diagnostics.is_full:
                return [], False
            step = self.read_layer(layer)
            is_complete = is_complete and not isinstance(step.layer, UnreadableLayer)
            steps.append(step)
        return steps, is_complete and bool(steps)

    def read_layer(self, layer: LayerStatement) -> LayerStep:
        """Read one line of `layers:`. After an error, its layer may be an UnreadableLayer."""
        bound = self.binder.bind_call(layer.call, self.catalogue.layers)
        copies = self.read_copies(layer.copies)
        instance = bound.instance if bound.instance is not None else UnreadableLayer()
        return LayerStep(instance, copies, bound)

    def read_copies(self, literal: Literal | None) -> int:
        """Read N of `* N`; 1 without it, and after an error."""
        if literal is None:
            return 1
        value = literal.value
        if isinstance(value, int) and 1 <= value <= MAX_COPIES:
            return value
        self.diagnostics.add(
            "E0212",
            f"`*` needs a whole number from 1 to {MAX_COPIES:,}, got {literal.text}",
            literal.span,
            helps=["`* 6` makes six independent copies"],
        )
        return 1

    def read_named_call(self, section: Section, registry: Any) -> BoundCall | None:
        """Read a loss or optimizer: `"adam"`, `Adam()` or `Adam(…)`."""
        body = section.body
        if section.broken:
            return None
        if isinstance(body, Literal) and isinstance(body.value, str):
            name_span = SourceSpan(body.span.start, body.span.end)
            body = CallExpression(
                name=body.value, name_span=name_span, arguments=(), span=body.span
            )
        if not isinstance(body, CallExpression):
            span = body.span if not isinstance(body, tuple) else section.name_span
            self.diagnostics.add(
                "E0206",
                f"`{section.name}` must be a name in quotes or a call",
                span,
                helps=[f"known: {', '.join(registry.names())}"],
            )
            return None
        return self.binder.bind_call(body, registry, ignore_case=True)

    def read_optimizer(self, section: Section | None) -> BoundCall | None:
        """The optimizer, if the network has one."""
        return self.read_named_call(section, self.catalogue.optimizers) if section else None

    def read_train(self, section: Section | None) -> TrainOptions:
        """Read the keys of `train { … }`."""
        values: dict[str, Any] = {}
        pairs: dict[str, Section] = {}
        specs = TrainOptions.argument_specs()
        if section is not None and not (section.is_block and isinstance(section.body, tuple)):
            helps = ["`train { batch_size: 16 }`, one key per line"]
            self.diagnostics.add("E0105", "`train` is a block", section.name_span, helps=helps)
            return TrainOptions()
        for pair in section.body if section is not None and isinstance(section.body, tuple) else ():
            if not isinstance(pair, Section) or pair.broken or self.diagnostics.is_full:
                continue
            if pair.name not in specs:
                known_keys = f"`train` takes {', '.join(specs)}"
                self.report_unknown_name(
                    pair, "E0501", f"`train` has no key `{pair.name[:40]}`", specs, known_keys
                )
            elif pair.name in pairs:
                label = Label(pairs[pair.name].name_span, "first here")
                self.diagnostics.add(
                    "E0502", f"`{pair.name}` is given twice", pair.name_span, labels=[label]
                )
            else:
                pairs[pair.name] = pair
                if isinstance(pair.body, tuple):
                    self.diagnostics.add(
                        "E0206",
                        f"`{pair.name}` must be {specs[pair.name].kind.description}",
                        pair.span,
                    )
                    continue
                value = self.binder.convert_value(specs[pair.name], pair.body, pair.span)
                if value is not None:
                    values[pair.name] = value
        if "epochs" in values and "steps" in values:
            label = Label(pairs["epochs"].span, "and this")
            self.diagnostics.add(
                "E0503",
                "`steps` and `epochs` cannot both say how long to train",
                pairs["steps"].span,
                labels=[label],
                helps=["keep one of them"],
            )
        return TrainOptions(**values)

    def report_unknown_section(self, section: Section) -> None:
        """Report a section that networks do not have."""
        message = f"`{section.name[:40]}` is no section of a network"
        self.report_unknown_name(
            section, "E0401", message, SECTION_NAMES, f"sections are: {', '.join(SECTION_NAMES)}"
        )

    def report_unknown_name(
        self, section: Section, code: str, message: str, known: Iterable[str], fallback_help: str
    ) -> None:
        """Report an unknown name with the closest of `known`, or else with `fallback_help`."""
        guess = find_closest(section.name, known)
        fix = Fix(section.name_span, guess) if guess else None
        help_text = f"did you mean `{guess}`?" if guess else fallback_help
        self.diagnostics.add(code, message, section.name_span, helps=[help_text], fix=fix)

    def check_fragment(self, item: NetworkBlock | Section | LayerStatement) -> None:
        """Check a section or layer on its own, as far as possible. Networks are skipped."""
        if isinstance(item, LayerStatement):
            lines = self.translator.layers.translate_layers([item])
            self.translator.layers.report_layers(lines)
            for step in (self.read_layer(layer) for line in lines for layer in line.results):
                for advice in self.get_fragment_advice(step):
                    step.bound_call.report_advice(self.diagnostics, advice)
        elif isinstance(item, Section):
            if item.name == "train":
                self.read_train(item)
            elif item.name == "optimizer":
                self.read_optimizer(self.translator.translate_setting(item))
            elif item.name == "loss":
                loss = self.translator.translate_setting(item)
                self.read_named_call(loss, self.catalogue.losses)
            elif item.name == "layers" and isinstance(item.body, tuple):
                for layer in item.body:
                    self.check_fragment(layer)
            elif item.name != "input":
                self.report_unknown_section(item)

    def get_fragment_advice(self, step: LayerStep) -> Any:
        """Warnings and notes on a layer outside a network, for an input of shape (1, d_model)."""
        width = getattr(step.layer, "d_model", None)
        return step.layer.advice((1, width)) if width else ()
