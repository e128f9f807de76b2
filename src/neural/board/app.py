"""The board, a local web page that shows the runs of a folder, as one ASGI application.

A run is the folder of one training; its rows are logged scalars and attention measures by step. A
finding is a result of the analyses in neural/findings.

GET  /                              the page; the view is in the URL fragment
GET  /bundle/neural.js, neural.css  script and style sheet of the page
GET  /api/runs                      summaries of all runs
GET  /api/runs/NAME?after=N         one run; rows past step N only
GET  /api/runs/NAME/maps/STEP       attention maps of one step, as bytes
GET  /api/runs/NAME/findings        findings of the analyses
GET  /api/events?run=NAME&after=N   changes, as server-sent events
POST /api/generate                  generated text, one JSON line per token
POST /api/segment                   segment boundaries of a text, as one JSON line
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from neural.board.event_stream import EventBroadcaster
from neural.board.events import encode_findings
from neural.board.inference import handle_generate, handle_segment
from neural.board.rate_limit import TokenBucket
from neural.board.requests import (
    BoardRequest,
    GenerateRequest,
    JobLock,
    SegmentRequest,
    format_validation_error,
)
from neural.board.responses import encode_json, format_error
from neural.board.run_cache import OpenRun, RunCache, RunNotFoundError
from neural.board.run_index import RunIndex
from neural.board.security import SecurityMiddleware, ServerConfig
from neural.report.html_page import BUNDLE_DIR, render_board_page
from neural.report.page_data import load_step_maps
from neural.report.run_report import build_run_data
from neural.runs.errors import RunError
from neural.runs.run import Run

MAX_LISTENERS = 200
"""Open event streams of the whole board; further requests get status 503."""
MAX_RUNS_PER_LISTENER = 16
"""Runs that one event stream can follow; requests for more get status 503."""
MAX_JOBS, JOBS_PER_SECOND = 20, 1 / 3
"""Texts to generate or segment at once, and on average; further requests get status 429."""
BUNDLE_MEDIA_TYPES = {"neural.js": "text/javascript", "neural.css": "text/css"}
NDJSON_MEDIA_TYPE = "application/x-ndjson"
RequestType = TypeVar("RequestType", bound=BoardRequest)


class Board:
    """Request handlers of one folder of runs; methods without `_` are routes."""

    def __init__(self, root: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.run_index = RunIndex(root)
        self.run_cache = RunCache(self.run_index)
        self.broadcaster = EventBroadcaster(self.run_index, self.run_cache)
        self.listener_count = 0
        """Open event streams."""
        self.job_lock = JobLock()
        self.job_limit = TokenBucket(MAX_JOBS, JOBS_PER_SECOND, clock=clock)

    async def page(self, request: Request) -> Response:
        """The HTML page. It is the same for every view: views are chosen by the URL fragment."""
        return HTMLResponse(
            render_board_page(f"{self.run_index.root.name or 'runs'} · neural board")
        )

    async def bundle(self, request: Request) -> Response:
        """Script or style sheet of the page."""
        name = request.path_params["name"]
        if name not in BUNDLE_MEDIA_TYPES:
            raise HTTPException(404, "the bundle has no such file")
        data = await asyncio.to_thread((BUNDLE_DIR / name).read_bytes)
        return Response(
            data, media_type=BUNDLE_MEDIA_TYPES[name], headers={"cache-control": "no-cache"}
        )

    async def runs(self, request: Request) -> Response:
        """Summaries of all runs."""
        summaries = await asyncio.to_thread(self.run_index.summarize_runs)
        return _json_response(
            {"title": self.run_index.root.name, "kind": "board", "runs": summaries, "groups": []}
        )

    async def run(self, request: Request) -> Response:
        """One run without its maps; rows past the step `after` only."""
        after = _parse_step(request.query_params.get("after", "-1"))
        return await self._run_response(
            request, ("run", after), partial(_encode_run, request.path_params["run"], after)
        )

    async def maps(self, request: Request) -> Response:
        """Attention maps of one step, as they are stored; the browser decodes them."""
        step = request.path_params["step"]

        def encode_maps(run: Run) -> bytes:
            if step not in run.map_steps():
                raise RunNotFoundError(f"there are no maps of step {step}")
            return load_step_maps(run, step)

        return await self._run_response(
            request, ("maps", step), encode_maps, "application/octet-stream"
        )

    async def findings(self, request: Request) -> Response:
        """Findings of the analyses, computed in the thread that is reserved for analyses."""
        return await self._respond(request, encode_findings, self.broadcaster.analysis_executor)

    async def events(self, request: Request) -> Response:
        """Stream of server-sent events, until the client disconnects."""
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        after = _parse_step(request.query_params.get("after", "-1"))
        if len(names) > MAX_RUNS_PER_LISTENER:
            raise HTTPException(503, "too many listeners")
        for name in names:
            # an unknown run must be status 404, which is impossible once the stream has begun
            await asyncio.to_thread(self.run_cache.__getitem__, name)
        # x-accel-buffering: nginx must not hold events back
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        if request.method == "HEAD":  # a stream without a body would never end
            return Response(media_type="text/event-stream", headers=headers)
        # nothing is awaited between this check and the count
        if self.listener_count >= MAX_LISTENERS:
            raise HTTPException(503, "too many listeners")
        return _EventResponse(self, self.broadcaster.listen(names, after), headers)

    async def generate(self, request: Request) -> Response:
        """Generated text, token by token, with the attention weights of each token."""
        parsed = await _parse_request(request, GenerateRequest)
        opened = await asyncio.to_thread(self.run_cache.__getitem__, parsed.run)
        self._limit_jobs()
        lines = self.job_lock.stream_lines(partial(handle_generate, opened.path, parsed))
        return StreamingResponse(lines, media_type=NDJSON_MEDIA_TYPE)

    async def segment(self, request: Request) -> Response:
        """Segments of a text and boundary probabilities, as one JSON line."""
        parsed = await _parse_request(request, SegmentRequest)
        path = None
        if parsed.run is not None:
            path = (await asyncio.to_thread(self.run_cache.__getitem__, parsed.run)).path
        self._limit_jobs()
        # `map` is lazy: the text is segmented in the job's thread, not here
        lines = self.job_lock.stream_lines(lambda: map(handle_segment, [path], [parsed]))
        return StreamingResponse(lines, media_type=NDJSON_MEDIA_TYPE)

    def _limit_jobs(self) -> None:
        """Status 429 if too many texts were requested in a short time."""
        wait_seconds = self.job_limit.take()
        if wait_seconds:
            raise HTTPException(
                429,
                f"too many texts in a short time; try again in {wait_seconds} s",
                {"retry-after": str(wait_seconds)},
            )

    async def _run_response(
        self,
        request: Request,
        key: tuple[Any, ...],
        encode: Callable[[Run], bytes],
        media_type: str = "application/json",
    ) -> Response:
        """Respond with `encode(run)` of the run in the URL, cached under `key` until it changes."""
        return await self._respond(
            request, lambda opened: opened.cached_response(key, encode), media_type=media_type
        )

    async def _respond(
        self,
        request: Request,
        encode: Callable[[OpenRun], bytes],
        executor: Executor | None = None,
        media_type: str = "application/json",
    ) -> Response:
        """Respond with `encode(open run)` of the run in the URL, in a thread of `executor`."""

        def read_and_encode() -> bytes:
            opened = self.run_cache[request.path_params["run"]]
            try:
                return encode(opened)
            except RunError:
                raise
            except Exception as error:  # a run folder of another program may contain anything
                raise RunError(format_error(error)) from error

        return Response(
            await asyncio.get_running_loop().run_in_executor(executor, read_and_encode),
            media_type=media_type,
        )


class _EventResponse(StreamingResponse):
    """Event stream that is counted from its creation to its end."""

    def __init__(
        self, board: Board, events: AsyncIterator[bytes], headers: Mapping[str, str]
    ) -> None:
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self.board = board
        board.listener_count += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until the client disconnects."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.board.listener_count -= 1


def create_app(
    root: Path, config: ServerConfig, *, clock: Callable[[], float] = time.monotonic
) -> SecurityMiddleware:
    """Create the board of the runs in a folder; `clock` is for its rate limits."""
    board = Board(root, clock=clock)
    run_route = "/api/runs/{run:path}"
    app = Starlette(
        routes=[
            Route("/", board.page),
            Route("/bundle/{name}", board.bundle),
            Route("/api/runs", board.runs),
            Route(run_route + "/maps/{step:int}", board.maps),
            Route(run_route + "/findings", board.findings),
            Route(run_route, board.run),
            Route("/api/events", board.events),
            Route("/api/generate", board.generate, methods=["POST"]),
            Route("/api/segment", board.segment, methods=["POST"]),
        ],
        exception_handlers={
            RunNotFoundError: _error_handler(404),
            RunError: _error_handler(422),
            # SecurityMiddleware disconnects a request whose body is too long
            ClientDisconnect: _error_handler(413),
            HTTPException: _handle_http_exception,
        },
    )
    # outermost, so that error responses have the security headers too
    return SecurityMiddleware(app, config, clock=clock)


def _encode_run(name: str, after: int, run: Run) -> bytes:
    """The run as JSON, with rows past step `after` only; `name` includes its sweep, if any."""
    return encode_json({**build_run_data(run, after_step=after), "id": name})


async def _parse_request(request: Request, request_type: type[RequestType]) -> RequestType:
    """Parse the JSON body; status 422 if it is invalid."""
    try:
        return request_type.model_validate_json(await request.body())
    except ValidationError as error:
        raise HTTPException(422, format_validation_error(error)) from None


def _parse_step(text: str) -> int:
    """Parse the query parameter `after`; -1 is before the first step."""
    digits = text.removeprefix("-")
    # no step has 12 digits, and parsing very long numbers is slow
    if len(text) > 12 or not digits.isascii() or not digits.isdecimal():
        raise HTTPException(400, "`after` must be a step: a whole number")
    return max(-1, int(text))


def _error_handler(status_code: int) -> Callable[[Request, Exception], Response]:
    return lambda request, error: PlainTextResponse(
        format_error(error) + "\n", status_code=status_code
    )


def _handle_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse(
        f"{error.detail}\n", status_code=error.status_code, headers=error.headers
    )


def _json_response(value: Any) -> Response:
    return Response(encode_json(value), media_type="application/json")
