"""Small files that claim to be large, or that take long: each must be refused at once and without the memory.

    python tests/fuzz/bombs.py        what each is, how long it took to refuse and how much memory it cost
"""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import struct
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz import seeds

DIGITS = "1" * 1_000_000


def network(layers: str, takes: str = "(7, 4)") -> bytes:
    """A program."""
    return f"network A {{ input: {takes} layers: {layers} }}".encode()


def laughs() -> bytes:
    """Ten lines of aliases that stand for ten billion values."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 10)]
    return "\n".join(lines).encode()


def lying_npy(shape: str = "(1000000000000,)", kind: str = "<f8") -> bytes:
    """An array of eight numbers that says it has a million million."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(64)


def zipped(content: bytes, name: str = "x.npy", how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive with one file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        archive.writestr(name, content)
    return out.getvalue()


def zip_bomb() -> bytes:
    """Zeros, 300 MB of them in a small file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("x.npy", bytes(300 << 20))
    return out.getvalue()


def memo() -> bytes:
    """A pickle that remembers a value under the number two thousand million."""
    return b"\x80\x02}r\xff\xff\xff\x7f."


def endless_key() -> bytes:
    """A pickle with a key of tuples of tuples, 3 ** 60 of them."""
    first = b"\x80\x02}K\x01\x85q\x00"   # a dictionary, and a tuple of one number remembered as 0
    return first + b"".join(b"0h%ch%ch%c\x87q%c" % (at, at, at, at + 1) for at in range(60)) + b"K\x01s."


def tar_bomb() -> bytes:
    """An archive whose first header says that a name of 100 MB follows."""
    about = tarfile.TarInfo("././@LongLink")
    about.type, about.size = tarfile.GNUTYPE_LONGNAME, 100 << 20
    return gzip.compress(about.tobuf(tarfile.GNU_FORMAT) + bytes(100 << 20), 1, mtime=0)


def huge_picture(side: int = 60_000) -> bytes:
    """A PNG of so many pixels in 60 bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(9))) + chunk(b"IEND", b"")


def lying_tensors() -> bytes:
    """A safetensors file whose tensor ends far behind the file."""
    head = json.dumps({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4 << 40]}}).encode()
    return len(head).to_bytes(8, "little") + head


def in_checkpoint(tensors: bytes, **changes: Any) -> bytes:
    """A checkpoint with these tensors, whose sums will be right."""
    (good,) = seeds.checkpoints()
    said = json.loads(good[4 + int.from_bytes(good[:4], "little") :])
    said["tensors"] |= changes
    return len(tensors).to_bytes(4, "little") + tensors + json.dumps(said).encode()


def rows(sql: str) -> bytes:
    """A run whose rows.sqlite was made by somebody else."""
    db = sqlite3.connect(":memory:")
    db.executescript(sql)
    made = db.serialize()
    db.close()
    return b"rows.sqlite\n" + made


def endless_rows() -> bytes:
    """A table that is a program without an end."""
    endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, id AS name FROM n"
    return rows("CREATE TABLE meta (key, value); INSERT INTO meta VALUES ('version', '2'); "
                f"CREATE VIEW names AS {endless};")  # fmt: skip


def wide_arrays() -> bytes:
    """Two small arrays, 100,000 × 1 and 1 × 100,000, which one array of both would make 80 GB."""
    data = bytes(400_000).hex()
    told = [["names", 1, "entropy"], ["arrays", 1, 1, "[100000, 1]", data], ["arrays", 1, 2, "[1, 100000]", data]]
    return b"rows\n" + json.dumps(told).encode()


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "100,000 open brackets in YAML": ("experiment", lambda: b"a: " + b"[" * 100_000),
    "a billion laughs": ("experiment", laughs),
    "a number of a million digits in YAML": ("experiment", lambda: f"task: {DIGITS}".encode()),
    "100,000 nested objects": ("songs", lambda: b'{"lines": ' * 100_000),
    "a number of a million digits in JSON": ("tokens", lambda: f'{{"tokens": ["a"], "label": {DIGITS}}}'.encode()),
    "an array of 8 TB in an .npz": ("npz", lambda: zipped(lying_npy())),
    "300 MB of zeros in an .npz": ("npz", zip_bomb),
    "an array of 8 TB in an .npy": ("npy", lying_npy),
    "an array of nothing, a million million times": ("npy", lambda: lying_npy(kind="<U0")),
    "a pickle that wants 34 GB to remember": ("pickle", memo),
    "a pickle with a key that takes years to hash": ("pickle", endless_key),
    "a name of 100 MB in a .tar.gz": ("archive", tar_bomb),
    "a picture of 60,000 × 60,000": ("picture", huge_picture),
    "a picture of 9,000 × 9,000": ("picture", lambda: huge_picture(9_000)),
    "a packed state dict": ("weights", lambda: zipped(bytes(10**6), "weights/data.pkl")),
    "tensors of 4 TB": ("weights", lying_tensors),
    "a checkpoint with tensors of 4 TB": ("checkpoint", lambda: in_checkpoint(lying_tensors())),
    "a map of 2,000,000,000 × 2,000,000,000": (
        "map", lambda: struct.pack("<4sBiiiii", b"NMAP", 1, 2, 2 * 10**9, 2 * 10**9, 0, 0) + zlib.compress(bytes(9))),
    "a map of one byte in 20 MB": (
        "map", lambda: struct.pack("<4sBiiiii", b"NMAP", 1, 1, 1, 1, 0, 0) + zlib.compress(bytes(20 << 20))),
    "rows without an end": ("run", endless_rows),
    "arrays that do not fit together": ("run", wide_arrays),
}  # fmt: skip
PROGRAMS = {
    "100,000 open brackets": lambda: network("Dense(" + "(" * 100_000),
    "100,000 nested blocks": lambda: b"a {" * 100_000,
    "a number of a million digits": lambda: network(f"Dense({DIGITS})"),
    "a name of 10 MB": lambda: b"a" * (10 << 20),
    "a layer of 10^30 units": lambda: network(f"Dense({10**30})"),
    "an input of 10^9 × 10^9": lambda: network("Flatten()", "(1000000000, 1000000000)"),
    "two thousand million copies": lambda: network("Dense(4) * 2147483647"),
    "layers of two thousand million": lambda: network("Dense(2147483647) Dense(2147483647)"),
}


class Peak:
    """How much more memory this process had at one moment than at the beginning, in bytes."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")   # the most so far is what there is now
        self.before = self._most()

    def grown(self) -> int:
        """Since it was made."""
        return self._most() - self.before

    def _most(self) -> int:
        said = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(next(line for line in said.splitlines() if line.startswith("VmHWM")).split()[1])


def main() -> None:
    """A line for each."""
    from tests.fuzz.targets import TARGETS

    for target in {name for name, _ in BOMBS.values()} | {"program"}:
        TARGETS[target].outcome(TARGETS[target].seeds()[0])
    made = {name: (target, make()) for name, (target, make) in BOMBS.items()}
    made |= {name: ("program", make()) for name, make in PROGRAMS.items()}
    for name, (target, data) in made.items():
        peak, start = Peak(), time.process_time()
        said = TARGETS[target].outcome(data)
        took = time.process_time() - start
        told = said.partition("\n")[0].partition(": ")[2]
        print(f"| {name} | {target} | {len(data):,} | {1000 * took:.1f} | {peak.grown() / 1e6:.1f} | {told} |")


if __name__ == "__main__":
    main()
