"""Texts that a language model writes while it learns, and how good they are: the rows `generation/…` of its run.

    fit(task, run, also=Judged(task, Samples(number=10, length=500)).kept_in(run))

What is written at a validation follows from the weights and the seed alone, so a run that was interrupted and goes on
has the same rows as one that was not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field

from neural.core.settings import Settings
from neural.generation import AT_ONCE, Letters, Writer
from neural.tasks.experiment import Count, Interval
from neural.tasks.language_model import LanguageModel
from neural.tasks.task import Task, TaskError
from neural.tracking.run import Run
from neural.views.judge import judge, real_text
from neural.views.quality_measure import References

if TYPE_CHECKING:
    from torch import nn

TEXTS, REAL = "generation/texts", "generation/real"
"""What a run describes: the first text of every validation by its step, and the numbers of real text."""
MOST = 10_000_000
"""Characters of the training text that novelty is looked for in: all of most texts, the beginning of the largest."""


class Samples(Settings):
    """Texts that are written at every validation, and judged."""

    number: Count = Field(10, description="Texts.")
    length: Count = Field(500, description="Characters of each, or bytes.")
    temperature: float = Field(0.8, ge=0, description="0 takes the likeliest; 1 draws as the network says.")
    top_k: Count | None = Field(None, description="Only the likeliest few.")
    prompt: str | None = Field(None, min_length=1, description="What to go on from; a new line if not said.")
    seed: Interval = Field(0, description="The same seed and the same weights, the same texts.")


class Judged:
    """What a model writes, in numbers: called with a step and the model; TaskError where it cannot be."""

    def __init__(self, task: Task, samples: Samples) -> None:
        if not isinstance(task, LanguageModel):
            raise TaskError(f"samples are written by the task `language_model`, not by `{task.experiment.task}`")
        if task.experiment.training.shard:
            raise TaskError("no samples can be written while the weights are split among processes: `training.shard`")
        self.samples = samples
        self.run: Run | None = None
        self.texts: dict[str, str] = {}
        characters = task.vocabulary.characters
        self.letters = Letters(None if characters is None else tuple(characters))
        self.codes = np.array([*range(256)] if characters is None else [*map(ord, characters)], dtype="<u4")
        self.letters.encode(samples.prompt or "")   # says it before hours of training where a character is not known
        self.references = self.compared_with(task)

    def kept_in(self, run: Run) -> Self:
        """The first text of every validation goes there, and once the numbers of real text."""
        self.run, self.texts, said = run, run.described(TEXTS, {}), self.samples
        if run.described(REAL) is None:
            run.describe(REAL, real_text(self.references, samples=said.number, length=said.length))
        return self

    def __call__(self, step: int, model: nn.Module) -> dict[str, float]:
        """The rows of a validation."""
        written = self.written(model)
        if self.run is not None:
            self.texts = {**self.texts, str(step): written[0]}
            self.run.describe(TEXTS, self.texts)
        return judge(written, self.references)

    def written(self, model: Any) -> list[str]:
        """The texts, without their prompt."""
        said, found = self.samples, list[str]()
        writer = Writer(model, self.letters)
        decoding = writer.decoding(precision="float32")   # the network itself is judged
        for first in range(0, said.number, AT_ONCE):
            news = writer.stream(
                said.prompt, said.length, samples=min(AT_ONCE, said.number - first), first=first, seed=said.seed,
                temperature=said.temperature, top_k=said.top_k, decoding=decoding,
            )  # fmt: skip
            found += map(self.text, np.stack([new.ids for new in news], axis=1))
        return found

    def text(self, ids: np.ndarray) -> str:
        """One character for every id, also where ids are bytes: texts of one length are compared."""
        return self.codes[ids].tobytes().decode("utf-32-le", errors="replace")

    def compared_with(self, task: LanguageModel) -> References:
        """The text that was split for training and validation."""
        windows, length = task.windows, self.samples.length
        if windows.last == windows.end:
            raise TaskError("samples are compared with what is held out: `validation_split` must be above 0")
        if windows.end < length:
            raise TaskError(f"samples of {length:,} characters are longer than the {windows.end:,} to train on")
        parts = windows.ids[: min(windows.end, MOST)], windows.ids[windows.end : min(windows.last, windows.end + MOST)]
        return References(*(self.text(windows.table[one]) for one in parts))
