"""Small files that claim to be large or take long. Each must be refused quickly, in little memory.

python tests/fuzz/bombs.py        prints time and memory of each refusal
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


def write_program(layers: str, shape: str = "(7, 4)") -> bytes:
    """A program with these layers."""
    return f"network A {{ input: {shape} layers: {layers} }}".encode()


def billion_laughs() -> bytes:
    """Ten lines of YAML aliases that expand to ten billion values."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [
        f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]" for number in range(1, 10)
    ]
    return "\n".join(lines).encode()


def lying_npy(shape: str = "(1000000000000,)", kind: str = "<f8") -> bytes:
    """An array of eight numbers whose header claims 10^12."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)


def make_zip(content: bytes, name: str = "x.npy", compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive with one file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr(name, content)
    return out.getvalue()


def zip_bomb() -> bytes:
    """300 MB of zeros in a small file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("x.npy", bytes(300 << 20))
    return out.getvalue()


def memo_bomb() -> bytes:
    """A pickle that stores a value in memo slot 2^31 - 1."""
    return b"\x80\x02}r\xff\xff\xff\x7f."


def endless_key() -> bytes:
    """A pickle with a dict key of nested tuples, 3 ** 60 of them."""
    head = b"\x80\x02}K\x01\x85q\x00"  # a dict, and a tuple of one number in memo slot 0
    return (
        head
        + b"".join(b"0h%ch%ch%c\x87q%c" % (slot, slot, slot, slot + 1) for slot in range(60))
        + b"K\x01s."
    )


def tar_bomb() -> bytes:
    """An archive whose first header announces a name of 100 MB."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 100 << 20
    return gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(100 << 20), 1, mtime=0)


def huge_image(side: int = 60_000) -> bytes:
    """A PNG of side × side pixels in 60 bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(9)))
        + chunk(b"IEND", b"")
    )


def lying_tensors() -> bytes:
    """A safetensors file whose tensor ends far beyond the file."""
    header = json.dumps(
        {"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4 << 40]}}
    ).encode()
    return len(header).to_bytes(8, "little") + header


def in_checkpoint(tensors: bytes, **changes: Any) -> bytes:
    """A checkpoint with these tensors and valid checksums."""
    (valid,) = seeds.checkpoints()
    metadata = json.loads(valid[4 + int.from_bytes(valid[:4], "little") :])
    metadata["tensors"] |= changes
    return len(tensors).to_bytes(4, "little") + tensors + json.dumps(metadata).encode()


def make_database(sql: str) -> bytes:
    """A run whose rows.sqlite was created by this SQL."""
    db = sqlite3.connect(":memory:")
    db.executescript(sql)
    data = db.serialize()
    db.close()
    return b"rows.sqlite\n" + data


def endless_rows() -> bytes:
    """A table that is an endless recursive view."""
    endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, id AS name FROM n"
    return make_database(
        "CREATE TABLE meta (key, value); INSERT INTO meta VALUES ('version', '2'); "
        f"CREATE VIEW names AS {endless};"
    )


def wide_arrays() -> bytes:
    """Two small arrays, 100,000 × 1 and 1 × 100,000, that would need 80 GB if stacked."""
    data = bytes(400_000).hex()
    inserted_rows = [
        ["names", 1, "entropy"],
        ["arrays", 1, 1, "[100000, 1]", data],
        ["arrays", 1, 2, "[1, 100000]", data],
    ]
    return b"rows\n" + json.dumps(inserted_rows).encode()


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "100,000 open brackets in YAML": ("experiment", lambda: b"a: " + b"[" * 100_000),
    "a billion laughs": ("experiment", billion_laughs),
    "a number of a million digits in YAML": ("experiment", lambda: f"task: {DIGITS}".encode()),
    "100,000 nested objects": ("songs", lambda: b'{"lines": ' * 100_000),
    "a number of a million digits in JSON": (
        "tokens",
        lambda: f'{{"tokens": ["a"], "label": {DIGITS}}}'.encode(),
    ),
    "an array of 8 TB in an .npz": ("npz", lambda: make_zip(lying_npy())),
    "300 MB of zeros in an .npz": ("npz", zip_bomb),
    "an array of 8 TB in an .npy": ("npy", lying_npy),
    "an array of nothing, a million million times": ("npy", lambda: lying_npy(kind="<U0")),
    "a pickle that wants 34 GB to remember": ("pickle", memo_bomb),
    "a pickle with a key that takes years to hash": ("pickle", endless_key),
    "a name of 100 MB in a .tar.gz": ("archive", tar_bomb),
    "a picture of 60,000 × 60,000": ("picture", huge_image),
    "a picture of 9,000 × 9,000": ("picture", lambda: huge_image(9_000)),
    "a packed state dict": ("weights", lambda: make_zip(bytes(10**6), "weights/data.pkl")),
    "tensors of 4 TB": ("weights", lying_tensors),
    "a checkpoint with tensors of 4 TB": ("checkpoint", lambda: in_checkpoint(lying_tensors())),
    "a map of 2,000,000,000 × 2,000,000,000": (
        "map",
        lambda: (
            struct.pack("<4sBiiiii", b"NMAP", 1, 2, 2 * 10**9, 2 * 10**9, 0, 0)
            + zlib.compress(bytes(9))
        ),
    ),
    "a map of one byte in 20 MB": (
        "map",
        lambda: (
            struct.pack("<4sBiiiii", b"NMAP", 1, 1, 1, 1, 0, 0) + zlib.compress(bytes(20 << 20))
        ),
    ),
    "rows without an end": ("run", endless_rows),
    "arrays that do not fit together": ("run", wide_arrays),
}
PROGRAMS = {
    "100,000 open brackets": lambda: write_program("Dense(" + "(" * 100_000),
    "100,000 nested blocks": lambda: b"a {" * 100_000,
    "a number of a million digits": lambda: write_program(f"Dense({DIGITS})"),
    "a name of 10 MB": lambda: b"a" * (10 << 20),
    "a layer of 10^30 units": lambda: write_program(f"Dense({10**30})"),
    "an input of 10^9 × 10^9": lambda: write_program("Flatten()", "(1000000000, 1000000000)"),
    "two thousand million copies": lambda: write_program("Dense(4) * 2147483647"),
    "layers of two thousand million": lambda: write_program("Dense(2147483647) Dense(2147483647)"),
}


class MemoryPeak:
    """Growth of this process' peak memory since the object was created, in bytes."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # reset the peak
        self.before = self._read_peak()

    def growth(self) -> int:
        """Bytes since creation."""
        return self._read_peak() - self.before

    def _read_peak(self) -> int:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(
            next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]
        )


def main() -> None:
    """Print a table row per bomb."""
    from tests.fuzz.targets import TARGETS

    for target in {name for name, _ in BOMBS.values()} | {"program"}:
        TARGETS[target].run(TARGETS[target].seeds()[0])
    files = {name: (target, make()) for name, (target, make) in BOMBS.items()}
    files |= {name: ("program", make()) for name, make in PROGRAMS.items()}
    for name, (target, data) in files.items():
        peak, start = MemoryPeak(), time.process_time()
        refusal = TARGETS[target].run(data)
        seconds = time.process_time() - start
        message = refusal.partition("\n")[0].partition(": ")[2]
        print(
            f"| {name} | {target} | {len(data):,} | {1000 * seconds:.1f} | {peak.growth() / 1e6:.1f} | {message} |"
        )


if __name__ == "__main__":
    main()
