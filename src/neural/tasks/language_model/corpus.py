"""Text of a language model: a dataset name, a file, or a folder of files, read in chunks.

A token is a character or a byte (`Units`). Texts of 16 MiB or more are encoded once into a
memory-mapped cache file; their token ids are never in memory as a whole.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neural.core.errors import TaskError, describe_os_error
from neural.core.files import open_atomic, write_atomically
from neural.data.downloads import DOWNLOADS, cache_folder, fetch
from neural.data.loading import locate_data
from neural.data.sources.handbook import read_handbook
from neural.data.text_encoding import VISIBLE_WHITESPACE

MIN_CACHED_BYTES = 1 << 24
"""Texts of this size or more are encoded into a cache on disk."""
UNICODE_CODE_POINTS = 0x110000


@dataclass(frozen=True)
class EncodedText:
    """Token ids of a text and their characters."""

    ids: np.ndarray
    """uint8 for at most 256 different ids, else wider; memory-mapped if the text is long."""
    characters: str | None
    """Characters by id, sorted by code point; None if ids are bytes."""
    first_seen: tuple[int, ...]
    """Index in the text of the first occurrence of each character, by id; empty for bytes."""
    fingerprint: str
    """Hash of units, characters and ids, in hex."""


def encode_text(text: TextCorpus) -> EncodedText:
    """Encode a text. Raises TaskError if it is unreadable, empty, or changes while it is read."""
    stats = text.file_stats()
    is_long = text.num_bytes >= MIN_CACHED_BYTES
    encoded = _load_cached(text, stats) if is_long else None
    if encoded is None:
        encoded = _encode_to_cache(text, stats) if is_long else _encode_in_memory(text)
        if text.file_stats() != stats:
            raise TaskError(f"{text.name} changed while it was read; start again")
    if not len(encoded.ids):
        raise TaskError(f"{text.name} is empty: there is nothing to learn")
    return encoded


class _TextEncoder:
    """Two-pass encoder: collects the characters of a text, then yields its ids.

    `count` is the number of ids, `dtype` the smallest integer type that holds them.
    """

    def __init__(self, text: TextCorpus) -> None:
        self.text, self.dtype, self.count = text, np.dtype(np.uint8), text.num_bytes
        self.first_seen: dict[int, int] = {}
        """Position in the text of the first occurrence of each code point, sorted by code point."""
        self.characters: str | None = None
        if text.units == "characters":
            self.count, self.first_seen = _scan_characters(text.iter_codes())
            self.dtype = np.min_scalar_type(max(0, len(self.first_seen) - 1))
            self.characters = "".join(map(chr, self.first_seen))
        self.digest = blake2b(f"{text.units} {self.characters}".encode(), digest_size=16)

    def ids(self) -> Iterator[np.ndarray]:
        """Ids, chunk by chunk."""
        # Table from code points to ids. For bytes it is the identity: their values are the ids.
        id_by_code = np.zeros(UNICODE_CODE_POINTS if self.first_seen else 256, dtype=self.dtype)
        id_by_code[list(self.first_seen) or slice(None)] = np.arange(len(self.first_seen) or 256)
        for codes in self.text.iter_codes():
            chunk = id_by_code[codes]
            self.digest.update(chunk.data)
            yield chunk

    def metadata(self) -> dict[str, Any]:
        """What the cache stores beside the ids. Call it after consuming `ids()`, which hashes."""
        first_seen = list(self.first_seen.values())
        fields = {"count": self.count, "characters": self.characters, "first_seen": first_seen}
        return {**fields, "fingerprint": self.digest.hexdigest()}


def _scan_characters(codes: Iterator[np.ndarray]) -> tuple[int, dict[int, int]]:
    """Length of a text, and the first position of each code point."""
    count, first_seen, is_known = 0, {}, np.zeros(UNICODE_CODE_POINTS, dtype=bool)
    for chunk in codes:
        positions = np.flatnonzero(~is_known[chunk])
        if len(positions):
            new_codes, index = np.unique(chunk[positions], return_index=True)
            first_seen |= zip(new_codes.tolist(), (count + positions[index]).tolist(), strict=True)
            is_known[new_codes] = True
        count += len(chunk)
    return count, dict(sorted(first_seen.items()))


def _encode_in_memory(text: TextCorpus) -> EncodedText:
    encoder = _TextEncoder(text)
    ids = np.concatenate([np.zeros(0, dtype=encoder.dtype), *encoder.ids()])
    return _create_encoded_text(ids, encoder.metadata())


def _encode_to_cache(text: TextCorpus, file_stats: FileStats) -> EncodedText:
    encoder = _TextEncoder(text)
    path, metadata_path = _cache_paths(text)
    header = {
        "descr": np.lib.format.dtype_to_descr(encoder.dtype),
        "fortran_order": False,
        "shape": (encoder.count,),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path) as file:
            np.lib.format.write_array_header_1_0(file, header)
            for chunk in encoder.ids():
                file.write(chunk.data)
        write_atomically(metadata_path, json.dumps({"state": file_stats, **encoder.metadata()}))
    except OSError as error:
        raise TaskError(
            f"{text.name} cannot be cached in {path.parent}: {error.strerror or error}; "
            "set NEURAL_CACHE to another folder"
        ) from None
    encoded = _map_cached(path, encoder.metadata())
    if encoded is None:
        raise TaskError(f"{text.name} changed while it was read; start again")
    return encoded


def _load_cached(text: TextCorpus, file_stats: FileStats) -> EncodedText | None:
    """Ids cached by an earlier run, if the text has not changed since."""
    path, metadata_path = _cache_paths(text)
    try:
        metadata = json.loads(metadata_path.read_text(encoding="utf-8"))
        return (
            _map_cached(path, metadata)
            if metadata["state"] == [list(stat) for stat in file_stats]
            else None
        )
    except (OSError, ValueError, LookupError, TypeError):  # missing, damaged, or another version
        return None


def _map_cached(path: Path, metadata: dict[str, Any]) -> EncodedText | None:
    try:
        ids = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, EOFError):
        return None
    return _create_encoded_text(ids, metadata) if len(ids) == metadata["count"] else None


def _create_encoded_text(ids: np.ndarray, metadata: dict[str, Any]) -> EncodedText:
    return EncodedText(
        ids, metadata["characters"], tuple(metadata["first_seen"]), metadata["fingerprint"]
    )


def _cache_paths(text: TextCorpus) -> tuple[Path, Path]:
    """Files of the ids and of their metadata."""
    name = blake2b(f"{text.units} {text.data_setting}".encode(), digest_size=10).hexdigest()
    folder = cache_folder() / "texts"
    return folder / f"{name}.npy", folder / f"{name}.json"


Units = Literal["characters", "bytes"]
"""What one token is."""
FileStats = list[tuple[str, int, int]]
"""(path, size in bytes, modification time in ns) of each part (file) of a text."""
KNOWN_TEXTS = ("handbook", *DOWNLOADS)
"""Dataset names: "handbook" (the topics of Python's `help()`), and texts to download."""
BYTE_TEXTS = ("enwik8",)
"""Texts that are read as bytes by default, as in published results."""
SEPARATOR = b"\n\n"
"""Text between two files of a folder: a blank line."""
READ_CHUNK_BYTES = 1 << 22
"""Bytes read at once."""
BINARY_CHECK_BYTES = 8000
"""A file with a zero byte among its first bytes, this many, is binary (the rule of git)."""


@dataclass(frozen=True)
class TextCorpus:
    """A text from one or several files, or from memory."""

    name: str
    """Name in messages."""
    data_setting: str
    """Value of the `data` setting; absolute, so that it works from any folder."""
    units: Units
    parts: tuple[Path | bytes, ...]
    """Files in reading order, or contents in memory."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each."""

    @property
    def num_bytes(self) -> int:
        """Size of the text in bytes."""
        return sum(size for _, size, _ in self.file_stats()) + len(SEPARATOR) * (
            len(self.parts) - 1
        )

    def file_stats(self) -> FileStats:
        """Stats of every part; unchanged stats mean an unchanged text."""
        stats: FileStats = []
        for part in self.parts:
            if isinstance(part, bytes):
                stats.append(("", len(part), 0))
                continue
            try:
                stat = part.stat()
            except OSError as error:
                raise _read_error(part, error) from None
            stats.append((str(part), stat.st_size, stat.st_mtime_ns))
        return stats

    def iter_codes(self) -> Iterator[np.ndarray]:
        """Chunks of bytes, or of code points with line ends normalised to `\\n`."""
        for index, part in enumerate(self.parts):
            chunks = _read_chunks(part)
            if index:
                yield from (
                    _decode_bytes(iter([SEPARATOR]))
                    if self.units == "bytes"
                    else _decode_characters(iter([SEPARATOR]), "")
                )
            yield from (
                _decode_bytes(chunks)
                if self.units == "bytes"
                else _decode_characters(chunks, self._part_name(part))
            )

    def _part_name(self, part: Path | bytes) -> str:
        """Name of a part in messages."""
        if isinstance(part, bytes) or len(self.parts) == 1:
            return self.name
        return f"{self.name}/{part.relative_to(self.data_setting).as_posix()}"


def find_text(data: str, folder: Path, units: Units | None) -> TextCorpus:
    """Find the text that the setting `data` names. Raises TaskError if there is none.

    Relative paths start at `folder`. If `units` is None, tokens are bytes for BYTE_TEXTS and
    characters for other texts.
    """
    location = locate_data(data, folder)
    if isinstance(location, str):
        if location not in KNOWN_TEXTS:
            raise TaskError(
                f"`{location}` is not a text; known texts are {', '.join(KNOWN_TEXTS)}; "
                f"`./{location}` is a file"
            )
        units = units or ("bytes" if location in BYTE_TEXTS else "characters")
        source = read_handbook().encode() if location == "handbook" else fetch(location)
        return TextCorpus(location, location, units, (source,))
    assert isinstance(location, Path)
    units = units or "characters"
    if not location.is_dir():
        return TextCorpus(location.name, str(location), units, (location,))
    files = sorted(
        path
        for path in location.rglob("*")
        if path.is_file()
        and not any(name.startswith(".") for name in path.relative_to(location).parts)
    )
    binary_files = [path for path in files if units == "characters" and _is_binary(path)]
    text_files = tuple(path for path in files if path not in set(binary_files))
    if not text_files:
        raise TaskError(
            f"{location.name} has no text files"
            + (f", only {_format_file_names(binary_files)}" if binary_files else "")
        )
    notes = (
        (f"{location.name}: {_format_file_names(binary_files)} ignored: not text",)
        if binary_files
        else ()
    )
    return TextCorpus(location.name, str(location), units, text_files, notes)


def _read_chunks(part: Path | bytes) -> Iterator[bytes]:
    if isinstance(part, bytes):
        yield part
        return
    try:
        with part.open("rb") as file:
            while chunk := file.read(READ_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise _read_error(part, error) from None


def _decode_bytes(chunks: Iterator[bytes]) -> Iterator[np.ndarray]:
    for chunk in chunks:
        yield np.frombuffer(chunk, dtype=np.uint8)


def _decode_characters(chunks: Iterator[bytes], name: str) -> Iterator[np.ndarray]:
    """Code points of UTF-8 chunks; `name` is the text's name in error messages."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    newline_decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
    bytes_read = 0
    for chunk in chain(chunks, [b""]):
        # Subtract the bytes of a character that began in the previous chunk.
        offset = bytes_read - len(decoder.getstate()[0])
        try:
            text = newline_decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise _utf8_error(name, error, offset) from None
        if offset == 0:
            text = text.removeprefix("\ufeff")  # byte order mark
        bytes_read += len(chunk)
        yield np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


def _utf8_error(name: str, error: UnicodeDecodeError, offset: int) -> TaskError:
    """Create the error message; `offset` is the index in the file of the first decoded byte."""
    position, value = offset + error.start, error.object[error.start]
    is_utf16 = offset == 0 and error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    problem = "is UTF-16" if is_utf16 else f"is not UTF-8: byte {position:,} is 0x{value:02x}"
    encoding = "utf-16" if is_utf16 else "cp1252"  # cp1252: the usual one of older Windows files
    return TaskError(
        f"{name} {problem}; save it as UTF-8, such as with `iconv -f {encoding} -t utf-8`, or write "
        "`units: bytes` (`--set units=bytes`) to learn its bytes"
    )


def _is_binary(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return b"\0" in stream.read(BINARY_CHECK_BYTES)
    except OSError as error:
        raise _read_error(file, error) from None


def _format_file_names(files: list[Path]) -> str:
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(path.name for path in files[:3]) + more


def _read_error(path: Path, error: OSError) -> TaskError:
    return TaskError(f"{path} cannot be read: {describe_os_error(error)}")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The characters of a network's token ids; or bytes, whose values are the ids."""

    characters: str | None
    """Characters by id; None for bytes."""
    id_table: np.ndarray
    """Id of the network for each id of the encoded text; the setting `vocabulary` may reorder."""

    @classmethod
    def from_text(cls, text: EncodedText, requested: str | None, data_name: str) -> Vocabulary:
        """Create the vocabulary from the setting `vocabulary`; if None, from the text itself.

        `requested` is the setting. Raises TaskError if it lacks a character of the text.
        """
        if text.characters is None:
            return cls(None, np.arange(256))
        characters = requested or text.characters
        ids = {character: token_id for token_id, character in enumerate(characters)}
        missing = [index for index, character in enumerate(text.characters) if character not in ids]
        if missing:
            earliest = min(missing, key=lambda index: text.first_seen[index])
            raise TaskError(
                f"{data_name}: {text.characters[earliest]!r} at character "
                f"{text.first_seen[earliest]:,} "
                f"is not one of the {len(characters)} characters of `vocabulary`"
                + (f", nor are {len(missing) - 1} others" if len(missing) > 1 else "")
            )
        return cls(
            characters, np.array([ids[character] for character in text.characters], dtype=np.int64)
        )

    @property
    def size(self) -> int:
        """Number of ids."""
        return 256 if self.characters is None else len(self.characters)

    def to_metadata(self) -> list[str] | str:
        """Value of the metadata key `vocabulary`: a list of characters, or "bytes"."""
        return "bytes" if self.characters is None else list(self.characters)

    def label(self, token_id: int) -> str:
        """Printable label of an id, for attention maps."""
        if token_id >= self.size:
            return str(token_id)
        character = chr(token_id) if self.characters is None else self.characters[token_id]
        is_visible = character.isprintable() and (self.characters is not None or token_id < 128)
        return VISIBLE_WHITESPACE.get(
            character, character if is_visible else f"x{ord(character):02x}"
        )
