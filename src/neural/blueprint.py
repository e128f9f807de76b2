"""A checked network in the hand: look at it, build it, write it out. What `neural.load` gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.diagnostics import Diagnostic, Source, render
from neural.core.files import read_start
from neural.language.check import Checked, check
from neural.language.interchange import to_json
from neural.language.network import Network
from neural.language.parser import LARGEST
from neural.language.shapes import Shape
from neural.language.summary import text_table
from neural.language.syntax import Program
from neural.standard import CATALOGUE

if TYPE_CHECKING:
    from neural.modules.build import Built


class ProgramError(ValueError):
    """A program with mistakes; the message shows all of them as `neural check` does."""

    def __init__(self, source: Source, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("\n".join(render(one, source) for one in diagnostics))
        self.source, self.diagnostics = source, diagnostics


@dataclass(frozen=True)
class Blueprint:
    """A network that was checked: everything in it fits."""

    network: Network
    program: Program
    source: Source
    remarks: tuple[Diagnostic, ...]
    """Notes and warnings."""

    @property
    def name(self) -> str:
        """The network's name."""
        return self.network.name

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape after every layer, by the layer's name; the batch is left out."""
        return {placed.name: placed.gives for placed in self.network.layers}

    @property
    def parameters(self) -> int:
        """How many numbers are learned."""
        return self.network.cost.parameters

    def summary(self) -> str:
        """The table of layers, shapes and costs."""
        return text_table(self.network)

    def build(self, *, device: str | None = None) -> Built:
        """A torch module: `forward` predicts, `scores` is what the loss takes, `loss(scores, target)`."""
        from neural.modules.build import build  # the border to torch

        return build(self.network, device=device)

    def to_pytorch(self) -> str:
        """A Python file that needs torch alone; CannotCompile where it is not the network."""
        from neural.compiling import compile_network  # the border to torch

        return compile_network(self.network).text

    def to_json(self) -> dict[str, Any]:
        """The program as plain data; `neural.language.interchange.from_json` reads it back."""
        return to_json(self.program)

    def __repr__(self) -> str:
        return f"<network {self.name}: {len(self.network.layers)} layers, {self.parameters:,} parameters>"


def read(path: str | Path) -> Source:
    """A program's text. Bytes that are no text stay visible as such, for the parser to refuse."""
    return Source(str(path), read_start(Path(path), 4 * LARGEST + 1))


def parse(text: str, *, name: str | None = None, network: str | None = None) -> Blueprint:
    """The network that a text declares; ProgramError with all its mistakes."""
    return _blueprint(Source(name or "<text>", text), network)


def load(path: str | Path, *, network: str | None = None) -> Blueprint:
    """The network that a file declares; `network` chooses one of several."""
    return _blueprint(read(path), network)


def _blueprint(source: Source, network: str | None) -> Blueprint:
    checked: Checked = check(source.text, CATALOGUE, network=network)
    if checked.mistakes:
        raise ProgramError(source, checked.mistakes)
    return Blueprint(checked.networks[0], checked.program, source, checked.diagnostics)
