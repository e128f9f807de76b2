"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009): 60,000 images of 32 × 32.

cifar-10-batches-bin/  cifar-100-binary/      binary version, as a folder or archive (.tar.gz)
cifar-10-batches-py/   cifar-100-python/      Python version: pickles, read without running them
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neural.core.errors import TaskError
from neural.data.downloads import Download, fetch
from neural.data.image_conversion import PIXEL_SCALE, ImageConverter
from neural.data.safe_pickle import load_plain_pickle
from neural.data.source import DataLocation, DataSource, Examples

if TYPE_CHECKING:
    from neural.language.network import Network

BASE_URL = "https://www.cs.toronto.edu/~kriz"
IMAGE_SIDE = 32
IMAGE_BYTES = 3 * IMAGE_SIDE * IMAGE_SIDE
"""Bytes of an image: the red channel row by row, then green, then blue."""
GZIP_MAGIC = b"\x1f\x8b"
MAX_UNPACKED_BYTES = 1 << 26
MAX_UNPACKED_RATIO = 4
"""An archive may unpack to MAX_UNPACKED_BYTES or to its size times the ratio, whichever is larger;
beyond that it counts as a decompression bomb. CIFAR compresses by a factor of 1.1."""
CIFAR_DOWNLOADS = {
    "cifar10": Download(
        url=f"{BASE_URL}/cifar-10-binary.tar.gz",
        size=170_052_171,
        sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        local_names=("cifar-10-binary.tar.gz", "cifar-10-python.tar.gz"),
        local_folders=("cifar-10-batches-bin", "cifar-10-batches-py", "cifar10"),
    ),
    "cifar100": Download(
        url=f"{BASE_URL}/cifar-100-binary.tar.gz",
        size=168_513_733,
        sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        local_names=("cifar-100-binary.tar.gz", "cifar-100-python.tar.gz"),
        local_folders=("cifar-100-binary", "cifar-100-python", "cifar100"),
    ),
}


@dataclass(frozen=True)
class CifarLayout:
    """File names and record format of one version."""

    train: tuple[str, ...]
    """Files with training images."""
    test: tuple[str, ...]
    """Files with test images."""
    classes: str
    """File with the class names."""
    label_bytes: int
    """Bytes before each image, the last of which is the class number; 0 for pickles."""
    label_key: str = ""
    """Key of the labels in pickles, without the plural s."""


# CIFAR-10 and CIFAR-100 in the binary version, then both in the Python version.
LAYOUTS = (
    CifarLayout(
        train=tuple(f"data_batch_{index}.bin" for index in range(1, 6)),
        test=("test_batch.bin",),
        classes="batches.meta.txt",
        label_bytes=1,
    ),
    CifarLayout(
        train=("train.bin",),
        test=("test.bin",),
        classes="fine_label_names.txt",
        label_bytes=2,  # coarse label, fine label
    ),
    CifarLayout(
        train=tuple(f"data_batch_{index}" for index in range(1, 6)),
        test=("test_batch",),
        classes="batches.meta",
        label_bytes=0,
        label_key="label",
    ),
    CifarLayout(
        train=("train",), test=("test",), classes="meta", label_bytes=0, label_key="fine_label"
    ),
)
KNOWN_FILES = frozenset(
    name for layout in LAYOUTS for name in (*layout.train, *layout.test, layout.classes)
)


class Cifar(DataSource):
    """CIFAR images, resized to the network's input; `input: (3072,)` gives rows of pixels."""

    description: ClassVar[str] = (
        '"cifar10", "cifar100", or a folder with their files: 60,000 images, 32 × 32'
    )
    dataset_names: ClassVar[tuple[str, ...]] = tuple(CIFAR_DOWNLOADS)

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A dataset name, an archive of a known name, or a folder with CIFAR's files."""
        if isinstance(location, str):
            return location in CIFAR_DOWNLOADS
        if not isinstance(location, Path):
            return False
        if location.is_dir():
            return any(
                (location / layout.train[0]).is_file() and (location / layout.test[0]).is_file()
                for layout in LAYOUTS
            )
        return any(location.name in download.local_names for download in CIFAR_DOWNLOADS.values())

    @classmethod
    def read(cls, location: str | Path, network: Network) -> Examples:
        """Training images; the test images are the validation split."""
        path = (
            location if isinstance(location, Path) else fetch(location, CIFAR_DOWNLOADS[location])
        )
        name = location if isinstance(location, str) else path.name
        files = _read_folder(path) if path.is_dir() else _read_archive(path)
        layout = _detect_layout(files, name)
        classes = _read_class_names(files, layout, name)
        train, valid = (
            _read_images(files, names, layout, name) for names in (layout.train, layout.test)
        )
        highest_class = int(max(train[1].max(), valid[1].max()))
        if classes and highest_class >= len(classes):
            raise TaskError(
                f"{name}: an image is of class {highest_class}, but {layout.classes} names "
                f"{len(classes)}"
            )
        splits = [{"x": fit_images(x, network, name), "y": y} for x, y in (train, valid)]
        return Examples(
            data_name=name, train=splits[0], valid=splits[1], scale=PIXEL_SCALE, classes=classes
        )


def fit_images(x: np.ndarray, network: Network, data_name: str) -> np.ndarray:
    """Images (N, 32, 32, 3) in the network's input shape: unchanged, flat, or converted."""
    if (
        network.input in ((IMAGE_SIDE, IMAGE_SIDE, 3), (IMAGE_BYTES,))
        and not network.takes_token_ids
    ):
        return x.reshape(len(x), *network.input)  # type: ignore[arg-type]  # all are integers
    converter = ImageConverter(network, data_name)
    from PIL import Image

    return np.stack(
        [
            converter.convert(Image.fromarray(image), f"picture {index}")
            for index, image in enumerate(x)
        ]
    )


def _read_folder(path: Path) -> dict[str, bytes]:
    """CIFAR's files in a folder: content by file name."""
    try:
        return {
            name: (path / name).read_bytes()
            for name in sorted(KNOWN_FILES)
            if (path / name).is_file()
        }
    except OSError as error:
        raise TaskError(f"{path.name} cannot be read: {error}") from None


def _read_archive(path: Path) -> dict[str, bytes]:
    """CIFAR's files in an archive: content by file name, in memory. Limits the unpacked size."""
    files: dict[str, bytes] = {}
    try:
        with path.open("rb") as file:
            is_gzip = file.read(2) == GZIP_MAGIC
            file.seek(0)
            unpacked = gzip.GzipFile(fileobj=file) if is_gzip else file
            stream: Any = _LimitedStream(
                unpacked, max(MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO * path.stat().st_size)
            )
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    name = PurePosixPath(member.name).name
                    content = (
                        archive.extractfile(member)
                        if member.isfile() and name in KNOWN_FILES
                        else None
                    )
                    if content is not None:
                        files[name] = content.read()
    except Exception as error:  # tarfile and gzip raise many types on a broken archive
        raise TaskError(f"{path.name} cannot be read: {error or type(error).__name__}") from None
    return files


class _LimitedStream:
    """Stream that raises OSError after `limit` bytes: protects against decompression bombs."""

    def __init__(self, stream: Any, limit: int) -> None:
        self.stream, self.remaining = stream, limit

    def read(self, count: int) -> bytes:
        """Read like a file."""
        data = self.stream.read(count)
        self.remaining -= len(data)
        if self.remaining < 0:
            raise OSError("it unpacks to far more than its size, so it is not an archive of images")
        return data


def _detect_layout(files: Mapping[str, bytes], data_name: str) -> CifarLayout:
    """The layout whose image files are all there; TaskError if files are missing."""
    for layout in LAYOUTS:
        required = (*layout.train, *layout.test)
        missing = [name for name in required if name not in files]
        if not missing:
            return layout
        if len(missing) < len(required):
            raise TaskError(f"{data_name}: {', '.join(missing)} missing; unpack the archive again")
    raise TaskError(
        f"{data_name} holds no CIFAR files, such as {LAYOUTS[0].train[0]} or {LAYOUTS[1].train[0]}"
    )


def _read_images(
    files: Mapping[str, bytes], names: tuple[str, ...], layout: CifarLayout, data_name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, 32, 32, 3) as uint8 and their class numbers (N,), from the files `names`."""
    images, labels = [], []
    for name in names:
        x, y = (_parse_binary if layout.label_bytes else _parse_pickle)(
            files[name], layout, f"{data_name}/{name}"
        )
        images.append(x)
        labels.append(y)
    x = np.concatenate(images).reshape(-1, 3, IMAGE_SIDE, IMAGE_SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(x), np.concatenate(labels).astype(np.int64)


def _parse_binary(
    content: bytes, layout: CifarLayout, data_name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (N, 3072) and class numbers (N,) of a file of the binary version."""
    record_bytes = layout.label_bytes + IMAGE_BYTES
    if not content or len(content) % record_bytes:
        raise TaskError(
            f"{data_name} is broken: {len(content):,} bytes are not a multiple of the "
            f"{record_bytes:,} bytes of an image"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, record_bytes)
    return records[:, layout.label_bytes :], records[:, layout.label_bytes - 1]


def _parse_pickle(
    content: bytes, layout: CifarLayout, data_name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (N, 3072) and class numbers (N,) of a file of the Python version."""
    content_dict = load_plain_pickle(content, f"{data_name} (the binary version needs no pickles)")
    x, y = content_dict.get("data"), content_dict.get(f"{layout.label_key}s")
    if (
        not isinstance(x, np.ndarray)
        or x.dtype != np.uint8
        or x.ndim != 2
        or x.shape[1] != IMAGE_BYTES
    ):
        raise TaskError(f"{data_name}: `data` must be bytes of shape (N, {IMAGE_BYTES:,})")
    if (
        not isinstance(y, list)
        or len(y) != len(x)
        or not all(isinstance(label, int) and 0 <= label < 256 for label in y)
    ):
        raise TaskError(
            f"{data_name}: `{layout.label_key}s` must be a class number for each of the "
            f"{len(x):,} images"
        )
    return x, np.array(y)


def _read_class_names(
    files: Mapping[str, bytes], layout: CifarLayout, data_name: str
) -> tuple[str, ...]:
    """Class names; empty if the file with them is missing."""
    content = files.get(layout.classes)
    if content is None:
        return ()
    if layout.label_bytes:
        return tuple(content.decode("utf-8", errors="replace").split())
    names = load_plain_pickle(content, f"{data_name}/{layout.classes}").get(
        f"{layout.label_key}_names", []
    )
    if not isinstance(names, list) or not all(isinstance(name, bytes | str) for name in names):
        raise TaskError(
            f"{data_name}/{layout.classes}: `{layout.label_key}_names` must be a list of names"
        )
    return tuple(
        name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in names
    )
