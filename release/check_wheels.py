"""Check the contents of wheels before they are published.

    python -m release.check_wheels dist/*.whl

A wheel must have its type marker (py.typed), its licence, its bill of materials, the pages and the
trained weights; the native library exactly if it is for one system; no sources of the library; and
no more than 8 MB. Exit code 1 if a wheel has not.
"""

from __future__ import annotations

import fnmatch
import re
import sys
from pathlib import Path
from zipfile import ZipFile

MAX_BYTES = 8_000_000
REQUIRED_FILES = (
    "neural/py.typed",
    "neural/report/bundle/NOTICE.txt",
    "neural/report/bundle/neural.css",
    "neural/report/bundle/neural.js",
    "neural/report/bundle/widget.js",
    "neural/tasks/segmentation/shipped/segmenter.json",
    "neural/tasks/segmentation/shipped/segmenter.safetensors",
    "neural/tasks/segmentation/shipped/word_vectors.safetensors",
    "neural_lab-*.dist-info/licenses/LICENSE",
    "neural_lab-*.dist-info/sboms/neural-lab.cdx.json",
)
UNWANTED_FILE = re.compile(r".*\.(cpp|h|pyc)|neural/native/cmake/.*")
NATIVE_LIBRARY = re.compile(r"neural/native/libneural_kernels\.(so|dylib|dll)")


def find_problems(wheel: Path) -> list[str]:
    """What is wrong with a wheel, one line each."""
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    problems = [
        f"no file {pattern}" for pattern in REQUIRED_FILES if not fnmatch.filter(names, pattern)
    ]
    problems += [f"unwanted file {name}" for name in names if UNWANTED_FILE.fullmatch(name)]
    has_library = any(NATIVE_LIBRARY.fullmatch(name) for name in names)
    is_for_any_system = wheel.name.endswith("-none-any.whl")
    if has_library == is_for_any_system:
        problems.append("has the native library" if has_library else "has no native library")
    if wheel.stat().st_size > MAX_BYTES:
        problems.append(f"{wheel.stat().st_size:,} bytes, more than {MAX_BYTES:,}")
    return problems


def main() -> int:
    """Print the problems of every wheel; the exit code is 1 if there are any."""
    wheels = [Path(argument) for argument in sys.argv[1:]]
    if not wheels:
        print(__doc__, file=sys.stderr)
        return 2
    has_problems = False
    for wheel in wheels:
        if not wheel.is_file():
            print(f"error: there is no file {wheel}", file=sys.stderr)
            return 2
        problems = find_problems(wheel)
        has_problems |= bool(problems)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {len(problems)} problems")
        for problem in problems:
            print(f"error: {wheel.name}: {problem}", file=sys.stderr)
    return int(has_problems)


if __name__ == "__main__":
    sys.exit(main())
