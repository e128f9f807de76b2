"""What a run says about examples or documents that nobody has judged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural.blueprint import parse
from neural.experiments import best_model, task_of_run
from neural.language.network import Network
from neural.modules.late import torch
from neural.segmenting import Cutter, cutter_of_run
from neural.tasks.cutting.data.jsonl import Jsonl
from neural.tasks.cutting.data.ref import Ref
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.reader import Reading
from neural.tasks.cutting.reading import Raw, decode, read_raw
from neural.tasks.data.array_files import array_in, arrays_in, is_archive
from neural.tasks.data.check import check_inputs
from neural.tasks.data.find import locate, read
from neural.tasks.data.shaping import shaped
from neural.tasks.data.source import Examples
from neural.tasks.data.sources.table import MAX_LISTED, SUFFIXES, Cells, is_answer, match_columns, read_cells
from neural.tasks.supervised import Supervised
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.tracking.trouble import RunError

AT_ONCE = 256
"""Examples that go through a network together."""
INPUTS = ("x", "mask", "source", "target", "target_mask")


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedDocument:
    """Element by element."""

    document: Document
    boundaries: Boundaries
    begins: np.ndarray
    """P(a part begins at this element), (n,)."""
    labels: np.ndarray | None
    """Probabilities of the labels, (n, labels), where labels were learned."""


def predicted_documents(run: Run, source: str | bytes) -> tuple[Cutter, list[str], Iterator[PredictedDocument]]:
    """The run's segmenter, what is worth knowing, and its answers; a path, or the bytes of a text."""
    cutter = cutter_of_run(run)
    documents, remarks = _documents(source, cutter)
    return cutter, [*cutter.remarks, *remarks], (_answered(cutter, one) for one in documents)


def _answered(cutter: Cutter, document: Document) -> PredictedDocument:
    scores = cutter.scores(document)
    begins = cutter.boundary_probabilities(scores)
    labels = cutter.label_probabilities(scores) if cutter.learned == "labels" else None
    return PredictedDocument(document=document, boundaries=cutter.cut_at(begins), begins=begins, labels=labels)


def _documents(source: str | bytes, cutter: Cutter) -> tuple[list[Document], list[str]]:
    """Of a JSONL or .ref file its documents, whatever is known of their parts; anything else is one text."""
    if isinstance(source, str):
        for kind in (Jsonl, Ref):
            if Path(source).suffix.lower() in kind.suffixes:
                return kind.read(Path(source), Reading(cutter.unit, judged=False))
    raw: Raw = read_raw(Path(source)) if isinstance(source, str) else decode(source, "standard input")
    return [Document.of(raw.text, raw.name, unit=cutter.unit)], list(raw.remarks)


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedRows:
    """Example by example."""

    kind: str
    """`softmax`: probabilities of classes; `sigmoid`: of yes; `linear`: values."""
    answers: np.ndarray
    """(examples, …, units)."""
    classes: tuple[str, ...]
    """What the classes are called, where they have names."""
    notes: tuple[str, ...] = ()
    """What is worth knowing about how the rows were read."""

    def to_dict(self, number: int) -> dict[str, Any]:
        """What is said of one example, as plain data."""
        own = self.answers[number]
        if self.kind != "softmax":
            return {"probability" if self.kind == "sigmoid" else "value": _plain(own)}
        likely = own.argmax(axis=-1)
        said: dict[str, Any] = {"class": likely.tolist(), "probabilities": _plain(own)}
        return said | ({"name": self.name(int(likely))} if self.classes and own.ndim == 1 else {})

    def name(self, number: int) -> str:
        """What a class is called: its number where nobody says."""
        return self.classes[number] if number < len(self.classes) else str(number)


def predicted_rows(run: Run, source: str) -> PredictedRows:
    """Of the rows of an .npz, .npy, .csv or .tsv file, or of anything that the run could be trained on."""
    if run.program is None:
        raise RunError(f"{run.name} has no program: nobody knows what its network takes")
    network = parse(run.program, name=str(run.path / "program.neural"), network=run.network_name).network
    arrays, scale, notes = _inputs(source, network, run)
    check_inputs(arrays, network, Path(source).name)
    names = ("source", "target", "mask", "target_mask") if network.two_streams else ("x", "mask")
    model, found = best_model(run.path), []
    dtype = torch.int64 if network.ids else torch.float32
    with torch.no_grad():
        for first in range(0, len(arrays[names[0]]), AT_ONCE):
            some = {name: torch.tensor(np.asarray(one[first : first + AT_ONCE])) for name, one in arrays.items()}
            ready = [None if name not in some else some[name] != 0 if "mask" in name else some[name].to(dtype)
                     for name in names]  # fmt: skip
            ready[0] = ready[0] * scale if scale != 1 and ready[0] is not None else ready[0]
            found.append(model(*ready).float().numpy())
    return PredictedRows(kind=network.head, answers=np.concatenate(found), classes=_classes(run), notes=notes)


class Inputs(NamedTuple):
    """What a network is fed with."""

    arrays: dict[str, np.ndarray]
    """By name, without the answers."""
    scale: float = 1.0
    """What the inputs are multiplied with."""
    notes: tuple[str, ...] = ()


def _inputs(source: str, network: Network, run: Run) -> Inputs:
    """From a file of arrays or rows, or from anything that the run could be trained on."""
    path = Path(source)
    kind = path.suffix.lower()
    if path.is_file() and kind in (".npz", ".npy"):
        return Inputs(_arrays(path, network))
    if path.is_file() and kind in SUFFIXES:
        x, notes = _table(path, network, run)
        return Inputs({"x": x}, notes=notes)
    examples = read(locate(source, Path()), network)
    return Inputs({name: array for name, array in examples.train.items() if name in INPUTS}, examples.scale)


def _arrays(path: Path, network: Network) -> dict[str, np.ndarray]:
    arrays = arrays_in(path) if is_archive(path) else {"x": array_in(path)}
    if len(arrays) == 1 and not network.two_streams:
        arrays = {"x": next(iter(arrays.values()))}
    for name in ("source", "target") if network.two_streams else ("x",):
        if name not in arrays:
            raise TaskError(f"{path.name}: there is no array `{name}`; it holds {', '.join(arrays) or 'nothing'}")
    return {name: one for name, one in arrays.items() if name in INPUTS}


def _table(path: Path, network: Network, run: Run) -> tuple[np.ndarray, tuple[str, ...]]:
    """Numbers in columns, found by their names where training knew names; and what is worth a note."""
    columns, target = _training_columns(run)
    table = read_cells(path, columns)
    notes: tuple[str, ...] = ()
    if columns and table.has_header:
        positions = match_columns(table, columns, target)
    else:
        positions = _by_position(table, network)
        if columns and len(positions) == len(columns):
            shown = ", ".join(columns[:MAX_LISTED]) + (" …" if len(columns) > MAX_LISTED else "")
            notes = (f"{path.name} has no column names; its columns are taken for {shown}, in this order",)
    return shaped(table.numbers(positions), network, path.name), notes


def _by_position(table: Cells, network: Network) -> list[int]:
    """All columns in their order, without one with answers: by its name, or because it is one too many."""
    sizes = [dim for dim in network.input if isinstance(dim, int)]
    width = math.prod(sizes) if sizes else len(table.names)
    positions = [at for at, name in enumerate(table.names) if not is_answer(name)]
    return positions[:-1] if len(positions) == width + 1 == len(table.names) else positions


def _training_columns(run: Run) -> tuple[list[str], str | None]:
    """Names of the input columns and of the answer's, where the run was trained on a table with a header."""
    columns = run.described("data/columns")
    if columns is not None:
        return columns, run.described("data/target")
    examples = _training_examples(run)   # a run of before these names were kept
    return ([], None) if examples is None else (list(examples.columns), examples.target)


def _classes(run: Run) -> tuple[str, ...]:
    """What the classes are called, where the run or the data that was learned from says so."""
    classes = run.described("data/classes")
    examples = _training_examples(run) if classes is None else None
    return tuple(classes or (examples.classes if examples is not None else ()))


def _training_examples(run: Run) -> Examples | None:
    """What the run was trained on, if it is still there."""
    try:
        task = task_of_run(run)
    except TaskError:
        return None
    return task.data.examples if isinstance(task, Supervised) else None


def _plain(values: np.ndarray) -> list[Any]:
    return np.round(values.astype(np.float64), 6).tolist()
