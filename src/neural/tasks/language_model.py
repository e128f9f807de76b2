"""What comes next? A network reads a text and predicts, at every place, the character that follows.

Training takes windows from anywhere in the first part of the text; validation takes fixed ones that cover the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.core.diagnostics import Source
from neural.core.mistakes import Contradiction
from neural.modules.late import functional, torch
from neural.tasks._encoded import Encoded, encoded
from neural.tasks._presets import SIZES, Architecture, Preset, program_of
from neural.tasks._program import ProgramTask, checked, loss_of, own_training, program_source
from neural.tasks._reader import check_causal, check_network, context_of
from neural.tasks._text import Text, Units, find_text
from neural.tasks._text_overlap import overlap_note, shared_ngrams
from neural.tasks._vocabulary import Vocabulary
from neural.tasks._windows import PUBLISHED, Windows
from neural.tasks.block_means import block_mean
from neural.tasks.experiment import Count, Experiment, Interval
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.language.network import Network
    from neural.tasks.task import Batch, Scores

HELD_OUT = 0.1
CHARACTERS_AT_ONCE = 1 << 13
"""In a validation."""
WINDOW_LOSSES = "valid/window_losses"
"""An array of a validation: the loss of every window, in the order of the text."""


class LanguageModelSettings(Experiment):
    """A text, a network by preset or by program, and how to train; what is left out is as the program says."""

    task: str = Field("language_model", description="What is learned: a name of `neural.tasks`.")
    data: str | None = Field(
        None, description="A text file, a folder of them, or `handbook`, `shakespeare_char`, `enwik8`, `text8`; "
        "`handbook` if nothing is said.",
    )  # fmt: skip
    units: Units | None = Field(
        None, description="What is predicted: characters if not said, but bytes for enwik8."
    )
    context: Count | None = Field(None, description="Characters that are looked at, at most; the preset's if not said.")
    preset: Preset = Field("tiny", description="How large, and how long to train.")
    architecture: Architecture = Field("modern", description="GPT-2's parts, or what later work put in their place.")
    network: str | None = Field(None, min_length=1, description="A program of one's own, in place of a preset.")
    network_name: str | None = Field(None, description="Which network of the program, where it has several.")
    validation_split: float | None = Field(
        None, ge=0, lt=1, description="Share of the text held out, at its end; 0.1 if not said."
    )
    validation_windows: Interval = Field(512, description="Windows that a validation looks at, at most; 0 is all.")
    vocabulary: str | None = Field(
        None, min_length=1, description="The characters in the order of their ids; those of the text if not given."
    )
    fingerprint: str | None = Field(None, description="Of the text that a run was begun with; another is refused.")

    set_at_start: ClassVar[frozenset[str]] = frozenset({"preset", "architecture"})

    def verify(self) -> Iterator[Contradiction]:
        """A preset or a program; every character has one id; bytes have theirs already."""
        yield from super().verify()
        is_run = self.fingerprint is not None   # with its preset beside the program made of it
        for key in sorted(self.set_at_start & self.model_fields_set):
            if self.network is not None and not is_run:
                ignored = f"`network` stands in place of a preset, so `{key}` would have no effect"
                yield Contradiction(ignored, key, "network", help="leave out one of them")
        if self.vocabulary is not None and self.units == "bytes":
            yield Contradiction("bytes need no vocabulary", "vocabulary", "units")
        if self.vocabulary is not None and len(set(self.vocabulary)) < len(self.vocabulary):
            twice = next(one for one in self.vocabulary if self.vocabulary.count(one) > 1)
            yield Contradiction(f"{twice!r} stands in it twice", "vocabulary")


class LanguageModel(ProgramTask):
    """Learn to write on: which character follows, given those before it."""

    Settings: ClassVar[type[Experiment]] = LanguageModelSettings

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        assert isinstance(experiment, LanguageModelSettings)
        own: Network | None = None
        if experiment.network is not None:
            self.source = program_source(experiment.network, folder)
            own = checked(self.source, catalogue, experiment.network_name)
        text, found = text_of(experiment, own, folder)
        self.vocabulary = Vocabulary.of(found, experiment.vocabulary, text.name)

        # windows of the text: as long as the network takes, or the preset says
        share = experiment.validation_split
        if share is None and len(found.ids) not in PUBLISHED:
            share = own.train.validation_split if own else HELD_OUT
        if own is not None:
            check_network(own, self.vocabulary.size, text.name)
        context = context_of(own, experiment.context) if own else experiment.context or SIZES[experiment.preset].context
        self.windows = Windows(found.ids, self.vocabulary.table, context, share, text.name)

        # the network: one's own, or a preset's
        if own is None:
            length = {"steps": steps_of(experiment, self.windows), "warm_up": experiment.training.warmup_steps}
            kind = (experiment.preset, experiment.architecture)
            self.source = Source("the program", program_of(*kind, self.vocabulary.size, context, **length))
            own = checked(self.source, catalogue, None)
        else:
            check_causal(own, context)
        self.network = own
        training = own_training(experiment.training, own)
        self.criterion = loss_of(own, training.label_smoothing)
        self.size, self.seed = training.batch_size, training.seed
        resolved = {
            "training": training, "network": self.source.text, "data": text.said, "units": text.units,
            "context": context, "validation_split": share, "name": experiment.name or own.name[:80],
            "vocabulary": self.vocabulary.characters, "fingerprint": found.fingerprint,
        }  # fmt: skip
        super().__init__(experiment.model_copy(update=resolved), folder, catalogue)
        self.judged = self.windows.fixed(experiment.validation_windows)
        self.overlap: float | None = None   # of a run that goes on, the run knows it
        if experiment.fingerprint is None:
            self.overlap = shared_ngrams(found.ids, self.windows.end, self.windows.last)
        notes = (*remarks(found, self.windows.end, text.name), *overlap_note(text.name, self.overlap))
        self.remarks = (*text.remarks, *notes)

    @property
    def epoch(self) -> int:
        """Batches with as many characters as there are to learn."""
        return max(1, self.windows.epoch // self.size)

    def batch(self, index: int) -> Batch:
        """Windows from anywhere in what is learned."""
        return self.windows.draw(index, self.size, self.seed)

    def loss(self, model: Any, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean over all characters, in nats."""
        return self.criterion.measure(model.scores(batch["x"]), batch["y"]), {}

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Characters that are predicted."""
        return {"loss": float(batch["y"].numel())}

    def evaluate(self, model: Any) -> Scores:
        """The exact mean over fixed windows, in nats and in bits, and how far it may be off.

        `valid/standard_error` is that of the mean, in nats, by long blocks of windows: neighbouring ones are alike. The
        loss of every window comes along, so that two runs can be compared window by window. Labels are never smoothed.
        """
        if not len(self.judged):
            return {}
        device, losses = next(model.parameters()).device, []
        at_once = max(1, CHARACTERS_AT_ONCE // self.windows.context)
        for start in range(0, len(self.judged), at_once):
            batch = self.windows.take(self.judged[start : start + at_once])
            scores = model.scores(batch["x"].to(device)).float()
            each = functional.cross_entropy(scores.transpose(1, 2), batch["y"].to(device), reduction="none")
            losses.append(each.double().mean(dim=1).cpu())
        windows = torch.cat(losses).numpy()
        loss, error, _ = block_mean(windows)
        scores = {"valid/loss": loss, "valid/bits": loss / math.log(2), WINDOW_LOSSES: windows}
        return scores if math.isnan(error) else {**scores, "valid/standard_error": error}

    def probe(self) -> Batch:
        """Windows held out, spread over all of them; the first ones of the text where none is."""
        count = self.experiment.tracking.probe_size
        if not len(self.judged):
            count = min(count, self.windows.epoch)
            return self.windows.take(np.arange(count) * self.windows.context)
        places = np.linspace(0, len(self.judged) - 1, min(count, len(self.judged)))
        return self.windows.take(self.judged[places.astype(np.int64)])

    def look(self, model: Any, batch: Batch) -> Tensor:
        """One forward pass."""
        return model(batch["x"])

    def tokens(self, batch: Batch) -> Tensor:
        """The ids."""
        return batch["x"]

    def labels(self, batch: Batch) -> list[list[str]]:
        """The characters."""
        return [[self.vocabulary.label(one) for one in row] for row in batch["x"].tolist()]

    def facts(self) -> dict[str, Any]:
        """What a run must know to be read without the text: `vocabulary`, a list of characters, or "bytes".

        `data/shared_ngrams` is the share of the text held out that stands in the training text as well.
        """
        overlap = {} if self.overlap is None else {"data/shared_ngrams": self.overlap}
        return {"vocabulary": self.vocabulary.written(), **overlap}

    @classmethod
    def tiny(cls, folder: Path, catalogue: Catalogue) -> LanguageModel:
        """Numbers in words, without an end."""
        words = ["one", "two", "three", "four", "five", "six", "seven"]
        text = " ".join(words[number * number % 7] for number in range(90))
        (folder / "numbers.txt").write_text(text, encoding="utf-8")
        return cls(LanguageModelSettings(network=TINY, data="numbers.txt"), folder, catalogue)


def text_of(experiment: LanguageModelSettings, network: Network | None, folder: Path) -> tuple[Text, Encoded]:
    """The text that is learned; of a run that goes on, the same as before or none."""
    data, begun = experiment.data or (network.train.data if network else None) or "handbook", experiment.fingerprint
    try:
        text = find_text(data, folder, experiment.units)
        found = encoded(text)
    except TaskError as problem:
        raise TaskError(f"the text that the run was begun with is gone: {problem}" if begun else str(problem)) from None
    if begun is not None and found.fingerprint != begun:
        raise TaskError(
            f"{text.name} is not the text any more that the run was begun with: its contents changed; "
            "put the old one back, or begin a new run"
        )
    return text, found


def steps_of(experiment: LanguageModelSettings, windows: Windows) -> int | None:
    """How many steps the experiment asks for; None where it leaves that to the preset."""
    said = experiment.training
    if not said.model_fields_set & {"steps", "epochs"}:
        return None
    usual, _ = SIZES[experiment.preset].length(experiment.architecture)
    size = said.batch_size if "batch_size" in said.model_fields_set else usual
    return said.total_steps(max(1, windows.epoch // size))


def remarks(found: Encoded, end: int, where: str) -> list[str]:
    """What is worth knowing before training."""
    first = zip(found.characters or "", found.first_seen, strict=True)
    late = [one for one, place in first if place >= end]
    if not late:
        return []
    shown = " ".join(map(repr, late[:5])) + (f" and {len(late) - 5} more" if len(late) > 5 else "")
    return [f"{where}: only in what is held out, so never learned: {shown}"]


TINY = """network Tiny {
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
