"""Checkpoints: tensors in a safetensors file, everything else in a JSON file beside it. Neither executes code.

    step-00000200.safetensors    8 bytes: the header's length; the header: JSON; the tensors' bytes
    step-00000200.json           step, best, facts; the tensors' file with its size and sha256; and a sha256 of itself

A checkpoint exists when its JSON file does, which takes its name last and loses it first; it is whole when the sums
are right. A second checkpoint of the same step goes into `step-00000200.again.safetensors` until its JSON file takes
the first one's place: at no instant is there none.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from neural.core.files import read_small, replacing, sync_folder
from neural.modules.late import late, torch
from neural.tracking.trouble import RunError, in_words

if TYPE_CHECKING:
    from torch import Tensor

safetensors = late("safetensors.torch")
NAMES = {
    "torch.float64": "F64", "torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16",
    "torch.float8_e4m3fn": "F8_E4M3", "torch.float8_e5m2": "F8_E5M2", "torch.complex64": "C64",
    "torch.int64": "I64", "torch.int32": "I32", "torch.int16": "I16", "torch.int8": "I8",
    "torch.uint64": "U64", "torch.uint32": "U32", "torch.uint16": "U16", "torch.uint8": "U8", "torch.bool": "BOOL",
}  # fmt: skip
"""torch's types as the format spells them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What was saved at a step."""

    step: int
    tensors: dict[str, Tensor]
    facts: dict[str, Any]
    best: bool
    skipped: tuple[str, ...] = ()
    """Newer ones that are broken, a sentence each."""


class Saved(NamedTuple):
    """A checkpoint in the folder; its tensors are not looked into."""

    step: int
    path: Path
    """Of the tensors."""
    best: bool
    facts: dict[str, Any]


def write(folder: Path, step: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], *, best: bool) -> None:
    """Save; when this returns, the checkpoint outlives a power cut."""
    about = folder / f"step-{step:08d}.json"
    own, other = folder / f"step-{step:08d}.safetensors", folder / f"step-{step:08d}.again.safetensors"
    before = _about(about)
    file = other if before and before["tensors"]["file"] == own.name else own
    distinct, shared = _once(tensors)
    with replacing(file) as out:
        size, digest = _write_tensors(out, distinct)
    document = {
        "step": step, "best": best, "tensors": {"file": file.name, "bytes": size, "sha256": digest}, "shared": shared,
        "facts": dict(facts),
    }  # fmt: skip
    with replacing(about) as out:
        out.write(_sealed(document))


def read(folder: Path, step: int) -> Checkpoint:
    """The checkpoint of that step; RunError if anything in it is not as it was written."""
    about = folder / f"step-{step:08d}.json"
    with in_words(f"{about} cannot be read"):
        document = _about(about)
        if document is None:
            raise RunError(f"{about} is damaged: its sum is wrong")
        file = folder / document["tensors"]["file"]
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != document["tensors"]["sha256"]:
        raise RunError(f"{file} is damaged: its sum is wrong")
    try:
        tensors = safetensors.load_file(file)
        tensors |= {name: tensors[first] for name, first in document["shared"].items()}
    except Exception as problem:   # the library has an error class of its own
        raise RunError(f"{file} is damaged: {problem}") from None
    return Checkpoint(step=step, tensors=tensors, facts=document["facts"], best=document["best"])


def steps(folder: Path) -> list[int]:
    """Steps with a checkpoint, whole or broken."""
    found = (re.fullmatch(r"step-(\d+)\.json", file.name) for file in folder.iterdir()) if folder.is_dir() else ()
    return sorted(int(match[1]) for match in found if match)


def listed(folder: Path) -> list[Saved]:
    """The checkpoints, oldest first, without those that are broken at first sight."""
    found = []
    for step in steps(folder):
        document = _about(folder / f"step-{step:08d}.json")
        file = folder / document["tensors"]["file"] if document else None
        if document and file and file.exists() and file.stat().st_size == document["tensors"]["bytes"]:
            found.append(Saved(step, file, document["best"], document["facts"]))
    return found


def best(folder: Path) -> Saved | None:
    """The last one that was the best when it was saved."""
    return next((one for one in reversed(listed(folder)) if one.best), None)


def best_one(folder: Path) -> Checkpoint | None:
    """The best with its tensors, or None where there is none; RunError if it is broken."""
    while (last := best(folder)) is not None:
        try:
            return read(folder, last.step)
        except RunError:
            if best(folder) == last:   # else a writer has saved a better one and pruned this
                raise
    return None


def newest(folder: Path) -> Checkpoint | None:
    """The newest that is whole, or None where there is none at all; RunError if all are broken."""
    while True:
        there = steps(folder)
        broken = []
        for step in reversed(there):
            try:
                return replace(read(folder, step), skipped=tuple(broken))
            except RunError as error:
                broken.append(str(error))
        if steps(folder) == there:   # else a writer has saved and pruned meanwhile
            break
    if broken:
        raise RunError(f"all checkpoints in {folder} are damaged: " + "; ".join(broken))
    return None


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest `keep` and the best, and what killed processes have left behind."""
    last = best(folder)
    _delete_others(folder, [*listed(folder)[-keep:], *([last] if last else [])])


def forget_after(folder: Path, step: int) -> None:
    """Delete the checkpoints of all later steps, the latest first, and what killed processes have left behind."""
    _delete_others(folder, [one for one in listed(folder) if one.step <= step])


def _delete_others(folder: Path, kept: list[Saved]) -> None:
    stay = {name for one in kept for name in (one.path.name, f"step-{one.step:08d}.json")}
    gone = [file for file in folder.iterdir() if re.match(r"\.?step-", file.name) and file.name not in stay]
    # the JSON files first, the latest first: what is left at any instant is a run up to some step
    for file in sorted(gone, key=lambda file: (file.suffix == ".json", file.name), reverse=True):
        if file.is_dir():   # nobody here has made it; in its way no checkpoint could take that name
            shutil.rmtree(file)
        else:
            file.unlink(missing_ok=True)
    if gone:
        sync_folder(folder)


def _once(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors without those that are another one under a second name, and the names of these."""
    distinct: dict[str, Tensor] = {}
    shared: dict[str, str] = {}
    first: dict[tuple[Any, ...], str] = {}
    for name, tensor in tensors.items():
        if str(tensor.dtype) not in NAMES or tensor.layout != torch.strided:
            raise TypeError(f"a checkpoint cannot hold `{name}`: {tensor.dtype}, {tensor.layout}")
        place = (
            tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride(), tensor.is_conj(),
            tensor.is_neg(),
        )  # fmt: skip
        if tensor.numel() and place in first:
            shared[name] = first[place]
        else:
            distinct[name] = tensor
            first[place] = name
    return distinct, shared


def _write_tensors(out: BinaryIO, tensors: Mapping[str, Tensor]) -> tuple[int, str]:
    """Write a safetensors file in one pass, tensor by tensor; its size and sha256.

    By hand and not by the library, which wants all the bytes at once, refuses tensors that share memory, and would
    have the file read again for its sum.
    """
    header: dict[str, Any] = {}
    end = 0
    wide_first = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))   # keeps all of them aligned
    for name in wide_first:
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": NAMES[str(tensor.dtype)], "shape": list(tensor.shape), "data_offsets": [start, end]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    digest, size = hashlib.sha256(), 0
    for piece in (len(head).to_bytes(8, "little"), head, *(tensors[name] for name in wide_first)):
        data = piece if isinstance(piece, bytes) else _bytes(piece)
        out.write(data)
        digest.update(data)
        size += len(data)
    return size, digest.hexdigest()


def _bytes(tensor: Tensor) -> memoryview:
    """The tensor's bytes in order; a copy only where they are not there already."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return plain.reshape(-1).view(torch.uint8).numpy().data


def _sealed(document: dict[str, Any]) -> bytes:
    digest = hashlib.sha256(json.dumps(document, indent=1).encode()).hexdigest()
    return (json.dumps({**document, "sha256": digest}, indent=1) + "\n").encode()


def _about(path: Path) -> dict[str, Any] | None:
    """What the JSON file says, or None if there is none, or a single byte of it is not as it was written.

    The sum tells what an accident has changed. Whoever changes it on purpose makes a new sum: so the kinds of what it
    says are looked at too, and its tensors lie beside it or nowhere.
    """
    try:
        data = read_small(path)
        document = json.loads(data)
        document.pop("sha256")
        whole = _sealed(document) == data
    except (FileNotFoundError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return None
    return document if whole and _sound(document, path.stem) else None


def _sound(document: dict[str, Any], stem: str) -> bool:
    tensors, shared = document.get("tensors"), document.get("shared")
    return (
        type(document.get("step")) is int and stem == f"step-{document['step']:08d}"
        and isinstance(document.get("best"), bool) and isinstance(document.get("facts"), dict)
        and isinstance(tensors, dict) and tensors.get("file") in (f"{stem}.safetensors", f"{stem}.again.safetensors")
        and isinstance(tensors.get("sha256"), str) and type(tensors.get("bytes")) is int
        and isinstance(shared, dict) and all(isinstance(one, str) for one in shared.values())
    )  # fmt: skip
