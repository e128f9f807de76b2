"""What the board answers: about runs, about broken ones, and about what is no run at all."""

import base64
import json
import sqlite3

import numpy as np
import pytest

from neural.tracking.quantised import unpack
from neural.tracking.run import Run
from tests.views.board.boards import HEADS, LAYERS, Written, client, written, written_segmenter

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return written(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def ask(made):
    return client(made.path.parent)


def lines(answer):
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_run_is_told_with_its_rows_and_without_its_place_on_the_disk(ask, made):
    run = ask.get(f"/api/runs/{made.name}").json()
    assert (run["id"], run["state"], run["layers"]) == (made.name, "finished", LAYERS)
    assert run["scalars"]["train/loss"]["steps"] == run["map_steps"] == [0, 50, 100]
    entropy = np.frombuffer(base64.b64decode(run["measures"]["entropy"]["data"]), "<f4")
    assert np.array_equal(entropy.reshape(3, len(LAYERS), HEADS), Run.open(made.path).measure("entropy")[1])
    assert str(made.path.parent) not in json.dumps(run)


def test_after_a_step_only_what_came_later_is_told(ask, made):
    run = ask.get(f"/api/runs/{made.name}", params={"after": 50}).json()
    assert run["scalars"]["train/loss"]["steps"] == run["map_steps"] == [100]


def test_an_answer_is_as_new_as_the_rows(tmp_path):
    live = Written(tmp_path)
    board = client(tmp_path)
    for step in (0, 50):
        live.look(step)
        assert board.get(f"/api/runs/{live.name}").json()["map_steps"][-1] == step
    live.run.close()


def test_maps_come_as_they_are_kept(ask, made):
    answer = ask.get(f"/api/runs/{made.name}/maps/50")
    assert answer.headers["content-type"] == "application/octet-stream"
    data = answer.content
    assert data[:4] == b"NSTP"
    kept = Run.open(made.path).maps(50)
    assert all(one in data for one in kept.values())
    assert unpack(kept[LAYERS[0]]).shape == (HEADS, 8, 8)


def test_findings_are_told(ask, made):
    found = ask.get(f"/api/runs/{made.name}/findings").json()
    assert {"code", "claim", "supported", "evidence", "figure"} <= set(found[0])


@pytest.mark.parametrize("path", [
    "/api/runs/nothing", "/api/runs/../{name}", "/api/runs/%2e%2e", "/api/runs/..%2f..%2fetc%2fpasswd",
    "/api/runs/%2fetc", "/api/runs/{name}%2f..", "/api/runs/{name}/settings.json",
    "/api/runs/{name}/maps/7", "/api/runs/{name}/maps/-1", "/api/runs/{name}/maps/..%2f1", "/bundle/../report_page.py",
    "/bundle/%2e%2e%2freport_page.py", "/bundle/NOTICE.txt", "/../pyproject.toml", "/runs", "/api/runs/{name}%00",
    "/api/events?run=..%2f..", "/api/events?run=nothing", "/api/runs/nothing/findings", "/api/",
])  # fmt: skip
def test_no_address_leads_out_of_the_folder(ask, made, path):
    answer = ask.get(path.format(name=made.name))
    assert answer.status_code == 404
    assert "sqlite" not in answer.text


@pytest.mark.parametrize("after", ["x", "1.5", "", "9" * 13, "--1", "１"])
def test_a_step_that_is_none_is_refused(ask, made, after):
    assert ask.get(f"/api/runs/{made.name}", params={"after": after}).status_code == 400


def test_names_are_data_and_never_markup(tmp_path):
    """The folder's name, the settings, the text of an event: JSON, which no browser runs."""
    made = written(tmp_path, looks=(0,), settings={"data": EVIL})
    place = tmp_path / EVIL.replace("/", "")
    made.path.rename(place)
    board = client(tmp_path)
    answer = board.get("/api/runs")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["runs"][0]["name"] == place.name
    assert EVIL not in board.get("/").text
    assert board.get("/api/runs/" + place.name).json()["settings"]["data"] == EVIL
    refused = board.get("/api/runs/" + EVIL + "?")
    assert refused.headers["content-type"].startswith(("text/plain", "application/json"))


def damage(path, how):
    if how == "rows":
        (path / "rows.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    elif how == "settings":
        (path / "settings.json").write_text('[{"a": 1}]')
    elif how == "program":
        (path / "program.neural").write_bytes(b"\xff\xfe\x00")
    elif how == "checkpoints":
        (path / "checkpoints" / "step-00000000.json").write_text("[]")
    else:
        db = sqlite3.connect(path / "rows.sqlite")
        db.execute({
            "shape": "UPDATE arrays SET shape = '[9999, 9999]'", "described": "UPDATE described SET value = '{{{'",
            "layers": "UPDATE described SET value = '7' WHERE key = 'attention/layers'",
            "maps": "UPDATE maps SET data = 'x'",
            "values": "UPDATE scalars SET value = 'text'", "tables": "DROP TABLE arrays",
            "texts": "INSERT INTO described VALUES ('generation/texts', '{\"x\": []}')",
        }[how])  # fmt: skip
        db.commit()
        db.close()


@pytest.mark.parametrize("how", [
    "rows", "settings", "program", "checkpoints", "shape", "described", "layers", "maps", "values", "tables", "texts",
])  # fmt: skip
def test_whatever_is_in_a_folder_the_board_answers_in_words(tmp_path, how):
    made = written(tmp_path, looks=(0,))
    damage(made.path, how)
    board = client(tmp_path)
    assert board.get("/api/runs").status_code == 200
    for more in ("", "/findings", "/maps/0"):
        answer = board.get(f"/api/runs/{made.name}{more}")
        assert answer.status_code in (200, 404, 422)
        assert "Traceback" not in answer.text


def test_a_text_is_written_with_what_every_character_looked_at(ask, made):
    asked = {"run": made.name, "prompt": "bad ", "tokens": 30, "seed": 3}
    first, *pieces, last = lines(ask.post("/api/write", json=asked))
    assert (first["prompt"], len(first["layers"])) == (list("bad "), 2)
    assert (len(pieces), last) == (30, {"done": 30})
    for number, one in enumerate(pieces):
        seen = np.frombuffer(base64.b64decode(one["seen"]), np.uint8).reshape(2, 2, one["keys"])
        assert one["first"] + one["keys"] == 4 + number   # up to the position before the new one
        assert np.allclose(((seen / 255) ** 2).sum(-1), 1, atol=0.05)
    assert lines(ask.post("/api/write", json=asked))[1:] == [*pieces, last]


def test_a_character_that_was_never_learned_is_named(ask, made):
    (only,) = lines(ask.post("/api/write", json={"run": made.name, "prompt": "Ω"}))
    assert "does not occur in what the network was trained on" in only["error"]


@pytest.mark.parametrize("asked", [
    {"prompt": "a"}, {"run": "x"}, {"prompt": ""}, {"prompt": "a", "tokens": 0}, {"prompt": "a", "tokens": 10**6},
    {"prompt": "a", "temperature": -1}, {"prompt": "a", "path": "/etc"}, {"prompt": "a" * 10_001}, {"prompt": ["a"]},
    [], {"prompt": "a", "temperature": float("inf")},
], ids=lambda asked: str(asked)[:40])  # fmt: skip
def test_what_makes_no_sense_is_refused_in_words(ask, made, asked):
    said = asked if asked in ([], {"prompt": "a"}, {"run": "x"}) else {"run": made.name, **asked}
    answer = ask.post("/api/write", content=json.dumps(said), headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.text.startswith("this cannot be done: ")


def test_a_run_that_is_not_there_cannot_write(ask):
    assert ask.post("/api/write", json={"run": "../x", "prompt": "a"}).status_code == 404
    assert ask.post("/api/cut", json={"run": "../x", "text": "a"}).status_code == 404


def test_a_network_that_cuts_no_texts_says_so(ask, made):
    (only,) = lines(ask.post("/api/cut", json={"run": made.name, "text": "One. Two."}))
    assert "it does not cut texts" in only["error"]


def test_a_text_is_cut_with_a_probability_at_every_gap(tmp_path):
    run = written_segmenter(tmp_path / "runs")
    text = "Apple pear plum. Fig apple.\n\nSaw file drill. Plane saw."
    asked = {"run": run.name, "text": text, "threshold": 0.0001}
    (found,) = lines(client(tmp_path / "runs").post("/api/cut", json=asked))
    assert [one["text"] for one in found["elements"]] == [
        "Apple pear plum.", "Fig apple.", "Saw file drill.", "Plane saw."
    ]  # fmt: skip
    assert found["elements"][0]["probability"] == 0
    assert all(0 < one["probability"] < 1 for one in found["elements"][1:])
    assert [part["first"] for part in found["parts"]] == [0, 1, 2, 3]


@pytest.mark.parametrize("text", ["", "  \n "])
def test_nothing_cannot_be_cut(ask, text):
    answer = ask.post("/api/cut", json={"text": text})
    assert answer.status_code == 422 or "empty" in lines(answer)[0]["error"]
