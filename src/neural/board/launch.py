"""Open the board in a browser without showing its token to other users of the machine.

A browser is started with the address on its command line, which every user can read (`ps`). So the
address on the command line is that of a file which only this user can read and which leads to the
board. The file is deleted after a minute and when the board ends.
"""

from __future__ import annotations

import html
import os
import shutil
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

REDIRECT_FILE_SECONDS = 60.0
"""Time that a browser has to read the file."""


@contextmanager
def open_browser(url: str) -> Iterator[None]:
    """Open a browser at a URL that contains a secret; on exit, no file with it is left."""
    # mkdtemp creates the folder with mode 0700
    folder = Path(tempfile.mkdtemp(prefix="neural-board-"))
    timer = threading.Timer(REDIRECT_FILE_SECONDS, shutil.rmtree, (folder, True))
    timer.daemon = True
    try:
        path = write_redirect_file(folder, url)
        with suppress(webbrowser.Error):
            webbrowser.open(path.as_uri())
        timer.start()
        yield
    finally:
        timer.cancel()
        shutil.rmtree(folder, ignore_errors=True)


def write_redirect_file(folder: Path, url: str) -> Path:
    """Write a page that leads to a URL, readable by its owner only."""
    path = folder / "open.html"
    text = (
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0;url={html.escape(url)}">'
        f'<title>neural board</title><a href="{html.escape(url)}">Open the board</a>\n'
    )
    # the mode is set at creation: there is no moment in which others can open the file
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path
