"""The board as one ASGI application.

    GET  /                              the page; what it shows is in the address behind the #
    GET  /bundle/neural.js, neural.css  what draws it
    GET  /api/runs                      all runs, a line each
    GET  /api/runs/NAME?after=N         one run, of what came past step N
    GET  /api/runs/NAME/maps/STEP       the attention maps of one step, as bytes
    GET  /api/runs/NAME/findings        what the analyses say about it
    GET  /api/events?run=NAME&after=N   what is new, as it comes
    POST /api/write, /api/cut           a text from a network, line by line; where a text is to be cut
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.views.board.answers import as_json, in_a_line
from neural.views.board.asked import Asked, Cut, Desk, ToCut, ToWrite, Write, complaint
from neural.views.board.guard import Door, Guard
from neural.views.board.listing import Listing
from neural.views.board.live import Live
from neural.views.board.news import Describe, Judge, findings
from neural.views.board.source import NoSuchRun, Opened, Shelf
from neural.views.report_data import step_maps
from neural.views.report_page import BUNDLE, board_page

MOST_LISTENERS = 200
MOST_RUNS = 16
"""That one page can follow."""
KINDS = {"neural.js": "text/javascript", "neural.css": "text/css"}
LINES = "application/x-ndjson"
Kind = TypeVar("Kind", bound=Asked)


@dataclass(frozen=True)
class Lent:
    """What the board needs from files that it must not import."""

    describe: Describe
    """A run as JSON, of what came past a step."""
    judge: Judge
    """Its findings as JSON."""
    write: Write
    cut: Cut


class Board:
    """The answers."""

    def __init__(self, root: Path, lent: Lent) -> None:
        self.lent, self.listing = lent, Listing(root)
        self.shelf = Shelf(self.listing)
        self.live = Live(self.listing, self.shelf, lent.describe, lent.judge)
        self.desk = Desk()

    async def page(self, request: Request) -> Response:
        """The same for every view."""
        return HTMLResponse(board_page(f"{self.listing.root.name or 'runs'} · neural board"))

    async def bundle(self, request: Request) -> Response:
        """One of two files."""
        name = request.path_params["name"]
        if name not in KINDS:
            raise HTTPException(404, "the page has no such file")
        data = await asyncio.to_thread((BUNDLE / name).read_bytes)
        return Response(data, media_type=KINDS[name], headers={"cache-control": "no-cache"})

    async def runs(self, request: Request) -> Response:
        """All of them."""
        found = await asyncio.to_thread(self.listing.briefs)
        return _json({"title": self.listing.root.name, "kind": "board", "runs": found, "groups": []})

    async def run(self, request: Request) -> Response:
        """One."""
        after = _number(request.query_params.get("after", "-1"))
        return await self._of_run(request, ("run", after), partial(self._told, request.path_params["run"], after))

    def _told(self, name: str, after: int, run: Run) -> bytes:
        return as_json({**self.lent.describe(run, after), "id": name})

    async def maps(self, request: Request) -> Response:
        """As they are kept; the browser takes them apart."""
        step = request.path_params["step"]

        def packed(run: Run) -> bytes:
            if step not in run.map_steps():
                raise NoSuchRun(f"there are no maps of step {step}")
            return step_maps(run, step)

        return await self._of_run(request, ("maps", step), packed, "application/octet-stream")

    async def findings(self, request: Request) -> Response:
        """Warnings and claims."""
        return await self._of(request, lambda opened: findings(opened, self.lent.judge), self.live.slow)

    async def events(self, request: Request) -> Response:
        """For as long as somebody listens."""
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        after = _number(request.query_params.get("after", "-1"))
        if self.live.listeners >= MOST_LISTENERS or len(names) > MOST_RUNS:
            raise HTTPException(503, "too many are listening")
        for name in names:
            await asyncio.to_thread(self.shelf.__getitem__, name)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.live.listen(names, after), media_type="text/event-stream", headers=headers)

    async def write(self, request: Request) -> Response:
        """Character by character, with what each looked at."""
        asked = await _read(request, ToWrite)
        opened = await asyncio.to_thread(self.shelf.__getitem__, asked.run)
        work = self.desk.lines(partial(self.lent.write, opened.path, asked))
        return StreamingResponse(work, media_type=LINES)

    async def cut(self, request: Request) -> Response:
        """One line."""
        asked = await _read(request, ToCut)
        opened = None if asked.run is None else await asyncio.to_thread(self.shelf.__getitem__, asked.run)
        path = None if opened is None else opened.path
        work = self.desk.lines(lambda: map(self.lent.cut, [path], [asked]))   # computed when it is asked for
        return StreamingResponse(work, media_type=LINES)

    async def _of_run(
        self, request: Request, key: tuple[Any, ...], make: Callable[[Run], bytes], kind: str = "application/json"
    ) -> Response:
        return await self._of(request, lambda opened: opened.answer(key, make), kind=kind)

    async def _of(
        self, request: Request, ask: Callable[[Opened], bytes], threads: Executor | None = None,
        kind: str = "application/json",
    ) -> Response:  # fmt: skip
        def answer() -> bytes:
            opened = self.shelf[request.path_params["run"]]
            try:
                return ask(opened)
            except RunError:
                raise
            except Exception as wrong:   # anything may be in a folder that somebody else made
                raise RunError(in_a_line(wrong)) from wrong

        return Response(await asyncio.get_running_loop().run_in_executor(threads, answer), media_type=kind)


def application(root: Path, door: Door, lent: Lent) -> ASGIApp:
    """The board of the runs in a folder."""
    board = Board(root, lent)
    run = "/api/runs/{run:path}"
    app = Starlette(
        routes=[
            Route("/", board.page),
            Route("/bundle/{name}", board.bundle),
            Route("/api/runs", board.runs),
            Route(run + "/maps/{step:int}", board.maps),
            Route(run + "/findings", board.findings),
            Route(run, board.run),
            Route("/api/events", board.events),
            Route("/api/write", board.write, methods=["POST"]),
            Route("/api/cut", board.cut, methods=["POST"]),
        ],
        exception_handlers={
            NoSuchRun: _told(404), RunError: _told(422), ClientDisconnect: _told(413), HTTPException: _http,
        },
    )  # fmt: skip
    return Guard(app, door)   # around everything, so that no answer goes out without its headers


async def _read(request: Request, kind: type[Kind]) -> Kind:
    """What was sent, checked."""
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as wrong:
        raise HTTPException(422, complaint(wrong)) from None


def _number(text: str) -> int:
    """A step; -1 is before the first."""
    if len(text) > 12 or not text.removeprefix("-").isascii() or not text.removeprefix("-").isdecimal():
        raise HTTPException(400, "`after` is a step: a whole number")
    return max(-1, int(text))


def _told(code: int) -> Callable[[Request, Exception], Response]:
    return lambda request, wrong: PlainTextResponse(in_a_line(wrong) + "\n", status_code=code)


def _http(request: Request, wrong: Exception) -> Response:
    assert isinstance(wrong, HTTPException)
    return PlainTextResponse(f"{wrong.detail}\n", status_code=wrong.status_code)


def _json(value: Any) -> Response:
    return Response(as_json(value), media_type="application/json")
