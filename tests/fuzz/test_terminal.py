"""What a foreign run folder is called and says moves no cursor, clears no screen and hides nothing."""

import os
import re
import sqlite3

import click
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.core.visible import visible, visible_colours
from tests.fuzz import run_seeds

EVIL = "\x1b[2J\x1b[1;1Hevil\x07\r\u202e\x9b2J"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    path = root / f"2026-01-01_{EVIL}\n"
    (path / "checkpoints").mkdir(parents=True)
    for name, content in run_seeds.run_files().items():
        (path / name).write_bytes(content)
    status = '{"state": "fin\\u001b[2J", "message": "\\u001b]0;title\\u0007", "step": 3, "time": 1.0}'
    (path / "status.json").write_text(status, encoding="utf-8")
    with sqlite3.connect(path / "rows.sqlite") as db:
        db.execute("UPDATE events SET text = ?, kind = ?", (EVIL, EVIL))
        db.execute("UPDATE names SET name = ? WHERE name = 'valid/accuracy'", (f"valid/{EVIL}",))
    db.close()
    (root / os.fsdecode(b"2026-\xff\xfe\x1b[2J")).mkdir()
    return root


@pytest.mark.parametrize("arguments", [
    ["runs"], ["runs", "--json"], ["show", "RUN"], ["show", "RUN", "--json"], ["compare", "RUN", "RUN"],
    ["analyze", "RUN"], ["top", "RUN", "--once"], ["show", f"none{EVIL}"],
])  # fmt: skip
def test_names_and_texts_of_a_run_are_shown_and_not_obeyed(arguments, runs):
    path = next(str(one) for one in runs.iterdir() if "evil" in one.name)
    asked = [path if one == "RUN" else one for one in arguments]
    done = CliRunner().invoke(main, [*asked, *(["--runs", str(runs)] if "RUN" not in arguments else [])], color=True)
    assert done.exit_code in (0, 2), done.exception
    assert "evil" in done.output
    left = COLOUR.sub("", done.output)
    assert left == visible(left)
    assert "\x1b[8m" not in done.output   # a colour that hides


def test_our_own_colours_stay():
    ours = click.style("a", fg="red", bold=True) + click.style("b", fg="bright_blue")
    assert visible_colours(ours) == ours
    assert visible_colours("\x1b[2Ja\x1b[8mb") == "�[2Ja�[8mb"


def test_a_text_of_several_lines_stays_one():
    assert visible("a\tb\nc\u2028d\udcffe") == "a b\nc�d�e"
