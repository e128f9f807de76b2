"""No file executes code: each of these would create a file if it were loaded unsafely."""

import io
import json
import pickle
import sqlite3
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from neural.core.errors import TaskError
from neural.core.settings import SettingsError
from neural.data.numpy_files import map_npy
from neural.data.sources.cifar import Cifar
from neural.data.sources.images import Images
from neural.data.sources.npz import Npz
from neural.findings.focus_results import read_result
from neural.interpret.foreign_models import TargetError, load_foreign_model
from neural.interpret.images import _load_image
from neural.interpret.network_inputs import create_network_input
from neural.runs import checkpoint
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.tasks.supervised.inputs import _load_arrays
from neural.training.guess_experiment import guess_experiment
from neural.training.load_task import load_task
from neural.workflows.import_model import ModelImportError, read_checkpoint_file
from neural.workflows.load import parse
from tests.fuzz import run_seeds, seeds
from tests.fuzz.bombs import make_zip

NUMBERS = parse("network N { input: (4,) layers: Dense(3) }").network
PICTURES = parse("network P { input: (8, 8, 3) layers: Flatten() Dense(2) }").network
ROWS = parse("network C { input: (3072,) layers: Dense(10) }").network


class Harmful:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def harm(tmp_path):
    """The file that must not be created."""
    yield tmp_path / "harm"
    assert not (tmp_path / "harm").exists()


def make_object_array(harm):
    """An .npy file that contains a pickle."""
    out = io.BytesIO()
    np.save(out, np.array([Harmful(harm)], dtype=object), allow_pickle=True)
    return out.getvalue()


def test_the_payload_is_harmful_when_loaded_unsafely(tmp_path):
    np.load(io.BytesIO(make_object_array(tmp_path / "harm")), allow_pickle=True)
    assert (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("name", "content", "read", "error"),
    [
        (
            "d.npz",
            lambda harm: make_zip(make_object_array(harm)),
            lambda path: Npz.read(path, NUMBERS),
            TaskError,
        ),
        (
            "p.npz",
            lambda harm: make_zip(make_object_array(harm)),
            lambda path: _load_arrays(path, NUMBERS),
            TaskError,
        ),
        (
            "r.npz",
            lambda harm: make_zip(make_object_array(harm), "about.npy"),
            read_result,
            RunError,
        ),
        ("x.npy", make_object_array, map_npy, TaskError),
        (
            "i.npy",
            make_object_array,
            lambda path: create_network_input(NUMBERS, [str(path)]),
            TaskError,
        ),
        (
            "raw.npz",
            lambda harm: make_zip(pickle.dumps(Harmful(harm))),
            lambda path: Npz.read(path, NUMBERS),
            TaskError,
        ),
    ],
)
def test_python_objects_in_arrays_are_refused(name, content, read, error, tmp_path, harm):
    (tmp_path / name).write_bytes(content(harm))
    with pytest.raises(error, match=rf"{name} cannot be read"):
        read(tmp_path / name)


def test_a_pickle_instead_of_weights_is_refused(tmp_path, harm):
    torch.save({"model": Harmful(harm)}, tmp_path / "code.pt")
    (tmp_path / "old.pt").write_bytes(pickle.dumps(Harmful(harm)))
    (tmp_path / "code.safetensors").write_bytes(pickle.dumps(Harmful(harm)))
    for name in ("code.pt", "old.pt", "code.safetensors"):
        with pytest.raises(ModelImportError, match=name):
            read_checkpoint_file(tmp_path / name)


def test_a_malicious_pickled_batch_is_refused(tmp_path, harm):
    batch = pickle.dumps({"data": Harmful(harm), "labels": [0]}, protocol=2)
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        (tmp_path / name).write_bytes(batch)
    with pytest.raises(TaskError, match=r"data_batch_1 .* it names `"):
        Cifar.read(tmp_path, ROWS)


TAGS = ("!!python/object/apply:pathlib.Path.touch", "!!python/name:os.system", "!!binary", "!x")


@pytest.mark.parametrize("tag", TAGS)
def test_tags_in_yaml_are_refused(tag, tmp_path, harm):
    (tmp_path / "e.yaml").write_text(f"task: {tag} ['{harm}']\n", encoding="utf-8")
    with pytest.raises(
        SettingsError, match=r"tags such as `!!str` have no meaning here[^$]*e\.yaml"
    ):
        load_task(tmp_path / "e.yaml")


def test_no_image_starts_another_program(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a program was started"))
    (tmp_path / "data" / "cats").mkdir(parents=True)
    (tmp_path / "data" / "cats" / "a.png").write_bytes(
        seeds.pictures()[-1]
    )  # PostScript, which is a program
    with pytest.raises(TaskError, match=r"cats/a\.png cannot be read as an image"):
        Images.read(tmp_path / "data", PICTURES)
    for name in ("cats/b.png", "dogs/a.png", "dogs/b.png"):
        (tmp_path / "data" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "data" / name).write_bytes(seeds.pictures()[-1])
    with pytest.raises(TaskError, match=r"cats/a\.png cannot be read as an image"):
        guess_experiment(tmp_path / "data")
    with pytest.raises(TargetError, match="no image that Pillow can read"):
        _load_image(tmp_path / "data" / "cats" / "a.png")


@pytest.mark.parametrize("name", ["../x.npy", "/var/x.npy", "..\\x.npy"])
def test_path_traversal_in_an_archive_writes_nothing(name, tmp_path):
    out = io.BytesIO()
    np.save(out, np.zeros((2, 4)))
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "d.npz"
    path.write_bytes(make_zip(out.getvalue(), name, zipfile.ZIP_STORED))
    with pytest.raises(TaskError, match="there is no array `x`"):
        Npz.read(path, NUMBERS)
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "d.npz"]


# --- run folders ----------------------------------------------------------------------------------


def make_run_folder(tmp_path, **files):
    path = tmp_path / "run"
    (path / "checkpoints").mkdir(parents=True)
    for name, content in (run_seeds.run_files() | files).items():
        (path / name).write_bytes(content)
    return path


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW v AS SELECT 1",
        "CREATE TRIGGER t AFTER DELETE ON events BEGIN DELETE FROM scalars; END",
    ],
)
def test_a_database_with_views_or_triggers_is_not_opened(sql, tmp_path):
    path = make_run_folder(tmp_path)
    with sqlite3.connect(path / "rows.sqlite") as db:
        db.execute(sql)
    db.close()
    for open_run in (Run.open, Run.reopen):
        with pytest.raises(
            RunError,
            match=r"rows\.sqlite is damaged: it holds a (view|trigger), which no run writes",
        ):
            open_run(path)


@pytest.mark.parametrize(
    "name",
    ["settings.json", "status.json", "rows.sqlite-wal", "lock", "checkpoints/step-00000001.json"],
)
def test_a_link_out_of_a_run_is_not_followed(name, tmp_path):
    path = make_run_folder(tmp_path)
    (tmp_path / "secret.json").write_text('{"secret": 1}', encoding="utf-8")
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(tmp_path / "secret.json")
    for open_run in (Run.open, Run.reopen):
        with pytest.raises(
            RunError, match=rf"{Path(name).name} is a link out of the folder; it is not followed"
        ):
            open_run(path)
    assert (tmp_path / "secret.json").read_text(encoding="utf-8") == '{"secret": 1}'


def test_links_to_a_run_and_inside_it_are_followed(tmp_path):
    path = make_run_folder(tmp_path)
    (path / "settings.json").rename(path / "elsewhere.json")
    (path / "settings.json").symlink_to("elsewhere.json")
    (tmp_path / "link").symlink_to(path)
    with Run.open(tmp_path / "link") as run:
        assert run.settings["task"] == "supervised"


@pytest.mark.parametrize(
    "name", ["../../secret.safetensors", "/etc/passwd", "step-00000004.safetensors"]
)
def test_tensors_must_be_beside_their_checkpoint(name, tmp_path):
    (good,) = seeds.checkpoints()
    tensors = good[4 : 4 + int.from_bytes(good[:4], "little")]
    document = {
        "step": 3,
        "best": True,
        "shared": {},
        "metadata": {},
        "tensors": {
            "file": name,
            "bytes": len(tensors),
            "sha256": checkpoint.hashlib.sha256(tensors).hexdigest(),
        },
    }
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "secret.safetensors").write_bytes(tensors)
    (tmp_path / "a" / "b" / "step-00000003.json").write_bytes(checkpoint.encode_document(document))
    assert checkpoint.list_checkpoints(tmp_path / "a" / "b") == []
    with pytest.raises(RunError, match="is damaged"):
        checkpoint.read_newest(tmp_path / "a" / "b")


@pytest.mark.parametrize("model_type", ["own", "gpt2"])
def test_the_code_in_a_folder_of_hugging_face_is_not_executed(model_type, tmp_path, harm):
    pytest.importorskip("transformers")
    (tmp_path / "modeling.py").write_text(f"open({str(harm)!r}, 'w').close()\n")
    classes = ("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoTokenizer")
    config = {
        "model_type": model_type,
        "auto_map": {name: f"modeling.Own{name}" for name in classes},
        "architectures": ["OwnAutoModel"],
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(TargetError):
        load_foreign_model(str(tmp_path))
