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

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from neural.capture.token_classes import find_token_classes
from neural.capture.tracker import preserve_model_state
from neural.capture.watch import NoAttentionError, assume_softmax
from neural.capture.watch import watch as capture_attention
from neural.findings.capture_roles import find_capture_roles
from neural.interpret._foreign_models import WatchedModel, find_step, load_watched_model
from neural.interpret.inputs import label_ids
from neural.interpret.losses import (
    choose_length,
    compute_chance_loss,
    cut_windows,
    prepare_text_losses,
    read_text,
)
from neural.interpret.objectives import build_batch, create_objective, explain_failures
from neural.nn.lazy_torch import torch
from neural.runs.errors import RunError, SeveralRunsError
from neural.runs.find import DEFAULT_RUNS_DIR, RUN_MARKER, find_run
from neural.runs.importance_file import (
    ImportanceHeader,
    ImportanceStep,
    load_importance_steps,
    save_importance_step,
    write_importance,
)
from neural.runs.run import Run
from neural.training.load_model import load_model
from neural.training.load_task import restore_task
from neural.workflows.ablation_result import AblationResult

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.capture.interventions import Heads
    from neural.capture.replay import Batch, Objective
    from neural.tasks.task import Task

DEFAULT_EXAMPLES = 64
ROLE_EXAMPLES = 8
"""Examples on which the roles of heads are found."""
MAX_SAVED_TOKENS = 128
"""Length of the input whose attention is saved with the importance of a model."""
OnProgress = Callable[[str, int, int], None]
"""Receives the name of the checkpoint, passes that are done, and all passes; 0 if not yet known."""


@dataclass(frozen=True)
class _Subject:
    """A model at one checkpoint, with its examples and loss."""

    step: int
    label: str
    model: nn.Module
    objective: Objective
    batches: list[Batch]
    data: str
    classes: list[Mapping[str, Tensor]] | None = None
    chance_loss: float | None = None
    tokens: Tensor | None = None
    """Token ids of the inputs of the first batch, for roles."""
    labels: list[list[str]] | None = None
    notes: tuple[str, ...] = ()
    metric: str = "loss"


@dataclass
class _Options:
    """Options of one measurement."""

    method: str
    pattern: str
    heads: Heads | None
    pairs: bool
    softmax: bool | None
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
    options = _Options(method, pattern, heads, pairs, softmax, on_progress)
    if examples < 2:
        raise ImportanceError(
            f"importance needs at least 2 examples for its standard errors, got {examples}"
        )
    targets = list(target) if isinstance(target, list | tuple) else [target]
    if not targets:
        raise ImportanceError("name a run or a model")
    if isinstance(targets[0], torch.nn.Module):
        subject = _prepare_module(targets[0], data, tokenizer, objective, batches, examples, length)
        return _collect(targets[0].__class__.__name__, [subject], options)
    if batches is not None or not isinstance(objective, str | None):
        raise ImportanceError("a function as `objective`, and `batches`, are for a torch module")
    run_path = None
    if len(targets) == 1:
        run_path = _find_run_path(targets[0], Path(runs), has_data=data is not None)
    if run_path is not None:
        if objective is not None:
            raise ImportanceError("a run has a loss of its own: leave --objective out")
        return _ablate_run(
            run_path, data, options, examples, step=step, over_training=over_training, again=again
        )
    if step is not None or over_training:
        raise ImportanceError(
            "--step and --over-training select checkpoints of a run; name the checkpoints of "
            "another model themselves: neural ablate checkpoint-*"
        )
    names = [str(item) for item in targets]
    return _ablate_models(
        names, data, options, examples, length, build, Path(runs), save, name, objective
    )


def _find_run_path(target: Any, runs: Path, *, has_data: bool) -> Path | None:
    """The folder of a run; None if the target is something else.

    A name that is neither a run nor a file may be one on the hub of Hugging Face. Such a model
    needs `data`, so without it the name of a run is misspelt: RunError.
    """
    if target is None:
        return find_run(None, runs)
    if isinstance(target, Run):
        return target.path
    path = Path(target)
    is_model = path.is_file() or (path / "config.json").exists()
    if is_model or ":" in str(target) or path.suffix:
        return None
    try:
        run_path = find_run(str(target), runs)
    except SeveralRunsError:
        raise
    except RunError:
        if not has_data:
            raise
        return None
    return run_path if (run_path / RUN_MARKER).exists() else None


def _ablate_run(
    path: Path,
    data: str | Path | None,
    options: _Options,
    examples: int,
    *,
    step: int | None,
    over_training: bool,
    again: bool,
) -> AblationResult:
    """Measure one or all checkpoints of a run; save each in its folder."""
    with Run.open(path) as run:
        steps = _choose_steps(run, step, over_training)
        task = restore_task(run)
        batch, description = _select_examples(run, task, data, examples)
        subjects = _load_checkpoints(run, task, batch, description, steps)
        return _collect(run.name, subjects, options, folder=run.path, again=again, count=len(steps))


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


def _select_examples(
    run: Run, task: Task, data: str | Path | None, examples: int
) -> tuple[Batch, str]:
    """Examples of a run's own data, or windows of a text; and their description."""
    texts = task.token_texts()
    if data is None:
        batch = task.held_out_batch(examples)
        count = count_examples(batch)
        noun = "windows" if texts is not None else "examples"
        setting = run.settings.get("data")
        source = f" of {Path(str(setting)).name}" if isinstance(setting, str) else ""
        split = "held-out" if task.has_held_out else "training"
        return batch, f"{count} {split} {noun}{source}"
    if texts is None:
        raise ImportanceError(
            f"{run.name} is a run of `{run.settings.get('task')}`: its own held-out data is used; "
            "leave out --data"
        )
    text, source = read_text(data)
    ids_by_text = {character: index for index, character in enumerate(texts)}
    unknown = sorted(set(text) - set(ids_by_text))
    if unknown:
        raise ImportanceError(
            f"{source} has characters that {run.name} does not know: "
            + " ".join(map(repr, unknown[:5]))
        )
    ids = torch.tensor([ids_by_text[character] for character in text])
    context = task.held_out_batch(1)["x"].shape[1]
    windows = cut_windows(ids, context + 1, examples, source)
    batch = {"x": windows[:, :-1].contiguous(), "y": windows[:, 1:].contiguous()}
    return batch, f"{len(windows)} windows of {source}"


def _load_checkpoints(
    run: Run, task: Task, batch: Batch, description: str, steps: Sequence[int]
) -> Iterator[_Subject]:
    """The model at each step, one after the other."""
    tokens, targets, texts = task.token_ids(batch), task.target_classes(batch), task.token_texts()
    classes: list[Mapping[str, Tensor]] | None = None
    if tokens is not None and targets is not None and texts is not None:
        classes = [find_token_classes(tokens, targets, texts)]
    small = take_rows(batch, slice(0, ROLE_EXAMPLES))
    for step in steps:
        checkpoint = run.load_checkpoint(step)
        if checkpoint is None:
            raise RunError(f"the checkpoint of step {step:,} of {run.name} is gone")
        yield _Subject(
            step,
            f"step {step:,}",
            load_model(run, checkpoint, task),
            task.example_losses,
            [batch],
            description,
            classes,
            None if targets is None else compute_chance_loss(targets),
            task.token_ids(small),
            task.position_labels(small),
        )


def _ablate_models(
    targets: Sequence[str],
    data: str | Path | None,
    options: _Options,
    examples: int,
    length: int | None,
    build: str | None,
    runs: Path,
    save: bool,
    name: str | None,
    objective: str | None,
) -> AblationResult:
    """Measure models of others; several targets are checkpoints of one model."""
    text, source = read_text(data, required_by=targets[0])
    steps = {target: find_step(target, index) for index, target in enumerate(targets)}
    if len(targets) == 1:
        steps = {targets[0]: 0}
    elif len(set(steps.values())) < len(targets):
        steps = {target: index for index, target in enumerate(targets)}
    ordered = sorted(targets, key=steps.__getitem__)
    loaded: list[WatchedModel] = []

    def load_subjects() -> Iterator[_Subject]:
        for target in ordered:
            watched = load_watched_model(target, build=build)
            loaded[:] = [watched]
            yield _prepare_text_model(
                watched, text, source, examples, length, steps[target], target, objective
            )

    result = _collect("", load_subjects(), options, count=len(ordered))
    saved = None
    if save:
        size = min(MAX_SAVED_TOKENS, choose_length(loaded[0], length))
        with assume_softmax(options.softmax):
            saved = _save_as_run(ordered, result, text, size, build, runs, name)
    return replace(result, name=name or loaded[0].name, saved=saved)


def _save_as_run(
    targets: Sequence[str],
    result: AblationResult,
    text: str,
    size: int,
    build: str | None,
    runs: Path,
    name: str | None,
) -> Path:
    """Keep captures of the models as a run, as `neural watch --save` does, with the importance."""
    from neural.workflows.watch_models import record_captures, save_record, watch_models

    captures = list(
        watch_models(targets, texts=[text[:2000]], build=build, max_length=size, runs=runs)
    )
    path = save_record(record_captures(captures, name), runs)
    write_importance(path, result.header, result.steps)
    return path


def _prepare_module(
    model: nn.Module,
    data: str | Path | None,
    tokenizer: Any,
    objective: Objective | str | None,
    batches: Sequence[Batch] | None,
    examples: int,
    length: int | None,
) -> _Subject:
    """A torch module with any loss, or as a language model of a text."""
    name_of_objective = objective if isinstance(objective, str) else None
    if (objective is None or name_of_objective is not None) != (batches is None):
        raise ImportanceError("`objective` and `batches` belong together: pass both or none")
    name = type(model).__name__
    if callable(objective) and batches is not None:
        batches = list(batches)
        if not all(isinstance(batch, Mapping) for batch in batches):
            raise ImportanceError(
                "a batch is a dict of tensors with examples first, such as "
                '{"input_ids": ids, "labels": labels}'
            )
        try:
            count = sum(count_examples(batch) for batch in batches)
        except ValueError as error:
            raise ImportanceError(str(error)) from None
        objective = explain_failures(objective, "the objective")
        return _Subject(0, name, model, objective, batches, f"{count} examples")
    watched = WatchedModel(name, model, tokenizer)
    text, source = read_text(data, required_by=name)
    return _prepare_text_model(watched, text, source, examples, length, 0, name, name_of_objective)


def _prepare_text_model(
    watched: WatchedModel,
    text: str,
    source: str,
    examples: int,
    length: int | None,
    step: int,
    label: str,
    objective: str | None,
) -> _Subject:
    """A language model, with its loss on windows of a text; or an objective on lines of it."""
    if objective is not None:
        lines = [line for line in text.splitlines() if line.strip()][:examples]
        is_own_loss = ":" in objective and not objective.startswith("logit:")
        batch = build_batch(objective, lines, watched.tokenizer)
        ids = batch["input_ids"][:ROLE_EXAMPLES]
        tokens = ids.reshape(-1, ids.shape[-1])  # the two texts of a pair are examples of attention
        return _Subject(
            step,
            Path(label).name,
            watched.model,
            explain_failures(
                create_objective(objective, watched.model), f"the objective {objective}"
            ),
            [batch],
            f"{len(lines)} lines of {source}",
            tokens=tokens,
            labels=label_ids(watched.tokenizer, tokens),
            notes=watched.notes,
            metric=objective if is_own_loss else f"−{objective}",
        )
    losses = prepare_text_losses(watched, text, source, examples, length)
    inputs, targets = losses.inputs, losses.batch["targets"]
    classes: list[Mapping[str, Tensor]] | None = None
    labels: list[list[str]] | None = None
    if losses.kind != "masked":  # the token before a masked one is not what the model continues
        classes = [find_token_classes(inputs, targets, losses.get_text)]
    if losses.kind == "causal":
        labels = [
            [losses.get_text(token) for token in row] for row in inputs[:ROLE_EXAMPLES].tolist()
        ]
    return _Subject(
        step,
        Path(label).name,
        watched.model,
        losses.objective,
        [losses.batch],
        losses.description,
        classes,
        compute_chance_loss(targets),
        inputs[:ROLE_EXAMPLES],
        labels,
        (*watched.notes, *losses.notes),
    )


def _collect(
    name: str,
    subjects: Any,
    options: _Options,
    *,
    folder: Path | None = None,
    again: bool = False,
    count: int = 1,
) -> AblationResult:
    """Measure all subjects; save each step in `folder`, and skip steps that it has already."""
    header: ImportanceHeader | None = None
    steps: list[ImportanceStep] = []
    roles, notes = np.empty((0, 0), dtype=object), dict[str, None]()
    saved = folder
    for index, subject in enumerate(subjects):
        label = f"{subject.label} ({index + 1} of {count})" if count > 1 else subject.label
        step, new_header = None, None
        if folder is not None and not again and options.heads is None:
            new_header, step = _find_measured(folder, subject, options)
        if step is None or new_header is None:
            options.on_progress(label, 0, 0)
            with assume_softmax(options.softmax):
                importance = _measure(subject, options, label)
            notes |= dict.fromkeys((*subject.notes, *importance.notes))
            step, new_header = _to_step(subject, importance)
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
                f"{subject.label} has other attention layers than the checkpoints before it: they "
                "are not checkpoints of one model"
            )
        header = new_header
        steps.append(step)
        with assume_softmax(options.softmax):
            roles = _find_roles(subject, header)
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
    folder: Path, subject: _Subject, options: _Options
) -> tuple[ImportanceHeader | None, ImportanceStep | None]:
    """The step of a subject, if the folder has it with the same data and method."""
    with suppress(ValueError):
        loaded = load_importance_steps(folder)
        if loaded is not None:
            header, steps, _ = loaded
            is_same = (
                header.data == subject.data
                and header.method == options.describe_method()
                # another text of the same name has other frequencies
                and np.isclose(
                    _or_nan(header.chance_loss), _or_nan(subject.chance_loss), 1e-4, equal_nan=True
                )
            )
            step = next((step for step in steps if step.step == subject.step), None)
            has_pairs = step is not None and (bool(step.pairs) or not options.pairs)
            if is_same and has_pairs:
                return header, step
    return None, None


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _measure(subject: _Subject, options: _Options, label: str) -> HeadImportance:
    device = next((param.device for param in subject.model.parameters()), torch.device("cpu"))
    batches = [
        {
            name: value.to(device) if isinstance(value, torch.Tensor) else value
            for name, value in batch.items()
        }
        for batch in subject.batches
    ]
    classes = None
    if subject.classes is not None:
        classes = [
            {name: mask.to(device) for name, mask in masks.items()} for masks in subject.classes
        ]
    try:
        return measure_head_importance(
            subject.model,
            subject.objective,
            batches,
            method=options.method,
            pattern=options.pattern,
            heads=options.heads,
            with_pairs=options.pairs,
            classes=classes,
            on_progress=lambda done, total: options.on_progress(label, done, total),
        )
    except (InterventionError, NoAttentionError) as error:
        raise ImportanceError(f"{subject.label}: {error}") from None


def _to_step(
    subject: _Subject, importance: HeadImportance
) -> tuple[ImportanceStep, ImportanceHeader]:
    step = ImportanceStep(
        subject.step,
        importance.loss,
        importance.loss_se,
        importance.change,
        importance.standard_error,
        importance.gradient_estimate,
        importance.classes,
        importance.pairs,
    )
    header = ImportanceHeader(
        data=subject.data,
        method=importance.method,
        examples=importance.examples,
        layers=importance.layers,
        heads=importance.heads,
        chance_loss=subject.chance_loss,
        metric=subject.metric,
        unit="nats" if subject.metric == "loss" else "",
    )
    return step, header


def _find_roles(subject: _Subject, header: ImportanceHeader) -> np.ndarray:
    """Roles of the heads on the first examples, [layer, head]; empty texts if there are none."""
    roles = np.full((len(header.heads), max(header.heads)), "", dtype=object)
    batch = take_rows(subject.batches[0], slice(0, ROLE_EXAMPLES))
    watching = capture_attention(subject.model, tokens=subject.tokens, on_warning=lambda _: None)
    with suppress(NoAttentionError, ValueError, LookupError):
        with preserve_model_state(subject.model), watching as capture:
            subject.objective(subject.model, batch)
        capture.labels = subject.labels
        names = find_capture_roles(capture)
        if names.shape == roles.shape:
            roles[:] = names
    return roles
