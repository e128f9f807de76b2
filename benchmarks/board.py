"""The board under load: 500 runs to list, and 50 open pages during training.

    python benchmarks/board.py [--json] [--quick]

Listing: a new board process lists a folder of 500 runs, first with cold caches, then again.

Clients: one process trains a language model, a second is the board, and a third has 50 clients
that receive every step and fetch every map, as open pages do. All three share this machine; the
clients, which would run on other machines, have the lowest priority (nice 19). Phases with and
without clients alternate during one training, so that both have the same noise. The figure is the
median over pairs of neighbouring phases of the ratio of steps per second, with a 95 % bootstrap
interval over pairs. `the board alone` is the share of one core that the board's process used.
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
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np

from neural.runs.run import Run

EXAMPLE = Path(__file__).parents[1] / "examples" / "language_model" / "tiny.yaml"
GOALS = {"seconds to list 500 runs": 1.0, "steps per second, 50 clients / none": 0.97, "errors": 0}
URL_VARIABLE = "NEURAL_BENCHMARK_BOARD_URL"
"""Environment variable that passes the board's URL, with its token, to the process of clients."""
CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def create_runs(root: Path, count: int) -> None:
    """Write finished runs without checkpoints."""
    for number in range(count):
        settings = {"task": "language_model", "name": f"run-{number}", "training": {"seed": number}}
        run = Run.create(root, f"run-{number}", settings=settings, program=None, environment={})
        for step in range(0, 1000, 10):
            run.log(step, {"train/loss": 3.0 - step / 1000, "train/learning_rate": 1e-3})
        run.heartbeat(1000, steps=1000, loss=2.0, best={"valid/loss": 2.1})
        run.finish("finished")


class BoardAddress:
    """Host, port and access token of a board, from the URL that it prints."""

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 80
        self.token = dict(urllib.parse.parse_qsl(parts.query)).get("token", "")

    def format_request(self, path: str, body: bytes | None = None) -> bytes:
        """The bytes of an HTTP request: POST with a JSON body if there is one, else GET."""
        lines = [
            f"{'GET' if body is None else 'POST'} {path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            f"Authorization: Bearer {self.token}",
        ]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


@contextlib.contextmanager
def board(root: Path):
    """Start a board process; yields its address and process id."""
    command = [sys.executable, "-m", "neural", "board", str(root), "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = BoardAddress(process.stdout.readline().split()[-1])
            wait_until(lambda: fetch(address, "/"))
            yield address, process.pid
        finally:
            process.send_signal(signal.SIGINT)


def fetch(address: BoardAddress, path: str) -> bytes | None:
    """The body of a response, or None if the server does not respond."""
    request = urllib.request.Request(
        f"http://{address.host}:{address.port}{path}",
        headers={"Authorization": f"Bearer {address.token}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.read()
    except OSError:
        return None


def wait_until(condition, seconds: float = 60.0):
    """Poll until a function returns a true value, and return it."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no result within {seconds:.0f} s")
        time.sleep(0.05)
    return result


def measure_listing(count: int) -> dict[str, float]:
    """Seconds for the first and the second list of the runs."""
    with tempfile.TemporaryDirectory() as folder:
        create_runs(Path(folder), count)
        with board(Path(folder)) as (address, _):
            seconds = []
            for _ in range(2):
                start = time.perf_counter()
                runs = json.loads(fetch(address, "/api/runs"))["runs"]
                seconds.append(time.perf_counter() - start)
                assert len(runs) == count
    return {f"seconds to list {count} runs": seconds[0], "seconds to list them again": seconds[1]}


class Training:
    """A process that trains, and the times at which its steps ended."""

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

    def steps_per_second(self, start: float, end: float) -> float:
        """Steps per second between the first and the last step that ended in an interval."""
        times = [moment for moment in self.times if start <= moment <= end]
        return (len(times) - 1) / (times[-1] - times[0])

    def stop(self) -> None:
        """Interrupt the process and wait for it."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


def train(root: Path) -> None:
    """Train until interrupted; prints the time after every step."""
    from neural.training.engine import fit
    from neural.training.load_task import load_task
    from neural.workflows.train import create_run

    task = load_task(
        EXAMPLE, ["training.steps=1000000", "tracking.track_every=50", "tracking.maps_every=1"]
    )
    with contextlib.suppress(KeyboardInterrupt):
        fit(
            task,
            create_run(task, root),
            on_step=lambda progress: print(time.monotonic(), flush=True),
        )


async def simulate_page(address: BoardAddress, run: str, counts: dict[str, int]) -> None:
    """One open page: receives events, and fetches maps over a second connection."""
    reader, writer = await asyncio.open_connection(address.host, address.port, limit=2**24)
    connection = Connection(address)
    try:
        writer.write(address.format_request(f"/api/events?run={run}&after=100000000"))
        if b" 200 " not in (line := await reader.readline()):
            count_error(counts, f"events: {line!r}")
            return
        while line := await reader.readline():
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if set(event) == {"run", "message"}:
                count_error(counts, event["message"])
            if "map_steps" not in event:
                continue
            counts["events"] += 1
            for step in event["map_steps"]:
                head, body = await connection.get(f"/api/runs/{run}/maps/{step}")
                counts["maps"] += 1
                if b" 200 " not in head[:20] or not body.startswith(b"NSTP"):
                    count_error(counts, f"maps: {head[:20]!r} {body[:200]!r}")
    finally:
        writer.close()
        connection.close()


class Connection:
    """A keep-alive connection, reopened if the server closed it."""

    def __init__(self, address: BoardAddress) -> None:
        self.address = address
        self.open = None

    async def get(self, path: str) -> tuple[bytes, bytes]:
        """Head and body of the response."""
        try:
            return await self._get(path)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.open = None
            return await self._get(path)

    async def _get(self, path: str) -> tuple[bytes, bytes]:
        self.open = self.open or await asyncio.open_connection(
            self.address.host, self.address.port, limit=2**24
        )
        reader, writer = self.open
        writer.write(self.address.format_request(path))
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
        )
        return head, await reader.readexactly(int(length.split(b":")[1]))

    def close(self) -> None:
        """Close the connection."""
        if self.open:
            self.open[1].close()


def count_error(counts: dict[str, int], message: str) -> None:
    """Count an error; the first one is printed."""
    counts["errors"] += 1
    if counts["errors"] == 1:
        print(message, file=sys.stderr)


async def simulate_pages(address: BoardAddress, run: str, clients: int, seconds: float) -> None:
    """Open many pages for some time; prints what they received as JSON."""
    counts = {"events": 0, "maps": 0, "errors": 0}
    os.nice(19)  # only now: on busy cores, starting at low priority would take minutes
    pages = [asyncio.create_task(simulate_page(address, run, counts)) for _ in range(clients)]
    await asyncio.sleep(1)
    print("all pages are open", flush=True)
    await asyncio.sleep(seconds)
    for page in pages:
        if page.done():
            count_error(counts, f"a page was disconnected: {page}")
    for page in pages:
        page.cancel()
    await asyncio.gather(*pages, return_exceptions=True)
    print(json.dumps(counts))


def measure_clients(threads: int, clients: int, pairs: int, seconds: float) -> dict[str, float]:
    """Steps per second with and without open pages."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        training = Training(root, threads)
        try:
            run = wait_until(
                lambda: [path.name for path in root.iterdir() if not path.name.startswith(".")]
            )[0]
            wait_until(lambda: len(training.times) > 200, 300)  # after the first compilations
            with board(root) as (address, pid):
                ratios, rates, shares = [], [], []
                totals = {"events": 0, "maps": 0, "errors": 0}
                for _ in range(pairs):
                    start = time.monotonic()
                    time.sleep(seconds)
                    without = training.steps_per_second(start, time.monotonic())
                    command = [
                        sys.executable,
                        __file__,
                        "--pages",
                        run,
                        str(clients),
                        str(seconds),
                    ]
                    # by the environment: every user of the machine can read command lines
                    environment = {**os.environ, URL_VARIABLE: address.url}
                    pages = subprocess.Popen(
                        command, stdout=subprocess.PIPE, text=True, env=environment
                    )
                    pages.stdout.readline()  # their start is not measured
                    start, used = time.monotonic(), read_cpu_seconds(pid)
                    time.sleep(seconds - 0.5)
                    end = time.monotonic()
                    shares.append((read_cpu_seconds(pid) - used) / (end - start))
                    rates.append((without, training.steps_per_second(start, end)))
                    ratios.append(rates[-1][1] / without)
                    for name, count in json.loads(pages.communicate(timeout=120)[0]).items():
                        totals[name] += count
        finally:
            training.stop()
    assert totals["events"] >= clients * pairs, f"pages received too few events: {totals}"
    return {
        f"steps per second, {clients} clients / none": statistics.median(ratios),
        **dict(zip(("from", "to"), bootstrap_interval(ratios), strict=True)),
        "steps per second without": statistics.median(without for without, _ in rates),
        "the board alone, share of a core": statistics.median(shares),
        "events received": totals["events"],
        "maps fetched": totals["maps"],
        "errors": totals["errors"],
    }


def bootstrap_interval(ratios: list[float]) -> list[float]:
    """95 % interval of the median."""
    samples = np.random.default_rng(0).choice(ratios, (10_000, len(ratios)))
    return np.quantile(np.median(samples, axis=1), [0.025, 0.975]).tolist()


def read_cpu_seconds(pid: int) -> float:
    """CPU time that a process has used so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_SECOND


def main() -> int:
    """Print the figures and their goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--pages", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options.train)
        return 0
    if options.pages:
        run, clients, seconds = options.pages
        address = BoardAddress(os.environ[URL_VARIABLE])
        asyncio.run(simulate_pages(address, run, int(clients), float(seconds)))
        return 0
    pairs, seconds = (1, 4.0) if options.quick else (12, 6.0)
    figures = {"listing": measure_listing(500)}
    cores = os.cpu_count() or 1
    for threads in dict.fromkeys((1, cores)):
        title = f"training on {threads} of {cores} cores"
        figures[title] = measure_clients(threads, 50, pairs, seconds)
    if options.json:
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
