"""Security checks of every request to the board, the local web server that shows runs.

The checks run before any handler, and security headers are added to every response.

Other web pages that are open in the user's browser can send requests to the board. They are refused
by their Host, Origin and Sec-Fetch headers. Other users of this machine can connect to a loopback
address as well, and other machines to any other address: both lack the access token. The Content
Security Policy of every response allows only the board's own script and style sheet.

The token comes in one of three ways: as `Authorization: Bearer …` (programs), in a cookie
(browsers), or once in the URL of the page, which moves it to the cookie. It is not accepted in
other URLs, because URLs are stored in histories and logs.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neural.board.rate_limit import TokenBucket
from neural.core.platform_support import prevent_port_sharing

MAX_QUERY_LENGTH = 2_000
"""Most bytes of the query string, and of the path; longer ones get status 414."""
MAX_NUMBER_DIGITS = 12
"""Digits of a number in a header; longer ones are too large for anything."""
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
TOKEN_BYTES = 24
"""Random bytes of an access token: 192 bits cannot be guessed."""
TOKEN_PATTERN = re.compile(r"[A-Za-z0-9._~-]{16,256}")
"""Tokens that users choose: long enough, and of characters that URLs and cookies keep as they are."""
MAX_WRONG_TOKENS, WRONG_TOKENS_PER_SECOND = 10, 0.5
"""Requests with a wrong token at once, and on average; further ones get status 429."""
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


def create_token() -> str:
    """Create a random access token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


@dataclass(frozen=True)
class ServerConfig:
    """Address and access token of the board."""

    host: str = "127.0.0.1"
    port: int = 0
    """Port of the listening socket; 0 if it is not known yet."""
    token: str | None = field(default_factory=create_token, repr=False)
    """Every request must have this token. None: every user of this machine may use the board."""

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback_host(self.host):
            raise ValueError(f"a board on {self.host} needs a token: other machines can connect")

    @property
    def address(self) -> str:
        """The URL of the page, without the token."""
        name = socket.gethostname() if self.host in WILDCARD_HOSTS else self.host
        host = f"[{name}]" if ":" in name else name
        return f"http://{host}:{self.port}/"

    @property
    def url(self) -> str:
        """The URL to open, with the token if there is one."""
        return self.address + (f"?token={self.token}" if self.token else "")

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
        is_local = is_loopback_host(self.host)
        if _is_ip_address(name):
            return not is_local or ipaddress.ip_address(name).is_loopback
        own_names = {"localhost", self.host.lower()}
        if not is_local:
            own_names.add(socket.gethostname().lower())
        return name in own_names

    def accepts_token(self, token: str) -> bool:
        """Whether the token is right, compared in constant time."""
        return self.token is None or hmac.compare_digest(token.encode(), self.token.encode())


class SecurityMiddleware:
    """Rejects requests that fail a check and adds the security headers to every response."""

    def __init__(
        self, app: ASGIApp, config: ServerConfig, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.app, self.config = app, config
        self.wrong_tokens = TokenBucket(MAX_WRONG_TOKENS, WRONG_TOKENS_PER_SECOND, clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            else:  # the board has no websockets
                await send({"type": "websocket.close", "code": 1008})
            return

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
        hosts = headers.getlist("host")
        # a request line with a host of its own, `GET http://host/`, has no path that begins with /
        if len(hosts) != 1 or not self.config.is_own_host(hosts[0]) or not path.startswith("/"):
            return _reject(
                421,
                "unknown host name; open the address that `neural board` printed",
            )
        if not _is_same_origin(headers, scope, is_api=path.startswith("/api/")):
            return _reject(403, "cross-origin requests are not allowed")
        # before all checks that depend on the path or method: without the token, nobody learns
        # more than that a board is here
        rejection = self._check_token(scope, headers)
        if rejection is not None:
            return rejection
        if len(query) > MAX_QUERY_LENGTH or len(scope.get("raw_path") or path) > MAX_QUERY_LENGTH:
            return _reject(414, "the URL is too long")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _reject(405, "only GET and POST are supported")
        if scope["method"] == "POST":
            media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
            if media_type != "application/json":
                return _reject(415, "the content type must be application/json")
            length = headers.get("content-length", "")
            if not (length.isascii() and length.isdecimal()):
                return _reject(411, "a Content-Length header is required")
            # Python refuses to convert thousands of digits
            if len(length) > MAX_NUMBER_DIGITS or int(length) > MAX_BODY_BYTES:
                return _reject(
                    413, f"the request body is too long: at most {MAX_BODY_BYTES:,} bytes"
                )
        return None

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        """None if the token is right; a token in the page's URL is moved to a cookie."""
        if self.config.token is None:
            return None
        tokens, query_token = (
            _list_header_tokens(headers, self.config.cookie_name),
            _query_token(scope),
        )
        is_accepted = any(map(self.config.accepts_token, tokens))
        if query_token is not None and (is_accepted or self.config.accepts_token(query_token)):
            # also if the cookie is right: the URL must not stay in the window's history
            return self._move_token_to_cookie(headers)
        if is_accepted:
            return None
        # A right token is accepted above at any time: else anyone could lock out the owner by
        # sending wrong ones. The limit keeps the cost of guessing low, 192 bits keep it hopeless.
        if tokens or query_token is not None:
            wait_seconds = self.wrong_tokens.take()
            if wait_seconds:
                return _reject(
                    429,
                    f"too many wrong tokens; try again in {wait_seconds} s",
                    {"retry-after": str(wait_seconds)},
                )
        return _reject(
            401,
            "the token is missing or wrong: open the address that `neural board` printed; "
            "programs send the header `Authorization: Bearer TOKEN`",
            {"www-authenticate": "Bearer"},
        )

    def _move_token_to_cookie(self, headers: Headers) -> Response:
        """Set the cookie and lead to the page without a token in its URL."""
        # always to "/", never to the requested path: `//host` would lead to another server
        if headers.get("sec-fetch-site") in (None, "none", "same-origin"):
            response: Response = RedirectResponse("/", status_code=303)
        else:
            # Browsers withhold a SameSite=Strict cookie from redirects of a navigation that another
            # site started, and the file that opens the browser (launch.py) is one. A navigation
            # that this page starts has the cookie; a refresh without delay replaces the page in
            # the window's history.
            response = HTMLResponse(
                '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">'
                '<title>neural board</title><a href="/">Open the board</a>'
            )
        assert self.config.token is not None
        response.set_cookie(
            self.config.cookie_name, self.config.token, httponly=True, samesite="strict"
        )
        return response


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
        prevent_port_sharing(listener)
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


def _list_header_tokens(headers: Headers, cookie_name: str) -> list[str]:
    """Tokens of the header `Authorization: Bearer …` and of the cookies with that name."""
    scheme, _, bearer_token = headers.get("authorization", "").partition(" ")
    tokens = [bearer_token] if scheme.lower() == "bearer" else []
    # Not http.cookies: it drops all cookies if one of them is unusual, and browsers send those of
    # every other server on this host, too. Such a server can also set a second cookie of our name.
    for cookie in headers.get("cookie", "").split(";"):
        name, _, value = cookie.strip().partition("=")
        if name == cookie_name:
            tokens.append(value)
    return tokens


def _query_token(scope: Scope) -> str | None:
    """Token in the URL of the page; other URLs cannot have one."""
    query = scope["query_string"]
    if scope["method"] != "GET" or scope["path"] != "/" or len(query) > MAX_QUERY_LENGTH:
        return None
    try:
        parameters = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return None
    return dict(parameters).get("token")


def _reject(status_code: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(message + "\n", status_code=status_code, headers=headers)


def _split_host(host: str) -> tuple[str, int]:
    """Name and port of a Host header, in lower case; port 0 where it is invalid."""
    name, _, port = (
        host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "80")
    )
    is_number = port.isascii() and port.isdecimal() and len(port) <= MAX_NUMBER_DIGITS
    return name.strip("[]").lower().rstrip("."), int(port) if is_number else 0


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
