"""Tables, bars and charts on consoles and pipes that lack their symbols."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.sweeps import write_sweep

SCRIPT = """
import sys
from neural.cli.main import main
for words in (
    ["check", "tiny.neural"],
    ["train", "tiny.neural"],
    ["show"],
    ["runs"],
    ["layers"],
    ["analyze"],
    ["explain", "E0203"],
    ["segment", "text.txt"],
    ["check", "wrong.neural"],
    ["--help"],
):
    try:
        main(words, prog_name="neural")
    except SystemExit as error:
        assert (error.code or 0) == (2 if words[-1] == "wrong.neural" else 0), words
"""


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii"])
def test_commands_print_replacements_of_what_the_console_lacks(encoding, tmp_path):
    write_sweep(tmp_path, "experiment: tiny.neural\n")
    (tmp_path / "text.txt").write_text(
        "The sea is cold. Das Brot für später.\n" * 9, encoding="utf-8"
    )
    (tmp_path / "wrong.neural").write_text("network A { input: (5,) → }\n", encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=False,
    )
    # click takes an ASCII console for a wrongly configured one, and writes UTF-8
    written = "utf-8" if encoding == "ascii" else encoding
    output, errors = process.stdout.decode(written), process.stderr.decode(written)
    assert process.returncode == 0, errors
    arrow = "→" if encoding == "ascii" else "->"
    assert f"(B, 5, 6) {arrow} (B, 3)" in output
    assert "\\u2" not in output + errors, "a symbol has no replacement"
