"""Open the board in a browser without showing its token to other users of the machine.

A browser is started with the address on its command line, which every user can read (`ps`). So the
address on the command line is that of a file which only this user can read and which leads to the
board. The file is deleted after a minute and when the board ends.
"""

from __future__ import annotations

import html
import os
import shutil
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from neural.core.platform_support import STOP_SIGNALS

REDIRECT_FILE_SECONDS = 60.0
"""Time that a browser has to read the file."""


@contextmanager
def open_browser(url: str) -> Iterator[None]:
    """Open a browser at a URL that contains a secret; on exit, no file with it is left."""
    # mkdtemp creates the folder with mode 0700
    folder = Path(tempfile.mkdtemp(prefix="neural-board-"))
    timer = threading.Timer(REDIRECT_FILE_SECONDS, shutil.rmtree, (folder, True))
    timer.daemon = True
    previous_handlers = _exit_on_signals()
    try:
        path = write_redirect_file(folder, url)
        with suppress(webbrowser.Error):
            webbrowser.open(path.as_uri())
        timer.start()
        yield
    finally:
        timer.cancel()
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _exit_on_signals() -> dict[int, Any]:
    """Let SIGTERM and SIGHUP end the process by SystemExit; returns the previous handlers.

    uvicorn raises its signals again after the shutdown: by default the process would end there,
    without deleting the file.
    """

    def stop(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        return {}  # Python allows signal handlers in the main thread only
    numbers = [number for number in STOP_SIGNALS if number != signal.SIGINT]
    return {number: signal.signal(number, stop) for number in numbers}


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
