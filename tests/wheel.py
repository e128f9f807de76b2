"""Test of sdist and wheel: installed in a clean environment, used from another folder, offline.

    python tests/wheel.py [--python PATH] [--torch VERSION] [--dist FOLDER] [--keep FOLDER]
                          [--demo] [--exports]

Builds the sdist and, from it, the wheel; installs the wheel with its own requirements only (versions
of constraints.txt), and runs the commands of a first session, on a PATH without a compiler. The
checkout is not importable there, so files that are missing in the wheel are noticed. Then the
package is built again without a compiler: it works with plain torch. Prints the time and the size
of the installation.

`--python` is the interpreter that builds and runs the package. `--dist` is a folder with an sdist
and a wheel: nothing is compiled then, because one wheel fits every version of Python. `--torch`
replaces the version of torch in constraints.txt. On Linux, the index has builds of torch with CUDA
for most versions: set TORCH_INDEX=https://download.pytorch.org/whl/cpu to take torch, and torch alone,
from there: a much smaller build.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
    ["compile", "net.neural", "-o", "net.py"],
    ["train", "net.neural", "--quiet"],
    ["runs"],
    ["show"],
    ["analyze"],
    ["ablate"],
    ["evaluate"],
    ["report", "--plots", "plots"],
    ["segment", "text.txt"],
    ["debug", "net.neural"],
)
COMMANDS_BY_EXTRA = {
    "lsp": ["lsp"],
    "export": ["export", "--to", "onnx"],
}
"""Commands that need an extra, which is not installed here: each says how to install it."""
EXPORTS = {"torch": "digits.pt2", "onnx": "digits.onnx", "keras": "digits.keras"}
"""File of every export format whose packages are torch and those of the extra `export`."""
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


@contextmanager
def report_seconds(title: str) -> Iterator[None]:
    """Print what was done, and its duration."""
    started = time.monotonic()
    yield
    print(f"{title}: {time.monotonic() - started:.0f} s", flush=True)


def create_environment(interpreter: str, folder: Path) -> str:
    """Create a virtual environment; returns the path of its interpreter."""
    run(interpreter, "-m", "venv", str(folder))
    return str(folder / "bin" / "python")


def build(interpreter: str, folder: Path) -> Path:
    """Build the sdist, and the wheel from the sdist, with the standard tool; returns their folder."""
    python = create_environment(interpreter, folder / "tools")
    locked = ("--no-deps", "--require-hashes", "--requirement")
    run(python, "-m", "pip", "install", "--quiet", *locked, str(ROOT / "release/locks/tools.txt"))
    run(python, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(ROOT))
    return folder / "dist"


def find_distributions(folder: Path) -> tuple[Path, Path]:
    """Paths of the sdist and of the wheel in a folder that has one of each."""
    (sdist,) = folder.glob("neural_lab-*.tar.gz")
    (wheel,) = folder.glob("neural_lab-*.whl")
    return sdist, wheel


def write_constraints(path: Path, torch_version: str | None) -> None:
    """Copy constraints.txt, with another version of torch if one is given."""
    text = (ROOT / "constraints.txt").read_text()
    if torch_version is not None:
        text, replaced = re.subn(r"(?m)^torch==.*$", f"torch=={torch_version}", text)
        assert replaced == 1, "constraints.txt has no version of torch"
    path.write_text(text)


class Installation:
    """The package in an environment of its own, used from a folder outside the checkout."""

    def __init__(self, interpreter: str, folder: Path, torch_version: str | None) -> None:
        self.environment_folder = folder / "venv"
        self.python = create_environment(interpreter, self.environment_folder)
        self.constraints = folder / "constraints.txt"
        write_constraints(self.constraints, torch_version)
        self.home = folder / "home"
        self.home.mkdir()
        (self.home / "net.neural").write_text(PROGRAM)
        (self.home / "text.txt").write_text(TEXT)
        variables = {"PATH": str(folder / "empty"), "HOME": str(self.home), "LANG": "C.UTF-8"}
        self.options = {"cwd": self.home, "env": variables}
        self.prefix = no_network_prefix()

    def install(self, requirement: str, *options: str) -> None:
        """Install a requirement with the versions of the constraints."""
        pip = [self.python, "-m", "pip", "install", "--quiet", "-c", str(self.constraints)]
        run(*pip, *options, requirement)

    def run_python(self, *arguments: str) -> str:
        """Output of the interpreter, which sees neither the checkout nor the network."""
        return run(*self.prefix, self.python, "-I", *arguments, **self.options)

    def run_neural(self, *arguments: str) -> str:
        """Output of a command of the package."""
        return self.run_python("-m", "neural", *arguments)

    def refuse_neural(self, *arguments: str) -> str:
        """Error message of a command of the package that must exit with code 2."""
        command = [*self.prefix, self.python, "-I", "-m", "neural", *arguments]
        return run_refused(*command, **self.options)

    def describe(self) -> str:
        """Versions, number of packages and size."""
        versions = self.run_python(
            "-c", "import platform, torch; print(platform.python_version(), torch.__version__)"
        ).split()
        packages = json.loads(run(self.python, "-m", "pip", "list", "--format", "json"))
        paths = self.environment_folder.rglob("*")
        files = [path for path in paths if path.is_file() and not path.is_symlink()]
        size = sum(path.stat().st_size for path in files) / 1e6
        python, torch = versions
        return f"Python {python}, torch {torch}: {len(packages)} packages, {size:,.0f} MB"


def check_commands(installation: Installation) -> None:
    """Run the commands of a first session; those of extras say how to install them."""
    for arguments in COMMANDS:
        installation.run_neural(*arguments)
    for extra, arguments in COMMANDS_BY_EXTRA.items():
        message = installation.refuse_neural(*arguments)
        assert f'pip install "neural-lab[{extra}]"' in message, message
    installation.run_python("net.py")  # the compiled network, which needs only torch
    assert (installation.home / "report.html").stat().st_size > 100_000
    kernels = find_line(installation.run_neural("doctor"), "kernels")
    assert "torch's threads" in kernels, kernels


def check_exports(installation: Installation, wheel: Path) -> None:
    """Export the newest run to every format; each file is read back and compared."""
    installation.install(f"{wheel}[export]")
    for form, name in EXPORTS.items():
        result = json.loads(installation.run_neural("export", "--to", form, "-o", name, "--json"))
        size = (installation.home / name).stat().st_size
        assert result["difference"] <= result["allowed"], result
        print(f"  {form}: {size:,} bytes, largest difference {result['difference']:.1g}")


def check_without_compiler(installation: Installation, sdist: Path, folder: Path) -> None:
    """Build the package without a compiler; it segments and trains with plain torch."""
    pip_wheel = [installation.python, "-m", "pip", "wheel", "--no-deps"]
    environment = {**os.environ, "CXX": "/no/compiler"}
    run(*pip_wheel, "--wheel-dir", str(folder / "plain"), str(sdist), env=environment)
    (wheel,) = (folder / "plain").glob("neural_lab-*-none-any.whl")  # no library: any platform
    installation.install(str(wheel), "--no-deps", "--force-reinstall")
    kernels = find_line(installation.run_neural("doctor"), "kernels")
    assert "not built" in kernels, kernels
    for arguments in (["segment", "text.txt"], ["train", "net.neural", "--quiet"]):
        installation.run_neural(*arguments)


def parse_arguments() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter; this one by default")
    parser.add_argument("--torch", metavar="VERSION", help="version of torch")
    parser.add_argument(
        "--dist", type=Path, help="folder with an sdist and a wheel; built if not given"
    )
    parser.add_argument("--demo", action="store_true", help="also run examples/demo/demo.py")
    parser.add_argument("--exports", action="store_true", help="also export to every format")
    parser.add_argument("--keep", type=Path, help="working folder; a temporary folder if not given")
    return parser.parse_args()


def main() -> None:
    """Build, install, run the commands."""
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).absolute()
        dist = arguments.dist
        if dist is None:
            with report_seconds("built"):
                dist = build(arguments.python, folder)
        sdist, wheel = find_distributions(dist.absolute())
        print(
            f"  sdist {sdist.stat().st_size / 1e6:.1f} MB, wheel {wheel.stat().st_size / 1e6:.1f} MB"
        )
        with report_seconds("installed"):
            installation = Installation(arguments.python, folder, arguments.torch)
            if index := os.environ.get("TORCH_INDEX"):
                installation.install("torch", "--no-deps", "--index-url", index)
            installation.install(str(wheel))
        print(f"  {installation.describe()}")
        network = "offline" if installation.prefix else "(the network could not be disabled)"
        with report_seconds(f"{len(COMMANDS)} commands {network}"):
            check_commands(installation)
        if arguments.demo:
            with report_seconds("demo"):
                installation.run_python(str(ROOT / "examples" / "demo" / "demo.py"))
        if arguments.exports:
            with report_seconds("exports"):
                check_exports(installation, wheel)
        with report_seconds("without a compiler"):
            check_without_compiler(installation, sdist, folder)


if __name__ == "__main__":
    main()
