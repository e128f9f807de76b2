"""`neural lsp`: what is said before it begins; the conversation itself is in tests/lsp."""

import socket
import sys
from importlib.util import find_spec
from types import SimpleNamespace

from click.testing import CliRunner

from neural.cli.lsp import command


def test_without_its_package_the_server_names_the_command_that_gets_it(monkeypatch):
    monkeypatch.setattr("neural.cli.lsp.find_spec", lambda name: None if name == "pygls" else find_spec(name))
    said = CliRunner().invoke(command, [])
    assert said.exit_code == 2
    assert 'pip install "neural[lsp]"' in said.output


def test_a_port_that_is_taken_is_told(monkeypatch):
    # the server's own import takes most of a second, and its conversation is tested with a real process
    listening = SimpleNamespace(start_tcp=lambda host, port: socket.create_server((host, port)))
    monkeypatch.setitem(sys.modules, "neural.lsp.server", SimpleNamespace(server=listening))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = CliRunner().invoke(command, ["--tcp", str(taken.getsockname()[1])])
    assert said.exit_code == 2
    assert "--tcp takes another" in said.output


def test_two_ways_to_speak_exclude_each_other():
    assert CliRunner().invoke(command, ["--stdio", "--tcp", "2087"]).exit_code == 2
