"""Data sets by name: looked for in `NEURAL_DATA`, then in the cache, then downloaded, checked and kept.

A download that breaks off leaves its beginning as `….part` and goes on from there, where the server can. Nothing
stands under its final name before its checksum is right.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from neural.tasks.task import TaskError

Progress = Callable[[int, int], None]
"""Told how many bytes there are, and how many there will be."""
PIECE = 1 << 18
TRIES = 4
PATIENCE = 30.0
"""Seconds without a byte before a connection counts as broken."""


@dataclass(frozen=True, kw_only=True)
class Download:
    """One file on the net."""

    url: str
    size: int
    """Bytes that come over the line."""
    sha256: str
    """Of what comes over the line."""
    member: str | None = None
    """The file wanted, where an archive is downloaded."""
    local: tuple[str, ...]
    """What a copy in `NEURAL_DATA` may be called; the beginning of the text is enough there."""
    folders: tuple[str, ...] = ()
    """What an unpacked archive may be called there, where that will do as well."""


DOWNLOADS = {
    "shakespeare_char": Download(
        url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        size=1_115_394,
        sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
        local=("shakespeare_char", "shakespeare_char.txt", "shakespeare_char/input.txt", "input.txt"),
    ),
    "enwik8": Download(
        url="https://mattmahoney.net/dc/enwik8.zip",
        size=36_445_475,
        sha256="547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc",
        member="enwik8",
        local=("enwik8", "enwik8.txt", "enwik8.bin", "enwik8/enwik8", "enwik8.head.bin"),
    ),
    "text8": Download(
        url="https://mattmahoney.net/dc/text8.zip",
        size=31_344_016,
        sha256="a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
        member="text8",
        local=("text8", "text8.txt", "text8/text8", "text8.head.txt"),
    ),
}


def fetch(name: str, wanted: Download | None = None, *, progress: Progress | None = None) -> Path:
    """The file of a data set, downloaded if need be; TaskError where that cannot be.

    `wanted` says where it is found, for those that are not in `DOWNLOADS`.
    """
    wanted = wanted or DOWNLOADS[name]
    own = own_copy(wanted)
    if own is not None:
        return own
    folder = cache()
    final = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if final.exists():
            return final
        with _alone(folder / f"{name}.lock"):   # several processes of one run ask at once
            if not final.exists():
                _download(wanted, folder / f"{name}.part", progress or _on_terminal(name))
                _unpack(wanted, folder / f"{name}.part", final)
    except OSError as problem:
        raise TaskError(f"{name} cannot be kept in {folder}: {problem}; NEURAL_CACHE names another folder") from None
    return final


def own_copy(wanted: Download) -> Path | None:
    """The user's file or folder in `NEURAL_DATA`, where there is one."""
    own = os.environ.get("NEURAL_DATA")
    if not own:
        return None
    if not Path(own).is_dir():
        raise TaskError(f"NEURAL_DATA is {own}, which is no folder")
    files = [Path(own) / tried for tried in wanted.local]
    folders = [Path(own) / tried for tried in wanted.folders]
    there = [one for one in folders if one.is_dir()] + [one for one in files if one.is_file()]
    return there[0] if there else None


def cache() -> Path:
    """Where downloads are kept: `NEURAL_CACHE`, or the platform's folder for such things."""
    said = os.environ.get("NEURAL_CACHE")
    if said:
        return Path(said)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "neural"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "neural"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neural"


def _download(wanted: Download, part: Path, progress: Progress) -> None:
    """Fill the part until it is whole, going on after breaks; a wrong sum removes it."""
    for tried in range(TRIES):
        try:
            _go_on(wanted, part, progress)
        except urllib.error.HTTPError as refused:
            if refused.code == 416:   # it asks for more than there is: the beginning was another file's
                part.unlink(missing_ok=True)
            elif refused.code < 500 or tried == TRIES - 1:
                raise TaskError(f"{wanted.url} was refused: {refused.code} {refused.reason}{_elsewhere()}") from None
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as broken:
            if tried == TRIES - 1:
                why = getattr(broken, "reason", None) or broken
                kept = f" ({part.stat().st_size:,} bytes are kept, the next try goes on)" if part.exists() else ""
                raise TaskError(f"{wanted.url} cannot be reached: {why}{kept}{_elsewhere()}") from None
        if part.exists() and part.stat().st_size >= wanted.size:
            break
    found = part.stat().st_size if part.exists() else 0
    if found < wanted.size:
        raise TaskError(
            f"{wanted.url} broke off {TRIES} times: {found:,} of {wanted.size:,} bytes are kept, the next try goes on"
        )
    with part.open("rb") as file:
        right = found == wanted.size and hashlib.file_digest(file, "sha256").hexdigest() == wanted.sha256
    if not right:
        part.unlink()
        raise TaskError(f"{wanted.url} gave a file with a wrong checksum; it was removed{_elsewhere()}")


def _go_on(wanted: Download, part: Path, progress: Progress) -> None:
    """One connection: what is missing, or all of it where the server does not know about parts."""
    have = part.stat().st_size if part.exists() else 0
    if have >= wanted.size:
        return
    headers = {"User-Agent": "neural"} | ({"Range": f"bytes={have}-"} if have else {})
    request = urllib.request.Request(wanted.url, headers=headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        with part.open("ab" if goes_on else "wb") as file:
            have = have if goes_on else 0
            while have <= wanted.size and (piece := answer.read(PIECE)):   # a file without an end is not wanted
                file.write(piece)
                have += len(piece)
                progress(have, wanted.size)


def _unpack(wanted: Download, part: Path, final: Path) -> None:
    """The file under its own name, at once."""
    if wanted.member is None:
        part.replace(final)
        return
    aside = part.with_suffix(".unpacked")
    with zipfile.ZipFile(part) as archive, archive.open(wanted.member) as inside, aside.open("wb") as file:
        shutil.copyfileobj(inside, file, PIECE)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(final)
    part.unlink()


def _elsewhere() -> str:
    return "; with a copy of your own, set NEURAL_DATA to its folder"


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time; the others wait. Where the platform has no such locks, they do not."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)   # falls with the process, so none is ever left behind
        yield


def _on_terminal(name: str) -> Progress:
    """A line that counts, where somebody watches."""

    def show(done: int, size: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done >= size else ""
            print(f"\r{name}: {done / 1e6:.1f} of {size / 1e6:.1f} MB", end=end, file=sys.stderr, flush=True)

    return show
