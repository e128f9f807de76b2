"""Check programs, experiments, sweeps and studies without training: `neural check` and Python.

A program (`.neural` file) declares a network; the others are YAML files of settings (file_kind.py).
A diagnostic is an error, a warning or a note with a code, such as E0203, and a position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neural.core.diagnostics import Diagnostic, SourceText, render_diagnostic
from neural.core.errors import find_user_error, format_error
from neural.core.file_kind import detect_kind
from neural.core.files import read_source_text
from neural.core.html_document import render_preformatted
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Column, Table
from neural.language.check import check as check_text
from neural.language.check import check_to_json
from neural.language.summary import format_summary
from neural.optim.catalogue import CATALOGUE

SETTINGS_SUFFIXES = (".yaml", ".yml")
SOURCE_SUFFIXES = (".neural", *SETTINGS_SUFFIXES)
"""A text that ends so is the name of a file."""
MAX_SHOWN_TRIALS = 12
"""At most this many names of trials are printed."""


@dataclass(frozen=True, repr=False)
class CheckReport(Result):
    """Result of `neural.check`; printed, it is what `neural check` prints.

    Iterating gives the diagnostics.
    """

    name: str
    """The name of the file, or `<text>`."""
    ok: bool
    """Whether there are no errors; there may be warnings and notes."""
    diagnostics: tuple[Diagnostic, ...]
    """Errors, warnings and notes of a program; empty for YAML files."""
    text: str
    """The table of layers and the diagnostics, or the message about a YAML file."""
    data: Mapping[str, Any]
    """What `neural check --json` prints."""

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __len__(self) -> int:
        return len(self.diagnostics)

    def __bool__(self) -> bool:
        return self.ok

    def build_dict(self) -> dict[str, Any]:
        """What `neural check --json` prints."""
        return dict(self.data)

    @property
    def tables(self) -> dict[str, Table]:
        """`diagnostics`: code, severity and message of each."""
        names = ("code", "severity", "message")
        rows = [[getattr(diagnostic, name) for name in names] for diagnostic in self.diagnostics]
        return {"diagnostics": Table(tuple(map(Column, names)), rows)}

    def to_sections(self, width: int) -> list[PageSection]:
        """The text."""
        return [PageSection(title=self.name, text=f"\n{self.text}")]

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return render_preformatted(self.text)


def check(
    source: str | Path,
    *,
    network: str | None = None,
    fragment: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> CheckReport:
    """Check a program or an experiment without training: all shapes and costs, or all errors.

        report = neural.check("net.neural")
        if not report.ok:
            print(report)

    `source` is the path of a `.neural` or YAML file, or the text of a program. `network` is the
    network to check, if there are several. With `fragment`, the text is a part of a program, such
    as `Dense(10)`. `sizes` are values of open sizes such as T, to compute costs. A file that cannot
    be read is an OSError.
    """
    if not _is_path(source):
        return _check_program(SourceText("<text>", str(source)), network, fragment, sizes)
    path = Path(source)
    if path.suffix.lower() not in SETTINGS_SUFFIXES:
        return _check_program(read_source_text(path), network, fragment, sizes)
    try:
        data, text = check_settings_file(path, detect_kind(path) or "experiment")
    except Exception as error:
        user_error = find_user_error(error)
        if user_error is None:
            raise
        text = format_error(user_error)
        data = {"message": text}
    is_ok = "message" not in data
    return CheckReport(str(path), is_ok, (), text, {"file": str(path), "ok": is_ok, **data})


def _is_path(source: str | Path) -> bool:
    """Whether `source` names a file; a program has braces and usually line breaks."""
    if isinstance(source, Path):
        return True
    if "\n" in source or "{" in source:
        return False
    return source.lower().endswith(SOURCE_SUFFIXES) or Path(source).is_file()


def _check_program(
    source: SourceText, network: str | None, fragment: bool, sizes: Mapping[str, int] | None
) -> CheckReport:
    checked = check_text(source.text, CATALOGUE, network=network, fragment=fragment, sizes=sizes)
    texts = [] if checked.errors else [format_summary(network) for network in checked.networks]
    texts += [render_diagnostic(diagnostic, source) for diagnostic in checked.diagnostics]
    return CheckReport(
        source.name,
        not checked.errors,
        checked.diagnostics,
        "\n\n".join(texts) or f"{source.name}: no errors",
        check_to_json(checked, source),
    )


def check_settings_file(path: Path, kind: str) -> tuple[dict[str, Any], str]:
    """Check an experiment, sweep or study with its data and network: result as JSON and as text.

    Raises SettingsError, TaskError and others (errors.py).
    """
    return _check_experiment(path) if kind == "experiment" else _check_trials(path, kind)


def _check_experiment(path: Path) -> tuple[dict[str, Any], str]:
    # imported here: these need numpy and the tasks, which checking a program does not
    from neural.core.settings import dump_settings
    from neural.training.load_task import load_task

    task = load_task(path)
    text = "\n".join([task.model_summary(), *(f"note: {note}" for note in task.notes)])
    return {"settings": dump_settings(task.experiment), "notes": list(task.notes)}, text


def _check_trials(path: Path, kind: str) -> tuple[dict[str, Any], str]:
    """The names of the trainings of a sweep or a study."""
    from neural.workflows.study import read_study
    from neural.workflows.sweep_trials import read_sweep

    if kind == "study":
        study = read_study(path)
        experiment, trials = study.experiment, study.trials
    else:
        _, experiment, trials = read_sweep(path)
    names = [trial.name for trial in trials]
    lines = [
        f"{kind} of {experiment.name}, {len(names)} trials",
        *(f"  {name}" for name in names[:MAX_SHOWN_TRIALS]),
    ]
    if len(names) > MAX_SHOWN_TRIALS:
        lines.append(f"  … and {len(names) - MAX_SHOWN_TRIALS} more")
    return {"trials": names}, "\n".join(lines)
