"""All kinds of untrusted files: `TARGETS["npz"].run(data)` reads one as the product does.

A reader may succeed or refuse with a message; any other exception is a bug.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

import numpy as np

from neural.capture.map_encoding import MapError
from neural.core.diagnostics import Diagnostic, DiagnosticCollector, SourceText, render_diagnostic
from neural.core.errors import TaskError
from neural.core.registry import UnknownNameError
from neural.core.settings import SettingsError, read_settings
from neural.language.check import check
from neural.language.network import Network
from neural.language.parser import parse as read_program
from neural.optim.catalogue import CATALOGUE
from neural.runs.errors import RunError
from neural.workflows.load import ProgramError, parse
from tests.fuzz import run_seeds, seeds
from tests.fuzz.target import Target, work_folder, write_file

NUMBERS = 'network N { input: (4,) layers: Dense(3, activation="softmax") }'
PICTURES = "network P { input: (8, 8, 3) layers: Flatten() Dense(2) }"
ROWS = "network C { input: (3072,) layers: Dense(10) }"
RUN_REFUSALS = (RunError, SettingsError, ProgramError, TaskError, UnknownNameError)


@cache
def build_network(text: str) -> Network:
    """The network of a valid program."""
    return parse(text).network


# --- texts ----------------------------------------------------------------------------------------


def parser(data: bytes) -> None:
    """The text of a program: parsed, and its diagnostics rendered."""
    text = data.decode("utf-8", errors="replace")
    diagnostics = DiagnosticCollector()
    read_program(text, diagnostics)
    _render(text, diagnostics.items)


def program(data: bytes) -> None:
    """A `.neural` file: parsed, checked, and its diagnostics rendered."""
    text = data.decode("utf-8", errors="replace")
    _render(text, check(text, CATALOGUE).diagnostics)


def _render(text: str, diagnostics: Sequence[Diagnostic]) -> None:
    source = SourceText("fuzz.neural", text)
    for diagnostic in diagnostics[:8]:
        render_diagnostic(diagnostic, source)


def experiment(data: bytes) -> None:
    """An experiment in YAML, or a sweep of one."""
    from neural.workflows.load_task import read_experiment
    from neural.workflows.sweep_trials import SweepSettings, expand_grid

    source = SourceText("fuzz.yaml", data.decode("utf-8", errors="replace"))
    if b"experiment:" in data:
        expand_grid(read_settings(SweepSettings, source))
    else:
        read_experiment(source)


def songs(data: bytes) -> None:
    """Documents for segmentation, one per line."""
    from neural.tasks.segmentation.data.jsonl import Jsonl
    from neural.tasks.segmentation.reader import ReaderOptions

    for document in Jsonl.read(write_file("songs.jsonl", data), ReaderOptions())[0]:
        (document.name + "".join(document.elements)).encode()  # all strings can be encoded


def article(data: bytes) -> None:
    """A text for segmentation."""
    from neural.tasks.segmentation.data.plain import Plain
    from neural.tasks.segmentation.reader import ReaderOptions

    Plain.read(write_file("article.md", data), ReaderOptions())


def tokens(data: bytes) -> None:
    """Texts with rationales, as lines or as one object."""
    from neural.tasks.focus.token_files import read_token_file

    name = "tokens.json" if data.lstrip()[:1] == b"[" else "tokens.jsonl"
    "".join(read_token_file(write_file(name, data), seed=0).vocabulary).encode()


def captions(data: bytes) -> None:
    """Captions of images with known features."""
    from neural.tasks.captions.data import read_captions

    regions = work_folder() / "regions.npz"
    if not regions.exists():
        np.savez(regions, regions=np.zeros((12, 3, 2), np.float32))
    "".join(
        read_captions(
            regions, write_file("captions.jsonl", data), vocabulary=None, seed=0
        ).vocabulary
    ).encode()


def table(data: bytes) -> None:
    """Examples in a CSV file, or as JSON lines."""
    from neural.data.sources.table import Table

    with suppress(TaskError):
        Table.read(write_file("table.jsonl", data), build_network(NUMBERS))
    Table.read(write_file("table.csv", data), build_network(NUMBERS))


# --- arrays and images ----------------------------------------------------------------------------


def npz(data: bytes) -> None:
    """Named arrays: as training data, as inputs for prediction, as results of an experiment."""
    from neural.analysis.focus_results import read_result
    from neural.data.sources.npz import Npz
    from neural.tasks.supervised.inputs import _load_arrays

    path = write_file("data.npz", data)
    for read in (lambda: Npz.read(path, build_network(NUMBERS)), lambda: read_result(path)):
        with suppress(TaskError, RunError):
            read()
    _load_arrays(path, build_network(NUMBERS))


def npy(data: bytes) -> None:
    """One array: memory-mapped for training, loaded for `neural debug`."""
    from neural.data.sources.npy import _map_file
    from neural.workflows.debug import create_input

    path = write_file("x.npy", data)
    with suppress(TaskError, TypeError):  # summing strings is not the reader's fault
        np.asarray(_map_file(path)[:2]).sum()
    create_input(build_network(NUMBERS), [str(path)])


def pickled(data: bytes) -> None:
    """A batch of CIFAR's Python version."""
    from neural.data.sources.cifar import LAYOUTS, _parse_pickle, _read_class_names

    _read_class_names({LAYOUTS[2].classes: data}, LAYOUTS[2], "fuzz")
    _parse_pickle(data, LAYOUTS[2], "fuzz")


def archive(data: bytes) -> None:
    """CIFAR as downloaded."""
    from neural.data.sources.cifar import Cifar

    Cifar.read(write_file("cifar-10-binary.tar.gz", data), build_network(ROWS))


def picture(data: bytes) -> None:
    """One image of a folder."""
    from neural.data.class_folders import LabelledFiles
    from neural.data.image_conversion import ImageConverter
    from neural.data.sources.images import load_images

    path = write_file("one.png", data)
    load_images(
        LabelledFiles((path,), np.zeros(1, np.int64)),
        ImageConverter(build_network(PICTURES), "fuzz"),
    )


# --- trained models -------------------------------------------------------------------------------


def weights(data: bytes) -> None:
    """A state dict for `neural import`, in either file format."""
    from neural.workflows.import_model import extract_state_dict, read_checkpoint_file

    suffix = ".pt" if data[:2] == b"PK" else ".safetensors"
    extract_state_dict(read_checkpoint_file(write_file(f"weights{suffix}", data)), "it")


def checkpoint(data: bytes) -> None:
    """A checkpoint with valid checksums: 4 bytes for the length of the tensors, tensors, JSON."""
    from neural.runs import checkpoint as checkpoints

    size = int.from_bytes(data[:4], "little")
    tensors, metadata = data[4 : 4 + size], data[4 + size :]
    folder = work_folder() / "checkpoints"
    folder.mkdir(exist_ok=True)
    (folder / "step-00000003.safetensors").write_bytes(tensors)
    try:
        document = json.loads(metadata)
        document["tensors"]["sha256"] = hashlib.sha256(tensors).hexdigest()
        document["tensors"]["bytes"] = len(tensors)
        metadata = checkpoints._encode_with_checksum(document)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    (folder / "step-00000003.json").write_bytes(metadata)
    checkpoints.find_best(folder)
    checkpoints.read_newest(folder)


def attention_map(data: bytes) -> None:
    """An encoded attention map."""
    from neural.capture.map_encoding import decode_map

    decode_map(data)


def run(data: bytes) -> None:
    """A run folder with one changed file: its name in the first line, then its content.

    With the name `rows`, the content is rows for a new rows.sqlite. The run is shown on a terminal
    and as a page, and its experiment is restored.
    """
    from neural.analysis.run_summary import describe_run
    from neural.cli.show import _format_run
    from neural.cli.top import render_frame
    from neural.report.html_page import encode_json
    from neural.report.run_report import build_page_data
    from neural.runs.run import Run
    from neural.workflows.load_task import restore_experiment

    name, _, content = data.partition(b"\n")
    changed, folder = name.decode("latin-1"), work_folder() / "run"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "checkpoints").mkdir(parents=True)
    for file_name, valid in run_seeds.run_files().items():
        (folder / file_name).write_bytes(content if file_name == changed else valid)
    if changed not in run_seeds.run_files():
        (folder / "rows.sqlite").write_bytes(run_seeds.create_database(content))
    with Run.open(folder) as opened:
        data = describe_run(opened)
        _format_run(opened, data, None)
        render_frame(opened)
        encode_json(build_page_data([opened])).encode()
        restore_experiment(opened)


def sweep(data: bytes) -> None:
    """The table of a sweep."""
    from neural.workflows.sweep import TRIALS_FILE, open_sweep

    folder = work_folder() / "sweep"
    folder.mkdir(exist_ok=True)
    (folder / TRIALS_FILE).write_bytes(data)
    sweep_folder = open_sweep(folder)
    sweep_folder.count_states()
    sweep_folder.refresh()
    json.dumps([point.mean for point in sweep_folder.rank_points()])


def calibration(data: bytes) -> None:
    """The calibration of a run."""
    from neural.tasks.segmentation.calibration_selection import CALIBRATION_FILE, RunCalibration

    folder = work_folder() / "calibrated"
    folder.mkdir(exist_ok=True)
    (folder / CALIBRATION_FILE).write_bytes(data)
    RunCalibration.load(folder)


TARGETS: dict[str, Target] = {
    "parser": Target(parser, seeds.snippets, (), seeds.PROGRAM_WORDS),
    "program": Target(program, seeds.programs, (), seeds.PROGRAM_WORDS),
    "experiment": Target(experiment, seeds.experiments, (SettingsError,), seeds.YAML_WORDS),
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
    "run": Target(run, run_seeds.runs, RUN_REFUSALS, seeds.JSON_WORDS),
    "sweep": Target(sweep, run_seeds.sweeps, (RunError,), seeds.JSON_WORDS),
    "calibration": Target(calibration, seeds.calibrations, (TaskError,), seeds.JSON_WORDS),
}
