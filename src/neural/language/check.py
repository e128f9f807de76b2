"""Text of a `.neural` program → networks with shapes and costs, or all errors at once.

`check` does not stop at the first error: each section and layer is read (sections.py), and shape
inference continues after an error with an assumed shape where possible (assembly.py,
shape_inference.py). A section is a named part of a network, such as `layers:`; a block is written
in braces, such as `train { … }`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neural.core.diagnostics import (
    Diagnostic,
    DiagnosticCollector,
    Fix,
    Label,
    SourceSpan,
    SourceText,
    apply_fixes,
)
from neural.core.names import suggest_name
from neural.language.assembly import assemble_network
from neural.language.catalogue import Catalogue
from neural.language.foreign.python_code import write_program
from neural.language.foreign.text import find_other_language
from neural.language.network import Network
from neural.language.parser import parse
from neural.language.sections import SectionReader
from neural.language.shapes import Cost
from neural.language.summary import iter_notes
from neural.language.syntax import LayerStatement, NetworkBlock, Program, Section

UNREADABLE_CODES = ("E0102", "E0106", "E0107")
"""After these errors the parser stops: only they are reported, and nothing is reported missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """Result of checking a text: its syntax tree, its error-free networks, and all diagnostics."""

    program: Program
    networks: tuple[Network, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Errors only, without warnings and notes."""
        return tuple(
            diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "error"
        )


def check(
    text: str,
    catalogue: Catalogue,
    *,
    network: str | None = None,
    fragment: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> CheckResult:
    """Parse and check a text.

    `catalogue` has what a program may name: layers, losses, optimizers. `network` is the name of
    the network to return; it is required if the program has several. With `fragment`, sections
    and layers may stand outside a network. A program may leave sizes open, such as the length T;
    `sizes` are values for them, by name, for which costs are computed.
    """
    diagnostics = DiagnosticCollector()
    other_language = find_other_language(text)
    if other_language is not None:
        report_other_language(*other_language, text, diagnostics, catalogue)
        program = parse(text, DiagnosticCollector())  # its errors would only be consequences
        return CheckResult(program=program, networks=(), diagnostics=tuple(diagnostics.items))
    program = parse(text, diagnostics)
    unreadable = [
        diagnostic for diagnostic in diagnostics.items if diagnostic.code in UNREADABLE_CODES
    ]
    if unreadable:
        return CheckResult(program=program, networks=(), diagnostics=tuple(unreadable))
    checker = _Checker(catalogue, diagnostics, sizes or {})
    if fragment:
        networks = [checker.check_network(block, None) for block in program.networks]
        for item in program.items:
            checker.sections.check_fragment(item)
    else:
        networks = checker.check_networks(program, network)
    # Warnings and notes are shown only without errors: many would be consequences of them.
    order = sorted(
        diagnostics.errors or diagnostics.items,
        key=lambda diagnostic: (diagnostic.severity != "warning", diagnostic.span.start),
    )
    return CheckResult(
        program=program, networks=tuple(net for net in networks if net), diagnostics=tuple(order)
    )


PRETRAINED = "`neural import` reads trained weights of `nn.TransformerEncoder` and nanoGPT"
"""Help for Python code that loads trained weights with `from_pretrained`."""


def report_other_language(
    language: str, start: int, text: str, diagnostics: DiagnosticCollector, catalogue: Catalogue
) -> None:
    """Report that a text is Python or JSON; `start` is where that shows.

    The fix for simple Python is a program without errors.
    """
    line_end = text.find("\n", start)
    fix: Fix | None = None
    program = write_program(text) if language == "Python" else None
    if program is not None and find_other_language(program) is None:
        program, _ = apply_fixes(program, check(program, catalogue).diagnostics)
        if not check(program, catalogue).errors:
            fix = Fix(SourceSpan(0, len(text)), program)
    diagnostics.add(
        "E0114",
        f"this is {language}, not a `.neural` program",
        SourceSpan(start, line_end if line_end >= 0 else len(text)),
        helps=[
            "`neural new` writes a program to begin with",
            "docs/coming-from.md says what layers of Keras and PyTorch are called here",
            "`neural check --fix` writes the program that this code means" if fix else None,
            PRETRAINED if "from_pretrained" in text else None,
        ],
        fix=fix,
    )


class _Checker:
    """Checks the networks of one program."""

    def __init__(
        self, catalogue: Catalogue, diagnostics: DiagnosticCollector, sizes: Mapping[str, int]
    ) -> None:
        self.catalogue, self.diagnostics, self.sizes = catalogue, diagnostics, sizes
        self.sections = SectionReader(catalogue, diagnostics)

    def check_networks(self, program: Program, name: str | None) -> list[Network | None]:
        """Check all networks; return the one called `name`, or all without a name."""
        blocks = program.networks
        if not blocks and self.check_bare_sections(program):
            return []
        shared = self.find_shared_train(program)
        if not blocks and not self.diagnostics.errors:
            self.diagnostics.add(
                "E0113",
                "there is no network here",
                SourceSpan(0, 0),
                helps=["begin with `network MyNetwork {`"],
            )
        blocks_by_name: dict[str, NetworkBlock] = {}
        for block in blocks:
            if block.name in blocks_by_name:
                first = Label(blocks_by_name[block.name].name_span, "first here")
                self.diagnostics.add(
                    "E0412",
                    f"two networks are called `{block.name}`",
                    block.name_span,
                    labels=[first],
                    helps=["give one of them another name"],
                )
            blocks_by_name.setdefault(block.name, block)
        networks = {block.name: self.check_network(block, shared) for block in blocks}
        names = ", ".join(blocks_by_name)
        if name is not None and blocks and name not in blocks_by_name:
            helps = [suggest_name(name, blocks_by_name) or f"here are: {names}"]
            self.diagnostics.add(
                "E0409", f"there is no network `{name}`", SourceSpan(0, 0), helps=helps
            )
        if name is None and len(blocks_by_name) > 1:
            second, helps = (
                list(blocks_by_name.values())[1],
                [f"say `--network NAME`; here are: {names}"],
            )
            self.diagnostics.add("E0408", "which of these networks?", second.name_span, helps=helps)
        return [networks[name]] if name in networks else list(networks.values())

    def check_bare_sections(self, program: Program) -> bool:
        """Check sections without `network Name {` around them; return whether there are such."""
        sections = [item for item in program.items if isinstance(item, Section)]
        if not any(item.name == "layers" for item in sections) or len(sections) < len(
            program.items
        ):
            return False
        first, last = sections[0].span, sections[-1].span
        end = Fix(SourceSpan(last.end, last.end), "\n}\n")
        self.diagnostics.add(
            "E0112",
            f"`{sections[0].name}` stands outside a network",
            sections[0].name_span,
            helps=["put all sections inside `network MyNetwork { … }`"],
            fix=Fix(SourceSpan(first.start, first.start), "network MyNetwork {\n", (end,)),
        )
        block = NetworkBlock(
            name="MyNetwork",
            name_span=sections[0].name_span,
            sections=tuple(sections),
            span=first.to(last),
        )
        self.check_network(block, None)
        return True

    def find_shared_train(self, program: Program) -> Section | None:
        """The `train` block beside the networks, which applies to all of them.

        Reports anything else outside a network.
        """
        shared = None
        has_outer_errors = any(
            not any(_is_inside(error, block) for block in program.networks)
            for error in self.diagnostics.errors
        )
        for item in program.items:
            if isinstance(item, Section) and item.name == "train" and item.is_block:
                if shared is not None:
                    first = Label(shared.name_span, "first here")
                    self.diagnostics.add(
                        "E0402", "`train` is given twice", item.name_span, labels=[first]
                    )
                shared = shared or item
            elif not isinstance(item, NetworkBlock) and not has_outer_errors:
                subject = (
                    f"`{item.call.name}(…)`"
                    if isinstance(item, LayerStatement)
                    else f"`{item.name}`"
                )
                span = item.span if isinstance(item, LayerStatement) else item.name_span
                self.diagnostics.add(
                    "E0112",
                    f"{subject} stands outside a network",
                    span,
                    helps=[
                        "put it inside `network Name { … }`, or check it alone with `--fragment`"
                    ],
                )
        return shared

    def check_network(self, block: NetworkBlock, shared_train: Section | None) -> Network | None:
        """One network, or None after an error."""
        # A network counts as wrong after its own syntax errors too, so `errors_before` leaves them
        # out; errors of other networks do not matter.
        syntax_errors = [error for error in self.diagnostics.errors if _is_inside(error, block)]
        errors_before = self.diagnostics.error_count - len(syntax_errors)
        sections = self.sections.read_network(
            block, shared_train, has_syntax_errors=bool(syntax_errors)
        )
        network = assemble_network(
            sections, self.catalogue, self.diagnostics, self.sizes, errors_before
        )
        return network if self.diagnostics.error_count == errors_before else None


def _is_inside(diagnostic: Diagnostic, block: NetworkBlock) -> bool:
    """Whether a diagnostic begins inside a network."""
    return block.span.start <= diagnostic.span.start < block.span.end


def check_to_json(result: CheckResult, source: SourceText) -> dict[str, Any]:
    """Result of `neural check --format json`: file, verdict, networks and diagnostics."""
    return {
        "file": source.name,
        "ok": not result.errors,
        "networks": [
            _network_to_json(network) for network in ([] if result.errors else result.networks)
        ],
        "diagnostics": [
            _diagnostic_to_json(diagnostic, source) for diagnostic in result.diagnostics
        ],
    }


def _network_to_json(network: Network) -> dict[str, Any]:
    layers = [
        {
            "name": placed_layer.name,
            "layer": repr(placed_layer.layer),
            "copies": placed_layer.copies,
            "input": list(placed_layer.input_shape),
            "output": list(placed_layer.output_shape),
            "automatic": placed_layer.automatic,
            **_cost_to_json(placed_layer.cost),
        }
        for placed_layer in network.layers
    ]
    return {
        "name": network.name,
        "input": list(network.input),
        "output": list(network.output),
        **_cost_to_json(network.cost),
        "layers": layers,
        "notes": list(iter_notes(network)),
        "assumed_sizes": dict(network.assumed_sizes),
        "loss": repr(network.loss) if network.loss else None,
        "optimizer": repr(network.optimizer) if network.optimizer else None,
    }


def _cost_to_json(cost: Cost) -> dict[str, int]:
    return {
        "parameters": cost.parameters,
        "multiply_adds": cost.multiply_adds,
        "activation_bytes": 4 * cost.activations,  # float32
    }


def _diagnostic_to_json(diagnostic: Diagnostic, source: SourceText) -> dict[str, Any]:
    labels = [
        {"text": label.text, **_span_to_json(label.span, source)} for label in diagnostic.labels
    ]
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        **_span_to_json(diagnostic.span, source),
        "labels": labels,
        "help": list(diagnostic.helps),
    }


def _span_to_json(span: SourceSpan, source: SourceText) -> dict[str, int]:
    (line, column), (end_line, end_column) = (
        source.line_and_column(span.start),
        source.line_and_column(span.end),
    )
    return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}
