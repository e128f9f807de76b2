"""`neural board`: messages before it starts, its token, and that it serves."""

import logging
import os
import signal
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import uvicorn
from click.testing import CliRunner
from starlette.testclient import TestClient

from neural.cli.main import main
from tests.board.boards import write_finished_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("board") / "runs"
    write_finished_run(root, steps=(0,))
    return root


@pytest.fixture
def served_apps(monkeypatch):
    """The applications passed to uvicorn, which are not served."""
    apps = []

    def run(server, sockets):
        apps.append(server.config.app)
        for listener in sockets:
            listener.close()

    monkeypatch.setattr(uvicorn.Server, "run", run)
    monkeypatch.setattr("neural.core.platform_support.lower_priority", lambda niceness: None)
    return apps


def test_a_missing_folder_is_an_error(tmp_path):
    result = CliRunner().invoke(main, ["board", str(tmp_path / "none")])
    assert (result.exit_code, "there is no folder" in result.output) == (2, True)


def test_a_port_in_use_is_an_error(runs):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = CliRunner().invoke(
            main, ["board", str(runs), "--no-open", "--port", str(taken.getsockname()[1])]
        )
    assert result.exit_code == 2
    assert "choose another --port" in result.output


def split_address(output):
    """Address without the token, and the token, that the board printed."""
    url = next(word for word in output.split() if word.startswith("http"))
    address, _, token = url.partition("?token=")
    return address, token


def test_a_loopback_address_needs_the_printed_token(runs, served_apps):
    handlers = list(logging.getLogger("uvicorn").handlers)
    result = CliRunner().invoke(main, ["board", "--runs", str(runs), "--port", "0", "--no-open"])
    assert result.exit_code == 0
    address, token = split_address(result.output)
    assert logging.getLogger("uvicorn").handlers == handlers, (
        "the board must not change the logging configuration"
    )
    assert address.startswith("http://127.0.0.1:")
    assert len(token) >= 32
    client = TestClient(served_apps[0], base_url=address)
    assert client.get("/api/runs").status_code == 401
    assert client.get("/api/runs", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_the_browser_opens_a_private_file_and_not_the_url_with_the_token(
    runs, served_apps, monkeypatch
):
    """The command line of a browser can be read by every user of the machine."""
    opened = []

    def open_in_browser(url):
        path = Path(url.removeprefix("file://"))
        opened.append(
            (url, path, path.read_text(), path.stat().st_mode, path.parent.stat().st_mode)
        )

    monkeypatch.setattr("webbrowser.open", open_in_browser)
    result = CliRunner().invoke(main, ["board", "--runs", str(runs), "--port", "0"])
    address, token = split_address(result.output)
    ((url, path, page, mode, folder_mode),) = opened
    assert token not in url
    assert f"{address}?token={token}" in page
    if os.name == "posix":
        assert (mode & 0o777, folder_mode & 0o777) == (0o600, 0o700)
    assert not path.parent.exists(), "the file is deleted when the board ends"


def test_without_a_token_only_a_loopback_address_is_served(runs, served_apps):
    result = CliRunner().invoke(
        main, ["board", str(runs), "--port", "0", "--no-open", "--no-token"]
    )
    assert result.exit_code == 0
    assert "every user of this machine" in result.output
    address, token = split_address(result.output)
    assert token == ""
    assert TestClient(served_apps[0], base_url=address).get("/api/runs").status_code == 200
    public = ["--host", "0.0.0.0", "--no-token"]
    result = CliRunner().invoke(main, ["board", str(runs), "--port", "0", "--no-open", *public])
    assert result.exit_code == 2
    assert "other machines can connect to 0.0.0.0" in result.output


def test_a_token_of_the_environment_is_used_and_not_printed(runs, served_apps, monkeypatch):
    token = "chosen-by-the-user-0123456789"
    monkeypatch.setenv("NEURAL_BOARD_TOKEN", token)
    result = CliRunner().invoke(main, ["board", str(runs), "--port", "0", "--no-open"])
    assert result.exit_code == 0
    assert token not in result.output
    client = TestClient(served_apps[0], base_url=split_address(result.output)[0])
    assert client.get("/api/runs", headers={"authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize(
    "token", ["", "short", "sixteen characters?", "ünïcode-0123456789", "a" * 257]
)
def test_a_weak_token_of_the_environment_is_refused_and_not_shown(runs, monkeypatch, token):
    monkeypatch.setenv("NEURAL_BOARD_TOKEN", token)
    result = CliRunner().invoke(main, ["board", str(runs), "--port", "0", "--no-open"])
    assert result.exit_code == 2
    assert "16 to 256 characters" in result.output
    assert not token or token not in result.output


def test_another_address_prints_a_token_that_is_then_required(runs, served_apps):
    result = CliRunner().invoke(
        main, ["board", str(runs), "--no-open", "--port", "0", "--host", "0.0.0.0"]
    )
    address, token = split_address(result.output)
    assert len(token) >= 32
    assert "not encrypted" in result.output
    client = TestClient(served_apps[0], base_url=address)
    assert client.get("/api/runs").status_code == 401
    assert client.get("/api/runs", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_it_serves_until_it_is_interrupted_and_logs_no_token(runs):
    command_line = [sys.executable, "-m", "neural", "board", str(runs), "--port", "0", "--no-open"]
    with subprocess.Popen(
        command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as board:
        try:
            address, token = split_address(board.stdout.readline())
            request = urllib.request.Request(
                f"{address}api/runs", headers={"authorization": f"Bearer {token}"}
            )
            with urllib.request.urlopen(request, timeout=60) as response:
                assert b"finished" in response.read()
            send_odd_requests(address, token)
            board.send_signal(signal.SIGINT)
            stdout, stderr = board.communicate(timeout=60)
        finally:
            board.kill()  # otherwise a failing test waits forever
    assert (board.returncode, stdout, stderr) == (0, "", "Ctrl-C ends the board\n")
    written = [path for path in runs.rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if token.encode() in path.read_bytes()]


def send_odd_requests(address, token):
    """Requests that a server may log: invalid ones, with the token in them."""
    host, port = urllib.parse.urlsplit(address).netloc.split(":")
    for request in (
        f"GET /?token={token} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n",
        f"GET /nothing?token={token} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n",
        f"GET /?token={token}\x01 HTTP/9.9\r\n\r\n",
        f"{token}\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\x00\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(request.encode())
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
