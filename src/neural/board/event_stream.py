"""Event streams: pollers detect changes of runs and send them to all listeners.

A listener is the open event stream of one browser page (server-sent events, see events.py). A run
has one poller for its rows (logged values by step) and one for its findings (results of the
analyses), whatever the number of its listeners. Runs without listeners are not read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from neural.board.events import FindingsWatcher, IndexWatcher, RunWatcher, encode_event
from neural.board.responses import format_error
from neural.board.run_cache import RunCache
from neural.board.run_index import RunIndex
from neural.report.run_report import build_run_data
from neural.runs.run import Run

RUN_POLL_SECONDS = 1.0
"""Time between two polls of a run; a training commits its rows at most once in a second."""
INDEX_POLL_SECONDS = 2.0
"""Time between two polls of the list of runs."""
KEEP_ALIVE_SECONDS = 15.0
"""After this time without a message a listener gets a comment line: proxies keep it open then."""
MAX_QUEUED_MESSAGES = 64
"""Messages that wait for one listener; `Listener.send` drops them if there are more."""
MAX_CPU_SHARE = 0.01
"""Largest share of one core that a poller uses; for slow polls the interval grows."""


class Listener:
    """One open event stream."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes] = asyncio.Queue(MAX_QUEUED_MESSAGES)

    def send(self, message: bytes) -> None:
        """Queue a message without blocking.

        If the queue is full, all its messages are replaced by one `reload` event, after which the
        slow client fetches everything again. So it cannot fill the memory.
        """
        if self.queue.full():
            while not self.queue.empty():
                self.queue.get_nowait()
            message = encode_event("reload", {})
        self.queue.put_nowait(message)


class Poller:
    """Calls `poll` at intervals while it has listeners, and sends each message to all of them."""

    def __init__(
        self,
        poll: Callable[[], Iterable[bytes]],
        interval_seconds: float,
        executor: Executor | None = None,
    ) -> None:
        self.poll, self.interval_seconds, self.executor = poll, interval_seconds, executor
        self.listeners: set[Listener] = set()
        self.task: asyncio.Task[None] | None = None
        self.has_polled = asyncio.Event()
        """Set after the first poll, from which on no change is missed."""

    def add(self, listener: Listener) -> None:
        """Add a listener; the first one starts the polling."""
        self.listeners.add(listener)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._poll_forever())

    def remove(self, listener: Listener) -> None:
        """Remove a listener; without any left, the polling stops."""
        self.listeners.discard(listener)
        if not self.listeners and self.task is not None:
            self.task.cancel()
            self.task = None

    async def _poll_forever(self) -> None:
        while True:
            messages, cpu_seconds = await asyncio.get_running_loop().run_in_executor(
                self.executor, _measure_cpu_time, self.poll
            )
            self.has_polled.set()
            for message in messages:
                for listener in list(self.listeners):
                    listener.send(message)
            await asyncio.sleep(max(self.interval_seconds, cpu_seconds / MAX_CPU_SHARE))


class EventBroadcaster:
    """All pollers of one board."""

    def __init__(self, run_index: RunIndex, run_cache: RunCache) -> None:
        self.run_index, self.run_cache = run_index, run_cache
        self.index_poller = Poller(IndexWatcher(run_index).poll, INDEX_POLL_SECONDS)
        self.run_pollers: dict[str, tuple[Poller, Poller]] = {}
        """By run name: one for its rows, one for its findings."""
        self.analysis_executor = ThreadPoolExecutor(1)
        """One thread for all analyses, so that they never occupy the threads of other requests."""

    async def listen(self, names: Iterable[str], after: int) -> AsyncIterator[bytes]:
        """Stream events of the run index and of these runs.

        The first event of each run has the rows past step `after`: those that the client missed.
        """
        listener, pollers = Listener(), [self.index_poller]
        try:
            for name in names:
                if name not in self.run_pollers:
                    run_watcher = RunWatcher(name, self.run_cache)
                    findings_watcher = FindingsWatcher(name, self.run_cache)
                    self.run_pollers[name] = (
                        Poller(run_watcher.poll, RUN_POLL_SECONDS),
                        Poller(findings_watcher.poll, RUN_POLL_SECONDS, self.analysis_executor),
                    )
                pollers += self.run_pollers[name]
            for poller in pollers:
                poller.add(listener)
            yield b": connected\n\n"
            for name in names:
                # The first poll sends nothing, it only notes the last steps. Rows that are written
                # after the catch-up event and before that poll would be lost.
                await self.run_pollers[name][0].has_polled.wait()
                yield await asyncio.to_thread(self._catch_up_event, name, after)
            while True:
                try:
                    yield await asyncio.wait_for(listener.queue.get(), KEEP_ALIVE_SECONDS)
                except TimeoutError:
                    yield b": keep-alive\n\n"
        finally:
            for poller in pollers:
                poller.remove(listener)
            self.run_pollers = {
                name: pair for name, pair in self.run_pollers.items() if pair[0].listeners
            }

    def _catch_up_event(self, name: str, after: int) -> bytes:
        """First event of a run for a new listener: its rows past step `after`, or its error."""

        def encode_update(run: Run) -> bytes:
            return encode_event("update", {**build_run_data(run, after_step=after), "id": name})

        try:
            return self.run_cache[name].cached_response(("catch up", after), encode_update)
        except Exception as error:
            return encode_event("run_error", {"run": name, "message": format_error(error)})


def _measure_cpu_time(poll: Callable[[], Any]) -> tuple[Any, float]:
    """The result of `poll` and the CPU seconds that it took."""
    start = time.thread_time()
    return poll(), time.thread_time() - start
