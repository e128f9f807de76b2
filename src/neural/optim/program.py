"""Check a program with everything that it can name: `ProgramError` lists all its errors.

A program is text in the `.neural` language that defines one or more networks; CATALOGUE holds the
layers, losses and optimizers that it can name.
"""

from __future__ import annotations

from neural.core.diagnostics import Diagnostic, SourceText, render_diagnostic
from neural.core.errors import NeuralError
from neural.language.check import CheckResult, check
from neural.optim.catalogue import CATALOGUE


class ProgramError(NeuralError, ValueError):
    """A program has errors; the message shows all of them like `neural check`.

        try:
            network = neural.load("net.neural")
        except neural.ProgramError as error:
            print(error)

    Raised by `neural.load` and `neural.parse`; `neural.check` returns the errors instead.
    """

    def __init__(self, source: SourceText, diagnostics: tuple[Diagnostic, ...]) -> None:
        messages = (render_diagnostic(diagnostic, source) for diagnostic in diagnostics)
        super().__init__("\n".join(messages))
        self.source, self.diagnostics = source, diagnostics


def check_program(source: SourceText, network: str | None = None) -> CheckResult:
    """The checked program, without errors; ProgramError if it has any.

    `network` selects one of several networks by name; it is the first of the result.
    """
    checked = check(source.text, CATALOGUE, network=network)
    if checked.errors:
        raise ProgramError(source, checked.errors)
    return checked
