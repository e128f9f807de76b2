"""`neural dynamics`: learning dynamics of focus models, trained or predicted by theory.

A focus model (neural.tasks.focus) has attention over the m segments of an example and a classifier
into C classes. The focus α is the attention weight of the foreground segment, the one that decides
the label. A paradigm (soft, hard, marginal) is a way to combine both into a loss; the Rényi order
is a parameter of a family that contains them. A hybrid switches from one paradigm to another during
training; a schedule is one paradigm or a hybrid. The incentive of a paradigm is −∂loss/∂α.

The theory (neural.tasks.focus.theory) predicts α over time t in the linear orthogonal setting: a
linear model whose segments are 0 except the foreground, the unit vector of its class.
"""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._arguments import PROGRAM, PROGRAM_SUFFIXES
from neural.cli._formatting import format_count, path_argument, relative_path
from neural.cli._options import json_option, out_option, runs_option
from neural.core.errors import NeuralError, describe_os_error

if TYPE_CHECKING:
    from neural.tasks.focus.theory.overview import TheoryOverview
    from neural.workflows.sweep import Sweep

"""Colours by `ClaimVerdict.supported`; other verdicts, such as undecided, have none."""
THEORY_OPTIONS = ("alpha", "until", "measure", "out")
"""Options without a default that only `--theory` uses."""
DEFAULT_ALPHAS = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))
"""Values of α that `--theory` holds fixed while the classifier is trained, without --alpha."""


@click.command()
@click.argument("arguments", nargs=-1, metavar="FILE | C=… m=…", type=PROGRAM)
@click.option(
    "--theory",
    is_flag=True,
    help="Predict from the linear orthogonal setting with C classes and m segments.",
)
@click.option(
    "--alpha",
    metavar="A,A,…",
    help="With --theory: focus values to hold fixed; 0.1 to 0.9 by default.",
)
@click.option(
    "--rate",
    type=float,
    default=1.0,
    show_default=True,
    help="With --theory: learning rate of the focus divided by that of the classifier.",
)
@click.option(
    "--until",
    type=float,
    help="With --theory: last time; by default when soft attention reaches a focus of 0.95.",
)
@click.option(
    "--measure",
    is_flag=True,
    help="With --theory: also run gradient descent in small steps and compare with the prediction.",
)
@out_option("With --theory: folder for plots.", metavar="FOLDER", is_folder=True)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="With a file: trials at the same time; one per core by default.",
)
@runs_option()
@json_option("Print all values as one JSON object.")
def command(
    arguments: tuple[str, ...],
    theory: bool,
    workers: int | None,
    root: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Show how attention learns where to attend: soft, hard, marginal and hybrid.

    \b
    $ neural dynamics examples/focus/compare.yaml
    $ neural dynamics runs/2026-11-16_05-00-00_compare
    $ neural dynamics --theory C=3 m=10
    $ neural dynamics --theory C=5 m=4 --measure
    $ neural dynamics --theory C=20 m=20 --alpha 0.2,0.4,0.6 --rate 2 --out drawn

    With a file like that of a sweep: trains every paradigm of its grid, then reports which claims
    the runs support; a folder resumes a comparison. With --theory: closed-form predictions of the
    linear orthogonal setting; times are steps × learning rate of gradient descent from zero.
    """
    if not theory and len(arguments) != 1:
        raise click.UsageError("name the file or folder of a comparison, or use --theory C=… m=…")
    if not theory and (ignored := [name for name in THEORY_OPTIONS if options[name]]):
        raise click.UsageError(
            f"--{ignored[0]} needs --theory; a comparison writes its plots into its own folder"
        )
    if theory:
        show_theory(arguments, as_json=as_json, **options)
    else:
        run_comparison(arguments[0], workers=workers, runs=root, as_json=as_json)


def run_comparison(path: str, *, workers: int | None, runs: Path, as_json: bool) -> None:
    """Train the paradigms of a sweep file, or resume in the folder `path`; print the verdicts.

    `runs` is the folder for a new comparison, `workers` the number of trials at the same time.
    """
    from neural.cli._sweep_display import run_with_progress, sigterm_as_interrupt
    from neural.training.runners.forked import Forked
    from neural.workflows import dynamics

    sweep = _open_or_create_sweep(Path(path), runs)
    click.echo(
        f"comparison {relative_path(sweep.path)}, {format_count(sweep.rows, 'trial')}",
        err=True,
    )
    exit_code = 0
    if sweep.unfinished:
        with (
            sigterm_as_interrupt(),
            Forked(workers) as runner,
        ):
            exit_code = run_with_progress(sweep, runner)
    if exit_code == 130:  # stopped by Ctrl-C or SIGTERM
        click.echo(f"resume with: neural dynamics {path_argument(sweep.path)}", err=True)
        sys.exit(exit_code)
    _formatting.print_result(dynamics.compare_paradigms(sweep), as_json=as_json)
    sys.exit(exit_code)


def _open_or_create_sweep(path: Path, runs: Path) -> Sweep:
    """A new sweep from a file, or the one of a folder; what is no file names a folder."""
    from neural.cli._file_kind import require_kind
    from neural.cli._run_selection import select_sweep
    from neural.workflows import dynamics
    from neural.workflows.sweep import create_sweep, open_sweep
    from neural.workflows.sweep_trials import read_sweep

    if not path.is_file() and path.suffix.lower() not in PROGRAM_SUFFIXES:
        sweep = open_sweep(select_sweep(str(path), runs))
        sweep.refresh()
        return sweep
    require_kind(str(path), "sweep")
    settings, experiment, trials = read_sweep(path)
    dynamics.check_comparison(experiment, settings.grid)
    return create_sweep(runs, settings.name or path.stem, settings, experiment, trials)


def show_theory(
    arguments: Sequence[str],
    alpha: str | None,
    rate: float,
    until: float | None,
    measure: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Compute the predictions, print them, and write plots to the folder `out`.

    `arguments` are `C=…` and `m=…`; the other parameters are the options of `command`.
    """
    from neural.core.result import to_json_data
    from neural.tasks.focus.theory.overview import compute_overview
    from neural.tasks.focus.theory.setting import LinearSetting

    classes, segments = _parse_sizes(arguments)
    theory = compute_overview(
        LinearSetting(classes, segments, rate),
        alphas=_parse_alphas(alpha),
        until=until,
        fine_steps=measure,
    )
    files = [str(file) for file in _write_plots(theory, out)] if out is not None else []
    if as_json:
        click.echo(json.dumps(to_json_data(theory) | {"drawn": files}))
        return
    click.echo("\n".join(_format_theory(theory)))
    if files:
        click.echo(f"drawn: {', '.join(files)}")


def _parse_sizes(arguments: Sequence[str]) -> tuple[int, int]:
    """C and m, from `C=3 m=10`."""
    sizes: dict[str, int] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or name not in ("C", "m"):
            raise NeuralError(
                f"`{argument}`: the theory takes C=… (classes) and m=… (segments), as in C=3 m=10"
            )
        if name in sizes:
            raise NeuralError(f"`{argument}`: {name} is given twice")
        try:
            sizes[name] = int(value.replace(",", "").replace("_", ""))
        except ValueError:
            raise NeuralError(f"`{argument}`: {name} must be an integer, as in {name}=10") from None
    missing = [name for name in ("C", "m") if name not in sizes]
    if missing:
        raise NeuralError(
            f"{' and '.join(missing)} missing: --theory C=3 m=10 has 3 classes and 10 segments"
        )
    return sizes["C"], sizes["m"]


def _parse_alphas(text: str | None) -> tuple[float, ...]:
    """Focus values in ascending order; the theory checks their range."""
    if text is None:
        return DEFAULT_ALPHAS
    try:
        return tuple(sorted({float(number) for number in text.split(",")}))
    except ValueError:
        raise NeuralError(
            f"--alpha {text}: expected numbers separated by commas, as in 0.2,0.4"
        ) from None


def _write_plots(theory: TheoryOverview, folder: Path) -> list[Path]:
    from neural.report.theory_plots import draw_theory_plots

    try:
        return draw_theory_plots(theory, folder)
    except OSError as error:
        raise NeuralError(f"--out {folder}: {describe_os_error(error)}") from None


def _format_theory(theory: TheoryOverview) -> list[str]:
    setting = theory.setting
    rate_text = "" if setting.rate == 1 else f", focus rate r = {setting.rate:g}"
    title = f"linear orthogonal setting, C = {setting.classes}, m = {setting.segments}{rate_text}"
    sections = [
        _format_schedules(theory),
        _format_switches(theory),
        _format_finishes(theory),
        _format_slopes(theory),
        _format_fixed_focus(theory),
    ]
    lines = [_formatting.style_heading(title), "times are steps × learning rate, from zero"]
    for section in sections:
        lines += ["", *section]
    advice = textwrap.wrap(theory.advice.reason, _formatting.terminal_width() - 2)
    return [*lines, "", _formatting.style_heading("advice"), *(f"  {line}" for line in advice)]


def _format_schedules(theory: TheoryOverview) -> list[str]:
    """When the focus reaches each level α, by schedule: one paradigm, or a hybrid of two."""
    last_level = theory.levels[-1]
    header = [
        "",
        *(f"α = {level:g}" for level in theory.levels),
        "measured",
        "difference",
        "switch",
        "calls",
    ]
    rows = [
        [
            schedule.name,
            *(_format_time(time) for time in schedule.times),
            "–" if schedule.descent is None else _format_time(schedule.descent.time_to(last_level)),
            "–" if schedule.max_difference is None else f"{schedule.max_difference:.4f}",
            ", ".join(_format_time(time) for time in schedule.switches) or "–",
            f"{schedule.classifier_calls:,.0f}",
        ]
        for schedule in theory.schedules
    ]
    notes = [
        f"  measured: time to α = {last_level:g} of gradient descent on the linear model itself;",
        "  difference: largest distance between its α and the predicted one;",
        "  calls: of the classifier per example until then, one step per unit of time;",
        "  steepest: at every moment the Rényi order with the largest gradient, then hard",
    ]
    if all(schedule.descent is None for schedule in theory.schedules):
        notes.append("  not measured: the data set would be too large")
    return [
        _formatting.style_heading("time until the focus is α"),
        *_formatting.format_table([header, *rows], right_aligned=range(1, len(header))),
        *notes,
    ]


def _format_switches(theory: TheoryOverview) -> list[str]:
    """Two times to switch each hybrid: at equal incentive of both paradigms, and by search.

    After each of them is the time until the focus is `last_level`; `lost` is their ratio − 1.
    """
    last_level = theory.levels[-1]
    header = [
        "",
        "equal incentive",
        f"α = {last_level:g}",
        "best by search",
        f"α = {last_level:g}",
        "lost",
    ]
    rows = [
        [
            switch.name,
            "never" if switch.equal is None else _format_time(switch.equal),
            _format_time(switch.time_equal),
            _format_time(switch.best),
            _format_time(switch.time_best),
            f"{switch.time_equal / switch.time_best - 1:.2%}",
        ]
        for switch in theory.switches
    ]
    return [
        _formatting.style_heading("when to switch"),
        *_formatting.format_table([header, *rows], right_aligned=range(1, 6)),
    ]


def _format_finishes(theory: TheoryOverview) -> list[str]:
    """How 1 − α vanishes for large times: a formula, the exact value, and two approximations."""
    setting = theory.setting
    header = ["", "1 − α →", f"at t = {theory.last_time:,.0f}", "first order", "next order"]
    rows = [
        [
            late_rate.name,
            late_rate.formula,
            *map(
                _formatting.format_number, (late_rate.exact, late_rate.leading, late_rate.refined)
            ),
        ]
        for late_rate in theory.late_rates
    ]
    notes = (
        []
        if setting.rate == 1
        else [f"  the formulas are those of r = 1, divided by r = {setting.rate:g}"]
    )
    return [
        _formatting.style_heading("how the focus finishes"),
        *_formatting.format_table([header, *rows], right_aligned=range(2, 5)),
        *notes,
    ]


def _format_slopes(theory: TheoryOverview) -> list[str]:
    """Exponents of the decay of 1 − α, from a tenth of the last time to the last time."""
    header = ["", "by the formula", "exact", "measured"]
    rows = [
        [
            late_rate.name,
            *map(_format_slope, (late_rate.slope, late_rate.slope_exact, late_rate.slope_measured)),
        ]
        for late_rate in theory.late_rates
    ]
    title = (
        "slope of log(1 − α) against log t, "
        f"from t = {theory.last_time / 10:,.0f} to {theory.last_time:,.0f}"
    )
    return [
        _formatting.style_heading(title),
        *_formatting.format_table([header, *rows], right_aligned=range(1, 4)),
    ]


def _format_slope(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def _format_fixed_focus(theory: TheoryOverview) -> list[str]:
    """Loss and incentive of each paradigm at the last time, with α held fixed."""
    curves = theory.fixed_focus
    paradigm_names = list(curves.loss)
    header = [
        "α",
        f"loss: {paradigm_names[0]}",
        *paradigm_names[1:],
        f"incentive: {paradigm_names[0]}",
        *paradigm_names[1:],
    ]
    rows = [
        [
            f"{alpha:g}",
            *(f"{curves.loss[name][-1, index]:.4f}" for name in paradigm_names),
            *(f"{curves.incentive[name][-1, index]:.4f}" for name in paradigm_names),
        ]
        for index, alpha in enumerate(curves.alphas)
    ]
    title = f"focus held at α, classifier trained until t = {curves.times[-1]:g}"
    return [
        _formatting.style_heading(title),
        *_formatting.format_table([header, *rows], right_aligned=range(7)),
    ]


def _format_time(value: float) -> str:
    return "later" if math.isinf(value) else f"{value:,.1f}" if value < 1e7 else f"{value:.2e}"
