"""Evaluate a language model on held-out or other text, beside unigram and bigram models.

Scores are means over windows of the text. Neighbouring windows are correlated, so intervals come
from long blocks of windows (stats/blocks.py). A lift is the loss of a baseline minus that of the run
in the same windows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neural.core.errors import TaskError
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Table, tabulate_scores
from neural.stats.blocks import estimate_mean_by_blocks
from neural.stats.estimate import Estimate
from neural.tasks.language_model.corpus import EncodedText, Vocabulary, encode_text, find_text
from neural.tasks.language_model.ngram_baselines import NgramBaselines
from neural.tasks.language_model.ngram_overlap import (
    NGRAM_LENGTH,
    format_overlap_note,
    measure_ngram_overlap,
)
from neural.tasks.language_model.text_windows import TextWindows, compute_window_losses
from neural.tasks.task import TrainedRun

MAX_UNKNOWN_SHARE = 0.1
"""A text with a larger share of characters that the run does not know is refused."""
MAX_ALLOWED_OVERLAP = 0.5
"""A text that shares more of its n-grams with the training text is refused."""
MAX_EXPONENT = 700
"""exp of a larger loss is not a finite float."""
BATCH_WINDOWS = 4096
"""Windows whose baseline losses are computed at once."""


@dataclass(frozen=True, kw_only=True, repr=False)
class LanguageModelEvaluation(Result):
    """Losses of a run and of the baselines."""

    run_name: str
    description: str
    """What was scored: `9,216 characters of the validation text of handbook`."""
    losses: Mapping[str, Estimate]
    """Loss in nats of each predictor by its name; the run is the first, `this run`.

    There is no interval with fewer than 32 windows (stats/blocks.py)."""
    lifts: Mapping[str, Estimate]
    """Loss of each baseline minus that of the run; above 0 is better."""
    windows: int
    standard_error: float
    """Standard error of the loss of the run, in nats; NaN with fewer than 32 windows."""
    notes: tuple[str, ...] = ()

    @property
    def tables(self) -> dict[str, Table]:
        """`scores`: the loss of the run and the baselines."""
        return {"scores": tabulate_scores({name: {"loss": e} for name, e in self.losses.items()})}

    def build_dict(self) -> dict[str, Any]:
        """Losses and lifts; `scores` are those of the run alone."""
        loss = self.losses["this run"].value
        error = {} if math.isnan(self.standard_error) else {"standard_error": self.standard_error}
        return {
            "run": self.run_name,
            "data": self.description,
            "windows": self.windows,
            "scores": {
                "loss": loss,
                "bits": loss / math.log(2),
                "perplexity": _exponentiate(loss) if loss < MAX_EXPONENT else None,
                **error,
            },
            "losses": self.losses,
            "lifts": self.lifts,
            "notes": self.notes,
        }

    def to_sections(self, width: int) -> list[PageSection]:
        """One table: a row per score and interval, a column per predictor."""
        predictors = list(self.losses)
        scales = {
            "loss (nats)": lambda loss: loss,
            "bits per character": lambda loss: loss / math.log(2),
            "perplexity": _exponentiate,
        }
        rows = []
        for label, scale in scales.items():
            own, *others = (self.losses[name].map(scale) for name in predictors)
            cells = [other.format_value() for other in others]
            rows.append((label, own.format_value(), own.format_interval(), *cells))
        text = [f"on {self.description}", *(f"note: {note}" for note in self.notes)]
        sections = [
            PageSection(
                title=self.run_name,
                text="\n".join(text),
                table_head=("", "this run", "95 % interval", *predictors[1:]),
                table_rows=rows,
            )
        ]
        if self.lifts:
            lift_rows = [
                (f"over {name}", lift.format_value(signed=True), lift.format_interval())
                for name, lift in self.lifts.items()
            ]
            sections.append(
                PageSection(
                    title="lift",
                    text="loss of a baseline minus that of the run, in nats\n"
                    f"95 % intervals by blocks of {self.windows:,} windows",
                    table_head=("", "lift", "95 % interval"),
                    table_rows=lift_rows,
                )
            )
        return sections


@dataclass(frozen=True, kw_only=True)
class _EvaluationText:
    """Windows to score; the training windows if the training text still exists."""

    windows: TextWindows
    starts: NDArray[np.int64]
    description: str
    training: TextWindows | None
    notes: tuple[str, ...]


def evaluate(
    run: TrainedRun, data: str | None = None, *, allow_duplicates: bool = False
) -> LanguageModelEvaluation:
    """Evaluate on the validation text of the run, or on another text.

    `data` is a text file, a folder or the name of a text. A text that is mostly in the training
    text is refused, unless `allow_duplicates`.
    """
    text = (
        _load_held_out(run)
        if data is None or _is_training_text(run, data)
        else _load_other_text(run, data, allow_duplicates=allow_duplicates)
    )
    own_losses = compute_window_losses(run.load_model(), text.windows, text.starts)
    losses, notes = {"this run": own_losses}, text.notes
    if text.training is None:
        notes = (*notes, "the training text is missing: there are no baselines")
    else:
        losses |= _compute_baseline_losses(text)
    return LanguageModelEvaluation(
        run_name=run.name,
        description=text.description,
        losses={
            name: estimate_mean_by_blocks(values).estimate() for name, values in losses.items()
        },
        lifts={
            name: estimate_mean_by_blocks(values - own_losses).estimate()
            for name, values in losses.items()
            if name != "this run"
        },
        windows=len(text.starts),
        standard_error=estimate_mean_by_blocks(own_losses).standard_error,
        notes=notes,
    )


def _load_held_out(run: TrainedRun) -> _EvaluationText:
    task: Any = run.load_task()
    if not len(task.validation_starts):
        raise TaskError(f"{run.name} has no held-out text; name one with --data")
    windows = task.windows
    name = Path(str(run.settings.get("data"))).name
    overlap_note = format_overlap_note(run.name, run.metadata("data/ngram_overlap"))
    return _EvaluationText(
        windows=windows,
        starts=task.validation_starts,
        description=f"{len(task.validation_starts) * windows.context:,} characters of the "
        f"validation text of {name}",
        training=windows,
        notes=(*task.notes, *overlap_note),
    )


def _load_other_text(run: TrainedRun, data: str, *, allow_duplicates: bool) -> _EvaluationText:
    experiment: Any = run.load_experiment()
    text = find_text(data, Path(), experiment.units)
    encoded, notes = _drop_unknown_characters(encode_text(text), experiment.vocabulary, text.name)
    vocabulary = Vocabulary.from_text(encoded, experiment.vocabulary, text.name)
    windows = TextWindows(
        encoded.ids,
        vocabulary.id_table,
        experiment.context,
        validation_split=0,
        data_name=text.name,
    )
    count, max_windows = windows.windows_per_epoch, experiment.validation_windows
    starts = np.arange(count) * windows.context
    if max_windows and count > max_windows:
        starts = starts[np.linspace(0, count - 1, max_windows).astype(np.int64)]
        notes.append(
            f"{text.name}: {max_windows:,} of {count:,} windows are scored, evenly spaced "
            "(`validation_windows`)"
        )
    try:
        training = getattr(run.load_task(), "windows", None)
    except TaskError:
        training = None
    if training is not None:
        notes += _check_overlap(training, windows, text.name, allow=allow_duplicates)
    return _EvaluationText(
        windows=windows,
        starts=starts,
        description=f"{len(starts) * windows.context:,} characters of {text.name}",
        training=training,
        notes=(*text.notes, *notes),
    )


def _drop_unknown_characters(
    text: EncodedText, known: str | None, name: str
) -> tuple[EncodedText, list[str]]:
    """The text without characters that the run does not know, with a note about them.

    TaskError if they are more than MAX_UNKNOWN_SHARE of the text.
    """
    unknown = (
        [index for index, character in enumerate(text.characters or "") if character not in known]
        if known is not None
        else []
    )
    if not unknown:
        return text, []
    assert text.characters is not None
    is_known = ~np.isin(text.ids, unknown)
    count = int((~is_known).sum())
    shown = " ".join(repr(text.characters[index]) for index in unknown[:5])
    message = (
        f"{name}: {count:,} of {len(text.ids):,} characters are not in the training text of the "
        f"run: {shown}{' …' * (len(unknown) > 5)}"
    )
    if count > MAX_UNKNOWN_SHARE * len(text.ids):
        raise TaskError(f"{message}; the run cannot predict them, choose a text like its own")
    # Ids of the remaining characters, numbered without gaps.
    kept = [index for index in range(len(text.characters)) if index not in set(unknown)]
    new_ids = np.zeros(len(text.characters), dtype=text.ids.dtype)
    new_ids[kept] = np.arange(len(kept))
    remaining = replace(
        text,
        ids=new_ids[text.ids[is_known]],
        characters="".join(text.characters[index] for index in kept),
        first_seen=tuple(text.first_seen[index] for index in kept),
    )
    return remaining, [f"{message}; they are left out"]


def _check_overlap(
    training: TextWindows, windows: TextWindows, name: str, *, allow: bool
) -> list[str]:
    """Refuse a text that is mostly in the training text, or return a note about the overlap."""
    # The smallest type that holds the ids: a training text may have 100 million characters.
    dtype = np.min_scalar_type(int(max(training.id_table.max(), windows.id_table.max())))
    train_ids = training.id_table.astype(dtype)[training.ids[: training.train_end]]
    ids = np.concatenate([train_ids, windows.id_table.astype(dtype)[windows.ids]])
    overlap = measure_ngram_overlap(ids, len(train_ids), len(ids))
    if overlap is not None and overlap > MAX_ALLOWED_OVERLAP and not allow:
        raise TaskError(
            f"{name}: {overlap:.0%} of it also occurs in the training text (at least "
            f"{NGRAM_LENGTH} characters in a row); choose another text, or use --allow-duplicates "
            "(`allow_duplicates=True` in Python)"
        )
    return [
        note.replace("the validation text", "the text").replace("the validation", "the evaluation")
        for note in format_overlap_note(name, overlap)
    ]


def _compute_baseline_losses(text: _EvaluationText) -> dict[str, NDArray[np.float64]]:
    """Losses of the unigram and the bigram model in every window."""
    training = text.training
    assert training is not None
    size = int(max(training.id_table.max(), text.windows.id_table.max())) + 1
    baselines = NgramBaselines.from_text(
        training.ids[: training.train_end], training.id_table, size
    )
    chunks = []
    for start in range(0, len(text.starts), BATCH_WINDOWS):
        batch = text.windows.take(text.starts[start : start + BATCH_WINDOWS])
        chunks.append(baselines.window_losses(batch["x"].numpy(), batch["y"].numpy()))
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def _is_training_text(run: TrainedRun, data: str) -> bool:
    """Whether `data` is the text of the run, of which only the held-out part may be used."""
    settings: Any = run.load_experiment()
    try:
        return find_text(data, Path(), settings.units).data_setting == settings.data
    except TaskError:
        return False  # the error is raised again where the text is read


def _exponentiate(loss: float) -> float:
    """exp(loss), the perplexity; infinite beyond the largest float, NaN for NaN."""
    return math.inf if loss >= MAX_EXPONENT else math.exp(loss)
