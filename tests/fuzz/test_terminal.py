"""Names and texts of an untrusted run folder cannot control the terminal."""

import os
import re
import shutil
import sqlite3

import click
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.core.escape import escape_controls, escape_controls_keep_colours
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


def test_line_breaks_are_kept():
    assert escape_controls("a\tb\nc\u2028d\udcffe") == "a b\nc�d�e"
