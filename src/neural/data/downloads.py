"""Find or download the files of named datasets.

A file is searched in the folder that the environment variable NEURAL_DATA names, then in the cache;
if it is in neither, it is downloaded to the cache and its checksum verified.

An interrupted download leaves `<name>.part` and resumes from there if the server supports ranges.
A file gets its final name only after its checksum was verified.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import sys
import threading
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from neural.core import platform_support
from neural.core.errors import TaskError

OnProgress = Callable[[int, int], None]
"""Called with (bytes received, total bytes)."""
CHUNK_BYTES = 1 << 18
"""Bytes read and written at once."""
MAX_TRIES = 4
"""Number of requests for one file before giving up."""
TIMEOUT_SECONDS = 30.0
"""Seconds without data after which a connection counts as broken."""
_thread_lock = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Download:
    """One file on the internet, and the names under which users may have it already."""

    url: str
    size: int
    """Bytes of the downloaded file."""
    sha256: str
    """Checksum of the downloaded file."""
    member: str | None = None
    """File to extract, if the download is a zip archive."""
    local_names: tuple[str, ...]
    """Accepted names of a user's copy in `NEURAL_DATA`. Such a copy is not verified: it may be only
    the beginning of the text."""
    local_folders: tuple[str, ...] = ()
    """Accepted names of an unpacked archive in `NEURAL_DATA`."""


DOWNLOADS = {
    "shakespeare_char": Download(
        url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/"
        "tinyshakespeare/input.txt",
        size=1_115_394,
        sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
        local_names=(
            "shakespeare_char",
            "shakespeare_char.txt",
            "shakespeare_char/input.txt",
            "input.txt",
        ),
    ),
    "enwik8": Download(
        url="https://mattmahoney.net/dc/enwik8.zip",
        size=36_445_475,
        sha256="547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc",
        member="enwik8",
        local_names=("enwik8", "enwik8.txt", "enwik8.bin", "enwik8/enwik8", "enwik8.head.bin"),
    ),
    "text8": Download(
        url="https://mattmahoney.net/dc/text8.zip",
        size=31_344_016,
        sha256="a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
        member="text8",
        local_names=("text8", "text8.txt", "text8/text8", "text8.head.txt"),
    ),
}


def fetch(
    name: str, download: Download | None = None, *, on_progress: OnProgress | None = None
) -> Path:
    """Path of a dataset's file, downloaded if needed. Raises TaskError on failure.

    `download` describes a dataset that is not in `DOWNLOADS`.
    """
    download = download or DOWNLOADS[name]
    local_copy = find_local_copy(download)
    if local_copy is not None:
        return local_copy
    folder = cache_folder()
    final_path = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if final_path.exists():
            return final_path
        with _file_lock(folder / f"{name}.lock"):  # all ranks of a run fetch at the same time
            if not final_path.exists():
                _download_file(
                    download, folder / f"{name}.part", on_progress or _terminal_progress(name)
                )
                _unpack(download, folder / f"{name}.part", final_path)
    except OSError as error:
        raise TaskError(
            f"{name} cannot be saved in {folder}: {error}; set NEURAL_CACHE to another folder"
        ) from None
    return final_path


def find_local_copy(download: Download) -> Path | None:
    """The user's own copy in the folder `NEURAL_DATA`, or None."""
    data_folder = os.environ.get("NEURAL_DATA")
    if not data_folder:
        return None
    if not Path(data_folder).is_dir():
        raise TaskError(f"NEURAL_DATA is {data_folder}, which is not a folder")
    files = [Path(data_folder) / name for name in download.local_names]
    folders = [Path(data_folder) / name for name in download.local_folders]
    existing = [path for path in folders if path.is_dir()] + [
        path for path in files if path.is_file()
    ]
    return existing[0] if existing else None


def cache_folder() -> Path:
    """Folder for downloads: `NEURAL_CACHE`, or the platform's cache folder."""
    configured = os.environ.get("NEURAL_CACHE")
    if configured:
        return Path(configured)
    try:
        return platform_support.cache_folder() / "neural"
    except RuntimeError:  # of `Path.home`: a user without a home folder
        raise TaskError(
            "there is no home folder to keep downloads in; set NEURAL_CACHE to a folder"
        ) from None


def _download_file(download: Download, partial: Path, on_progress: OnProgress) -> None:
    """Download into `partial`, resuming after errors. A wrong checksum deletes the file."""
    for attempt in range(MAX_TRIES):
        try:
            _resume_download(download, partial, on_progress)
        except urllib.error.HTTPError as error:
            error.close()  # it holds the connection
            if error.code == 416:
                # Range not satisfiable: the partial file belongs to another version. Start again.
                partial.unlink(missing_ok=True)
            elif error.code < 500 or attempt == MAX_TRIES - 1:
                raise TaskError(
                    f"{download.url} was refused: {error.code} {error.reason}{_local_copy_hint()}"
                ) from None
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            ConnectionError,
            TimeoutError,
        ) as error:
            if attempt == MAX_TRIES - 1:
                reason = getattr(error, "reason", None) or error
                resume_hint = (
                    f" ({partial.stat().st_size:,} bytes are saved, the next attempt resumes)"
                    if partial.exists()
                    else ""
                )
                raise TaskError(
                    f"{download.url} cannot be reached: {reason}{resume_hint}{_local_copy_hint()}"
                ) from None
        if partial.exists() and partial.stat().st_size >= download.size:
            break
    received = partial.stat().st_size if partial.exists() else 0
    if received < download.size:
        raise TaskError(
            f"{download.url} was interrupted {MAX_TRIES} times: {received:,} of "
            f"{download.size:,} bytes are saved, the next attempt resumes"
        )
    with partial.open("rb") as file:
        is_valid = (
            received == download.size
            and hashlib.file_digest(file, "sha256").hexdigest() == download.sha256
        )
    if not is_valid:
        partial.unlink()
        raise TaskError(f"{download.url}: wrong checksum; the file was deleted{_local_copy_hint()}")


def _resume_download(download: Download, partial: Path, on_progress: OnProgress) -> None:
    """One request for the bytes missing in `partial`; all bytes if the server ignores ranges."""
    received = partial.stat().st_size if partial.exists() else 0
    if received >= download.size:
        return
    headers = {"User-Agent": "neural"} | ({"Range": f"bytes={received}-"} if received else {})
    request = urllib.request.Request(download.url, headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        # 206 Partial Content, from the byte that was asked for.
        is_resumed = response.status == 206 and response.headers.get(
            "Content-Range", ""
        ).startswith(f"bytes {received}-")
        with partial.open("ab" if is_resumed else "wb") as file:
            received = received if is_resumed else 0
            # Stop beyond the expected size, so that an endless response cannot fill the disk.
            while received <= download.size and (chunk := response.read(CHUNK_BYTES)):
                file.write(chunk)
                received += len(chunk)
                on_progress(received, download.size)


def _unpack(download: Download, partial: Path, final: Path) -> None:
    """Extract the file if needed and move it to its final name atomically."""
    if download.member is None:
        platform_support.replace_file(partial, final)
        return
    unpacked = partial.with_suffix(".unpacked")
    with (
        zipfile.ZipFile(partial) as archive,
        archive.open(download.member) as member,
        unpacked.open("wb") as file,
    ):
        shutil.copyfileobj(member, file, CHUNK_BYTES)
        file.flush()
        platform_support.sync_file(file.fileno())
    platform_support.replace_file(unpacked, final)
    partial.unlink()


def _local_copy_hint() -> str:
    return "; with a copy of your own, set NEURAL_DATA to its folder"


@contextmanager
def _file_lock(lock: Path) -> Iterator[None]:
    """Let one thread of one process in at a time."""
    # the lock of the file belongs to the process: it does not exclude other threads
    with _thread_lock, lock.open("wb") as file:
        platform_support.lock_file(file.fileno(), wait=True)  # released even if killed
        yield


def _terminal_progress(name: str) -> OnProgress:
    """Progress line on stderr, if that is a terminal."""

    def show(done: int, size: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done >= size else ""
            print(
                f"\r{name}: {done / 1e6:.1f} of {size / 1e6:.1f} MB",
                end=end,
                file=sys.stderr,
                flush=True,
            )

    return show
