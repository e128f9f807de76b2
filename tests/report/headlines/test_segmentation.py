"""Headlines of segmenters: sentences and the strip of a held-out document."""

import pytest

from neural.report.headlines.segmentation import build_text_strip, format_share
from neural.report.run_report import build_page_data
from neural.report.segmentation_data import load_held_out
from neural.runs.evaluation_file import save_evaluation
from neural.runs.run import Run
from tests.report_runs import write_segmentation_run


def read_experiment(*paths):
    runs = [Run.open(path) for path in paths]
    try:
        (experiment,) = build_page_data(runs)["experiments"]
    finally:
        for run in runs:
            run.close()
    return experiment


def read_f1(path):
    with Run.open(path) as run:
        return format_share(run.scalars("valid/f1")[1].max())


def test_the_headline_has_the_best_f1_and_says_that_attention_stayed_uniform(tmp_path):
    path = write_segmentation_run(tmp_path)
    experiment = read_experiment(path)
    f1 = read_f1(path)
    assert f1.startswith(".")
    assert experiment["headline"] == f"Finds boundaries with F1 {f1}; its attention stayed uniform"
    assert experiment["link"]["route"]["pane"] == "segmentation"


def test_without_attention_nothing_is_said_about_it(tmp_path):
    path = write_segmentation_run(tmp_path, attention=None)
    assert read_experiment(path)["headline"] == f"Finds boundaries with F1 {read_f1(path)}"


def test_heads_with_roles_are_counted(tmp_path):
    path = write_segmentation_run(tmp_path, attention="previous token")
    assert read_experiment(path)["headline"].endswith("; 2 of 2 heads found a role")


def test_a_model_below_the_baseline_does_not_find_boundaries(tmp_path):
    path = write_segmentation_run(tmp_path, quality=-6.0)
    headline = read_experiment(path)["headline"]
    assert headline.startswith("Does not find boundaries yet: F1 .")
    # 24 true boundaries, and 23 gaps in each of 6 documents: 2 · 24 / (24 + 138)
    assert headline.endswith("and .30 with a boundary at every gap")


def test_calibration_and_baseline_are_details(tmp_path):
    plain = read_experiment(write_segmentation_run(tmp_path, "plain"))
    assert plain["details"] == [
        "A boundary at every gap would have F1 .30",
        "Its probabilities are not calibrated: `neural calibrate` does it",
    ]
    calibrated = read_experiment(write_segmentation_run(tmp_path, "other", calibrated=True))
    assert any("expected calibration error ." in detail for detail in calibrated["details"])


def test_the_newest_evaluation_is_a_detail(tmp_path):
    path = write_segmentation_run(tmp_path)
    lift = {"baseline": "text_tiling", "difference": {"value": 0.25, "low": 0.1, "high": 0.4}}
    scores = {
        "data": "9 documents",
        "rows": {"this run": {"boundary_f1": {"value": 0.7, "low": 0.6, "high": 0.8}}},
        "lifts": {"boundary_f1": lift},
    }
    save_evaluation(path, scores, [])
    expected = "On 9 documents: F1 .70; the best baseline, text tiling, has .45"
    assert read_experiment(path)["details"][0] == expected
    (path / "evaluation.json").write_text("{}")
    assert read_experiment(path)["details"][0].startswith("A boundary at every gap")


def test_settings_are_listed_by_their_f1(tmp_path):
    paths = {
        "labels": write_segmentation_run(tmp_path, "labels", labels=True, quality=6.0),
        "boundaries": write_segmentation_run(tmp_path, "boundaries"),
    }
    experiment = read_experiment(*paths.values())
    listed = [f"{name} {read_f1(path)}" for name, path in paths.items()]
    assert experiment["headline"] == f"Validation F1: {', '.join(listed)}"
    assert [figure["kind"] for figure in experiment["figures"]] == ["text_strip", "estimates"]


def test_seeds_are_averaged(tmp_path):
    paths = [write_segmentation_run(tmp_path, seed=seed) for seed in range(2)]
    headline = read_experiment(*paths)["headline"]
    assert ", mean of 2 seeds" in headline
    assert headline.endswith("; its attention stayed uniform")


def test_without_a_validation_there_is_no_claim(tmp_path):
    experiment = read_experiment(write_segmentation_run(tmp_path, validated=False))
    assert experiment["headline"] == "No validation yet"
    assert experiment["figures"] == []


def test_older_runs_have_a_headline_without_a_picture(tmp_path):
    path = write_segmentation_run(tmp_path, recorded=False)
    experiment = read_experiment(path)
    assert experiment["headline"].startswith(f"Finds boundaries with F1 {read_f1(path)}")
    assert experiment["figures"] == []
    assert experiment["link"]["route"]["pane"] == "curves"


def test_the_strip_shows_a_boundary_that_was_found(tmp_path):
    with Run.open(write_segmentation_run(tmp_path)) as run:
        held_out = load_held_out(run)
        strip = build_text_strip(held_out, "run")
    shown = held_out.record["shown"][strip["document"] - 1]
    elements = range(strip["first"], strip["first"] + len(strip["texts"]))
    assert strip["texts"] == [shown["texts"][element] for element in elements]
    assert strip["boundaries"] == held_out.record["boundaries"][shown["document"]]
    assert set(strip["boundaries"]) & set(strip["predicted"]) & set(elements)
    above = [element for element, p in enumerate(strip["probabilities"]) if p > strip["threshold"]]
    assert strip["predicted"] == above


@pytest.mark.parametrize(("share", "text"), [(0.714, ".71"), (1.0, "1.00"), (0.0, ".00")])
def test_shares_have_two_digits(share, text):
    assert format_share(share) == text
