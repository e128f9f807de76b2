"""Test of the wheel: installed in a clean environment, used from another folder, without network.

    python tests/wheel.py [--keep FOLDER]

Builds the wheel, installs it with its own requirements only (versions of constraints.txt), and runs
the commands of a first session, on a PATH without a compiler. The checkout is not importable there,
so files that are missing in the wheel are noticed. Then the package is built again without a
compiler: it works with plain torch. Prints the time and the size of the installation.
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
TEXT = (
    "Cats purr. Cats sleep all day. A cat hunts mice. Cats like milk. "
    "Stars burn hydrogen. A star is a ball of gas. The sun is a star. Stars live for ages."
)
COMMANDS = (
    ["--version"],
    ["--help"],
    ["doctor"],
    ["check", "net.neural"],
    ["fmt", "--check", "net.neural"],
    ["layers"],
    ["explain", "E0203"],
    ["compile", "net.neural"],
    ["train", "net.neural", "--quiet"],
    ["runs"],
    ["show"],
    ["analyze"],
    ["report"],
    ["segment", "text.txt"],
    ["debug", "net.neural"],
)
COMMANDS_BY_EXTRA = {
    "board": ["board", "--no-open"],
    "lsp": ["lsp"],
    "export": ["export", "--to", "onnx"],
}
"""Commands that need an extra, which is not installed here: each says how to install it."""
NO_NETWORK_PREFIX = ["/usr/bin/unshare", "--net", "--map-root-user"]
"""Starts a process without network, if the system allows it."""


def run(*command: str, **options: object) -> str:
    """Output of a command; if it fails, the script exits with its output."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def run_refused(*command: str, **options: object) -> str:
    """Error message of a command that must exit with code 2."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 2, (command, done)
    return done.stderr


def no_network_prefix() -> list[str]:
    """Prefix of commands that run without network; empty if that is not possible."""
    if not Path(NO_NETWORK_PREFIX[0]).exists():
        return []
    done = subprocess.run([*NO_NETWORK_PREFIX, sys.executable, "-c", ""], capture_output=True)
    return [] if done.returncode else NO_NETWORK_PREFIX


def find_line(text: str, word: str) -> str:
    """The first line that contains a word."""
    return next(line for line in text.splitlines() if word in line)


def check_without_compiler(
    folder: Path, python: str, neural: list[str], home: Path, environment: dict[str, str]
) -> None:
    """Build the package without a compiler; it segments and trains with plain torch."""
    plain = folder / "plain"
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(plain)]
    run(*build, str(ROOT), env={**os.environ, "CXX": "/no/compiler"})
    (wheel,) = plain.glob("neural-*-none-any.whl")  # for every platform: it has no library
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", str(wheel))
    kernels = find_line(run(*neural, "doctor", cwd=home, env=environment), "kernels")
    assert "not built" in kernels, kernels
    for arguments in (["segment", "text.txt"], ["train", "net.neural", "--quiet"]):
        run(*neural, *arguments, cwd=home, env=environment)


def main() -> None:
    """Build, install, run the commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="working folder; a temporary folder if not given")
    working_folder = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as temporary:
        folder = (working_folder or Path(temporary)).absolute()
        started = time.monotonic()
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        run(*build, "--wheel-dir", str(folder), str(ROOT))
        (wheel,) = folder.glob("neural-*.whl")
        venv.create(folder / "venv", with_pip=True)
        python = str(folder / "venv" / "bin" / "python")
        constraints = str(ROOT / "constraints.txt")
        run(python, "-m", "pip", "install", "--quiet", "-c", constraints, str(wheel))
        install_seconds = time.monotonic() - started

        home = folder / "home"
        home.mkdir()
        (home / "net.neural").write_text(PROGRAM)
        (home / "text.txt").write_text(TEXT)
        environment = {"PATH": str(folder / "empty"), "HOME": str(home), "LANG": "C.UTF-8"}
        prefix = no_network_prefix()
        neural = [*prefix, python, "-I", "-m", "neural"]
        for arguments in COMMANDS:
            run(*neural, *arguments, cwd=home, env=environment)
        for extra, arguments in COMMANDS_BY_EXTRA.items():
            message = run_refused(*neural, *arguments, cwd=home, env=environment)
            assert f'pip install "neural[{extra}]"' in message, message
        assert (home / "report.html").stat().st_size > 100_000
        kernels = find_line(run(*neural, "doctor", cwd=home, env=environment), "kernels")
        assert "torch's threads" in kernels, kernels
        check_without_compiler(folder, python, neural, home, environment)
        packages = json.loads(run(python, "-m", "pip", "list", "--format", "json"))
        paths = (folder / "venv").rglob("*")
        files = [path for path in paths if path.is_file() and not path.is_symlink()]
        size = sum(path.stat().st_size for path in files) / 1e6
        network = "without network" if prefix else "(the network could not be disabled)"
        wheel_size = wheel.stat().st_size / 1e6
        print(
            f"wheel of {wheel_size:.1f} MB; {len(packages)} packages, {size:,.0f} MB, "
            f"in {install_seconds:.0f} s; {len(COMMANDS)} commands {network}"
        )


if __name__ == "__main__":
    main()
