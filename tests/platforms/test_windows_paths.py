"""Drive letters, network drives, line ends and byte order marks, as files from Windows have them."""

from __future__ import annotations

import sqlite3
from pathlib import PurePosixPath, PureWindowsPath

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.core.errors import TaskError
from neural.core.files import read_source_text
from neural.data.loading import _resolve_path
from neural.runs.find import match_folders
from neural.runs.run import Run
from neural.runs.store import database_uri
from tests.sweeps import PROGRAM, write_sweep

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (PureWindowsPath(r"C:\my runs\rows.sqlite"), "file:///C:/my%20runs/rows.sqlite"),
        (PureWindowsPath(r"\\server\share\rows.sqlite"), "file:////server/share/rows.sqlite"),
        (PurePosixPath("/home/ü/rows.sqlite"), "file:///home/%C3%BC/rows.sqlite"),
    ],
)
def test_sqlite_gets_no_server_name_in_the_address_of_a_database(path, uri):
    assert database_uri(path) == uri


def test_sqlite_opens_an_address_with_the_slashes_of_a_network_drive(tmp_path):
    path = tmp_path / "rows.sqlite"
    uri = f"file://{'//' + path.as_posix().lstrip('/')}"
    sqlite3.connect(f"{uri}?mode=rwc", uri=True).execute("CREATE TABLE t (a)").connection.close()
    assert path.stat().st_size
    with pytest.raises(sqlite3.OperationalError, match="invalid uri authority"):
        sqlite3.connect(PureWindowsPath(r"\\server\share\rows.sqlite").as_uri(), uri=True)


@pytest.mark.parametrize("data", ["C:data\new.csv", "C:data\table.csv", "\\server", "data\new.csv"])
def test_a_path_whose_backslashes_became_escapes_is_explained(data, tmp_path):
    with pytest.raises(
        TaskError, match=r"starts an escape in strings: write the path with `/`"
    ) as e:
        _resolve_path(data, tmp_path)
    assert "\n" not in str(e.value)
    assert "\t" not in str(e.value)


def test_a_path_with_forward_slashes_and_a_drive_is_not_taken_for_an_escape(tmp_path):
    with pytest.raises(TaskError) as error:
        _resolve_path("C:/data/new.csv", tmp_path)
    assert "escape" not in str(error.value)


def test_runs_are_found_by_a_name_that_macos_lists_decomposed(tmp_path):
    composed, decomposed = "Gr\u00f6\u00dfe", "Gro\u0308\u00dfe"
    for listed in (composed, decomposed):
        folder = tmp_path / f"2026-11-18_05-00-00_{listed}"
        for typed in (composed, decomposed, "GRÖSSE"):
            assert match_folders(typed, [folder]) == [folder]


@pytest.mark.parametrize("mark", [b"", BYTE_ORDER_MARK], ids=["plain", "byte_order_mark"])
def test_files_with_the_line_ends_of_windows_train_the_same_network(mark, tmp_path):
    losses = []
    for name, line_end in (("lf", b"\n"), ("crlf", b"\r\n")):
        folder = tmp_path / name
        folder.mkdir()
        write_sweep(folder, "")
        rows = np.random.default_rng(0).normal(size=(40, 2))
        table = "a,b,label\n" + "".join(
            f"{a:.3f},{b:.3f},{'yes' if a > b else 'nö'}\n" for a, b in rows
        )
        program = PROGRAM.replace("(5, 6)", "(2,)").replace("GlobalAveragePooling1D()", "Dense(5)")
        program = program.replace("Output(3", "Output(2").replace("tiny.npz", "table.csv")
        experiment = "task: supervised\nnetwork: tiny.neural\ntraining: {seed: 3}\n"
        files = {"table.csv": table, "tiny.neural": program, "tiny.yaml": experiment}
        for file_name, text in files.items():
            content = text.encode().replace(b"\n", line_end)
            (folder / file_name).write_bytes((mark if name == "crlf" else b"") + content)
        command = ["train", str(folder / "tiny.yaml"), "--runs", str(folder / "runs"), "--quiet"]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output
        (run,) = (folder / "runs").iterdir()
        with Run.open(run) as opened:
            losses.append(opened.scalars("train/loss")[1].tolist())
    assert losses[0] == losses[1]
    assert len(losses[0]) == 7


def test_the_formatter_keeps_the_line_ends_of_windows(tmp_path):
    path = tmp_path / "tiny.neural"
    path.write_bytes(PROGRAM.replace("Dense(6)", "Dense( 6 )").replace("\n", "\r\n").encode())
    assert CliRunner().invoke(main, ["fmt", str(path)]).exit_code == 0
    content = path.read_bytes()
    assert b"Dense(6)" in content
    assert content.count(b"\r\n") == content.count(b"\n") > 5
    assert "\r" not in read_source_text(path).text


def test_a_program_in_utf_16_is_a_message(tmp_path):
    path = tmp_path / "tiny.neural"
    path.write_bytes(PROGRAM.encode("utf-16"))  # what `>` of an old PowerShell writes
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 2
    assert "a program is plain UTF-8 text" in result.output
