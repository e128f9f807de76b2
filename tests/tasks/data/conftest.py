"""The server, ready to be asked."""

import threading

import pytest

from tests.tasks.data.download_server import Server, known


@pytest.fixture
def server(tmp_path, monkeypatch):
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("NEURAL_DATA", raising=False)
    known(monkeypatch, made.url)
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join()
