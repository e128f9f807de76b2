"""Run the commands of docs/gallery.md and take its pictures again.

    python docs/gallery.py                                 all of it: `make gallery`
    python docs/gallery.py --folder /tmp/gallery           keeps the runs in that folder
    python docs/gallery.py --folder /tmp/gallery --again attention   one picture, commands not repeated

The page is the only list of commands and pictures. A picture shows what the last line "Open `…`"
before it names: a view of an HTML file, a file, or with `#/…` a view of the board. Without such a
line, it is the file of its name that a command wrote.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from neural.report.pdf_export import BROWSER_COMMANDS

DOCS = Path(__file__).parent
PAGE = DOCS / "gallery.md"
FIGURES = DOCS / "figures/gallery"
DEFAULT_SIZE = (1200, 750)
"""Width and height of the browser's window."""
MAX_COLOURS = 256
"""Colours of a screenshot; pages have few, and a palette makes files a third as large."""
SETTLE_MILLISECONDS = 1200
"""Time for a page to draw its charts after it was loaded."""
ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True)
class Command:
    """A line of a console block, without its `$`."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A picture of the page, and the address of what it shows."""

    path: Path
    source: str
    size: tuple[int, int] = DEFAULT_SIZE


def read_steps(text: str) -> Iterator[Command | Picture]:
    """Commands and pictures of a page, in their order."""
    pattern = re.compile(
        r"^\$ (?P<command>.+)$"
        r"|^Open `(?P<source>[^`]+)`(?: \((?P<width>\d+) × (?P<height>\d+)\))?:$"
        r"|^!\[[^\]]*\]\((?P<picture>[^)]+)\)",
        re.M,
    )
    source, size = None, DEFAULT_SIZE
    for match in pattern.finditer(text):
        if match["command"]:
            yield Command(match["command"])
        elif match["source"]:
            source = match["source"]
            size = (int(match["width"]), int(match["height"])) if match["width"] else DEFAULT_SIZE
        else:
            path = DOCS / match["picture"]
            yield Picture(path, source or path.name, size)
            source, size = None, DEFAULT_SIZE


def run_command(command: Command, folder: Path) -> None:
    """Run a command in a folder; its output goes to the terminal."""
    print(f"$ {command.text}", flush=True)
    subprocess.run(expand_program(command), cwd=folder, check=True)


def expand_program(command: Command) -> list[str]:
    """The words of a command; `python` and `neural` are those of this interpreter."""
    program, *arguments = shlex.split(command.text)
    interpreter = {"python": [sys.executable], "neural": [sys.executable, "-m", "neural"]}
    return [*interpreter[program], *arguments]


@contextmanager
def serve_board(command: Command, folder: Path) -> Iterator[str]:
    """Start the board on a free port; yields the address that it prints."""
    arguments = [*expand_program(command), "--no-open", "--port", "0"]
    server = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if address := ADDRESS.search(line):
                yield address[0]
                return
        raise RuntimeError(f"`{command.text}` printed no address")
    finally:
        server.terminate()
        server.wait()


def take_screenshot(browser: Browser, address: str, fragment: str, picture: Picture) -> None:
    """Open an address, then one of its views, and write a PNG with a palette."""
    width, height = picture.size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="light")
    page = context.new_page()
    page.goto(address)
    if fragment:
        # after the redirect of the board, which drops the token from its address
        page.evaluate("fragment => { location.hash = fragment }", fragment)
    page.wait_for_timeout(SETTLE_MILLISECONDS)
    screenshot = Image.open(BytesIO(page.screenshot())).convert("RGB")
    context.close()
    screenshot.quantize(MAX_COLOURS, kmeans=1, dither=Image.Dither.NONE).save(
        picture.path, optimize=True
    )


def take_picture(picture: Picture, folder: Path, browser: Browser, board: str | None) -> None:
    """Write a picture of the page from what the commands left in `folder`."""
    file, separator, fragment = picture.source.partition("#")
    if not file:
        assert board is not None, f"{picture.path.name}: no board runs"
        take_screenshot(browser, board, separator + fragment, picture)
    elif file.endswith(".html"):
        address = (folder / file).resolve().as_uri()
        take_screenshot(browser, address, separator + fragment, picture)
    else:
        shutil.copyfile(folder / file, picture.path)
    print(f"{picture.path.relative_to(DOCS)}  {picture.path.stat().st_size / 1000:.0f} kB")


def make_gallery(folder: Path, only: list[str]) -> None:
    """Run the commands of the page and take its pictures; with `only`, just those pictures."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    executable = next(filter(None, map(shutil.which, BROWSER_COMMANDS)), None)
    if executable is None:
        sys.exit(f"a browser is needed: one of {', '.join(BROWSER_COMMANDS)}")
    if not (folder / "examples").exists():
        shutil.copytree(DOCS.parent / "examples", folder / "examples")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        board_command = None
        for step in read_steps(PAGE.read_text(encoding="utf-8")):
            if isinstance(step, Command):
                if step.text.startswith("neural board"):
                    board_command = step
                elif not only:
                    run_command(step, folder)
            elif not only or step.path.stem in only:
                if step.source.startswith("#") and board_command is not None:
                    with serve_board(board_command, folder) as board:
                        take_picture(step, folder, browser, board)
                else:
                    take_picture(step, folder, browser, None)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where the commands run; temporary by default")
    parser.add_argument("--again", nargs="+", default=[], metavar="PICTURE", help="only these")
    options = parser.parse_args()
    if options.again and options.folder is None:
        parser.error("--again needs the --folder in which the commands ran")
    if options.folder is None:
        with tempfile.TemporaryDirectory() as folder:
            make_gallery(Path(folder), [])
    else:
        options.folder.mkdir(parents=True, exist_ok=True)
        make_gallery(options.folder, options.again)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
