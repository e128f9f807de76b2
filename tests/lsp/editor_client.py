"""A minimal editor: speaks LSP with the server over pipes."""

import json
import subprocess
import sys
import threading
from itertools import count

TIMEOUT_SECONDS = 90
"""For a whole conversation."""


class Editor:
    """Sends requests and waits for the responses."""

    def __init__(self):
        command = [sys.executable, "-m", "neural", "lsp"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.request_ids = count(1)
        # A killed server ends the pipe, so that a waiting test fails instead of hanging.
        self.watchdog = threading.Timer(TIMEOUT_SECONDS, self.process.kill)
        self.watchdog.daemon = True
        self.watchdog.start()

    def send(self, method, params, **fields):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **fields}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def receive(self):
        """The next message."""
        length = 0
        while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the server ended or did not answer in time"
        return json.loads(self.process.stdout.read(length))

    def request(self, method, params=None):
        request_id = next(self.request_ids)
        self.send(method, params, id=request_id)
        while (message := self.receive()).get("id") != request_id:
            pass
        return message["result"]

    def wait_for_notification(self, method):
        """The parameters of the next notification of that kind."""
        while (message := self.receive()).get("method") != method:
            pass
        return message["params"]

    def initialize(self, **capabilities):
        result = self.request(
            "initialize", {"processId": None, "rootUri": None, "capabilities": capabilities}
        )
        self.send("initialized", {})
        return result["capabilities"]

    def open(self, uri, text, language="neural"):
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.send("textDocument/didOpen", {"textDocument": document})
        return self.wait_for_notification("textDocument/publishDiagnostics")

    def close(self):
        """The exit code and stderr of the server."""
        self.request("shutdown")
        self.send("exit", None)
        _, stderr = self.process.communicate(timeout=30)
        self.watchdog.cancel()
        return self.process.returncode, stderr
