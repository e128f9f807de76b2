"""Demo of `make demo`: train a language model, a segmenter and focus models, and write one report.

    python examples/demo/demo.py [--into FOLDER]

Every step is a command that you can type yourself, with its output. Nothing is downloaded: the text
comes with Python, the images come with the package.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

EXAMPLES = Path(__file__).parent
PROGRAM_WITH_ERRORS = """network Oops {
  input: (100, 64)
  layers:
    TransformerEncodr(num_heads=4, d_model=64, dff=256)
    TransformerEncoder(num_heads=7, d_model=64, dff=256)
    Output(10, activation="softmx")
  loss: "sparse_categorical_crossentropy"
}
"""


def list_commands(folder: Path, report: Path) -> Iterator[tuple[str, list[str]]]:
    """The steps of the demo: a title, and the arguments of `neural`."""
    runs = ["--runs", str(folder)]
    yield (
        "A network in a few lines: output shapes and costs of every layer",
        ["check", example_path("characters.neural")],
    )
    yield (
        "A language model learns; a snapshot of its attention every 15 steps",
        ["train", example_path("characters.yaml"), "--samples", "{number: 2, length: 160}", *runs],
    )
    yield "How its heads developed", ["analyze", "characters", *runs]
    yield (
        "Text that it generates now",
        ["generate", "characters", "--prompt", "The statement", "--tokens", "240", *runs],
    )
    yield (
        "A segmenter learns where one subject ends and the next begins",
        ["train", example_path("segmenter.yaml"), *runs],
    )
    yield "Are its probabilities calibrated?", ["calibrate", "segmenter", *runs]
    yield (
        "It segments a page of our documentation",
        ["segment", example_path("../../docs/focus.md"), "--min", "4", "--run", "segmenter", *runs],
    )
    yield (
        "One of ten images decides, and the data do not say which: three losses, five seeds each",
        ["dynamics", example_path("focus.yaml"), *runs],
    )
    yield (
        "All runs on one page",
        [
            *("report", "characters", "segmenter", "focus", "-o", str(report)),
            *("--title", "Attention in three experiments", *runs),
        ],
    )


def example_path(name: str) -> str:
    """Path of an example, relative to the current folder."""
    return os.path.relpath(EXAMPLES / name)


def print_title(text: str) -> None:
    """Print a heading."""
    line = f"\n── {text} " + "─" * max(0, 92 - len(text))
    print(f"\033[1;34m{line}\033[0m\n" if sys.stdout.isatty() else f"{line}\n", flush=True)


def command_name() -> str:
    """What to type for `neural`: its path where it is not on PATH, as after `make demo`."""
    if shutil.which("neural"):
        return "neural"
    return os.path.relpath(Path(sys.executable).with_name("neural"))


def run_command(arguments: list[str]) -> None:
    """Print and run a command; an error ends the demo."""
    quoted = [word if word.isascii() and " " not in word else f'"{word}"' for word in arguments]
    print("$ neural " + " ".join(quoted) + "\n", flush=True)
    process = subprocess.Popen([sys.executable, "-m", "neural", *arguments])
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C reaches the command, too: a training saves a checkpoint and ends
        raise
    if code:
        sys.exit(code)


def run_demo(output: Path, runs: Path) -> None:
    """Check a program with errors, then run all commands."""
    started = time.monotonic()
    print_title("A program with three errors: all are found before anything is built")
    check = [sys.executable, "-m", "neural", "check", "-"]
    subprocess.run(check, input=PROGRAM_WITH_ERRORS, text=True)
    report = output / "report.html"
    for text, arguments in list_commands(runs, report):
        print_title(text)
        run_command(arguments)
    print_title(f"{time.monotonic() - started:.0f} seconds")
    neural = command_name()
    print(
        f"Open {report} in a browser: `Attention` has a slider over all steps.\n"
        f"The same pages live, and more:   {neural} board {runs}\n"
        f"Next: {neural} layers · {neural} explain E0203 · {neural} new my_lab"
    )


def main() -> None:
    """Run the demo; Ctrl-C ends it with exit code 130."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--into", type=Path, default=Path("demo"), help="output folder (default: demo)"
    )
    output: Path = parser.parse_args().into
    runs = output / time.strftime("%Y-%m-%d_%H-%M-%S")  # a second demo gets its own folder
    try:
        run_demo(output, runs)
    except KeyboardInterrupt:
        has_runs = f"; the runs so far are in {runs}" if runs.exists() else ""
        print(f"\nThe demo was stopped{has_runs}.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
