"""Limits by the clock: texts to generate or segment, and wrong tokens."""

import pytest

from neural.board.app import MAX_JOBS
from neural.board.rate_limit import TokenBucket
from neural.board.security import MAX_WRONG_TOKENS
from tests.board.boards import AUTHORIZATION, create_client, write_finished_run


class FakeClock:
    """A clock that tests set."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    return write_finished_run(tmp_path_factory.mktemp("runs"), steps=(0,))


def test_a_bucket_allows_a_burst_and_then_the_average_rate():
    clock = FakeClock()
    bucket = TokenBucket(3, 0.5, clock=clock)
    assert [bucket.take() for _ in range(5)] == [0, 0, 0, 2, 2]
    clock.seconds += 1
    assert bucket.take() == 1
    clock.seconds += 1
    assert [bucket.take(), bucket.take()] == [0, 2]
    clock.seconds += 1000
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 2]


def test_a_clock_that_goes_back_does_not_empty_a_bucket():
    clock = FakeClock()
    bucket = TokenBucket(2, 1.0, clock=clock)
    clock.seconds -= 100
    assert [bucket.take(), bucket.take()] == [0, 0]


@pytest.mark.parametrize("path", ["/api/generate", "/api/segment"])
def test_too_many_texts_are_refused_with_the_time_to_wait(finished_run, path):
    clock = FakeClock()
    client = create_client(finished_run.path.parent, clock=clock)
    # a character that the network does not know, or an empty text: ends without computing
    body = {"run": finished_run.name, "prompt": "Ω"} if "generate" in path else {"text": " "}
    statuses = [client.post(path, json=body).status_code for _ in range(MAX_JOBS + 1)]
    assert statuses == [200] * MAX_JOBS + [429]
    refused = client.post(path, json=body)
    assert refused.headers["retry-after"] == "3"
    assert refused.text == "too many texts in a short time; try again in 3 s\n"
    clock.seconds += 3
    assert client.post(path, json=body).status_code == 200


def test_generated_and_segmented_texts_share_one_limit(finished_run):
    client = create_client(finished_run.path.parent, clock=FakeClock())
    for _ in range(MAX_JOBS):
        assert client.post("/api/segment", json={"text": " "}).status_code == 200
    body = {"run": finished_run.name, "prompt": "Ω"}
    assert client.post("/api/generate", json=body).status_code == 429


def test_invalid_requests_do_not_count_as_texts(finished_run):
    client = create_client(finished_run.path.parent, clock=FakeClock())
    for _ in range(MAX_JOBS + 1):
        assert client.post("/api/segment", json={"text": ""}).status_code == 422
    assert client.post("/api/segment", json={"text": " "}).status_code == 200


@pytest.mark.parametrize("kind", ["authorization", "cookie", "query"])
def test_many_wrong_tokens_are_refused_without_locking_out_the_owner(finished_run, kind):
    clock = FakeClock()
    client = create_client(finished_run.path.parent, headers={}, clock=clock)
    wrong = {
        "authorization": {"headers": {"authorization": "Bearer wrong"}},
        "cookie": {"headers": {"cookie": "neural-board-8765=wrong"}},
        "query": {"params": {"token": "wrong"}},
    }[kind]
    statuses = [client.get("/", **wrong).status_code for _ in range(MAX_WRONG_TOKENS + 2)]
    assert statuses == [401] * MAX_WRONG_TOKENS + [429] * 2
    assert client.get("/", **wrong).headers["retry-after"] == "2"
    assert client.get("/api/runs", headers=AUTHORIZATION).status_code == 200
    assert client.get("/").status_code == 401  # without any token
    clock.seconds += 2
    assert client.get("/", **wrong).status_code == 401
