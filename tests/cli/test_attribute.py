"""`neural attribute`: tables, JSON, files and messages."""

import json
import re

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from tests.circuits import build_induction, build_tokenizer, format_tokens
from tests.hugging_face_folders import save_folder


def run(*arguments):
    return CliRunner().invoke(main, ["attribute", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of the induction circuit."""
    path = tmp_path_factory.mktemp("models") / "induction"
    return save_folder(path, build_induction("gpt2").model, build_tokenizer())


@pytest.fixture(scope="module")
def text():
    batch = build_induction("gpt2").draw(1, seed=1)
    position = int(batch.has_target[0].nonzero()[-1])
    return format_tokens(batch.tokens[0, : position + 1])


def test_the_tables_explain_the_answer(folder, text):
    result = run(folder, "--input", text, "--faithfulness", "--examples", 3)
    assert result.exit_code == 0, result.output
    output = result.stdout
    answer_line = output.splitlines()[1]
    assert "with probability 1.000" in answer_line
    for heading in ("source positions", "faithfulness", "direct logit attribution", "logit lens"):
        assert heading in output
    assert "3 predictions" in output
    assert "ablation (leave-one-out)" in output
    assert "all 15 parts sum to 23.99" in output
    assert "the logit is 23.99" in output
    parts = output[output.index("direct logit attribution\n") :].splitlines()
    first_row = next(index for index, line in enumerate(parts) if "if removed" in line) + 1
    assert parts[first_row].split()[:2] == ["L1", "h0"]


def test_json_is_all_of_standard_output(folder, text):
    result = run(folder, "--input", text, "--method", "rollout", "--method", "direct", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert list(data["methods"]) == ["rollout", "direct"]
    assert data["methods"]["rollout"]["faithfulness"] is None
    assert data["tokens"] == text.split()
    assert data["logit_attribution"]["sum"] == pytest.approx(data["answer"]["logit"], abs=1e-4)


def test_a_line_says_that_it_began_and_a_terminal_has_a_bar(folder, text, monkeypatch):
    result = run(folder, "--input", text, "--json")
    assert result.stderr == "induction …\n" and json.loads(result.stdout)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setenv("TERM", "xterm")  # a dumb one has no bar
    result = run(folder, "--input", text, "--json")
    assert json.loads(result.stdout)
    counts = re.findall(r"(\d+)/(\d+)\b", result.stderr)
    assert counts and counts[-1][0] == counts[-1][1] and "0:00:0" in result.stderr


def test_ids_position_and_answer(folder):
    ids = "0 5 7 9 11 7"
    result = run(folder, "--ids", ids, "--position", 3, "--answer", "a", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["token_ids"] == [0, 5, 7, 9]
    assert data["position"] == 3
    assert data["answer"]["text"] == "a"


@pytest.mark.parametrize("name", ["why.html", "why.svg"])
def test_pages_and_figures_are_written(folder, text, tmp_path, name):
    result = run(folder, "--input", text, "--method", "direct", "-o", tmp_path / name)
    assert result.exit_code == 0, result.output
    assert "<svg" in (tmp_path / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--input TEXT, or with --ids"),
        (("--ids", "1 x"), "whole numbers"),
        (("--ids", "0 5 7", "--position", "9"), "position 9 does not exist"),
        (("--ids", "0 5 7", "--method", "magic"), "`magic` is not a method"),
        (("--ids", "0 5 7", "--answer", "zebra"), "`zebra` is not in the vocabulary"),
        (("--ids", "0 5 7", "-o", "why.txt"), "a page is HTML"),
    ],
)
def test_bad_input_gets_a_message(folder, arguments, message):
    result = run(folder, *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_missing_target_gets_a_message(tmp_path):
    result = run(tmp_path / "nothing.pt2", "--ids", "1 2")
    assert result.exit_code == 2
    assert "there is no file" in result.output
