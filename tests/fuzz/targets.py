"""All kinds of untrusted files: `TARGETS["npz"].run(data)` reads one as the product does.

A reader may succeed or refuse with a message; any other exception is a bug.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote

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
from neural.optim.program import ProgramError
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.workflows.load import parse
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
    from neural.training.load_task import read_experiment
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


def structure(data: bytes) -> None:
    """A text in Markdown, HTML or plain; its markup is guessed and then set."""
    from neural.tasks.segmentation.document import SegmentationDocument

    text = data.decode("utf-8", errors="replace")
    for unit, markup in (("sentences", "auto"), ("lines", "markdown"), ("sentences", "html")):
        try:
            document = SegmentationDocument.from_text(text, unit=unit, markup=markup)
        except ValueError as error:  # the documented refusal of an empty text
            raise TaskError(str(error)) from error
        assert all(text[start:end].strip() for start, end in document.offsets)


def text_source(data: bytes) -> None:
    """A text file in one of the encodings that are recognized, in chunks and as a whole."""
    from neural.tasks.segmentation.reader import read_text
    from neural.tasks.segmentation.text_source import open_text_source

    path = write_file("source.txt", data)
    text = "".join(open_text_source(path).read_chunks())
    assert text.removeprefix("\ufeff") == read_text(path).text.removeprefix("\ufeff")


def text_rows(data: bytes) -> None:
    """JSON lines with a text each, as `neural segment FILE.jsonl` reads them."""
    from neural.workflows.segment_files import find_input_files

    for file in find_input_files([str(write_file("rows.jsonl", data))]):
        for row in file.read_texts():
            "".join(row.open().read_chunks())


def reference(data: bytes) -> None:
    """A document with separators between its segments."""
    from neural.tasks.segmentation.data.ref import Ref
    from neural.tasks.segmentation.reader import ReaderOptions

    Ref.read(write_file("document.ref", data), ReaderOptions())


def corpus(data: bytes) -> None:
    """The text of a language model, as characters and as bytes."""
    from neural.tasks.language_model.corpus import _encode_in_memory, find_text

    path = write_file("corpus.txt", data)
    for units in ("bytes", "characters"):
        _encode_in_memory(find_text(str(path), path.parent, units))


def guess(data: bytes) -> None:
    """Data without an experiment: a table, lines of JSON or a text."""
    from neural.training.guess_experiment import guess_experiment

    suffix = {b"{": ".jsonl", b"#": ".md"}.get(data[:1], ".csv")
    guess_experiment(write_file(f"guess{suffix}", data)).to_yaml()


def pairs(data: bytes) -> None:
    """Pairs of inputs for patching."""
    from neural.workflows.patching_pairs import read_pairs

    source = read_pairs(write_file("pairs.yaml", data))
    for number in range(len(source.settings.pairs)):
        source.describe(number)


def study(data: bytes) -> None:
    """A study: experiments in YAML that are compared."""
    from neural.workflows.study import read_study

    for file in (seeds.EXAMPLES / "language_model").glob("[!e]*.*"):
        copy = work_folder() / file.name
        if not copy.exists():
            shutil.copyfile(file, copy)
    read_study(write_file("study.yaml", data))


# --- arrays and images ----------------------------------------------------------------------------


def npz(data: bytes) -> None:
    """Named arrays: as training data, as inputs for prediction, as results of an experiment."""
    from neural.data.sources.npz import Npz
    from neural.findings.focus_results import read_result
    from neural.tasks.supervised.inputs import _load_arrays

    path = write_file("data.npz", data)
    for read in (lambda: Npz.read(path, build_network(NUMBERS)), lambda: read_result(path)):
        with suppress(TaskError, RunError):
            read()
    _load_arrays(path, build_network(NUMBERS))


def npy(data: bytes) -> None:
    """One array: memory-mapped for training, loaded for `neural debug`."""
    from neural.data.sources.npy import _map_file
    from neural.interpret.network_inputs import create_network_input

    path = write_file("x.npy", data)
    with suppress(TaskError, TypeError):  # summing strings is not the reader's fault
        np.asarray(_map_file(path)[:2]).sum()
    create_network_input(build_network(NUMBERS), [str(path)])


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
    """An image of a folder, for `neural watch`, and of a run for a figure."""
    from neural.capture.probe_image import ProbeImage
    from neural.data.class_folders import LabelledFiles
    from neural.data.image_conversion import ImageConverter
    from neural.data.sources.images import load_images
    from neural.interpret.foreign_models import TargetError
    from neural.interpret.images import _load_image
    from neural.report.attention_snapshot import FigureError
    from neural.report.paper_figures.image import _decode_picture

    path = write_file("one.png", data)
    with suppress(TargetError):
        _load_image(path)
    with suppress(FigureError):
        _decode_picture(ProbeImage(data, 1, 1, first_patch=0, tokens=1, layers=()))
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
        metadata = checkpoints.encode_document(document)
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
    from neural.cli.show import _format_run
    from neural.cli.top import render_frame
    from neural.findings.run_summary import describe_run
    from neural.report.html_page import encode_json
    from neural.report.run_report import build_page_data
    from neural.training.load_task import restore_experiment

    with Run.open(_write_run_folder(data)) as opened:
        data = describe_run(opened)
        _format_run(opened, data, None)
        render_frame(opened)
        encode_json(build_page_data([opened])).encode()
        restore_experiment(opened)


def _write_run_folder(data: bytes) -> Path:
    """A run folder with one changed file, as `run` describes it."""
    name, _, content = data.partition(b"\n")
    changed, folder = name.decode("latin-1"), work_folder() / "run"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "checkpoints").mkdir(parents=True)
    for file_name, valid in run_seeds.run_files().items():
        (folder / file_name).write_bytes(content if file_name == changed else valid)
    if changed not in run_seeds.run_files():
        (folder / "rows.sqlite").write_bytes(run_seeds.create_database(content))
    return folder


def copied_run(data: bytes) -> None:
    """A run folder with one changed file, which is copied, and compared with its copy."""
    from neural.runs.copy import copy_run

    folder, copy = _write_run_folder(data), work_folder() / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy_run(folder, copy)
    copy_run(folder, copy)


def old_run(data: bytes) -> None:
    """A run folder of version 2 with one changed file, which is converted.

    With the name `described`, the content is JSON: texts of metadata by key.
    """
    from neural.runs.upgrade import upgrade_run

    name, _, content = data.partition(b"\n")
    changed, folder = name.decode("latin-1"), work_folder() / "old"
    for path in (folder, folder.with_name("old-upgraded")):
        shutil.rmtree(path, ignore_errors=True)
    (folder / "checkpoints").mkdir(parents=True)
    for file_name, valid in run_seeds.old_run_files().items():
        (folder / file_name).write_bytes(content if file_name == changed else valid)
    if changed == "described":
        run_seeds.replace_descriptions(folder / "rows.sqlite", content)
    with Run.open(upgrade_run(folder)) as opened:
        opened.metadata("attention/layers")


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


def importance(data: bytes) -> None:
    """The importance of heads of a run."""
    from neural.runs.importance_file import IMPORTANCE_FILE, load_importance

    folder = work_folder() / "important"
    folder.mkdir(exist_ok=True)
    (folder / IMPORTANCE_FILE).write_bytes(data)
    try:
        load_importance(folder)
    except ValueError as error:  # the documented refusal
        raise RunError(str(error)) from error


def evaluation(data: bytes) -> None:
    """The evaluation of a run: its scores and tables."""
    from neural.runs.evaluation_file import (
        EVALUATION_FILE,
        load_evaluation_sections,
        load_evaluation_summary,
    )

    folder = work_folder() / "evaluated"
    folder.mkdir(exist_ok=True)
    (folder / EVALUATION_FILE).write_bytes(data)
    try:
        json.dumps([section.to_dict() for section in load_evaluation_sections(folder)])
        load_evaluation_summary(folder)
    except ValueError as error:  # the documented refusal
        raise RunError(str(error)) from error


def segmenter(data: bytes) -> None:
    """A saved segmenter: 4 bytes for the length of the weights, weights, JSON with a right sum."""
    from neural.tasks.segmentation.document import SegmentationDocument
    from neural.tasks.segmentation.pipeline import load_pipeline, read_saved_weights

    size = int.from_bytes(data[:4], "little")
    tensors, saved = data[4 : 4 + size], data[4 + size :]
    write_file("saved.safetensors", tensors)
    try:
        document = json.loads(saved)
        document["tensors"]["sha256"] = hashlib.sha256(tensors).hexdigest()
        saved = json.dumps(document).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    path = write_file("saved.json", saved)
    with suppress(TaskError, SettingsError):
        read_saved_weights(path)
    pipeline = load_pipeline(path)
    pipeline.segment(SegmentationDocument.from_text("One two. Three.\n\nFour. Five six."))


def word_vectors(data: bytes) -> None:
    """A table of word vectors."""
    from neural.tasks.segmentation.word_vectors import _read_word_vectors

    _read_word_vectors.__wrapped__(write_file("vectors.safetensors", data))


def tokenizer(data: bytes) -> None:
    """A tokenizer.json, which counts the tokens of a text."""
    from neural.tasks.segmentation.token_counting import make_token_counter

    make_token_counter(str(write_file("tokenizer.json", data))).count("one two three")


def model_folder(data: bytes) -> None:
    """The JSON files of a folder of Hugging Face, as messages about a broken folder read them."""
    from neural.interpret.foreign_models import _explain_folder_error, _explain_missing_config

    folder = work_folder() / "model"
    folder.mkdir(exist_ok=True)
    for name in ("adapter_config.json", "config.json"):
        (folder / name).write_bytes(data)
    _explain_missing_config(folder, "the folder")
    _explain_folder_error(str(folder), ValueError("broken"), "broken")


def board_request(data: bytes) -> None:
    """A request to the board, with its token: head, an empty line, body. No answer is an error 5xx."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    method, _, target = first.decode("latin-1").partition(" ")
    path, _, query = target.partition("?")
    headers = [tuple(line.lower().split(b": ", 1)) for line in lines if b": " in line]
    scope = {
        "type": "http",
        "method": method.upper(),
        "path": unquote(path) or "/",
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "root_path": "",
        "scheme": "http",
        "http_version": "1.1",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    # in a thread: tests of pages leave an event loop running in the main one
    with ThreadPoolExecutor(1) as executor:
        statuses = executor.submit(lambda: asyncio.run(_send_request(scope, body))).result()
    if not statuses or statuses[0] >= 500:
        raise AssertionError(f"status {statuses}")
    if statuses[0] >= 400:
        raise RefusedRequestError(HTTPStatus(statuses[0]).phrase)


class RefusedRequestError(Exception):
    """The board refused a request with a status below 500."""


async def _send_request(scope: dict[str, object], body: bytes) -> list[int]:
    """Statuses of the responses of a board; an endless stream is ended after its first bytes."""
    statuses: list[int] = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    has_begun = asyncio.Event()

    async def receive() -> dict[str, object]:
        if messages:
            return messages.pop()
        await has_begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
        has_begun.set()

    await run_seeds.create_fuzz_board()(scope, receive, send)
    return statuses


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
    "copied_run": Target(copied_run, run_seeds.runs, (RunError,), seeds.JSON_WORDS),
    "old_run": Target(old_run, run_seeds.old_runs, (RunError,), seeds.JSON_WORDS),
    "sweep": Target(sweep, run_seeds.sweeps, (RunError,), seeds.JSON_WORDS),
    "calibration": Target(calibration, seeds.calibrations, (TaskError,), seeds.JSON_WORDS),
    "structure": Target(structure, seeds.structured_texts, (TaskError,), seeds.MARKUP_WORDS),
    "text_source": Target(text_source, seeds.encoded_texts, (TaskError,)),
    "text_rows": Target(text_rows, seeds.text_rows, (TaskError,), seeds.JSON_WORDS),
    "reference": Target(reference, seeds.references, (TaskError,), (b"==========", b"\n")),
    "corpus": Target(corpus, seeds.encoded_texts, (TaskError,)),
    "guess": Target(guess, seeds.guesses, (TaskError, SettingsError), seeds.JSON_WORDS),
    "pairs": Target(pairs, seeds.pairs, (TaskError, SettingsError), seeds.YAML_WORDS),
    "study": Target(study, seeds.studies, (TaskError, SettingsError), seeds.YAML_WORDS),
    "importance": Target(importance, seeds.importances, (RunError,), seeds.JSON_WORDS),
    "evaluation": Target(evaluation, seeds.evaluations, (RunError,), seeds.JSON_WORDS),
    "segmenter": Target(segmenter, seeds.segmenters, (TaskError, SettingsError), seeds.JSON_WORDS),
    "word_vectors": Target(word_vectors, seeds.word_vectors, (TaskError,)),
    "tokenizer": Target(tokenizer, seeds.tokenizers, (TaskError,), seeds.JSON_WORDS),
    "model_folder": Target(model_folder, seeds.model_configs, (TaskError,), seeds.JSON_WORDS),
    "board_request": Target(
        board_request, run_seeds.board_requests, (RefusedRequestError,), run_seeds.HTTP_WORDS
    ),
}
