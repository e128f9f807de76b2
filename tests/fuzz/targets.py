"""Every kind of file that may come from anybody, by name: `TARGETS["npz"].outcome(data)` reads one as the product does.

A reader may give an answer or refuse in words; anything else that it raises is a fault.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

import numpy as np

from neural.blueprint import ProgramError, parse
from neural.core.diagnostics import Diagnostic, Findings, Source, render
from neural.core.registry import UnknownName
from neural.core.settings import SettingsError, read_settings
from neural.language.check import check
from neural.language.interchange import NotAProgram, from_json
from neural.language.network import Network
from neural.language.parser import parse as read_program
from neural.standard import CATALOGUE
from neural.tasks.task import TaskError
from neural.tracking.quantised import MapError
from neural.tracking.trouble import RunError
from tests.fuzz import run_seeds, seeds
from tests.fuzz.target import Target, file, room

NUMBERS = "network N { input: (4,) layers: Dense(3, activation=\"softmax\") }"
PICTURES = "network P { input: (8, 8, 3) layers: Flatten() Dense(2) }"
ROWS = "network C { input: (3072,) layers: Dense(10) }"
RUN = (RunError, SettingsError, ProgramError, TaskError, UnknownName)


@cache
def network(text: str) -> Network:
    """Of a program that is right."""
    return parse(text).network


# --- texts ------------------------------------------------------------------------------------------------------


def parser(data: bytes) -> None:
    """The text of a program: read into a tree, its mistakes rendered."""
    text = data.decode("utf-8", errors="replace")
    findings = Findings()
    read_program(text, findings)
    _rendered(text, findings.items)


def program(data: bytes) -> None:
    """A `.neural` file: read, checked, its shapes and costs found, what there is to say rendered."""
    text = data.decode("utf-8", errors="replace")
    _rendered(text, check(text, CATALOGUE).diagnostics)


def _rendered(text: str, said: Sequence[Diagnostic]) -> None:
    source = Source("fuzz.neural", text)
    for one in said[:8]:
        render(one, source)


def experiment(data: bytes) -> None:
    """An experiment in YAML, or a sweep of one."""
    from neural.experiments import _settings_of
    from neural.tasks.experiment import read_experiment
    from neural.trials import SweepSettings, trials_of

    source = Source("fuzz.yaml", data.decode("utf-8", errors="replace"))
    if b"experiment:" in data:
        trials_of(read_settings(SweepSettings, source))
    else:
        read_experiment(source, choose=_settings_of)


def interchange(data: bytes) -> None:
    """A program as JSON."""
    from_json(json.loads(data))


def songs(data: bytes) -> None:
    """Documents for the segmenter, one to a line."""
    from neural.tasks.cutting.data.jsonl import Jsonl
    from neural.tasks.cutting.reader import Reading

    for one in Jsonl.read(file("songs.jsonl", data), Reading())[0]:
        (one.name + "".join(one.elements)).encode()   # what is read can be written


def article(data: bytes) -> None:
    """A text for the segmenter."""
    from neural.tasks.cutting.data.plain import Plain
    from neural.tasks.cutting.reader import Reading

    Plain.read(file("article.md", data), Reading())


def tokens(data: bytes) -> None:
    """Texts with rationales, as lines or as one object."""
    from neural.tasks.focusing.tokens import read

    name = "tokens.json" if data.lstrip()[:1] == b"[" else "tokens.jsonl"
    "".join(read(file(name, data), seed=0).vocabulary).encode()


def captions(data: bytes) -> None:
    """Captions of pictures whose features are known."""
    from neural.tasks.captioning.reading import read

    regions = room() / "regions.npz"
    if not regions.exists():
        np.savez(regions, regions=np.zeros((12, 3, 2), np.float32))
    "".join(read(regions, file("captions.jsonl", data), vocabulary=None, seed=0).vocabulary).encode()


def table(data: bytes) -> None:
    """Examples in a CSV file."""
    from neural.tasks.data.sources.table import Table

    Table.read(file("table.csv", data), network(NUMBERS))


# --- arrays and pictures ----------------------------------------------------------------------------------------


def npz(data: bytes) -> None:
    """Named arrays: as training data, as inputs to predict, as results of an experiment."""
    from neural.predicting import _arrays
    from neural.tasks.data.sources.npz import Npz
    from neural.views.focus_results import read_result

    path = file("data.npz", data)
    for read in (lambda: Npz.read(path, network(NUMBERS)), lambda: read_result(path)):
        with suppress(TaskError, RunError):
            read()
    _arrays(path, network(NUMBERS))


def npy(data: bytes) -> None:
    """One array: mapped for training, loaded for `neural debug`."""
    from neural.debug_input import given
    from neural.tasks.data.sources.npy import _mapped

    path = file("x.npy", data)
    with suppress(TaskError, TypeError):   # a sum of texts is no fault of the reader
        np.asarray(_mapped(path)[:2]).sum()
    given(network(NUMBERS), [str(path)])


def pickled(data: bytes) -> None:
    """A batch of CIFAR's version for Python."""
    from neural.tasks.data.sources.cifar import LAYOUTS, _classes, _python

    _classes({LAYOUTS[2].classes: data}, LAYOUTS[2], "fuzz")
    _python(data, LAYOUTS[2], "fuzz")


def archive(data: bytes) -> None:
    """CIFAR as it comes over the net."""
    from neural.tasks.data.sources.cifar import Cifar

    Cifar.read(file("cifar-10-binary.tar.gz", data), network(ROWS))


def picture(data: bytes) -> None:
    """One picture of a folder."""
    from neural.tasks.data.folders import Labelled
    from neural.tasks.data.pixels import Pixels
    from neural.tasks.data.sources.images import arrays

    path = file("one.png", data)
    arrays(Labelled((path,), np.zeros(1, np.int64)), Pixels(network(PICTURES), "fuzz"))


# --- what was trained -------------------------------------------------------------------------------------------


def weights(data: bytes) -> None:
    """A state dict that comes in by `neural import`, as either kind of file."""
    from neural.importing import document_of, tensors_in

    suffix = ".pt" if data[:2] == b"PK" else ".safetensors"
    tensors_in(document_of(file(f"weights{suffix}", data)), "it")


def checkpoint(data: bytes) -> None:
    """A checkpoint with right sums: the first bytes say how many belong to the tensors, the rest is the JSON file."""
    from neural.tracking import checkpoint as checkpoints

    size = int.from_bytes(data[:4], "little")
    tensors, about = data[4 : 4 + size], data[4 + size :]
    folder = room() / "checkpoints"
    folder.mkdir(exist_ok=True)
    (folder / "step-00000003.safetensors").write_bytes(tensors)
    try:
        document = json.loads(about)
        document["tensors"]["sha256"] = hashlib.sha256(tensors).hexdigest()
        document["tensors"]["bytes"] = len(tensors)
        about = checkpoints._sealed(document)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    (folder / "step-00000003.json").write_bytes(about)
    checkpoints.best(folder)
    checkpoints.newest(folder)


def attention_map(data: bytes) -> None:
    """A packed map of a run's rows."""
    from neural.tracking.quantised import unpack

    unpack(data)


def run(data: bytes) -> None:
    """A run folder: a line with a file's name, then what is in that file or which rows are, all others being right.

    Shown on a terminal and as a page, and its settings made again.
    """
    from neural.cli._top import frame
    from neural.cli.show import _page
    from neural.digest import whole
    from neural.experiments import experiment_of
    from neural.report import page_data
    from neural.tracking.run import Run
    from neural.views.report_page import _json

    name, _, content = data.partition(b"\n")
    chosen, folder = name.decode("latin-1"), room() / "run"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "checkpoints").mkdir(parents=True)
    for one, right in run_seeds.run_files().items():
        (folder / one).write_bytes(content if one == chosen else right)
    if chosen not in run_seeds.run_files():
        (folder / "rows.sqlite").write_bytes(run_seeds.with_rows(content))
    with Run.open(folder) as opened:
        data = whole(opened)
        _page(opened, data, None)
        frame(opened)
        _json(page_data([opened])).encode()
        experiment_of(opened)


def sweep(data: bytes) -> None:
    """The table of a sweep."""
    from neural.sweep import TRIALS, opened

    folder = room() / "sweep"
    folder.mkdir(exist_ok=True)
    (folder / TRIALS).write_bytes(data)
    found = opened(folder)
    found.counts()
    found.refresh()
    json.dumps([point.mean for point in found.points()])


def calibration(data: bytes) -> None:
    """How far a run's probabilities can be trusted."""
    from neural.tasks.cutting.calibration_file import FILE, Calibrated

    folder = room() / "calibrated"
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_bytes(data)
    Calibrated.load(folder)


TARGETS: dict[str, Target] = {
    "parser": Target(parser, seeds.pieces, (), seeds.PROGRAM_WORDS),
    "program": Target(program, seeds.programs, (), seeds.PROGRAM_WORDS),
    "experiment": Target(experiment, seeds.experiments, (SettingsError,), seeds.YAML_WORDS),
    "interchange": Target(interchange, seeds.interchanged, (NotAProgram, ValueError, RecursionError), seeds.JSON_WORDS),
    "songs": Target(songs, seeds.songs, (TaskError,), seeds.JSON_WORDS),
    "article": Target(article, seeds.articles, (TaskError,)),
    "tokens": Target(tokens, seeds.tokens, (TaskError,), seeds.JSON_WORDS),
    "captions": Target(captions, seeds.captions, (TaskError,), seeds.JSON_WORDS),
    "table": Target(table, seeds.tables, (TaskError,), (b",", b"\n", b";", b'"')),
    "npz": Target(npz, seeds.npz, (TaskError,), seeds.NPY_WORDS),
    "npy": Target(npy, seeds.npy, (TaskError,), seeds.NPY_WORDS),
    "pickle": Target(pickled, seeds.pickles, (TaskError,), seeds.PICKLE_WORDS),
    "archive": Target(archive, seeds.archives, (TaskError,)),
    "picture": Target(picture, seeds.pictures, (TaskError,)),
    "weights": Target(weights, seeds.weights, (TaskError,), seeds.PICKLE_WORDS),
    "checkpoint": Target(checkpoint, seeds.checkpoints, (RunError,), seeds.JSON_WORDS),
    "map": Target(attention_map, seeds.maps, (MapError,)),
    "run": Target(run, run_seeds.runs, RUN, seeds.JSON_WORDS),
    "sweep": Target(sweep, run_seeds.sweeps, (RunError,), seeds.JSON_WORDS),
    "calibration": Target(calibration, seeds.calibrations, (TaskError,), seeds.JSON_WORDS),
}
