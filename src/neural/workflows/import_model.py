"""Import a checkpoint of other software (Hugging Face, …) as a run folder with the same network.

The network is written as a program, text in the `.neural` language; a run is the folder of one
training, here with zero steps. Nothing in a file is executed: safetensors files hold
only numbers, and of a .pt file only tensors and plain data are read
(`torch.load(weights_only=True)`). Content that claims to be larger than the file is refused before
it is allocated.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from neural.core.errors import TaskError
from neural.core.experiment import Experiment
from neural.core.platform_support import rename_folder, sync_folder
from neural.core.settings import Settings, dump_settings, read_settings
from neural.nn.lazy_torch import lazy_import, torch
from neural.runs.environment import collect_environment
from neural.runs.errors import translate_errors
from neural.runs.folder import publish_folder
from neural.runs.run import Run
from neural.workflows.load import parse

if TYPE_CHECKING:
    from torch import Tensor

safetensors = lazy_import("safetensors.torch")
TOLERANCE = 1e-5
"""Largest allowed difference between the outputs of the original and of the imported network."""
MAX_NESTING_DEPTH = 4
"""Levels of nested containers in a .pt file whose tensors are checked; deeper ones are not."""


class ModelImportError(TaskError):
    """The file cannot be imported; the message says what is missing and what to do."""


class ImportedModel(NamedTuple):
    """A network read from a checkpoint of other software."""

    experiment: Experiment
    """Name, task and network of the run."""
    program: str
    """Text of a `.neural` program of the network."""
    weights: dict[str, Tensor]
    """State dict with the names of our modules."""
    metadata: dict[str, Any]
    """Metadata of the run: `vocabulary`, the text of each token id."""


class Importer:
    """Base class of import formats; one file of `neural/imports/` each."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names for `--as`."""
    Settings: ClassVar[type[Settings]] = Settings
    """Settings that the weights do not contain (the number of heads), by `--set KEY=VALUE`."""

    def read(self, checkpoint: Mapping[str, Any], settings: Any, name: str) -> ImportedModel:
        """Convert a checkpoint to a network called `name`. ModelImportError for other formats.

        `settings` is an instance of the importer's `Settings`.
        """
        raise NotImplementedError

    def verify(self, checkpoint: Mapping[str, Any], settings: Any, model: Any) -> float | None:
        """Largest difference of the outputs of `model` and of the original network.

        None if the original cannot be run here, say, because its package is not installed.
        """
        return None


class ImportResult(NamedTuple):
    """An imported network."""

    path: Path
    """The run folder."""
    num_parameters: int
    max_difference: float | None
    """Largest difference to the original's outputs; None if the original cannot be run here."""


def import_file(
    path: Path,
    importer_type: type[Importer],
    overrides: Sequence[str] = (),
    *,
    runs: Path = Path("runs"),
    output: Path | None = None,
) -> ImportResult:
    """Create a run folder with the network of a file; the folder appears atomically.

    The folder is `output`, or a new one in `runs`. `overrides` are texts such as `num_heads=8`, for
    the importer's settings.
    """
    importer = importer_type()
    settings = read_settings(importer_type.Settings, None, overrides)
    checkpoint = read_checkpoint_file(path)
    imported = importer.read(checkpoint, settings, path.stem)
    blueprint = parse(imported.program)
    # checked before building: a small file must not allocate a huge network (a weight takes at
    # least one byte)
    if blueprint.parameters > path.stat().st_size:
        raise ModelImportError(
            f"{path} is too small for the {blueprint.parameters:,} parameters of its network"
        )
    model = blueprint.build().eval()
    try:
        model.load_state_dict({name: tensor.float() for name, tensor in imported.weights.items()})
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise ModelImportError(f"{path} lacks weights of its network: {reason}") from None
    difference = importer.verify(checkpoint, settings, model)
    if difference is not None and not difference <= TOLERANCE:
        raise ModelImportError(
            f"the network imported from {path} does not match the original: "
            f"outputs differ by {difference:.2g}"
        )
    if output is not None and output.exists():
        raise ModelImportError(f"{output} exists already; choose another folder with -o")
    return ImportResult(
        _create_run(imported, model, path, runs, output), _count_parameters(model), difference
    )


def _create_run(
    imported: ImportedModel, model: Any, path: Path, runs: Path, output: Path | None
) -> Path:
    """Write a run with a checkpoint to a temporary folder, then rename it."""
    root = output.absolute().parent if output else runs.absolute()
    folder = root / f".import-{os.getpid()}"
    name = imported.experiment.name or "imported"
    with translate_errors(f"nothing can be imported into {root}"):
        try:
            with Run.create(
                folder,
                name,
                settings=dump_settings(imported.experiment),
                program=imported.program,
                environment={**collect_environment(), "imported": path.name},
            ) as run:
                run.set_metadata("parameters", _count_parameters(model))
                for key, value in imported.metadata.items():
                    run.set_metadata(key, value)
                run.log_event(0, "imported", f"from {path.name}")
                tensors = {f"model.{key}": tensor for key, tensor in model.state_dict().items()}
                run.save(0, tensors, {}, best=True)
                run.finish("finished", f"imported from {path.name}")
                if output is None:
                    published = publish_folder(run.path, root, name, time.time())
                else:
                    published = output.absolute()
                    rename_folder(run.path, published)
            sync_folder(root)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return published


def _count_parameters(model: Any) -> int:
    return sum(param.numel() for param in model.parameters())


def read_checkpoint_file(path: Path) -> dict[str, Any]:
    """Read a safetensors file (names and tensors), or the plain data of a .pt file."""
    if not path.is_file():
        raise ModelImportError(f"there is no file {path}")
    if path.suffix == ".safetensors":
        try:
            return dict(safetensors.load_file(path))
        except Exception as error:  # the library has an error class of its own
            raise ModelImportError(f"{path} is not a safetensors file: {error}") from None
    file_size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except Exception:  # a damaged zip directory can raise any error
        raise ModelImportError(
            f"{path} is not a zip file of torch.save (PyTorch 1.6 or newer); "
            "load it with the program that wrote it and save it again"
        ) from None
    # torch.save does not compress: a compressed archive may be a zip bomb
    if unpacked > file_size:
        raise ModelImportError(
            f"{path} claims to hold {unpacked:,} bytes in {file_size:,}: "
            "torch.save does not write compressed files"
        )
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # unpickling a damaged file can raise any error
        # torch's own message recommends weights_only=False, which executes the file: do not show it
        refused = re.search(r"GLOBAL (\S+)", str(error))
        reason = f"it names `{refused[1]}`" if refused else type(error).__name__
        raise ModelImportError(
            f"{path} holds more than tensors and plain data, or is damaged: {reason}"
        ) from None
    if not isinstance(checkpoint, dict):
        raise ModelImportError(
            f"{path} holds a {type(checkpoint).__name__}, not a state dict; "
            "save `model.state_dict()`"
        )
    _check_tensor_sizes(checkpoint, file_size, path)
    return checkpoint


def _check_tensor_sizes(container: Any, file_size: int, path: Path, depth: int = 0) -> None:
    """Raise ModelImportError for a tensor that is larger than the file.

    A tensor with stride 0 can claim a billion elements and store one; a copy would allocate all.
    """
    if isinstance(container, dict):
        values = list(container.values())
    else:
        values = list(container) if isinstance(container, list | tuple) else []
    for value in values:
        if isinstance(value, torch.Tensor) and value.numel() * value.element_size() > file_size:
            raise ModelImportError(
                f"{path}: a tensor of {tuple(value.shape)} is larger than the file"
            )
        if isinstance(value, dict | list | tuple) and depth < MAX_NESTING_DEPTH:
            _check_tensor_sizes(value, file_size, path, depth + 1)


def extract_state_dict(checkpoint: Mapping[str, Any], kind: str) -> dict[str, Tensor]:
    """The state dict of a checkpoint, unwrapped from the keys that trainers commonly use.

    `kind` names the expected network, for messages.
    """
    for key in ("state_dict", "model", "model_state_dict"):
        if isinstance(checkpoint.get(key), dict):
            checkpoint = checkpoint[key]
    tensors = {
        str(name): value for name, value in checkpoint.items() if isinstance(value, torch.Tensor)
    }
    is_float = all(
        tensor.is_floating_point() or tensor.dtype == torch.bool for tensor in tensors.values()
    )
    if not tensors or not is_float:
        raise ModelImportError(f"this is not a state dict of {kind}: it has no float tensors")
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided:
            raise ModelImportError(f"`{name}` is a sparse tensor; save it with `.to_dense()`")
    return tensors
