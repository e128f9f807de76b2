"""What a page may ask for beside reading: text from a network, and where a text is to be cut.

Both need torch and much computing, so one is done at a time, and what does it is lent by who starts the board: views
know no training.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from neural.views.board.answers import as_json, in_a_line

BUSY = "the board is busy with another text; try again in a moment"
DONE = object()


class Asked(BaseModel):
    """What a page sends; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ToWrite(Asked):
    """A text to go on from, and how."""

    run: str
    prompt: str = Field(min_length=1, max_length=10_000)
    tokens: int = Field(100, ge=1, le=1_000)
    temperature: float = Field(0.8, ge=0, le=100)
    top_k: int | None = Field(None, ge=1, le=1_000_000)
    seed: int = Field(0, ge=0, le=2**31)


class ToCut(Asked):
    """A text, and the run whose network cuts it; without one, the network that comes with the package."""

    run: str | None = None
    text: str = Field(min_length=1, max_length=500_000)
    least: int | None = Field(None, ge=1, le=10_000)
    most: int | None = Field(None, ge=1, le=1_000_000)
    threshold: float | None = Field(None, gt=0, lt=1)


Write = Callable[[Path, ToWrite], Iterator[dict[str, Any]]]
Cut = Callable[[Path | None, ToCut], dict[str, Any]]


class Desk:
    """Where one thing is done at a time."""

    def __init__(self) -> None:
        self._taken = asyncio.Lock()

    async def lines(self, start: Callable[[], Iterator[dict[str, Any]]]) -> AsyncIterator[bytes]:
        """JSON line by line, as it comes; what goes wrong is the last line."""
        if self._taken.locked():
            yield as_json({"error": BUSY}) + b"\n"
            return
        async with self._taken:   # also let go where the page is closed: no further step is computed then
            work = start()
            while (line := await asyncio.to_thread(_next, work)) is not DONE:
                yield as_json(line) + b"\n"


def complaint(wrong: ValidationError) -> str:
    """What is wrong with what was sent."""
    said = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg'].lower()}" for one in wrong.errors())
    return f"this cannot be done: {said}"


def _next(work: Iterator[dict[str, Any]]) -> Any:
    try:
        return next(work, DONE)
    except Exception as wrong:   # the page shows it; the board goes on
        return {"error": str(wrong) if isinstance(wrong, ValueError) else in_a_line(wrong)}
