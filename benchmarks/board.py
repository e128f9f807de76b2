"""The board under load: 500 runs to list, and 50 pages that look at a run while it is trained.

    python benchmarks/board.py [--json] [--quick]

Listing: a new board process is asked for the list of a folder of 500 runs, first with nothing in its memory, then
again.

Looking: a language model is trained by one process, a board reads its folder in a second, and 50 clients in a third
listen to every step and fetch every map, as open pages do. All three share this machine; the clients, who would sit
at machines of their own, give way to the others (nice 19). Phases with clients and without take turns while
the same training goes on, so that both meet the same noise; the figure is the median over pairs of neighbouring
phases of steps per second with over without, its 95 % interval from a bootstrap over pairs. `the board alone` says
what share of one core the board's process took while 50 listened.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

from neural.tracking.run import Run

EXAMPLE = Path(__file__).parents[1] / "examples" / "language_model" / "tiny.yaml"
GOALS = {"seconds to list 500 runs": 1.0, "steps per second, 50 clients / none": 0.97, "errors": 0}
TICK = os.sysconf("SC_CLK_TCK")


def make_runs(root: Path, count: int) -> None:
    """As trainings leave them, but for the checkpoints."""
    for number in range(count):
        settings = {"task": "language_model", "name": f"run-{number}", "training": {"seed": number}}
        run = Run.create(root, f"run-{number}", settings=settings, program=None, environment={})
        for step in range(0, 1000, 10):
            run.log(step, {"train/loss": 3.0 - step / 1000, "train/rate": 1e-3})
        run.beat(1000, steps=1000, loss=2.0, best={"valid/loss": 2.1})
        run.finish("finished")


@contextlib.contextmanager
def board(root: Path):
    """A board process: its address and its number."""
    command = [sys.executable, "-m", "neural", "board", str(root), "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().split()[-1]
            until(lambda: fetched(address))
            yield address, process.pid
        finally:
            process.send_signal(signal.SIGINT)


def fetched(address: str) -> bytes | None:
    """An answer, or nothing where there is none yet."""
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.read()
    except OSError:
        return None


def until(found, seconds: float = 60.0):
    """What is found, as soon as it is."""
    end = time.monotonic() + seconds
    while not (what := found()):
        if time.monotonic() > end:
            raise TimeoutError("nothing came")
        time.sleep(0.05)
    return what


def listing(count: int) -> dict[str, float]:
    """Seconds for the first list and for the second."""
    with tempfile.TemporaryDirectory() as folder:
        make_runs(Path(folder), count)
        with board(Path(folder)) as (address, _):
            seconds = []
            for _ in range(2):
                begun = time.perf_counter()
                runs = json.loads(fetched(f"{address}api/runs"))["runs"]
                seconds.append(time.perf_counter() - begun)
                assert len(runs) == count
    return {f"seconds to list {count} runs": seconds[0], "seconds to list them again": seconds[1]}


class Training:
    """A process that trains, and when each of its steps ended."""

    def __init__(self, root: Path, threads: int) -> None:
        self.times: list[float] = []
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, __file__, "--train", str(root)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.times.append(float(line))

    def rate(self, begin: float, end: float) -> float:
        """Steps per second in a stretch of time, from the first step that ended in it to the last."""
        inside = [one for one in self.times if begin <= one <= end]
        return (len(inside) - 1) / (inside[-1] - inside[0])

    def end(self) -> None:
        """Stop it."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


def train(root: Path) -> None:
    """Until somebody stops it; the time after every step goes out."""
    from neural.experiments import new_run, task_of
    from neural.training.engine import fit

    task = task_of(EXAMPLE, ["training.steps=1000000", "tracking.track_every=50", "tracking.maps_every=1"])
    with contextlib.suppress(KeyboardInterrupt):
        fit(task, new_run(task, root), tell=lambda progress: print(time.monotonic(), flush=True))


async def look(host: str, port: int, run: str, counts: dict[str, int]) -> None:
    """One page: listens, and fetches the maps of every step that it hears of by a second connection, as browsers do."""
    reader, writer = await asyncio.open_connection(host, port, limit=2**24)
    beside = Fetching(host, port)
    try:
        writer.write(f"GET /api/events?run={run}&after=100000000 HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        if b" 200 " not in (line := await reader.readline()):
            told(counts, f"listening: {line!r}")
            return
        while line := await reader.readline():
            if not line.startswith(b"data: {"):
                continue
            news = json.loads(line[6:])
            if set(news) == {"run", "message"}:
                told(counts, news["message"])
            if "map_steps" not in news:
                continue
            counts["news"] += 1
            for step in news["map_steps"]:
                head, body = await beside.get(f"/api/runs/{run}/maps/{step}")
                counts["maps"] += 1
                if b" 200 " not in head[:20] or not body.startswith(b"NSTP"):
                    told(counts, f"maps: {head[:20]!r} {body[:200]!r}")
    finally:
        writer.close()
        beside.close()


class Fetching:
    """A connection for one answer after the other; opened again where the server has closed it in a long silence."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.open = None

    async def get(self, path: str) -> tuple[bytes, bytes]:
        """Headers and body."""
        try:
            return await self._get(path)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.open = None
            return await self._get(path)

    async def _get(self, path: str) -> tuple[bytes, bytes]:
        self.open = self.open or await asyncio.open_connection(self.host, self.port, limit=2**24)
        reader, writer = self.open
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return head, await reader.readexactly(int(length.split(b":")[1]))

    def close(self) -> None:
        """Let go."""
        if self.open:
            self.open[1].close()


def told(counts: dict[str, int], why: str) -> None:
    """An error; the first of its kind is shown."""
    counts["errors"] += 1
    if counts["errors"] == 1:
        print(why, file=sys.stderr)


async def crowd(address: str, run: str, clients: int, seconds: float) -> None:
    """Many pages for some time; what they got goes out as JSON."""
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    counts = {"news": 0, "maps": 0, "errors": 0}
    os.nice(19)   # not before: on busy cores, starting so would take minutes
    pages = [asyncio.create_task(look(host, int(port), run, counts)) for _ in range(clients)]
    await asyncio.sleep(1)
    print("all are there", flush=True)
    await asyncio.sleep(seconds)
    for one in pages:
        if one.done():
            told(counts, f"a page was sent away: {one}")
    for one in pages:
        one.cancel()
    await asyncio.gather(*pages, return_exceptions=True)
    print(json.dumps(counts))


def looking(threads: int, clients: int, pairs: int, seconds: float) -> dict[str, float]:
    """Steps per second with and without pages that look."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        training = Training(root, threads)
        try:
            run = until(lambda: [one.name for one in root.iterdir() if not one.name.startswith(".")])[0]
            until(lambda: len(training.times) > 200, 300)   # what is compiled at first is over
            with board(root) as (address, pid):
                ratios, rates, shares, heard = [], [], [], {"news": 0, "maps": 0, "errors": 0}
                for _ in range(pairs):
                    begun = time.monotonic()
                    time.sleep(seconds)
                    without = training.rate(begun, time.monotonic())
                    command = [sys.executable, __file__, "--look", address, run, str(clients), str(seconds)]
                    pages = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                    pages.stdout.readline()   # starting them is not part of it
                    begun, used = time.monotonic(), processor_seconds(pid)
                    time.sleep(seconds - 0.5)
                    now = time.monotonic()
                    shares.append((processor_seconds(pid) - used) / (now - begun))
                    rates.append((without, training.rate(begun, now)))
                    ratios.append(rates[-1][1] / without)
                    for name, count in json.loads(pages.communicate(timeout=120)[0]).items():
                        heard[name] += count
        finally:
            training.end()
    assert heard["news"] >= clients * pairs, f"hardly anybody heard anything: {heard}"
    return {
        f"steps per second, {clients} clients / none": statistics.median(ratios),
        **dict(zip(("from", "to"), interval(ratios), strict=True)),
        "steps per second without": statistics.median(one for one, _ in rates),
        "the board alone, share of a core": statistics.median(shares),
        "news heard": heard["news"], "maps fetched": heard["maps"], "errors": heard["errors"],
    }  # fmt: skip


def interval(ratios: list[float]) -> list[float]:
    """Of the median, 95 %."""
    draws = np.random.default_rng(0).choice(ratios, (10_000, len(ratios)))
    return np.quantile(np.median(draws, axis=1), [0.025, 0.975]).tolist()


def processor_seconds(pid: int) -> float:
    """That a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def main() -> int:
    """Print the figures, and whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--look", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.train:
        train(asked.train)
        return 0
    if asked.look:
        address, run, clients, seconds = asked.look
        asyncio.run(crowd(address, run, int(clients), float(seconds)))
        return 0
    pairs, seconds = (1, 4.0) if asked.quick else (12, 6.0)
    figures = {"listing": listing(500)}
    cores = os.cpu_count() or 1
    for threads in dict.fromkeys((1, cores)):
        figures[f"training on {threads} of {cores} cores"] = looking(threads, 50, pairs, seconds)
    if asked.json:
        print(json.dumps({"figures": figures, "goals": GOALS}, indent=1))
        return 0
    for title, rows in figures.items():
        print(title)
        for name, value in rows.items():
            goal = f"   goal {GOALS[name]}" if name in GOALS else ""
            print(f"  {name:42} {value:10,.3f}{goal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
