"""A text and what can be known of it, each thing found out when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from neural.core.diagnostics import Diagnostic, Findings, Where
from neural.language.catalogue import Catalogue
from neural.language.check import Checked, check
from neural.language.network import Network, Placed
from neural.language.parser import parse
from neural.language.printer import print_program
from neural.language.syntax import Block
from neural.lsp.outline import Outline, Part, outline

WHICH = "E0408"
"""Which of the networks: a question to whoever trains one, not to who writes them."""


@dataclass(frozen=True)
class Document:
    """A program as it stands in an editor."""

    text: str
    catalogue: Catalogue

    @cached_property
    def outline(self) -> Outline:
        """What opens and closes."""
        return outline(self.text)

    @cached_property
    def checked(self) -> Checked:
        """What the checker says, with all networks that work."""
        return check(self.text, self.catalogue)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What `neural check` says; of several networks each is checked."""
        said = self.checked.diagnostics
        if any(one.code == WHICH for one in said):
            first = self.checked.program.networks[0].name
            said = check(self.text, self.catalogue, network=first).diagnostics
        return said

    def formatted(self) -> str | None:
        """The text as `neural fmt` lays it out; None where it cannot be read."""
        findings = Findings()
        program = parse(self.text, findings)
        return None if findings.mistakes else print_program(program)

    def network(self, part: Part) -> Network | None:
        """The network that a part of the outline is, if it works."""
        return next((one for one in self.checked.networks if one.name == part.name), None)

    def placed(self, call: Part) -> tuple[Placed, Network] | None:
        """A layer at its place, with its network: shapes and costs. Behind it there may be mistakes."""
        for block in self.checked.program.networks:
            if block.where.start <= call.where.start < block.where.end:
                for network in self.checked.networks:
                    for placed in network.layers:
                        if placed.where.start == call.where.start and not placed.automatic:
                            return placed, network
                return self._last(block, call.where.start)
        return None

    def _last(self, block: Block, start: int) -> tuple[Placed, Network] | None:
        """The layer that starts there, in the network as if it ended with it."""
        pieces = {"input": "", "layers": ""}
        for section in block.sections:
            if section.name == "input" and not section.broken:
                pieces["input"] = self._piece(section.where)
            elif section.name == "layers" and isinstance(section.body, tuple):
                before = [self._piece(one.where) for one in section.body if one.where.start <= start]
                pieces["layers"] = "\n".join(["layers:", *before])
        shortened = check("\n".join([f"network {block.name} {{", *pieces.values(), "}"]), self.catalogue)
        written = [(one, network) for network in shortened.networks for one in network.layers if not one.automatic]
        return written[-1] if written else None

    def _piece(self, where: Where) -> str:
        return self.text[where.start : where.end]
