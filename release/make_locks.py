"""Write the files of release/locks: exact versions with the hashes of all files on the package index.

    make lock

| file | packages | used by |
|---|---|---|
| build.txt | what compiles and packs `neural` | `make dist`, `make wheels`, CI, Dockerfile |
| image.txt | `neural-lab` | Dockerfile |
| tests.txt | everything that `make test` installs | CI |
| integrations.txt | what `make integrations` adds to it | CI |
| tools.txt | tools of a release | `make dist`, `make wheels`, `make lint-release` |

Versions are those of constraints.txt and of the `.in` files here. All files are for every system and
every version of Python, with markers. torch and its requirements on CUDA are left out: CI and the
image use the build for CPUs, which comes from an index of its own. Hashes of the package index here
would make pip prefer the build for CUDA. pip installs a file with `--no-deps --require-hashes`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "release" / "locks"
SOURCES = {
    "build": "release/locks/build.in",
    "image": "pyproject.toml",
    "tests": "pyproject.toml release/locks/build.in --extra dev",
    "integrations": "pyproject.toml --extra haystack --extra langchain --extra llama-index",
    "tools": "release/locks/tools.in release/locks/build.in",
}
"""Arguments of uv for each file."""


def compile_lock(arguments: list[str]) -> dict[str, str]:
    """Requirement lines with their hashes, by name and marker: `numpy==2.3.0 ; marker`."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
    command += ["--config-file", "release/locks/uv.toml", "--python-version", "3.11"]
    command += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-package", "torch"]
    command += ["--constraint", "constraints.txt", *arguments]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    blocks = re.split(r"\n(?=\S)", output.strip())
    return {block.split(" \\")[0]: block for block in blocks}


def main() -> None:
    locks = {name: compile_lock(arguments.split()) for name, arguments in SOURCES.items()}
    for line in locks["integrations"].keys() & locks["tests"].keys():
        del locks["integrations"][line]
    for name, lock in locks.items():
        lines = ["# made by `make lock`", *lock.values(), ""]
        (LOCKS / f"{name}.txt").write_text("\n".join(lines), "utf-8")
        print(f"{LOCKS / name}.txt: {len(lock)} packages")


if __name__ == "__main__":
    main()
