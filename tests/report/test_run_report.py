"""Runs as one HTML page."""

import base64
import json
import re

import numpy as np
import pytest

from neural.report.run_report import (
    build_page_data,
    build_run_data,
    join_titles,
    pack_curve,
    remove_folders,
    render_report,
    write_run_page,
)
from neural.runs.errors import RunError
from neural.runs.evaluation_file import save_evaluation
from neural.runs.run import Run
from neural.workflows.analyze import group_findings
from tests.findings.synthetic_runs import write_synthetic_run
from tests.report_runs import write_run


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
    # the title is the name of the experiment, without the date that the folder's name begins with
    assert data["title"] == "six" and run["name"] == seeds[0].name
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


def test_a_page_has_names_of_files_for_absolute_paths():
    data = {"data": "/home/me/private/text.txt", "steps": 5, "command": ["/usr/bin/neural", "a/b"]}
    shared = {"data": "text.txt", "steps": 5, "command": ["neural", "a/b"]}
    assert remove_folders(data) == shared


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        (
            '{"file": "/home/me/a/digits.neural", "runs": "~/runs/x"}',
            '{"file": "digits.neural", "runs": "x"}',
        ),
        ("--set=data=/home/me/text.txt", "--set=data=text.txt"),
        ('train {\n  data: "/home/me/text.txt"\n}', 'train {\n  data: "text.txt"\n}'),
        (r"file C:\\Users\\me\\text.txt", "file text.txt"),
        ("https://example.org/a/b 3/4 m/s a/b/c ./a/b / x // comment", None),
    ],
)
def test_a_page_has_names_of_files_for_absolute_paths_inside_a_text(text, shared):
    assert remove_folders(text) == (text if shared is None else shared)


def test_seeds_are_one_group(seeds):
    data = read_page_data(render_report(seeds))
    (group,) = data["groups"]
    assert group["runs"] == [run["id"] for run in data["runs"]] and len(set(group["runs"])) == 2
    assert data["title"] == "six"


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
    out = write_run_page([path], tmp_path / "report.html")
    assert out.stat().st_size < 5_000_000
    run = read_page_data(out.read_text(encoding="utf-8"))["runs"][0]
    assert len(run["map_steps"]) == 40


def test_a_report_needs_a_run():
    with pytest.raises(RunError, match="needs a run"):
        render_report([])


def test_an_unwritable_page_is_a_run_error(seeds, tmp_path):
    with pytest.raises(RunError, match=r"missing/report\.html cannot be written"):
        write_run_page(seeds[:1], tmp_path / "missing" / "report.html")


def test_a_title_names_at_most_three_experiments():
    assert join_titles(["a"]) == "a"
    assert join_titles(["a", "b", "a"]) == "a and b"
    assert join_titles(["a", "b", "c"]) == "a, b and c"
    assert join_titles(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_the_trials_of_a_sweep_are_called_after_it(tmp_path):
    sweep = tmp_path / "2026-01-02_03-04-05_widths"
    sweep.mkdir()
    (sweep / "trials.json").write_text("{}")
    runs = [
        write_synthetic_run(
            sweep,
            0,
            scalars={"valid/loss": np.array([2.0, float(width)])},
            settings={"name": f"width-{width}_seed-0", "width": width},
        )
        for width in (1, 2)
    ]
    data = build_page_data(runs)
    assert data["title"] == "widths"
    (experiment,) = data["experiments"]
    assert experiment["title"] == "widths" and experiment["groups"] == ["width-1", "width-2"]
    assert data["groups"][0]["score"]["estimate"]["value"] == 1.0


def test_the_folds_of_a_sweep_are_one_group(tmp_path):
    sweep = tmp_path / "2026-01-02_03-04-05_flowers"
    sweep.mkdir()
    (sweep / "trials.json").write_text("{}")
    runs = [
        write_synthetic_run(
            sweep,
            0,
            scalars={"valid/loss": np.array([2.0, fold / 10])},
            settings={"name": f"fold-{fold}-5_seed-0", "fold": f"{fold}/5", "task": "supervised"},
        )
        for fold in range(1, 6)
    ]
    data = build_page_data(runs)
    (group,), (experiment,) = data["groups"], data["experiments"]
    assert group["label"] == experiment["title"] == data["title"] == "flowers"
    assert [run["fold"] for run in data["runs"]] == [f"{fold}/5" for fold in range(1, 6)]
    assert group["score"]["folds"] == 5
    assert experiment["cross_validation"]["rows"][0]["folds"] == pytest.approx(
        [0.1, 0.2, 0.3, 0.4, 0.5]
    )
    # claims generalise over seeds; five folds of one seed are no five seeds
    claims = [finding for finding in group["findings"] if finding["kind"] == "claim"]
    assert all((finding["number"]["seeds"] or 0) <= 1 for finding in claims)


def test_a_training_without_a_data_set_names_none(tmp_path):
    settings = {"name": "sentiment", "task": "tracked", "data": None}
    run = write_synthetic_run(tmp_path, 0, settings=settings)
    (experiment,) = build_page_data([run])["experiments"]
    assert (experiment["title"], experiment["data"]) == ("sentiment", "")
    (group,) = group_findings([run])
    assert group.title == "sentiment"


def test_groups_of_two_data_sets_with_one_label_are_told_apart(tmp_path):
    runs = [
        write_synthetic_run(tmp_path, 0, settings={"name": "small", "data": data})
        for data in ("birds", "trees")
    ]
    labels = [group["label"] for group in build_page_data(runs)["groups"]]
    assert labels == ["birds: small", "trees: small"]
    assert build_page_data(runs[:1])["groups"][0]["label"] == "small"


def test_key_settings_leave_out_defaults_and_facts_of_the_data(tmp_path):
    settings = {
        "data": "handbook",
        "vocabulary": "abc",
        "fingerprint": "0123",
        "validation_split": 0.1,
        "context": 64,
    }
    run = write_synthetic_run(tmp_path, 0, settings=settings)
    assert set(build_run_data(run)["changed_settings"]) == {"data", "context"}
    other = write_synthetic_run(tmp_path, 1, settings=settings | {"validation_split": 0.2})
    assert "validation_split" in build_run_data(other)["changed_settings"]


def test_the_newest_evaluation_is_in_the_data(tmp_path):
    run = write_synthetic_run(tmp_path, 0)
    assert build_run_data(run)["evaluation"] is None
    save_evaluation(run.path, {"data": "9 texts", "scores": {"bits": 2.0, "loss": 1.4}}, [])
    evaluation = build_run_data(run)["evaluation"]
    assert evaluation["data"] == "9 texts"
    # the monitored metric first
    assert [score["name"] for score in evaluation["scores"]] == ["loss", "bits"]


def unpack_curve(curve):
    steps, values = curve["steps"], curve["values"]
    if isinstance(steps, dict):
        steps = [steps["start"] + index * steps["every"] for index in range(steps["count"])]
    if isinstance(values, str):
        floats = np.frombuffer(base64.b64decode(values), "<f4").astype(float)
        values = [float(value) if np.isfinite(value) else None for value in floats]
    return {"steps": steps, "values": values}


@pytest.mark.parametrize(
    "values",
    [
        [float(np.float32(value)) for value in np.linspace(0.1, 7, 40)],
        list(np.linspace(0.1, 7, 40)),  # not 32-bit floats: they stay as they are
        [None, *(float(np.float32(value)) for value in np.linspace(-1, 1, 39))],
        [1e300] * 40,
    ],
)
def test_packed_curves_are_exact(values):
    for steps in (list(range(0, 400, 10)), [*range(39), 99]):
        curve = {"steps": steps, "values": values}
        packed = pack_curve(curve)
        assert unpack_curve(packed) == curve
        assert isinstance(packed["steps"], dict) == (steps[-1] == 390)
    assert pack_curve({"steps": [3], "values": [1.5]}) == {"steps": [3], "values": [1.5]}
