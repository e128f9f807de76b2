"""Every request needs the token, and the token stays secret: also among users of one machine."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from neural.board.app import create_app
from neural.board.launch import open_browser
from neural.board.security import ServerConfig
from neural.report.run_report import write_run_page
from neural.runs.run import Run
from tests.board.boards import (
    AUTHORIZATION,
    PORT,
    TOKEN,
    create_client,
    serve_board,
    write_finished_run,
)

LOCAL_CONFIG = ServerConfig("127.0.0.1", PORT, TOKEN)
PUBLIC_CONFIG = ServerConfig("0.0.0.0", PORT, TOKEN)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "NONSENSE")
OTHER_USER = 65534
"""User id of `nobody`."""


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    return write_finished_run(tmp_path_factory.mktemp("runs"), steps=(0,))


@pytest.fixture
def root(finished_run):
    return finished_run.path.parent


@pytest.fixture
def stranger(root):
    """A client without the token."""
    return create_client(root, headers={}, follow_redirects=False)


def list_route_paths(routes, prefix=""):
    """Paths of all routes, also of those in mounts."""
    for route in routes:
        if isinstance(route, Mount):
            yield f"{prefix}{route.path}/any"  # a mounted application may have no list of routes
            yield from list_route_paths(route.routes, prefix + route.path)
        elif isinstance(route, Route | WebSocketRoute):
            yield prefix + route.path
        else:
            raise AssertionError(f"a kind of route that this test does not know: {route!r}")


def fill_path(path, run_name):
    """A URL of a route that exists: with the token it answers."""
    return (
        path.replace("{run:path}", run_name)
        .replace("{step:int}", "0")
        .replace("{name}", "neural.js")
    )


def test_no_route_answers_without_the_token(root, finished_run):
    paths = list(list_route_paths(create_app(root, LOCAL_CONFIG).app.routes))
    assert len(paths) >= 9
    for config in (LOCAL_CONFIG, PUBLIC_CONFIG):
        stranger = create_client(root, config, headers={}, follow_redirects=False)
        for path in [*(fill_path(path, finished_run.name) for path in paths), "/bundle/x"]:
            for method in METHODS:
                answer = stranger.request(method, path)
                assert answer.status_code == 401, (method, path)
                assert finished_run.name not in answer.text


def test_routes_that_are_added_need_the_token_too(root):
    """Also mounted applications, static files and web sockets: the check is before all routes."""
    board = create_app(root, LOCAL_CONFIG)

    async def answer(request):
        return PlainTextResponse("added")

    async def accept(websocket):
        await websocket.accept()

    board.app.router.routes += [
        Route("/added", answer, methods=["GET", "POST"]),
        Mount("/mounted", routes=[Route("/inside", answer)]),
        Mount("/files", StaticFiles(directory=root)),
        WebSocketRoute("/socket", accept),
    ]
    paths = list(list_route_paths(board.app.routes))
    assert {"/added", "/mounted/inside", "/files/any", "/socket"} <= set(paths)
    client = TestClient(board, base_url=f"http://127.0.0.1:{PORT}")
    for path in paths:
        for method in METHODS:
            assert client.request(method, path).status_code == 401, (method, path)
    assert client.get("/added", headers=AUTHORIZATION).text == "added"
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/socket"):
        pass


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"http://127.0.0.1:{PORT + 1}"])
def test_no_route_answers_another_origin_even_with_the_token(root, finished_run, origin):
    client = create_client(root, follow_redirects=False)
    for path in list_route_paths(create_app(root, LOCAL_CONFIG).app.routes):
        for method in METHODS:
            url = fill_path(path, finished_run.name)
            answer = client.request(method, url, headers={"origin": origin})
            assert answer.status_code == 403, (method, path)


def test_every_readable_route_answers_with_the_token(root, finished_run):
    """So that the refusals above are about the token and not about a wrong URL."""
    client = create_client(root)
    app = create_app(root, LOCAL_CONFIG).app
    for path in list_route_paths(app.routes):
        if path in ("/api/generate", "/api/segment"):
            assert client.post(path, json={}).status_code == 422
        elif path != "/api/events":  # a stream without an end
            assert client.get(fill_path(path, finished_run.name)).status_code == 200, path


@pytest.mark.parametrize(
    "path",
    [
        "/favicon.ico",
        "/robots.txt",
        "/nothing",
        "/api",
        "/api/",
        "/docs",
        "/openapi.json",
        "//",
        "/%2e%2e/",
        "/bundle/",
        "/.well-known/appspecific/com.chrome.devtools.json",
        "/a" * 4000,
    ],
    ids=lambda path: path[:20],
)
def test_unknown_urls_do_not_answer_without_the_token(stranger, path):
    assert stranger.get(f"http://127.0.0.1:{PORT}{path}").status_code == 401


def test_websockets_are_refused(root):
    for headers in ({}, AUTHORIZATION):
        client = create_client(root, headers=headers)
        with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/events"):
            pass


@pytest.mark.parametrize(
    "token",
    [
        "",
        "wrong",
        TOKEN[:-1],
        TOKEN + "x",
        TOKEN.upper(),
        f" {TOKEN}",
        f"{TOKEN}\n",
        "ü€",
        "x" * 1900,
        "\udcff",
        "%00",
    ],
    ids=[
        "empty",
        "word",
        "prefix",
        "longer",
        "case",
        "space",
        "line",
        "non-ascii",
        "long",
        "lone",
        "nul",
    ],
)
def test_a_wrong_token_is_refused(stranger, token):
    query = {"token": token.encode("utf-8", "surrogatepass")}
    header = token.encode("utf-8", "surrogatepass").strip() + b"!"
    for request in (
        {"params": query},
        {"headers": {b"authorization": b"Bearer " + header}},
        {"headers": {b"cookie": LOCAL_CONFIG.cookie_name.encode() + b"=" + header}},
    ):
        answer = stranger.get("/", **request)
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


def test_the_token_is_accepted_in_the_url_of_the_page_only(stranger):
    """Other URLs with a token would be stored in histories, scripts and logs."""
    assert stranger.get("/", params={"token": TOKEN}).status_code == 303
    for method, path in (
        ("GET", "/api/runs"),
        ("GET", "/api/events"),
        ("GET", "/bundle/neural.js"),
        ("GET", "//evil.example"),
        ("GET", "/\\evil.example"),
        ("HEAD", "/"),
        ("POST", "/"),
        ("POST", "/api/generate"),
    ):
        stranger.cookies.clear()
        answer = stranger.request(method, f"http://127.0.0.1:{PORT}{path}", params={"token": TOKEN})
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False), path


def test_the_token_is_moved_from_the_url_to_a_cookie(stranger):
    first = stranger.get("/", params={"token": TOKEN})
    assert (first.status_code, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert "domain" not in cookie
    assert first.headers["cache-control"] == "no-store"
    assert first.headers["referrer-policy"] == "no-referrer"
    for path in ("/", "/api/runs"):
        assert stranger.get(path).status_code == 200


def test_a_navigation_that_another_site_started_gets_a_page_that_leads_on(stranger):
    """Browsers do not send a SameSite=Strict cookie with its redirects."""
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    first = stranger.get("/", params={"token": TOKEN}, headers=headers)
    assert first.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/">' in first.text
    assert "set-cookie" in first.headers
    assert TOKEN not in first.text


def test_a_url_with_the_token_never_stays_in_the_window(stranger):
    """Also if the cookie is set already, and if the token in the URL is an old one."""
    stranger.get("/", params={"token": TOKEN})
    for token in (TOKEN, "of-an-earlier-board"):
        answer = stranger.get("/", params={"token": token})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_the_token_is_in_no_response_but_the_cookie(root, finished_run):
    client = create_client(root, follow_redirects=False)
    for path in ("/", "/bundle/neural.js", "/api/runs", f"/api/runs/{finished_run.name}", "/x"):
        answer = client.get(path)
        assert TOKEN not in answer.text + str(answer.headers)
    assert TOKEN not in client.get("/", headers={"authorization": f"Bearer {TOKEN}!"}).text


def test_an_internal_error_logs_no_token(root, monkeypatch, capfd, caplog):
    def fail(run_index):
        raise RuntimeError("an internal error")

    monkeypatch.setattr("neural.board.run_index.RunIndex.summarize_runs", fail)
    with serve_board(root) as address:
        port = urllib.parse.urlsplit(address).port
        for headers in (AUTHORIZATION, {"cookie": f"neural-board-{port}={TOKEN}"}):
            request = urllib.request.Request(f"{address}/api/runs", headers=headers)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=20)
            assert refused.value.code == 500
            assert TOKEN not in refused.value.read().decode()
    output = "".join(capfd.readouterr()) + caplog.text
    assert "an internal error" in output
    assert TOKEN not in output


def test_a_report_and_the_run_folder_have_no_token_after_the_board_was_used(
    root, finished_run, tmp_path, monkeypatch
):
    monkeypatch.setenv("NEURAL_BOARD_TOKEN", TOKEN)
    client = create_client(root)
    for path in ("/", "/api/runs", f"/api/runs/{finished_run.name}/findings"):
        assert client.get(path).status_code == 200
    report = write_run_page([finished_run.path], tmp_path / "report.html")
    files = [report, *(path for path in root.rglob("*") if path.is_file())]
    assert len(files) > 3
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]


def test_the_cookie_of_a_board_on_another_port_is_not_accepted(stranger):
    assert stranger.get("/", headers={"cookie": f"neural-board-1={TOKEN}"}).status_code == 401
    assert ServerConfig(port=1).cookie_name != ServerConfig(port=2).cookie_name


@pytest.mark.parametrize(
    "others",
    ['settings={"a": [1, 2]}', "a b=c", "ü=€", "x", "", "neural-board-8765=an-old-one"],
    ids=["json", "space", "non-ascii", "no value", "empty", "old"],
)
def test_cookies_of_other_servers_do_not_hide_that_of_the_board(stranger, others):
    """Browsers send the cookies of all ports of a host."""
    own = f"{LOCAL_CONFIG.cookie_name}={TOKEN}"
    for cookies in (f"{others}; {own}", f"{own}; {others}"):
        headers = {"cookie": cookies.encode()}
        assert stranger.get("/api/runs", headers=headers).status_code == 200, cookies


@pytest.mark.parametrize(
    "cookie",
    [
        "=",
        ";;;",
        "\x01",
        "neural-board-8765",
        "neural-board-8765=",
        'neural-board-8765="' + "\\" * 99,
    ],
    ids=["sign", "separators", "control", "name", "empty", "escapes"],
)
def test_a_damaged_cookie_is_refused(stranger, cookie):
    assert stranger.get("/", headers={"cookie": cookie}).status_code == 401


def test_a_right_token_does_not_allow_another_origin_or_host(root):
    client = create_client(root)
    assert client.get("/api/runs", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/api/runs", headers={"sec-fetch-site": "same-site"}).status_code == 403
    assert client.get("/api/runs", headers={"host": f"evil.example:{PORT}"}).status_code == 421


def test_the_token_is_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda *tokens: compared.append(tokens) or False)
    assert not PUBLIC_CONFIG.accepts_token("x")
    assert compared == [(b"x", TOKEN.encode())]


def test_the_token_is_in_the_url_and_not_in_the_repr():
    assert PUBLIC_CONFIG.url.endswith(f":{PORT}/?token={TOKEN}")
    assert TOKEN not in PUBLIC_CONFIG.address + repr(PUBLIC_CONFIG)
    assert ServerConfig("::1", 7, None).url == "http://[::1]:7/"


def test_a_token_is_the_default_and_needed_beyond_loopback():
    first, second = ServerConfig(), ServerConfig()
    assert len(first.token) >= 32
    assert first.token != second.token
    with pytest.raises(ValueError, match="needs a token"):
        ServerConfig("0.0.0.0", PORT, None)


def test_the_file_that_opens_the_browser_is_deleted(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with open_browser(LOCAL_CONFIG.url):
        path = Path(opened[0].removeprefix("file://"))
        assert TOKEN in path.read_text()
        assert TOKEN not in opened[0]
    assert not path.parent.exists()


def test_the_file_that_opens_the_browser_is_deleted_after_a_while(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("neural.board.launch.REDIRECT_FILE_SECONDS", 0.01)
    with open_browser(LOCAL_CONFIG.url):
        folder = Path(opened[0].removeprefix("file://")).parent
        for _ in range(500):
            if not folder.exists():
                return
            time.sleep(0.01)
    pytest.fail("the file is still there")


ANOTHER_USER = """
import encodings.idna, http.client, json, os, sys
# after the imports: the interpreter's own files may be private
os.setgroups([])
os.setgid({user})
os.setuid({user})
host, port, requests, files = json.loads(sys.argv[1])
statuses = {{}}
for method, path in requests:
    connection = http.client.HTTPConnection(host, port, timeout=60)
    connection.request(method, path)
    statuses[method + " " + path] = connection.getresponse().status
    connection.close()
contents = {{}}
for path in files:
    try:
        with open(path, "rb") as file:
            contents[path] = file.read().decode("latin-1")
    except PermissionError:
        contents[path] = None
print(json.dumps([statuses, contents]))
"""
"""Sends requests and reads files as another user; prints the statuses and the contents."""


@contextmanager
def start_board(root, folder):
    """`neural board` with TOKEN in its environment and a browser that records its arguments.

    Yields the process, its port, and the file that the browser should open.
    """
    record = folder / "record"
    browser = folder / "browser"
    browser.write_text(f"#!/bin/sh\nprintf '%s' \"$*\" > '{record}'\n")
    browser.chmod(0o755)
    command = [sys.executable, "-m", "neural", "board", str(root), "--port", "0"]
    environment = {**os.environ, "NEURAL_BOARD_TOKEN": TOKEN, "BROWSER": str(browser)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as board:
        try:
            address = board.stdout.readline().split()[-1]
            for _ in range(1000):
                if record.exists() and record.read_text():
                    break
                time.sleep(0.02)
            yield board, urllib.parse.urlsplit(address).port, record.read_text()
        finally:
            board.terminate()


@pytest.mark.skipif(
    not Path("/proc/self/cmdline").exists() or os.geteuid() != 0,
    reason="only the superuser can start a process of another user",
)
def test_another_user_of_the_machine_is_refused():
    """It reaches the port, but has no token, and cannot read it or a private run anywhere."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # only the modes inside protect anything
        root = folder / "runs"
        private = Run.create(root, "private", settings={"password": "x"}, program=None)
        public = Run.create(root, "public", settings={}, program=None, environment={})
        paths = list_route_paths(create_app(root, LOCAL_CONFIG).app.routes)
        urls = [fill_path(path, private.name) for path in paths]
        # uvicorn itself refuses methods that do not exist, with status 400
        methods = [method for method in METHODS if method != "NONSENSE"]
        requests = [(method, url) for method in methods for url in urls]
        with start_board(root, folder) as (board, port, opened_url):
            redirect_file = opened_url.removeprefix("file://")
            assert TOKEN in Path(redirect_file).read_text()
            process = Path(f"/proc/{board.pid}")
            files = [
                redirect_file,
                *map(str, (process / "environ", process / "cmdline")),
                *(str(run.path / "settings.json") for run in (private, public)),
            ]
            argument = json.dumps(["127.0.0.1", port, [*requests, ("GET", "/?token=x")], files])
            output = subprocess.run(
                [sys.executable, "-c", ANOTHER_USER.format(user=OTHER_USER), argument],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        for run in (private, public):
            run.close()
    assert output.stderr == ""
    statuses, contents = json.loads(output.stdout)
    assert len(statuses) > 50
    assert set(statuses.values()) == {401}
    readable = {path: content for path, content in contents.items() if content is not None}
    # what others may read: the command line, and a run without secrets
    assert [Path(path).name for path in readable] == ["cmdline", "settings.json"]
    assert "board" in readable[files[2]]
    assert readable[files[4]] == "{}\n"
    assert TOKEN not in opened_url + "".join(readable.values())
