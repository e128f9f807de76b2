"""All paradigms on the same data and budget: a sweep, then one table, pictures and verdicts about it.

    runs/2026-11-16_05-00-00_compare/        a sweep like any other (sweep.py)
      dynamics/<run>.npz                     how each model did on the test examples
      dynamics/report.md, table.json, *.png  what `neural dynamics` says
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from neural.core.files import write_atomically
from neural.experiments import task_of, task_of_run
from neural.modules.late import torch
from neural.sweep import Sweep
from neural.tasks.focus import Focus
from neural.tasks.focusing import measures
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.training.state import weights_in
from neural.views.focus_claims import Verdict, count_tests, judged
from neural.views.focus_plots import plots
from neural.views.focus_results import TIMES, Groups, Result, estimate, grouped, read_result, speed, time_to
from neural.views.focus_warnings import warnings
from neural.views.significance import p_text

FOLDER = "dynamics"
SHOWN = 3
"""Test examples that are kept to be drawn."""
COLUMNS = ("accuracy", "accuracy_argmax", "focus_accuracy", "saif", "focus_confidence", "confidence", "steps_to",
           "seconds_to", "calls", "step_ms")  # fmt: skip


def check(experiment: Path, grid: Mapping[str, Any]) -> None:
    """Refuse what cannot be compared, before anything is trained."""
    if "paradigm" not in grid:
        raise TaskError("a comparison of paradigms needs them in its grid: `grid: {paradigm: [soft, hard, lvml]}`")
    task = task_of(experiment)
    if not isinstance(task, Focus):
        raise TaskError(f"{experiment.name} is a `{task.experiment.task}` experiment; paradigms are for `focus`")


def results(sweep: Sweep, tell: Callable[[str], None] = lambda text: None) -> list[Result]:
    """Every finished run on its test examples; what was examined before is read again, not computed."""
    folder = sweep.path / FOLDER
    folder.mkdir(exist_ok=True)
    found = []
    for row in sweep.rows:
        if row.run is None or not row.done:
            continue
        path = folder / f"{row.run}.npz"
        if not path.exists():
            tell(row.run)
            examined(sweep.path / row.run).write(path)
        found.append(read_result(path))
    if not found:
        raise RunError(f"{sweep.path}: no trial has finished")
    return found


def examined(path: Path) -> Result:
    """A run's newest weights on the test examples."""
    with Run.open(path) as run:
        task, saved = task_of_run(run), run.restore()
        if not isinstance(task, Focus):
            raise TaskError(f"{run.name} is no focus model: its task is `{task.experiment.task}`")
        if saved is None:
            raise RunError(f"{run.path} has no checkpoint")
        model: Any = task.build()
        start = "average."   # of the weights, where one was kept: what validations saw
        average = {name.removeprefix(start): one for name, one in saved.tensors.items() if name.startswith(start)}
        model.load_state_dict(weights_in(saved) | average)
        model.eval()
        with torch.no_grad():
            one = task.judged(model, "test")
            shown = _shown(task, model)
        return Result(
            run=run.name, paradigm=_label(run.settings), segments=task.data.segments,
            seed=task.experiment.training.seed, classes=task.data.classes,
            scores={**measures.scores(one, task.threshold), **speed(run)},
            heat=measures.heat(one), shown=shown,
        )  # fmt: skip


def compared(sweep: Sweep, tell: Callable[[str], None] = lambda text: None) -> tuple[Groups, list[Verdict], list[Path]]:
    """The results by paradigm and m, what they say about the claims, and the files that were written."""
    groups = grouped(results(sweep, tell))
    verdicts, folder = judged(groups), sweep.path / FOLDER
    files = plots(groups, sweep.path, folder)
    write_atomically(folder / "table.json", json.dumps(as_json(groups, verdicts), indent=1) + "\n", durable=False)
    write_atomically(folder / "report.md", "\n".join(report(groups, verdicts, files)) + "\n", durable=False)
    return groups, verdicts, [folder / "report.md", folder / "table.json", *files]


def table(groups: Groups) -> list[tuple[str, ...]]:
    """A row per paradigm and m, with a head."""
    head = ("paradigm", "m", "accuracy", "argmax", "focus", "SAIF", "±", "sure focus", "sure class", "steps to 90 %",
            "s to 90 %", "calls", "ms/step")  # fmt: skip
    rows: list[tuple[str, ...]] = [head]
    for (name, m), group in sorted(groups.items(), key=lambda item: (item[0][1], -estimate(item[1], "saif").value)):
        values = {key: estimate(group, key) for key in COLUMNS}
        half = (values["saif"].high - values["saif"].low) / 2
        cells = [f"{values[key].value:.3f}" for key in COLUMNS[:4]]
        cells += ["–" if math.isnan(half) else f"{half:.3f}", *(f"{values[key].value:.2f}" for key in COLUMNS[4:6])]
        cells += [str(time_to(group, key)) for key in ("steps_to", "seconds_to")]
        cells += [f"{values[key].value:.1f}" for key in COLUMNS[8:]]
        rows.append((name, str(m), *cells))
    return rows


def report(groups: Groups, verdicts: Sequence[Verdict], files: Sequence[Path]) -> list[str]:
    """Markdown."""
    head, *rows = table(groups)
    seeds = sorted({one.seed for group in groups.values() for one in group})
    lines = [
        "# Paradigms of attention compared", "",
        f"Seeds {', '.join(map(str, seeds))}; test examples of images that were in no training; ± and intervals are "
        "95 % over seeds. SAIF: share of examples with focus on the foreground and probability of the class both above "
        "the threshold. Calls: of the classifier per example and step, also those that decided when to switch. "
        "Times to 90 % are medians over seeds; (3 of 5): so many seeds got there, the others count as the latest.", "",
        f"| {' | '.join(head)} |", f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows), "", "## Claims", "", correction(verdicts), "",
        "| claim | m | supported | p | number and what it rests on |", "|---|---|---|---|---|",
        *(f"| {one.claim} | {one.segments} | {one.supported} | {_p(one)} | {one.what}: {one.evidence} |"
          for one in verdicts), "",
    ]  # fmt: skip
    found = warnings(groups)
    lines += ["## Warnings", "", *(f"- {one}" for one in found), ""] if found else []
    lines += [line for file in files for line in (f"![{file.stem}]({file.name})", "")]
    return lines


def correction(verdicts: Sequence[Verdict]) -> str:
    """How verdicts were decided, in two sentences."""
    return (
        f"A claim is supported or refuted where p is at most 0.05 after Holm's correction for the "
        f"{count_tests(verdicts)} tests of this report: where nothing is true, at most 5 % of such "
        "reports have a false verdict. Intervals are 95 % each, without the correction, so an "
        "interval may lie on one side of a claim that is undecided."
    )


def _p(verdict: Verdict) -> str:
    return "exact" if verdict.is_exact else "–" if math.isnan(verdict.p) else p_text(verdict.p)


def as_json(groups: Groups, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """For machines; null where there is no number."""
    rows = []
    for (name, m), group in groups.items():
        found = {key: _finite(asdict(estimate(group, key))) for key in group[0].scores if key not in TIMES}
        times = {key: _finite(asdict(time_to(group, key))) for key in TIMES}
        rows.append({"paradigm": name, "segments": m, "seeds": [one.seed for one in group], "scores": found,
                     "times": times})  # fmt: skip
    claims = [{**_finite(asdict(one)), "number": _finite(asdict(one.number))} for one in verdicts]
    return {"table": rows, "claims": claims, "tests": count_tests(verdicts),
            "warnings": [asdict(one) for one in warnings(groups)]}  # fmt: skip


def _label(settings: Mapping[str, Any]) -> str:
    """The paradigm, and the estimator where one was named: what makes two models different."""
    paradigm, estimator = str(settings["paradigm"]), settings.get("estimator")
    return paradigm if estimator in (None, "exact") else f"{paradigm}, {estimator} {settings['samples']}"


def _shown(task: Focus, model: Any) -> dict[str, Any]:
    examples = task.data.splits["test"]
    batch = examples.take(slice(0, SHOWN))
    given, paradigm = task.given(model, batch), task.now(model)
    found = {"x": examples.units(batch["members"]), "focus": paradigm.focus(given.scores), "label": batch["y"],
             "predicted": paradigm.predict(given).argmax(dim=-1)}  # fmt: skip
    if "z" in batch:
        found["foreground"] = batch["z"]
    return {name: one.numpy() for name, one in found.items()}


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(one, float) and not math.isfinite(one) else one for key, one in values.items()}
