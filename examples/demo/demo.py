"""What `make demo` shows: a language model, a segmenter and focus models learn, say what happened, and become one page.

    python examples/demo/demo.py [--into FOLDER]

Every step is a command that you could type yourself, and what you see is what it printed. Nothing is downloaded: the
texts are those that every Python carries, the pictures come with scikit-learn.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
MISSPELT = """network Oops {
  input: (100, 64)
  layers:
    TransformerEncodr(num_heads=4, d_model=64, dff=256)
    TransformerEncoder(num_heads=7, d_model=64, dff=256)
    Output(10, activation="softmx")
  loss: "sparse_categorical_crossentropy"
}
"""


def commands(folder: Path, report: Path) -> Iterator[tuple[str, list[str]]]:
    """What is shown, and what is typed for it."""
    runs = ["--runs", str(folder)]
    yield "A network in a few lines: what every layer gives, and what it costs", ["check", file("characters.neural")]
    yield ("It learns to write, letter by letter; every 15 steps its attention is looked at",
           ["train", file("characters.yaml"), "--samples", "{number: 2, length: 160}", *runs])  # fmt: skip
    yield "What became of its heads", ["analyze", "characters", *runs]
    yield ("What it writes now",
           ["generate", "characters", "--prompt", "The statement", "--tokens", "240", *runs])  # fmt: skip
    yield "A segmenter learns where one subject ends and the next begins", ["train", file("segmenter.yaml"), *runs]
    yield "What its probabilities are worth", ["calibrate", "segmenter", *runs]
    yield "It cuts a page of our documentation", ["segment", file("../../docs/focus.md"), "--min", "4",
                                                  "--run", "segmenter", *runs]  # fmt: skip
    yield ("One of ten pictures decides, and nobody says which: three ways to find it, five seeds each",
           ["dynamics", file("focus.yaml"), *runs])  # fmt: skip
    yield "All of it on one page", ["report", "characters", "segmenter", "focus", "-o", str(report), *runs]


def file(name: str) -> str:
    """As a reader in this folder would type it."""
    return os.path.relpath(HERE / name)


def title(text: str) -> None:
    """A heading."""
    line = f"\n── {text} " + "─" * max(0, 92 - len(text))
    print(f"\033[1;34m{line}\033[0m\n" if sys.stdout.isatty() else f"{line}\n", flush=True)


def typed(arguments: list[str]) -> None:
    """Run a command in front of the reader; a mistake ends the demo."""
    print("$ neural " + " ".join(one if one.isascii() and " " not in one else f'"{one}"' for one in arguments) + "\n",
          flush=True)  # fmt: skip
    code = subprocess.call([sys.executable, "-m", "neural", *arguments])
    if code:
        sys.exit(code)


def main() -> None:
    """Mistakes first, then everything that comes with it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=Path("demo"), help="where everything goes (default: demo)")
    into: Path = parser.parse_args().into
    runs = into / time.strftime("%Y-%m-%d_%H-%M-%S")   # so that a second demo has its own
    started = time.monotonic()
    title("A program with three mistakes: all of them are found, before anything is built")
    subprocess.run([sys.executable, "-m", "neural", "check", "-"], input=MISSPELT, text=True)
    report = into / "report.html"
    for text, arguments in commands(runs, report):
        title(text)
        typed(arguments)
    title(f"{time.monotonic() - started:.0f} seconds")
    print(f"Open {report} in a browser: `Attention` has the slider under which the heads find their roles.\n"
          f"The same pages live, and more:   neural board {runs}\n"
          "Next: neural layers · neural explain E0203 · neural new my_lab")  # fmt: skip


if __name__ == "__main__":
    main()
