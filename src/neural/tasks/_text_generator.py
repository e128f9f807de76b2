"""Text generation with a trained model: tokenizer, decoding, sampling.

Shared by tasks whose networks take and predict token ids.

generator = load_generator("runs/…")                # neural.workflows.generate
generator.generate("To be", 200, samples=3)         # three texts
for step in generator.stream("To be", 200): …       # one token of each sample per step
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from neural.core.errors import TaskError
from neural.data.text_encoding import ASCII_CHARACTERS, select_alphabet
from neural.nn.compiled_decoder import Precision
from neural.nn.generation import DecoderName, create_decoder, generate_tokens
from neural.nn.lazy_torch import torch
from neural.nn.sampling import DecodingError, Sampler, TokenDecoder
from neural.tasks.task import TrainedRun

if TYPE_CHECKING:
    from neural.nn.build import NetworkModule

SAMPLE_BATCH_SIZE = 32
"""Samples that are generated in one batch."""


@dataclass(frozen=True)
class CharacterTokenizer:
    """Maps characters, or bytes, to token ids."""

    characters: tuple[str, ...] | None
    """Character of each id. None if tokens are bytes: the id is the value of the byte."""
    pad: int | None = None
    """Id that is reserved for padding: characters from this index on have an id one higher."""

    @property
    def vocab_size(self) -> int:
        """Number of ids, with the padding id."""
        size = 256 if self.characters is None else len(self.characters)
        return size + (self.pad is not None and self.pad <= size)

    def encode(self, text: str) -> list[int]:
        """Ids of a text. TaskError names the first character that is not in the vocabulary."""
        if self.characters is None:
            ids = list(text.encode("utf-8", errors="surrogateescape"))
        else:
            id_by_character = {character: token for token, character in enumerate(self.characters)}
            for position, character in enumerate(text):
                if character not in id_by_character:
                    raise TaskError(
                        f"character {position + 1} of the prompt, {character!r}, does not occur in "
                        f"the training text; the vocabulary has {len(id_by_character)} characters: "
                        f"{''.join(self.characters)!r}"
                    )
            ids = [id_by_character[character] for character in text]
        return ids if self.pad is None else [token + (token >= self.pad) for token in ids]

    def create_decoder(self) -> Callable[[int], str]:
        """Create a function that maps the ids of a text, one per call in order, to characters.

        If tokens are bytes, it returns "" until all bytes of a character have been passed.
        """
        utf8_decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

        def decode(token: int) -> str:
            if self.pad is not None:
                if token == self.pad:
                    return ""
                token -= token > self.pad
            if self.characters is None:
                return utf8_decoder.decode(bytes([token]))
            return self.characters[token]

        return decode


class GenerationStep(NamedTuple):
    """One generated token of every sample."""

    ids: np.ndarray
    """(samples,)"""
    texts: list[str]
    """Text that each id adds to its sample."""
    window_start: int
    """Position in the text at which the context window starts."""
    attention: dict[str, np.ndarray]
    """Attention weights of the last position, (samples, heads, keys) per layer, newest key last."""


@dataclass(frozen=True)
class TextGenerator:
    """Generates text with a trained model."""

    model: NetworkModule
    tokenizer: CharacterTokenizer

    def create_decoder(
        self,
        *,
        context: int | None = None,
        decoder: DecoderName = "auto",
        precision: Precision | Literal["auto"] = "auto",
        capture_attention: bool = False,
    ) -> TokenDecoder:
        """Create the decoder; see `neural.nn.generation.create_decoder` for the choices."""
        try:
            return create_decoder(
                self.model,
                context=context,
                decoder=decoder,
                precision=precision,
                capture_weights=capture_attention,
            )
        except DecodingError as error:
            raise TaskError(str(error)) from None

    def encode_prompt(self, text: str | None) -> tuple[str, list[int]]:
        """The prompt and its ids.

        The default prompt is a newline. If the vocabulary has no newline, it is the first character
        of the vocabulary.
        """
        if text == "":
            raise TaskError("the prompt is empty: it needs at least one character")
        if text is None:
            known = self.tokenizer.characters
            text = "\n" if known is None or "\n" in known else next(filter(None, known))
        return text, self.tokenizer.encode(text)

    def stream(
        self,
        prompt: str | None,
        tokens: int,
        *,
        samples: int = 1,
        first_sample_index: int = 0,
        temperature: float = 0.8,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        capture_attention: bool = False,
        decoder: TokenDecoder | None = None,
    ) -> Iterator[GenerationStep]:
        """Yield `tokens` steps, each with the next token of all samples.

        Samples are numbered from `first_sample_index` on. The same seed and sample number give the
        same text, whatever other samples are in the batch.
        """
        decoder = decoder or self.create_decoder(capture_attention=capture_attention)
        _, ids = self.encode_prompt(prompt)
        sampler = Sampler(
            samples,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            first_sample_index=first_sample_index,
            vocab_size=self.tokenizer.vocab_size,
        )
        device = next(self.model.parameters()).device
        prompt_ids = torch.tensor([ids] * samples, device=device)
        decoders = [self.tokenizer.create_decoder() for _ in range(samples)]
        for step in generate_tokens(
            decoder, prompt_ids, tokens, sampler, capture_weights=capture_attention
        ):
            texts = [decode(int(token)) for decode, token in zip(decoders, step.ids, strict=True)]
            yield GenerationStep(step.ids, texts, step.window_start, step.attention_weights)

    def generate(
        self, prompt: str | None, tokens: int, *, samples: int = 1, **options: Any
    ) -> list[str]:
        """Generate samples, without the prompt; `options` are those of `stream`."""
        generated: list[str] = []
        # one decoder for all batches
        options["decoder"] = options.get("decoder") or self.create_decoder()
        for first in range(0, samples, SAMPLE_BATCH_SIZE):
            count = min(SAMPLE_BATCH_SIZE, samples - first)
            steps = list(
                self.stream(prompt, tokens, samples=count, first_sample_index=first, **options)
            )
            generated += ["".join(step.texts[index] for step in steps) for index in range(count)]
        return generated


def load_text_generator(run: TrainedRun) -> TextGenerator:
    """Load the generator of a run. Raises TaskError if its network does not take token ids."""
    model: Any = run.load_model()
    network = getattr(model, "network", None)
    if network is None or not network.takes_token_ids:
        raise TaskError(
            f"{run.name} is a run of `{run.settings.get('task')}`: it generates no text; "
            "name a run of `language_model`"
        )
    return TextGenerator(model, load_tokenizer(run, model))


def load_tokenizer(run: TrainedRun, model: NetworkModule) -> CharacterTokenizer:
    """Create the tokenizer from the vocabulary in the run's metadata or settings.

    Runs of the task `supervised` store no vocabulary: their text is encoded with a fixed alphabet.
    """
    vocabulary = run.metadata("vocabulary")
    if vocabulary is None and (
        run.settings.get("vocabulary") or run.settings.get("units") == "bytes"
    ):
        vocabulary = (
            "bytes" if run.settings.get("units") == "bytes" else list(run.settings["vocabulary"])
        )
    if vocabulary is not None:
        tokenizer = CharacterTokenizer(None if vocabulary == "bytes" else tuple(vocabulary))
    else:
        alphabet = select_alphabet(model.network, run.name)
        tokenizer = CharacterTokenizer(
            None if alphabet.size == 256 else tuple(ASCII_CHARACTERS), alphabet.pad_id
        )
    classes = int(model.network.output[-1])
    if tokenizer.vocab_size > classes:
        raise TaskError(
            f"{run.name} has {tokenizer.vocab_size} characters, but its network has {classes} "
            "classes"
        )
    return tokenizer
