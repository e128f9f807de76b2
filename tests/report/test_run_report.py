"""Runs as one HTML page."""

import base64
import json
import re

import numpy as np
import pytest

from neural.report.html_page import render_page
from neural.report.run_report import (
    build_attention_page_data,
    build_run_data,
    render_report,
    write_report,
)
from neural.runs.errors import RunError
from neural.runs.run import Run
from tests.report_runs import random_causal_maps, write_run


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return [write_run(root, layers=2, heads=2, positions=5, seed=seed) for seed in range(2)]


def read_page_data(html):
    (json_text,) = re.findall(r'id="neural-data">(.*?)</script>', html, re.S)
    return json.loads(json_text)


def test_a_page_has_all_data_of_its_run(seeds):
    data = read_page_data(render_report(seeds[:1]))
    (run,) = data["runs"]
    assert data["title"] == run["name"] == seeds[0].name
    assert (run["state"], run["step"], run["steps"], run["seed"]) == ("finished", 40, 40, 0)
    assert run["best"]["score"] == pytest.approx(1.7)
    assert run["scalars"]["valid/loss"] == {
        "steps": [0, 10, 20, 30],
        "values": pytest.approx([2.0, 1.9, 1.8, 1.7]),
    }
    assert list(data["maps"][run["id"]]) == ["0", "10", "20", "30"]
    assert {finding["code"] for finding in data["groups"][0]["findings"]} >= {"EVO001"}


def test_a_page_names_no_folder_of_this_machine(seeds):
    assert str(seeds[0].parent) not in render_report(seeds)


def test_seeds_are_one_group(seeds):
    data = read_page_data(render_report(seeds))
    (group,) = data["groups"]
    assert group["runs"] == [run["id"] for run in data["runs"]] and len(set(group["runs"])) == 2
    assert data["title"] == "2 runs"


def test_runs_of_the_same_name_have_different_ids(tmp_path, seeds):
    other = write_run(tmp_path, layers=1, heads=1, positions=3, snapshots=1)
    other = other.rename(tmp_path / seeds[0].name)
    data = read_page_data(render_report([seeds[0], other]))
    assert (
        [run["id"] for run in data["runs"]]
        == [seeds[0].name, f"{seeds[0].name} (2)"]
        == list(data["maps"])
    )


def test_after_a_step_only_later_rows_are_included(seeds):
    with Run.open(seeds[0]) as run:
        data = build_run_data(run, after_step=20)
    assert data["scalars"]["train/loss"]["steps"] == list(range(21, 41))
    assert data["scalars"]["valid/loss"]["steps"] == [30]
    assert data["measures"]["entropy"]["steps"] == [30]


def test_a_run_without_attention_has_a_page_too(tmp_path):
    run = Run.create(tmp_path, "bare", settings={}, program=None, environment={})
    run.log(1, {"train/loss": float("nan")})
    run.finish("failed", "out of memory")
    data = read_page_data(render_report([run.path]))
    assert data["runs"][0]["layers"] == [] == data["runs"][0]["map_steps"]
    assert data["runs"][0]["scalars"]["train/loss"]["values"] == [None]
    assert data["runs"][0]["message"] == "out of memory"


def test_six_layers_six_heads_and_forty_snapshots_take_less_than_5_MB(tmp_path):
    path = write_run(tmp_path, positions=64, snapshots=40)  # of noise: real maps are smaller
    out = write_report([path], tmp_path / "report.html")
    assert out.stat().st_size < 5_000_000
    run = read_page_data(out.read_text(encoding="utf-8"))["runs"][0]
    assert len(run["map_steps"]) == 40


def test_a_report_needs_a_run():
    with pytest.raises(RunError, match="needs a run"):
        render_report([])


def test_an_unwritable_page_is_a_run_error(seeds, tmp_path):
    with pytest.raises(RunError, match=r"missing/report\.html cannot be written"):
        write_report(seeds[:1], tmp_path / "missing" / "report.html")


def test_a_snapshot_is_a_page_of_one_step():
    maps = {"block.0": random_causal_maps(np.random.default_rng(0), 2, 3)}
    data = build_attention_page_data(
        "GPT-2",
        maps,
        keys=["a", "b", "c"],
        measures={"entropy": np.ones((1, 2)), "spread": np.ones(1)},
        causal=True,
        units={"entropy": "nats"},
        notes=["the weights are random"],
    )
    (run,) = data["runs"]
    assert data["kind"] == "snapshot" and run["labels"] == {
        "queries": ["a", "b", "c"],
        "keys": ["a", "b", "c"],
    }
    assert (
        run["measures"]["entropy"]["shape"] == [1, 1, 2]
        and run["measures"]["spread"]["axes"] == "layer"
    )
    assert base64.b64decode(data["maps"]["GPT-2"]["0"]).startswith(b"NSTP")
    assert read_page_data(render_page(data, "a snapshot")) == data
