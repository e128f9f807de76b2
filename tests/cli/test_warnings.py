"""Warnings of this package are printed as a line on standard error."""

import sqlite3
import warnings

import pytest
from click.testing import CliRunner

from neural.cli.main import main, show_warning
from neural.runs.errors import RunWarning
from tests.report_runs import write_run


@pytest.mark.filterwarnings("default::neural.runs.errors.RunWarning")
@pytest.mark.parametrize("verb", ["show", "analyze", "report"])
def test_a_run_with_an_invalid_entry_is_shown_and_the_entry_is_named(tmp_path, verb):
    path = write_run(tmp_path / "runs", layers=2, heads=2)
    with sqlite3.connect(path / "rows.sqlite") as db:
        db.execute("UPDATE metadata SET value = '{}' WHERE key = 'attention/layers'")
    db.close()
    options = ["-o", str(tmp_path / "page.html")] if verb == "report" else []
    result = CliRunner().invoke(main, [verb, str(path), *options])
    assert result.exit_code == 0, result.output
    assert "`attention/layers` must be a list of texts; it is left out" in result.stderr
    assert result.stderr.startswith(f"warning: {path}: rows.sqlite: ")


def test_warnings_of_other_packages_are_shown_by_python(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show_warning
        warnings.warn("of another package", stacklevel=1)
        warnings.warn("of ours", RunWarning, stacklevel=1)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.endswith("UserWarning: of another package")
    assert last == "warning: of ours"
