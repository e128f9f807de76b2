"""News: told once to everybody, nothing missed, nothing computed where nobody looks."""

import asyncio
import json
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from neural.board import described
from neural.views.board.listing import Listing
from neural.views.board.live import BACKLOG, Listener, Live, Subject
from neural.views.board.news import Alarms, ListingNews, RunNews, findings
from neural.views.board.source import Shelf
from tests.views.board.boards import Written, served


@pytest.fixture
def made(tmp_path):
    found = Written(tmp_path)
    found.look(0)
    yield found
    found.run.close()


def judge(run):
    steps, _ = run.scalars("train/loss")
    return [{"code": "X", "late": bool(steps[-1] >= 100)}]


def news_of(made):
    return RunNews(made.name, Shelf(Listing(made.path.parent)), described)


def played(scene):
    """To its end, in a thread: a browser that other tests have open keeps a loop of its own in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(scene())).result()


def told(messages):
    """Kind and data of each."""
    parts = [message.decode().strip().split("\n") for message in messages]
    return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in parts]


def test_where_nothing_is_new_nothing_is_said(made):
    news = news_of(made)
    news.look()
    assert news.look() == []


def test_a_new_step_is_told_with_everything_that_came(made):
    news = news_of(made)
    news.look()
    made.look(50)
    ((kind, run),) = told(news.look())
    assert (kind, run["id"], run["map_steps"]) == ("news", made.name, [50])
    assert run["scalars"]["train/loss"]["steps"] == run["measures"]["entropy"]["steps"] == [50]


def test_nothing_is_told_twice(made):
    news = news_of(made)
    news.look()
    for step in (50, 100, 150):   # the heartbeat, which comes every few seconds, still says the first of them
        made.look(step)
        ((_, run),) = told(news.look())
        assert run["map_steps"] == run["scalars"]["train/loss"]["steps"] == [step]


def test_a_score_that_comes_late_is_not_missed(made):
    news = news_of(made)
    news.look()
    made.look(50)
    news.look()
    made.run.log(50, {"valid/loss": 1.25})
    made.run.commit()
    ((_, run),) = told(news.look())
    assert run["scalars"]["valid/loss"] == {"steps": [50], "values": [1.25]}


def test_an_event_and_the_end_are_told(made):
    news = news_of(made)
    news.look()
    made.run.event(0, "warning", "look out")
    made.run.commit()
    ((_, run),) = told(news.look())
    assert run["events"][0]["text"] == "look out"
    made.run.finish("finished")
    ((_, run),) = told(news.look())
    assert run["state"] == "finished"


def test_rows_that_are_taken_back_make_everybody_ask_again(made):
    news = news_of(made)
    made.look(50)
    news.look()
    made.run.forget_after(0)
    made.run.event(0, "restart", "goes on from step 0")
    made.run.commit()
    assert ("again", {}) in told(news.look())
    made.look(20)
    ((_, run),) = told(news.look())
    assert run["scalars"]["train/loss"]["steps"] == [0, 20]


def test_an_alarm_is_told_when_it_fires_and_not_again(made):
    alarms = Alarms(made.name, Shelf(Listing(made.path.parent)), judge)
    assert told(alarms.look()) == [("findings", {"run": made.name, "findings": [{"code": "X", "late": False}]})]
    assert alarms.look() == []
    made.look(100)
    assert told(alarms.look()) == [("findings", {"run": made.name, "findings": [{"code": "X", "late": True}]})]


def test_nobody_who_wants_a_map_waits_for_an_analysis(made):
    opened, begun, go_on = Shelf(Listing(made.path.parent))[made.name], Event(), Event()

    def slow(run):
        begun.set()
        go_on.wait(10)
        return []

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(findings, opened, slow)
        begun.wait(10)
        assert opened.lock.acquire(timeout=1)
        opened.lock.release()
        go_on.set()
        assert asked.result() == b"[]"


def test_what_was_found_for_one_is_not_looked_for_again(made):
    shelf, judged = Shelf(Listing(made.path.parent)), []
    alarms = Alarms(made.name, shelf, lambda run: judged.append(run) or [])
    alarms.look()
    assert findings(shelf[made.name], alarms.judge) == b"[]"
    assert len(judged) == 1


def test_what_takes_long_is_looked_at_seldom():
    async def scene():
        looks = []

        def slow():
            looks.append(1)
            begun = time.thread_time()
            while time.thread_time() < begun + 0.05:
                pass
            return []

        subject, listener = Subject(slow, 0.01), Listener()
        subject.add(listener)
        await asyncio.sleep(0.5)   # a hundred times as long must pass before the next
        subject.remove(listener)
        assert len(looks) == 1

    played(scene)


def test_a_run_that_breaks_or_goes_is_told_once(made, tmp_path):
    news = news_of(made)
    news.look()
    made.path.rename(tmp_path / ".gone")
    assert news.look() == []   # once may be chance
    assert told(news.look()) == [("broken", {"run": made.name, "message": "there is no such run in this folder"})]
    assert news.look() == []


def test_what_could_not_be_read_for_once_is_told_the_next_time(made, monkeypatch):
    news = news_of(made)
    news.look()
    made.look(50)
    with monkeypatch.context() as broken:
        broken.setattr(news, "describe", lambda run, after: 1 / 0)
        assert news.look() == []
    ((_, run),) = told(news.look())
    assert run["map_steps"] == [50]


def test_the_list_tells_what_changed_alone(made, tmp_path):
    news = ListingNews(Listing(tmp_path))
    assert news.look() == []
    other = Written(tmp_path, "other")
    ((kind, data),) = told(news.look())
    assert (kind, [one["id"] for one in data["runs"]], data["gone"]) == ("runs", [other.name], [])
    other.run.close()
    other.path.rename(tmp_path / ".gone")
    ((_, data),) = told(news.look())
    assert (data["runs"], data["gone"]) == ([], [other.name])


def test_who_is_too_slow_begins_anew_instead_of_filling_the_memory():
    async def scene():
        slow = Listener()
        for number in range(10 * BACKLOG):
            slow.tell(b"%d" % number)
        assert slow.queue.qsize() <= BACKLOG
        assert any(slow.queue.get_nowait().startswith(b"event: again") for _ in range(slow.queue.qsize()))

    played(scene)


def test_many_listeners_cost_one_look_and_none_cost_nothing():
    async def scene():
        looks = []
        subject = Subject(lambda: looks.append(1) or [b"new"], 0.01)
        listeners = [Listener() for _ in range(20)]
        for one in listeners:
            subject.add(one)
        await asyncio.sleep(0.1)
        count = len(looks)
        assert {one.queue.qsize() for one in listeners} == {count} or count > BACKLOG
        assert count <= 12
        for one in listeners:
            subject.remove(one)
        await asyncio.sleep(0.05)
        assert len(looks) <= count + 1
        assert subject.task is None

    played(scene)


def test_what_was_missed_before_listening_comes_first(made):
    async def scene():
        shelf = Shelf(listing := Listing(made.path.parent))
        board = Live(listing, shelf, described, lambda run: [])
        made.look(50)
        messages = board.listen([made.name], 0)
        assert await anext(messages) == b": here\n\n"
        ((kind, run),) = told([await anext(messages)])
        assert (kind, run["map_steps"]) == ("news", [50])
        await messages.aclose()
        assert (board.listeners, board.runs) == (0, {})

    played(scene)


def test_steps_reach_a_listener_while_the_run_is_written(made):
    with (
        served(made.path.parent) as address,
        urllib.request.urlopen(f"{address}/api/events?run={made.name}&after=0", timeout=20) as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        stream.readline()
        time.sleep(0.3)   # the first look has been
        made.look(50)
        while not (b'"map_steps":[50]' in (line := stream.readline()) and line.startswith(b"data: ")):
            assert line, "the stream has ended"
