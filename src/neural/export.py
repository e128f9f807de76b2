"""A trained network leaves for other programs: what leaves, and the proof that what was written is the same.

    from neural.exports import registry as exports
    leaving = leaving_from("runs/…")                        the network of a run, with its best weights
    export(leaving, exports.get("onnx"), Path("net.onnx"))  written aside, read back, compared; only then in place
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from neural.core.files import is_device, sync_folder
from neural.experiments import best_model
from neural.export_inputs import CannotExport, Leaving, difference, leaving_of, shape_of
from neural.language.shapes import Shape
from neural.modules.segmenter import Segmenter
from neural.tracking.run import Run
from neural.tracking.trouble import in_words

if TYPE_CHECKING:
    from torch import Tensor

INSTALL = 'pip install "neural[export]"'
class Export:
    """A form in which a network can leave; one file of `neural/exports/`."""

    suffix: ClassVar[str] = ""
    """Of the file; nothing for a folder."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Packages that must be there."""
    tolerance: ClassVar[float] = 1e-4
    """Of an `Exported.difference`."""

    def adapt(self, leaving: Leaving) -> Leaving:
        """The network with the inputs and the output that this form has, whatever was asked for."""
        return leaving

    def input_names(self, leaving: Leaving) -> list[str]:
        """What the inputs are called in it."""
        return [one.name for one in leaving.inputs]

    def output_name(self, leaving: Leaving) -> str:
        """What the output is called in it."""
        return leaving.gives

    def check(self, leaving: Leaving) -> None:
        """CannotExport where the form has no words for the network; before anything is written."""

    def write(self, leaving: Leaving, path: Path) -> None:
        """Write it, there where nobody looks yet."""
        raise NotImplementedError

    def read(self, leaving: Leaving, path: Path) -> Callable[..., Tensor]:
        """What was written, read back from its file as a stranger would: to be called with tensors."""
        raise NotImplementedError

    def use(self, leaving: Leaving, path: Path) -> str:
        """How to load it, in a line."""
        raise NotImplementedError


class Exported(NamedTuple):
    """What came of it."""

    path: Path
    size: int
    """Bytes."""
    shapes: list[Shape]
    """Of the inputs it was compared at; of two sequences, both."""
    difference: float
    """The largest of any number that came out; where numbers are above 1, as a share of the largest of them."""


def leaving_from(
    run: str | Path, *, scores: bool = False, masked: bool = False, length: int | None = None
) -> Leaving:
    """The network of a run as it is going to leave: `masked` with an input for padding, `length` for that one alone."""
    with Run.open(run) as opened:
        model: Any = best_model(opened.path)
        facts = {"vocabulary": opened.described("vocabulary")}
        facts |= {name: opened.settings.get(name) for name in ("features", "labels") if isinstance(model, Segmenter)}
        task = opened.settings.get("task", "")
    return leaving_of(
        model.float(), opened.name, scores=scores, masked=masked, length=length, task=task,
        facts={name: fact for name, fact in facts.items() if fact is not None},
    )  # fmt: skip


def export(leaving: Leaving, kind: type[Export], path: Path) -> Exported:
    """Write it aside, read it back, compare at several shapes; in place only if all is well, else nothing changed."""
    form, name = kind(), kind.__name__.lower()
    missing = [one for one in form.needs if find_spec(one) is None]
    if missing:
        raise CannotExport(f"exporting to {name} needs {' and '.join(missing)}, not installed here: {INSTALL}")
    leaving = form.adapt(leaving)
    form.check(leaving)
    if path.is_dir() and (form.suffix or any(path.iterdir())):
        raise CannotExport(f"{path} is a folder with something in it; name another place with -o")
    if is_device(path) or (path.is_file() and not form.suffix):
        raise CannotExport(f"{path} is no place for {'a file' if form.suffix else 'a folder'}; name another with -o")
    with in_words(f"{path} cannot be written"):
        aside = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=f".{path.name}."))
        try:
            made = aside / path.name
            form.write(leaving, made)
            shapes, difference = compared(leaving, form.read(leaving, made), name, form.tolerance)
            size = _synced(made)
            made.replace(path)
            sync_folder(path.absolute().parent)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return Exported(path, size, shapes, difference)


def compared(
    leaving: Leaving, again: Callable[..., Tensor], name: str, tolerance: float
) -> tuple[list[Shape], float]:
    """The shapes tried and the largest difference; CannotExport where one is too large."""
    shapes, largest = [], 0.0
    for trial in leaving.trials:
        inputs = leaving.batch(*trial)
        shape, wanted = shape_of(leaving, inputs), leaving(*inputs)
        try:
            got = again(*inputs)
        except Exception as problem:   # whatever the other program says
            raise _disagrees(leaving, name, f"fails at {shape}: {str(problem).strip().splitlines()[0]}") from problem
        if got.shape != wanted.shape:
            raise _disagrees(leaving, name, f"gives {tuple(got.shape)} at {shape}, not {tuple(wanted.shape)}")
        most = difference(got, wanted, leaving.counted(inputs, wanted))
        if not most <= tolerance:   # also where it is no number
            raise _disagrees(leaving, name, f"differs by {most:.2g} at {shape}; {tolerance:.0e} is allowed")
        largest = max(largest, most)
        shapes.append(shape)
    return shapes, largest


def _disagrees(leaving: Leaving, name: str, how: str) -> CannotExport:
    fixed = f"; --length {leaving.length} exports for that length alone" if leaving.free else ""
    return CannotExport(f"what was written to {name} is not the network: it {how}. It was thrown away{fixed}")


def _synced(path: Path) -> int:
    """Wait until it is on the disk; how many bytes it is."""
    files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
    for file in files:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
    return sum(file.stat().st_size for file in files)
