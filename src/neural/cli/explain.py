"""`neural explain`: cause and correction of a diagnostic code; what a finding or a measure means.

Diagnostic codes, such as E0203, are explained by Markdown files with a wrong and a correct example
(language/explanations). Finding codes, such as TRN007, are those of `neural analyze`; they are
explained by the docstrings of their checks (findings/checks), and measures of attention, such as
entropy, by theirs (capture/measures). Roles of heads are defined in findings/head_roles.py.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import CODE

if TYPE_CHECKING:
    from neural.capture.measure import Measure
    from neural.core.diagnostics import Diagnostic, SourceText
    from neural.findings.check import AnalysisCheck
    from neural.language.diagnostic_codes import CodeExample

SETTINGS_CODE_PREFIX = "E08"
"""Codes of experiment files, whose examples are YAML."""
KIND_DESCRIPTIONS = {
    "warning": "a warning about one run; one seed is enough",
    "note": "a note about one run; one seed is enough",
    "claim": "a claim about all runs of an experiment: yes, no or undecided; needs five seeds",
}
"""What each kind of finding says (`AnalysisCheck.kind`)."""


@click.command()
@click.argument("code", required=False, type=CODE)
def command(code: str | None) -> None:
    """Explain a code such as E0203, a finding such as TRN007, a measure, a role; or list them all.

    \b
    $ neural explain E0203
    $ neural explain TRN007
    $ neural explain entropy
    $ neural explain "previous token"
    $ neural explain role
    $ neural explain

    E are errors, W warnings, N notes of programs and experiments; the example message is the real
    output of the checker. ATT, CAU, EVO, FOC and TRN are findings of `neural analyze`. Measures of
    attention have a formula, a unit and bounds. `role` defines all roles of heads.
    """
    from neural.capture.measures import registry as measures
    from neural.core.diagnostics import render_diagnostic
    from neural.core.errors import NeuralError
    from neural.core.names import find_closest
    from neural.core.registry import UnknownNameError
    from neural.findings.head_roles import NO_ROLES, ROLES
    from neural.language import diagnostic_codes

    if code is None:
        roles = ", ".join((*ROLES, *NO_ROLES))
        click.echo(f"roles of heads, `neural explain role`:\n\n{roles}\n")
        click.echo("programs and experiments:\n")
        for name in diagnostic_codes.list_codes():
            click.echo(f"{click.style(name, bold=True)}  {diagnostic_codes.load_code(name).title}")
        click.echo("\nfindings of `neural analyze`:\n")
        for name, check in load_checks_by_code().items():
            click.echo(f"{click.style(name, bold=True)}  {check.claim}")
        click.echo("\nmeasures of attention:\n")
        for name in measures.names():
            click.echo(f"{click.style(name, bold=True)}  {measures.get(name).summary()}")
        return
    try:
        explanation = diagnostic_codes.load_code(code)
    except UnknownNameError:
        checks = load_checks_by_code()
        if code.upper() in checks:
            click.echo(format_finding_code(checks[code.upper()]))
            return
        if code.lower() in measures.names():
            click.echo(format_measure(code.lower(), measures.get(code.lower())))
            return
        role = code.lower().replace("-", " ").replace("_", " ").removesuffix(" head")
        if role in ("role", "roles"):
            click.echo("\n\n".join(map(format_role, (*ROLES, *NO_ROLES))))
            return
        if role in ROLES or role in NO_ROLES:
            click.echo(format_role(role))
            return
        known = [*diagnostic_codes.list_codes(), *checks, *measures.names(), *ROLES, *NO_ROLES]
        guess = find_closest(code, known)
        hint = f"did you mean `{guess}`? " if guess else ""
        raise NeuralError(
            f"no code, measure or role is called `{code}`; {hint}`neural explain` lists all"
        ) from None
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


def load_checks_by_code() -> dict[str, type[AnalysisCheck]]:
    """The checks of `neural analyze` by the code of their findings, in its order."""
    from neural.findings.checks import registry

    checks = (registry.get(name) for name in registry.names())
    return {check.code: check for check in sorted(checks, key=lambda check: check.code)}


def format_finding_code(check: type[AnalysisCheck]) -> str:
    """Title, what is tested, the unit of the number, and what to do."""
    is_share = check.unit.startswith("of ")
    facts = [("unit", f"% {check.unit}" if is_share else check.unit)]
    facts += [("kind", KIND_DESCRIPTIONS[check.kind])]
    facts += [("what to do", check.advice)] if check.advice else []
    return _format_explanation(f"{check.code}: {check.claim}", check, facts)


def format_measure(name: str, measure: type[Measure]) -> str:
    """Name, definition, formula, unit and bounds."""
    facts = [
        ("formula", inspect.getdoc(measure.reference) or ""),
        ("unit", measure.unit),
        ("bounds", inspect.getdoc(measure.value_range) or ""),
    ]
    return _format_explanation(name, measure, facts)


def format_role(name: str) -> str:
    """Name and definition of a role of heads, and its threshold."""
    from neural.findings.head_roles import MIN_ROLE_POSITIONS, NO_ROLES, ROLES

    title = click.style(name, bold=True)
    if name not in ROLES:
        return f"{title}\n{textwrap.fill(NO_ROLES[name], 100)}"
    role = ROLES[name]
    facts = f"A head has it from {role.threshold:g} on, on average over queries."
    if name != "uniform":
        facts += f" Inputs of fewer than {MIN_ROLE_POSITIONS} positions do not tell."
    source = f" The measure is `{role.measure}`." if role.measure else ""
    return f"{title}\n{textwrap.fill(f'{role.definition} {facts}{source}', 100)}"


def _format_explanation(title: str, entry: type, facts: list[tuple[str, str]]) -> str:
    """A title, the docstring of a class, and a line for each fact."""
    paragraphs = [
        textwrap.fill(" ".join(paragraph.split()), 100)
        for paragraph in (inspect.getdoc(entry) or "").split("\n\n")
    ]
    lines = (
        textwrap.fill(f"{label}: {text}", 100, subsequent_indent="  ").replace(
            label, click.style(label, bold=True), 1
        )
        for label, text in facts
    )
    return "\n\n".join([click.style(title, bold=True), *paragraphs, "\n".join(lines)])


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
