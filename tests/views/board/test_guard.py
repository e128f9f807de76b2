"""Strangers try to get in, and fail."""

import pytest

from neural.views.board.guard import LARGEST_BODY, LONGEST_QUERY, Door, is_own, listening
from tests.views.board.boards import PORT, client, written

TOKEN = "a-token-that-nobody-guesses"
OPEN = Door("0.0.0.0", PORT, TOKEN)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    written(root, looks=(0,))
    return root


@pytest.fixture
def ask(runs):
    return client(runs)


@pytest.fixture
def stranger(runs):
    return client(runs, OPEN, follow_redirects=False)


@pytest.mark.parametrize("host", [
    "evil.example", f"evil.example:{PORT}", f"127.0.0.1.evil.example:{PORT}", f"127.0.0.1:{PORT + 1}", "127.0.0.1",
    f"localhost.evil.example:{PORT}", f"10.0.0.7:{PORT}", "", f"127.0.0.1:{PORT}@evil.example", "[::1", f":{PORT}",
    f"127.0.0.1:{PORT}:{PORT}", f"localhost:+{PORT}",
])  # fmt: skip
def test_a_name_that_somebody_else_points_at_us_is_refused(ask, host):
    for path in ("/", "/api/runs", "/bundle/neural.js"):
        answer = ask.get(path, headers={"host": host})
        assert answer.status_code == 421, host
        assert "run" not in answer.text.replace("neural board", "")


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_our_own_names_are_known(ask, host):
    assert ask.get("/api/runs", headers={"host": host}).status_code == 200


def test_addresses_are_ours_where_others_may_come_but_names_are_not(stranger):
    known = {"authorization": f"Bearer {TOKEN}"}
    assert stranger.get("/api/runs", headers={"host": f"192.168.1.5:{PORT}", **known}).status_code == 200
    assert stranger.get("/api/runs", headers={"host": f"evil.example:{PORT}", **known}).status_code == 421


@pytest.mark.parametrize("headers", [
    {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "http://evil.example"},
    {"origin": "null"}, {"origin": f"http://localhost:{PORT + 1}"}, {"origin": f"https://127.0.0.1:{PORT}"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
])  # fmt: skip
def test_another_page_gets_nothing_from_the_api(ask, headers):
    assert ask.get("/api/runs", headers=headers).status_code == 403
    assert ask.post("/api/write", json={}, headers=headers).status_code == 403


def test_a_link_from_elsewhere_leads_to_the_page_and_a_frame_or_script_does_not(ask):
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert ask.get("/", headers=link).status_code == 200
    assert ask.get("/bundle/neural.js", headers={**link, "sec-fetch-mode": "no-cors"}).status_code == 403


def test_no_answer_allows_another_origin(ask):
    for path in ("/", "/api/runs", "/nothing"):
        assert not [name for name in ask.get(path).headers if name.startswith("access-control")]
    assert ask.options("/api/runs", headers={"origin": f"http://127.0.0.1:{PORT}"}).status_code == 405


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_can_send_is_refused(ask, kind):
    assert ask.post("/api/write", content=b"{}", headers={"content-type": kind}).status_code == 415


def test_without_the_token_nobody_comes_in(stranger):
    for said in ({}, {"token": ""}, {"token": "wrong"}, {"token": TOKEN[:-1]}, {"token": TOKEN + "x"}, {"token": "ü€"}):
        for path in ("/", "/api/runs", "/api/events", "/bundle/neural.js"):
            answer = stranger.get(path, params=said)
            assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
    assert stranger.get("/", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert stranger.get("/", headers={"cookie": f"{OPEN.cookie}=wrong"}).status_code == 401
    assert stranger.get("/", headers={"cookie": f"neural-board-1={TOKEN}"}).status_code == 401
    assert stranger.post("/api/write", json={}, params={"token": TOKEN}).status_code == 401


def test_the_token_becomes_a_cookie_and_leaves_the_address(stranger):
    first = stranger.get("/", params={"token": TOKEN})
    assert (first.status_code, first.headers["location"]) == (303, "/")
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "samesite=strict" in first.headers["set-cookie"].lower()
    assert stranger.get("/").status_code == 200
    assert stranger.get("/api/runs").status_code == 200


@pytest.mark.parametrize("path", ["//evil.example", "//evil.example/%2e%2e", "/\\evil.example", "/api/runs"])
def test_the_way_on_from_the_token_leads_to_the_page_alone(stranger, path):
    answer = stranger.get(f"http://127.0.0.1:{PORT}{path}", params={"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_the_token_is_compared_in_the_same_time_whatever_is_said(monkeypatch):
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda *both: compared.append(both) or False)
    assert not OPEN.opens_to("x")
    assert compared == [(b"x", TOKEN.encode())]


def test_what_is_too_long_is_refused_before_it_is_read(ask):
    assert ask.get("/api/runs", params={"after": "1" * LONGEST_QUERY}).status_code == 414
    assert ask.get("/api/runs/" + "a" * LONGEST_QUERY).status_code == 414
    assert ask.post("/api/cut", json={"text": "a" * LARGEST_BODY}).status_code == 413
    assert ask.post("/api/cut", content=b"", headers={"content-type": "application/json", "content-length": "9" * 30}
                    ).status_code == 413  # fmt: skip


def test_a_body_of_unknown_length_is_refused(ask):
    answer = ask.post("/api/cut", content=iter([b"{", b"}"]), headers={"content-type": "application/json"})
    assert answer.status_code == 411


@pytest.mark.parametrize("path", ["/", "/api/runs", "/nothing", "/api/runs/nothing", "/bundle/x", "/bundle/neural.js"])
def test_every_answer_says_that_only_our_own_scripts_may_run(ask, path):
    headers = ask.get(path).headers
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_refusals_say_it_too(ask):
    assert "content-security-policy" in ask.get("/", headers={"host": "evil.example"}).headers


def test_the_page_has_no_script_or_style_of_its_own(ask):
    page = ask.get("/").text
    assert "<script>" not in page
    assert "<style" not in page
    assert "onload" not in page


@pytest.mark.parametrize(("host", "own"), [
    ("127.0.0.1", True), ("127.0.0.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
    ("192.168.0.3", False), ("my-machine", False), ("", False),
])  # fmt: skip
def test_only_this_machine_needs_no_token(host, own):
    assert is_own(host) is own


def test_a_token_is_in_the_address_and_not_in_what_is_printed_of_the_door():
    assert OPEN.address.endswith(f":{PORT}/?token={TOKEN}")
    assert TOKEN not in repr(OPEN)
    assert Door("::1", 7).address == "http://[::1]:7/"


def test_a_port_is_given_to_one_board_alone():
    first = listening("127.0.0.1", 0)
    try:
        with pytest.raises(OSError, match="in use"):
            listening("127.0.0.1", first.getsockname()[1])
    finally:
        first.close()
