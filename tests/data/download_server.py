"""A local HTTP server for tests of downloads."""

import hashlib
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from neural.data.downloads import DOWNLOADS, Download

CONTENT = bytes(range(256)) * 4001


class Server:
    """Serves `content`: at most `break_after` bytes per connection, with or without `ranges`."""

    def __init__(self):
        self.content, self.break_after, self.ranges, self.status = CONTENT, None, True, None
        self.requested_ranges: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requested_ranges.append(self.headers.get("Range"))
                outer.respond(self)

            def log_message(self, *_args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/file"

    def respond(self, handler):
        if self.status:
            handler.send_error(self.status)
            return
        requested = re.match(r"bytes=(\d+)-", handler.headers.get("Range") or "")
        start = int(requested[1]) if requested and self.ranges else 0
        if requested and self.ranges and start >= len(self.content):
            handler.send_error(416)
            return
        handler.send_response(206 if requested and self.ranges else 200)
        handler.send_header("Content-Length", str(len(self.content) - start))
        if requested and self.ranges:
            handler.send_header(
                "Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}"
            )
        handler.end_headers()
        end = None if self.break_after is None else start + self.break_after
        handler.wfile.write(self.content[start:end])


def register_dataset(monkeypatch, url, content=CONTENT, **extra):
    """Register the dataset `made_up` at this URL."""
    digest = hashlib.sha256(content).hexdigest()
    entry = Download(
        url=url, size=len(content), sha256=digest, local_names=("made_up", "made_up.txt"), **extra
    )
    monkeypatch.setitem(DOWNLOADS, "made_up", entry)
