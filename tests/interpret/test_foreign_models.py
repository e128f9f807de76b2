"""Targets of `neural watch` load with their weights, or fail with a message and a way out."""

import http.server
import importlib.util
import json
import logging
import os
import struct
import subprocess
import sys
import threading
import time
import zipfile

import huggingface_hub
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from neural.interpret.foreign_models import TargetError
from neural.interpret.subject import Subject, find_step, load_subject
from tests.hugging_face_folders import build_gpt2, save_folder, train_tokenizer

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path):
    tokenizer = train_tokenizer()
    return save_folder(tmp_path / "model", build_gpt2(tokenizer), tokenizer)


def change_config(folder, **changes):
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


def test_a_folder_loads_its_weights_tokenizer_and_class(folder):
    subject = load_subject(str(folder))
    assert type(subject.model) is transformers.GPT2LMHeadModel and not subject.model.training
    assert subject.name == "model" and subject.source == "GPT2LMHeadModel of model"
    assert subject.tokenizer is not None and subject.notes == () and not subject.is_encoder_decoder
    saved = load_file(folder / WEIGHTS)["transformer.h.0.attn.c_attn.weight"]
    assert torch.equal(subject.model.transformer.h[0].attn.c_attn.weight, saved)


@pytest.mark.parametrize(
    ("name", "source", "title"),
    [
        ("model", None, "gpt2, model"),
        ("checkpoint-600", "openai-community/distilgpt2", "distilgpt2, checkpoint-600"),
        ("checkpoint-600", "runs/checkpoint-500", "gpt2, checkpoint-600"),
        ("my-gpt", "openai-community/distilgpt2", "my-gpt"),
    ],
)
def test_a_folder_whose_name_says_nothing_is_titled_after_its_model(folder, name, source, title):
    change_config(folder, _name_or_path=source)
    assert load_subject(str(folder.rename(folder.with_name(name)))).title == title


def test_a_link_to_a_folder_has_the_name_of_the_link(folder, monkeypatch):
    link = folder.with_name("minilm")
    link.symlink_to(folder, target_is_directory=True)
    subject = load_subject(str(link))
    assert (subject.name, subject.title) == ("minilm", "minilm")
    monkeypatch.chdir(folder)
    assert load_subject(".").name == "model"


def test_pickled_and_sharded_weights_are_the_same(folder, tmp_path):
    expected = load_subject(str(folder)).model.state_dict()
    state = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    torch.save(state, folder / "pytorch_model.bin")
    sharded = tmp_path / "sharded"
    transformers.GPT2LMHeadModel.from_pretrained(folder).save_pretrained(
        sharded, max_shard_size="50KB"
    )
    assert len(list(sharded.glob("model-*.safetensors"))) > 2
    for path in (folder, sharded):
        loaded = load_subject(str(path)).model.state_dict()
        assert all(torch.equal(loaded[name], expected[name]) for name in expected)


class WritesFile:
    """A pickle that executes code."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def break_pickle(folder):
    (folder / WEIGHTS).unlink()
    torch.save({"x": WritesFile(str(folder / "executed"))}, folder / "pytorch_model.bin")


def require_code(folder):
    change_config(folder, model_type="wombat", auto_map={"AutoConfig": "configuration_w.W"})
    (folder / "configuration_w.py").write_text("import os\nos.mkdir('executed')\n")


def drop_attention_weights(folder):
    state = load_file(folder / WEIGHTS)
    kept = {name: tensor for name, tensor in state.items() if "h.1.attn" not in name}
    save_file(kept, folder / WEIGHTS, metadata={"format": "pt"})


def lose_shard(folder):
    model = transformers.GPT2LMHeadModel.from_pretrained(folder)
    (folder / WEIGHTS).unlink()
    model.save_pretrained(folder, max_shard_size="50KB")
    next(folder.glob("model-00002-*")).unlink()


def leave_adapter(folder):
    (folder / "config.json").unlink()
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "org/base"}')


def cut_weights(folder):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: len(content) // 2])


BAD_FOLDERS = {
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "config.json but no weights"),
    "damaged weights": (cut_weights, "damaged or incomplete"),
    "missing shard": (lose_shard, "the file model-00002-of-0000. *.*safetensors is missing"),
    "missing attention": (
        drop_attention_weights,
        "missing in the checkpoint, such as `transformer",
    ),
    "weights of another model": (
        lambda folder: save_file(
            {"x": torch.zeros(1)}, folder / WEIGHTS, metadata={"format": "pt"}
        ),
        "attention would be that of random weights",
    ),
    "other sizes": (lambda folder: change_config(folder, n_embd=32), "other sizes than config"),
    "pickle with code": (break_pickle, "wants to execute code, and is not read"),
    "unknown type": (
        lambda folder: change_config(folder, model_type="wombat"),
        "no model type `wombat`; update it",
    ),
    "no type": (lambda folder: change_config(folder, model_type=None), "has no `model_type`"),
    "own code": (require_code, "needs code of its own, which is not executed"),
    "adapter": (leave_adapter, "an adapter of org/base: merge it into its base model"),
    "not JSON": (lambda folder: (folder / "config.json").write_text("{"), "is not JSON"),
    "empty": (lambda folder: (folder / "config.json").unlink(), "model.save_pretrained"),
}


@pytest.mark.parametrize(("change", "message"), BAD_FOLDERS.values(), ids=BAD_FOLDERS)
def test_bad_folders_are_messages(folder, change, message, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    change(folder)
    with pytest.raises(TargetError, match=message):
        load_subject(str(folder))
    assert not (folder / "executed").exists()
    # neither a question whether code may run nor a report of the loader
    assert capfd.readouterr().out == ""


def test_implementations_that_are_not_installed_name_others(folder):
    for name in ("flash_attention_2", "nothing"):
        with pytest.raises(TargetError, match="Try --attention sdpa or --attention eager"):
            load_subject(str(folder), implementation=name)
    eager = load_subject(str(folder), implementation="eager")
    assert eager.model.config._attn_implementation == "eager"


def test_a_new_head_is_a_note_because_attention_does_not_depend_on_it(folder):
    change_config(folder, architectures=["GPT2ForSequenceClassification"])
    (note,) = load_subject(str(folder)).notes
    assert "`score.weight`" in note and "attention does not depend on them" in note


def test_a_name_in_the_config_that_is_no_model_is_not_called(folder):
    change_config(folder, architectures=["logging", "NoSuchModel"])
    assert type(load_subject(str(folder)).model) is transformers.GPT2Model


def test_a_broken_tokenizer_is_not_a_missing_one(folder):
    (folder / "tokenizer.json").write_text("{")
    subject = load_subject(str(folder))
    assert subject.tokenizer is None and subject.tokenizer_error
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    subject = load_subject(str(folder))
    assert subject.tokenizer is None and not subject.tokenizer_error


HUB_ERRORS = {
    "offline": (
        OSError("We couldn't connect to 'https://huggingface.co' to load the files, and couldn't"),
        "cannot be reached; download the model elsewhere",
    ),
    "time": (TimeoutError("The read operation timed out"), "hub of Hugging Face cannot be reached"),
    "gated": (OSError("You are trying to access a gated repo."), "gated; ask for access"),
    "missing": (
        OSError(
            "nobody/x is not a local folder and is not a valid model identifier listed on the hub\n"
            "If this is a private repository, make sure to pass a token"
        ),
        "no such model on the hub of Hugging Face; if it is private, log in",
    ),
    "no config": (OSError("nobody/x does not appear to have a file named config.json"), "no model"),
    "other": (ZeroDivisionError("something\nelse"), "cannot be loaded: something$"),
}


@pytest.mark.parametrize(("error", "message"), HUB_ERRORS.values(), ids=HUB_ERRORS)
def test_errors_of_the_hub_are_messages(error, message, monkeypatch):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", fail)
    with pytest.raises(TargetError, match=message):
        load_subject("nobody/x")


def test_a_hub_that_cannot_be_reached_is_reported_without_retries(monkeypatch):
    def refuse(seconds):
        raise AssertionError(f"waits for {seconds} seconds")

    huggingface_hub.close_session()  # the next one reads the variable for proxies
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(time, "sleep", refuse)
    try:
        with pytest.raises(TargetError, match="hub of Hugging Face cannot be reached"):
            load_subject("nobody/x")
    finally:
        huggingface_hub.close_session()


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers as the hub does for gated, private and missing models."""

    def answer(self):
        name = self.path.split("/")[2] if self.path.count("/") > 2 else ""
        status, code = {"gated": (403, "GatedRepo"), "private": (401, "RepoNotFound")}.get(
            name, (404, "RepoNotFound")
        )
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = answer

    def log_message(self, *args):
        pass


def test_answers_of_a_hub_are_messages(tmp_path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code = (
        "from neural.interpret.subject import TargetError, load_subject\n"
        "for name in ('gated', 'private', 'missing'):\n"
        "    try:\n        load_subject(f'nobody/{name}')\n"
        "    except TargetError as error:\n        print(error)\n"
    )
    # the address of the hub is read when its library is imported
    environment = os.environ | {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path),
        "HF_HUB_OFFLINE": "0",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    try:
        result = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.shutdown()
        server.server_close()
    gated, private, missing = result.stdout.splitlines()
    assert gated.startswith("nobody/gated: the model is gated; ask for access")
    for name, line in (("private", private), ("missing", missing)):
        assert line.startswith(f"nobody/{name}: there is no such folder, and no such model")
        assert "hf auth login" in line


def write_module(folder, monkeypatch, name, text):
    (folder / f"{name}.py").write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))


def test_functions_that_fail_are_messages(tmp_path, monkeypatch):
    write_module(
        tmp_path,
        monkeypatch,
        "builders_of_tests",
        "def build():\n    raise KeyError('width')\ndef text():\n    return 'model'\n",
    )
    write_module(tmp_path, monkeypatch, "broken_of_tests", "1 / 0\n")
    for target, message in (
        ("builders_of_tests:build", "failed: KeyError: 'width'"),
        ("builders_of_tests:text", "returned str, not a torch.nn.Module"),
        ("builders_of_tests:bild", "did you mean `build`?"),
        ("broken_of_tests:build", "importing broken_of_tests failed: ZeroDivisionError"),
        ("no_such_module:build", "run the command where `no_such_module` can be imported"),
        ("what is this", "there is no such file or folder. A target is"),
    ):
        with pytest.raises(TargetError) as error:
            load_subject(target)
        assert message in str(error.value)


def test_state_dicts_and_programs_that_do_not_fit_are_messages(tmp_path, monkeypatch):
    write_module(
        tmp_path,
        monkeypatch,
        "layers_of_tests",
        "import torch\ndef build():\n    return torch.nn.Linear(2, 3)\n",
    )
    torch.save({"state_dict": torch.nn.Linear(2, 3).state_dict()}, tmp_path / "good.pt")
    torch.save(torch.nn.Linear(5, 5).state_dict(), tmp_path / "other.pt")
    torch.save(WritesFile(str(tmp_path / "executed")), tmp_path / "evil.pt")
    for name in ("junk.pt", "junk.safetensors", "junk.pt2"):
        (tmp_path / name).write_bytes(b"junk")
    build = "layers_of_tests:build"
    assert isinstance(load_subject("good.pt", build=build).model, torch.nn.Linear)
    for name in ("other.pt", "evil.pt", "junk.pt", "junk.safetensors"):
        with pytest.raises(TargetError, match="cannot be loaded into Linear: "):
            load_subject(name, build=build)
    assert not (tmp_path / "executed").exists()
    for name, options, message in (
        ("good.pt", {}, "has weights but no model"),
        ("none.pt", {"build": build}, "there is no file none.pt"),
        ("junk.pt2", {}, "is no program of torch.export"),
        ("junk.pt2", {"build": build}, "--build is for state dicts"),
    ):
        with pytest.raises(TargetError, match=message):
            load_subject(name, **options)


def test_a_damaged_program_of_torch_export_is_a_message_without_a_log(tmp_path):
    with zipfile.ZipFile(tmp_path / "junk.pt2", "w") as archive:
        archive.writestr("junk/version", "0")
    logged = []
    handler = logging.Handler()
    handler.emit = logged.append
    logger = logging.getLogger(torch.export.__name__)
    logger.addHandler(handler)
    try:
        with pytest.raises(TargetError, match="saved file; write it with"):
            load_subject(str(tmp_path / "junk.pt2"))
    finally:
        logger.removeHandler(handler)
    assert logged == []


def test_the_step_is_the_last_number_of_a_name(tmp_path):
    assert find_step("runs/gpt2-small/checkpoint-500", 3) == 500
    assert find_step("runs/final", 3) == 3
    (tmp_path / "step_70.pt").write_bytes(b"")
    assert find_step(str(tmp_path / "step_70.pt"), 0) == 70


def test_the_dtype_and_the_kind_of_a_model_are_known():
    half = torch.nn.Linear(2, 2).half()
    assert (
        Subject("x", half).dtype == torch.float16
        and Subject("x", torch.nn.Identity()).dtype is None
    )
    assert Subject("x", half).config is None


def write_gguf(path, architecture):
    """A GGUF file without tensors (version 3); the text values are prefixed by their lengths."""

    def write(text):
        return struct.pack("<Q", len(text)) + text.encode()

    header = struct.pack("<IQQ", 3, 0, 1)
    entry = write("general.architecture") + struct.pack("<I", 8) + write(architecture)
    path.write_bytes(b"GGUF" + header + entry)
    return str(path)


def test_a_gguf_file_needs_packages_that_are_named(tmp_path, monkeypatch):
    with pytest.raises(TargetError, match=r"there is no file .*tiny\.gguf"):
        load_subject(str(tmp_path / "tiny.gguf"))
    path = write_gguf(tmp_path / "tiny.gguf", "llama")
    if importlib.util.find_spec("gguf") is None:
        with pytest.raises(TargetError, match=r"tiny\.gguf: it needs: pip install gguf"):
            load_subject(path)


def test_a_damaged_gguf_file_is_a_message(tmp_path):
    (tmp_path / "tiny.gguf").write_bytes(b"no model")
    with pytest.raises(TargetError, match=r"tiny\.gguf cannot be loaded by transformers: .*magic"):
        load_subject(str(tmp_path / "tiny.gguf"))


def test_a_gguf_file_is_read_by_transformers_as_a_language_model(tmp_path, monkeypatch):
    """The reader of transformers is replaced: the package gguf is not among the tests' packages."""
    tokenizer, asked = train_tokenizer(), []
    model, path = build_gpt2(tokenizer), write_gguf(tmp_path / "tiny.gguf", "gpt2")
    config = transformers.GPT2Config(architectures=None)
    results = {
        "AutoConfig": config,
        "AutoModelForCausalLM": (model, {"missing_keys": []}),
        "AutoTokenizer": tokenizer,
    }

    def replace(name):
        def from_pretrained(target, *, gguf_file, **options):
            assert options["local_files_only"] and not options["trust_remote_code"]
            asked.append((name, target, gguf_file))
            return results[name]

        monkeypatch.setattr(getattr(transformers, name), "from_pretrained", from_pretrained)

    for name in results:
        replace(name)
    subject = load_subject(path)
    assert asked == [(name, str(tmp_path), "tiny.gguf") for name in results]
    assert subject.model is model and subject.name == "tiny" and subject.tokenizer is tokenizer
    assert subject.source == "GPT2LMHeadModel of tiny.gguf"
