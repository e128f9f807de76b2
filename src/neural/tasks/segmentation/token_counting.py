"""Count the tokens of texts, with the tokenizer of any library or a function of the user.

    make_token_counter("words")                words between white space; see `WordCounter`
    make_token_counter("chars")                characters
    make_token_counter("tokenizer.json")       a file of Hugging Face's tokenizers
    make_token_counter(tokenizer)              of tokenizers, transformers, tiktoken, sentencepiece
    make_token_counter(lambda text: …)         a number of tokens, or a sequence of tokens

Special tokens that a tokenizer adds to every text are counted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.errors import TaskError

BUILT_IN_TOKENIZERS = ("words", "chars")
TOKENIZER_FILE = "tokenizer.json"
"""Name of the file in the folder of a model."""
_LAST_SPACE = 0x3000
"""The white space character with the largest code point."""
_IS_SPACE = np.array([chr(code).isspace() for code in range(_LAST_SPACE + 2)])
_SPACELESS_RANGES = (
    (0x0E00, 0x0FFF),  # Thai, Lao, Tibetan
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19FF),  # Tai Le, New Tai Lue, symbols of Khmer
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x2E80, 0x2FDF),  # radicals of Chinese
    (0x3005, 0x3007),  # 々 〆 〇
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31FF),
    (0x3400, 0x4DBF),  # Chinese characters
    (0x4E00, 0x9FFF),
    (0xA980, 0xA9FF),  # Javanese, Burmese
    (0xAA60, 0xAADF),  # Burmese, Tai Viet
    (0xF900, 0xFAFF),  # Chinese characters
    (0xFF66, 0xFF9F),  # Katakana of half width
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),  # rare Chinese characters
)
"""First and last code points of scripts that are written without spaces between words."""
_SPACELESS_EDGES = np.array([(low, high + 1) for low, high in _SPACELESS_RANGES]).ravel()


class TokenCounter(ABC):
    """Number of tokens of a text."""

    name: str
    """Used in messages."""

    @abstractmethod
    def count(self, text: str) -> int:
        """Tokens of a text."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Tokens of several texts; some tokenizers are faster so."""
        return [self.count(text) for text in texts]

    def measure(self, text: str, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Running counts at rising positions in a text, for counters whose counts add up.

        Returns (ends, starts), (positions,) each: text[a:b] has ends[b] − starts[a] tokens for any
        a < b of the positions. Neither ever falls. None if only `count` can tell.
        """
        return None


class CharacterCounter(TokenCounter):
    """Counts characters."""

    name = "chars"

    def count(self, text: str) -> int:
        """Characters of a text."""
        return len(text)

    def measure(self, text: str, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The positions themselves."""
        return positions, positions


class WordCounter(TokenCounter):
    """Counts words: runs of characters without white space.

    In scripts without spaces between words (Chinese, Japanese, Thai, Khmer …) every character is a
    word.
    """

    name = "words"

    def count(self, text: str) -> int:
        """Words of a text."""
        if text.isascii():
            return len(text.split())
        return int(self.measure(text, np.array([len(text)]))[0][0])

    def measure(self, text: str, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Words that begin before each position; a position inside a word begins another one."""
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        is_space = _IS_SPACE[np.minimum(codes, _LAST_SPACE + 1)]
        begins_word = ~is_space
        begins_word[1:] &= is_space[:-1]
        if len(codes) and codes.max() >= _SPACELESS_EDGES[0]:
            # An odd number of edges lies at or before the characters of these scripts.
            is_spaceless = np.searchsorted(_SPACELESS_EDGES, codes, "right") % 2 == 1
            begins_word |= is_spaceless
            begins_word[1:] |= is_spaceless[:-1] & ~is_space[1:]
        ends = np.concatenate([[0], np.cumsum(begins_word)])[positions]
        inside = (positions > 0) & (positions < len(text))
        is_inside_word = np.zeros(len(positions), bool)
        inner = positions[inside]
        is_inside_word[inside] = ~is_space[inner] & ~begins_word[inner]
        return ends, ends - is_inside_word


class FunctionCounter(TokenCounter):
    """Counts by a function of the user: text → number, or text → sequence of tokens.

    TaskError if the function fails or returns anything else.
    """

    def __init__(
        self,
        function: Callable[[str], Any],
        name: str,
        count_batch: Callable[[list[str]], list[int]] | None = None,
    ) -> None:
        self.name, self._function, self._count_batch = name, function, count_batch

    def count(self, text: str) -> int:
        """Tokens of a text; a number that is not an integer is rounded up."""
        try:
            tokens = self._function(text)
        except Exception as error:
            raise TaskError(
                f"the tokenizer {self.name} failed on a text of {len(text):,} characters: "
                f"{type(error).__name__}: {error}"
            ) from error
        count = _interpret_tokens(tokens)
        if count is None:
            raise TaskError(
                f"the tokenizer {self.name} returned {_shorten(tokens)} for a text of "
                f"{len(text):,} characters; it must return a number of tokens, 0 or more, or a "
                "sequence of tokens"
            )
        return count

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """In one call if the library can."""
        if self._count_batch is None:
            return super().count_many(texts)
        try:
            return self._count_batch(list(texts))
        except Exception as error:
            raise TaskError(
                f"the tokenizer {self.name} failed on {len(texts):,} texts: "
                f"{type(error).__name__}: {error}"
            ) from error


def make_token_counter(tokenizer: Any) -> TokenCounter:
    """Counter for a tokenizer of any kind; see the module. TaskError if it is none."""
    if isinstance(tokenizer, TokenCounter):
        return tokenizer
    if tokenizer == "words":
        return WordCounter()
    if tokenizer == "chars":
        return CharacterCounter()
    if isinstance(tokenizer, str | Path):
        return _load_tokenizer_file(tokenizer)
    name = getattr(tokenizer, "__name__", type(tokenizer).__name__)
    if hasattr(tokenizer, "encode_batch") and hasattr(tokenizer, "to_str"):
        return _count_with_tokenizers(type(tokenizer).from_str(tokenizer.to_str()), name)
    if hasattr(tokenizer, "encode_ordinary"):
        # tiktoken's `encode` refuses texts that contain the name of a special token.
        return FunctionCounter(tokenizer.encode_ordinary, name)
    if hasattr(tokenizer, "convert_ids_to_tokens") and callable(tokenizer):
        # transformers: not truncated, and no warning about a text longer than the model's limit.
        return FunctionCounter(
            lambda text: tokenizer(text, truncation=False, verbose=False)["input_ids"], name
        )
    if callable(getattr(tokenizer, "encode", None)):
        return FunctionCounter(tokenizer.encode, name)
    if callable(tokenizer):
        return FunctionCounter(tokenizer, name)
    raise TaskError(
        f"{_shorten(tokenizer)} is not a tokenizer: give `words`, `chars`, the path of a "
        "tokenizer.json, an object with `encode`, or a function from a text to its number of tokens"
    )


def _load_tokenizer_file(path: str | Path) -> TokenCounter:
    file = Path(path)
    if file.is_dir():
        file /= TOKENIZER_FILE
    if not file.is_file():
        raise TaskError(
            f"there is no tokenizer `{path}`: give `words`, `chars` or the path of a tokenizer.json"
        )
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise TaskError(
            f"{file.name} needs the package `tokenizers`: `pip install tokenizers`"
        ) from None
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the package raises plain exceptions
        raise TaskError(f"{path} is not a file of the package `tokenizers`: {error}") from None
    return _count_with_tokenizers(tokenizer, str(path))


def _count_with_tokenizers(tokenizer: Any, name: str) -> TokenCounter:
    """Counter of a `tokenizers.Tokenizer` that nobody else uses: its settings are changed."""
    # With truncation, no text would ever exceed a limit.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # The fast method computes no offsets; older versions lack it.
    encode_batch = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    return FunctionCounter(
        lambda text: tokenizer.encode(text).ids,
        name,
        count_batch=lambda texts: [len(encoding) for encoding in encode_batch(texts)],
    )


def _interpret_tokens(tokens: Any) -> int | None:
    """The number of tokens that a tokenizer has returned; None if it is not one."""
    if hasattr(tokens, "ids"):  # an encoding of the package tokenizers
        tokens = tokens.ids
    elif hasattr(tokens, "keys") and "input_ids" in tokens:
        tokens = tokens["input_ids"]
    if isinstance(tokens, str | bytes | bool):
        return None
    if isinstance(tokens, Sized):
        return len(tokens)
    try:
        number = float(tokens)
    except (TypeError, ValueError, OverflowError):
        return None
    return math.ceil(number) if math.isfinite(number) and number >= 0 else None


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
