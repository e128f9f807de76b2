"""`--objective` of `neural ablate`, `patch` and `attribute`, on a sentence encoder in a folder."""

import json

import pytest
import torch
from click.testing import CliRunner

from neural.cli.main import main
from tests.hugging_face_folders import build_encoder, save_folder, train_tokenizer

PAIRS = [("the cat sat", "a dog saw the mat"), ("the dog sat on the rug", "the cat")]


@pytest.fixture(scope="module")
def encoder():
    tokenizer = train_tokenizer()
    return build_encoder(tokenizer), tokenizer


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
    return save_folder(tmp_path_factory.mktemp("models") / "encoder", *encoder)


def run_command(*arguments):
    result = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@torch.no_grad()
def embed(encoder, text):
    model, tokenizer = encoder
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    return model(ids).last_hidden_state[0].mean(dim=0)


def compute_cosine(encoder, first, second):
    return float(torch.cosine_similarity(embed(encoder, first), embed(encoder, second), dim=0))


def test_ablate_measures_the_cosine_of_the_pairs_of_a_file(encoder, folder, tmp_path):
    data = tmp_path / "pairs.tsv"
    data.write_text("\n".join(map("\t".join, PAIRS)))
    options = ("--data", data, "--objective", "cosine", "--no-pairs")
    (step,) = run_command("ablate", folder, *options)["steps"]
    cosines = [compute_cosine(encoder, *pair) for pair in PAIRS]
    assert step["loss"] == pytest.approx(-sum(cosines) / 2, abs=1e-5)


def test_patch_restores_the_norm_of_the_clean_text(encoder, folder, tmp_path):
    pairs = tmp_path / "pairs.yaml"
    pairs.write_text("pairs:\n  - {clean: the cat sat, corrupted: the dog sat}\n")
    options = ("--objective", "norm", "--sweep", "heads", "--no-null")
    result = run_command("patch", folder, pairs, *options)
    assert result["metric"] == "norm"
    (pair,) = result["pairs"]
    for name in ("clean", "corrupted"):
        norm = float(embed(encoder, pair[name]).norm())
        assert pair[f"{name}_metric"] == pytest.approx(norm, abs=1e-4)
    assert len(result["sweeps"]["heads"]) == 4


def test_attribute_explains_the_cosine_of_two_inputs(encoder, folder):
    first, second = PAIRS[0]
    inputs = ("--input", first, "--input", second)
    result = run_command("attribute", folder, *inputs, "--objective", "cosine")
    assert result["answer"]["logit"] == pytest.approx(
        compute_cosine(encoder, first, second), abs=1e-5
    )
    assert result["tokens"] == first.split()


@pytest.mark.parametrize("command", ["ablate", "patch", "attribute"])
def test_an_unknown_objective_is_a_message(command, folder, tmp_path):
    data = tmp_path / "pairs.tsv"
    data.write_text("\n".join(map("\t".join, PAIRS)))
    pairs = tmp_path / "pairs.yaml"
    pairs.write_text("pairs:\n  - {clean: the cat sat, corrupted: the dog sat}\n")
    options = {"ablate": ["--data", data], "patch": [pairs], "attribute": ["--input", "the cat"]}
    arguments = [command, folder, *options[command], "--objective", "euclid"]
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exit_code == 2
    assert "there is no objective `euclid`: use cosine, norm" in result.stderr
