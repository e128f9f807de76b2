"""Warnings of ours reach the user as a line on standard error."""

import sqlite3
import warnings

import pytest
from click.testing import CliRunner

from neural.cli.main import main, show_warning
from neural.tracking.trouble import RunWarning
from tests.report_runs import write_run


@pytest.mark.filterwarnings("default::neural.tracking.trouble.RunWarning")
@pytest.mark.parametrize("verb", ["show", "analyze", "report"])
def test_a_run_with_one_bad_entry_is_shown_and_the_entry_is_named(tmp_path, verb):
    path = write_run(tmp_path / "runs", layers=2, heads=2)
    with sqlite3.connect(path / "rows.sqlite") as db:
        db.execute("UPDATE described SET value = '{}' WHERE key = 'attention/layers'")
    db.close()
    where = ["-o", str(tmp_path / "page.html")] if verb == "report" else []
    shown = CliRunner().invoke(main, [verb, str(path), *where])
    assert shown.exit_code == 0, shown.output
    assert "`attention/layers` must be a list of texts; it is left out" in shown.stderr
    assert shown.stderr.startswith(f"warning: {path}: rows.sqlite: ")


def test_warnings_of_others_look_as_python_shows_them(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show_warning
        warnings.warn("of somebody else", stacklevel=1)
        warnings.warn("of ours", RunWarning, stacklevel=1)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.endswith("UserWarning: of somebody else")
    assert last == "warning: of ours"
