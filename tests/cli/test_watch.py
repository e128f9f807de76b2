"""`neural watch`: models of Hugging Face, functions, exported programs, checkpoints."""

import json
import os
import re
import subprocess
import sys

import pytest
import torch
import transformers
from click.testing import CliRunner

import neural
from neural.cli.main import main
from neural.core.escape import escape_controls
from neural.runs.run import Run
from tests.hugging_face_folders import (
    TEXTS,
    build_gpt2,
    build_t5,
    plant_previous_token_head,
    save_folder,
    train_tokenizer,
)

TEXT = TEXTS[0]
AUDITED_COMMAND = """
import os, sys
written = []

def notice(event, args):
    if event == "open":
        path, mode, flags = args
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and path != os.devnull:
            written.append("open")
    elif event in ("sqlite3.connect", "tempfile.mkdtemp", "tempfile.mkstemp"):
        written.append(event)

import torch, transformers
from neural.cli.main import main
sys.addaudithook(notice)
try:
    main()
finally:
    print("written:", *written, file=sys.stderr)
"""


def run_command(*arguments):
    return CliRunner().invoke(main, ["watch", *map(str, arguments)])


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A folder of GPT-2 with a previous-token head in layer 1."""
    tokenizer = train_tokenizer()
    model = plant_previous_token_head(build_gpt2(tokenizer))
    return save_folder(tmp_path_factory.mktemp("hf") / "planted", model, tokenizer)


def test_a_planted_head_is_found_and_named(planted):
    result = run_command(planted, "--input", TEXT)
    assert result.exit_code == 0, result.output
    assert "GPT2LMHeadModel" in result.output and "1 text, 13 tokens" in result.output
    (row,) = [line for line in result.output.splitlines() if line.strip().startswith("L1 h0  ")]
    assert row.split()[2:4] == ["previous", "token"]
    assert "ATT008" in result.output


def test_nothing_is_written_without_save(planted, tmp_path):
    script = tmp_path / "watch.py"
    script.write_text(AUDITED_COMMAND)
    (tmp_path / "work").mkdir()

    def list_written(*options):
        command = [sys.executable, "-B", script, "watch", planted, "--input", TEXT, *options]
        done = subprocess.run(command, cwd=tmp_path / "work", capture_output=True, check=True)
        assert b"ATT008" in done.stdout
        return done.stderr.decode().rpartition("written:")[2].split()

    assert list_written() == [] == [*(tmp_path / "work").iterdir()]
    assert "sqlite3.connect" in list_written("--save")  # the hook sees what is written


def test_json_has_tokens_heads_and_findings(planted):
    result = run_command(planted, "--input", TEXT, "--json")
    data = json.loads(result.stdout)
    assert data["tokens"] == [TEXT.split()]
    assert [len(layer["heads"]) for layer in data["layers"]] == [2, 2]
    assert data["layers"][1]["heads"][0]["role"] == "previous token"
    assert data["layers"][1]["heads"][0]["measures"]["previous_token_mass"] > 0.9
    assert {finding["code"] for finding in data["findings"]} >= {"ATT001", "ATT008"}


def test_maps_of_a_long_text_that_are_larger_than_the_file_of_a_new_run_are_saved(tmp_path):
    tokenizer = train_tokenizer()
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        num_hidden_layers=1,
        num_attention_heads=24,
        intermediate_size=8,
        max_position_embeddings=600,
        initializer_range=0.5,  # so different weights that they compress little
    )
    save_folder(tmp_path / "model", transformers.BertModel(config), tokenizer)
    words = TEXT.split()
    text = " ".join(words[i] for i in torch.randint(len(words), (600,)).tolist())
    options = ("--input", text, "--save", "--runs", tmp_path / "runs")
    result = run_command(tmp_path / "model", *options)
    assert result.exit_code == 0, result.output
    (path,) = (tmp_path / "runs").iterdir()
    with Run.open(path) as run:
        (encoded,) = run.maps(0).values()
    assert len(encoded) > 2**20


def test_names_and_tokens_of_a_model_cannot_control_the_terminal(tmp_path):
    evil = "evil\x1b[2J\x9b\u202e"
    tokenizer = train_tokenizer()
    folder = save_folder(tmp_path / evil, build_gpt2(tokenizer), tokenizer)
    for words in ([], ["--json"]):
        result = run_command(folder, "--input", f"{TEXT} {evil}", *words)
        assert result.exit_code == 0, result.output
        plain = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
        assert "evil" in plain
        assert plain == escape_controls(plain)


def test_the_page_and_the_run_are_written(planted, tmp_path):
    page, runs = tmp_path / "heads.html", tmp_path / "runs"
    result = run_command(planted, "--input", TEXT, "-o", page, "--save", "--runs", runs)
    assert result.exit_code == 0, result.output
    assert '"rug"' in page.read_text(encoding="utf-8")
    (path,) = runs.iterdir()
    with Run.open(path) as run:
        assert run.status.state == "finished" and run.map_steps() == [0]
        assert run.metadata("probe/labels") == [TEXT.split()]
    for command in (["report", "-o", str(tmp_path / "r.html")], ["analyze"]):
        done = CliRunner().invoke(main, [command[0], str(path), *command[1:]])
        assert done.exit_code == 0, done.output


def test_several_texts_are_padded_and_padding_is_not_measured(planted):
    alone = json.loads(run_command(planted, "--input", TEXT, "--json").stdout)
    both = json.loads(
        run_command(planted, "--input", TEXT, "--input", TEXT, "--input", "a cat", "--json").stdout
    )
    assert "3 texts" in both["input"]
    head = both["layers"][1]["heads"][0]
    assert head["role"] == "previous token"
    expected = alone["layers"][1]["heads"][0]["measures"]["previous_token_mass"]
    assert head["measures"]["previous_token_mass"] == pytest.approx(expected, abs=0.05)


def test_a_text_file_is_an_input(planted, tmp_path):
    file = tmp_path / "probe.txt"
    file.write_text(TEXT, encoding="utf-8")
    data = json.loads(run_command(planted, "-i", file, "--json").stdout)
    assert data["tokens"] == [TEXT.split()]


def test_pairs_have_special_tokens(tmp_path):
    tokenizer = train_tokenizer(pair_template=True)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    folder = save_folder(tmp_path / "bert", transformers.BertModel(config), tokenizer)
    data = json.loads(run_command(folder, "--pair", "the cat sat", "the dog", "--json").stdout)
    assert data["tokens"] == [["[CLS]", "the", "cat", "sat", "[SEP]", "the", "dog", "[SEP]"]]


def test_encoder_decoder_models_have_two_token_axes(tmp_path):
    tokenizer = train_tokenizer()
    model = build_t5(tokenizer)
    folder = save_folder(tmp_path / "t5", model, tokenizer)
    result = run_command(
        folder,
        "-i",
        "the cat sat on the mat",
        "--decoder",
        "a dog",
        "--json",
        "--save",
        "--runs",
        tmp_path / "runs",
    )
    data = json.loads(result.stdout)
    assert data["decoder_tokens"] == [["[PAD]", "a"]]
    assert len(data["layers"]) == 3
    (path,) = (tmp_path / "runs").iterdir()
    with Run.open(path) as run:
        labels = run.metadata("attention/axis_labels")
        (cross,) = [name for name in labels if "EncDec" in name]
        assert labels[cross] == {
            "queries": ["[PAD]", "a"],
            "keys": ["the", "cat", "sat", "on", "the", "mat"],
        }


def test_a_series_of_checkpoints_is_one_run_with_their_steps(tmp_path):
    tokenizer = train_tokenizer()
    folders = []
    for step, sharpness in ((0, 0.0), (50, 0.3), (100, 6.0), (150, 12.0)):
        model = plant_previous_token_head(build_gpt2(tokenizer), sharpness=sharpness)
        folders.append(save_folder(tmp_path / f"checkpoint-{step}", model, tokenizer))
    # in any order: the steps decide
    result = run_command(
        *reversed(folders),
        "--input",
        TEXT,
        "--save",
        "--name",
        "series",
        "--runs",
        tmp_path / "runs",
        "-o",
        tmp_path / "series.html",
    )
    assert result.exit_code == 0, result.output
    (path,) = (tmp_path / "runs").iterdir()
    with Run.open(path) as run:
        assert run.map_steps() == [0, 50, 100, 150]
        steps, mass = run.measure("previous_token_mass")
        assert list(steps) == [0, 50, 100, 150] and mass[0, 1, 0] < 0.5 < mass[-1, 1, 0]
    assert "previous token" in result.output and "since step" in result.output


def test_state_dicts_with_a_builder(tmp_path, monkeypatch):
    (tmp_path / "my_models.py").write_text(
        "from tests.hugging_face_folders import build_gpt2, train_tokenizer\n"
        "def build():\n    tokenizer = train_tokenizer()\n"
        "    return build_gpt2(tokenizer), tokenizer\n"
        "def number():\n    return 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    model = plant_previous_token_head(build_gpt2(train_tokenizer()))
    torch.save({"model": model.state_dict(), "step": 7}, tmp_path / "step_7.pt")
    result = run_command(tmp_path / "step_7.pt", "--build", "my_models:build", "-i", TEXT, "--json")
    assert json.loads(result.stdout)["layers"][1]["heads"][0]["role"] == "previous token"
    direct = run_command("my_models:build", "-i", TEXT)
    assert direct.exit_code == 0, direct.output
    for target, message in (
        ("my_models:biuld", "did you mean `build`?"),
        ("my_models:number", "returned int, not a torch.nn.Module"),
        ("no_such_module:build", "No module named"),
    ):
        failed = run_command(target)
        assert failed.exit_code == 2 and message in failed.output
    no_builder = run_command(tmp_path / "step_7.pt")
    assert no_builder.exit_code == 2 and "--build package.module:function" in no_builder.output


class SmallDecoder(torch.nn.Module):
    """One causal attention layer over token ids."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 16)
        self.block = SelfAttention()

    def forward(self, ids):
        return self.block(self.embedding(ids))


class SelfAttention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(16, 48)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def test_an_exported_program_reads_token_ids(tmp_path):
    torch.manual_seed(0)
    model = SmallDecoder().eval()
    ids = torch.tensor([[5, 3, 9, 3]])
    torch.export.save(torch.export.export(model, (ids,)), tmp_path / "small.pt2")
    result = run_command(tmp_path / "small.pt2", "--ids", "5 3 9 3", "--json")
    data = json.loads(result.stdout)
    assert [layer["name"] for layer in data["layers"]] == ["block"]
    expected = neural.watch(model, ids).measure_arrays()["entropy"]
    entropies = [head["measures"]["entropy"] for head in data["layers"][0]["heads"]]
    assert entropies == pytest.approx(expected[0].tolist(), abs=1e-6)
    for numbers, message in (("5 x", "whole numbers"), ("-1", "not negative")):
        failed = run_command(tmp_path / "small.pt2", "--ids", numbers)
        assert failed.exit_code == 2 and message in failed.output


def test_a_run_of_this_laboratory_is_a_target(tmp_path):
    (tmp_path / "novel.txt").write_text("the cat sat on the mat. " * 80)
    model = neural.fit(str(tmp_path / "novel.txt"), steps=2, runs=tmp_path / "runs")
    result = run_command(os.fspath(model), "-i", "the cat", "--json")
    data = json.loads(result.stdout)
    assert data["tokens"][0] == list("the␣cat")


def bad_folder(tmp_path, **changes):
    tokenizer = train_tokenizer()
    model = build_gpt2(tokenizer)
    if changes.get("nan"):
        model.transformer.h[0].attn.c_attn.weight.data[0, 0] = float("nan")
    folder = save_folder(tmp_path / "bad", model, None if changes.get("bare") else tokenizer)
    if changes.get("broken"):
        (folder / "config.json").write_text("{")
    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bare": True}, "has no tokenizer: save it into the same folder"),
        ({"nan": True}, "`transformer.h.0.attn.c_attn.weight` has values that are not finite"),
        ({"broken": True}, "config.json"),
    ],
)
def test_bad_folders_are_messages(tmp_path, changes, message):
    result = run_command(bad_folder(tmp_path, **changes), "-i", TEXT)
    assert result.exit_code == 2 and message in result.output, result.output
    assert "Traceback" not in result.output


def test_other_bad_targets_are_messages(tmp_path, planted, monkeypatch):
    # the variable HF_HUB_OFFLINE is read once, when the package is imported
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "trained" / "checkpoint-2").mkdir(parents=True)
    (tmp_path / "probe.txt").write_text("the cat")
    for arguments, message in (
        ([tmp_path / "empty"], "has no config.json"),
        (["nobody/no-such-model"], "the hub of Hugging Face cannot be reached"),
        ([tmp_path / "missing.pt2"], "there is no file"),
        ([planted, "-i", "prob.txt"], "did you mean `probe.txt`?"),
        (["./traned"], "no such file or folder (did you mean `trained`?)"),
        (["./traned/checkpoint-2/"], "(did you mean `trained/checkpoint-2`?)"),
        (
            ["traned/checkpoint-2"],
            "no such folder (did you mean `trained/checkpoint-2`?), and the hub",
        ),
        ([planted, "--layer", "9"], "layer 9 does not exist: there are 2"),
        ([planted, "-i", "x", "--pair", "a", "b"], "either --input or --pair"),
        ([planted, "-o", "page.pdf"], "name it page.html"),
    ):
        result = run_command(*arguments)
        assert result.exit_code == 2 and message in result.output, result.output


def test_heads_that_are_all_uniform_are_not_called_heads_without_a_role(tmp_path):
    tokenizer = train_tokenizer()
    folder = save_folder(tmp_path / "untrained", build_gpt2(tokenizer), tokenizer)
    output = run_command(folder, "--input", TEXT).output
    assert "2 layers, 4 heads: 4 uniform\nno head has another role; --layer N shows" in output


def test_a_name_of_several_runs_is_not_looked_up_on_the_hub(tmp_path):
    for name in ("2026-01-01_00-00-00_octaves-a", "2026-01-02_00-00-00_octaves-b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "status.json").write_text("{}")
    result = run_command("octaves", "--runs", tmp_path)
    assert result.exit_code == 2 and "`octaves` matches several runs" in result.output


def test_words_outside_the_vocabulary_are_noted(planted):
    result = run_command(planted, "-i", "the zebra sat")
    assert "1 token is not in the vocabulary and became [UNK]" in result.output


def test_a_model_without_attention_is_a_message(tmp_path, monkeypatch):
    (tmp_path / "plain_models.py").write_text(
        "import torch\nfrom tests.hugging_face_folders import train_tokenizer\n"
        "class Plain(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.embedding = torch.nn.Embedding(99, 4)\n"
        "    def forward(self, input_ids):\n        return self.embedding(input_ids)\n"
        "def build():\n    return Plain(), train_tokenizer()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    result = run_command("plain_models:build", "-i", TEXT)
    assert result.exit_code == 2 and "no attention was recognised" in result.output


def read_page_data(path):
    """The data of a page."""
    (text,) = re.findall(r'id="neural-data">(.*?)</script>', path.read_text("utf-8"))
    return json.loads(text)


def test_the_page_has_the_findings_that_are_printed(planted, tmp_path):
    page = tmp_path / "heads.html"
    result = run_command(planted, "--input", TEXT, "-o", page)
    (group,) = read_page_data(page)["groups"]
    codes = [finding["code"] for finding in group["findings"]]
    assert codes == re.findall(r"^([A-Z]{3}\d{3})  yes", result.stdout, re.M) and codes


def test_findings_about_several_texts_have_the_roles_of_the_table(planted):
    data = json.loads(run_command(planted, "-i", "a dog", "-i", TEXT, "-i", TEXT, "--json").stdout)
    with_role = sum(
        head["role"] == "previous token" for layer in data["layers"] for head in layer["heads"]
    )
    (finding,) = [finding for finding in data["findings"] if finding["code"] == "ATT008"]
    assert with_role == 1 and "L1 h0 previous token" in finding["evidence"]


def test_a_file_of_several_lines_is_one_text_or_one_per_line(planted, tmp_path):
    file = tmp_path / "probe.txt"
    file.write_text(f"{TEXT}\n\na cat\n", encoding="utf-8")
    data = json.loads(run_command(planted, "-i", file, "--json").stdout)
    assert len(data["tokens"]) == 1
    assert "1 of 1 texts has several lines; with --lines" in data["notes"][-1]
    page = tmp_path / "heads.html"
    data = json.loads(
        run_command(planted, "-i", file, "--lines", "--json", "-o", page, "--example", "1").stdout
    )
    assert [row[:2] for row in data["tokens"]] == [TEXT.split()[:2], ["a", "cat"]]
    assert not any("--lines" in note for note in data["notes"])
    assert read_page_data(page)["runs"][0]["labels"]["keys"][:2] == ["a", "cat"]
    result = run_command(planted, "-i", file, "--lines", "--example", "2")
    assert result.exit_code == 2 and "example 2 does not exist: there are 2" in result.output


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_input_is_an_error(planted, text):
    result = run_command(planted, "--input", text)
    assert result.exit_code == 2 and "an input is empty: give a text" in result.output


def test_a_short_input_has_no_roles(planted):
    result = run_command(planted, "--input", "the cat sat on the mat")
    assert "too short to tell" in result.output
    assert "roles need 10 tokens" in result.output and "ATT008" not in result.output


@pytest.mark.parametrize("option", [("--ids", "abc"), ("--pair", "a", "b"), ("--max-tokens", "3")])
def test_options_that_a_run_does_not_read_are_refused(tmp_path, option):
    run = Run.create(tmp_path, "mine", settings={"task": "language_model"}, program=None)
    run.finish("finished")
    result = run_command(run.path, *option)
    assert result.exit_code == 2
    assert f"is a run, which {option[0]} does not apply to" in result.output
