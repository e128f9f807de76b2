"""`neural board`: messages before it starts, and that it serves."""

import logging
import signal
import socket
import subprocess
import sys
import urllib.request
from importlib.util import find_spec

import pytest
import uvicorn
from click.testing import CliRunner
from starlette.testclient import TestClient

from neural.cli.board import command
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
    monkeypatch.setattr("os.nice", lambda increment: None)
    return apps


def test_a_missing_folder_is_an_error(tmp_path):
    result = CliRunner().invoke(command, [str(tmp_path / "none")])
    assert (result.exit_code, "there is no folder" in result.output) == (2, True)


def test_without_its_packages_the_board_names_the_command_that_gets_them(runs, monkeypatch):
    monkeypatch.setattr(
        "neural.cli.board.find_spec", lambda name: None if name == "uvicorn" else find_spec(name)
    )
    result = CliRunner().invoke(command, [str(runs)])
    assert result.exit_code == 2
    assert 'pip install "neural[board]"' in result.output


def test_a_port_in_use_is_an_error(runs):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = CliRunner().invoke(
            command, [str(runs), "--no-open", "--port", str(taken.getsockname()[1])]
        )
    assert result.exit_code == 2
    assert "choose another --port" in result.output


def test_a_loopback_address_needs_no_token_and_the_browser_is_opened(
    runs, served_apps, monkeypatch
):
    opened, handlers = [], list(logging.getLogger("uvicorn").handlers)
    monkeypatch.setattr("webbrowser.open", opened.append)
    result = CliRunner().invoke(command, ["--runs", str(runs), "--port", "0"])
    address = result.output.split()[-1]
    assert (result.exit_code, opened) == (0, [address])
    assert logging.getLogger("uvicorn").handlers == handlers, (
        "the board must not change the logging configuration"
    )
    assert address.startswith("http://127.0.0.1:")
    assert TestClient(served_apps[0], base_url=address).get("/api/runs").status_code == 200


def test_another_address_prints_a_token_that_is_then_required(runs, served_apps):
    result = CliRunner().invoke(
        command, [str(runs), "--no-open", "--port", "0", "--host", "0.0.0.0"]
    )
    address, token = next(word for word in result.output.split() if word.startswith("http")).split(
        "?token="
    )
    assert len(token) >= 32
    assert "not encrypted" in result.output
    client = TestClient(served_apps[0], base_url=address)
    assert client.get("/api/runs").status_code == 401
    assert client.get("/api/runs", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_it_serves_until_it_is_interrupted(runs):
    command_line = [sys.executable, "-m", "neural", "board", str(runs), "--port", "0", "--no-open"]
    with subprocess.Popen(
        command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as board:
        try:
            address = board.stdout.readline().split()[-1]
            with urllib.request.urlopen(f"{address}api/runs", timeout=60) as response:
                assert b"finished" in response.read()
            board.send_signal(signal.SIGINT)
            _, stderr = board.communicate(timeout=60)
        finally:
            board.kill()  # otherwise a failing test waits forever
    assert (board.returncode, stderr) in ((0, ""), (130, ""))
