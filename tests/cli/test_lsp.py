"""`neural lsp`: messages before it starts; the protocol is tested in tests/lsp."""

import socket
import sys
from importlib.util import find_spec
from types import SimpleNamespace

from click.testing import CliRunner

from neural.cli.main import main


def test_without_its_package_the_server_names_the_command_that_gets_it(monkeypatch):
    monkeypatch.setattr(
        "neural.cli.lsp.find_spec", lambda name: None if name == "pygls" else find_spec(name)
    )
    result = CliRunner().invoke(main, ["lsp"])
    assert result.exit_code == 2
    assert 'pip install "neural-lab[lsp]"' in result.output


def test_a_port_in_use_is_an_error(monkeypatch):
    # Importing the server takes most of a second; tests/lsp use a real process.
    stub = SimpleNamespace(start_tcp=lambda host, port: socket.create_server((host, port)))
    monkeypatch.setitem(sys.modules, "neural.lsp.server", SimpleNamespace(server=stub))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = CliRunner().invoke(main, ["lsp", "--tcp", str(taken.getsockname()[1])])
    assert result.exit_code == 2
    assert "choose another --tcp" in result.output


def test_stdio_and_tcp_exclude_each_other():
    assert CliRunner().invoke(main, ["lsp", "--stdio", "--tcp", "2087"]).exit_code == 2
