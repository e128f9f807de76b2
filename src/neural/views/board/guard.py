"""Who may ask the board, and how much: checked for every request before anything else sees it.

A page that the user has open elsewhere must get nothing (its requests come from the user's own machine), nor may
somebody on the network who has not the token. Every answer forbids the browser to run what is not ours.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_QUERY = 2_000
LARGEST_BODY = 1_000_000
"""Bytes; a text to segment is the largest thing that anybody sends."""
POLICY = "; ".join(
    f"{what} {who}"
    for what, who in {
        "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self' data: blob:",
        "connect-src": "'self'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
    }.items()
)  # fmt: skip
EVERYWHERE = ("0.0.0.0", "::", "")
HEADERS = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "x-frame-options": "DENY",
    "referrer-policy": "no-referrer", "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}  # fmt: skip


@dataclass(frozen=True)
class Door:
    """Where the board listens, and what one has to know to come in."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = field(default=None, repr=False)
    """Asked for where it is given: always, where others than this machine can come."""

    @property
    def address(self) -> str:
        """What the user opens; with the token where one is asked for."""
        name = socket.gethostname() if self.host in EVERYWHERE else self.host
        shown = f"[{name}]" if ":" in name else name
        return f"http://{shown}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    @property
    def cookie(self) -> str:
        """Browsers share cookies among all ports of a host: the name keeps two boards apart."""
        return f"neural-board-{self.port}"

    def knows(self, host: str) -> bool:
        """Whether the Host header names us.

        A name that somebody else points at our address (DNS rebinding) would make a stranger's page "the same origin";
        an address cannot be pointed anywhere.
        """
        name, port = _split(host)
        if port != self.port:
            return False
        if _is_address(name):
            return self.token is not None or ipaddress.ip_address(name).is_loopback
        own = {"localhost", self.host.lower()} | ({socket.gethostname().lower()} if self.token else set())
        return name in own

    def opens_to(self, said: str | None) -> bool:
        """Whether that is the token; how long it takes tells nothing about it."""
        return self.token is None or (said is not None and hmac.compare_digest(said.encode(), self.token.encode()))


class Guard:
    """Lets through what may pass, and adds the headers that keep the browser to our own scripts."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return   # websockets: there are none

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer = self._answer(scope)
        if answer is not None:
            await answer(scope, receive, send_guarded)
            return
        limited = _Limited(receive)
        await self.app(scope, limited, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """What to say instead of letting a request pass."""
        headers, path, query = Headers(scope=scope), scope["path"], scope["query_string"]
        if not self.door.knows(headers.get("host", "")):
            return _refused(421, "this board does not go by that name; use the address that `neural board` printed")
        if len(query) > LONGEST_QUERY or len(scope.get("raw_path") or path) > LONGEST_QUERY:
            return _refused(414, "the address is too long")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _refused(405, "the board knows GET and POST")
        if not _from_here(headers, scope, asks=path.startswith("/api/")):
            return _refused(403, "another page may not ask this board")
        if scope["method"] == "POST":
            if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return _refused(415, "send JSON")
            length = headers.get("content-length", "")
            if not length.isdecimal():
                return _refused(411, "say how long the text is")
            if int(length) > LARGEST_BODY:
                return _refused(413, f"the text is too long: at most {LARGEST_BODY:,} bytes")
        return self._asked_for_token(scope, headers)

    def _asked_for_token(self, scope: Scope, headers: Headers) -> Response | None:
        """None where the token is known; a token in the address becomes a cookie, and leaves the address."""
        if self.door.token is None or self.door.opens_to(_bearer(headers)) or self.door.opens_to(self._kept(headers)):
            return None
        try:
            said = parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True, max_num_fields=100)
        except ValueError:
            said = []
        if scope["method"] == "GET" and self.door.opens_to(dict(said).get("token")):
            # to the one page there is, never to a path that was sent: `//host` would lead elsewhere
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(self.door.cookie, self.door.token, httponly=True, samesite="strict")
            return answer
        return _refused(401, "the token is missing or wrong: open the address that `neural board` printed")

    def _kept(self, headers: Headers) -> str | None:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.door.cookie)
        except CookieError:
            return None
        return found.value if found is not None else None


class _Limited:
    """A body that ends with an error where it is longer than it may be, whatever its headers say."""

    def __init__(self, receive: Receive) -> None:
        self.receive, self.left = receive, LARGEST_BODY

    async def __call__(self) -> Message:
        message = await self.receive()
        self.left -= len(message.get("body", b""))
        return message if self.left >= 0 else {"type": "http.disconnect"}


def is_own(host: str) -> bool:
    """Whether only this machine can come in by that address."""
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; OSError where it cannot."""
    kind, *_, where = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    found = socket.socket(kind, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(where)
        found.listen(128)
    except BaseException:
        found.close()
        raise
    return found


def _from_here(headers: Headers, scope: Scope, *, asks: bool) -> bool:
    """Whether a browser says that our own page asks, or the user by typing; what is no browser says nothing."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and origin != f"{scope.get('scheme', 'http')}://{headers.get('host', '')}":
        return False
    if site in (None, "same-origin", "none"):
        return True
    # from elsewhere one may follow a link to the page, and nothing else; other ports of this machine are elsewhere too
    return not asks and scope["method"] != "POST" and headers.get("sec-fetch-mode") == "navigate"


def _bearer(headers: Headers) -> str | None:
    kind, _, said = headers.get("authorization", "").partition(" ")
    return said if kind.lower() == "bearer" else None


def _refused(code: int, why: str) -> Response:
    return PlainTextResponse(why + "\n", status_code=code)


def _split(host: str) -> tuple[str, int]:
    """Name and port of a Host header, in small letters; port 0 where it makes no sense."""
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "80")
    return name.strip("[]").lower().rstrip("."), int(port) if port.isascii() and port.isdecimal() else 0


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
