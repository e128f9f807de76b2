"""Export a trained network to another program's format, and verify what was written.

from neural.exports import registry as exports
bundle = load_bundle("runs/…")                         the network of a run, with its best weights
export(bundle, exports.get("onnx"), Path("net.onnx"))  write, read back, compare, then rename

A run is the folder of one training. A segmenter labels the elements, such as sentences, of a
document.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from neural.core.distribution import format_install_command
from neural.core.files import is_device, temporary_prefix
from neural.core.platform_support import (
    CAN_MOVE_OPEN_FILES,
    replace_file,
    sync_file,
    sync_folder,
)
from neural.language.shapes import Shape
from neural.runs.errors import translate_errors
from neural.runs.run import Run
from neural.tasks.segmentation.model import Segmenter
from neural.training.load_model import load_best_model
from neural.workflows.export_bundle import (
    ExportBundle,
    ExportError,
    create_bundle,
    input_shape,
    max_difference,
)

if TYPE_CHECKING:
    from torch import Tensor


class Exporter:
    """Base class of export formats; one file of `neural/exports/` each."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names for `--to`, such as `hf`."""
    suffix: ClassVar[str] = ""
    """Suffix of the file; empty if the format is a folder."""
    required_packages: ClassVar[tuple[str, ...]] = ()
    """Packages that must be installed."""
    max_output_difference: ClassVar[float] = 1e-4
    """Largest allowed difference of the exported network's outputs (`ExportResult`)."""

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring, for `neural export --help`."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    def adapt(self, bundle: ExportBundle) -> ExportBundle:
        """The bundle with the inputs and the output that this format always has, such as masks."""
        return bundle

    def input_names(self, bundle: ExportBundle) -> list[str]:
        """Names of the inputs in the exported file."""
        return [spec.name for spec in bundle.inputs]

    def output_name(self, bundle: ExportBundle) -> str:
        """Name of the output in the exported file."""
        return bundle.output_name

    def check(self, bundle: ExportBundle) -> None:
        """Raise ExportError for a network that the format cannot represent, before writing."""

    def write(self, bundle: ExportBundle, path: Path) -> None:
        """Write the network to `path`, a temporary one; `export` moves the result."""
        raise NotImplementedError

    def read(self, bundle: ExportBundle, path: Path) -> Callable[..., Tensor]:
        """Load the written file as its users do; the result is called with tensors."""
        raise NotImplementedError

    def describe_usage(self, bundle: ExportBundle, path: Path) -> str:
        """One line that says how to load the file."""
        raise NotImplementedError


class ExportResult(NamedTuple):
    """A verified export."""

    path: Path
    num_bytes: int
    shapes: list[Shape]
    """Input shapes that were compared; for networks with two sequences, pairs of shapes."""
    max_difference: float
    """Largest difference of any output; above 1, relative to the largest output."""


def load_bundle(
    run: str | Path,
    *,
    return_logits: bool = False,
    with_mask: bool = False,
    length: int | None = None,
) -> ExportBundle:
    """Prepare the network of a run for export, with its best weights.

    `return_logits` exports the logits instead of the predictions, `with_mask` adds an input for the
    padding mask, `length` fixes the number of positions.
    """
    with Run.open(run) as opened:
        model: Any = load_best_model(opened.path)
        metadata = {
            "vocabulary": opened.metadata("vocabulary"),
            # names of the columns, of the target and of its classes by output unit
            "columns": opened.metadata("data/columns") or None,
            "target": opened.metadata("data/target"),
            "classes": opened.metadata("data/classes") or None,
            # how columns of a table became the inputs: the exported network does not do it
            "preprocessing": opened.metadata("data/preprocessing"),
            # how outputs become values in the units of the data: neither does it do that
            "target_scaler": opened.metadata("data/target_scaler"),
        }
        if isinstance(model, Segmenter):
            # names of the input columns, and of the output classes
            metadata |= {key: opened.settings.get(key) for key in ("features", "labels")}
        task = opened.settings.get("task", "")
    return create_bundle(
        model.float(),
        opened.name,
        return_logits=return_logits,
        with_mask=with_mask,
        length=length,
        task=task,
        metadata={key: value for key, value in metadata.items() if value is not None},
    )


def export(bundle: ExportBundle, exporter_type: type[Exporter], path: Path) -> ExportResult:
    """Write to a temporary folder, read back, compare at several shapes, then move to `path`.

    Raises ExportError if anything fails or differs; then `path` is unchanged.
    """
    exporter, name = exporter_type(), exporter_type.__name__.lower()
    missing = [package for package in exporter.required_packages if find_spec(package) is None]
    if missing:
        raise ExportError(
            f"exporting to {name} needs {' and '.join(missing)}, "
            f"not installed here: {format_install_command('export')}"
        )
    bundle = exporter.adapt(bundle)
    exporter.check(bundle)
    _check_path(path, exporter)
    with translate_errors(f"{path} cannot be written"):
        # next to the target, so that the final rename stays on one file system and is atomic
        folder = Path(
            tempfile.mkdtemp(dir=path.absolute().parent, prefix=temporary_prefix(path.name))
        )
        try:
            temporary_path = folder / path.name
            exporter.write(bundle, temporary_path)
            reloaded = exporter.read(bundle, temporary_path)
            shapes, difference = compare_outputs(
                bundle, reloaded, name, exporter.max_output_difference
            )
            del reloaded
            if not CAN_MOVE_OPEN_FILES:  # it may have the files mapped into memory
                gc.collect()
            num_bytes = _sync_to_disk(temporary_path)
            if path.is_dir():  # empty: Windows does not replace folders
                path.rmdir()
            replace_file(temporary_path, path)
            sync_folder(path.absolute().parent)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return ExportResult(path, num_bytes, shapes, difference)


def _check_path(path: Path, exporter: Exporter) -> None:
    """Raise ExportError if the export would replace a folder, a device, a pipe or a user's file."""
    if path.is_dir() and (exporter.suffix or any(path.iterdir())):
        reason = "is a folder" if exporter.suffix else "is a folder that is not empty"
        raise ExportError(f"{path} {reason}; choose another path with -o")
    if is_device(path) or (path.is_file() and not exporter.suffix):
        kind = "a file" if exporter.suffix else "a folder"
        raise ExportError(f"{path} cannot be replaced by {kind}; choose another path with -o")


def compare_outputs(
    bundle: ExportBundle, reloaded: Callable[..., Tensor], name: str, tolerance: float
) -> tuple[list[Shape], float]:
    """Compare the network with its export; returns the input shapes and the largest difference.

    `reloaded` runs the exported file, `name` is its format. ExportError above `tolerance`.
    """
    shapes, largest = [], 0.0
    for sizes in bundle.trial_sizes:
        inputs = bundle.create_batch(*sizes)
        shape, expected = input_shape(bundle, inputs), bundle(*inputs)
        try:
            output = reloaded(*inputs)
        except Exception as error:  # each runtime has error classes of its own
            message = str(error).strip().partition("\n")[0] or type(error).__name__
            reason = f"fails at {shape}: {message}"
            raise _mismatch_error(bundle, name, reason) from error
        if output.shape != expected.shape:
            reason = f"gives {tuple(output.shape)} at {shape}, not {tuple(expected.shape)}"
            raise _mismatch_error(bundle, name, reason)
        mask = bundle.compute_output_mask(inputs, expected)
        difference = max_difference(output, expected, mask)
        if not difference <= tolerance:  # also true for NaN
            reason = f"differs by {difference:.2g} at {shape}; {tolerance:.0e} is allowed"
            raise _mismatch_error(bundle, name, reason)
        largest = max(largest, difference)
        shapes.append(shape)
    return shapes, largest


def _mismatch_error(bundle: ExportBundle, name: str, reason: str) -> ExportError:
    hint = ""
    if bundle.has_dynamic_length:
        hint = f"; --length {bundle.length} exports for that length only"
    return ExportError(
        f"the {name} export does not match the network: it {reason}. It was deleted{hint}"
    )


def _sync_to_disk(path: Path) -> int:
    """Flush the written files to disk; return their size in bytes."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    for file in files:
        with file.open("rb+") as opened:  # Windows flushes only files open for writing
            sync_file(opened.fileno())
    return sum(file.stat().st_size for file in files)
