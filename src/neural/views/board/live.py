"""News for everybody who looks: one look at a run serves all, and a run that nobody looks at costs nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from neural.tracking.run import Run
from neural.views.board.answers import in_a_line
from neural.views.board.listing import Listing
from neural.views.board.news import Alarms, Describe, Judge, ListingNews, RunNews, event
from neural.views.board.source import Shelf

PAUSE = 1.0
"""Seconds between two looks; a writer writes once in a second at most."""
LISTING_PAUSE = 2.0
SILENCE = 15.0
"""Seconds after which a listener is told that we are still there."""
BACKLOG = 64
"""Messages that wait for one listener."""
SHARE = 0.01
"""Of one processor, at most, for looking at one thing; what takes longer is looked at more seldom."""


class Listener:
    """One who looks: an open page."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes] = asyncio.Queue(BACKLOG)

    def tell(self, message: bytes) -> None:
        """Never waits: who is too slow begins anew."""
        if self.queue.full():
            while not self.queue.empty():
                self.queue.get_nowait()
            message = event("again", {})
        self.queue.put_nowait(message)


class Subject:
    """Something that is looked at again and again as long as anybody listens."""

    def __init__(
        self, look: Callable[[], Iterable[bytes]], pause: float, threads: Executor | None = None
    ) -> None:
        self.look, self.pause, self.threads = look, pause, threads
        self.listeners: set[Listener] = set()
        self.task: asyncio.Task[None] | None = None

    def add(self, listener: Listener) -> None:
        """The first one starts it."""
        self.listeners.add(listener)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._watch())

    def remove(self, listener: Listener) -> None:
        """The last one ends it."""
        self.listeners.discard(listener)
        if not self.listeners and self.task is not None:
            self.task.cancel()
            self.task = None

    async def _watch(self) -> None:
        while True:
            messages, cost = await asyncio.get_running_loop().run_in_executor(self.threads, _with_cost, self.look)
            for message in messages:
                for listener in list(self.listeners):
                    listener.tell(message)
            await asyncio.sleep(max(self.pause, cost / SHARE))


class Live:
    """All subjects of one board."""

    def __init__(self, listing: Listing, shelf: Shelf, describe: Describe, judge: Judge) -> None:
        self.listing, self.shelf, self.describe, self.judge = listing, shelf, describe, judge
        self.all = Subject(ListingNews(listing).look, LISTING_PAUSE)
        self.runs: dict[str, tuple[Subject, Subject]] = {}
        self.listeners = 0
        self.slow = ThreadPoolExecutor(1)
        """For analyses: one at a time, so that threads are left for those who want to see something."""

    async def listen(self, names: Iterable[str], after: int) -> AsyncIterator[bytes]:
        """Messages about all runs, and about these in full; first what came past `after` while nobody listened."""
        listener, subjects = Listener(), [self.all]
        self.listeners += 1
        try:
            for name in names:
                if name not in self.runs:
                    news, alarms = RunNews(name, self.shelf, self.describe), Alarms(name, self.shelf, self.judge)
                    self.runs[name] = Subject(news.look, PAUSE), Subject(alarms.look, PAUSE, self.slow)
                subjects += self.runs[name]
            for subject in subjects:
                subject.add(listener)
            yield b": here\n\n"
            for name in names:
                yield await asyncio.to_thread(self._missed, name, after)
            while True:
                try:
                    yield await asyncio.wait_for(listener.queue.get(), SILENCE)
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self.listeners -= 1
            for subject in subjects:
                subject.remove(listener)
            self.runs = {name: both for name, both in self.runs.items() if both[0].listeners}

    def _missed(self, name: str, after: int) -> bytes:
        try:
            def news(run: Run) -> bytes:
                return event("news", {**self.describe(run, after), "id": name})

            return self.shelf[name].answer(("missed", after), news)
        except Exception as wrong:
            return event("broken", {"run": name, "message": in_a_line(wrong)})


def _with_cost(look: Callable[[], Any]) -> tuple[Any, float]:
    """What is seen, and the seconds of a processor that it took."""
    begun = time.thread_time()
    return look(), time.thread_time() - begun
