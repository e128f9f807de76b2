"""Requests of other pages and other machines are refused."""

import pytest

from neural.board.security import (
    MAX_BODY_BYTES,
    MAX_QUERY_LENGTH,
    ServerConfig,
    is_loopback_host,
    open_listening_socket,
)
from tests.board.boards import AUTHORIZATION, PORT, TOKEN, create_client, write_finished_run

PUBLIC_CONFIG = ServerConfig("0.0.0.0", PORT, TOKEN)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    write_finished_run(root, steps=(0,))
    return root


@pytest.fixture
def client(runs):
    return create_client(runs)


@pytest.fixture
def remote_client(runs):
    return create_client(runs, PUBLIC_CONFIG, headers={}, follow_redirects=False)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        f"127.0.0.1.evil.example:{PORT}",
        f"127.0.0.1:{PORT + 1}",
        "127.0.0.1",
        f"localhost.evil.example:{PORT}",
        f"10.0.0.7:{PORT}",
        "",
        f"127.0.0.1:{PORT}@evil.example",
        "[::1",
        f":{PORT}",
        f"127.0.0.1:{PORT}:{PORT}",
        f"localhost:+{PORT}",
        "localhost:" + "1" * 5000,
    ],
)
def test_a_foreign_host_name_is_refused(client, host):
    for path in ("/", "/api/runs", "/bundle/neural.js"):
        answer = client.get(path, headers={"host": host})
        assert answer.status_code == 421, host
        assert "run" not in answer.text.replace("neural board", "")


@pytest.mark.parametrize(
    "host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"]
)
def test_the_names_of_this_machine_are_accepted(client, host):
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


def test_a_public_board_accepts_any_address_but_no_foreign_name(remote_client):
    assert (
        remote_client.get(
            "/api/runs", headers={"host": f"192.168.1.5:{PORT}", **AUTHORIZATION}
        ).status_code
        == 200
    )
    assert (
        remote_client.get(
            "/api/runs", headers={"host": f"evil.example:{PORT}", **AUTHORIZATION}
        ).status_code
        == 421
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://localhost:{PORT + 1}"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_the_api_refuses_cross_origin_requests(client, headers):
    assert client.get("/api/runs", headers=headers).status_code == 403
    assert client.post("/api/generate", json={}, headers=headers).status_code == 403


def test_another_page_may_link_to_the_board_but_not_load_its_script(client):
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=link).status_code == 200
    assert (
        client.get("/bundle/neural.js", headers={**link, "sec-fetch-mode": "no-cors"}).status_code
        == 403
    )


def test_no_response_allows_another_origin(client):
    for path in ("/", "/api/runs", "/nothing"):
        assert not [name for name in client.get(path).headers if name.startswith("access-control")]
    assert (
        client.options("/api/runs", headers={"origin": f"http://127.0.0.1:{PORT}"}).status_code
        == 405
    )


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_content_types_of_html_forms_are_refused(client, kind):
    assert (
        client.post("/api/generate", content=b"{}", headers={"content-type": kind}).status_code
        == 415
    )


def test_long_requests_are_refused_before_they_are_read(client):
    assert client.get("/api/runs", params={"after": "1" * MAX_QUERY_LENGTH}).status_code == 414
    assert client.get("/api/runs/" + "a" * MAX_QUERY_LENGTH).status_code == 414
    assert client.post("/api/segment", json={"text": "a" * MAX_BODY_BYTES}).status_code == 413
    assert (
        client.post(
            "/api/segment",
            content=b"",
            headers={"content-type": "application/json", "content-length": "9" * 30},
        ).status_code
        == 413
    )


def test_a_length_of_thousands_of_digits_is_refused(client):
    headers = {"content-type": "application/json", "content-length": "9" * 5000}
    assert client.post("/api/segment", content=b"", headers=headers).status_code == 413


def test_a_body_of_unknown_length_is_refused(client):
    answer = client.post(
        "/api/segment", content=iter([b"{", b"}"]), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 411


@pytest.mark.parametrize(
    "path", ["/", "/api/runs", "/nothing", "/api/runs/nothing", "/bundle/x", "/bundle/neural.js"]
)
def test_every_response_allows_only_scripts_of_the_board(client, path):
    headers = client.get(path).headers
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_refusals_have_the_security_headers_too(client):
    assert "content-security-policy" in client.get("/", headers={"host": "evil.example"}).headers


def test_the_page_has_no_inline_script_or_style(client):
    page = client.get("/").text
    assert "<script>" not in page
    assert "<style" not in page
    assert "onload" not in page


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.0.0.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.3", False),
        ("my-machine", False),
        ("", False),
    ],
)
def test_loopback_addresses_are_known(host, is_loopback):
    assert is_loopback_host(host) is is_loopback


def test_two_boards_cannot_share_a_port():
    first = open_listening_socket("127.0.0.1", 0)
    try:
        with pytest.raises(OSError, match="in use"):
            open_listening_socket("127.0.0.1", first.getsockname()[1])
    finally:
        first.close()
