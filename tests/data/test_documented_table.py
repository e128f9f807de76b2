"""The worked example of docs/data.md, typed as it is written."""

import csv
import re
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs/data.md").read_text()
SECTION = PAGE[PAGE.index("## Tables") : PAGE.index("## Predictions in files")]
FILES = dict(re.findall(r'```\w+ title="([\w.]+)"\n(.*?)```', SECTION, re.S))
COMMANDS = re.findall(r"^\$ neural (.*)\n((?:[^$`].*\n)*)", SECTION, re.M)


def test_the_example_runs_and_prints_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    assert len(FILES) == 4
    assert len(COMMANDS) == 3
    for command, shown in COMMANDS:
        result = CliRunner().invoke(main, command.split())
        assert result.exit_code == (2 if shown.startswith("error") else 0), result.output
        assert shown in result.output
    header, *rows = csv.reader(StringIO(Path("bought.csv").read_text()))
    printed = SECTION[SECTION.index("$ cat bought.csv\n") :].split("```")[0].splitlines()[1:]
    shown_header, *shown_rows = csv.reader(printed)
    assert header == shown_header
    for row, shown_row in zip(rows, shown_rows, strict=True):
        assert row[:2] == shown_row[:2]
        assert list(map(float, row[2:])) == pytest.approx(list(map(float, shown_row[2:])), abs=0.02)
