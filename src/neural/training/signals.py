"""Ctrl-C and the like: finish the step, then stop; a second time: stop at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Signals:
    """While this lasts, SIGINT and SIGTERM ask to stop instead of stopping; a second SIGINT stops."""

    def __init__(self) -> None:
        self.asked: str | None = None
        """The signal that asked to stop."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():   # elsewhere python allows no handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        if self.asked is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = signal.Signals(number).name
