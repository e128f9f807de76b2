"""A network that was trained elsewhere comes in: its weights, a program that means the same, a run folder with both.

Nothing in a file is executed: safetensors hold numbers alone, and of a .pt file only tensors and plain data are read
(`torch.load(weights_only=True)`); what claims to be larger than the file is refused before it is made.
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

from neural.blueprint import parse
from neural.core.files import sync_folder
from neural.core.settings import Settings, read_settings, resolved
from neural.modules.late import late, torch
from neural.tasks.experiment import Experiment
from neural.tasks.task import TaskError
from neural.tracking.environment import environment
from neural.tracking.folder import put_in_place
from neural.tracking.run import Run
from neural.tracking.trouble import in_words

if TYPE_CHECKING:
    from torch import Tensor

safetensors = late("safetensors.torch")


class CannotImport(TaskError):
    """The file is not what it was said to be; the message says what is missing, and what to do."""


class Came(NamedTuple):
    """A network that came in."""

    experiment: Experiment
    """What the run is called and which task it belongs to; has the program."""
    program: str
    weights: dict[str, Tensor]
    """Under our names."""
    facts: dict[str, Any]
    """What the numbers mean: `vocabulary`."""


class Import:
    """A kind of file that can come in; one file of `neural/imports/`."""

    Settings: ClassVar[type[Settings]] = Settings
    """What the weights do not tell, said by `--set KEY=VALUE`."""

    def read(self, document: Mapping[str, Any], settings: Any, name: str) -> Came:
        """The network in it; CannotImport where it is something else."""
        raise NotImplementedError

    def verify(self, document: Mapping[str, Any], settings: Any, model: Any) -> float | None:
        """How far the outputs of our network are from the original's; None where it is not here to be asked."""
        return None


class Imported(NamedTuple):
    """What came of it."""

    path: Path
    parameters: int
    difference: float | None


def import_file(
    path: Path, kind: type[Import], changes: Sequence[str] = (), *, runs: Path = Path("runs"),
    output: Path | None = None,
) -> Imported:  # fmt: skip
    """A run folder with the network of a file in it; it appears whole or not at all."""
    form = kind()
    settings = read_settings(kind.Settings, None, changes)
    document = document_of(path)
    came = form.read(document, settings, path.stem)
    plan = parse(came.program)
    if plan.parameters > path.stat().st_size:   # a weight takes a byte at least
        raise CannotImport(f"{path} has not the {plan.parameters:,} numbers that a network of its sizes has")
    model = plan.build().eval()
    try:
        model.load_state_dict({name: one.float() for name, one in came.weights.items()})
    except RuntimeError as problem:
        why = str(problem).strip().splitlines()[-1].strip()
        raise CannotImport(f"{path} does not hold all that such a network has: {why}") from None
    apart = form.verify(document, settings, model)
    if apart is not None and not apart <= 1e-5:
        raise CannotImport(f"the network of {path} gives other numbers here: they differ by {apart:.2g}")
    if output is not None and output.exists():
        raise CannotImport(f"{output} is there already; name another folder with -o")
    return Imported(_run(came, model, path, runs, output), sum(one.numel() for one in model.parameters()), apart)


def _run(came: Came, model: Any, path: Path, runs: Path, output: Path | None) -> Path:
    """Made aside, with its weights in it, and put in place in one step."""
    root = output.absolute().parent if output else runs.absolute()
    aside = root / f".import-{os.getpid()}"
    with in_words(f"nothing can be imported into {root}"):
        try:
            about = {**environment(), "imported": path.name}
            settings, name = resolved(came.experiment), came.experiment.name or "imported"
            with Run.create(aside, name, settings=settings, program=came.program, environment=about) as run:
                run.describe("parameters", sum(one.numel() for one in model.parameters()))
                for key, value in came.facts.items():
                    run.describe(key, value)
                run.event(0, "imported", f"from {path.name}")
                run.save(0, {f"model.{key}": one for key, one in model.state_dict().items()}, {}, best=True)
                run.finish("finished", f"imported from {path.name}")
                if output is None:
                    place = put_in_place(run.path, root, name, time.time())
                else:
                    place = run.path.rename(output.absolute())
            sync_folder(root)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return place


def document_of(path: Path) -> dict[str, Any]:
    """Names and tensors of a safetensors file; of a .pt file, the plain data in it."""
    if not path.is_file():
        raise CannotImport(f"there is no file {path}")
    size = path.stat().st_size
    if path.suffix == ".safetensors":
        try:
            return dict(safetensors.load_file(path))
        except Exception as problem:   # the library has an error class of its own
            raise CannotImport(f"{path} is no safetensors file: {problem}") from None
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(one.file_size for one in archive.infolist())
    except Exception:   # a directory can be broken in any way
        old = f"{path} is no file of today's torch.save; load it where it came from and save it again"
        raise CannotImport(old) from None
    if unpacked > size:   # torch packs nothing
        raise CannotImport(f"{path} says that it holds {unpacked:,} bytes in {size:,}: torch.save writes no such files")
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as problem:   # unpickling can fail in any way; all of them are about the file
        # torch's own words advise to run what is in the file
        named = re.search(r"GLOBAL (\S+)", str(problem))
        why = f"it names `{named[1]}`" if named else type(problem).__name__
        raise CannotImport(f"{path} holds more than tensors and plain data, or is damaged: {why}") from None
    if not isinstance(found, dict):
        raise CannotImport(f"{path} holds a {type(found).__name__}, no state dict; save `model.state_dict()`")
    _no_larger(found, size, path)
    return found


def _no_larger(found: Any, size: int, path: Path, depth: int = 0) -> None:
    """A tensor can claim to be a million times one number; copied, it would be that large."""
    values = found.values() if isinstance(found, dict) else found if isinstance(found, list | tuple) else ()
    for one in values:
        if isinstance(one, torch.Tensor) and one.numel() * one.element_size() > size:
            raise CannotImport(f"{path}: a tensor of {tuple(one.shape)} is larger than the file")
        if isinstance(one, dict | list | tuple) and depth < 4:
            _no_larger(one, size, path, depth + 1)


def tensors_in(document: Mapping[str, Any], what: str) -> dict[str, Tensor]:
    """The state dict of a document, whatever the trainer wrapped it in."""
    for wrapped in ("state_dict", "model", "model_state_dict"):
        if isinstance(document.get(wrapped), dict):
            document = document[wrapped]
    named = {str(name): one for name, one in document.items() if isinstance(one, torch.Tensor)}
    if not named or any(not one.is_floating_point() and one.dtype != torch.bool for one in named.values()):
        raise CannotImport(f"this is no state dict of {what}: there are no tensors of floats in it")
    if sparse := next((name for name, one in named.items() if one.layout != torch.strided), None):
        raise CannotImport(f"`{sparse}` is a sparse tensor; save it with `.to_dense()`")
    return named
