"""Read and check a program: `neural.load`, `neural.parse` and the `Blueprint` that they return.

A program is text in the `.neural` language that defines one or more networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.diagnostics import Diagnostic, SourceText
from neural.core.files import read_source_text
from neural.language.network import Network
from neural.language.program_json import program_to_json
from neural.language.shapes import Shape
from neural.language.summary import format_summary
from neural.language.syntax import Program
from neural.optim.program import check_program

if TYPE_CHECKING:
    from neural.nn.build import NetworkModule


@dataclass(frozen=True)
class Blueprint:
    """A checked network of a program, from which the torch module or its source can be built.

        network = neural.load("net.neural")
        print(network.summary())
        model = network.build()  # an nn.Module

    Returned by `neural.load` and `neural.parse`.
    """

    network: Network
    program: Program
    source: SourceText
    notes: tuple[Diagnostic, ...]
    """Notes and warnings of the check."""

    @property
    def name(self) -> str:
        """The network's name."""
        return self.network.name

    @property
    def shapes(self) -> dict[str, Shape]:
        """The output shape of every layer by its name, without the batch axis."""
        return {
            placed_layer.name: placed_layer.output_shape for placed_layer in self.network.layers
        }

    @property
    def parameters(self) -> int:
        """Number of trainable parameters."""
        return self.network.cost.parameters

    def summary(self) -> str:
        """The table of layers, shapes and costs."""
        return format_summary(self.network)

    def build(self, *, device: str | None = None) -> NetworkModule:
        """Build the torch module.

        `forward` returns predictions, `logits` what `loss(logits, target)` takes.
        """
        from neural.nn.build import build  # imported here: it needs torch

        return build(self.network, device=device)

    def to_pytorch(self) -> str:
        """A Python file that needs only torch. SourceExportError if it differs from the network."""
        from neural.workflows.compile import compile_network  # imported here: it needs torch

        return compile_network(self.network).text

    def to_json(self) -> dict[str, Any]:
        """The program as JSON values (see `neural.language.program_json`)."""
        return program_to_json(self.program)

    def __repr__(self) -> str:
        layers = len(self.network.layers)
        return f"<network {self.name}: {layers} layers, {self.parameters:,} parameters>"


def parse(text: str, *, name: str | None = None, network: str | None = None) -> Blueprint:
    """Check a program text; ProgramError lists all its errors.

        model = neural.parse("network Tiny { input: (4,) layers: Output(3) }").build()

    `network` selects one of several by name; `name` stands for the file name in messages.
    """
    return _create_blueprint(SourceText(name or "<text>", text), network)


def load(path: str | Path, *, network: str | None = None) -> Blueprint:
    """Check a program file; ProgramError lists all its errors.

        model = neural.load("net.neural").build()

    `network` selects one of several by name.
    """
    return _create_blueprint(read_source_text(path), network)


def _create_blueprint(source: SourceText, network: str | None) -> Blueprint:
    checked = check_program(source, network)
    return Blueprint(checked.networks[0], checked.program, source, checked.diagnostics)
