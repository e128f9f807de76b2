"""`neural explain`: cause and correction of a diagnostic code.

Codes are explained by Markdown files with a wrong and a correct example (language/explanations).
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import CODE

if TYPE_CHECKING:
    from neural.core.diagnostics import Diagnostic, SourceText
    from neural.language.diagnostic_codes import CodeExample

SETTINGS_CODE_PREFIX = "E08"
"""Codes of experiment files, whose examples are YAML."""


@click.command()
@click.argument("code", required=False, type=CODE)
def command(code: str | None) -> None:
    """Explain a diagnostic code such as E0203, or list all codes.

    \b
    $ neural explain E0203
    $ neural explain

    E are errors, W warnings, N notes. The example message is the real output of the checker.
    """
    from neural.cli._errors import UserError
    from neural.core.diagnostics import render_diagnostic
    from neural.core.registry import UnknownNameError
    from neural.language import diagnostic_codes

    if code is None:
        for name in diagnostic_codes.list_codes():
            click.echo(f"{click.style(name, bold=True)}  {diagnostic_codes.load_code(name).title}")
        return
    try:
        explanation = diagnostic_codes.load_code(code)
    except UnknownNameError as error:
        raise UserError(f"{error}; `neural explain` lists all") from None
    click.echo(click.style(f"{explanation.code}: {explanation.title}", bold=True) + "\n")
    click.echo(textwrap.fill(explanation.cause, 100))
    wrong, right = explanation.wrong, explanation.right
    if wrong is not None:
        source, diagnostics = diagnose_example(explanation.code, wrong)
        click.echo("\n" + click.style("wrong:", bold=True) + "\n")
        click.echo(textwrap.indent(wrong.text, "    "))
        for diagnostic in diagnostics:
            if diagnostic.code == explanation.code:
                click.echo(
                    textwrap.indent(render_diagnostic(diagnostic, source, click.style), "    ")
                )
    option_text = f" (with --network {right.network})" if right.network else ""
    click.echo("\n" + click.style(f"correct{option_text}:", bold=True) + "\n")
    click.echo(textwrap.indent(right.text, "    ").rstrip())


def diagnose_example(code: str, example: CodeExample) -> tuple[SourceText, tuple[Diagnostic, ...]]:
    """The source of an example and its diagnostics, from the checker or the settings reader."""
    from neural.core.diagnostics import SourceText

    if code.startswith(SETTINGS_CODE_PREFIX):
        from neural.core.experiment import Experiment
        from neural.core.settings import SettingsError, read_settings

        source = SourceText("experiment.yaml", example.text)
        try:
            read_settings(Experiment, source)
        except SettingsError as error:
            return source, error.diagnostics
        return source, ()
    from neural.language.check import check
    from neural.optim.catalogue import CATALOGUE

    source = SourceText("net.neural", example.text)
    # CATALOGUE: the layers, losses and optimizers that programs can name
    return source, check(source.text, CATALOGUE, network=example.network).diagnostics
