"""`neural ablate`: how much the loss changes without each attention head, of a run or any model.

    neural.ablate("novel")                                  a run, on its held-out data
    neural.ablate("novel", over_training=True)              all checkpoints that it has kept
    neural.ablate("./gpt2", "notes.txt")                    a model of others, on a text
    neural.ablate(model, text, tokenizer=tokenizer)         a model in memory
    neural.ablate(model, batches=[…], objective=losses)     any loss

What is measured, and its statistics: capture/head_importance.py. The result of a run is saved in its
folder (`importance.json`) step by step, so an interrupted measurement resumes; the page of the run
shows it.

Losses of models of others, on windows of a text: of a causal language model, the next token; of a
masked one, 15 % of the tokens, which are masked; of an encoder–decoder, the second half of each
window, with the first half as the encoder's input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
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
from neural.capture.watch import NoAttentionError
from neural.capture.watch import watch as capture_attention
from neural.core.errors import TaskError
from neural.core.files import is_file_name
from neural.core.page_section import PageSection
from neural.core.printed_sections import PrintedSections
from neural.nn.build import NetworkModule
from neural.nn.lazy_torch import functional, torch
from neural.report.capture_page import find_capture_roles
from neural.runs.errors import RunError
from neural.runs.find import DEFAULT_RUNS_DIR, RUN_MARKER, find_run
from neural.runs.importance_file import (
    ImportanceHeader,
    ImportanceStep,
    encode_header,
    encode_step,
    load_importance_steps,
    save_importance_step,
    write_importance,
)
from neural.runs.run import Run
from neural.workflows.load_model import load_model
from neural.workflows.load_task import restore_task
from neural.workflows.watched_model import (
    TargetError,
    WatchedModel,
    find_first_line,
    find_step,
    load_watched_model,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.capture.interventions import Heads
    from neural.capture.replay import Batch, Objective
    from neural.tasks.task import Task

DEFAULT_EXAMPLES = 64
DEFAULT_LENGTH = 256
"""Tokens of a window of a text, unless the model takes fewer."""
ROLE_EXAMPLES = 8
"""Examples on which the roles of heads are found."""
MASKED_SHARE = 0.15
"""Share of the tokens that a masked language model predicts, as in its training."""
MASK_SEED = 0
MAX_SAVED_TOKENS = 128
"""Length of the input whose attention is saved with the importance of a model."""
MAX_LISTED_HEADS, MAX_LISTED_PAIRS = 24, 10
"""Rows of the printed tables."""
PLAIN_ROLES = ("mixed", "")

OnProgress = Callable[[str, int, int], None]
"""Receives the name of the checkpoint, passes that are done, and all passes."""


@dataclass(frozen=True, repr=False)
class AblationResult(PrintedSections):
    """Importance of the heads of one model, at one or several checkpoints; prints as tables."""

    name: str
    header: ImportanceHeader
    steps: tuple[ImportanceStep, ...]
    """In ascending order; a model without checkpoints has step 0."""
    roles: np.ndarray
    """Name of the role of every head at the last step, [layer, head]; "" if it has none."""
    notes: tuple[str, ...] = ()
    saved: Path | None = None
    """The run folder that has the result; None if it was not saved."""

    @property
    def last(self) -> ImportanceStep:
        """Importance at the last step."""
        return self.steps[-1]

    def to_dict(self) -> dict[str, Any]:
        """All numbers as data for JSON, in the format of `importance.json`; NaN becomes None."""
        return {
            "name": self.name,
            **encode_header(self.header),
            "roles": [
                [str(role) for role in row[:count]]
                for row, count in zip(self.roles, self.header.heads, strict=True)
            ],
            "notes": list(self.notes),
            "steps": [encode_step(step, self.header.heads) for step in self.steps],
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """A dict per step, layer and head."""
        names = dict.fromkeys(name for step in self.steps for name in step.classes)
        rows = []
        for step in self.steps:
            for layer, head in self._list_heads():
                row = {
                    "step": step.step,
                    "layer": layer,
                    "head": head,
                    "path": self.header.layers[layer],
                    "role": str(self.roles[layer, head]) if step is self.last else "",
                    "change": float(step.change[layer, head]),
                    "standard_error": float(step.se[layer, head]),
                    "gradient": float(step.gradient[layer, head]),
                }
                for name in names:
                    values = step.classes.get(name)
                    is_known = values is not None
                    row[name] = float(values.change[layer, head]) if is_known else math.nan
                    row[f"{name}, se"] = float(values.se[layer, head]) if is_known else math.nan
                rows.append(row)
        return rows

    def to_dataframe(self) -> Any:
        """A pandas DataFrame of `to_rows`. TaskError if pandas is not installed."""
        if find_spec("pandas") is None:
            raise TaskError("to_dataframe needs pandas: pip install pandas")
        import pandas  # optional, and slow to import

        return pandas.DataFrame(self.to_rows())

    def to_sections(self, width: int) -> list[PageSection]:
        """A table of the heads at the last step, and one of pairs."""
        step, header = self.last, self.header
        heads = [head for head in self._list_heads() if np.isfinite(step.change[head])]
        heads.sort(key=lambda head: -step.change[head])
        lines = [
            f"importance of {len(heads)} heads: change of the loss without each, in nats",
            f"data: {header.data}",
            f"method: {header.method}; ± standard error over {header.examples} examples",
            f"loss {step.loss:.4f} ± {step.loss_se:.4f}"
            + (f" at step {step.step:,}" if step.step else "")
            + (f"; chance {header.chance_loss:.4f}" if header.chance_loss is not None else ""),
            *(f"note: {note}" for note in self.notes),
        ]
        if len(heads) > MAX_LISTED_HEADS:
            hidden = len(heads) - MAX_LISTED_HEADS
            lines.append(f"the {MAX_LISTED_HEADS} most important; {hidden} more with --json or -o")
        rows = [self._format_head(head) for head in heads[:MAX_LISTED_HEADS]]
        head_row = ("", "change", "± se", "gradient", "role", "most for")
        sections = [
            PageSection(
                title=self.name, text="\n".join(lines), table_head=head_row, table_rows=rows
            )
        ]
        if len(self.steps) > 1:
            sections.append(self._build_series_section(heads))
        if step.pairs:
            sections.append(_build_pair_section(step, len(heads)))
        return sections

    def _list_heads(self) -> list[tuple[int, int]]:
        return [
            (layer, head) for layer, count in enumerate(self.header.heads) for head in range(count)
        ]

    def _format_head(self, head: tuple[int, int]) -> tuple[str, ...]:
        step, role = self.last, str(self.roles[head])
        return (
            f"L{head[0]} h{head[1]}",
            format_change(step.change[head]),
            f"{step.se[head]:.4f}",
            format_change(step.gradient[head]),
            "" if role in PLAIN_ROLES else role,
            _find_strongest_class(step, head),
        )

    def _build_series_section(self, heads: Sequence[tuple[int, int]]) -> PageSection:
        shown = heads[:6]
        rows = [
            (
                f"{step.step:,}",
                f"{step.loss:.4f}",
                *(format_change(step.change[head]) for head in shown),
            )
            for step in self.steps
        ]
        names = [f"L{layer} h{head}" for layer, head in shown]
        return PageSection(
            title="over training",
            text="the heads that matter most at the end",
            table_head=("step", "loss", *names),
            table_rows=rows,
        )


def format_change(value: float) -> str:
    """A change of the loss with its sign and four decimals."""
    return "–" if not math.isfinite(value) else f"{value:+.4f}".replace("-", "−")


def _find_strongest_class(step: ImportanceStep, head: tuple[int, int]) -> str:
    """The token class for which a head matters clearly more than for all targets, or nothing."""
    best, largest = "", 0.0
    for name, values in step.classes.items():
        excess = values.change[head] - step.change[head]
        error = math.hypot(values.se[head], step.se[head])
        if math.isfinite(error) and excess > max(2 * error, largest):
            best, largest = f"{name} {format_change(values.change[head])}", excess
    return best


def _build_pair_section(step: ImportanceStep, heads: int) -> PageSection:
    """The pairs with the largest interactions."""
    rows = [
        (
            f"L{pair.first[0]} h{pair.first[1]}, L{pair.second[0]} h{pair.second[1]}",
            format_change(pair.both),
            format_change(step.change[pair.first] + step.change[pair.second]),
            format_change(pair.interaction),
            f"{pair.interaction_se:.4f}",
        )
        for pair in step.pairs[:MAX_LISTED_PAIRS]
    ]
    count = len(step.pairs)
    every = heads * (heads - 1) // 2
    return PageSection(
        title="pairs",
        text=f"the largest interactions of {count} measured pairs of {every}: both − first − second\n"
        "above 0, one head can stand in for the other; below 0, both are needed for the same thing",
        table_head=("", "both", "sum of singles", "interaction", "± se"),
        table_rows=rows,
    )


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


@dataclass
class _Options:
    """Options of one measurement."""

    method: str
    pattern: str
    heads: Heads | None
    pairs: bool
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
    objective: Objective | None = None,
    batches: Sequence[Batch] | None = None,
    build: str | None = None,
    save: bool = False,
    name: str | None = None,
    runs: str | Path = DEFAULT_RUNS_DIR,
    again: bool = False,
    on_progress: OnProgress = lambda label, done, total: None,
) -> AblationResult:
    """Measure how much the loss changes when each attention head is removed.

    `target`: a run (its path, or a part of its name; the newest by default), a model as for
    `neural watch` (a folder of Hugging Face, `package.module:function`, …), several of these (they
    are checkpoints of one model), or a torch module. `data`: a text or its file; a run has data of
    its own. `objective(model, batch)` and `batches`: any loss of a torch module, (B, T) or (B,).

    `method`: what a removed head writes: "mean" (its mean output), "zero", "resample" (its output
    for another example), "pattern" (its values under `pattern`: "uniform", "diagonal", "previous" or
    "average"). `examples`: number of windows or examples; `length`: tokens of a window of a text.
    `heads`: only these, as `["L1 h3"]`. `pairs`: also remove pairs. `step`, `over_training`: another
    checkpoint of a run, or all. `save`: keep the result of a model as a run called `name`. Results
    of a run are saved in its folder; steps that it has already are not measured again, unless `again`
    is set.

    TaskError, RunError, InterventionError with a message for anything that cannot be measured.
    """
    options = _Options(method, pattern, heads, pairs, on_progress)
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
    if objective is not None or batches is not None:
        raise ImportanceError("`objective` and `batches` are for a torch module")
    run_path = None
    if len(targets) == 1:
        run_path = _find_run_path(targets[0], Path(runs), has_data=data is not None)
    if run_path is not None:
        return _ablate_run(
            run_path, data, options, examples, step=step, over_training=over_training, again=again
        )
    if step is not None or over_training:
        raise ImportanceError(
            "--step and --over-training select checkpoints of a run; name the checkpoints of "
            "another model themselves: neural ablate checkpoint-*"
        )
    names = [str(item) for item in targets]
    return _ablate_models(names, data, options, examples, length, build, Path(runs), save, name)


def _find_run_path(target: Any, runs: Path, *, has_data: bool) -> Path | None:
    """The folder of a run; None if the target is something else.

    A name that is neither a run nor a file may be one on the hub of Hugging Face. Such a model needs
    `data`, so without it the name of a run is misspelt: RunError.
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
    except RunError as error:
        if "matches several" in str(error) or not has_data:
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
    kept = [info.step for info in checkpoints]
    if not kept:
        raise RunError(f"{run.name} has no checkpoint yet")
    if step is not None and step not in kept:
        raise RunError(
            f"{run.name} has no checkpoint of step {step:,}; it has kept "
            + ", ".join(f"{other:,}" for other in kept[-8:])
        )
    if over_training:
        if len(kept) < 2:
            raise RunError(
                f"{run.name} has kept only the checkpoint of step {kept[0]:,}: importance over "
                "training needs several; train with `--set training.keep_checkpoints=1000`"
            )
        return kept
    best = [info.step for info in checkpoints if info.is_best]
    return [step if step is not None else (best or kept)[-1]]


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
    text, source = _read_text(data)
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
) -> AblationResult:
    """Measure models of others; several targets are checkpoints of one model."""
    text, source = _read_text(data, required_by=targets[0])
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
                watched, text, source, examples, length, steps[target], target
            )

    result = _collect("", load_subjects(), options, count=len(ordered))
    saved = None
    if save:
        size = min(MAX_SAVED_TOKENS, _choose_length(loaded[0], length))
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
    from neural.workflows.watch_models import save_captures, watch_models

    captures = list(
        watch_models(targets, texts=[text[:2000]], build=build, max_length=size, runs=runs)
    )
    with save_captures(captures, runs, name) as run:
        write_importance(run.path, result.header, result.steps)
        return run.path


def _prepare_module(
    model: nn.Module,
    data: str | Path | None,
    tokenizer: Any,
    objective: Objective | None,
    batches: Sequence[Batch] | None,
    examples: int,
    length: int | None,
) -> _Subject:
    """A torch module with any loss, or as a language model of a text."""
    if (objective is None) != (batches is None):
        raise ImportanceError("`objective` and `batches` belong together: pass both or none")
    name = type(model).__name__
    if objective is not None and batches is not None:
        batches = list(batches)
        count = sum(count_examples(batch) for batch in batches)
        return _Subject(0, name, model, objective, batches, f"{count} examples")
    watched = WatchedModel(name, model, tokenizer)
    text, source = _read_text(data, required_by=name)
    return _prepare_text_model(watched, text, source, examples, length, 0, name)


def _prepare_text_model(
    watched: WatchedModel,
    text: str,
    source: str,
    examples: int,
    length: int | None,
    step: int,
    label: str,
) -> _Subject:
    """Windows of a text and the loss that fits the model. TargetError if it has none."""
    if watched.tokenizer is None:
        reason = f": {watched.tokenizer_error}" if watched.tokenizer_error else ""
        raise TargetError(
            f"{watched.name} has no tokenizer{reason}; save it into the same folder "
            "(tokenizer.save_pretrained), or return (model, tokenizer) from a function"
        )
    ids = _encode(watched.tokenizer, text)
    size = _choose_length(watched, length)
    kind = _find_model_kind(watched)
    extra = 1 if kind == "causal" else 0
    windows = cut_windows(ids, size + extra, examples, source)
    batch, objective = _LOSSES[kind](watched, windows)
    objective = _explain_failures(watched, objective)
    if kind == "causal":
        _check_causal(watched, objective, batch)
    tokens = batch.get("decoder_input_ids", batch["input_ids"])
    targets = batch["targets"]
    decode = _create_decoder(watched.tokenizer)
    # the token before a masked one is not what the model continues: no repeated pairs
    classes = find_token_classes(tokens, targets, decode) if kind != "masked" else None
    small = windows[:ROLE_EXAMPLES, : tokens.shape[1]]
    return _Subject(
        step,
        Path(label).name,
        watched.model,
        objective,
        [batch],
        f"{len(windows)} windows of {size} tokens of {source}"
        + {"masked": ", 15 % of them masked", "encoder-decoder": ", the second half predicted"}.get(
            kind, ""
        ),
        None if classes is None else [classes],
        compute_chance_loss(targets),
        tokens[:ROLE_EXAMPLES],
        [[decode(token) for token in row] for row in small.tolist()] if kind == "causal" else None,
        watched.notes,
    )


def _choose_length(watched: WatchedModel, length: int | None) -> int:
    """Tokens of a window: as asked for, else at most what the model takes."""
    return length or min(DEFAULT_LENGTH, _find_max_positions(watched) or DEFAULT_LENGTH)


def _find_model_kind(watched: WatchedModel) -> str:
    """`causal`, `masked` or `encoder-decoder`; TargetError for models without such a loss."""
    if not _is_hugging_face(watched):
        return "causal"
    name = type(watched.model).__name__
    if "MaskedLM" in name or name.endswith("ForPreTraining"):
        return "masked"
    if "ForConditionalGeneration" in name and watched.is_encoder_decoder:
        return "encoder-decoder"
    if ("CausalLM" in name or "LMHead" in name) and not watched.is_encoder_decoder:
        return "causal"
    raise TargetError(
        f"{watched.name} is a {name}, which has no loss on a text: load it as a language model "
        "(…ForCausalLM, …ForMaskedLM, …ForConditionalGeneration), or pass `objective` and `batches` "
        "to neural.ablate in Python"
    )


def _is_hugging_face(watched: WatchedModel) -> bool:
    return hasattr(watched.config, "model_type")


def _build_causal(watched: WatchedModel, windows: Tensor) -> tuple[Batch, Objective]:
    """Cross-entropy of the next token."""
    is_hugging_face = _is_hugging_face(watched)
    options = {"use_cache": False} if hasattr(watched.config, "use_cache") else {}

    def compute(model: Any, batch: Batch) -> Tensor:
        if is_hugging_face:
            output = model(input_ids=batch["input_ids"], **options)
        elif isinstance(model, NetworkModule):  # its `forward` returns probabilities
            network: Any = model
            output = network.logits(batch["input_ids"])
        else:
            output = model(batch["input_ids"])
        return _cross_entropy(output, batch["targets"], watched.name)

    inputs, targets = windows[:, :-1].contiguous(), windows[:, 1:].contiguous()
    return {"input_ids": inputs, "targets": targets}, compute


def _build_masked(watched: WatchedModel, windows: Tensor) -> tuple[Batch, Objective]:
    """Cross-entropy of masked tokens; the same are masked for every model."""
    mask_id = getattr(watched.tokenizer, "mask_token_id", None)
    if mask_id is None:
        raise TargetError(f"the tokenizer of {watched.name} has no mask token")
    generator = torch.Generator().manual_seed(MASK_SEED)
    is_masked = torch.rand(windows.shape, generator=generator) < MASKED_SHARE
    is_masked[:, 0] |= ~is_masked.any(dim=1)  # every example has a target
    batch = {
        "input_ids": windows.masked_fill(is_masked, mask_id),
        "targets": windows.masked_fill(~is_masked, -1),
    }

    def compute(model: nn.Module, batch: Batch) -> Tensor:
        return _cross_entropy(model(input_ids=batch["input_ids"]), batch["targets"], watched.name)

    return batch, compute


def _build_encoder_decoder(watched: WatchedModel, windows: Tensor) -> tuple[Batch, Objective]:
    """Cross-entropy of the second half of each window; the encoder reads the first half."""
    half = windows.shape[1] // 2
    start = getattr(watched.config, "decoder_start_token_id", None)
    if start is None or half < 1:
        raise TargetError(f"{watched.name} does not say with which token its decoder starts")
    targets = windows[:, half:].contiguous()
    decoder_input = torch.cat([torch.full_like(targets[:, :1], start), targets[:, :-1]], dim=1)
    batch = {
        "input_ids": windows[:, :half].contiguous(),
        "decoder_input_ids": decoder_input,
        "targets": targets,
    }

    def compute(model: nn.Module, batch: Batch) -> Tensor:
        output = model(
            input_ids=batch["input_ids"],
            decoder_input_ids=batch["decoder_input_ids"],
            use_cache=False,
        )
        return _cross_entropy(output, batch["targets"], watched.name)

    return batch, compute


_LOSSES: dict[str, Callable[[WatchedModel, Tensor], tuple[Batch, Objective]]] = {
    "causal": _build_causal,
    "masked": _build_masked,
    "encoder-decoder": _build_encoder_decoder,
}


def _cross_entropy(output: Any, targets: Tensor, name: str) -> Tensor:
    """Losses (B, T); NaN where the target is negative."""
    logits = output if isinstance(output, torch.Tensor) else getattr(output, "logits", None)
    if logits is None and isinstance(output, tuple | list) and output:
        logits = output[0]
    if not isinstance(logits, torch.Tensor) or logits.shape[:-1] != targets.shape:
        shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(output).__name__
        raise TargetError(
            f"{name} returned {shape}, not a prediction for each of {tuple(targets.shape)} tokens: "
            "it has no loss on a text; pass `objective` and `batches` to neural.ablate in Python"
        )
    if int(targets.max()) >= logits.shape[-1]:
        raise TargetError(
            f"{name} predicts {logits.shape[-1]} tokens, but its tokenizer has more: they belong "
            "to different models"
        )
    losses = functional.cross_entropy(
        logits.float().transpose(1, 2), targets.clamp(min=0), reduction="none"
    )
    return losses.masked_fill(targets < 0, math.nan)


def _explain_failures(watched: WatchedModel, objective: Objective) -> Objective:
    """The objective; an error of the first pass becomes a TargetError."""
    has_run = False

    def compute(model: nn.Module, batch: Batch) -> Tensor:
        nonlocal has_run
        try:
            losses = objective(model, batch)
        except (TaskError, InterventionError, NoAttentionError):
            raise
        except Exception as error:
            if has_run:
                raise
            raise TargetError(
                f"{watched.name} failed on this text: {find_first_line(error)}"
            ) from error
        has_run = True
        return losses

    return compute


def _check_causal(watched: WatchedModel, objective: Objective, batch: Batch) -> None:
    """TargetError if predictions depend on later tokens: their loss would mean nothing."""
    small = take_rows(batch, slice(0, 2))
    changed = dict(small)
    ids = small["input_ids"].clone()
    half = ids.shape[1] // 2
    if half < 1:
        return
    ids[:, half:] = ids[:, half:].roll(1, dims=1).flip(1)
    changed["input_ids"] = ids
    with preserve_model_state(watched.model):
        losses = objective(watched.model, small)[:, :half]
        changed_losses = objective(watched.model, changed)[:, :half]
    if not torch.allclose(losses, changed_losses, rtol=1e-2, atol=1e-2, equal_nan=True):
        raise TargetError(
            f"{watched.name} is not causal: its prediction at a position depends on later tokens, "
            "so the loss of the next token means nothing"
        )


def _encode(tokenizer: Any, text: str) -> Tensor:
    """Token ids of a text, without special tokens."""
    try:
        ids = tokenizer.encode(text, add_special_tokens=False)
    except TypeError:  # a tokenizer of another kind
        ids = tokenizer.encode(text)
    ids = getattr(ids, "ids", ids)
    return torch.as_tensor(list(ids), dtype=torch.long)


def _create_decoder(tokenizer: Any) -> Callable[[int], str]:
    """The text of a token id."""
    convert = getattr(tokenizer, "convert_ids_to_tokens", None)

    def decode(token: int) -> str:
        text = convert(token) if convert is not None else tokenizer.decode([token])
        return text if isinstance(text, str) else str(text)

    return decode


def _find_max_positions(watched: WatchedModel) -> int | None:
    """The longest input by the configuration."""
    for key in ("max_position_embeddings", "n_positions", "n_ctx"):
        value = getattr(watched.config, key, None)
        if isinstance(value, int) and value > 0:
            # some models of the RoBERTa family reserve positions for padding
            reserved = 2 if getattr(watched.config, "model_type", "") in ROBERTA_TYPES else 0
            return value - reserved
    return None


ROBERTA_TYPES = ("roberta", "xlm-roberta", "camembert", "longformer")


def cut_windows(ids: Tensor, size: int, examples: int, source: str) -> Tensor:
    """Up to `examples` windows of `size` tokens, evenly spaced, that do not overlap: (n, size)."""
    available = len(ids) // size
    if available < 2:
        raise ImportanceError(
            f"{source} has {len(ids):,} tokens; two windows of {size:,} need {2 * size:,}: use a "
            "longer text, or --length for shorter windows"
        )
    count = min(examples, available)
    starts = torch.linspace(0, len(ids) - size, count).long()
    return torch.stack([ids[start : start + size] for start in starts.tolist()])


def compute_chance_loss(targets: Tensor) -> float:
    """Loss of predicting every target by the frequencies of all targets, in nats."""
    counts = np.unique(targets[targets >= 0].cpu().numpy(), return_counts=True)[1]
    shares = counts / max(1, counts.sum())
    return float(-(shares * np.log(shares)).sum())


def _read_text(data: str | Path | None, required_by: str | None = None) -> tuple[str, str]:
    """A text and its name: the content of a file, or the given text itself."""
    if data is None:
        raise ImportanceError(f"{required_by} needs a text to measure its loss on: --data FILE")
    if isinstance(data, Path) or is_file_name(str(data)):
        path = Path(data)
        try:
            return path.read_text(encoding="utf-8"), path.name
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ImportanceError(f"{path} cannot be read as text: {reason}") from None
    text = str(data)
    if not any(character.isspace() for character in text):
        raise ImportanceError(f"there is no file {text}")
    return text, "the given text"


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
        roles = _find_roles(subject, header)
    assert header is not None
    if options.heads is not None:
        saved = None
    return AblationResult(name, header, tuple(steps), roles, tuple(notes), saved)


def _find_measured(
    folder: Path, subject: _Subject, options: _Options
) -> tuple[ImportanceHeader | None, ImportanceStep | None]:
    """The step of a subject, if the folder has it with the same data and method."""
    with suppress(ValueError):
        loaded = load_importance_steps(folder)
        if loaded is not None:
            header, steps, _ = loaded
            is_same = header.data == subject.data and header.method == options.describe_method()
            step = next((step for step in steps if step.step == subject.step), None)
            has_pairs = step is not None and (bool(step.pairs) or not options.pairs)
            if is_same and has_pairs:
                return header, step
    return None, None


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
