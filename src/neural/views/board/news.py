"""What is new: in one run, in what the analyses find there, and among all runs.

A message is the bytes of a server-sent event, made once for all who listen:

    event: runs       data: {"runs": [those that changed], "gone": [names]}
    event: news       data: the run's JSON, of what came since
    event: findings   data: {"run": name, "findings": [all of them]}
    event: broken     data: {"run": name, "message": what is wrong}
    event: again      ask for everything again: rows were taken back, or the listener was too slow
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.views.board.answers import as_json, in_a_line
from neural.views.board.listing import Listing
from neural.views.board.source import Opened, Shelf

Describe = Callable[[Run, int], dict[str, Any]]
Judge = Callable[[Run], list[dict[str, Any]]]


class RunNews:
    """What has come in one run since the last look."""

    def __init__(self, name: str, shelf: Shelf, describe: Describe) -> None:
        self.name, self.shelf, self.describe = name, shelf, describe
        self.opened: Opened | None = None
        self.as_of: tuple[int, int] | None = None
        self.ends: dict[tuple[str, str], int] = {}
        """The last step of every curve and measure."""
        self.events, self.complaint, self.failed = 0, b"", 0

    def look(self) -> list[bytes]:
        """Messages; none where nothing changed."""
        ends, events = dict(self.ends), self.events
        try:
            messages = self._look()
        except Exception as wrong:   # whatever is in the folder, others are looked at
            self.ends, self.events, self.as_of = ends, events, None   # what was not told is told the next time
            before, self.complaint = self.complaint, event("broken", {"run": self.name, "message": in_a_line(wrong)})
            self.failed += 1
            # once may be a writer that was just replacing a file
            return [self.complaint] if self.failed == 2 or (self.failed > 2 and before != self.complaint) else []
        self.failed = 0
        return messages

    def _look(self) -> list[bytes]:
        opened = self.shelf[self.name]
        if opened is not self.opened:   # the first look, or another folder took the name
            first, self.opened, self.as_of = self.opened is None, opened, opened.as_of()
            with opened.lock:
                self._since(opened.run)
            return [] if first else [event("again", {})]
        now = opened.as_of()
        if now == self.as_of:
            return []
        with opened.lock:
            since = self._since(opened.run)
            message = event("again", {}) if since is None else self._news(opened.run, since)
        self.as_of = now
        return [message]

    def _news(self, run: Run, since: int) -> bytes:
        return event("news", {**self.describe(run, since), "id": self.name})

    def _since(self, run: Run) -> int | None:
        """The step past which something is new, so that a score that came late is not missed; None: all is new."""
        before, since = dict(self.ends), max(self.ends.values(), default=-1)
        for kind, names, read in (("s", run.names(), run.scalars), ("m", run.measures(), run.measure)):
            for name in names:
                last = before.get((kind, name), -1)
                steps, _ = read(name, after=last)
                if len(steps):
                    self.ends[kind, name] = int(steps[-1])
                    since = min(since, last)
        happened = run.events()
        taken_back = any(kind == "restart" for _, kind, _, _ in happened[self.events :]) or len(happened) < self.events
        for at, *_ in happened[self.events :]:
            since = min(since, at - 1)
        self.events = len(happened)
        if taken_back:
            self.ends = {}
        return None if taken_back and before else since


class Alarms:
    """What the analyses find in one run, whenever that is another thing than before."""

    def __init__(self, name: str, shelf: Shelf, judge: Judge) -> None:
        self.name, self.shelf, self.judge = name, shelf, judge
        self.told = b""

    def look(self) -> list[bytes]:
        """All findings, or nothing."""
        with suppress(Exception):   # RunNews says what is wrong
            before, self.told = self.told, findings(self.shelf[self.name], self.judge)
            if self.told != before:
                return [event("findings", {"run": self.name, "findings": json.loads(self.told)})]
        return []


def findings(opened: Opened, judge: Judge) -> bytes:
    """What the analyses say, as JSON; found once for all who ask and all who listen."""
    return opened.aside.answer(("findings",), lambda run: as_json(judge(run)))


class ListingNews:
    """What has changed among all runs."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.known: dict[str, dict[str, Any]] | None = None

    def look(self) -> list[bytes]:
        """A message where anything did."""
        with suppress(RunError):   # the folder may come back
            now = {one["id"]: one for one in self.listing.briefs()}
            before, self.known = self.known, now
            if before is not None and now != before:
                changed = [one for name, one in now.items() if before.get(name) != one]
                return [event("runs", {"runs": changed, "gone": [name for name in before if name not in now]})]
        return []


def event(kind: str, data: Any) -> bytes:
    """As a browser's EventSource reads it."""
    return b"event: " + kind.encode() + b"\ndata: " + as_json(data) + b"\n\n"
