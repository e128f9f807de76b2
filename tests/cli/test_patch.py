"""`neural patch`: tables, JSON, files and messages."""

import json

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.workflows.patching_result import build_units_section
from tests import circuits
from tests.hugging_face_folders import save_folder
from tests.written_runs import CHARACTERS, write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the model of known circuits and its tokenizer."""
    path = tmp_path_factory.mktemp("models") / "zoo"
    return save_folder(path, circuits.build_zoo("gpt2").model, circuits.build_tokenizer())


@pytest.fixture(scope="module")
def pairs_file(tmp_path_factory):
    pairs = circuits.draw_pairs(5, seed=1)
    lines = ["metric: logit_difference", "pairs:"]
    for clean, corrupted, answer, wrong in zip(
        pairs.clean, pairs.corrupted, pairs.answer, pairs.foil, strict=True
    ):
        lines += [
            f'  - clean: "{circuits.format_tokens(clean)}"',
            f'    corrupted: "{circuits.format_tokens(corrupted)}"',
            f'    answer: " {circuits.WORDS[answer]}"',
            f'    wrong: " {circuits.WORDS[wrong]}"',
        ]
    path = tmp_path_factory.mktemp("pairs") / "pairs.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def invoke(*words):
    return CliRunner().invoke(main, ["patch", *map(str, words)])


def test_the_tables_name_the_heads_positions_and_paths(folder, pairs_file, tmp_path):
    page = tmp_path / "page.html"
    result = invoke(folder, pairs_file, "--paths", "-o", page)
    assert result.exit_code == 0, result.output
    assert "5 of 5 pairs; mean logit_difference: clean 24, corrupted" in result.output
    assert "2 of 8 have an effect beyond mismatched pairs" in result.output
    for words in (["L1", "h0", "1.00"], ["L0", "h1", "1.00"]):
        assert any(line.split()[:3] == words for line in result.output.splitlines())
    assert "L0 h1 → L1 h0" in result.output
    assert page.read_text().count("<svg") == 2


def test_units_are_listed_by_size_with_their_p_and_none_that_prints_as_zero():
    def row(head, restored, p):
        numbers = {"low": restored, "high": restored, "mismatched": 0.0, "p": p}
        place = {"layer": 0, "head": head, "position": None, "token": None}
        return {**place, "restored": restored, **numbers, "effect": p <= 0.05}

    rows = [row(0, 0.00004, 0.5), row(1, -0.1, 0.042), row(2, 0.25, 0.3)]
    section = build_units_section("heads", rows)
    assert section.text == "\n1 of 3 have an effect beyond mismatched pairs (p ≤ 0.05)"
    assert [cells[:2] for cells in section.table_rows] == [("L0 h2", ".25"), ("L0 h1", "−.10")]
    assert build_units_section("heads", rows[:1]).text.endswith("all restore less than 0.005")


def test_json_alone_is_on_standard_output(folder, pairs_file):
    path = ["--path", "L0 h1", "L1 h0", "--path", "L1 h0", "output"]
    result = invoke(folder, pairs_file, "--sweep", "heads", "--json", *path, "--no-null")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert list(data["sweeps"]) == ["heads"]
    assert [row["restored"] for row in data["paths"]] == pytest.approx([1, 1], abs=1e-4)
    assert all(row["p"] is None for row in data["sweeps"]["heads"])


def test_a_path_leads_through_keys(folder, pairs_file):
    path = ["--path", "L0 h1", "L1 h0", "--through", "q", "--json", "--sweep", "heads"]
    result = invoke(folder, pairs_file, *path)
    (row,) = json.loads(result.stdout)["paths"]
    assert row["through"] == "q"
    assert row["restored"] == pytest.approx(0, abs=1e-4)


def test_a_run_is_patched_by_its_name(tmp_path):
    write_run(tmp_path / "runs", "small", vocabulary=list(CHARACTERS))
    first, second = CHARACTERS[1:4], CHARACTERS[1] + CHARACTERS[5] + CHARACTERS[3]
    path = tmp_path / "pairs.yaml"
    entry = {"clean": first, "corrupted": second, "answer": CHARACTERS[4], "wrong": CHARACTERS[6]}
    path.write_text(json.dumps({"pairs": [entry]}))
    result = invoke("small", path, "--runs", tmp_path / "runs")
    assert result.exit_code == 0, result.output
    assert "step 3" in result.output
    assert "4 pairs or more" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "page.pdf"], "name it page.html"),
        (["--through", "q"], "--through belongs to --path"),
        (["--path", "L0 h1", "L1 h0", "--paths"], "choose one of them"),
        (["--path", "L0 h1", "L5 h0"], "there is no head L5 h0"),
        (["--path", "L0 h1", "L0 h2"], "not in a later layer"),
        (["--path", "one", "L0 h2"], "`one` is not a head"),
        (["--step", "3"], "--step selects a checkpoint of a run"),
    ],
)
def test_wrong_options_are_messages(folder, pairs_file, words, message):
    result = invoke(folder, pairs_file, "--sweep", "heads", *words)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_wrong_files_are_messages(folder, pairs_file, tmp_path):
    missing = invoke(folder, tmp_path / "none.yaml")
    assert missing.exit_code == 2
    assert "none.yaml" in missing.output
    broken = tmp_path / "broken.yaml"
    broken.write_text(pairs_file.read_text().replace(" <start>", "", 1).replace("<start> ", "", 1))
    result = invoke(folder, broken)
    assert result.exit_code == 2
    assert "pair 1: `clean` has 10 tokens and `corrupted` 11" in result.output
    assert "broken.yaml:4" in result.output
    assert invoke(tmp_path / "no-model.pt2", pairs_file).exit_code == 2
