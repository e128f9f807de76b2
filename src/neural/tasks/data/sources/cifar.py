"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009): 60,000 pictures of 32 × 32, from the files that everybody has.

    cifar-10-batches-bin/  cifar-100-binary/      the binary version, as a folder or still packed (.tar.gz)
    cifar-10-batches-py/   cifar-100-python/      the version for Python: pickles, read without running them
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neural.tasks.data.downloads import Download, fetch
from neural.tasks.data.packages import needed
from neural.tasks.data.pixels import SCALE, Pixels
from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.data.unpickled import unpickled
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.language.network import Network

HOME = "https://www.cs.toronto.edu/~kriz"
SIDE = 32
PICTURE = 3 * SIDE * SIDE
"""Bytes: all red ones, row by row, then the green, then the blue."""
GZIP = b"\x1f\x8b"
ROOM, TIMES = 1 << 26, 4
"""Bytes that an archive may unpack to: so many, or so many times its own; pictures are packed 1.1 times smaller."""
DOWNLOADS = {
    "cifar10": Download(
        url=f"{HOME}/cifar-10-binary.tar.gz",
        size=170_052_171,
        sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        local=("cifar-10-binary.tar.gz", "cifar-10-python.tar.gz"),
        folders=("cifar-10-batches-bin", "cifar-10-batches-py", "cifar10"),
    ),
    "cifar100": Download(
        url=f"{HOME}/cifar-100-binary.tar.gz",
        size=168_513_733,
        sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        local=("cifar-100-binary.tar.gz", "cifar-100-python.tar.gz"),
        folders=("cifar-100-binary", "cifar-100-python", "cifar100"),
    ),
}


@dataclass(frozen=True)
class Layout:
    """The files of one version."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    classes: str
    """The file with their names."""
    labels: int
    """Of a picture: bytes before it, the last of which is the class; 0 in pickles."""
    key: str = ""
    """Of the labels, in pickles."""


LAYOUTS = (
    Layout(tuple(f"data_batch_{one}.bin" for one in range(1, 6)), ("test_batch.bin",), "batches.meta.txt", 1),
    Layout(("train.bin",), ("test.bin",), "fine_label_names.txt", 2),
    Layout(tuple(f"data_batch_{one}" for one in range(1, 6)), ("test_batch",), "batches.meta", 0, "label"),
    Layout(("train",), ("test",), "meta", 0, "fine_label"),
)
FILES = frozenset(name for one in LAYOUTS for name in (*one.train, *one.test, one.classes))


class Cifar(Source):
    """In the size and the colours that the network takes; as rows of 3,072 numbers where it takes such."""

    looks: ClassVar[str] = '"cifar10", "cifar100", or a folder of theirs: 60,000 pictures, 32 × 32'
    names: ClassVar[tuple[str, ...]] = tuple(DOWNLOADS)

    @classmethod
    def fits(cls, where: Where) -> bool:
        """A known name, an archive of a known name, or a folder with such files."""
        if isinstance(where, str):
            return where in DOWNLOADS
        if not isinstance(where, Path):
            return False
        if where.is_dir():
            return any((where / one.train[0]).is_file() and (where / one.test[0]).is_file() for one in LAYOUTS)
        return any(where.name in one.local for one in DOWNLOADS.values())

    @classmethod
    def read(cls, where: str | Path, network: Network) -> Examples:
        """To train on what is meant for training; the test pictures are held out."""
        path = where if isinstance(where, Path) else fetch(where, DOWNLOADS[where])
        name = where if isinstance(where, str) else path.name
        files = _folder(path) if path.is_dir() else _archive(path)
        layout = _layout(files, name)
        classes = _classes(files, layout, name)
        train, valid = (_pictures(files, part, layout, name) for part in (layout.train, layout.test))
        count = int(max(train[1].max(), valid[1].max())) + 1
        if classes and count > len(classes):
            raise TaskError(f"{name}: a picture is of class {count - 1}, but {layout.classes} names {len(classes)}")
        ready = [{"x": fitted(x, network, name), "y": y} for x, y in (train, valid)]
        return Examples(where=name, train=ready[0], valid=ready[1], scale=SCALE, classes=classes)


def fitted(x: np.ndarray, network: Network, where: str) -> np.ndarray:
    """Pictures (N, 32, 32, 3) as the network takes them: as they are, in a row, or resized and in its colours."""
    if network.input in ((SIDE, SIDE, 3), (PICTURE,)) and not network.ids:
        return x.reshape(len(x), *network.input)   # type: ignore[arg-type]  # both are whole numbers
    pixels = Pixels(network, where)
    pillow = needed("PIL.Image", for_="resizing pictures", install="pillow")
    return np.stack([pixels.array(pillow.fromarray(one), f"picture {at}") for at, one in enumerate(x)])


def _folder(path: Path) -> dict[str, bytes]:
    try:
        return {name: (path / name).read_bytes() for name in sorted(FILES) if (path / name).is_file()}
    except OSError as problem:
        raise TaskError(f"{path.name} cannot be read: {problem}") from None


def _archive(path: Path) -> dict[str, bytes]:
    """The files inside, read without unpacking anything to disk, and no more than such an archive holds."""
    found: dict[str, bytes] = {}
    try:
        with path.open("rb") as packed:
            is_packed = packed.read(2) == GZIP
            packed.seek(0)
            opened = gzip.GzipFile(fileobj=packed) if is_packed else packed
            stream: Any = _Measured(opened, max(ROOM, TIMES * path.stat().st_size))
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    name = PurePosixPath(member.name).name
                    inside = archive.extractfile(member) if member.isfile() and name in FILES else None
                    if inside is not None:
                        found[name] = inside.read()
    except Exception as problem:   # a broken archive makes the library raise anything; all of it is about the file
        raise TaskError(f"{path.name} cannot be read: {problem or type(problem).__name__}") from None
    return found


class _Measured:
    """A stream that ends in an error after so many bytes, whatever its headers promise."""

    def __init__(self, stream: Any, left: int) -> None:
        self.stream, self.left = stream, left

    def read(self, count: int) -> bytes:
        """As of a file."""
        data = self.stream.read(count)
        self.left -= len(data)
        if self.left < 0:
            raise OSError("it holds far more than its size: no archive of pictures")
        return data


def _layout(files: Mapping[str, bytes], where: str) -> Layout:
    for one in LAYOUTS:
        needs = (*one.train, *one.test)
        lacking = [name for name in needs if name not in files]
        if not lacking:
            return one
        if len(lacking) < len(needs):
            raise TaskError(f"{where}: {', '.join(lacking)} missing; unpack the archive again")
    raise TaskError(f"{where} holds no files of CIFAR, such as {LAYOUTS[0].train[0]} or {LAYOUTS[1].train[0]}")


def _pictures(
    files: Mapping[str, bytes], names: tuple[str, ...], layout: Layout, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Pictures with the colours last, and their classes."""
    rows, labels = [], []
    for name in names:
        x, y = (_plain if layout.labels else _python)(files[name], layout, f"{where}/{name}")
        rows.append(x)
        labels.append(y)
    x = np.concatenate(rows).reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(x), np.concatenate(labels).astype(np.int64)


def _plain(content: bytes, layout: Layout, where: str) -> tuple[np.ndarray, np.ndarray]:
    each = layout.labels + PICTURE
    if not content or len(content) % each:
        raise TaskError(f"{where} is broken: {len(content):,} bytes are no whole number of pictures of {each:,}")
    table = np.frombuffer(content, np.uint8).reshape(-1, each)
    return table[:, layout.labels :], table[:, layout.labels - 1]


def _python(content: bytes, layout: Layout, where: str) -> tuple[np.ndarray, np.ndarray]:
    found = unpickled(content, f"{where} (the binary version needs no pickles)")
    x, y = found.get("data"), found.get(f"{layout.key}s")
    if not isinstance(x, np.ndarray) or x.dtype != np.uint8 or x.ndim != 2 or x.shape[1] != PICTURE:
        raise TaskError(f"{where}: `data` must be bytes of shape (N, {PICTURE:,})")
    if not isinstance(y, list) or len(y) != len(x) or not all(isinstance(one, int) and 0 <= one < 256 for one in y):
        raise TaskError(f"{where}: `{layout.key}s` must be a class number for each of the {len(x):,} pictures")
    return x, np.array(y)


def _classes(files: Mapping[str, bytes], layout: Layout, where: str) -> tuple[str, ...]:
    """Their names, where the file with them is there."""
    content = files.get(layout.classes)
    if content is None:
        return ()
    if layout.labels:
        return tuple(content.decode("utf-8", errors="replace").split())
    said = unpickled(content, f"{where}/{layout.classes}").get(f"{layout.key}_names", [])
    if not isinstance(said, list) or not all(isinstance(one, bytes | str) for one in said):
        raise TaskError(f"{where}/{layout.classes}: `{layout.key}_names` must be a list of names")
    return tuple(one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in said)
