"""The package as users get it: a wheel in a clean environment, used from another folder, with no network.

    python tests/wheel.py [--keep FOLDER]

Builds the wheel, installs it with its own requirements alone (versions of constraints.txt), and types what a newcomer
would type. The checkout is not importable there: what the wheel lacks is missed. Prints how long it took and how much
was installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = """network Digits {
  input: (8, 8)
  layers:
    TransformerEncoder(num_heads=2, d_model=8, dff=16)
    GlobalAveragePooling1D()
    Output(10, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=0.003)
  train {
    steps: 20
    batch_size: 16
    data: "digits"
  }
}
"""
TEXT = "Cats purr. Cats sleep all day. A cat hunts mice. Cats like milk. " \
       "Stars burn hydrogen. A star is a ball of gas. The sun is a star. Stars live for ages."  # fmt: skip
TYPED = (
    ["--version"], ["--help"], ["doctor"], ["check", "net.neural"], ["fmt", "--check", "net.neural"], ["layers"],
    ["explain", "E0203"], ["compile", "net.neural"], ["train", "net.neural", "--quiet"], ["runs"], ["show"],
    ["analyze"], ["report"], ["segment", "text.txt"], ["debug", "net.neural"],
)  # fmt: skip
WANTING = {"board": ["board", "--no-open"], "lsp": ["lsp"], "export": ["export", "--to", "onnx"]}
"""By the extra that is not installed there: each says how to get it."""
OFF = ["unshare", "--net", "--map-root-user"]
"""A process with no network at all, where the system allows it."""


def run(*command: str, **how: object) -> str:
    """What it printed; ends with its error where there was one."""
    done = subprocess.run(command, capture_output=True, text=True, **how)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def refused(*command: str, **how: object) -> str:
    """Its message, where it says no by exit code 2."""
    done = subprocess.run(command, capture_output=True, text=True, **how)
    assert done.returncode == 2, (command, done)
    return done.stderr


def without_network() -> list[str]:
    """How to start a process that has none; empty where it cannot be."""
    works = subprocess.run([*OFF, "true"], capture_output=True).returncode == 0
    return OFF if works else []


def main() -> None:
    """Build, install, type."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="where to work; a folder that is removed if not said")
    kept = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as passing:
        folder = (kept or Path(passing)).absolute()
        started = time.monotonic()
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
        (wheel,) = folder.glob("neural-*.whl")
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        run(str(python), "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), str(wheel))
        installed = time.monotonic() - started

        home = folder / "home"
        home.mkdir()
        (home / "net.neural").write_text(PROGRAM)
        (home / "text.txt").write_text(TEXT)
        clean = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        off = without_network()
        for words in TYPED:
            run(*off, str(python), "-I", "-m", "neural", *words, cwd=home, env=clean)
        for extra, words in WANTING.items():
            said = refused(*off, str(python), "-I", "-m", "neural", *words, cwd=home, env=clean)
            assert f'pip install "neural[{extra}]"' in said, said
        assert (home / "report.html").stat().st_size > 100_000
        packages = json.loads(run(str(python), "-m", "pip", "list", "--format", "json"))
        files = [one for one in (folder / "venv").rglob("*") if one.is_file() and not one.is_symlink()]
        size = sum(one.stat().st_size for one in files) / 1e6
        network = "with no network" if off else "(the network could not be taken away)"
        built = wheel.stat().st_size / 1e6
        print(f"wheel of {built:.1f} MB; {len(packages)} packages, {size:,.0f} MB, in {installed:.0f} s; "
              f"{len(TYPED)} commands {network}")  # fmt: skip


if __name__ == "__main__":
    main()
