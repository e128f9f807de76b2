"""Connections without a token: long heads, silent sockets; and how the browser's file ends."""

import asyncio
import http.client
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from neural.board import app, server
from neural.board.requests import JobLock
from tests.board.boards import AUTHORIZATION, serve_board


@pytest.fixture
def address(tmp_path):
    with serve_board(tmp_path) as url:
        yield urlsplit(url).hostname, urlsplit(url).port


def request_status(address):
    connection = http.client.HTTPConnection(*address, timeout=5)
    connection.request("GET", "/api/runs", headers=AUTHORIZATION)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def test_a_head_without_an_end_is_refused(address):
    with socket.create_connection(address, timeout=5) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        sent = 0
        with pytest.raises(ConnectionError):
            while sent < 100 * server.MAX_HEAD_BYTES:
                client.sendall(b"x: y\r\n" * 1000)
                sent += 6000
                time.sleep(0.001)
    assert request_status(address) == 200


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\n"])
def test_a_connection_without_a_complete_head_is_closed(start, address, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    with socket.create_connection(address, timeout=5) as client:
        client.sendall(start)
        with suppress(ConnectionResetError):
            assert client.recv(100) == b""


def test_requests_are_read_by_the_protocol_with_limits():
    # where httptools is installed uvicorn prefers it, and it does not limit heads
    config = server.create_server_config(app.create_app)
    config.load()
    assert config.http_protocol_class is server.BoardProtocol
    assert issubclass(server.BoardProtocol, H11Protocol)
    assert config.h11_max_incomplete_event_size == server.MAX_HEAD_BYTES
    assert config.limit_concurrency is None  # new connections would be refused, not the oldest


@pytest.fixture
def many_files():
    """Let this process open 4,096 files, where that is allowed."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 4096 if before[1] == resource.RLIM_INFINITY else min(4096, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, before[0]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_silent_connections_do_not_lock_out_the_owner(address, many_files):
    extra = 50
    with ExitStack() as sockets:
        silent = [
            sockets.enter_context(socket.create_connection(address, timeout=5))
            for _ in range(server.MAX_CONNECTIONS + extra)
        ]
        assert request_status(address) == 200
        poll = select.poll()
        for each in silent:
            poll.register(each, select.POLLIN)
        closed = {descriptor for descriptor, _ in poll.poll(0)}
        # the oldest, and one more for the owner
        assert [each.fileno() in closed for each in silent] == [
            index <= extra for index in range(len(silent))
        ]


def test_the_number_of_event_streams_is_limited_exactly(address, monkeypatch):
    monkeypatch.setattr(app, "MAX_LISTENERS", 3)
    clients = []
    for _ in range(12):  # all requests are sent before the first response is read
        client = http.client.HTTPConnection(*address, timeout=5)
        client.request("GET", "/api/events", headers=AUTHORIZATION)
        clients.append(client)
    statuses = [client.getresponse().status for client in clients]
    assert sorted(statuses) == [200] * 3 + [503] * 9
    for client in clients:
        client.close()


def test_a_head_request_for_events_ends(address):
    connection = http.client.HTTPConnection(*address, timeout=5)
    connection.request("HEAD", "/api/events", headers=AUTHORIZATION)
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    # http.client does not wait for the end of an answer to HEAD; the next request does
    used = connection.sock
    connection.request("GET", "/api/runs", headers=AUTHORIZATION)
    assert connection.getresponse().status == 200
    assert connection.sock is used
    connection.close()


@pytest.mark.parametrize(
    "request_head",
    [
        "GET /api/runs HTTP/1.1\r\nHost: {host}\r\nHost: evil.com\r\n",
        "GET http://evil.com/api/runs HTTP/1.1\r\nHost: {host}\r\n",
    ],
)
def test_a_second_host_is_refused(request_head, address):
    host = f"{address[0]}:{address[1]}"
    token = AUTHORIZATION["authorization"]
    with socket.create_connection(address, timeout=5) as client:
        head = request_head.format(host=host) + f"Authorization: {token}\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(100).split()[1] in (b"400", b"421")


def test_a_job_that_was_left_holds_the_lock_until_its_thread_ends():
    def work():
        time.sleep(0.3)
        yield {"done": 1}

    async def scenario():
        lock = JobLock()
        left = asyncio.ensure_future(anext(lock.stream_lines(work)))
        await asyncio.sleep(0.05)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        assert b"error" in await anext(lock.stream_lines(work))
        await asyncio.sleep(0.5)
        assert b"done" in await anext(lock.stream_lines(work))

    asyncio.run(scenario())


OPEN_BROWSER = """
import sys, time
from neural.board.launch import open_browser
with open_browser("http://127.0.0.1/?token=secret"):
    print("opened", flush=True)
    time.sleep(20)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_deletes_the_file_with_the_token(number, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", OPEN_BROWSER],
        env={**os.environ, "BROWSER": "true", "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        # under `nohup`, processes inherit that the signal is ignored
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert process.stdout.readline() == b"opened\n"
    assert len(list(tmp_path.glob("neural-board-*/open.html"))) == 1
    process.send_signal(number)
    assert process.wait(10) == 128 + number
    assert list(tmp_path.iterdir()) == []
    process.stdout.close()
