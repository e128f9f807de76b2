"""Security checks of every request to the board, the local web server that shows runs.

The checks run before any handler, and security headers are added to every response.

Other web pages that are open in the user's browser can send requests to the board. They are refused
by their Host, Origin and Sec-Fetch headers. Other machines need the access token. The Content
Security Policy of every response allows only the board's own script and style sheet.
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

MAX_QUERY_LENGTH = 2_000
"""Most bytes of the query string, and of the path; longer ones get status 414."""
MAX_BODY_BYTES = 1_000_000
"""Most bytes of a request body, the largest of which is a text to segment; else status 413."""
CONTENT_SECURITY_POLICY = "; ".join(
    f"{directive} {sources}"
    for directive, sources in {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }.items()
)
WILDCARD_HOSTS = ("0.0.0.0", "::", "")
"""Addresses that listen on all network interfaces."""
SECURITY_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True)
class ServerConfig:
    """Address and access token of the board."""

    host: str = "127.0.0.1"
    port: int = 0
    """Port of the listening socket; 0 if it is not known yet."""
    token: str | None = field(default=None, repr=False)
    """Every request must have this token, unless it is None: only this machine can connect then."""

    @property
    def url(self) -> str:
        """The address to open, with the token if there is one."""
        name = socket.gethostname() if self.host in WILDCARD_HOSTS else self.host
        host = f"[{name}]" if ":" in name else name
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    @property
    def cookie_name(self) -> str:
        """Name of the cookie with the token.

        Includes the port, because browsers share cookies among all ports of a host.
        """
        return f"neural-board-{self.port}"

    def is_own_host(self, host: str) -> bool:
        """Whether the Host header names this board.

        Guards against DNS rebinding: a foreign name that resolves to this address would make a
        foreign page "same origin". Numeric addresses cannot be rebound.
        """
        name, port = _split_host(host)
        if port != self.port:
            return False
        if _is_ip_address(name):
            return self.token is not None or ipaddress.ip_address(name).is_loopback
        own_names = {"localhost", self.host.lower()}
        if self.token:
            own_names.add(socket.gethostname().lower())
        return name in own_names

    def accepts_token(self, token: str | None) -> bool:
        """Whether the token is right, compared in constant time."""
        return self.token is None or (
            token is not None and hmac.compare_digest(token.encode(), self.token.encode())
        )


class SecurityMiddleware:
    """Rejects requests that fail a check and adds the security headers to every response."""

    def __init__(self, app: ASGIApp, config: ServerConfig) -> None:
        self.app, self.config = app, config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no websockets

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        rejection = self._reject_request(scope)
        if rejection is not None:
            await rejection(scope, receive, send_guarded)
            return
        await self.app(scope, _BodyLimit(receive), send_guarded)

    def _reject_request(self, scope: Scope) -> Response | None:
        """The error response to a request that fails a check, or None."""
        headers, path, query = Headers(scope=scope), scope["path"], scope["query_string"]
        if not self.config.is_own_host(headers.get("host", "")):
            return _reject(
                421,
                "unknown host name; open the address that `neural board` printed",
            )
        if len(query) > MAX_QUERY_LENGTH or len(scope.get("raw_path") or path) > MAX_QUERY_LENGTH:
            return _reject(414, "the URL is too long")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _reject(405, "only GET and POST are supported")
        if not _is_same_origin(headers, scope, is_api=path.startswith("/api/")):
            return _reject(403, "cross-origin requests are not allowed")
        if scope["method"] == "POST":
            media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
            if media_type != "application/json":
                return _reject(415, "the content type must be application/json")
            length = headers.get("content-length", "")
            if not length.isdecimal():
                return _reject(411, "a Content-Length header is required")
            if int(length) > MAX_BODY_BYTES:
                return _reject(
                    413, f"the request body is too long: at most {MAX_BODY_BYTES:,} bytes"
                )
        return self._check_token(scope, headers)

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        """None if the token is right; a token in the URL is moved to a cookie by a redirect."""
        if (
            self.config.token is None
            or self.config.accepts_token(_bearer_token(headers))
            or self.config.accepts_token(self._cookie_token(headers))
        ):
            return None
        try:
            parameters = parse_qsl(
                scope["query_string"].decode("ascii"), keep_blank_values=True, max_num_fields=100
            )
        except ValueError:
            parameters = []
        if scope["method"] == "GET" and self.config.accepts_token(dict(parameters).get("token")):
            # always to "/", never to the requested path: `//host` would lead to another server
            redirect = RedirectResponse("/", status_code=303)
            redirect.set_cookie(
                self.config.cookie_name, self.config.token, httponly=True, samesite="strict"
            )
            return redirect
        return _reject(
            401, "the token is missing or wrong: open the address that `neural board` printed"
        )

    def _cookie_token(self, headers: Headers) -> str | None:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.config.cookie_name)
        except CookieError:
            return None
        return cookie.value if cookie is not None else None


class _BodyLimit:
    """ASGI `receive` that reports a disconnect when the body exceeds MAX_BODY_BYTES.

    Needed because the Content-Length header may be wrong.
    """

    def __init__(self, receive: Receive) -> None:
        self.receive, self.remaining_bytes = receive, MAX_BODY_BYTES

    async def __call__(self) -> Message:
        message = await self.receive()
        self.remaining_bytes -= len(message.get("body", b""))
        return message if self.remaining_bytes >= 0 else {"type": "http.disconnect"}


def is_loopback_host(host: str) -> bool:
    """Whether only this machine can connect to that address."""
    return host.lower() == "localhost" or (
        _is_ip_address(host) and ipaddress.ip_address(host).is_loopback
    )


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Open a listening TCP socket; OSError where the address is not available."""
    family, *_, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener


def _is_same_origin(headers: Headers, scope: Scope, *, is_api: bool) -> bool:
    """Whether the request comes from the board's own page, a typed address or no browser at all.

    Links to the page from other origins are allowed too.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if (
        origin is not None
        and origin != f"{scope.get('scheme', 'http')}://{headers.get('host', '')}"
    ):
        return False
    if site in (None, "same-origin", "none"):
        return True
    # other origins, which include other ports of this machine, may link to the page, no more
    return not is_api and scope["method"] != "POST" and headers.get("sec-fetch-mode") == "navigate"


def _bearer_token(headers: Headers) -> str | None:
    """Token of the header `Authorization: Bearer …`."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else None


def _reject(status_code: int, message: str) -> Response:
    return PlainTextResponse(message + "\n", status_code=status_code)


def _split_host(host: str) -> tuple[str, int]:
    """Name and port of a Host header, in lower case; port 0 where it is invalid."""
    name, _, port = (
        host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "80")
    )
    is_number = port.isascii() and port.isdecimal()
    return name.strip("[]").lower().rstrip("."), int(port) if is_number else 0


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
