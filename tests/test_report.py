"""Runs as one page."""

import base64
import json
import re

import numpy as np
import pytest

from neural.report import looked, report, run_data, write_report
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.views.report_page import page
from tests.report_runs import causal, write_run


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return [write_run(root, layers=2, heads=2, positions=5, seed=seed) for seed in range(2)]


def data_in(html):
    (found,) = re.findall(r'id="neural-data">(.*?)</script>', html, re.S)
    return json.loads(found)


def test_a_page_has_its_run_whole(seeds):
    data = data_in(report(seeds[:1]))
    (run,) = data["runs"]
    assert data["title"] == run["name"] == seeds[0].name
    assert (run["state"], run["step"], run["steps"], run["seed"]) == ("finished", 40, 40, 0)
    assert run["best"]["score"] == pytest.approx(1.7)
    assert run["scalars"]["valid/loss"] == {"steps": [0, 10, 20, 30], "values": pytest.approx([2.0, 1.9, 1.8, 1.7])}
    assert list(data["maps"][run["id"]]) == ["0", "10", "20", "30"]
    assert {one["code"] for one in data["groups"][0]["findings"]} >= {"EVO001"}


def test_a_page_names_no_folder_of_this_machine(seeds):
    assert str(seeds[0].parent) not in report(seeds)


def test_seeds_are_one_group(seeds):
    data = data_in(report(seeds))
    (group,) = data["groups"]
    assert group["runs"] == [one["id"] for one in data["runs"]] and len(set(group["runs"])) == 2
    assert data["title"] == "2 runs"


def test_runs_of_the_same_name_are_told_apart(tmp_path, seeds):
    other = write_run(tmp_path, layers=1, heads=1, positions=3, looks=1)
    other = other.rename(tmp_path / seeds[0].name)
    data = data_in(report([seeds[0], other]))
    assert [one["id"] for one in data["runs"]] == [seeds[0].name, f"{seeds[0].name} (2)"] == list(data["maps"])


def test_news_of_a_run_have_only_later_rows(seeds):
    with Run.open(seeds[0]) as run:
        news = run_data(run, after=20)
    assert news["scalars"]["train/loss"]["steps"] == list(range(21, 41))
    assert news["scalars"]["valid/loss"]["steps"] == [30] and news["measures"]["entropy"]["steps"] == [30]


def test_a_run_without_attention_has_a_page_too(tmp_path):
    run = Run.create(tmp_path, "bare", settings={}, program=None, environment={})
    run.log(1, {"train/loss": float("nan")})
    run.finish("failed", "out of luck")
    data = data_in(report([run.path]))
    assert data["runs"][0]["layers"] == [] == data["runs"][0]["map_steps"]
    assert data["runs"][0]["scalars"]["train/loss"]["values"] == [None]
    assert data["runs"][0]["message"] == "out of luck"


def test_a_run_of_six_layers_six_heads_and_forty_looks_is_less_than_5_MB(tmp_path):
    path = write_run(tmp_path, positions=64, looks=40)   # of noise: real maps are smaller
    out = write_report([path], tmp_path / "report.html")
    assert out.stat().st_size < 5_000_000
    run = data_in(out.read_text(encoding="utf-8"))["runs"][0]
    assert len(run["map_steps"]) == 40


def test_no_run_is_no_report():
    with pytest.raises(RunError, match="needs a run"):
        report([])


def test_a_page_that_cannot_be_written_is_told(seeds, tmp_path):
    with pytest.raises(RunError, match=r"missing/report\.html cannot be written"):
        write_report(seeds[:1], tmp_path / "missing" / "report.html")


def test_one_look_is_a_page_of_one_step():
    maps = {"block.0": causal(np.random.default_rng(0), 2, 3)}
    data = looked("GPT-2", maps, keys=["a", "b", "c"], measures={"entropy": np.ones((1, 2)), "spread": np.ones(1)},
                  causal=True, units={"entropy": "nats"}, remarks=["the weights are random"])  # fmt: skip
    (run,) = data["runs"]
    assert data["kind"] == "look" and run["labels"] == {"queries": ["a", "b", "c"], "keys": ["a", "b", "c"]}
    assert run["measures"]["entropy"]["shape"] == [1, 1, 2] and run["measures"]["spread"]["axes"] == "layer"
    assert base64.b64decode(data["maps"]["GPT-2"]["0"]).startswith(b"NSTP")
    assert data_in(page(data, "a look")) == data
