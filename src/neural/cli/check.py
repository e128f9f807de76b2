"""`neural check`: check programs, experiments, sweeps and studies without training.

A sweep trains an experiment with every combination of a grid's values; a study trains language
models on several texts and seeds, to see how attention evolves.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from neural.cli._arguments import PROGRAM

MAX_SHOWN_TRIALS = 12
"""Names of a sweep's trials that are printed."""


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
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=PROGRAM)
@click.option("--network", metavar="NAME", help="The network to check, if a file has several.")
@click.option(
    "--fragment",
    is_flag=True,
    help="Check part of a program, such as a single layer or a `train {}` block.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option("--json", "form", flag_value="json", help="Short for --format json.")
@click.option("--strict", is_flag=True, help="Exit with code 1 if there are warnings.")
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
    sizes: dict[str, int],
) -> None:
    """Check programs and experiments: all shapes and costs, or all errors.

    \b
    $ neural check examples/tiny.neural
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


def _check_settings(path: str, form: str, reports: list[Any]) -> int:
    """Check an experiment, sweep or study with its data and network; returns the exit code.

    Appends a dict to `reports`, for JSON.
    """
    from neural.cli._errors import UserError, report_errors
    from neural.cli._file_kind import detect_kind, require_kind

    kind = detect_kind(Path(path)) or "experiment"
    try:
        require_kind(path, kind)  # raises UserError for a folder
        with report_errors():
            report, text = (
                _check_experiment(path) if kind == "experiment" else _check_trials(path, kind)
            )
    except UserError as error:  # the other files are checked nevertheless
        if form == "text":
            error.show()
        reports.append({"file": path, "ok": False, "message": error.message})
        return error.exit_code
    reports.append({"file": path, "ok": True, **report})
    if form == "text":
        click.echo(text + "\n")
    return 0


def _check_experiment(path: str) -> tuple[dict[str, Any], str]:
    """Result for JSON and as text."""
    from neural.core.settings import dump_settings
    from neural.workflows.load_task import load_task

    task = load_task(path)
    text = "\n".join([task.model_summary(), *(f"note: {note}" for note in task.notes)])
    return {"settings": dump_settings(task.experiment), "notes": list(task.notes)}, text


def _check_trials(path: str, kind: str) -> tuple[dict[str, Any], str]:
    """Result for JSON and as text; `kind` is sweep or study."""
    from neural.workflows.study import read_study
    from neural.workflows.sweep_trials import read_sweep

    if kind == "study":
        study = read_study(Path(path))
        experiment, trials = study.experiment, study.trials
    else:
        _, experiment, trials = read_sweep(Path(path))
    names = [trial.name for trial in trials]
    lines = [
        f"{kind} of {experiment.name}, {len(names)} trials",
        *(f"  {name}" for name in names[:MAX_SHOWN_TRIALS]),
    ]
    if len(names) > MAX_SHOWN_TRIALS:
        lines.append(f"  … and {len(names) - MAX_SHOWN_TRIALS} more")
    return {"trials": names}, "\n".join(lines)
