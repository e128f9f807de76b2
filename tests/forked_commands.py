"""Run `python -m MODULE …` in forks of one process, so that torch is imported once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

POLL_SECONDS = 0.01
SERVER = """
import contextlib, gc, importlib, json, os, runpy, sys
import neural.cli.main, neural.workflows.train, torch

def run_command(words, folder, environment, stdout, stderr, modules):
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        for path, descriptor in ((os.devnull, 0), (stdout, 1), (stderr, 2)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), descriptor)
        sys.stdin = open(0, encoding="utf-8")
        importlib.invalidate_caches()
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with open(modules, "w") as file:
            file.write("\\n".join(sys.modules))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

def load_modules(path):
    # What one command has imported, the next ones need not. Only imports: nothing may be computed
    # before a fork, because threads are not copied.
    for name in open(path).read().split() if os.path.exists(path) else ():
        if name.startswith(("neural.", "torch.", "numpy.")) and not name.endswith("__main__"):
            with contextlib.suppress(Exception):
                importlib.import_module(name)

for line in sys.stdin:
    name, arguments = json.loads(line)
    if name == "start":
        gc.freeze()
        answer = os.fork()
        if answer == 0:
            run_command(*arguments)
    elif name == "poll":
        pid, status = os.waitpid(arguments, os.WNOHANG)
        answer = os.waitstatus_to_exitcode(status) if pid else None
    else:
        answer = load_modules(arguments)
    print(json.dumps(answer), flush=True)
"""


class ForkedCommands:
    """A process with torch imported that forks a child for every command."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        """`environment` is that of the process; its PYTHONPATH is also that of the commands."""
        self._environment = dict(environment)

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="forked-commands-")
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()
        self._folder.cleanup()

    def start(
        self, *words: str, cwd: Path, environment: Mapping[str, str] | None = None
    ) -> ForkedCommand:
        """Start `python -m WORDS` in the folder `cwd`, in a session of its own."""
        environment = self._environment if environment is None else dict(environment)
        paths = [
            Path(tempfile.mkdtemp(dir=self._folder.name), name)
            for name in ("stdout", "stderr", "modules")
        ]
        arguments = [words, str(cwd), environment, *map(str, paths)]
        return ForkedCommand(self, self._request("start", arguments), *paths)

    def run(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run `python -m WORDS` in the folder `cwd` and wait for it."""
        command = self.start(*words, cwd=cwd)
        stdout, stderr = command.communicate()
        return subprocess.CompletedProcess(words, command.returncode, stdout, stderr)

    def _request(self, name: str, arguments: Any) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([name, arguments]) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())


class ForkedCommand:
    """A running command, with the methods of `subprocess.Popen`."""

    def __init__(
        self, commands: ForkedCommands, pid: int, stdout: Path, stderr: Path, modules: Path
    ) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._commands, self._stdout, self._stderr = commands, stdout, stderr
        self._modules = modules

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.communicate()

    def poll(self) -> int | None:
        """The exit code, or minus the signal; None while it is running."""
        if self.returncode is None:
            self.returncode = self._commands._request("poll", self.pid)
            if self.returncode is not None:
                self._commands._request("load", str(self._modules))
        return self.returncode

    def kill(self) -> None:
        """Send SIGKILL, unless the process has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def communicate(self, timeout: float = 600.0) -> tuple[str, str]:
        """Wait for its end; returns its output. Kills it after `timeout` seconds."""
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                self.kill()
                raise subprocess.TimeoutExpired(str(self.pid), timeout, self._stdout.read_text())
            time.sleep(POLL_SECONDS)
        return self._stdout.read_text(encoding="utf-8"), self._stderr.read_text(encoding="utf-8")
