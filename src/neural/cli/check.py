"""`neural check`: check programs, experiments, sweeps and studies without training.

A program (`.neural` file) declares a network; an experiment (YAML) is the settings of one training.
A sweep trains an experiment with every combination of a grid's values, one trial each; a study
trains language models on several texts and seeds, to see how attention evolves.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import PROGRAM_OR_STDIN
from neural.cli._options import json_option

if TYPE_CHECKING:
    from neural.core.diagnostics import SourceText


def _parse_sizes(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> dict[str, int]:
    """Click callback: `T=256` → {"T": 256}."""
    sizes = {}
    for value in values:
        name, _, number = value.partition("=")
        if not (name.isidentifier() and number.isdigit() and int(number) > 0):
            raise click.BadParameter(f"expected NAME=NUMBER such as T=256, got {value}")
        sizes[name] = int(number)
    return sizes


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=PROGRAM_OR_STDIN)
@click.option("--network", metavar="NAME", help="The network to check, if a file has several.")
@click.option(
    "--fragment",
    is_flag=True,
    help="Check part of a program, such as a single layer or a `train {}` block.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@json_option("Short for --format json.", form=True)
@click.option("--strict", is_flag=True, help="Exit with code 1 if there are warnings.")
@click.option("--fix", is_flag=True, help="Apply the hints that say what to write, then check.")
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="T=N",
    callback=_parse_sizes,
    help="Value of a symbolic dimension such as T, to compute multiply-adds and memory.",
)
def command(
    files: tuple[str, ...],
    network: str | None,
    fragment: bool,
    form: str,
    strict: bool,
    fix: bool,
    sizes: dict[str, int],
) -> None:
    """Check programs and experiments: all shapes and costs, or all errors.

    \b
    $ neural check examples/tiny.neural
    $ neural check net.neural --fix
    $ neural check net.neural --json | jq .networks[0].parameters
    $ neural check examples/segmentation/articles.yaml
    $ echo 'Dense(10)' | neural check --fragment -

    Exit codes: 0 no errors, 1 warnings with --strict, 2 errors.
    """
    from neural.cli._file_kind import require_kind
    from neural.cli._program_source import print_diagnostics, read_source
    from neural.language.check import check
    from neural.optim.catalogue import CATALOGUE

    exit_code = 0
    reports: list[Any] = []
    for path in files:
        if path.lower().endswith((".yaml", ".yml")):
            exit_code = max(exit_code, _check_settings(path, form, reports))
            continue
        if path != "-" and not fragment:
            require_kind(path, "program")
        source = read_source(path)
        if fix:
            source = _fix_source(path, source, network, fragment)
        # CATALOGUE: the layers, losses and optimizers that programs can name
        checked = check(source.text, CATALOGUE, network=network, fragment=fragment, sizes=sizes)
        if form == "json":
            from neural.language.check import check_to_json

            reports.append(check_to_json(checked, source))
        else:
            from neural.language.summary import format_summary

            for checked_network in () if checked.errors else checked.networks:
                click.echo(format_summary(checked_network) + "\n")
            print_diagnostics(checked.diagnostics, source)
            if fragment and not checked.diagnostics:
                click.echo(f"{source.name}: no errors")
        has_warnings = any(item.severity == "warning" for item in checked.diagnostics)
        exit_code = max(exit_code, 2 if checked.errors else 1 if strict and has_warnings else 0)
    if form == "json":
        data: Any = reports[0] if len(reports) == 1 else reports
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    sys.exit(exit_code)


def _fix_source(path: str, source: SourceText, network: str | None, fragment: bool) -> SourceText:
    """Apply all fixes of one check, write the file and print what changed; returns the new text."""
    from neural.cli._program_source import write_source
    from neural.core.diagnostics import SourceText, apply_fixes
    from neural.core.errors import NeuralError
    from neural.core.escape import escape_controls
    from neural.language.check import check
    from neural.optim.catalogue import CATALOGUE

    if path == "-":
        raise NeuralError("--fix changes a file, and `-` is none; give its name")
    checked = check(source.text, CATALOGUE, network=network, fragment=fragment)
    text, fixed = apply_fixes(source.text, checked.diagnostics)
    if text == source.text:
        click.echo(f"{source.name}: nothing to fix", err=True)
        return source
    write_source(path, text)
    for diagnostic in fixed:
        line, column = source.line_and_column(diagnostic.span.start)
        help_text = f"; {diagnostic.helps[-1]}" if diagnostic.helps else ""
        message = escape_controls(diagnostic.message + help_text)
        click.echo(f"fixed {source.name}:{line}:{column}: {message}", err=True)
    return SourceText(source.name, text)


def _check_settings(path: str, form: str, reports: list[Any]) -> int:
    """Check an experiment, sweep or study with its data and network; returns the exit code.

    Appends a dict to `reports`, for JSON.
    """
    from neural.cli._file_kind import require_kind
    from neural.core.errors import NeuralError, format_error
    from neural.core.file_kind import detect_kind
    from neural.workflows.check import check_settings_file

    kind = detect_kind(Path(path)) or "experiment"
    try:
        require_kind(path, kind)  # raises NeuralError for a folder
        report, text = check_settings_file(Path(path), kind)
    except NeuralError as error:  # the other files are checked nevertheless
        if form == "text":
            click.echo(format_error(error), err=True)
        reports.append({"file": path, "ok": False, "message": format_error(error)})
        return error.exit_code
    reports.append({"file": path, "ok": True, **report})
    if form == "text":
        click.echo(text + "\n")
    return 0
