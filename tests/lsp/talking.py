"""An editor, as small as can be: speaks with a language server over pipes."""

import json
import subprocess
import sys
import threading
from itertools import count

PATIENCE = 90
"""Seconds for a whole conversation."""


class Editor:
    """Asks and waits for the answer; what the server says by itself is kept."""

    def __init__(self):
        words = [sys.executable, "-m", "neural", "lsp"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.numbers = count(1)
        self.patience = threading.Timer(PATIENCE, self.process.kill)   # whoever waits for it then hears the end
        self.patience.daemon = True
        self.patience.start()

    def say(self, method, params, **more):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def hear(self):
        """The next message."""
        length = 0
        while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the server is gone, or it said nothing for too long"
        return json.loads(self.process.stdout.read(length))

    def ask(self, method, params=None):
        number = next(self.numbers)
        self.say(method, params, id=number)
        while (heard := self.hear()).get("id") != number:
            pass
        return heard["result"]

    def told(self, method):
        """The parameters of the next notification of that kind."""
        while (heard := self.hear()).get("method") != method:
            pass
        return heard["params"]

    def initialize(self, **capabilities):
        given = self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities})
        self.say("initialized", {})
        return given["capabilities"]

    def open(self, uri, text, language="neural"):
        about = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.say("textDocument/didOpen", {"textDocument": about})
        return self.told("textDocument/publishDiagnostics")

    def close(self):
        """Its exit code, and what it said where nobody listens."""
        self.ask("shutdown")
        self.say("exit", None)
        _, aside = self.process.communicate(timeout=30)
        self.patience.cancel()
        return self.process.returncode, aside
