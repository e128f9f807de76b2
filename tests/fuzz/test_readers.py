"""Every module that reads a file has a fuzz target, or its files are trusted for a stated reason."""

import ast
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

SOURCES = Path(__file__).parents[2] / "src" / "neural"
READING_CALLS = {
    "loads",
    "parse_json",
    "read_text",
    "read_bytes",
    "read_small_file",
    "load_file",
    "from_file",
    "fromfile",
    "memmap",
    "connect",
    "model_validate_json",
    "read_settings",
    "safe_open",
    "open_memmap",
}
"""Names of functions that read or parse what a file or a request holds."""
IMAGE_MODULES = {"pillow", "Image", "PillowImage"}
"""Names of pillow, whose `open` decodes a file."""
LOADING_MODULES = {
    "np",
    "numpy",
    "torch",
    "torch_export",
    "json",
    "pickle",
    "safetensors",
    "safetensors_numpy",
}
"""Modules whose `load` reads a file."""
OWN = "a file of the package itself"
CACHE = "a file in the cache, which is the user's own (NEURAL_CACHE)"
PROCESS = "a message between processes of the same user"
USERS_TEXT = "a text of any content: it is decoded and not parsed"
READERS: dict[str, tuple[str, ...] | str] = {
    "findings/focus_results.py": ("npz",),
    "findings/run_summary.py": ("run",),
    "board/app.py": ("board_request",),
    "board/events.py": "JSON that the board itself encoded",
    "callbacks/huggingface.py": "a path that the same callback wrote into the user's output folder",
    "cli/_arguments.py": OWN,
    "cli/_program_source.py": "the first line of a program, for its line end; it is not parsed",
    "cli/bench.py": OWN,
    "cli/calibrate.py": ("calibration",),
    "cli/explain.py": OWN,
    "cli/segment.py": OWN,
    "core/files.py": "the functions that readers call",
    "core/html_document.py": "pictures that the same command has just written",
    "core/json_values.py": "the function that readers call",
    "core/platform_support.py": "files of the operating system in /proc",
    "core/settings.py": ("experiment",),
    "data/downloads.py": "files with a known SHA-256",
    "data/numpy_files.py": ("npz", "npy"),
    "data/sources/cifar.py": ("pickle", "archive"),
    "data/sources/corpus.py": USERS_TEXT,
    "data/sources/digits.py": OWN,
    "data/sources/images.py": ("picture",),
    "data/sources/texts.py": USERS_TEXT,
    "data/table_cells.py": ("table",),
    "exports/huggingface.py": "weights that the same command has just written",
    "exports/torch.py": "a program that the same command has just written",
    "imports/nanogpt.py": USERS_TEXT,
    "language/diagnostic_codes.py": OWN,
    "report/headlines/segmentation.py": ("evaluation", "run"),
    "report/html_page.py": OWN,
    "report/paper_figures/image.py": ("picture",),
    "runs/checkpoint.py": ("checkpoint",),
    "runs/copy.py": ("copied_run",),
    "runs/evaluation_file.py": ("evaluation",),
    "runs/file_system.py": "the table of mounts of the operating system",
    "runs/folder.py": ("run",),
    "runs/importance_file.py": ("importance",),
    "runs/metadata_schema.py": ("run",),
    "runs/run.py": ("run",),
    "runs/run_reader.py": ("run",),
    "runs/status.py": ("run",),
    "runs/store.py": ("run",),
    "runs/upgrade.py": ("old_run",),
    "tasks/focus/token_files.py": ("tokens",),
    "tasks/language_model/corpus.py": ("corpus",),
    "tasks/segmentation/calibration_selection.py": ("calibration",),
    "tasks/segmentation/data/jsonl.py": ("songs",),
    "tasks/segmentation/data/plain.py": ("article", "structure"),
    "tasks/segmentation/data/ref.py": ("reference",),
    "tasks/segmentation/feature_cache.py": CACHE,
    "tasks/segmentation/features/embedded.py": "files of an installed package",
    "tasks/segmentation/features/rhyme.py": "a file of an installed package",
    "tasks/segmentation/guess.py": ("guess",),
    "tasks/segmentation/pipeline.py": ("segmenter",),
    "tasks/segmentation/prediction.py": ("text_source",),
    "tasks/segmentation/reader.py": ("article", "text_source"),
    "tasks/segmentation/text_source.py": ("text_source",),
    "tasks/segmentation/token_counting.py": ("tokenizer",),
    "tasks/segmentation/word_vectors.py": ("word_vectors",),
    "tasks/supervised/guess.py": ("guess",),
    "testing/layer_rules.py": "a pickle that the same function has just written",
    "training/runner.py": PROCESS,
    "training/runners/forked.py": PROCESS,
    "workflows/ablate.py": USERS_TEXT,
    "workflows/copy_runs.py": "files that are copied and not parsed",
    "workflows/doctor.py": OWN,
    "workflows/import_model.py": ("weights",),
    "training/load_task.py": ("experiment",),
    "workflows/new.py": OWN,
    "workflows/patching_pairs.py": ("pairs",),
    "workflows/runs.py": CACHE,
    "workflows/segment.py": ("text_source",),
    "workflows/segment_files.py": ("text_rows",),
    "workflows/study.py": ("study",),
    "workflows/sweep_trials.py": ("sweep", "experiment"),
    "interpret/losses.py": USERS_TEXT,
    "workflows/train.py": ("experiment",),
    "workflows/train_worker.py": PROCESS,
    "interpret/inputs.py": USERS_TEXT,
    "interpret/images.py": ("picture",),
    # programs of torch.export (.pt2) are code: docs/security.md says so
    "interpret/foreign_models.py": ("model_folder", "weights"),
    "workflows/widget.py": OWN,
}
"""Module → its fuzz targets, or the reason why its files are trusted."""


def reads_files(path):
    """Whether a module calls a function that reads."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        owner = getattr(function, "value", None)
        while isinstance(owner, ast.Attribute):  # torch.export.load belongs to torch
            owner = owner.value
        module = getattr(owner, "id", "")
        is_loading = name == "load" and module in LOADING_MODULES
        is_opening = name == "open" and (
            module in IMAGE_MODULES or any(map(is_reading_mode, node.args))
        )
        if name in READING_CALLS or is_loading or is_opening:
            return True
    return False


def is_reading_mode(argument):
    """Whether an argument is the mode of a file that is opened to be read."""
    return isinstance(argument, ast.Constant) and argument.value in ("r", "rb", "r:*", "r|")


def list_reading_modules():
    return {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if "template" not in path.parts and reads_files(path)
    }


def test_every_module_that_reads_is_listed():
    unlisted = list_reading_modules() - set(READERS)
    assert not unlisted, (
        f"new readers: {sorted(unlisted)}; add a fuzz target (tests/fuzz/targets.py), or state why "
        "their files are trusted"
    )


def test_no_listed_module_is_gone():
    assert set(READERS) <= list_reading_modules()


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_target_belongs_to_a_reader(name):
    in_memory = {"parser", "program", "captions", "map", "sweep"}
    named = {
        target for targets in READERS.values() if isinstance(targets, tuple) for target in targets
    }
    assert name in named | in_memory


def test_named_targets_exist():
    named = {
        target for targets in READERS.values() if isinstance(targets, tuple) for target in targets
    }
    assert named <= set(TARGETS)
