"""Character-level language modelling: predict the next character at every position of a text.

Training samples windows from the first part of the text; validation takes fixed windows that cover
the rest. The network is written in the `.neural` language (a "program"), by the user or by a preset
(`presets.py`). `model.scores` of a network returns logits, `model(x)` probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.core.diagnostics import SourceText
from neural.core.errors import TaskError
from neural.core.experiment import Experiment, NonNegativeInt, PositiveInt
from neural.core.metadata_fields import NUMBER, TEXTS, MetadataField
from neural.core.settings_errors import SettingsConflictError
from neural.data.input_checks import get_pad_id, get_vocabulary_size
from neural.data.sampler import create_generator
from neural.language.network import Network
from neural.language.shapes import format_shape
from neural.nn.build import accepts_any_length, build
from neural.nn.lazy_torch import functional, torch
from neural.tasks._program_task import (
    ProgramTask,
    check_program,
    load_program,
    merge_training,
    resolve_loss,
)
from neural.tasks._text_generator import TextGenerator, load_text_generator
from neural.tasks.language_model.block_means import compute_block_mean
from neural.tasks.language_model.corpus import (
    EncodedText,
    TextCorpus,
    Units,
    Vocabulary,
    encode_text,
    find_text,
)
from neural.tasks.language_model.ngram_overlap import format_overlap_note, measure_ngram_overlap
from neural.tasks.language_model.presets import PRESET_SIZES, Architecture, Preset, write_program
from neural.tasks.task import Evaluation, HeldOutScores, Predictions, TrainedRun

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.language.network import Network
    from neural.tasks.task import Batch, Scores

DEFAULT_CONTEXT = 128
"""Context length if neither the experiment nor the network sets one."""
CAUSALITY_CHECK_LENGTH = 16
"""Sequence length of the causality check, if the network accepts it."""


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
    if network.has_two_streams:
        raise TaskError(f"{name} takes two sequences, a text is one; leave out the encoder")
    if len(network.output) != 2:
        raise TaskError(
            f"{name} outputs {format_shape(network.output)}: it must predict at every position, "
            "not once per text"
        )
    if repr(network.loss).partition("(")[0] != "sparse_categorical_crossentropy":
        raise TaskError(f'{name} has another loss; write `loss: "sparse_categorical_crossentropy"`')
    if network.head_activation != "softmax":
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

    A network that sees the characters it predicts has a meaningless loss. Tested on random weights:
    changing later characters must not change earlier predictions.
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
            logits, changed_logits = model.scores(x)[:, :half], model.scores(changed)[:, :half]
        except ValueError as error:
            raise TaskError(f"`context` is {context}, but {error}") from None
    if not torch.allclose(logits, changed_logits, rtol=1e-4, atol=1e-4, equal_nan=True):
        raise TaskError(
            f"{network.name} is not causal: its prediction at a position depends on later "
            "characters; use `TransformerDecoder`, which attends to earlier positions only"
        )


PUBLISHED_SPLITS = {100_000_000: (90_000_000, 95_000_000)}
"""(end of training, end of validation) by text length: the usual split of enwik8 and text8. The
rest is the test set."""
WINDOW_RNG_STREAM = 2
"""Number of the random stream that draws window positions; `data.sampler` uses 0 and 1."""


class TextWindows:
    """Windows of a text, split by position: the start is for training, the end is held out."""

    def __init__(
        self,
        ids: np.ndarray,
        id_table: np.ndarray,
        context: int,
        validation_split: float | None,
        data_name: str,
    ) -> None:
        """`id_table` maps the ids of the text to those of the network.

        `validation_split` is the fraction of the text that is held out; None means the published
        split for this length.
        """
        self.ids, self.id_table, self.context = ids, id_table, context
        if validation_split is None:
            self.train_end, self.valid_end = PUBLISHED_SPLITS[len(ids)]
        else:
            self.train_end, self.valid_end = int(len(ids) * (1 - validation_split)), len(ids)
        held_out = self.valid_end - self.train_end
        if min(self.train_end, held_out or self.train_end) <= context:
            raise TaskError(
                format_too_short(data_name, len(ids), self.train_end, held_out, context)
            )

    @property
    def windows_per_epoch(self) -> int:
        """Number of adjacent windows that cover the training text."""
        return (self.train_end - 1) // self.context

    def sample_batch(self, index: int, count: int, seed: int) -> dict[str, Tensor]:
        """Training batch `index`: `count` windows at random positions."""
        starts = create_generator(seed, index, stream=WINDOW_RNG_STREAM).integers(
            0, self.train_end - self.context, size=count
        )
        return self.take(starts)

    def list_validation_starts(self, max_windows: int) -> np.ndarray:
        """Start positions of the validation windows: adjacent, or `max_windows` evenly spaced.

        0 means no limit. An incomplete window at the end is not used.
        """
        held_out = self.valid_end - self.train_end
        count = (held_out - 1) // self.context if held_out else 0
        if max_windows and count > max_windows:
            return self.train_end + np.linspace(0, held_out - self.context - 1, max_windows).astype(
                np.int64
            )
        return self.train_end + np.arange(count) * self.context

    def take(self, starts: np.ndarray) -> dict[str, Tensor]:
        """Inputs and targets of the windows at these positions."""
        windows = torch.from_numpy(
            self.id_table[self.ids[starts[:, None] + np.arange(self.context + 1)]]
        )
        return {"x": windows[:, :-1].contiguous(), "y": windows[:, 1:].contiguous()}


def format_too_short(
    data_name: str, count: int, train_end: int, held_out: int, context: int
) -> str:
    """Message for a text (of `count` characters) that is shorter than one window."""
    needed = f"a context of {context:,} needs at least {context + 1:,}"
    if count <= context:
        return f"{data_name} has {count:,} characters; {needed}"
    split_name, split_length = (
        ("to train on", train_end) if train_end <= context else ("held out", held_out)
    )
    direction = "smaller" if train_end <= context else "larger"
    return (
        f"{data_name} has {count:,} characters, {split_length:,} of them {split_name}; {needed}, "
        f"or a {direction} `validation_split`"
    )


DEFAULT_VALIDATION_SPLIT = 0.1
VALIDATION_BATCH_CHARACTERS = 1 << 13
"""Characters of a validation batch; the number of its windows follows from their length."""
WINDOW_LOSSES = "valid/window_losses"
"""Name of the validation array with the loss of every window, in the order of the text."""


class LanguageModelSettings(Experiment):
    """A text, a network (preset or program), and training settings.

    Training settings that are not set are taken from the `train {}` block of the program.
    """

    task: str = Field("language_model", description="What is learned: a name of `neural.tasks`.")
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
        512, description="Largest number of windows of a validation; 0 means all."
    )
    vocabulary: str | None = Field(
        None,
        min_length=1,
        description="The characters in the order of their ids; those of the text by default.",
    )
    fingerprint: str | None = Field(
        None, description="Hash of the text of a run; resuming with another text is refused."
    )

    new_run_keys: ClassVar[frozenset[str]] = frozenset({"preset", "architecture"})

    def verify(self) -> Iterator[SettingsConflictError]:
        """Conflicts: preset and program, duplicate characters, a vocabulary for bytes."""
        yield from super().verify()
        # The settings of a run hold its preset and the program written from it.
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

    Settings: ClassVar[type[Experiment]] = LanguageModelSettings
    metadata_fields: ClassVar[Mapping[str, MetadataField]] = {
        "vocabulary": MetadataField(
            lambda value: value == "bytes" or TEXTS.accepts(value), 'a list of texts, or "bytes"'
        ),
        "data/ngram_overlap": NUMBER,
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

        # The network: the user's program, or a preset's.
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
        """Number of batches with as many characters as the training text."""
        return max(1, self.windows.windows_per_epoch // self.batch_size)

    def batch(self, index: int) -> Batch:
        """Windows at random positions of the training text."""
        return self.windows.sample_batch(index, self.batch_size, self.seed)

    def loss(self, model: Any, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean cross-entropy over all characters, in nats."""
        return self.criterion.compute(model.scores(batch["x"]), batch["y"]), {}

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Number of predicted characters."""
        return {"loss": float(batch["y"].numel())}

    def evaluate(self, model: Any) -> Scores:
        """Mean loss over fixed windows in nats and bits, with its standard error.

        `valid/standard_error` (nats) is computed from blocks of windows, because neighbouring
        windows are correlated. The loss of every window allows a paired comparison of two runs.
        Without label smoothing.
        """
        if not len(self.validation_starts):
            return {}
        device, losses = next(model.parameters()).device, []
        windows_per_batch = max(1, VALIDATION_BATCH_CHARACTERS // self.windows.context)
        for start in range(0, len(self.validation_starts), windows_per_batch):
            batch = self.windows.take(self.validation_starts[start : start + windows_per_batch])
            logits = model.scores(batch["x"].to(device)).float()
            token_losses = functional.cross_entropy(
                logits.transpose(1, 2), batch["y"].to(device), reduction="none"
            )
            losses.append(token_losses.double().mean(dim=1).cpu())
        window_losses = torch.cat(losses).numpy()
        loss, error, _ = compute_block_mean(window_losses)
        results = {
            "valid/loss": loss,
            "valid/bits": loss / math.log(2),
            WINDOW_LOSSES: window_losses,
        }
        return results if math.isnan(error) else {**results, "valid/standard_error": error}

    def probe_batch(self) -> Batch:
        """Windows whose attention is captured: validation windows, evenly spaced.

        The first windows of the text if none is held out.
        """
        count = self.experiment.tracking.probe_size
        if not len(self.validation_starts):
            count = min(count, self.windows.windows_per_epoch)
            return self.windows.take(np.arange(count) * self.windows.context)
        positions = np.linspace(
            0, len(self.validation_starts) - 1, min(count, len(self.validation_starts))
        )
        return self.windows.take(self.validation_starts[positions.astype(np.int64)])

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
        training text.
        """
        overlap = {} if self.overlap is None else {"data/ngram_overlap": self.overlap}
        return {"vocabulary": self.vocabulary.to_metadata(), **overlap}

    @classmethod
    def predict(cls, run: TrainedRun, source: str | bytes) -> Predictions:
        """Refused: a language model generates."""
        raise TaskError(
            f"{run.name} is a language model: generate text with `neural generate {run.name}`"
        )

    @classmethod
    def evaluate_run(cls, run: TrainedRun, **options: Any) -> Evaluation:
        """Loss on the held-out text; a note if it shares many n-grams with the training text."""
        scores = super().evaluate_run(run, **options)
        assert isinstance(scores, HeldOutScores)
        overlap = run.metadata("data/ngram_overlap")
        return replace(scores, notes=(*scores.notes, *format_overlap_note(run.name, overlap)))

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
    """The text of an experiment. For a resumed run, raises TaskError unless it is unchanged."""
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
