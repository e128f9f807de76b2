"""`neural compare --probe`: heads of two models; tests/cli/test_runs.py has the comparison of runs."""

import json
import re

import pytest
import torch
from click.testing import CliRunner

from neural.cli.main import main
from tests.hugging_face_folders import TEXTS, WIDTH, build_gpt2, save_folder, train_tokenizer
from tests.workflows.test_compare_models import widen

TEXT = " ".join(TEXTS)


def compare(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root, tokenizer = tmp_path_factory.mktemp("hf"), train_tokenizer()
    model = widen(build_gpt2(tokenizer), seed=1)
    save_folder(root / "base", model, tokenizer)
    with torch.no_grad():
        model.transformer.h[0].attn.c_attn.weight[:, : WIDTH // 2] += 0.1 * (
            torch.randn(WIDTH, 2) @ torch.randn(2, WIDTH // 2)
        )
    save_folder(root / "tuned", model, tokenizer)
    return root


def test_matched_heads_and_the_most_changed_one_are_printed(folders):
    result = compare(folders / "base", folders / "tuned", "--probe", TEXT)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split() == ["A", "base", "2", "layers", "4", "heads"]
    rows = [line for line in lines if re.match(r"  L\d h\d  L\d h\d  ", line)]
    assert len(rows) == 4 and rows[0].startswith("  L0 h0  L0 h0")
    title = [line.startswith("changed most") for line in lines].index(True)
    first_change = next(line for line in lines[title:] if " bits" in line)
    assert first_change.split()[:2] == ["L0", "h0"]
    assert str(folders) not in result.output


def test_identical_models_have_no_changed_head(folders):
    result = compare(folders / "base", folders / "base", "--probe", TEXT)
    assert result.exit_code == 0, result.output
    changes = result.output[result.output.index("changed most") :].splitlines()
    assert changes[0] == "changed most  no head changed"
    assert "4 of 4 are the same head at the same index" in changes[1]


def test_json_has_pairs_and_changes(folders, tmp_path):
    file = tmp_path / "probe.txt"
    file.write_text(TEXT, encoding="utf-8")
    result = compare(folders / "base", folders / "tuned", "--probe", file, "--json")
    data = json.loads(result.stdout)
    assert data["changes"][0] == {
        "layer": 0,
        "head": 0,
        "divergence_bits": data["changes"][0]["divergence_bits"],
    }
    assert {pair["verdict"] for pair in data["pairs"]} <= {"same head", "same role", "undecided"}
    assert data["tokens"] == [TEXT.split()] and data["index_p"] > 0


def test_ids_and_equal_layers(folders):
    words = ["--ids", "4 5 6 7 8 4 5 6 9 10", "--same-layer", "--json"]
    data = json.loads(compare(folders / "base", folders / "tuned", *words).stdout)
    assert all(pair["a"]["layer"] == pair["b"]["layer"] for pair in data["pairs"])


def test_saved_runs_are_matched_by_their_maps(folders, tmp_path):
    runs = tmp_path / "runs"
    for name in ("base", "tuned"):
        words = ["watch", str(folders / name), "--input", TEXT, "--save", "--runs", str(runs)]
        assert CliRunner().invoke(main, words).exit_code == 0
    result = compare("base", "tuned", "--heads", "--runs", runs, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert (data["changes"][0]["layer"], data["changes"][0]["head"]) == (0, 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--probe", "the cat", "--heads"], "one of --probe, --ids and --heads"),
        (["--same-layer"], "add --probe TEXT or --heads"),
        ([], "is a model, not a run: add --probe TEXT"),
        (["--probe", "cat"], "no query sees two keys: give a longer input"),
    ],
)
def test_wrong_requests_have_a_message(folders, words, message):
    result = compare(folders / "base", folders / "tuned", *words)
    assert result.exit_code == 2 and message in " ".join(result.output.split())


def test_two_models_are_needed(folders):
    result = compare(folders / "base", "--probe", "the cat")
    assert result.exit_code == 2 and "name two" in result.output
