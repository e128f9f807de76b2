"""Character-level language modelling: predict the next character at every position of a text.

A window is a section of the text as long as the context. Training samples windows at random from
the first part of the text; validation takes fixed windows that cover the rest. The network is
written in the `.neural` language (a "program"), by the user or by a preset (`presets.py`).
`model.logits(x)` returns logits, `model(x)` probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.core.diagnostics import SourceText
from neural.core.errors import TaskError
from neural.core.experiment import Experiment, NonNegativeInt, PositiveInt
from neural.core.experiment_guess import ExperimentGuess
from neural.core.metadata_fields import NUMBER, TEXTS, MetadataField
from neural.core.result import Result
from neural.core.settings_errors import SettingsConflictError
from neural.data.input_checks import get_pad_id, get_vocabulary_size
from neural.language.network import Network
from neural.language.shapes import format_shape
from neural.nn.build import accepts_any_length, build
from neural.nn.lazy_torch import functional, torch
from neural.stats.blocks import estimate_mean_by_blocks
from neural.tasks._program_task import (
    ProgramTask,
    check_program,
    load_program,
    merge_training,
    resolve_loss,
)
from neural.tasks._text_generator import TextGenerator, load_text_generator
from neural.tasks.language_model.corpus import (
    EncodedText,
    TextCorpus,
    Units,
    Vocabulary,
    encode_text,
    find_text,
)
from neural.tasks.language_model.evaluation import evaluate
from neural.tasks.language_model.guess import guess_language_model
from neural.tasks.language_model.ngram_overlap import format_overlap_note, measure_ngram_overlap
from neural.tasks.language_model.presets import PRESET_SIZES, Architecture, Preset, write_program
from neural.tasks.language_model.text_windows import (
    PUBLISHED_SPLITS,
    TextWindows,
    compute_window_losses,
)
from neural.tasks.task import Predictions, TrainedRun, check_options

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.language.network import Network
    from neural.tasks.task import Batch, Scores

DEFAULT_CONTEXT = 128
"""Context length in characters if neither the experiment nor the network sets one."""
CAUSALITY_CHECK_LENGTH = 16
"""Sequence length of the causality check, if the network accepts sequences this short."""


def resolve_context(network: Network, requested: int | None) -> int:
    """Context length in characters: as requested, else as the network declares."""
    declared = network.input[0]
    return requested or (declared if isinstance(declared, int) else DEFAULT_CONTEXT)


def check_network(network: Network, vocabulary_size: int, data_name: str) -> None:
    """Raise TaskError unless the network maps token ids to a distribution at every position."""
    name = network.name
    if not network.takes_token_ids:
        raise TaskError(
            f"{name} takes features, not text; start with "
            f"`Embedding(input_dim={vocabulary_size}, output_dim=…)`"
        )
    if network.is_encoder_decoder:
        raise TaskError(f"{name} takes two sequences, a text is one; leave out the encoder")
    if len(network.output) != 2:
        raise TaskError(
            f"{name} outputs {format_shape(network.output)}: it must predict at every position, "
            "not once per text"
        )
    if repr(network.loss).partition("(")[0] != "sparse_categorical_crossentropy":
        raise TaskError(f'{name} has another loss; write `loss: "sparse_categorical_crossentropy"`')
    if network.output_activation != "softmax":
        raise TaskError(
            f"{name} does not output probabilities; end with "
            f'`Output({vocabulary_size}, activation="softmax")`'
        )
    for layer_name, id_count in (  # id_count: number of token ids the layer can represent
        ("Embedding", get_vocabulary_size(network)),
        ("Output", network.output[-1]),
    ):
        if isinstance(id_count, int) and id_count < vocabulary_size:
            raise TaskError(
                f"{data_name} has {vocabulary_size} characters, but `{layer_name}` of {name} has "
                f"{id_count}; write {vocabulary_size}"
            )
    pad = get_pad_id(network)
    if pad is not None and pad < vocabulary_size:
        raise TaskError(
            f"`pad_id={pad}` of {name} would mask a character; leave it out: a text needs no "
            "padding"
        )


def check_causal(network: Network, context: int) -> None:
    """Raise TaskError if the network cannot take `context` characters or is not causal.

    The loss of a network that sees the characters it predicts is meaningless. The check builds the
    network with random weights and changes the second half of a sequence: predictions in the first
    half must stay the same.
    """
    accepts_shorter = context == network.input[0] and accepts_any_length(network, "source")
    length, id_count = (
        min(context, CAUSALITY_CHECK_LENGTH) if accepts_shorter else context,
        get_vocabulary_size(network),
    )
    half = max(1, length // 2)
    with torch.random.fork_rng(devices=()), torch.no_grad():
        torch.manual_seed(0)
        model: Any = build(network).eval()
        for param in model.parameters():
            param.normal_(std=0.2)  # weights initialised to zero would hide a dependence
        x = torch.randint(id_count, (1, length))
        changed = torch.cat([x[:, :half], (x[:, half:] + 1) % id_count], dim=1)
        try:
            logits, changed_logits = model.logits(x)[:, :half], model.logits(changed)[:, :half]
        except ValueError as error:
            raise TaskError(f"`context` is {context}, but {error}") from None
    if not torch.allclose(logits, changed_logits, rtol=1e-4, atol=1e-4, equal_nan=True):
        raise TaskError(
            f"{network.name} is not causal: its prediction at a position depends on later "
            "characters; use `TransformerDecoder`, which attends to earlier positions only"
        )


DEFAULT_VALIDATION_SPLIT = 0.1
WINDOW_LOSSES = "valid/window_losses"
"""Name of the validation array with the loss of every window, in the order of the text."""


class LanguageModelSettings(Experiment):
    """A text, a network (preset or program), and training settings.

    Training settings that are not set are taken from the `train {}` block of the program.
    """

    task: str = Field("language_model", description="Name of the task.")
    data: str | None = Field(
        None,
        description="A text file, a folder of text files, or `handbook` (default), "
        "`shakespeare_char`, `enwik8`, `text8`.",
    )
    units: Units | None = Field(
        None, description="Prediction units: characters by default, bytes for enwik8."
    )
    context: PositiveInt | None = Field(
        None, description="Context length in characters; the preset's by default."
    )
    preset: Preset = Field("tiny", description="Model size and training length.")
    architecture: Architecture = Field(
        "modern", description="GPT-2 (`classic`), or a recipe with later improvements (`modern`)."
    )
    network: str | None = Field(
        None, min_length=1, description="A `.neural` program, instead of a preset."
    )
    network_name: str | None = Field(
        None, description="Name of the network, if the program has several."
    )
    validation_split: float | None = Field(
        None, ge=0, lt=1, description="Share of the text held out, at its end; 0.1 by default."
    )
    validation_windows: NonNegativeInt = Field(
        512, description="Largest number of windows that a validation uses; 0 means all."
    )
    vocabulary: str | None = Field(
        None,
        min_length=1,
        description="The characters in the order of their ids; those of the text by default.",
    )
    fingerprint: str | None = Field(
        None, description="Hash of the text of a run; resuming with another text is refused."
    )

    # Keys that a resumed run cannot change: its network is already written.
    new_run_keys: ClassVar[frozenset[str]] = frozenset({"preset", "architecture"})
    filled_defaults: ClassVar[Mapping[str, Any]] = {
        "units": "characters",
        "validation_split": DEFAULT_VALIDATION_SPLIT,
    }
    data_keys: ClassVar[frozenset[str]] = frozenset({"vocabulary", "fingerprint"})

    def verify(self) -> Iterator[SettingsConflictError]:
        """Yield conflicts: preset and program, duplicate characters, a vocabulary for bytes."""
        yield from super().verify()
        # The saved settings of a run hold both its preset and the program written from it.
        is_run = self.fingerprint is not None
        for key in sorted(self.new_run_keys & self.model_fields_set):
            if self.network is not None and not is_run:
                message = f"`network` replaces the preset, so `{key}` would have no effect"
                yield SettingsConflictError(message, key, "network", help="leave out one of them")
        if self.vocabulary is not None and self.units == "bytes":
            yield SettingsConflictError("bytes have no vocabulary", "vocabulary", "units")
        if self.vocabulary is not None and len(set(self.vocabulary)) < len(self.vocabulary):
            duplicate = next(
                character for character in self.vocabulary if self.vocabulary.count(character) > 1
            )
            yield SettingsConflictError(f"{duplicate!r} appears twice", "vocabulary")


class LanguageModel(ProgramTask):
    """Predict the next character of a text from those before it."""

    aliases: ClassVar[tuple[str, ...]] = (
        "lm",
        "causal_lm",
        "language_modeling",
        "language_modelling",
        "text_generation",
    )
    Settings: ClassVar[type[Experiment]] = LanguageModelSettings
    metadata_fields: ClassVar[Mapping[str, MetadataField]] = {
        "vocabulary": MetadataField(
            lambda value: value == "bytes" or TEXTS.accepts(value), 'a list of texts, or "bytes"'
        ),
        "data/ngram_overlap": NUMBER,
        "data/chance_loss": NUMBER,
    }

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        assert isinstance(experiment, LanguageModelSettings)
        network: Network | None = None
        if experiment.network is not None:
            self.source = load_program(experiment.network, folder)
            network = check_program(self.source, catalogue, experiment.network_name)
        text, encoded = load_text(experiment, network, folder)
        self.vocabulary = Vocabulary.from_text(encoded, experiment.vocabulary, text.name)

        # Windows of the text, as long as the network or the preset requires.
        validation_split = experiment.validation_split
        if validation_split is None and len(encoded.ids) not in PUBLISHED_SPLITS:
            validation_split = (
                network.train.validation_split if network else DEFAULT_VALIDATION_SPLIT
            )
        if network is not None:
            check_network(network, self.vocabulary.size, text.name)
        context = (
            resolve_context(network, experiment.context)
            if network
            else experiment.context or PRESET_SIZES[experiment.preset].context
        )
        self.windows = TextWindows(
            encoded.ids, self.vocabulary.id_table, context, validation_split, text.name
        )

        # The network: the user's program, or that of a preset.
        if network is None:
            step_settings = {
                "steps": resolve_steps(experiment, self.windows),
                "warmup_steps": experiment.training.warmup_steps,
            }
            preset_choice = (experiment.preset, experiment.architecture)
            self.source = SourceText(
                "the program",
                write_program(*preset_choice, self.vocabulary.size, context, **step_settings),
            )
            network = check_program(self.source, catalogue, None)
        else:
            check_causal(network, context)
        self.network = network
        training = merge_training(experiment.training, network)
        self.criterion = resolve_loss(network, training.label_smoothing)
        self.batch_size, self.seed = training.batch_size, training.seed
        resolved = {
            "training": training,
            "network": self.source.text,
            "data": text.data_setting,
            "units": text.units,
            "context": context,
            "validation_split": validation_split,
            "name": experiment.name or network.name[:80],
            "vocabulary": self.vocabulary.characters,
            "fingerprint": encoded.fingerprint,
        }
        super().__init__(experiment.model_copy(update=resolved), folder, catalogue)
        self.validation_starts = self.windows.list_validation_starts(experiment.validation_windows)
        self.overlap: float | None = None  # a resumed run has it in its metadata
        if experiment.fingerprint is None:
            self.overlap = measure_ngram_overlap(
                encoded.ids, self.windows.train_end, self.windows.valid_end
            )
        notes = (
            *note_unseen_characters(encoded, self.windows.train_end, text.name),
            *format_overlap_note(text.name, self.overlap),
        )
        self.notes = (*text.notes, *notes)

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches that together have as many characters as the training text."""
        return max(1, self.windows.windows_per_epoch // self.batch_size)

    def batch(self, index: int) -> Batch:
        """Windows at random positions of the training text."""
        return self.windows.sample_batch(index, self.batch_size, self.seed)

    def loss(self, model: Any, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean cross-entropy over all characters, in nats."""
        return self.criterion.compute(model.logits(batch["x"]), batch["y"]), {}

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Number of predicted characters."""
        return {"loss": float(batch["y"].numel())}

    def evaluate(self, model: Any) -> Scores:
        """Mean loss over fixed windows in nats and bits, without label smoothing.

        `valid/standard_error` (nats) is computed from blocks of windows, because neighbouring
        windows are correlated (stats/blocks.py). The losses of the single windows are for paired
        comparisons of two runs.
        """
        if not len(self.validation_starts):
            return {}
        window_losses = compute_window_losses(model, self.windows, self.validation_starts)
        mean = estimate_mean_by_blocks(window_losses)
        loss, error = mean.value, mean.standard_error
        results = {
            "valid/loss": loss,
            "valid/bits": loss / math.log(2),
            WINDOW_LOSSES: window_losses,
        }
        return results if math.isnan(error) else {**results, "valid/standard_error": error}

    def probe_batch(self) -> Batch:
        """Windows whose attention is captured: validation windows, evenly spaced.

        If no text is held out, they are the first windows of the training text.
        """
        return self.held_out_batch(self.experiment.tracking.probe_size)

    @property
    def has_held_out(self) -> bool:
        """Whether some text is held out."""
        return bool(len(self.validation_starts))

    def held_out_batch(self, count: int) -> Batch:
        """`count` validation windows, evenly spaced; windows of the training text without any."""
        if not len(self.validation_starts):
            count = min(count, self.windows.windows_per_epoch)
            return self.windows.take(np.arange(count) * self.windows.context)
        positions = np.linspace(
            0, len(self.validation_starts) - 1, min(count, len(self.validation_starts))
        )
        return self.windows.take(self.validation_starts[positions.astype(np.int64)])

    def example_losses(self, model: Any, batch: Batch) -> Tensor:
        """Cross-entropy of every character, (B, T), in nats."""
        logits, y = model.logits(batch["x"]).float(), batch["y"]
        losses = functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none")
        return losses.view(y.shape)

    def target_classes(self, batch: Batch) -> Tensor:
        """The next character at every position."""
        return batch["y"]

    def token_texts(self) -> list[str]:
        """The character of every id."""
        characters = self.vocabulary.characters
        return list(map(chr, range(256))) if characters is None else list(characters)

    def forward(self, model: Any, batch: Batch) -> Tensor:
        """One forward pass; returns probabilities."""
        return model(batch["x"])

    def token_ids(self, batch: Batch) -> Tensor:
        """Input token ids, (batch, time)."""
        return batch["x"]

    def position_labels(self, batch: Batch) -> list[list[str]]:
        """The input characters: one label per position, for attention maps."""
        return [
            [self.vocabulary.label(token_id) for token_id in row] for row in batch["x"].tolist()
        ]

    def metadata(self) -> dict[str, Any]:
        """`vocabulary`: a list of characters, or "bytes".

        `data/ngram_overlap`: share of the n-grams of the validation text that also occur in the
        training text. `data/chance_loss`: loss of the best constant prediction, in nats.
        """
        entries = {"data/ngram_overlap": self.overlap, "data/chance_loss": self._chance_loss()}
        known = {key: value for key, value in entries.items() if value is not None}
        return {"vocabulary": self.vocabulary.to_metadata(), **known}

    def _chance_loss(self) -> float | None:
        """Loss of the best constant prediction of the validation text; None if none is held out."""
        held_out = self.windows.ids[self.windows.train_end : self.windows.valid_end]
        if not len(held_out):
            return None
        counts = np.bincount(held_out)
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())

    @classmethod
    def predict(cls, run: TrainedRun, source: str | bytes) -> Predictions:
        """Raise TaskError: a language model generates text, but does not predict from files."""
        raise TaskError(
            f"{run.name} is a language model: generate text with `neural generate {run.name}`"
        )

    @classmethod
    def guess(cls, path: Path, overrides: Sequence[str] = ()) -> ExperimentGuess | None:
        """A language model of a text file, or of a folder of them."""
        return guess_language_model(path)

    @classmethod
    def describe_input(cls, run: TrainedRun) -> str:
        """Raise TaskError, as `predict` does."""
        cls.predict(run, "")
        return ""

    @classmethod
    def evaluate_run(cls, run: TrainedRun, **options: Any) -> Result:
        """Loss, bits and perplexity beside n-gram models, on held-out or other text."""
        check_options(run, options, ("data", "allow_duplicates"))
        return evaluate(run, **options)

    @classmethod
    def load_generator(cls, run: TrainedRun) -> TextGenerator:
        """The text generator of a run whose network predicts token ids."""
        return load_text_generator(run)

    @classmethod
    def example(cls, folder: Path, catalogue: Catalogue) -> LanguageModel:
        """Generated text of number words."""
        words = ["one", "two", "three", "four", "five", "six", "seven"]
        text = " ".join(words[number * number % 7] for number in range(90))
        (folder / "numbers.txt").write_text(text, encoding="utf-8")
        return cls(
            LanguageModelSettings(network=EXAMPLE_PROGRAM, data="numbers.txt"), folder, catalogue
        )


def load_text(
    experiment: LanguageModelSettings, network: Network | None, folder: Path
) -> tuple[TextCorpus, EncodedText]:
    """Load the text of an experiment. Raises TaskError if that of a resumed run has changed."""
    data, run_fingerprint = (
        experiment.data or (network.train.data if network else None) or "handbook",
        experiment.fingerprint,
    )
    try:
        text = find_text(data, folder, experiment.units)
        encoded = encode_text(text)
    except TaskError as error:
        raise TaskError(
            f"the text of the run is missing: {error}" if run_fingerprint else str(error)
        ) from None
    if run_fingerprint is not None and encoded.fingerprint != run_fingerprint:
        raise TaskError(
            f"{text.name} has changed since the run was started; "
            "restore the old text, or start a new run"
        )
    return text, encoded


def resolve_steps(experiment: LanguageModelSettings, windows: TextWindows) -> int | None:
    """Training steps from `training.steps` or `training.epochs`; None if neither is set."""
    training = experiment.training
    if not training.model_fields_set & {"steps", "epochs"}:
        return None
    preset_batch, _ = PRESET_SIZES[experiment.preset].batch_and_steps(experiment.architecture)
    batch_size = training.batch_size if "batch_size" in training.model_fields_set else preset_batch
    return training.total_steps(max(1, windows.windows_per_epoch // batch_size))


def note_unseen_characters(text: EncodedText, train_end: int, data_name: str) -> list[str]:
    """A note if characters occur only in the validation text."""
    first_positions = zip(text.characters or "", text.first_seen, strict=True)
    unseen = [character for character, position in first_positions if position >= train_end]
    if not unseen:
        return []
    shown = " ".join(map(repr, unseen[:5])) + (
        f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
    )
    return [f"{data_name}: characters only in the validation text, never trained: {shown}"]


EXAMPLE_PROGRAM = """network Tiny {
  input: (8,)
  layers:
    Embedding(input_dim=17, output_dim=6)
    TransformerDecoder(num_heads=2, d_model=6, dff=11, dropout_rate=0.1)
    Output(17, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(learning_rate=0.01)
  train { steps: 7 batch_size: 4 }
}
"""
