"""The text of a `.neural` program in an editor, and what is derived from it on first use.

The outline (outline.py) is a tree of the networks, sections and calls in a text. It exists even if
the text has syntax errors; checked networks exist only without errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from neural.core.diagnostics import Diagnostic, DiagnosticCollector, SourceSpan
from neural.language.catalogue import Catalogue
from neural.language.check import CheckResult, check
from neural.language.formatter import format_program
from neural.language.network import Network, PlacedLayer
from neural.language.parser import parse
from neural.language.syntax import NetworkBlock
from neural.lsp.outline import Outline, OutlineNode, build_outline

AMBIGUOUS_NETWORK_CODE = "E0408"
"""Code of the error that a program has several networks and none is chosen. It matters to commands
that build one network, not to editors."""


@dataclass(frozen=True)
class ProgramDocument:
    """A program open in an editor."""

    text: str
    catalogue: Catalogue
    """What programs may name: layers, losses, optimizers."""

    @cached_property
    def outline(self) -> Outline:
        """Tree of the networks, sections and calls in the text."""
        return build_outline(self.text)

    @cached_property
    def check_result(self) -> CheckResult:
        """Result of the checker, with all networks that have no errors."""
        return check(self.text, self.catalogue)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of `neural check` for all networks, without AMBIGUOUS_NETWORK_CODE."""
        diagnostics = self.check_result.diagnostics
        if any(diagnostic.code == AMBIGUOUS_NETWORK_CODE for diagnostic in diagnostics):
            # With a network chosen, the checker still checks all, but does not ask for a choice.
            first = self.check_result.program.networks[0].name
            diagnostics = check(self.text, self.catalogue, network=first).diagnostics
        return diagnostics

    def format_text(self) -> str | None:
        """The text as `neural fmt` formats it; None if it has syntax errors."""
        diagnostics = DiagnosticCollector()
        program = parse(self.text, diagnostics)
        return None if diagnostics.errors else format_program(program)

    def find_network(self, node: OutlineNode) -> Network | None:
        """The checked network of an outline node, if it has no errors."""
        return next(
            (network for network in self.check_result.networks if network.name == node.name), None
        )

    def find_placed_layer(self, call: OutlineNode) -> tuple[PlacedLayer, Network] | None:
        """The layer that a call creates, with shapes and costs, and its network.

        If the network has errors, it is checked again without the layers after this one.
        """
        for block in self.check_result.program.networks:
            if block.span.start <= call.span.start < block.span.end:
                for network in self.check_result.networks:
                    for placed_layer in network.layers:
                        is_call = placed_layer.span.start == call.span.start
                        # Automatic layers are inserted by the checker, not written by the user.
                        if is_call and not placed_layer.automatic:
                            return placed_layer, network
                return self._place_last_layer(block, call.span.start)
        return None

    def _place_last_layer(
        self, block: NetworkBlock, start: int
    ) -> tuple[PlacedLayer, Network] | None:
        """The layer at the offset `start`, in a copy of the network that ends with it."""
        section_texts = {"input": "", "layers": ""}
        for section in block.sections:
            if section.name == "input" and not section.broken:
                section_texts["input"] = self._get_text(section.span)
            elif section.name == "layers" and isinstance(section.body, tuple):
                layers = [
                    self._get_text(layer.span)
                    for layer in section.body
                    if layer.span.start <= start
                ]
                section_texts["layers"] = "\n".join(["layers:", *layers])
        truncated_result = check(
            "\n".join([f"network {block.name} {{", *section_texts.values(), "}"]), self.catalogue
        )
        layers_with_network = [
            (layer, network)
            for network in truncated_result.networks
            for layer in network.layers
            if not layer.automatic
        ]
        return layers_with_network[-1] if layers_with_network else None

    def _get_text(self, span: SourceSpan) -> str:
        return self.text[span.start : span.end]


@dataclass(frozen=True, slots=True)
class OutlineSymbol:
    """An item of the editor's outline view; `span` is that of its name, `full_span` of its text."""

    kind: str
    name: str
    span: SourceSpan
    full_span: SourceSpan
    children: tuple[OutlineSymbol, ...]


def list_symbols(document: ProgramDocument) -> tuple[OutlineSymbol, ...]:
    """The symbols of a program, nested."""
    return tuple(_iter_symbols(document.outline.root))


def _iter_symbols(node: OutlineNode) -> Iterator[OutlineSymbol]:
    """Symbols of the children of a node; calls inside calls are left out."""
    for child in node.children:
        if child.kind != "group" and child.name:
            children = tuple(_iter_symbols(child)) if child.kind != "call" else ()
            yield OutlineSymbol(
                child.kind,
                child.name,
                child.span,
                SourceSpan(child.span.start, max(child.span.end, child.end)),
                children,
            )
