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
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from neural.core.files import is_device, sync_folder
from neural.experiments import best_model
from neural.language.shapes import Shape
from neural.modules.build import Built, any_length
from neural.modules.late import torch
from neural.modules.segmenter import Segmenter
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.tracking.trouble import in_words

if TYPE_CHECKING:
    from torch import Tensor

INSTALL = 'pip install "neural[export]"'
LONGEST = 64
"""Positions of the sequences that are tried, where any number will do."""


class CannotExport(TaskError):
    """The network cannot leave in that form; the message names what stands in the way, and a way around it."""


class Input(NamedTuple):
    """What a network is called with; the batch is left out."""

    name: str
    sizes: tuple[int | None, ...]
    """None where any size will do."""
    ids: int | None = None
    """How many different ones there are, where it takes ids."""
    mask: bool = False


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """A network ready to go: on the processor, with the weights to go with, and all that is known about its inputs."""

    name: str
    model: Any
    inputs: tuple[Input, ...]
    length: int
    """Of a usual sequence."""
    scores: bool = False
    """Whether what the loss takes goes out, and not what it predicts."""
    facts: dict[str, Any]
    """What the numbers mean: `vocabulary`, or `features` and `labels`."""

    @property
    def free(self) -> bool:
        """Whether sequences may have any length."""
        return any(None in one.sizes for one in self.inputs)

    @property
    def masked(self) -> bool:
        """Whether padding is told by a mask."""
        return any(one.mask for one in self.inputs)

    @property
    def gives(self) -> str:
        """What to call the output."""
        if self.scores:
            return "scores"
        head = self.model.network.head if isinstance(self.model, Built) else "softmax"
        return "probabilities" if head in ("softmax", "sigmoid") else "predictions"

    def __call__(self, *inputs: Tensor) -> Tensor:
        """What the other program must give, too."""
        with torch.no_grad():
            called: Tensor = (self.model.scores if self.scores else self.model)(*inputs)
        return called

    def batch(self, count: int, length: int) -> tuple[Tensor, ...]:
        """Something to call it with; the same numbers every time."""
        random = torch.Generator().manual_seed(1000 * count + length)
        made = []
        for one in self.inputs:
            sizes = (count, *(length if size is None else size for size in one.sizes))
            if one.mask:
                lengths = torch.randint(1, sizes[1] + 1, (count, 1), generator=random)
                made.append(torch.arange(sizes[1]) < lengths)
            elif one.ids is not None:
                made.append(torch.randint(0, one.ids, sizes, generator=random))
            else:
                made.append(torch.randn(sizes, generator=random))
        return tuple(made)

    @cached_property
    def trials(self) -> tuple[tuple[int, int], ...]:
        """Batches and lengths to compare at, such that the network takes them; the first is the one to trace."""
        lengths = [self.length, self.length - 1, (self.length + 1) // 2] if self.free else [self.length] * 3
        wanted = zip((2, 3, 1), lengths, strict=True)
        return tuple((count, length) for count, length in wanted if length and self._takes(count, length))

    def _takes(self, count: int, length: int) -> bool:
        try:
            self(*self.batch(count, length))
        except (ValueError, RuntimeError):   # windows that do not fit into so few positions
            return False
        return True

    def counted(self, inputs: tuple[Tensor, ...], gives: Tensor) -> Tensor | None:
        """The positions of the output that are not padding; None where all are real, or none is left."""
        named = {one.name: tensor for one, tensor in zip(self.inputs, inputs, strict=True)}
        two = "target" in named
        ids, mask = named.get("target", named.get("x")), named.get("target_mask" if two else "mask")
        pad = getattr(self.model.network.layers[0].layer, "pad_id", None) if isinstance(self.model, Built) else None
        if pad is not None and ids is not None:
            mask = torch.ne(ids, pad) if mask is None else torch.ne(ids, pad) & mask
        return mask if mask is not None and gives.shape[:2] == mask.shape and gives.ndim > 2 else None


class Export:
    """A form in which a network can leave; one file of `neural/exports/`."""

    suffix: ClassVar[str] = ""
    """Of the file; nothing for a folder."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Packages that must be there."""
    tolerance: ClassVar[float] = 1e-4
    """Of an `Exported.difference`."""

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
    """Of the first inputs it was compared at."""
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


def leaving_of(
    model: Any, name: str, *, scores: bool = False, masked: bool = False, length: int | None = None,
    facts: dict[str, Any] | None = None, task: str = "",
) -> Leaving:  # fmt: skip
    """A network in the hand, as it is going to leave."""
    if isinstance(model, Built):
        inputs, usual = _declared(model, masked)
    elif isinstance(model, Segmenter):
        inputs, usual = [Input("x", (None, len(model.centre)))], 24
        inputs += [Input("mask", (None,), mask=True)] if masked else []
    else:
        raise CannotExport(
            f"a run of `{task or type(model).__name__}` is more than one network: what joins them is no part of any; "
            "exported are runs of one program (supervised, language_model) and segmenters. `neural compile` writes "
            "a program as Python"
        )
    if length is not None:
        if not any(None in one.sizes for one in inputs) and length != usual:
            raise CannotExport(f"{name} takes sequences of {usual} and no others; leave --length out")
        inputs = [one._replace(sizes=tuple(length if size is None else size for size in one.sizes)) for one in inputs]
    leaving = Leaving(
        name=name, model=model.eval(), inputs=tuple(inputs), length=length or usual, scores=scores, facts=facts or {}
    )
    if not leaving.trials:
        leaving(*leaving.batch(1, leaving.length))   # says why
    return leaving


def _declared(model: Built, masked: bool) -> tuple[list[Input], int]:
    """The inputs that a program declares, and the length of a usual sequence."""
    network = model.network
    sizes = [int(network.assumed.get(dim, LONGEST)) if isinstance(dim, str) else dim for dim in network.input]
    streams = ["source", "target"] if network.two_streams else ["source"]
    sequence = network.ids or len(sizes) == 2   # else features or a picture
    free = sequence and all(any_length(network, one) for one in streams)
    ids = network.layers[0].layer.input_dim if network.ids else None   # type: ignore[attr-defined]  # an Embedding
    shape = (None if free else sizes[0], *sizes[1:])
    inputs = [Input(name, shape, ids) for name in (streams if network.two_streams else ["x"])]
    if masked:
        if not sequence:
            raise CannotExport(f"{network.name} takes no sequences, so there is no padding; leave --mask out")
        names = ["mask", "target_mask"] if network.two_streams else ["mask"]
        inputs += [Input(name, shape[:1], mask=True) for name in names]
    return inputs, max(2, min(sizes[0], LONGEST)) if free else sizes[0]   # what is traced at 1 stays at 1


def export(leaving: Leaving, kind: type[Export], path: Path) -> Exported:
    """Write it aside, read it back, compare at several shapes; in place only if all is well, else nothing changed."""
    form, name = kind(), kind.__name__.lower()
    missing = [one for one in form.needs if find_spec(one) is None]
    if missing:
        raise CannotExport(f"exporting to {name} needs {' and '.join(missing)}, not installed here: {INSTALL}")
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
        shape, wanted = tuple(inputs[0].shape), leaving(*inputs)
        try:
            got = again(*inputs)
        except Exception as problem:   # whatever the other program says
            raise _disagrees(leaving, name, f"fails at {shape}: {str(problem).strip().splitlines()[0]}") from problem
        if got.shape != wanted.shape:
            raise _disagrees(leaving, name, f"gives {tuple(got.shape)} at {shape}, not {tuple(wanted.shape)}")
        real = leaving.counted(inputs, wanted)
        apart = (got - wanted).abs() if real is None else (got - wanted).abs()[real]
        most = (apart.max() / wanted.abs().max().clamp(min=1)).item() if apart.numel() else 0.0
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
