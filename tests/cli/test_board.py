"""`neural board`: what is said before it begins, and that it begins."""

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
from tests.views.board.boards import written


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("board") / "runs"
    written(root, looks=(0,))
    return root


@pytest.fixture
def started(monkeypatch):
    """The applications that were about to be served; nothing is."""
    found = []

    def run(server, sockets):
        found.append(server.config.app)
        for one in sockets:
            one.close()

    monkeypatch.setattr(uvicorn.Server, "run", run)
    monkeypatch.setattr("os.nice", lambda by: None)
    return found


def test_a_folder_that_is_not_there_is_told(tmp_path):
    said = CliRunner().invoke(command, [str(tmp_path / "none")])
    assert (said.exit_code, "there is no folder" in said.output) == (2, True)


def test_without_its_packages_the_board_names_the_command_that_gets_them(runs, monkeypatch):
    monkeypatch.setattr("neural.cli.board.find_spec", lambda name: None if name == "uvicorn" else find_spec(name))
    said = CliRunner().invoke(command, [str(runs)])
    assert said.exit_code == 2
    assert 'pip install "neural[board]"' in said.output


def test_a_port_that_is_taken_is_told(runs):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = CliRunner().invoke(command, [str(runs), "--no-open", "--port", str(taken.getsockname()[1])])
    assert said.exit_code == 2
    assert "--port takes another" in said.output


def test_this_machine_alone_needs_no_token_and_the_browser_is_opened(runs, started, monkeypatch):
    opened, handlers = [], list(logging.getLogger("uvicorn").handlers)
    monkeypatch.setattr("webbrowser.open", opened.append)
    said = CliRunner().invoke(command, ["--runs", str(runs), "--port", "0"])
    address = said.output.split()[-1]
    assert (said.exit_code, opened) == (0, [address])
    assert logging.getLogger("uvicorn").handlers == handlers, "logging belongs to whoever runs the process"
    assert address.startswith("http://127.0.0.1:")
    assert TestClient(started[0], base_url=address).get("/api/runs").status_code == 200


def test_another_address_prints_a_token_that_is_then_required(runs, started):
    said = CliRunner().invoke(command, [str(runs), "--no-open", "--port", "0", "--host", "0.0.0.0"])
    address, token = next(word for word in said.output.split() if word.startswith("http")).split("?token=")
    assert len(token) >= 32
    assert "not encrypted" in said.output
    ask = TestClient(started[0], base_url=address)
    assert ask.get("/api/runs").status_code == 401
    assert ask.get("/api/runs", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_it_serves_until_it_is_interrupted(runs):
    line = [sys.executable, "-m", "neural", "board", str(runs), "--port", "0", "--no-open"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as board:
        try:
            address = board.stdout.readline().split()[-1]
            with urllib.request.urlopen(f"{address}api/runs", timeout=60) as answer:
                assert b"finished" in answer.read()
            board.send_signal(signal.SIGINT)
            _, trouble = board.communicate(timeout=60)
        finally:
            board.kill()   # else a test that fails waits for it for ever
    assert (board.returncode, trouble) in ((0, ""), (130, ""))
