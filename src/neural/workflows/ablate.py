"""`neural ablate`: how much the loss changes without each attention head, of a run or any model.

    neural.ablate("novel")                                  a run, on its held-out data
    neural.ablate("novel", over_training=True)              all checkpoints that it has kept
    neural.ablate("./gpt2", "notes.txt")                    a model of others, on a text
    neural.ablate(model, text, tokenizer=tokenizer)         a model in memory
    neural.ablate(model, batches=[…], objective=losses)     any loss

What is measured, and its statistics: capture/head_importance.py. The result of a run is saved in
its folder (`importance.json`) step by step, so an interrupted measurement resumes; the page of the
run shows it.

Losses of models of others: interpret/losses.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.head_importance import (
    HeadImportance,
    ImportanceError,
    measure_head_importance,
)
from neural.capture.interventions import InterventionError
from neural.capture.replay import count_examples, take_rows
from neural.capture.tracker import preserve_model_state
from neural.capture.watch import NoAttentionError, assume_softmax
from neural.capture.watch import watch as capture_attention
from neural.findings.capture_roles import RoleParts, name_roles
from neural.findings.head_roles import ROLE_MEASURES
from neural.interpret.inputs import read_text
from neural.interpret.losses import (
    Losses,
    choose_length,
    prepare_batch_losses,
    prepare_losses,
    prepare_run_losses,
)
from neural.interpret.subject import Subject, load_checkpoint, load_series
from neural.nn.lazy_torch import torch
from neural.runs.errors import RunError
from neural.runs.find import DEFAULT_RUNS_DIR, find_run, find_run_target
from neural.runs.importance_file import (
    ImportanceHeader,
    ImportanceStep,
    load_importance_steps,
    save_importance_step,
    write_importance,
)
from neural.runs.run import Run
from neural.training.load_task import restore_task
from neural.workflows.ablation_result import AblationResult

if TYPE_CHECKING:
    from neural.capture.interventions import Heads
    from neural.capture.replay import Batch, Objective

DEFAULT_EXAMPLES = 64
ROLE_BATCH = 8
"""Examples whose attention is captured together for roles: all heads, with queries and keys."""
MAX_SAVED_TOKENS = 128
"""Length of the input whose attention is saved with the importance of a model."""
OnProgress = Callable[[str, int, int], None]
"""Receives the name of the checkpoint, passes that are done, and all passes; 0 if not yet known."""


@dataclass
class _Options:
    """Options of one measurement."""

    method: str
    pattern: str
    heads: Heads | None
    pairs: bool
    softmax: bool | None
    examples: int
    length: int | None
    objective: Objective | str | None
    build: str | None
    runs: Path
    on_progress: OnProgress

    def describe_method(self) -> str:
        return f"pattern {self.pattern}" if self.method == "pattern" else self.method


def ablate(
    target: Any = None,
    data: str | Path | None = None,
    *,
    tokenizer: Any = None,
    method: str = "mean",
    pattern: str = "uniform",
    examples: int = DEFAULT_EXAMPLES,
    length: int | None = None,
    heads: Heads | None = None,
    pairs: bool = True,
    step: int | None = None,
    over_training: bool = False,
    objective: Objective | str | None = None,
    batches: Sequence[Batch] | None = None,
    build: str | None = None,
    softmax: bool | None = None,
    save: bool = False,
    name: str | None = None,
    runs: str | Path = DEFAULT_RUNS_DIR,
    again: bool = False,
    on_progress: OnProgress = lambda label, done, total: None,
) -> AblationResult:
    """Measure how much the loss changes when each attention head is removed.

        result = neural.ablate("novel")
        result.last.change[1, 3], result.last.se[1, 3]  # L1 h3, in nats
        neural.ablate("./gpt2", "notes.txt", method="zero").to_dataframe()

    `target`: a run (its path, or a part of its name; the newest by default), a model as for
    `neural watch` (a folder of Hugging Face, `package.module:function`, …), several of these (they
    are checkpoints of one model), or a torch module. `data`: a text or its file; a run has data of
    its own. `objective`: what is measured of a model that has no loss on a text, by name ("cosine",
    "norm", "logit:LABEL", "module:function": interpret/objectives.py), on the lines of `data`; or with
    `batches` any loss of a torch module, a function of model and batch that returns (B, T) or (B,).
    A batch is a dict of tensors with examples first; the loss of an example must not depend on the
    others.

    `method`: what a removed head writes: "mean" (its mean output), "zero", "resample" (its output
    for another example), "pattern" (its values under `pattern`: "uniform", "diagonal", "previous"
    or "average"). `examples`: number of windows or examples; `length`: tokens of a window of a
    text. `heads`: only these, as `["L1 h3"]`. `pairs`: also remove pairs. `step`, `over_training`:
    another checkpoint of a run, or all. `softmax`: as in `neural.watch`. `save`: keep the result of a
    model as a run called `name`. Results of a run are saved in its folder; steps that it has already
    are not measured again, unless `again` is set. A measurement of some `heads` only is not saved.

    TaskError or RunError with a message for anything that cannot be measured.
    """
    options = _Options(
        method,
        pattern,
        heads,
        pairs,
        softmax,
        examples,
        length,
        objective,
        build,
        Path(runs),
        on_progress,
    )
    if examples < 2:
        raise ImportanceError(
            f"importance needs at least 2 examples for its standard errors, got {examples}"
        )
    targets = list(target) if isinstance(target, list | tuple) else [target]
    if not targets:
        raise ImportanceError("name a run or a model")
    if isinstance(targets[0], torch.nn.Module):
        subject = Subject(type(targets[0]).__name__, targets[0], tokenizer)
        losses = _prepare_module(subject, data, batches, options)
        return _collect(subject.name, [(subject.name, subject, losses)], options)
    if batches is not None or not isinstance(objective, str | None):
        raise ImportanceError("a function as `objective`, and `batches`, are for a torch module")
    run_path = None
    if len(targets) == 1:
        run_path = _find_run(targets[0], Path(runs), has_data=data is not None)
    if run_path is not None:
        if objective is not None:
            raise ImportanceError("a run has a loss of its own: leave --objective out")
        return _ablate_run(
            run_path, data, options, step=step, over_training=over_training, again=again
        )
    if step is not None or over_training:
        raise ImportanceError(
            "--step and --over-training select checkpoints of a run; name the checkpoints of "
            "another model themselves: neural ablate checkpoint-*"
        )
    names = [str(item) for item in targets]
    return _ablate_models(names, data, options, name, save=save)


def _find_run(target: Any, runs: Path, *, has_data: bool) -> Path | None:
    """The folder of a run, the newest by default; None if the target is something else.

    A name that is neither a run nor a file may be one on the hub of Hugging Face. Such a model
    needs `data`, so without it the name of a run is misspelt: RunError.
    """
    if isinstance(target, Run):
        return target.path
    if target is None:
        return find_run(None, runs)
    return find_run_target(str(target), runs, is_run=not has_data)


def _ablate_run(
    path: Path,
    data: str | Path | None,
    options: _Options,
    *,
    step: int | None,
    over_training: bool,
    again: bool,
) -> AblationResult:
    """Measure one or all checkpoints of a run; save each in its folder."""
    with Run.open(path) as run:
        steps = _choose_steps(run, step, over_training)
        task = restore_task(run)
        losses = prepare_run_losses(run, task, data, options.examples)
        checkpoints = (
            (f"step {step:,}", load_checkpoint(run, step, task=task), losses) for step in steps
        )
        return _collect(
            run.name, checkpoints, options, folder=run.path, again=again, count=len(steps)
        )


def _choose_steps(run: Run, step: int | None, over_training: bool) -> list[int]:
    """Steps of the checkpoints to measure; RunError if they do not exist."""
    checkpoints = run.checkpoints()
    saved_steps = [info.step for info in checkpoints]
    if not saved_steps:
        raise RunError(f"{run.name} has no checkpoint yet")
    if step is not None and step not in saved_steps:
        raise RunError(
            f"{run.name} has no checkpoint of step {step:,}; it has kept "
            + ", ".join(f"{other:,}" for other in saved_steps[-8:])
        )
    if over_training:
        if len(saved_steps) < 2:
            raise RunError(
                f"{run.name} has kept only the checkpoint of step {saved_steps[0]:,}: importance over "
                "training needs several; train with `--set training.keep_checkpoints=1000`"
            )
        return saved_steps
    best = [info.step for info in checkpoints if info.is_best]
    return [step if step is not None else (best or saved_steps)[-1]]


def _ablate_models(
    targets: Sequence[str],
    data: str | Path | None,
    options: _Options,
    name: str | None,
    *,
    save: bool,
) -> AblationResult:
    """Measure models of others; several targets are checkpoints of one model."""
    text, source = read_text(data, required_by=targets[0])
    last: list[Subject] = []

    def prepare_series() -> Iterator[tuple[str, Subject, Losses]]:
        for target, subject in load_series(targets, build=options.build, runs=options.runs):
            last[:] = [subject]
            yield Path(target).name, subject, _prepare_text(subject, text, source, options)

    result = _collect("", prepare_series(), options, count=len(targets))
    saved = None
    if save:
        # captures of the models, as `neural watch --save` keeps them, with the importance
        from neural.workflows.watch_models import record_captures, save_record, watch_models

        with assume_softmax(options.softmax):
            captures = watch_models(
                targets,
                texts=[text[:2000]],
                build=options.build,
                max_length=min(MAX_SAVED_TOKENS, choose_length(last[0], options.length)),
                runs=options.runs,
            )
            saved = save_record(record_captures(list(captures), name), options.runs)
        write_importance(saved, result.header, result.steps)
    return replace(result, name=name or last[0].name, saved=saved)


def _prepare_text(subject: Subject, text: str, source: str, options: _Options) -> Losses:
    assert isinstance(options.objective, str | None)
    return prepare_losses(
        subject, text, source, options.examples, options.length, objective=options.objective
    )


def _prepare_module(
    subject: Subject,
    data: str | Path | None,
    batches: Sequence[Batch] | None,
    options: _Options,
) -> Losses:
    """Any loss of a torch module, or its loss as a language model of a text."""
    objective = options.objective
    if (objective is None or isinstance(objective, str)) != (batches is None):
        raise ImportanceError("`objective` and `batches` belong together: pass both or none")
    if batches is not None and callable(objective):
        return prepare_batch_losses(objective, batches)
    return _prepare_text(subject, *read_text(data, required_by=subject.name), options)


def _collect(
    name: str,
    subjects: Iterable[tuple[str, Subject, Losses]],
    options: _Options,
    *,
    folder: Path | None = None,
    again: bool = False,
    count: int = 1,
) -> AblationResult:
    """Measure all subjects; save each step in `folder`, and skip steps that it has already.

    `subjects`: their names in messages, the models, and their losses.
    """
    header: ImportanceHeader | None = None
    steps: list[ImportanceStep] = []
    roles, notes = np.empty((0, 0), dtype=object), dict[str, None]()
    saved = folder
    for index, (label, subject, losses) in enumerate(subjects):
        numbered = f"{label} ({index + 1} of {count})" if count > 1 else label
        step, new_header = None, None
        if folder is not None and not again and options.heads is None:
            new_header, step = _find_measured(folder, subject.step, losses, options)
        if step is None or new_header is None:
            options.on_progress(numbered, 0, 0)
            with assume_softmax(options.softmax):
                importance = _measure(subject, losses, options, label, numbered)
            notes |= dict.fromkeys((*subject.notes, *losses.notes, *importance.notes))
            step, new_header = _to_step(subject.step, losses, importance)
            if folder is not None and options.heads is None:
                try:
                    save_importance_step(folder, new_header, step)
                except OSError:
                    saved = None
                    notes["the run folder cannot be written, so the result is not saved"] = None
        else:
            notes["steps that were measured before are not measured again"] = None
        if header is not None and (header.layers, header.heads) != (
            new_header.layers,
            new_header.heads,
        ):
            raise ImportanceError(
                f"{label} has other attention layers than the checkpoints before it: they "
                "are not checkpoints of one model"
            )
        header = new_header
        steps.append(step)
        with assume_softmax(options.softmax):
            roles = _find_roles(subject, losses, header)
    assert header is not None
    if options.heads is not None:
        saved = None
    if header.chance_loss is not None and steps[-1].loss > header.chance_loss:
        notes[
            f"the loss is above chance, {header.chance_loss:.4f}: this text is unlike the training "
            "text, or the model is hardly trained"
        ] = None
    return AblationResult(name, header, tuple(steps), roles, tuple(notes), saved)


def _find_measured(
    folder: Path, number: int, losses: Losses, options: _Options
) -> tuple[ImportanceHeader | None, ImportanceStep | None]:
    """The step of this number, if the folder has it with the same data and method."""
    with suppress(ValueError):
        loaded = load_importance_steps(folder)
        if loaded is not None:
            header, steps, _ = loaded
            is_same = (
                header.data == losses.description
                and header.method == options.describe_method()
                # another text of the same name has other frequencies
                and np.isclose(
                    _or_nan(header.chance_loss), _or_nan(losses.chance_loss), 1e-4, equal_nan=True
                )
            )
            step = next((step for step in steps if step.step == number), None)
            has_pairs = step is not None and (bool(step.pairs) or not options.pairs)
            if is_same and has_pairs:
                return header, step
    return None, None


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _measure(
    subject: Subject, losses: Losses, options: _Options, label: str, numbered: str
) -> HeadImportance:
    batches = [_move_batch(batch, subject.device) for batch in losses.batches]
    classes = None
    if losses.classes is not None:
        classes = [
            {name: mask.to(subject.device) for name, mask in masks.items()}
            for masks in losses.classes
        ]
    try:
        return measure_head_importance(
            subject.model,
            losses.objective,
            batches,
            method=options.method,
            pattern=options.pattern,
            heads=options.heads,
            with_pairs=options.pairs,
            classes=classes,
            on_progress=lambda done, total: options.on_progress(numbered, done, total),
        )
    except (InterventionError, NoAttentionError) as error:
        raise ImportanceError(f"{label}: {error}") from None


def _to_step(
    number: int, losses: Losses, importance: HeadImportance
) -> tuple[ImportanceStep, ImportanceHeader]:
    step = ImportanceStep(
        number,
        importance.loss,
        importance.loss_se,
        importance.change,
        importance.standard_error,
        importance.gradient_estimate,
        importance.classes,
        importance.pairs,
    )
    header = ImportanceHeader(
        data=losses.description,
        method=importance.method,
        examples=importance.examples,
        layers=importance.layers,
        heads=importance.heads,
        chance_loss=losses.chance_loss,
        metric=losses.metric,
        unit="nats" if losses.metric == "loss" else "",
    )
    return step, header


def _find_roles(subject: Subject, losses: Losses, header: ImportanceHeader) -> np.ndarray:
    """Roles of the heads on all examples, [layer, head]; empty texts if there are none."""
    roles = np.full((len(header.heads), max(header.heads)), "", dtype=object)
    with suppress(NoAttentionError, ValueError, LookupError):
        names = name_roles(list(_collect_role_parts(subject, losses)))
        if names.shape == roles.shape:
            roles[:] = names
    return roles


def _collect_role_parts(subject: Subject, losses: Losses) -> Iterator[RoleParts]:
    """What roles are found from, batch by batch."""
    tokens, labels = losses.tokens, losses.labels
    for batch in losses.batches:
        count = count_examples(batch)
        rows = 1 if tokens is None else len(tokens) // count  # 2 of a pair of texts
        for start in range(0, count, ROLE_BATCH):
            part = slice(start * rows, (start + ROLE_BATCH) * rows)
            watching = capture_attention(
                subject.model,
                tokens=None if tokens is None else tokens[part].to(subject.device),
                measures=ROLE_MEASURES,
                on_warning=lambda _: None,
            )
            examples = take_rows(batch, slice(start, start + ROLE_BATCH))
            with preserve_model_state(subject.model), torch.no_grad(), watching as capture:
                losses.objective(subject.model, _move_batch(examples, subject.device))
            capture.labels = None if labels is None else labels[part]
            yield RoleParts.collect(capture)


def _move_batch(batch: Batch, device: Any) -> Batch:
    return {
        name: value.to(device) if isinstance(value, torch.Tensor) else value
        for name, value in batch.items()
    }
