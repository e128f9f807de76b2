"""Sample texts of a language model at each validation, and their quality: `generation/…` metrics.

The quality is measured against training and validation text (findings/sample_quality.py), and once
for excerpts of the training text, for comparison. The texts depend only on the weights and the
seed, so a resumed run has the same metrics as one that was never interrupted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field

from neural.core.errors import TaskError
from neural.core.experiment import NonNegativeInt, PositiveInt
from neural.core.settings import Settings
from neural.findings.quality_measure import ReferenceTexts
from neural.findings.sample_quality import (
    REAL_TEXT_KEY,
    SAMPLES_KEY,
    measure_quality,
    measure_real_text,
)
from neural.runs.run import Run
from neural.tasks._text_generator import SAMPLE_BATCH_SIZE, CharacterTokenizer, TextGenerator
from neural.tasks.language_model.task import LanguageModel
from neural.tasks.task import Task

if TYPE_CHECKING:
    from torch import nn

MAX_REFERENCE_CHARACTERS = 10_000_000
"""Characters of training text, and of validation text, that samples are compared with."""


class SampleSettings(Settings):
    """Texts that are generated and measured at every validation."""

    number: PositiveInt = Field(10, description="Number of texts.")
    length: PositiveInt = Field(500, description="Length of each text, in characters or bytes.")
    temperature: float = Field(
        0.8,
        ge=0,
        description="0 takes the most probable token; 1 samples from the network's distribution.",
    )
    top_k: PositiveInt | None = Field(
        None, description="Samples from the k most probable tokens only."
    )
    prompt: str | None = Field(
        None, min_length=1, description="Text to continue; a new line by default."
    )
    seed: NonNegativeInt = Field(0, description="The same seed and weights give the same texts.")


class SampleEvaluator:
    """Generates texts and measures their quality; passed to `fit` as `extra_metrics`.

    Raises TaskError if the task cannot generate text with these settings.
    """

    def __init__(self, task: Task, settings: SampleSettings) -> None:
        if not isinstance(task, LanguageModel):
            raise TaskError(f"samples need the task `language_model`, not `{task.experiment.task}`")
        if task.experiment.training.shard:
            raise TaskError(
                "samples cannot be generated while the weights are split among processes: "
                "`training.shard`"
            )
        self.settings = settings
        self.run: Run | None = None
        """The run that samples are saved in, see `record_to`."""
        self.texts: dict[str, str] = {}
        """The first sample of each validation, by its step."""
        characters = task.vocabulary.characters  # None for models of bytes
        self.tokenizer = CharacterTokenizer(None if characters is None else tuple(characters))
        self.code_points = np.array(
            [*range(256)] if characters is None else [*map(ord, characters)], dtype="<u4"
        )
        """Unicode code point of each token id."""
        # raises TaskError for an unknown character now, not after hours of training
        self.tokenizer.encode(settings.prompt or "")
        self.references = self.load_references(task)

    def record_to(self, run: Run) -> Self:
        """Save the first text of every validation in `run`, and once the metrics of real text."""
        self.run, self.texts = run, run.metadata(SAMPLES_KEY, {})
        if run.metadata(REAL_TEXT_KEY) is None:
            count, length = self.settings.number, self.settings.length
            measures = measure_real_text(self.references, sample_count=count, length=length)
            run.set_metadata(REAL_TEXT_KEY, measures)
        return self

    def __call__(self, step: int, model: nn.Module) -> dict[str, float]:
        """Generate texts with the model and return their metrics, `generation/…`."""
        samples = self.generate_texts(model)
        if self.run is not None:
            self.texts = {**self.texts, str(step): samples[0]}
            self.run.set_metadata(SAMPLES_KEY, self.texts)
        return measure_quality(samples, self.references)

    def generate_texts(self, model: Any) -> list[str]:
        """The texts, without their prompt."""
        settings, texts = self.settings, list[str]()
        generator = TextGenerator(model, self.tokenizer)
        # float32, because the default may quantize the weights to int8, which changes the texts
        decoder = generator.create_decoder(precision="float32")
        for first_index in range(0, settings.number, SAMPLE_BATCH_SIZE):
            generated_tokens = generator.stream(
                settings.prompt,
                settings.length,
                samples=min(SAMPLE_BATCH_SIZE, settings.number - first_index),
                first_sample_index=first_index,
                seed=settings.seed,
                temperature=settings.temperature,
                top_k=settings.top_k,
                decoder=decoder,
            )
            # (samples, length): `token.ids` has one id per sample
            ids = np.stack([token.ids for token in generated_tokens], axis=1)
            texts += map(self.decode_ids, ids)
        return texts

    def decode_ids(self, ids: np.ndarray) -> str:
        """One character per id, also for bytes, so that all texts have the same length."""
        return self.code_points[ids].tobytes().decode("utf-32-le", errors="replace")

    def load_references(self, task: LanguageModel) -> ReferenceTexts:
        """The training text and the validation text, each up to MAX_REFERENCE_CHARACTERS.

        `task.windows` is the text from which training windows are cut. Its `ids` are the training
        text up to `train_end`, then the validation text up to `valid_end`. Its `id_table` maps ids
        of the text file to those of the network; they differ if the setting `vocabulary` orders the
        characters otherwise.
        """
        windows, length = task.windows, self.settings.length
        train_end, valid_end = windows.train_end, windows.valid_end
        if valid_end == train_end:
            raise TaskError(
                "samples are compared with validation text: `validation_split` must be above 0"
            )
        if train_end < length:
            raise TaskError(
                f"samples of {length:,} characters are longer than the training text, "
                f"which has {train_end:,}"
            )
        training = windows.ids[: min(train_end, MAX_REFERENCE_CHARACTERS)]
        held_out = windows.ids[train_end : min(valid_end, train_end + MAX_REFERENCE_CHARACTERS)]
        return ReferenceTexts(
            self.decode_ids(windows.id_table[training]), self.decode_ids(windows.id_table[held_out])
        )
