"""Text from a trained run: its network, its characters, and what each new one looked at.

    writer = writer_of("runs/…")
    writer.write("To be", 200, samples=3)           three texts
    for new in writer.stream("To be", 200): …       character by character
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from neural.experiments import best_model
from neural.modules.continuation import Way, continued, decoding_of
from neural.modules.decoding import CannotDecode, Decoding
from neural.modules.late import torch
from neural.modules.packed import Precision
from neural.modules.sampling import Sampler
from neural.tasks.data.alphabet import CHARACTERS, alphabet_of
from neural.tasks.task import TaskError
from neural.tracking.run import Run

if TYPE_CHECKING:
    from neural.modules.build import Built

AT_ONCE = 32
"""Samples that are written together."""


@dataclass(frozen=True)
class Letters:
    """Which id stands for which character, or byte."""

    characters: tuple[str, ...] | None
    """By id; None: bytes, which are their own ids."""
    pad: int | None = None
    """An id that stands for nothing; those behind it have moved up by one."""

    @property
    def count(self) -> int:
        """How many ids there are."""
        size = 256 if self.characters is None else len(self.characters)
        return size + (self.pad is not None and self.pad <= size)

    def encode(self, text: str) -> list[int]:
        """The ids of a text; TaskError names a character that was never seen in training, and its position."""
        if self.characters is None:
            ids = list(text.encode("utf-8", errors="surrogateescape"))
        else:
            known = {character: number for number, character in enumerate(self.characters)}
            for place, one in enumerate(text):
                if one not in known:
                    raise TaskError(
                        f"character {place + 1} of the prompt, {one!r}, does not occur in what the network was "
                        f"trained on; it knows {len(known)}: {''.join(self.characters)!r}"
                    )
            ids = [known[one] for one in text]
        return ids if self.pad is None else [one + (one >= self.pad) for one in ids]

    def reader(self) -> Callable[[int], str]:
        """From ids to text, one after the other; a character of several bytes comes with its last one."""
        whole = codecs.getincrementaldecoder("utf-8")(errors="replace")

        def read(number: int) -> str:
            if self.pad is not None:
                if number == self.pad:
                    return ""
                number -= number > self.pad
            return whole.decode(bytes([number])) if self.characters is None else self.characters[number]

        return read


class New(NamedTuple):
    """One step of all samples."""

    ids: np.ndarray
    text: list[str]
    """What each id adds to its sample's text."""
    first: int
    """Where in the text the window began."""
    seen: dict[str, np.ndarray]
    """What the position before looked at: (samples, heads, keys) by attention, the newest key last."""


@dataclass(frozen=True)
class Writer:
    """A network that writes."""

    model: Built
    letters: Letters

    def decoding(
        self, *, context: int | None = None, way: Way = "auto", precision: Precision | Literal["auto"] = "auto",
        watched: bool = False,
    ) -> Decoding:  # fmt: skip
        """How it is done; `neural.modules.continuation.decoding_of` says what can be chosen."""
        try:
            return decoding_of(self.model, context=context, way=way, precision=precision, watched=watched)
        except CannotDecode as why:
            raise TaskError(str(why)) from None

    def prompt(self, text: str | None) -> tuple[str, list[int]]:
        """A text to begin with and its ids; without one, a new line, or the first character there is."""
        if text == "":
            raise TaskError("the prompt is empty: the network needs a character to go on from")
        if text is None:
            known = self.letters.characters
            text = "\n" if known is None or "\n" in known else next(one for one in known if one)
        return text, self.letters.encode(text)

    def stream(
        self, prompt: str | None, tokens: int, *, samples: int = 1, first: int = 0, temperature: float = 0.8,
        top_k: int | None = None, top_p: float | None = None, seed: int = 0, watched: bool = False,
        decoding: Decoding | None = None,
    ) -> Iterator[New]:  # fmt: skip
        """New characters of some samples, as they come; the first of them has the number `first`.

        The same seed and number give the same text, whatever is written beside it.
        """
        decoding = decoding or self.decoding(watched=watched)
        _, ids = self.prompt(prompt)
        sampler = Sampler(
            samples, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed, first=first, among=self.letters.count
        )
        device = next(self.model.parameters()).device
        begin = torch.tensor([ids] * samples, device=device)
        readers = [self.letters.reader() for _ in range(samples)]
        for drawn in continued(decoding, begin, tokens, sampler, watched=watched):
            text = [read(int(one)) for read, one in zip(readers, drawn.ids, strict=True)]
            yield New(drawn.ids, text, drawn.first, drawn.seen)

    def write(self, prompt: str | None, tokens: int, *, samples: int = 1, **how: Any) -> list[str]:
        """Whole samples, without the prompt; `how` is what `stream` takes."""
        written: list[str] = []
        how.setdefault("decoding", None)
        how["decoding"] = how["decoding"] or self.decoding()
        for first in range(0, samples, AT_ONCE):
            some = min(AT_ONCE, samples - first)
            news = list(self.stream(prompt, tokens, samples=some, first=first, **how))
            written += ["".join(new.text[number] for new in news) for number in range(some)]
        return written


def writer_of(run: str | Path | Run) -> Writer:
    """The network of a run with its best weights, and its characters."""
    run = run if isinstance(run, Run) else Run.open(run)
    model: Any = best_model(run.path)
    if not getattr(getattr(model, "network", None), "ids", False):
        kind = run.settings.get("task")
        raise TaskError(f"{run.name} is a run of `{kind}`: it does not write; name one of `language_model`")
    return Writer(model, letters_of(run, model))


def letters_of(run: Run, model: Built) -> Letters:
    """As the run describes them, or its settings; else the fixed ones of the task `supervised`."""
    said = run.described("vocabulary")
    if said is None and (run.settings.get("vocabulary") or run.settings.get("units") == "bytes"):
        said = "bytes" if run.settings.get("units") == "bytes" else list(run.settings["vocabulary"])
    if said is not None:
        letters = Letters(None if said == "bytes" else tuple(said))
    else:
        alphabet = alphabet_of(model.network, run.name)
        letters = Letters(None if alphabet.count == 256 else tuple(CHARACTERS), alphabet.pad)
    gives = int(model.network.output[-1])
    if letters.count > gives:
        raise TaskError(f"{run.name} knows {letters.count} characters, but its network chooses among {gives}")
    return letters
