"""A server of our own, for everything that downloads."""

import hashlib
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from neural.tasks.data.downloads import DOWNLOADS, Download

CONTENT = bytes(range(256)) * 4001


class Server:
    """Answers with `content`; `break_after` bytes at most per connection, and `ranges` or not."""

    def __init__(self):
        self.content, self.break_after, self.ranges, self.status = CONTENT, None, True, None
        self.asked: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.headers.get("Range"))
                outer.answer(self)

            def log_message(self, *_args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/file"

    def answer(self, handler):
        if self.status:
            handler.send_error(self.status)
            return
        wanted = re.match(r"bytes=(\d+)-", handler.headers.get("Range") or "")
        start = int(wanted[1]) if wanted and self.ranges else 0
        if wanted and self.ranges and start >= len(self.content):
            handler.send_error(416)
            return
        handler.send_response(206 if wanted and self.ranges else 200)
        handler.send_header("Content-Length", str(len(self.content) - start))
        if wanted and self.ranges:
            handler.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        handler.end_headers()
        end = None if self.break_after is None else start + self.break_after
        handler.wfile.write(self.content[start:end])


def known(monkeypatch, url, content=CONTENT, **more):
    """The data set `made_up`, as a server of ours has it."""
    digest = hashlib.sha256(content).hexdigest()
    entry = Download(url=url, size=len(content), sha256=digest, local=("made_up", "made_up.txt"), **more)
    monkeypatch.setitem(DOWNLOADS, "made_up", entry)
