"""Changes of one run, of its findings and of the run index, as server-sent events.

Each watcher is polled and returns the messages since its last poll. A row is a logged scalar or an
attention measure at one step. An event of a run, in contrast to a server-sent event, is something
that happened in training, such as a restart. Findings are results of the analyses. A message is
encoded once for all listeners (open event streams of browsers):

    event: runs       data: {"runs": [summaries that changed], "removed": [names]}
    event: update     data: the run as JSON, with new rows only
    event: findings   data: {"run": name, "findings": [all of them]}
    event: run_error  data: {"run": name, "message": text}
    event: reload     fetch everything again: rows were deleted, or the listener was too slow

`run_error` is not called `error`, because EventSource reports lost connections under that name.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from neural.board.responses import encode_json, format_error
from neural.board.run_cache import OpenRun, RunCache
from neural.board.run_index import RunIndex
from neural.findings.findings import add_figures, analyze_runs
from neural.report.run_report import build_run_data, findings_to_dicts
from neural.runs.errors import RunError
from neural.runs.run import Run


class RunWatcher:
    """Detects new rows, events and states of one run."""

    def __init__(self, name: str, run_cache: RunCache) -> None:
        self.name, self.run_cache = name, run_cache
        self.open_run: OpenRun | None = None
        self.version: tuple[int, ...] | None = None
        """Change counters at the last poll (`OpenRun.read_version`)."""
        self.last_steps: dict[tuple[str, str], int] = {}
        """(kind, name) → last known step; "s" is a scalar, "m" a measure, "maps" has no name."""
        self.event_count = 0
        """Known events of the run."""
        self.error_event = b""
        """The last `run_error` message."""
        self.failure_count = 0
        """Failed polls since the last successful one."""

    def poll(self) -> list[bytes]:
        """Messages since the last poll; empty where nothing changed."""
        last_steps, event_count = dict(self.last_steps), self.event_count
        try:
            messages = self._poll()
        except Exception as error:  # a run folder of another program may contain anything
            # restored, so that the next poll sends what this one could not
            self.last_steps, self.event_count, self.version = last_steps, event_count, None
            previous_event = self.error_event
            self.error_event = encode_event(
                "run_error", {"run": self.name, "message": format_error(error)}
            )
            self.failure_count += 1
            # a single failure is not reported: a file may have been replaced at that moment
            is_confirmed = self.failure_count == 2
            has_changed = self.failure_count > 2 and previous_event != self.error_event
            return [self.error_event] if is_confirmed or has_changed else []
        self.failure_count = 0
        return messages

    def _poll(self) -> list[bytes]:
        """`poll`, without handling of errors."""
        opened = self.run_cache[self.name]
        if opened is not self.open_run:  # the first poll, or the folder was replaced
            is_first = self.open_run is None
            self.open_run, self.version = opened, opened.read_version()
            with opened.lock, opened.run.snapshot():
                self._update_last_steps(opened.run)
            return [] if is_first else [encode_event("reload", {})]
        version = opened.read_version()
        if version == self.version:
            return []
        with opened.lock, opened.run.snapshot():
            since = self._update_last_steps(opened.run)
            message = (
                encode_event("reload", {})
                if since is None
                else self._encode_update(opened.run, since)
            )
        self.version = version
        return [message]

    def _encode_update(self, run: Run, since: int) -> bytes:
        return encode_event("update", {**build_run_data(run, after_step=since), "id": self.name})

    def _update_last_steps(self, run: Run) -> int | None:
        """Update `last_steps` and `event_count`; return the step past which rows are new.

        It is the smallest over all scalars, measures, maps and events, so that a scalar that was
        logged late is not missed. None if rows were deleted.
        """
        previous_steps = dict(self.last_steps)
        since = max(self.last_steps.values(), default=-1)
        for kind, names, read in (
            ("s", run.scalar_names(), run.scalars),
            ("m", run.measure_names(), run.measure),
        ):
            for name in names:
                last_step = previous_steps.get((kind, name), -1)
                steps, _ = read(name, after=last_step)
                if len(steps):
                    self.last_steps[kind, name] = int(steps[-1])
                    since = min(since, last_step)
        # maps are written after the measures of their step, perhaps in another commit
        last_map_step, map_steps = previous_steps.get(("maps", ""), -1), run.map_steps()
        if map_steps and map_steps[-1] > last_map_step:
            self.last_steps["maps", ""] = map_steps[-1]
            since = min(since, last_map_step)
        events = run.events()
        new_events = events[self.event_count :]
        # a resumed run deletes the rows past its checkpoint and writes a `restart` event
        rows_deleted = (
            any(kind == "restart" for _, kind, _, _ in new_events) or len(events) < self.event_count
        )
        for step, *_ in new_events:
            since = min(since, step - 1)
        self.event_count = len(events)
        if rows_deleted:
            self.last_steps = {}  # the next poll reads all rows again
        return None if rows_deleted and previous_steps else since


class FindingsWatcher:
    """Detects changed findings of one run."""

    def __init__(self, name: str, run_cache: RunCache) -> None:
        self.name, self.run_cache = name, run_cache
        self.last_findings = b""

    def poll(self) -> list[bytes]:
        """All findings if any of them changed, else nothing."""
        with suppress(Exception):  # RunWatcher reports errors
            previous = self.last_findings
            self.last_findings = encode_findings(self.run_cache[self.name])
            if self.last_findings != previous:
                return [
                    encode_event(
                        "findings", {"run": self.name, "findings": json.loads(self.last_findings)}
                    )
                ]
        return []


def encode_findings(open_run: OpenRun) -> bytes:
    """Findings of one run as JSON; computed once for all requests and listeners."""
    return open_run.analysis_connection.cached_response(
        ("findings",), lambda run: encode_json(analyze_run(run))
    )


def analyze_run(run: Run) -> list[dict[str, Any]]:
    """Findings about one run alone, as JSON data."""
    return findings_to_dicts(add_figures(analyze_runs([run]), [run]))


class IndexWatcher:
    """Detects new, changed and removed runs."""

    def __init__(self, run_index: RunIndex) -> None:
        self.run_index = run_index
        self.summaries: dict[str, dict[str, Any]] | None = None

    def poll(self) -> list[bytes]:
        """One message if any summary changed."""
        with suppress(RunError):  # the folder may come back
            summaries = {summary["id"]: summary for summary in self.run_index.summarize_runs()}
            previous, self.summaries = self.summaries, summaries
            if previous is not None and summaries != previous:
                changed = [
                    summary for name, summary in summaries.items() if previous.get(name) != summary
                ]
                removed = [name for name in previous if name not in summaries]
                return [encode_event("runs", {"runs": changed, "removed": removed})]
        return []


def encode_event(kind: str, data: Any) -> bytes:
    """Encode a server-sent event, as EventSource reads it."""
    return b"event: " + kind.encode() + b"\ndata: " + encode_json(data) + b"\n\n"
