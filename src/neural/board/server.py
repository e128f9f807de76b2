"""HTTP server of the board, with limits for connections that have not shown a token.

A request head has at most MAX_HEAD_BYTES (h11 counts them; httptools has no limit) and must be
complete within HEAD_SECONDS. Of too many connections the oldest one that waits is closed, so that
silent ones cannot keep the owner out.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_HEAD_BYTES = 1 << 16
"""Longest request line and headers; longer ones get status 400."""
HEAD_SECONDS = 10.0
"""Time for the head of a request, from the connection or its first byte."""
MAX_CONNECTIONS = 400
"""Connections of the whole board."""


class BoardProtocol(H11Protocol):
    """One connection."""

    opened = 0.0
    """When it was opened, by the monotonic clock."""
    head_timer: asyncio.TimerHandle | None = None
    """Closes the connection; None while a request is answered or none has begun."""

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """Accept a connection; close the oldest that waits if there are too many."""
        super().connection_made(transport)
        self.opened = time.monotonic()
        self._limit_head()
        # a closed one stays in the set until the event loop's next round
        open_ones = [each for each in self.connections if not each.transport.is_closing()]  # type: ignore[union-attr]
        if len(open_ones) > MAX_CONNECTIONS:
            waiting = [each for each in open_ones if each.is_waiting]  # type: ignore[union-attr]
            # this one is among them
            min(waiting, key=lambda each: each.opened).transport.abort()  # type: ignore[union-attr]

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        if self.head_timer is not None:
            self.head_timer.cancel()

    def _limit_head(self) -> None:
        """Start the timer of a head that is not complete; stop that of a complete one."""
        if not self.is_waiting:
            if self.head_timer is not None:
                self.head_timer.cancel()
            self.head_timer = None
        elif self.head_timer is None:
            self.head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)


def create_server_config(app: ASGIApp) -> uvicorn.Config:
    """Settings of uvicorn for the board."""
    return uvicorn.Config(
        app,
        http=BoardProtocol,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,
        proxy_headers=False,
        ws="none",
    )
