"""Fixture: a running download server."""

import threading

import pytest

from tests.data.download_server import Server, register_dataset


@pytest.fixture
def server(tmp_path, monkeypatch):
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("NEURAL_DATA", raising=False)
    register_dataset(monkeypatch, server.url)
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()
