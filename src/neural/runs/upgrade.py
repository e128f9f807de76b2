"""Convert a run folder of version 2 to the present version 3 (docs/run-folder.md).

Version 3 renamed tables, keys and tensors; nothing was added or removed. The old folder is kept: the
new one is written beside it, and appears complete or not at all.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from neural.core.files import open_ordinary_file, read_small_file
from neural.core.platform_support import rename_folder, sync_folder
from neural.nn.lazy_torch import lazy_import
from neural.runs.checkpoint import encode_document, write_checkpoint
from neural.runs.errors import RunError, advise_on_full_disk, translate_errors
from neural.runs.folder import (
    CHECKPOINTS_DIR,
    PRIVATE_FOLDER_MODE,
    ROWS_FILE,
    RUN_ID_KEY,
    find_run_folder,
)
from neural.runs.store import (
    STORE_VERSION,
    UPGRADED_SUFFIX,
    UPGRADED_VERSION,
    RunStore,
    harden_connection,
)

safetensors = lazy_import("safetensors.torch")
METADATA_KEYS = {
    "epoch": "batches_per_epoch",
    "data/shared_ngrams": "data/ngram_overlap",
    "generation/texts": "generation/samples",
    "generation/real": "generation/real_text",
}
"""Old and new keys of the table `metadata`, which was called `described`."""
SCALAR_NAMES = {"train/rate": "train/learning_rate"}
STATE_KEYS = {
    "waited": "validations_since_best",
    "flat": "validations_since_change",
    "lowered": "plateau_factor",
}
"""Old and new keys of a checkpoint's `metadata`, which was called `facts`."""
OLD_MODULE, NEW_MODULE = ".part", ".sublayer"
"""Old and new name of the attention or feed-forward module inside a transformer block."""
OLD_EMA_PREFIX, NEW_EMA_PREFIX = "average.", "ema."


def upgrade_run(path: Path) -> Path:
    """Write `<path>-upgraded`; returns its path. RunError if the run cannot be converted."""
    source = find_run_folder(path)
    target = source.with_name(source.name + UPGRADED_SUFFIX)
    staging = source.with_name(f".upgrade-{source.name}")
    with (
        closing(RunStore(source / ROWS_FILE, version=_read_version(source))) as store,
        advise_on_full_disk("free some space and convert again"),
        translate_errors(f"{source} cannot be converted to {target}"),
    ):
        if target.exists():
            raise RunError(f"{target} exists already; it may be this run, converted before")
        shutil.rmtree(staging, ignore_errors=True)
        try:
            # private until all is copied: copytree sets the mode of the source last
            staging.mkdir(mode=PRIVATE_FOLDER_MODE)
            shutil.copytree(
                source,
                staging,
                symlinks=True,
                ignore=_ignore_converted,
                copy_function=_copy_file,
                dirs_exist_ok=True,
            )
            staging.chmod(staging.stat().st_mode & 0o777 | 0o700)  # the source may be read-only
            (staging / CHECKPOINTS_DIR).mkdir()
            store.copy_to(staging / ROWS_FILE)
            _convert_rows(staging / ROWS_FILE)
            for json_path in sorted((source / CHECKPOINTS_DIR).glob("step-*.json")):
                _convert_checkpoint(json_path, staging / CHECKPOINTS_DIR)
            sync_folder(staging)
            rename_folder(staging, target)
            sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
    return target


def _read_version(source: Path) -> int:
    """The version to convert; RunError if this run is of another one."""
    try:
        with closing(RunStore(source / ROWS_FILE)):
            pass
    except RunError:
        return UPGRADED_VERSION  # of any third version the store reports it
    raise RunError(f"{source} is of version {STORE_VERSION} already; there is nothing to convert")


def _ignore_converted(folder: str, names: list[str]) -> list[str]:
    """What `copytree` leaves out: the files that are converted, and temporary ones."""
    return [
        name
        for name in names
        if name.startswith((ROWS_FILE, ".")) or name in (CHECKPOINTS_DIR, "lock")
    ]


def _copy_file(source: str, target: str) -> None:
    """Copy a file; RunError at the first failure, where `copytree` would collect all of them."""
    with translate_errors(f"{source} cannot be copied"):
        shutil.copy2(source, target)


def _convert_rows(path: Path) -> None:
    """Rename tables, keys and names in a copy of rows.sqlite."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        harden_connection(db, path.stat().st_size)
        db.execute("BEGIN")
        db.execute("ALTER TABLE described RENAME TO metadata")
        for old_key, new_key in METADATA_KEYS.items():
            db.execute("UPDATE metadata SET key = ? WHERE key = ?", (new_key, old_key))
        for old_name, new_name in SCALAR_NAMES.items():
            db.execute("UPDATE names SET name = ? WHERE name = ?", (new_name, old_name))
        # `.part` ends a layer's name, or a dot follows
        old_middle, new_middle = f"{OLD_MODULE}.", f"{NEW_MODULE}."
        db.execute(
            "UPDATE maps SET name = rtrim(replace(name || '.', ?, ?), '.')",
            (old_middle, new_middle),
        )
        _convert_json(db, "attention/layers", _rename_layers)
        _convert_json(db, "attention/measures", _rename_descriptions)
        db.execute("UPDATE meta SET key = 'checkpoint_step' WHERE key = 'saved'")
        db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (str(STORE_VERSION),))
        db.execute("INSERT INTO meta VALUES (?, ?)", (RUN_ID_KEY, uuid4().hex))
        db.execute("COMMIT")


def _convert_json(db: sqlite3.Connection, key: str, convert: Any) -> None:
    """Replace the value of a metadata entry, if the run has it."""
    for (text,) in db.execute("SELECT value FROM metadata WHERE key = ?", (key,)).fetchall():
        # a damaged entry stays as it is: readers name it
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            value = json.dumps(convert(json.loads(text)))
            db.execute("UPDATE metadata SET value = ? WHERE key = ?", (value, key))


def _rename_layers(layers: Any) -> Any:
    return [_rename_module(str(layer)) for layer in layers or ()]


def _rename_descriptions(measures: Any) -> Any:
    return {
        name: _rename_keys(entry, {"says": "description"})
        for name, entry in (measures or {}).items()
    }


def _convert_checkpoint(json_path: Path, folder: Path) -> None:
    """Write the checkpoint of `json_path` to `folder`; a damaged one is an error."""
    data = read_small_file(json_path)
    try:
        document = json.loads(data)
        document.pop("sha256")
        if encode_document(document) != data:
            raise ValueError("its checksum is wrong")
        tensor_path = json_path.with_name(Path(document["tensors"]["file"]).name)
        with open_ordinary_file(tensor_path):
            tensors = safetensors.load_file(tensor_path)
        tensors |= {name: tensors[shared] for name, shared in document["shared"].items()}
        metadata = _rename_keys(document["facts"], STATE_KEYS)
        step, is_best = int(document["step"]), bool(document["best"])
    except Exception as error:  # safetensors raises an error class of its own
        raise RunError(f"{json_path} is damaged: {error}; delete it to convert the rest") from None
    renamed_tensors = {_rename_tensor(name): tensor for name, tensor in tensors.items()}
    write_checkpoint(folder, step, renamed_tensors, metadata, is_best=is_best)


def _rename_tensor(name: str) -> str:
    if name.startswith(OLD_EMA_PREFIX):
        name = NEW_EMA_PREFIX + name.removeprefix(OLD_EMA_PREFIX)
    return _rename_module(name)


def _rename_module(name: str) -> str:
    return f"{name}.".replace(f"{OLD_MODULE}.", f"{NEW_MODULE}.").removesuffix(".")


def _rename_keys(entry: Mapping[str, Any], new_keys: Mapping[str, str]) -> dict[str, Any]:
    return {new_keys.get(key, key): value for key, value in entry.items()}
