"""Responses of the board: about runs, damaged runs and folders that are no runs."""

import base64
import json
import sqlite3

import numpy as np
import pytest

from neural.capture.map_encoding import decode_map
from neural.report import run_report
from neural.runs.run import Run
from tests.board.boards import (
    HEADS,
    LAYERS,
    LiveRun,
    create_client,
    write_finished_run,
    write_segmenter_run,
)

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    return write_finished_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def client(finished_run):
    return create_client(finished_run.path.parent)


def parse_lines(answer):
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_run_response_has_its_rows_and_no_path_of_the_disk(client, finished_run):
    run = client.get(f"/api/runs/{finished_run.name}").json()
    assert (run["id"], run["state"], run["layers"]) == (finished_run.name, "finished", LAYERS)
    assert run["scalars"]["train/loss"]["steps"] == run["map_steps"] == [0, 50, 100]
    entropy = np.frombuffer(base64.b64decode(run["measures"]["entropy"]["data"]), "<f4")
    assert np.array_equal(
        entropy.reshape(3, len(LAYERS), HEADS), Run.open(finished_run.path).measure("entropy")[1]
    )
    assert str(finished_run.path.parent) not in json.dumps(run)


def test_after_a_step_only_later_rows_are_sent(client, finished_run):
    run = client.get(f"/api/runs/{finished_run.name}", params={"after": 50}).json()
    assert run["scalars"]["train/loss"]["steps"] == run["map_steps"] == [100]


def test_a_response_is_as_new_as_the_rows(tmp_path):
    live = LiveRun(tmp_path)
    board = create_client(tmp_path)
    for step in (0, 50):
        live.write_step(step)
        assert board.get(f"/api/runs/{live.name}").json()["map_steps"][-1] == step
    live.run.close()


def test_a_response_belongs_to_one_commit(tmp_path, monkeypatch):
    """Else a client that asks for rows after the last curve point would miss older measures."""
    live = LiveRun(tmp_path)
    live.write_step(0)
    read_measures = run_report.collect_recorded_data

    def read_measures_then_write(run, *, after):
        recorded = read_measures(run, after=after)
        live.write_step(50)
        return recorded

    monkeypatch.setattr(run_report, "collect_recorded_data", read_measures_then_write)
    run = create_client(tmp_path).get(f"/api/runs/{live.name}").json()
    assert run["scalars"]["train/loss"]["steps"] == run["map_steps"] == [0]
    live.run.close()


def test_maps_are_sent_as_they_are_stored(client, finished_run):
    answer = client.get(f"/api/runs/{finished_run.name}/maps/50")
    assert answer.headers["content-type"] == "application/octet-stream"
    data = answer.content
    assert data[:4] == b"NSTP"
    stored = Run.open(finished_run.path).maps(50)
    assert all(maps in data for maps in stored.values())
    assert decode_map(stored[LAYERS[0]]).shape == (HEADS, 8, 8)


def test_findings_are_sent(client, finished_run):
    findings = client.get(f"/api/runs/{finished_run.name}/findings").json()
    assert {"code", "claim", "supported", "evidence", "formatted"} <= set(findings[0])


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/nothing",
        "/api/runs/../{name}",
        "/api/runs/%2e%2e",
        "/api/runs/..%2f..%2fetc%2fpasswd",
        "/api/runs/%2fetc",
        "/api/runs/{name}%2f..",
        "/api/runs/{name}/settings.json",
        "/api/runs/{name}/maps/7",
        "/api/runs/{name}/maps/-1",
        "/api/runs/{name}/maps/..%2f1",
        "/bundle/../html_page.py",
        "/bundle/%2e%2e%2fhtml_page.py",
        "/bundle/NOTICE.txt",
        "/../pyproject.toml",
        "/runs",
        "/api/runs/{name}%00",
        "/api/events?run=..%2f..",
        "/api/events?run=nothing",
        "/api/runs/nothing/findings",
        "/api/",
    ],
)
def test_no_url_leads_out_of_the_folder(client, finished_run, path):
    answer = client.get(path.format(name=finished_run.name))
    assert answer.status_code == 404
    assert "sqlite" not in answer.text


@pytest.mark.parametrize("after", ["x", "1.5", "", "9" * 13, "--1", "１"])
def test_an_invalid_step_is_refused(client, finished_run, after):
    assert client.get(f"/api/runs/{finished_run.name}", params={"after": after}).status_code == 400


def test_names_are_data_and_never_markup(tmp_path):
    """The folder's name, the settings, the text of an event: JSON, which no browser executes."""
    finished_run = write_finished_run(tmp_path, steps=(0,), settings={"data": EVIL})
    path = tmp_path / EVIL.replace("/", "")
    finished_run.path.rename(path)
    board = create_client(tmp_path)
    answer = board.get("/api/runs")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["runs"][0]["name"] == path.name
    assert EVIL not in board.get("/").text
    assert board.get("/api/runs/" + path.name).json()["settings"]["data"] == EVIL
    refused = board.get("/api/runs/" + EVIL + "?")
    assert refused.headers["content-type"].startswith(("text/plain", "application/json"))


def damage(path, kind):
    if kind == "rows":
        (path / "rows.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    elif kind == "settings":
        (path / "settings.json").write_text('[{"a": 1}]')
    elif kind == "program":
        (path / "program.neural").write_bytes(b"\xff\xfe\x00")
    elif kind == "checkpoints":
        (path / "checkpoints" / "step-00000000.json").write_text("[]")
    else:
        db = sqlite3.connect(path / "rows.sqlite")
        db.execute(
            {
                "shape": "UPDATE arrays SET shape = '[9999, 9999]'",
                "metadata": "UPDATE metadata SET value = '{{{'",
                "layers": "UPDATE metadata SET value = '7' WHERE key = 'attention/layers'",
                "maps": "UPDATE maps SET data = 'x'",
                "values": "UPDATE scalars SET value = 'text'",
                "tables": "DROP TABLE arrays",
                "texts": "INSERT INTO metadata VALUES ('generation/samples', '{\"x\": []}')",
            }[kind]
        )
        db.commit()
        db.close()


@pytest.mark.parametrize(
    "kind",
    [
        "rows",
        "settings",
        "program",
        "checkpoints",
        "shape",
        "metadata",
        "layers",
        "maps",
        "values",
        "tables",
        "texts",
    ],
)
def test_a_damaged_run_gives_an_error_message_and_no_traceback(tmp_path, kind):
    finished_run = write_finished_run(tmp_path, steps=(0,))
    damage(finished_run.path, kind)
    board = create_client(tmp_path)
    assert board.get("/api/runs").status_code == 200
    for more in ("", "/findings", "/maps/0"):
        answer = board.get(f"/api/runs/{finished_run.name}{more}")
        assert answer.status_code in (200, 404, 422)
        assert "Traceback" not in answer.text


def test_text_is_generated_with_the_attention_weights_of_every_token(client, finished_run):
    body = {"run": finished_run.name, "prompt": "bad ", "tokens": 30, "seed": 3}
    first, *tokens, last = parse_lines(client.post("/api/generate", json=body))
    assert (first["prompt"], len(first["layers"])) == (list("bad "), 2)
    assert (len(tokens), last) == (30, {"done": 30})
    for index, token in enumerate(tokens):
        weights = np.frombuffer(base64.b64decode(token["weights"]), np.uint8)
        weights = weights.reshape(2, 2, token["keys"])
        # up to the position before the new token
        assert token["first"] + token["keys"] == 4 + index
        assert np.allclose(((weights / 255) ** 2).sum(-1), 1, atol=0.05)
    assert parse_lines(client.post("/api/generate", json=body))[1:] == [*tokens, last]


def test_a_character_outside_of_the_vocabulary_is_named(client, finished_run):
    (only,) = parse_lines(
        client.post("/api/generate", json={"run": finished_run.name, "prompt": "Ω"})
    )
    assert "does not occur in the training text" in only["error"]


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": "a"},
        {"run": "x"},
        {"prompt": ""},
        {"prompt": "a", "tokens": 0},
        {"prompt": "a", "tokens": 10**6},
        {"prompt": "a", "temperature": -1},
        {"prompt": "a", "path": "/etc"},
        {"prompt": "a" * 10_001},
        {"prompt": ["a"]},
        [],
        {"prompt": "a", "temperature": float("inf")},
    ],
    ids=lambda body: str(body)[:40],
)
def test_an_invalid_request_is_refused_with_a_message(client, finished_run, body):
    if body not in ([], {"prompt": "a"}, {"run": "x"}):
        body = {"run": finished_run.name, **body}
    answer = client.post(
        "/api/generate", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.text.startswith("invalid request: ")


def test_a_missing_run_cannot_generate_or_segment(client):
    assert client.post("/api/generate", json={"run": "../x", "prompt": "a"}).status_code == 404
    assert client.post("/api/segment", json={"run": "../x", "text": "a"}).status_code == 404


def test_a_network_that_does_not_segment_texts_is_named(client, finished_run):
    (only,) = parse_lines(
        client.post("/api/segment", json={"run": finished_run.name, "text": "One. Two."})
    )
    assert "does not segment texts" in only["error"]


def test_a_text_is_segmented_with_a_probability_at_every_gap(tmp_path):
    run = write_segmenter_run(tmp_path / "runs")
    text = "Apple pear plum. Fig apple.\n\nSaw file drill. Plane saw."
    body = {"run": run.name, "text": text, "threshold": 0.0001}
    (result,) = parse_lines(create_client(tmp_path / "runs").post("/api/segment", json=body))
    assert [element["text"] for element in result["elements"]] == [
        "Apple pear plum.",
        "Fig apple.",
        "Saw file drill.",
        "Plane saw.",
    ]
    assert result["elements"][0]["probability"] == 0
    assert all(0 < element["probability"] < 1 for element in result["elements"][1:])
    assert [segment["first"] for segment in result["segments"]] == [0, 1, 2, 3]


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_text_is_refused(client, text):
    answer = client.post("/api/segment", json={"text": text})
    assert answer.status_code == 422 or "empty" in parse_lines(answer)[0]["error"]
