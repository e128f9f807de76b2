"""The kernels' tests under AddressSanitizer and UndefinedBehaviorSanitizer.

    python tests/native/sanitize.py [PYTEST ARGUMENTS]

Builds the native library with both sanitizers, in build/sanitize, and runs the tests that call
kernels with it. A read or write outside an array, a misaligned access or an overflow of an integer
ends the process with a report. Leaks are not looked for: Python itself frees little at its end.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "sanitize"
TESTS = (
    "tests/native",
    "tests/nn/kernels",
    "tests/nn/attention",
    "tests/nn/test_compiled_decoder.py",
    "tests/capture/test_statistics.py",
    "tests/contract/test_measures.py",
    "tests/tasks/segmentation",
)
"""Tests that call kernels."""
SKIPPED_WORDS = (
    "not environment and not library and not one_thread and not openmp and not compile "
    "and not command and not process and not megabytes and not memory"
)
"""Leaves out tests that start other processes, compile, or measure memory."""


def find_runtimes() -> str:
    """AddressSanitizer's library and that of C++, whose exceptions it has to know from the start."""
    compiler = os.environ.get("CXX", "c++")
    paths = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so.6")
    ]
    return " ".join(paths)


def main() -> None:
    """Build, run, and exit with pytest's code."""
    source = ROOT / "src" / "neural" / "native" / "cmake"
    configure = ["cmake", "-S", str(source), "-B", str(BUILD), "-DSANITIZE=ON"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(BUILD), "--parallel", "2"], check=True)
    environment = {
        **os.environ,
        "NEURAL_NATIVE_LIBRARY": str(BUILD / "libneural_kernels.so"),
        "LD_PRELOAD": find_runtimes(),
        # torch and Python have findings of their own; only errors in memory are ours to judge
        "ASAN_OPTIONS": "detect_leaks=0:detect_odr_violation=0:abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "OMP_NUM_THREADS": "2",
        "PYTHONMALLOC": "malloc",
    }
    arguments = sys.argv[1:] or [*TESTS, "-k", SKIPPED_WORDS]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
    sys.exit(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
