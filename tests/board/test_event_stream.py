"""Event streams: every change is sent once to all listeners; nothing is read without listeners."""

import asyncio
import json
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from neural.board.event_stream import MAX_QUEUED_MESSAGES, EventBroadcaster, Listener, Poller
from neural.board.events import FindingsWatcher, IndexWatcher, RunWatcher, encode_findings
from neural.board.run_cache import RunCache
from neural.board.run_index import RunIndex
from tests.board.boards import AUTHORIZATION, LiveRun, serve_board


@pytest.fixture
def live_run(tmp_path):
    run = LiveRun(tmp_path)
    run.write_step(0)
    yield run
    run.run.close()


def fake_analyze_run(run):
    steps, _ = run.scalars("train/loss")
    return [{"code": "X", "late": bool(steps[-1] >= 100)}]


def watch_run(live_run):
    return RunWatcher(live_run.name, open_cache(live_run))


def open_cache(live_run):
    return RunCache(RunIndex(live_run.path.parent))


def run_async(scenario):
    """Run a coroutine in a thread: the browser of other tests keeps an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(scenario())).result()


def parse_events(messages):
    """Kind and data of each event."""
    fields = [message.decode().strip().split("\n") for message in messages]
    return [
        (kind.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for kind, data in fields
    ]


def test_without_a_change_there_is_no_event(live_run):
    watcher = watch_run(live_run)
    watcher.poll()
    assert watcher.poll() == []


def test_a_new_step_is_sent_with_all_of_its_rows(live_run):
    watcher = watch_run(live_run)
    watcher.poll()
    live_run.write_step(50)
    ((kind, run),) = parse_events(watcher.poll())
    assert (kind, run["id"], run["map_steps"]) == ("update", live_run.name, [50])
    assert run["scalars"]["train/loss"]["steps"] == run["measures"]["entropy"]["steps"] == [50]


def test_no_row_is_sent_twice(live_run):
    watcher = watch_run(live_run)
    watcher.poll()
    # the status file, written every few seconds, still has the first of these steps
    for step in (50, 100, 150):
        live_run.write_step(step)
        ((_, run),) = parse_events(watcher.poll())
        assert run["map_steps"] == run["scalars"]["train/loss"]["steps"] == [step]


def test_a_score_that_is_logged_late_is_sent(live_run):
    watcher = watch_run(live_run)
    watcher.poll()
    live_run.write_step(50)
    watcher.poll()
    live_run.run.log(50, {"valid/loss": 1.25})
    live_run.run.commit()
    ((_, run),) = parse_events(watcher.poll())
    assert run["scalars"]["valid/loss"] == {"steps": [50], "values": [1.25]}


def test_an_event_and_the_end_of_a_run_are_sent(live_run):
    watcher = watch_run(live_run)
    watcher.poll()
    live_run.run.log_event(0, "warning", "look out")
    live_run.run.commit()
    ((_, run),) = parse_events(watcher.poll())
    assert run["events"][0]["text"] == "look out"
    live_run.run.finish("finished")
    ((_, run),) = parse_events(watcher.poll())
    assert run["state"] == "finished"


def test_deleted_rows_make_listeners_reload(live_run):
    watcher = watch_run(live_run)
    live_run.write_step(50)
    watcher.poll()
    live_run.run.delete_after(0)
    live_run.run.log_event(0, "restart", "resumes from step 0")
    live_run.run.commit()
    assert ("reload", {}) in parse_events(watcher.poll())
    live_run.write_step(20)
    ((_, run),) = parse_events(watcher.poll())
    assert run["scalars"]["train/loss"]["steps"] == [0, 20]


def test_findings_are_sent_when_they_change_and_not_again(live_run, monkeypatch):
    monkeypatch.setattr("neural.board.events.analyze_run", fake_analyze_run)
    watcher = FindingsWatcher(live_run.name, open_cache(live_run))
    assert parse_events(watcher.poll()) == [
        ("findings", {"run": live_run.name, "findings": [{"code": "X", "late": False}]})
    ]
    assert watcher.poll() == []
    live_run.write_step(100)
    assert parse_events(watcher.poll()) == [
        ("findings", {"run": live_run.name, "findings": [{"code": "X", "late": True}]})
    ]


def test_an_analysis_does_not_block_requests_for_maps(live_run, monkeypatch):
    opened, has_started, may_end = open_cache(live_run)[live_run.name], Event(), Event()

    def analyze_slowly(run):
        has_started.set()
        may_end.wait(10)
        return []

    monkeypatch.setattr("neural.board.events.analyze_run", analyze_slowly)
    with ThreadPoolExecutor(1) as pool:
        findings = pool.submit(encode_findings, opened)
        has_started.wait(10)
        assert opened.lock.acquire(timeout=1)
        opened.lock.release()
        may_end.set()
        assert findings.result() == b"[]"


def test_findings_are_computed_once_for_listeners_and_requests(live_run, monkeypatch):
    run_cache, analyzed = open_cache(live_run), []
    monkeypatch.setattr("neural.board.events.analyze_run", lambda run: analyzed.append(run) or [])
    watcher = FindingsWatcher(live_run.name, run_cache)
    watcher.poll()
    assert encode_findings(run_cache[live_run.name]) == b"[]"
    assert len(analyzed) == 1


def test_a_slow_poll_has_a_longer_interval():
    async def scenario():
        polls = []

        def poll_slowly():
            polls.append(1)
            start = time.thread_time()
            while time.thread_time() < start + 0.05:
                pass
            return []

        poller, listener = Poller(poll_slowly, 0.01), Listener()
        poller.add(listener)
        await asyncio.sleep(0.5)  # a hundred times as long must pass before the next
        poller.remove(listener)
        assert len(polls) == 1

    run_async(scenario)


def test_a_damaged_or_removed_run_is_reported_once(live_run, tmp_path):
    watcher = watch_run(live_run)
    watcher.poll()
    live_run.path.rename(tmp_path / ".gone")
    assert watcher.poll() == []  # the first failure is not reported
    assert parse_events(watcher.poll()) == [
        ("run_error", {"run": live_run.name, "message": "there is no such run in this folder"})
    ]
    assert watcher.poll() == []


def test_rows_that_could_not_be_read_once_are_sent_the_next_time(live_run, monkeypatch):
    watcher = watch_run(live_run)
    watcher.poll()
    live_run.write_step(50)
    with monkeypatch.context() as patch:
        patch.setattr("neural.board.events.build_run_data", lambda run, after_step: 1 / 0)
        assert watcher.poll() == []
    ((_, run),) = parse_events(watcher.poll())
    assert run["map_steps"] == [50]


def test_the_index_watcher_sends_changed_runs_only(live_run, tmp_path):
    watcher = IndexWatcher(RunIndex(tmp_path))
    assert watcher.poll() == []
    other = LiveRun(tmp_path, "other")
    ((kind, data),) = parse_events(watcher.poll())
    assert (kind, [summary["id"] for summary in data["runs"]], data["removed"]) == (
        "runs",
        [other.name],
        [],
    )
    other.run.close()
    other.path.rename(tmp_path / ".gone")
    ((_, data),) = parse_events(watcher.poll())
    assert (data["runs"], data["removed"]) == ([], [other.name])


def test_a_slow_listener_reloads_instead_of_filling_the_memory():
    async def scenario():
        slow = Listener()
        for number in range(10 * MAX_QUEUED_MESSAGES):
            slow.send(b"%d" % number)
        assert slow.queue.qsize() <= MAX_QUEUED_MESSAGES
        assert any(
            slow.queue.get_nowait().startswith(b"event: reload") for _ in range(slow.queue.qsize())
        )

    run_async(scenario)


def test_many_listeners_share_one_poll_and_none_stop_it():
    async def scenario():
        polls = []
        poller = Poller(lambda: polls.append(1) or [b"new"], 0.01)
        listeners = [Listener() for _ in range(20)]
        for listener in listeners:
            poller.add(listener)
        await asyncio.sleep(0.1)
        count = len(polls)
        assert {listener.queue.qsize() for listener in listeners} == {
            count
        } or count > MAX_QUEUED_MESSAGES
        assert count <= 12
        for listener in listeners:
            poller.remove(listener)
        await asyncio.sleep(0.05)
        assert len(polls) <= count + 1
        assert poller.task is None

    run_async(scenario)


def test_rows_missed_before_listening_are_sent_first(live_run):
    async def scenario():
        run_index = RunIndex(live_run.path.parent)
        broadcaster = EventBroadcaster(run_index, RunCache(run_index))
        live_run.write_step(50)
        messages = broadcaster.listen([live_run.name], 0)
        assert await anext(messages) == b": connected\n\n"
        ((kind, run),) = parse_events([await anext(messages)])
        assert (kind, run["map_steps"]) == ("update", [50])
        await messages.aclose()
        assert broadcaster.run_pollers == {}

    run_async(scenario)


def test_rows_between_the_catch_up_event_and_the_first_poll_reach_a_listener(live_run):
    """The first poll is slow here: without waiting for it, a step would be lost."""

    async def scenario():
        run_index = RunIndex(live_run.path.parent)
        broadcaster = EventBroadcaster(run_index, RunCache(run_index))
        live_run.write_step(0)
        messages = broadcaster.listen([live_run.name], -1)
        assert await anext(messages) == b": connected\n\n"
        run_poller = broadcaster.run_pollers[live_run.name][0]
        poll, may_poll = run_poller.poll, threading.Event()
        run_poller.poll = lambda: may_poll.wait(20) and poll()
        catch_up = asyncio.ensure_future(anext(messages))
        await asyncio.sleep(0.2)
        live_run.write_step(50)
        may_poll.set()
        steps = {
            step
            for _, run in parse_events([await catch_up])
            for step in run["scalars"]["train/loss"]["steps"]
        }
        assert steps == {0, 50}
        await messages.aclose()

    run_async(scenario)


def test_maps_of_a_later_commit_than_their_measures_are_sent(live_run):
    live_run.write_step(0)
    run_index = RunIndex(live_run.path.parent)
    watcher = RunWatcher(live_run.name, RunCache(run_index))
    assert watcher.poll() == []
    maps = live_run.run.maps(0)
    live_run.run.log(50, {"train/loss": 1.0})
    live_run.run.log_arrays(50, {"entropy": np.zeros((2, 3))})
    live_run.run.commit()
    live_run.run.log(51, {"train/loss": 1.0})
    live_run.run.commit()
    assert [run["map_steps"] for _, run in parse_events(watcher.poll())] == [[]]
    live_run.run.log_maps(50, maps)
    live_run.run.commit()
    assert [run["map_steps"] for _, run in parse_events(watcher.poll())] == [[50]]


def test_steps_reach_a_listener_while_the_run_is_written(live_run):
    with (
        serve_board(live_run.path.parent) as address,
        urllib.request.urlopen(
            urllib.request.Request(
                f"{address}/api/events?run={live_run.name}&after=0", headers=AUTHORIZATION
            ),
            timeout=20,
        ) as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        stream.readline()
        time.sleep(0.3)  # after the first poll
        live_run.write_step(50)
        while not (
            b'"map_steps":[50]' in (line := stream.readline()) and line.startswith(b"data: ")
        ):
            assert line, "the stream has ended"
