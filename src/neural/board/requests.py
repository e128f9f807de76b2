"""Requests to generate or segment text, and the lock that runs one such job at a time.

Both need torch and much computing time, so a second request is refused while one runs. A job yields
its results as dictionaries, which are sent as JSON lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from neural.board.responses import encode_json, format_error

BUSY_MESSAGE = "the board is busy with another text; try again in a moment"
END_OF_STREAM = object()
"""Returned by `_next_result` after the last result."""


class BoardRequest(BaseModel):
    """Base class of request bodies; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class GenerateRequest(BoardRequest):
    """Generate text after a prompt with the network of a run."""

    run: str
    """Name of the run."""
    prompt: str = Field(min_length=1, max_length=10_000)
    tokens: int = Field(100, ge=1, le=1_000)
    temperature: float = Field(0.8, ge=0, le=100)
    top_k: int | None = Field(None, ge=1, le=1_000_000)
    seed: int = Field(0, ge=0, le=2**31)


class SegmentRequest(BoardRequest):
    """Segment a text with the network of a run; without a run, with the shipped network.

    `min_elements` and `max_elements` limit the length of a segment (elements are sentences, for
    example). `threshold` is the probability from which an element begins a segment. None means the
    default of the network.
    """

    run: str | None = None
    """Name of the run."""
    text: str = Field(min_length=1, max_length=500_000)
    min_elements: int | None = Field(None, ge=1, le=10_000)
    max_elements: int | None = Field(None, ge=1, le=1_000_000)
    threshold: float | None = Field(None, gt=0, lt=1)


class JobLock:
    """Runs one job at a time."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def stream_lines(
        self, start_job: Callable[[], Iterator[dict[str, Any]]]
    ) -> AsyncIterator[bytes]:
        """Run a job in threads and stream its results as JSON lines.

        An exception of the job becomes the last line: `{"error": message}`.
        """
        if self._lock.locked():
            yield encode_json({"error": BUSY_MESSAGE}) + b"\n"
            return
        await self._lock.acquire()
        step: asyncio.Future[Any] | None = None
        try:
            results = start_job()
            while True:
                step = asyncio.ensure_future(asyncio.to_thread(_next_result, results))
                result = await asyncio.shield(step)
                if result is END_OF_STREAM:
                    break
                yield encode_json(result) + b"\n"
        finally:
            # If the page is closed, so is this generator. A thread cannot be ended from outside:
            # the next job waits for it.
            if step is None or step.done():
                self._lock.release()
            else:
                step.add_done_callback(lambda _: self._lock.release())


def format_validation_error(error: ValidationError) -> str:
    """Every invalid key of a request with its reason."""
    reasons = "; ".join(
        f"{'.'.join(map(str, detail['loc'])) or 'body'}: {detail['msg'].lower()}"
        for detail in error.errors()
    )
    return f"invalid request: {reasons}"


def _next_result(results: Iterator[dict[str, Any]]) -> Any:
    """The next result of a job, an error as a result, or END_OF_STREAM."""
    try:
        return next(results, END_OF_STREAM)
    except Exception as error:  # shown by the page; the board continues
        return {"error": str(error) if isinstance(error, ValueError) else format_error(error)}
