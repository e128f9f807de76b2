"""Checkpoints: tensors in a safetensors file, everything else in a JSON file beside it.

    step-00000200.safetensors    8 bytes: length of the header; the header: JSON; the tensors' bytes
    step-00000200.json           step, best, metadata; name, size and SHA-256 of the tensor file;
                                 names of tied tensors ("shared"); and a SHA-256 of the JSON itself

In this file `document` is the content of the JSON file. The best checkpoint is the one with the
best validation score so far. Tied tensors (say, embedding and output weights) are stored once.

Loading executes no code. A checkpoint exists if its JSON file does: that file is renamed into place
last and deleted first. It is complete if both checksums match. If a step is saved again, its
tensors go to `step-00000200.again.safetensors`, and the JSON file is then replaced. So there is a
complete checkpoint at every instant.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from neural.core.files import get_file_size, open_atomic, open_ordinary_file, read_small_file
from neural.core.platform_support import CAN_MOVE_OPEN_FILES, delete_file, sync_folder
from neural.nn.lazy_torch import lazy_import, torch
from neural.runs.errors import RunError, translate_errors

if TYPE_CHECKING:
    from torch import Tensor

safetensors = lazy_import("safetensors.torch")
SAFETENSORS_DTYPES = {
    "torch.float64": "F64",
    "torch.float32": "F32",
    "torch.float16": "F16",
    "torch.bfloat16": "BF16",
    "torch.float8_e4m3fn": "F8_E4M3",
    "torch.float8_e5m2": "F8_E5M2",
    "torch.complex64": "C64",
    "torch.int64": "I64",
    "torch.int32": "I32",
    "torch.int16": "I16",
    "torch.int8": "I8",
    "torch.uint64": "U64",
    "torch.uint32": "U32",
    "torch.uint16": "U16",
    "torch.uint8": "U8",
    "torch.bool": "BOOL",
}
"""Names of the torch dtypes in the safetensors format."""
MODEL_PREFIX, EMA_PREFIX = "model.", "ema."
"""Prefixes of tensor names: model weights, and their exponential moving average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Saved state of one step."""

    step: int
    tensors: dict[str, Tensor]
    """By name with a prefix, such as `model.` (MODEL_PREFIX); optimizer state included."""
    metadata: dict[str, Any]
    """JSON values that training needs to resume."""
    is_best: bool
    """Whether it was the best when it was saved."""
    skipped: tuple[str, ...] = ()
    """One message for each newer checkpoint that is damaged and was therefore not read."""


class CheckpointInfo(NamedTuple):
    """A checkpoint in the folder, without its tensors."""

    step: int
    path: Path
    """Path of the tensor file."""
    is_best: bool
    metadata: dict[str, Any]


def write_checkpoint(
    folder: Path,
    step: int,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, Any],
    *,
    is_best: bool,
) -> None:
    """Write a checkpoint; when this returns, it survives a power failure."""
    json_path = folder / f"step-{step:08d}.json"
    first_path = folder / f"step-{step:08d}.safetensors"
    second_path = folder / f"step-{step:08d}.again.safetensors"
    previous = _read_document(json_path)
    # never overwrite the tensors that the present JSON file refers to
    is_taken = previous is not None and previous["tensors"]["file"] == first_path.name
    tensor_path = second_path if is_taken else first_path
    distinct, shared = _split_shared(tensors)
    with open_atomic(tensor_path) as file:
        size, digest = _write_tensors(file, distinct)
    document = {
        "step": step,
        "best": is_best,
        "tensors": {"file": tensor_path.name, "bytes": size, "sha256": digest},
        "shared": shared,
        "metadata": dict(metadata),
    }
    with open_atomic(json_path) as file:
        file.write(encode_document(document))


def read_checkpoint(folder: Path, step: int) -> Checkpoint:
    """Read the checkpoint of a step; RunError if it is missing or damaged."""
    json_path = folder / f"step-{step:08d}.json"
    with translate_errors(f"{json_path} cannot be read"):
        document = _read_document(json_path)
        if document is None:
            raise RunError(f"{json_path} is damaged: its checksum is wrong")
        tensor_path = folder / document["tensors"]["file"]
        with open_ordinary_file(tensor_path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != document["tensors"]["sha256"]:
        raise RunError(f"{tensor_path} is damaged: its checksum is wrong")
    try:
        tensors = safetensors.load_file(tensor_path)
        if not CAN_MOVE_OPEN_FILES:
            # they are views of the mapped file, which could then not be replaced or deleted
            tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        tensors |= {name: tensors[source] for name, source in document["shared"].items()}
    except Exception as error:  # safetensors raises an error class of its own
        raise RunError(f"{tensor_path} is damaged: {error}") from None
    return Checkpoint(
        step=step, tensors=tensors, metadata=document["metadata"], is_best=document["best"]
    )


def list_steps(folder: Path) -> list[int]:
    """Steps that have a checkpoint, complete or damaged, in ascending order."""
    if not folder.is_dir():
        return []
    matches = (re.fullmatch(r"step-(\d+)\.json", path.name) for path in folder.iterdir())
    return sorted(int(match[1]) for match in matches if match)


def list_checkpoints(folder: Path) -> list[CheckpointInfo]:
    """The checkpoints, oldest first; without those whose JSON or tensor file size is wrong."""
    checkpoints = []
    for step in list_steps(folder):
        document = _read_document(folder / f"step-{step:08d}.json")
        if document is None:
            continue
        path = folder / document["tensors"]["file"]
        if get_file_size(path) == document["tensors"]["bytes"]:
            info = CheckpointInfo(step, path, document["best"], document["metadata"])
            checkpoints.append(info)
    return checkpoints


def find_best(folder: Path) -> CheckpointInfo | None:
    """The newest checkpoint that was the best when it was saved."""
    return next((info for info in reversed(list_checkpoints(folder)) if info.is_best), None)


def read_best(folder: Path) -> Checkpoint | None:
    """Read the best checkpoint; None if there is none; RunError if it is damaged."""
    while (best := find_best(folder)) is not None:
        try:
            return read_checkpoint(folder, best.step)
        except RunError:
            # if the best has changed meanwhile, a writer saved a better one and pruned this: retry
            if find_best(folder) == best:
                raise
    return None


def read_newest(folder: Path) -> Checkpoint | None:
    """Read the newest complete checkpoint; None if there is none; RunError if all are damaged."""
    while True:
        steps = list_steps(folder)
        errors = []
        for step in reversed(steps):
            try:
                return replace(read_checkpoint(folder, step), skipped=tuple(errors))
            except RunError as error:
                errors.append(str(error))
        if list_steps(folder) == steps:  # otherwise a writer saved and pruned meanwhile: retry
            break
    if errors:
        raise RunError(f"all checkpoints in {folder} are damaged: " + "; ".join(errors))
    return None


def prune_checkpoints(folder: Path, keep: int) -> None:
    """Delete all but the newest `keep` and the best, and leftovers of killed processes."""
    best = find_best(folder)
    _delete_others(folder, [*list_checkpoints(folder)[-keep:], *([best] if best else [])])


def delete_after(folder: Path, step: int) -> None:
    """Delete the checkpoints of later steps, newest first, and leftovers of killed processes."""
    _delete_others(folder, [info for info in list_checkpoints(folder) if info.step <= step])


def find_tensor_file(data: bytes, stem: str) -> tuple[str, str] | None:
    """Name and SHA-256 of the tensor file of a checkpoint; None if its JSON file is damaged.

    `data` and `stem` are the content of the JSON file, and its name without suffix.
    """
    document = _parse_document(data, stem)
    if document is None:
        return None
    return document["tensors"]["file"], document["tensors"]["sha256"]


def select_weights(checkpoint: Checkpoint, prefix: str = MODEL_PREFIX) -> dict[str, Tensor]:
    """The tensors of the model (MODEL_PREFIX) or of its average (EMA_PREFIX), by parameter name.

    The names in the result are without the prefix, as `load_state_dict` expects them.
    """
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in checkpoint.tensors.items()
        if name.startswith(prefix)
    }


@contextmanager
def check_network_match(checkpoint: Checkpoint, source: Path | str) -> Iterator[None]:
    """Turn errors inside the block into RunError "the checkpoint … is of another network".

    The caller loads the checkpoint's state inside the block. `source` (the run) begins the message.
    """
    try:
        yield
    except (RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1].strip()
        raise RunError(
            f"{source}: the checkpoint of step {checkpoint.step} is of another network: {reason}"
        ) from error


def _delete_others(folder: Path, kept: list[CheckpointInfo]) -> None:
    """Delete every checkpoint file that does not belong to `kept`, temporary files included."""
    kept_names = {name for info in kept for name in (info.path.name, f"step-{info.step:08d}.json")}
    obsolete_paths = [
        path
        for path in folder.iterdir()
        if re.match(r"\.?step-", path.name) and path.name not in kept_names
    ]
    # JSON files first, newest first: what remains at any instant is complete up to some step
    for path in sorted(
        obsolete_paths, key=lambda path: (path.suffix == ".json", path.name), reverse=True
    ):
        if path.is_dir():  # not from this program; it would block the name of a checkpoint
            shutil.rmtree(path)
        else:
            delete_file(path)  # what another program has open is deleted the next time
    if obsolete_paths:
        sync_folder(folder)


def _split_shared(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Separate tied tensors: (distinct tensors by name, name of a tied tensor → its first name)."""
    distinct: dict[str, Tensor] = {}
    shared: dict[str, str] = {}
    first_names: dict[tuple[Any, ...], str] = {}
    for name, tensor in tensors.items():
        if str(tensor.dtype) not in SAFETENSORS_DTYPES or tensor.layout != torch.strided:
            raise TypeError(f"a checkpoint cannot hold `{name}`: {tensor.dtype}, {tensor.layout}")
        memory_key = (
            tensor.device,
            tensor.data_ptr(),
            tensor.dtype,
            tensor.shape,
            tensor.stride(),
            tensor.is_conj(),
            tensor.is_neg(),
        )
        if tensor.numel() and memory_key in first_names:  # empty tensors all have data_ptr() == 0
            shared[name] = first_names[memory_key]
        else:
            distinct[name] = tensor
            first_names[memory_key] = name
    return distinct, shared


def _write_tensors(file: BinaryIO, tensors: Mapping[str, Tensor]) -> tuple[int, str]:
    """Write a safetensors file in one pass, tensor by tensor; returns its size and SHA-256.

    Not with the library: that needs all bytes in memory at once, refuses tensors that share memory,
    and the file would have to be read again for its checksum.
    """
    header: dict[str, Any] = {}
    end = 0
    # widest dtypes first: then every tensor begins at a multiple of its element size
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    for name in names:
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": SAFETENSORS_DTYPES[str(tensor.dtype)],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    header_bytes = json.dumps(header).encode()
    header_bytes += b" " * (-len(header_bytes) % 8)  # tensors begin at a multiple of 8 bytes
    digest, size = hashlib.sha256(), 0
    length = len(header_bytes).to_bytes(8, "little")
    for block in (length, header_bytes, *(tensors[name] for name in names)):
        data = block if isinstance(block, bytes) else _tensor_bytes(block)
        file.write(data)
        digest.update(data)
        size += len(data)
    return size, digest.hexdigest()


def _tensor_bytes(tensor: Tensor) -> memoryview:
    """The tensor's bytes in row-major order; copied only if they are not laid out so already."""
    contiguous = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return contiguous.reshape(-1).view(torch.uint8).numpy().data


def encode_document(document: dict[str, Any]) -> bytes:
    """The JSON file of a document: its entries, then their SHA-256."""
    digest = hashlib.sha256(json.dumps(document, indent=1).encode()).hexdigest()
    return (json.dumps({**document, "sha256": digest}, indent=1) + "\n").encode()


def _read_document(path: Path) -> dict[str, Any] | None:
    """Read a checkpoint's JSON file; None if it is missing or any byte was changed."""
    try:
        return _parse_document(read_small_file(path), path.stem)
    except FileNotFoundError:
        return None


def _parse_document(data: bytes, stem: str) -> dict[str, Any] | None:
    """Parse the bytes of a checkpoint's JSON file; None if any of them was changed.

    The checksum detects accidents. Somebody who edits the file on purpose can write a new checksum:
    so the types of all values are checked too, and the tensor file must be in the same folder.
    """
    try:
        document = json.loads(data)
        document.pop("sha256")
        is_intact = encode_document(document) == data
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return None
    return document if is_intact and _is_valid_document(document, stem) else None


def _is_valid_document(document: dict[str, Any], stem: str) -> bool:
    """Whether all types are right and the names fit; `stem` is that of the JSON file."""
    tensors, shared = document.get("tensors"), document.get("shared")
    return (
        type(document.get("step")) is int
        and stem == f"step-{document['step']:08d}"
        and isinstance(document.get("best"), bool)
        and isinstance(document.get("metadata"), dict)
        and isinstance(tensors, dict)
        and tensors.get("file") in (f"{stem}.safetensors", f"{stem}.again.safetensors")
        and isinstance(tensors.get("sha256"), str)
        and type(tensors.get("bytes")) is int
        and isinstance(shared, dict)
        and all(isinstance(source, str) for source in shared.values())
    )
