"""Names and texts of an untrusted run folder cannot control the terminal."""

import json
import os
import re
import shutil
import sqlite3

import click
import numpy as np
import pytest
from click.testing import CliRunner

import neural
from neural.cli._attention_maps import render_map
from neural.cli.caption import _format_captions
from neural.cli.main import main
from neural.core.escape import escape_controls, escape_controls_keep_colours, escape_json
from neural.report.caption_attention import CaptionAttention
from neural.workflows.caption import Caption
from tests.fuzz import run_seeds

MALICIOUS = "\x1b[2J\x1b[1;1Hevil\x07\r\u202e\x9b2J"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    path = root / f"2026-01-01_{MALICIOUS}\n"
    (path / "checkpoints").mkdir(parents=True)
    for name, content in run_seeds.run_files().items():
        (path / name).write_bytes(content)
    status = (
        '{"state": "fin\\u001b[2J", "message": "\\u001b]0;title\\u0007", "step": 3, "time": 1.0}'
    )
    (path / "status.json").write_text(status, encoding="utf-8")
    with (path / "program.neural").open("a", encoding="utf-8") as program:
        program.write(f"\n# {MALICIOUS}\n")
    with sqlite3.connect(path / "rows.sqlite") as db:
        db.execute("UPDATE events SET text = ?, kind = ?", (MALICIOUS, MALICIOUS))
        db.execute(
            "UPDATE names SET name = ? WHERE name = 'valid/accuracy'", (f"valid/{MALICIOUS}",)
        )
    db.close()
    (root / os.fsdecode(b"2026-\xff\xfe\x1b[2J")).mkdir()
    return root


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs"],
        ["runs", "--json"],
        ["show", "RUN"],
        ["show", "RUN", "--json"],
        ["compare", "RUN", "COPY"],
        ["analyze", "RUN"],
        ["top", "RUN", "--once"],
        ["show", f"none{MALICIOUS}"],
    ],
)
def test_control_characters_of_a_run_are_escaped(arguments, runs, tmp_path):
    path = next(item for item in runs.iterdir() if "evil" in item.name)
    copy = shutil.copytree(path, tmp_path / path.name)
    with (copy / "program.neural").open("a", encoding="utf-8") as program:
        program.write(f"\n# another {MALICIOUS}\n")
    paths = {"RUN": str(path), "COPY": str(copy)}
    command = [paths.get(item, item) for item in arguments]
    result = CliRunner().invoke(
        main, [*command, *(["--runs", str(runs)] if "RUN" not in arguments else [])], color=True
    )
    assert result.exit_code in (0, 2), result.exception
    assert "evil" in result.output
    plain = COLOUR.sub("", result.output)
    assert plain == escape_controls(plain)
    assert "\x1b[8m" not in result.output  # the style "hidden"


def test_our_own_colours_are_kept():
    ours = click.style("a", fg="red", bold=True) + click.style("b", fg="bright_blue")
    assert escape_controls_keep_colours(ours) == ours
    assert escape_controls_keep_colours("\x1b[2Ja\x1b[8mb") == "�[2Ja�[8mb"


@pytest.mark.parametrize("invisible", "\u200b\u200e\u2060\ufeff\u00ad\u202e\U000e0041")
def test_invisible_characters_are_replaced(invisible):
    assert escape_controls(f"a{invisible}b") == "a�b"


def test_line_breaks_are_kept():
    assert escape_controls("a\tb\nc\u2028d\udcffe") == "a b\nc�d�e"


def assert_is_safe(output):
    plain = COLOUR.sub("", output)
    assert "evil" in plain
    assert plain == escape_controls(plain)


@pytest.fixture(scope="module")
def table_run(tmp_path_factory):
    """A run of a table whose columns and classes are control characters, and the table."""
    folder = tmp_path_factory.mktemp("table")
    name = MALICIOUS.replace("\r", "")  # a line break ends a row
    rows = [f"{row / 40},{row % 7},{name if row % 2 else 'good'}" for row in range(40)]
    data = folder / "data.csv"
    data.write_text("\n".join([f"{name} width,height,kind {name}", *rows]), encoding="utf-8")
    program = """network Small {
      input: (2,)
      layers:
        Dense(4)
        Output(2, activation="softmax")
      loss: "sparse_categorical_crossentropy"
    }
    """
    result = neural.fit(program, data, {"training": {"steps": 2}}, runs=folder / "runs")
    return os.fspath(result), data


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "RUN", "DATA"],
        ["predict", "RUN", "DATA", "--json"],
        ["evaluate", "RUN"],
        ["evaluate", "RUN", "--json"],
    ],
    ids=" ".join,
)
def test_columns_and_classes_of_a_table_are_escaped(words, table_run):
    paths = dict(zip(("RUN", "DATA"), map(str, table_run), strict=True))
    result = CliRunner().invoke(main, [paths.get(word, word) for word in words], color=True)
    assert result.exit_code == 0, result.output
    assert_is_safe(result.output)


def test_json_with_escaped_controls_is_the_same_data():
    data = {MALICIOUS: ["a\n\t\u200b", "\U000e0041", "\udcff", "日本 ü"]}
    text = json.dumps(data, indent=1, ensure_ascii=False)
    assert json.loads(escape_json(text)) == data
    assert escape_json(text) == escape_controls(escape_json(text))
    assert "日本 ü" in escape_json(text)


def test_words_of_a_caption_are_escaped():
    attention = CaptionAttention(words=[MALICIOUS, "dog"], focus=np.eye(2))
    assert_is_safe("\n".join(_format_captions([Caption(0, attention, None)], [])))


def test_tokens_beside_an_attention_map_are_escaped():
    tokens = ["\x1b", "\n", "\u202e", "a"]
    header, *lines = render_map(np.eye(4), tokens, tokens)
    assert header.split() == ["�", "�", "a"]
    assert_is_safe("evil".join([header, *lines]))
