"""The first view: what each experiment shows, the runs folded by seed, and one run."""

import re

import numpy as np
import pytest

from neural.report.run_report import write_run_page
from neural.runs.evaluation_file import save_evaluation
from tests.findings.synthetic_runs import write_synthetic_run
from tests.report_runs import write_run

DATE = re.compile(r"\d{4}-\d\d-\d\d_\d\d")
TITLE = "Three experiments"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Paths of a language model, a segmenter and three paradigms with three seeds each."""
    root = tmp_path_factory.mktemp("runs")
    language_model = write_run(root, "letters", layers=2, heads=2, positions=9)
    segmenter = write_synthetic_run(
        root,
        0,
        scalars={"valid/f1": np.array([0.5, 0.7])},
        arrays={"relative_entropy": np.full((2, 1, 2), 0.99)},
        settings={"name": "cutter", "task": "segmentation"},
    ).path
    focus = [
        write_synthetic_run(
            root,
            seed,
            scalars={"valid/loss": np.array([2.0, 1.0 + number + seed / 10])},
            settings={"name": f"{paradigm}_seed-{seed}", "task": "focus", "paradigm": paradigm},
        ).path
        for number, paradigm in enumerate(("soft", "hard", "lvml"))
        for seed in range(3)
    ]
    save_evaluation(
        language_model, {"data": "77 characters", "scores": {"loss": 1.234, "bits": 1.78}}, []
    )
    return [language_model, segmenter, *focus]


@pytest.fixture(scope="module")
def report(runs):
    return write_run_page(runs, runs[0].parent / "report.html", title=TITLE).as_uri()


def read_headlines(tab):
    tab.locator(".experiment-card .headline").nth(2).wait_for()
    return tab.locator(".experiment-card .headline")


def test_three_sentences_with_numbers_are_above_the_fold(tab, report):
    tab.goto(report)
    headlines = read_headlines(tab)
    assert headlines.count() == 3
    for index in range(3):
        box = headlines.nth(index).bounding_box()
        assert box["y"] > 0 and box["y"] + box["height"] < 900
        assert re.search(r"\d", headlines.nth(index).inner_text())
    # cards stand side by side and have the same height
    boxes = [tab.locator(".experiment-card").nth(index).bounding_box() for index in range(3)]
    assert len({box["y"] for box in boxes}) == 1 and len({box["height"] for box in boxes}) == 1
    assert tab.locator("h1").first.inner_text() == TITLE


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_no_heading_is_the_name_of_a_folder(tab, report, runs, width):
    tab.set_viewport_size({"width": width, "height": 800})
    for address in (report, f"{report}#/overview?run={runs[0].name}"):
        tab.goto("about:blank")
        tab.goto(address)
        tab.locator(".card h2").first.wait_for()
        headings = tab.locator("h1, h2, h3").all_inner_texts()
        assert headings and not any(DATE.search(text) for text in headings)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_three_columns_fill_a_wide_screen(tab, report):
    tab.set_viewport_size({"width": 1920, "height": 900})
    tab.goto(report)
    read_headlines(tab)
    boxes = [tab.locator(".experiment-card").nth(index).bounding_box() for index in range(3)]
    assert len({box["y"] for box in boxes}) == 1
    assert boxes[2]["x"] + boxes[2]["width"] > 1600


def test_the_link_of_a_card_opens_its_view(tab, report, runs):
    tab.goto(report)
    read_headlines(tab)
    tab.locator(".experiment-card", has_text="letters").locator(".more button").click()
    tab.locator("nav .selected", has_text="Attention").wait_for()
    assert f"run={runs[0].name}" in tab.evaluate("location.hash")
    # back to the first view, which no run belongs to
    tab.go_back()
    assert read_headlines(tab).count() == 3


def test_samples_on_a_card_are_those_of_the_first_and_the_last_step(tab, report):
    tab.goto(report)
    read_headlines(tab)
    lines = tab.locator(".sample-lines > div")
    assert [text.split() for text in lines.all_inner_texts()] == [
        ["step", "0", "text", "0"],
        ["step", "30", "text", "3"],
    ]
    lines.nth(1).get_by_role("button").click()
    tab.locator("nav .selected", has_text="Samples").wait_for()
    assert "step=30" in tab.evaluate("location.hash")


def test_seeds_are_folded_until_they_are_asked_for(tab, report, runs):
    tab.goto(report)
    tab.locator(".run-table").wait_for()
    rows = tab.locator(".run-table tbody tr")
    assert rows.count() == 5  # two runs and three paradigms
    soft = rows.filter(has_text="soft")
    cells = soft.locator("td").all_inner_texts()
    assert cells[2] == "3 seeds" and cells[6] == "1.10" and cells[8] == "1 … 1.20"
    assert re.fullmatch(r"0\.\d+ … 1\.\d+", cells[7])  # the interval is wider than the range
    soft.get_by_role("button").click()
    assert rows.count() == 8
    repetitions = tab.locator(".run-table .repetition")
    assert [text.split("\t")[0].strip() for text in repetitions.all_inner_texts()] == [
        f"soft, seed {seed}" for seed in range(3)
    ]
    assert [row.locator("td").nth(6).inner_text() for row in repetitions.all()] == [
        "1",
        "1.10",
        "1.20",
    ]
    repetitions.nth(1).get_by_role("button").click()
    tab.locator("h2", has_text="soft, seed 1").wait_for()
    tab.wait_for_function(
        "name => location.hash.includes('run=' + name)", arg=runs[3].name
    )  # written a moment after the change


def test_the_newest_evaluation_is_the_score_of_a_run(tab, report, runs):
    tab.goto(f"{report}#/overview?run={runs[0].name}")
    score = tab.locator(".main-score")
    score.wait_for()
    assert score.locator("b").inner_text() == "1.23"
    assert "77 characters" in score.inner_text()
    assert tab.get_by_text("best validation", exact=True).count() == 1
    tab.get_by_role("button", name="all experiments").click()
    assert read_headlines(tab).count() == 3


def test_key_settings_are_choices_of_the_user(tab, report, runs):
    tab.goto(f"{report}#/overview?run={runs[0].name}")
    settings = tab.locator("section", has=tab.get_by_role("heading", name="Key settings"))
    settings.last.locator("dt").first.wait_for()
    keys = settings.last.locator("dt").all_inner_texts()
    assert "training.steps" in keys
    assert not {"vocabulary", "fingerprint", "validation_split"} & set(keys)


def test_folds_are_one_row_with_their_own_table(tab, tmp_path):
    scores = {"small": [0.5, 0.6, 0.7], "large": [0.9, 0.8, 0.85]}
    paths = [
        write_synthetic_run(
            tmp_path,
            0,
            scalars={"valid/loss": np.array([1 - score]), "valid/accuracy": np.array([score])},
            settings={"name": f"{label}_fold-{fold}-3_seed-0", "fold": f"{fold}/3"}
            | {"task": "supervised", "data": "flowers", "width": label},
        ).path
        for label, by_fold in scores.items()
        for fold, score in enumerate(by_fold, 1)
    ]
    tab.goto(write_run_page(paths, tmp_path / "report.html").as_uri())
    tab.locator(".fold-table").wait_for()
    assert tab.locator(".run-table tbody tr").count() == 2
    assert tab.locator(".run-table tbody td:nth-child(3)").all_inner_texts() == ["3 folds"] * 2
    rows = [
        row.locator("td").all_inner_texts() for row in tab.locator(".fold-table tbody tr").all()
    ]
    # losses; the best first
    assert [row[:5] for row in rows] == [
        ["large", "0.100", "0.200", "0.150", "0.150"],
        ["small", "0.500", "0.400", "0.300", "0.400"],
    ]
    assert rows[0][6] == "best"


def test_two_hundred_runs_are_a_short_table(tab, tmp_path):
    from neural.report.html_page import render_page
    from neural.report.run_report import build_page_data

    runs = [
        write_synthetic_run(tmp_path, seed, scalars={"valid/loss": np.array([2.0, 1 + seed / 9])})
        for seed in range(5)
    ]
    data = build_page_data(runs)
    (group,), (experiment,), seeds = data["groups"], data["experiments"], data["runs"]
    data["runs"] = [{**run, "id": f"{width} {run['id']}"} for width in range(40) for run in seeds]
    data["groups"] = [
        {**group, "label": f"width-{width}", "runs": [f"{width} {run['id']}" for run in seeds]}
        for width in range(40)
    ]
    experiment["groups"] = [group["label"] for group in data["groups"]]
    experiment["runs"] = [run["id"] for run in data["runs"]]
    path = tmp_path / "report.html"
    path.write_text(render_page(data, "many"), encoding="utf-8")
    tab.goto(path.as_uri())
    tab.locator(".run-table").wait_for()
    rows = tab.locator(".run-table tbody tr")
    assert rows.count() == 25
    tab.get_by_role("button", name="show 15 more experiments").click()
    assert rows.count() == 40


def test_a_capture_says_what_was_captured(tab, tmp_path):
    from neural.report.html_page import render_page
    from tests.map_pages import build_maps_page

    entropy = np.array([[0.2, 0.9], [0.5, 0.6]])
    data = build_maps_page(
        "my model",
        {"a": np.full((2, 3, 3), 1 / 3), "b": np.full((2, 3, 3), 1 / 3)},
        keys=["one", "two", "three"],
        measures={"relative_entropy": entropy},
        roles=[["previous token", "mixed"], ["mixed", "mixed"]],
    )
    path = tmp_path / "capture.html"
    path.write_text(render_page(data, "my model"), encoding="utf-8")
    tab.goto(f"{path.as_uri()}#/overview")
    tab.get_by_role("heading", name="Heads that stand out").wait_for()
    text = tab.locator("main").inner_text()
    assert "2 layers × 2 heads" in text and "3: one two three" in text
    assert "1 of 4 heads have one" in text
    tab.locator("li", has_text="attends most broadly").get_by_role("button", name="L0 h1").click()
    tab.locator("nav .selected", has_text="Attention").wait_for()
    assert "layer=0&head=1" in tab.evaluate("location.hash")
