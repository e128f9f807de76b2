"""The board for half an hour: 200 runs, two trainings that write, 20 clients.

    python benchmarks/soak.py [--minutes 30] [--json] [--quick]

Two trainings share one core; the board and its clients share another one. Blocks of 40 s with
the board and its clients alternate with blocks of 15 s in which the board's process is stopped
(SIGSTOP), so both kinds of blocks have the same noise.

memory     RSS of the board's process after warm-up (a sixth of the time, at most three minutes) and
           every minute from there; the goal is for the largest change from the first value
errors     responses with a wrong status or body, broken connections, errors in event streams
lost rows  scalars, measures, map steps and events that are in the SQLite files of the trainings and
           that a client which followed the run did not receive, or received with another value. Ten
           clients follow: eight by event streams, which they reopen now and then as a page does
           after a lost connection, two by requests with `after`
thinned    rows that the board left out on purpose: a response has at most 500 points of a curve
latency    p50 and p99 by route, from the request to the last byte; of events to the first byte
speed      training steps per second in blocks with the board / in the blocks around them without

Exit code 1 after an error or a lost row, and if a training or the clients end early. Ctrl-C and
SIGTERM end all processes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from board import (
    URL_VARIABLE,
    BoardAddress,
    Training,
    board,
    bootstrap_interval,
    read_cpu_seconds,
    wait_until,
)

from neural.capture.map_encoding import encode_map
from neural.findings.run_summary import MAX_CURVE_POINTS
from neural.runs.run import Run

GOALS = {
    "largest change of memory": 0.05,
    "errors": 0,
    "lost rows": 0,
    "steps per second, with the board / without": 0.97,
}
RUN_COUNT = 200
STREAM_CLIENTS, PAGING_CLIENTS, LIST_CLIENTS, BROWSING_CLIENTS = 8, 2, 4, 4
"""With one client that segments texts and one that generates them: twenty."""
BOARD_SECONDS, PAUSE_SECONDS = 40.0, 15.0
"""Length of a block with the board, and of one without."""
REOPEN_SECONDS = (45.0, 120.0)
"""A client reopens its event stream after a random time in this range."""
LAYERS, HEADS, TOKENS = ["decoder.0.attention", "decoder.1.attention"], 4, 32
TEXT = (
    "Apples ripen in autumn. They are picked by hand. The cellar keeps them until spring.\n\n"
    "A file cuts metal on the forward stroke. Lift it on the way back. Chalk keeps it clean.\n\n"
) * 5
REFUSED_STATUS = 429
"""The board refuses too many texts in a short time; that is no error."""


def write_runs(root: Path, count: int) -> None:
    """Write finished runs with curves, measures and maps."""
    random_state = np.random.default_rng(0)
    for number in range(count):
        settings = {"task": "language_model", "name": f"run-{number}", "training": {"seed": number}}
        run = Run.create(root, f"run-{number}", settings=settings, program=None, environment={})
        run.set_metadata("attention/layers", LAYERS)
        run.set_metadata("attention/heads", [HEADS] * len(LAYERS))
        run.set_metadata("probe/labels", [[f"t{index}" for index in range(TOKENS)]])
        for step in range(0, 1000, 10):
            run.log(step, {"train/loss": 3.0 - step / 1000, "train/learning_rate": 1e-3})
        for step in range(0, 1000, 100):
            weights = np.tril(random_state.random((len(LAYERS), HEADS, TOKENS, TOKENS)))
            weights /= weights.sum(-1, keepdims=True)
            entropy = -(weights * np.log(np.maximum(weights, 1e-9))).sum(-1).mean(-1)
            run.log_arrays(step, {"entropy": entropy})
            maps = {
                name: encode_map(layer_weights, causal=True)
                for name, layer_weights in zip(LAYERS, weights, strict=True)
            }
            run.log_maps(step, maps)
        run.heartbeat(1000, steps=1000, loss=2.0, best={"valid/loss": 2.1})
        run.finish("finished")


class FollowedRun:
    """Rows of one training that one client received."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.scalars: dict[str, dict[int, float | None]] = defaultdict(dict)
        self.measures: dict[str, set[int]] = defaultdict(set)
        self.map_steps: set[int] = set()
        self.events: set[tuple[int, str, float]] = set()
        self.thinned: dict[str, list[tuple[int, int]]] = defaultdict(list)
        """By scalar: first and last step of responses that have only a part of the rows between."""
        self.state = "running"
        self.last_step = -1
        """Newest step of a scalar. The run's own `step` may be ahead of the rows on disk."""

    def add(self, data: dict[str, Any]) -> None:
        """Add the rows of a response or an `update` event."""
        for name, curve in data["scalars"].items():
            self.scalars[name].update(zip(curve["steps"], curve["values"], strict=True))
            self.last_step = max(self.last_step, curve["steps"][-1])
            if len(curve["steps"]) >= MAX_CURVE_POINTS:
                self.thinned[name].append((curve["steps"][0], curve["steps"][-1]))
        for name, measure in data["measures"].items():
            self.measures[name].update(measure["steps"])
        self.state = data["state"]
        self.map_steps.update(data["map_steps"])
        self.events.update(
            (event["step"], event["kind"], event["time"]) for event in data["events"]
        )

    def compare(self, run: Run) -> tuple[int, int, list[str]]:
        """Number of rows of the run, of those thinned out, and descriptions of those lost."""
        rows, thinned, lost = 0, 0, []
        for step, name, value in run.scalar_rows():
            rows += 1
            curve = self.scalars.get(name, {})
            if step not in curve and any(first < step < last for first, last in self.thinned[name]):
                thinned += 1
            elif step not in curve or curve[step] != (value if np.isfinite(value) else None):
                lost.append(f"{self.name}: {name} of step {step}: {curve.get(step)} for {value}")
        kinds = {
            **{
                f"measure {name}": (run.measure(name)[0].tolist(), self.measures[name])
                for name in run.measure_names()
            },
            "map": (run.map_steps(), self.map_steps),
            "event": (
                [(step, kind, moment) for step, kind, _, moment in run.events()],
                self.events,
            ),
        }
        for kind, (stored, received) in kinds.items():
            rows += len(stored)
            lost += [f"{self.name}: {kind} {row}" for row in stored if row not in received]
        return rows, thinned, lost


class Clients:
    """All clients of the board: one process, one event loop."""

    def __init__(self, address: BoardAddress, live_names: list[str]) -> None:
        self.address, self.live_names = address, live_names
        self.latencies: dict[str, list[float]] = defaultdict(list)
        self.errors: list[str] = []
        self.refusals = 0
        self.followed: list[FollowedRun] = []
        self.may_send = asyncio.Event()
        """Cleared during blocks without the board."""
        self.may_send.set()
        self.open_requests = 0
        self.is_ending = False

    async def request(
        self, route: str, path: str, body: Any = None, *, accepted: tuple[int, ...] = (200,)
    ) -> tuple[int, bytes]:
        """Status and body of a response; its latency and errors are recorded by route."""
        await self.may_send.wait()
        self.open_requests += 1
        start = time.monotonic()
        status, content = 0, b""
        try:
            status, content = await self._request(path, body)
            self.latencies[route].append(time.monotonic() - start)
            if status not in accepted:
                self.errors.append(f"{path}: status {status}: {content[:200]!r}")
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.errors.append(f"{path}: {type(error).__name__}: {error}")
        finally:
            self.open_requests -= 1
        return status, content

    async def _request(self, path: str, body: Any) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection(
            self.address.host, self.address.port, limit=2**24
        )
        try:
            encoded = None if body is None else json.dumps(body).encode()
            writer.write(self.address.format_request(path, encoded))
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            status = int(head.split()[1])
            if b"transfer-encoding: chunked" not in head:
                length = int(head.partition(b"content-length:")[2].split()[0])
                return status, await reader.readexactly(length)
            content = b""
            while size := int((await reader.readline()).strip(), 16):
                content += await reader.readexactly(size)
                await reader.readexactly(2)
            return status, content
        finally:
            writer.close()

    def follow(self, name: str) -> FollowedRun:
        """Begin to record the rows of a training for one client."""
        self.followed.append(FollowedRun(name))
        return self.followed[-1]

    async def follow_stream(self, name: str, number: int) -> None:
        """An open page: rows by events, and the newest map; reopened now and then."""
        run, random_state = self.follow(name), random.Random(number)
        while not self.is_ending:
            lifetime = random_state.uniform(*REOPEN_SECONDS)
            # a page asks again for its newest step: a score may be written after its other rows
            path = f"/api/events?run={name}&after={max(-1, run.last_step - 1)}"
            await self.may_send.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(lifetime):
                    await self.read_stream(path, run)

    async def read_stream(self, path: str, run: FollowedRun) -> None:
        """Read one event stream until it is cancelled."""
        start = time.monotonic()
        reader, writer = await asyncio.open_connection(
            self.address.host, self.address.port, limit=2**26
        )
        kind = b""
        try:
            self.open_requests += 1
            try:
                writer.write(self.address.format_request(path))
                head = await reader.readuntil(b"\r\n\r\n")
            finally:
                self.open_requests -= 1
            self.latencies["events"].append(time.monotonic() - start)
            if b" 200 " not in head[:20]:
                self.errors.append(f"{path}: {head[:40]!r}")
                await asyncio.sleep(1)  # not at once again
                return
            while line := await reader.readline():
                if line.startswith(b"event: "):
                    kind = line[7:].strip()
                elif line.startswith(b"data: ") and kind == b"update":
                    data = json.loads(line[6:])
                    new_maps = set(data["map_steps"]) - run.map_steps
                    run.add(data)
                    if new_maps and self.may_send.is_set():
                        await self.request_map(run.name, max(new_maps))
                elif line.startswith(b"data: ") and kind in (b"run_error", b"reload"):
                    self.errors.append(f"{path}: {kind.decode()} {line[:200]!r}")
            if not self.is_ending:
                self.errors.append(f"{path}: the stream ended")
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.errors.append(f"{path}: {type(error).__name__}: {error}")
        finally:
            writer.close()

    async def request_map(self, name: str, step: int) -> None:
        """Fetch the maps of a step."""
        path = f"/api/runs/{name}/maps/{step}"
        status, content = await self.request("maps", path)
        if status == 200 and not content.startswith(b"NSTP"):
            self.errors.append(f"{path}: {content[:100]!r}")

    async def follow_by_paging(self, name: str, number: int) -> None:
        """A program that asks for new rows every few seconds."""
        run = self.follow(name)
        while not self.is_ending:
            status, content = await self.request(
                "run, after", f"/api/runs/{name}?after={max(-1, run.last_step - 1)}"
            )
            if status == 200:
                run.add(json.loads(content))
            await asyncio.sleep(4)

    async def list_runs(self, number: int) -> None:
        """An open list of runs that is reloaded."""
        while not self.is_ending:
            status, content = await self.request("runs", "/api/runs")
            if status == 200 and len(json.loads(content)["runs"]) < RUN_COUNT:
                self.errors.append("/api/runs: some runs are missing")
            await asyncio.sleep(3)

    async def browse(self, names: list[str], number: int) -> None:
        """A user who opens one run after the other, also the live ones.

        The first runs without pauses, so that the board's cache of open runs is soon full.
        """
        random_state = random.Random(number)
        first_names = names[number::BROWSING_CLIENTS][:20]
        while not self.is_ending:
            is_first = bool(first_names)
            name = (
                first_names.pop()
                if is_first
                else random_state.choice([*names, *self.live_names * 10])
            )
            status, content = await self.request("run", f"/api/runs/{name}")
            steps = json.loads(content)["map_steps"] if status == 200 else []
            if steps:
                await self.request_map(name, random_state.choice(steps))
            await self.request("findings", f"/api/runs/{name}/findings")
            await asyncio.sleep(0 if is_first else random_state.uniform(1, 4))

    async def segment(self) -> None:
        """A user who segments a text now and then with the shipped network."""
        while not self.is_ending:
            status, content = await self.request(
                "segment", "/api/segment", {"text": TEXT}, accepted=(200, REFUSED_STATUS)
            )
            self.check_job("/api/segment", status, content, b'"segments"')
            await asyncio.sleep(20)

    async def generate(self) -> None:
        """A user who generates a text now and then with the network of a running training."""
        number = 0
        while not self.is_ending:
            number += 1
            name = self.live_names[number % len(self.live_names)]
            body = {"run": name, "prompt": "The ", "tokens": 40, "seed": number}
            status, content = await self.request(
                "generate", "/api/generate", body, accepted=(200, REFUSED_STATUS)
            )
            self.check_job("/api/generate", status, content, b'"done"')
            await asyncio.sleep(15)

    def check_job(self, path: str, status: int, content: bytes, expected: bytes) -> None:
        """Check the response to a request for text: refused while the board is busy, or complete."""
        if status == REFUSED_STATUS or b"the board is busy" in content:
            self.refusals += 1
        elif status == 200 and expected not in content:
            self.errors.append(f"{path}: {content[-200:]!r}")

    async def run(self, names: list[str]) -> None:
        """Run all clients; obeys the lines `pause`, `resume` and `end` from standard input."""
        jobs: list[Awaitable[None]] = [self.segment(), self.generate()]
        for count, start in self._client_kinds(names):
            jobs += [start(number) for number in range(count)]
        tasks = [asyncio.ensure_future(job) for job in jobs]
        lines: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        threading.Thread(target=_forward_lines, args=(loop, lines), daemon=True).start()
        print("ready", flush=True)
        while (line := await lines.get()) != "end":
            if line == "pause":
                self.may_send.clear()
                while self.open_requests:
                    await asyncio.sleep(0.02)
                print("paused", flush=True)
            else:
                self.may_send.set()
        # the trainings have ended: wait until every client knows, which is after the last rows
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and any(run.state == "running" for run in self.followed):
            await asyncio.sleep(0.1)
        await asyncio.sleep(10)  # the state may be known before the last rows
        for task in tasks:
            if task.done():
                self.errors.append(f"a client ended: {task!r}")
        self.is_ending = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _client_kinds(
        self, names: list[str]
    ) -> Iterator[tuple[int, Callable[[int], Awaitable[None]]]]:
        """Number and function of the clients of each kind."""

        def live_name(number: int) -> str:
            return self.live_names[number % len(self.live_names)]

        yield STREAM_CLIENTS, lambda number: self.follow_stream(live_name(number), number)
        yield PAGING_CLIENTS, lambda number: self.follow_by_paging(live_name(number), number)
        yield LIST_CLIENTS, self.list_runs
        yield BROWSING_CLIENTS, lambda number: self.browse(names, number)


def _forward_lines(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str]) -> None:
    for line in sys.stdin:
        loop.call_soon_threadsafe(lines.put_nowait, line.strip())
    loop.call_soon_threadsafe(lines.put_nowait, "end")  # the other process was killed


def run_clients(root: Path) -> None:
    """The process of the clients: prints latencies, errors and lost rows as JSON."""
    names = sorted(path.name for path in root.iterdir() if not path.name.startswith("."))
    live_names = [name for name in names if "_run-" not in name]
    clients = Clients(BoardAddress(os.environ[URL_VARIABLE]), live_names)
    asyncio.run(clients.run([name for name in names if name not in live_names]))
    rows, thinned, lost = 0, 0, []
    for followed in clients.followed:
        with Run.open(root / followed.name) as run:
            run_rows, run_thinned, run_lost = followed.compare(run)
        rows, thinned, lost = rows + run_rows, thinned + run_thinned, lost + run_lost
    result = {
        "rows": rows,
        "thinned rows": thinned,
        "lost rows": len(lost),
        "errors": len(clients.errors),
        "first errors": [*clients.errors[:5], *lost[:5]],
        "refused texts": clients.refusals,
        "latencies": {
            route: {
                "requests": len(seconds),
                "p50, ms": 1000 * float(np.quantile(seconds, 0.5)),
                "p99, ms": 1000 * float(np.quantile(seconds, 0.99)),
            }
            for route, seconds in sorted(clients.latencies.items())
        },
    }
    print(json.dumps(result), flush=True)


@contextlib.contextmanager
def pinned(core: int) -> Iterator[None]:
    """Processes that are started inside run on one core, where the system can do that (Linux)."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def read_memory(pid: int) -> float:
    """Resident memory of a process in MB (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def measure_speed(trainings: list[Training], start: float, end: float) -> float:
    """Steps per second of all trainings together in an interval."""
    return sum(training.steps_per_second(start, end) for training in trainings)


def soak(minutes: float, report: Callable[[str], None]) -> dict[str, Any]:
    """Run everything for some minutes; `report` gets a line for every phase and block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        report(f"write {RUN_COUNT} runs")
        write_runs(root, RUN_COUNT)
        trainings: list[Training] = []
        try:
            with pinned(0):
                trainings.extend(Training(root, threads=1) for _ in range(2))
            report("start two trainings")
            for training in trainings:
                wait_until(lambda training=training: len(training.times) > 200, 300)
            report("start the board and 20 clients")
            with pinned(1), board(root) as (address, pid):
                return _soak_board(minutes, report, root, trainings, address, pid)
        finally:
            for training in trainings:
                if training.process.poll() is None:
                    training.stop()


def _soak_board(
    minutes: float,
    report: Callable[[str], None],
    root: Path,
    trainings: list[Training],
    address: BoardAddress,
    pid: int,
) -> dict[str, Any]:
    """Run clients for some minutes, in blocks, and collect the figures."""
    # by the environment: every user of the machine can read command lines
    environment = {**os.environ, URL_VARIABLE: address.url, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--clients", str(root)]
    clients = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        wait_for_line(clients, "ready")
        start = time.monotonic()
        warm_up_end, end = start + min(180.0, minutes * 10), start + minutes * 60
        memory, speeds, next_report = [], [], warm_up_end
        cpu_start = read_cpu_seconds(pid)
        speeds.append((False, measure_block(trainings, pid, clients, paused=True)))
        while not memory or time.monotonic() < end:
            speeds.append((True, measure_block(trainings, pid, clients, paused=False)))
            if time.monotonic() >= next_report:
                memory.append(read_memory(pid))
                next_report = time.monotonic() + 50
            speeds.append((False, measure_block(trainings, pid, clients, paused=True)))
            report(
                f"{(time.monotonic() - start) / 60:5.1f} min   board {read_memory(pid):6.1f} MB   "
                f"steps/s with {speeds[-2][1]:6.1f}, without {speeds[-1][1]:6.1f}"
            )
        board_share = (read_cpu_seconds(pid) - cpu_start) / (time.monotonic() - start)
        for training in trainings:
            training.stop()
        clients.stdin.write("end\n")
        clients.stdin.flush()
        report("compare the rows that the clients received with those on disk")
        results = json.loads(clients.communicate(timeout=300)[0])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        clients.kill()
        clients.wait()
    ratios = [
        2 * speed / (speeds[index - 1][1] + speeds[index + 1][1])
        for index, (has_board, speed) in enumerate(speeds)
        if has_board
    ]
    changes = [abs(value / memory[0] - 1) for value in memory]
    return {
        "figures": {
            "largest change of memory": max(changes),
            "memory at the end / after warm-up": memory[-1] / memory[0],
            "errors": results["errors"],
            "lost rows": results["lost rows"],
            "thinned rows": results["thinned rows"],
            "rows compared": results["rows"],
            "refused texts": results["refused texts"],
            "steps per second, with the board / without": statistics.median(ratios),
            **dict(zip(("from", "to"), bootstrap_interval(ratios), strict=True)),
            "steps per second without": statistics.median(
                speed for has_board, speed in speeds if not has_board
            ),
            "the board alone, share of a core": board_share,
        },
        "memory, MB": memory,
        "latencies": results["latencies"],
        "first errors": results["first errors"],
        "goals": GOALS,
    }


def measure_block(
    trainings: list[Training], board_pid: int, clients: subprocess.Popen[str], *, paused: bool
) -> float:
    """Steps per second during a block with the board and its clients, or without them."""
    if any(training.process.poll() is not None for training in trainings):
        raise RuntimeError("a training ended early")
    if paused:
        clients.stdin.write("pause\n")
        clients.stdin.flush()
        wait_for_line(clients, "paused")
        os.kill(board_pid, signal.SIGSTOP)
    start = time.monotonic()
    try:
        time.sleep(PAUSE_SECONDS if paused else BOARD_SECONDS)
        return measure_speed(trainings, start, time.monotonic())
    finally:
        if paused:
            os.kill(board_pid, signal.SIGCONT)
            clients.stdin.write("resume\n")
            clients.stdin.flush()


def wait_for_line(clients: subprocess.Popen[str], expected: str) -> None:
    """Wait until the clients have printed a line."""
    if clients.stdout.readline().strip() != expected:
        raise RuntimeError("the process of the clients ended early")


def format_results(results: dict[str, Any]) -> str:
    """The figures with their goals, and the latencies, as a table."""
    lines = []
    for name, value in results["figures"].items():
        goal = ""
        if name in GOALS:
            is_ratio = name.startswith("steps")
            is_met = value >= GOALS[name] if is_ratio else value <= GOALS[name]
            sign = "≥" if is_ratio else "≤"
            goal = f"   goal {sign} {GOALS[name]}: {'met' if is_met else 'MISSED'}"
        lines.append(f"  {name:44} {value:12,.3f}{goal}")
    lines.append(f"  {'route':20} {'requests':>10} {'p50, ms':>10} {'p99, ms':>10}")
    lines += [
        f"  {route:20} {row['requests']:10,} {row['p50, ms']:10.1f} {row['p99, ms']:10.1f}"
        for route, row in results["latencies"].items()
    ]
    return "\n".join(lines)


def main() -> int:
    """Print the figures and their goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one minute: does it run?")
    parser.add_argument("--clients", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.clients:
        run_clients(options.clients)
        return 0
    # as Ctrl-C: the `finally` blocks end the other processes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    minutes = 1.0 if options.quick else options.minutes
    # progress goes to standard error, so that --json prints nothing else
    results = soak(minutes, lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(results, indent=1) if options.json else format_results(results))
    for message in results["first errors"]:
        print(f"  error: {message}", file=sys.stderr)
    return int(results["figures"]["errors"] > 0 or results["figures"]["lost rows"] > 0)


if __name__ == "__main__":
    sys.exit(main())
