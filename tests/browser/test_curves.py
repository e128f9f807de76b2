"""Curves and measures in a real Chromium: what is drawn is what was stored."""

import csv
import io
import math
import random
from itertools import pairwise

import numpy as np
import pytest

from neural.core.settings import dump_settings
from neural.report.html_page import render_page
from neural.report.run_report import build_page_data, write_run_page
from neural.runs.run import Run
from neural.tasks.language_model.task import LanguageModel
from tests.map_pages import build_maps_page
from tests.report_runs import write_run

RECORD_TEXTS = """
    // texts of every canvas since it was last cleared, with their edges in pixels of the canvas
    window.drawnTexts = new Map()
    const {fillText, clearRect} = CanvasRenderingContext2D.prototype
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
        const width = this.measureText(text).width
        const place = this.getTransform().transformPoint({x, y})
        const share = {center: 0.5, right: 1, end: 1}[this.textAlign] ?? 0
        const left = place.x - share * width
        const axis = this.textAlign === 'center' ? 'x' : 'y'
        if (!drawnTexts.has(this.canvas)) drawnTexts.set(this.canvas, [])
        drawnTexts.get(this.canvas).push({text, axis, left, right: left + width, top: place.y})
        return fillText.call(this, text, x, y, ...rest)
    }
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
        drawnTexts.delete(this.canvas)
        return clearRect.apply(this, box)
    }
"""

READ_TEXTS = """() => [...document.querySelectorAll('.chart')].map(chart => {
    const canvas = chart.querySelector('.plot canvas')
    return {name: chart.dataset.chart, width: canvas.width, texts: drawnTexts.get(canvas) ?? []}
})"""

NOISE = random.Random(3)
NOISY_LOSS = {step: 4 / math.sqrt(step) + NOISE.random() for step in range(1, 101)}
VALID_LOSS = {25: 1.3470298251429471, 50: 1.2, 75: 1.4951, 100: 1.1000000000000001}

ODD_CURVES = {
    "constant": dict.fromkeys(range(10), 2.5),
    "tiny": {step: 2.63 + 1e-9 * (step % 3) for step in range(40)},
    "large": {step: 1e12 * (1 + step) for step in range(10)},
    "small": {step: 1e-12 * (1 + step) for step in range(10)},
    "negative": {step: -3.0 - step / 7 for step in range(40)},
    "one-point": {7: 0.123456},
    "two-points": {7: 0.5, 8: 0.500001},
    "gaps": {step: math.nan if step % 5 == 0 else step**0.5 for step in range(60)},
    "late": {10**12 + step: 3.0 / (1 + step) for step in range(40)},
    "signs": {step: (step - 20) / 3 for step in range(40)},
}


def write_curves(root, name, curves, *, task="language_model", seed=0):
    """Write a finished run that has nothing but scalars: name → step → value."""
    settings = dump_settings(
        LanguageModel.Settings.model_validate(
            {"name": name, "data": "handbook", "training": {"steps": 100, "seed": seed}}
        )
    )
    run = Run.create(
        root,
        name,
        settings=settings | {"task": task, "variant": name},
        program=None,
        environment={"python": "3.11"},
    )
    for curve, points in curves.items():
        for step, value in points.items():
            run.log(step, {curve: value})
    run.finish("finished")
    return run.path


@pytest.fixture(scope="module")
def odd_report(tmp_path_factory):
    """Ten runs of different tasks, so that each has charts of its own."""
    root = tmp_path_factory.mktemp("odd")
    paths = [
        write_curves(root, name, {"train/loss": points, "valid/loss": points}, task=name)
        for name, points in ODD_CURVES.items()
    ]
    return write_run_page(paths, root / "report.html").as_uri(), [path.name for path in paths]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Two networks, one of them with two seeds."""
    root = tmp_path_factory.mktemp("runs")
    curves = {
        "train/loss": NOISY_LOSS,
        "train/learning_rate": {step: 0.01 * (1 - step / 101) for step in range(1, 101)},
        "valid/loss": VALID_LOSS,
        "valid/empty": dict.fromkeys(VALID_LOSS, math.nan),
        "generation/bits": {50: 3.5, 100: 2.5},
    }
    higher = {"train/loss": {step: value + 4 for step, value in NOISY_LOSS.items()}}
    paths = [
        write_curves(root, "low", curves),
        write_curves(root, "high", higher),
        write_curves(root, "high", {"train/loss": {1: 8.0, 100: 5.0}}, seed=1),
    ]
    return write_run_page(paths, root / "report.html").as_uri()


def find_chart(tab, name):
    return tab.locator(f".chart[data-chart='{name}']")


def point_at(tab, name, step, *, last=100, first=1):
    """Move the pointer to a step of a chart whose axis is linear."""
    area = find_chart(tab, name).locator(".u-over")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    share = (step - first) / (last - first)
    # the right edge is already outside
    tab.mouse.move(box["x"] + share * (box["width"] - 1), box["y"] + box["height"] / 2)


def count_pixels(tab, name, key):
    """How many pixels of a chart have exactly the colour of a line in the legend."""
    return tab.evaluate(
        """([name, key]) => {
            const swatch = [...document.querySelectorAll('.curve-section > .legend li')]
                .find(item => item.innerText.includes(key)).querySelector('i')
            const wanted = getComputedStyle(swatch).backgroundColor.match(/\\d+/g).map(Number)
            const canvas = document.querySelector(`.chart[data-chart='${name}'] .plot canvas`)
            const copy = new OffscreenCanvas(canvas.width, canvas.height)
            const context = copy.getContext('2d', {willReadFrequently: true})
            context.drawImage(canvas, 0, 0)
            const {data} = context.getImageData(0, 0, canvas.width, canvas.height)
            let count = 0
            for (let at = 0; at < data.length; at += 4)
                if (wanted.every((level, channel) => data[at + channel] === level)) count++
            return count
        }""",
        [name, key],
    )


@pytest.mark.parametrize("axes", ["", "&log=xy"])
def test_ticks_are_inside_their_canvas_and_differ_from_their_neighbours(tab, odd_report, axes):
    address, runs = odd_report
    tab.add_init_script(RECORD_TEXTS)
    for run in runs:
        tab.goto("about:blank")
        tab.goto(f"{address}#/curves?run={run}{axes}")
        tab.locator(".chart .plot canvas").nth(1).wait_for()
        charts = tab.evaluate(READ_TEXTS)
        assert [chart["name"] for chart in charts] == ["train/loss", "valid/loss"]
        for chart in charts:
            across = sorted(
                (t for t in chart["texts"] if t["axis"] == "x"), key=lambda t: t["left"]
            )
            up = sorted((t for t in chart["texts"] if t["axis"] == "y"), key=lambda t: t["top"])
            assert len(across) >= 2 and len(up) >= 2, run
            for text in chart["texts"]:
                assert text["left"] >= 0 and text["right"] <= chart["width"], (run, text)
            for labels in (across, up):
                for label, neighbour in pairwise(labels):
                    assert label["text"] != neighbour["text"], (run, label)
            for label, neighbour in pairwise(across):
                assert label["right"] < neighbour["left"], (run, label, neighbour)


def test_a_tiny_range_is_labelled_with_its_offset(tab, odd_report):
    address, runs = odd_report
    tab.goto(f"{address}#/curves?run={next(run for run in runs if 'tiny' in run)}")
    tab.locator(".axis-offset.up", has_text="2.63 +").first.wait_for()
    tab.goto(f"{address}#/curves?run={next(run for run in runs if 'late' in run)}")
    tab.locator(".axis-offset.across", has_text="1,000,000,000,000 +").first.wait_for()


def test_results_on_held_out_data_are_never_smoothed(tab, report):
    tab.goto(f"{report}#/curves?hide=high")
    stored = find_chart(tab, "valid/loss").locator(".cursor-value b")
    slider = tab.get_by_label("smoothing")
    for strength in ("0", "3", "7"):
        slider.fill(strength)
        for step, value in VALID_LOSS.items():
            point_at(tab, "valid/loss", step)
            find_chart(tab, "valid/loss").locator(f".cursor-value[data-step='{step}']").wait_for()
            assert float(stored.get_attribute("data-value")) == value
            assert "smoothed" not in find_chart(tab, "valid/loss").inner_text()
        # the curve of training is smoothed, and its stored value comes first
        point_at(tab, "train/loss", 50)
        tab.locator(".cursor-value[data-step='50']").first.wait_for()
        training = find_chart(tab, "train/loss")
        assert (
            float(training.locator("b[data-value]").first.get_attribute("data-value"))
            == (NOISY_LOSS[50])
        )
        assert ("smoothed" in training.inner_text()) == (strength != "0")
        assert "smoothed" not in find_chart(tab, "train/learning_rate").inner_text()
    tab.wait_for_function("() => location.hash.includes('smooth=7')")


def test_hovering_one_chart_reads_the_same_step_in_all(tab, report):
    tab.goto(f"{report}#/curves")
    tab.locator(".chart").first.wait_for()  # the page decodes its data after it is loaded
    charts = tab.locator(".chart").count()
    assert charts == 4
    for name, step in (("train/loss", 37), ("valid/loss", 75)):
        point_at(tab, name, step)
        tab.locator(f".cursor-value[data-step='{step}']").nth(charts - 1).wait_for()
    # a curve without this step says which one it shows
    assert "3.500 at 50" in find_chart(tab, "generation/bits").inner_text().replace("\n", " ")
    tab.mouse.move(2, 2)
    tab.locator(".cursor-value[data-step]").first.wait_for(state="detached")


def test_the_saved_table_has_the_stored_points(tab, report):
    tab.goto(f"{report}#/curves?smooth=6&zoom=10~20")
    chart = find_chart(tab, "train/loss")
    chart.locator(".export-menu summary").click()
    with tab.expect_download() as download:
        chart.get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))
    by_run = {}
    for row in rows:
        by_run.setdefault(row["run"], {})[int(row["step"])] = float(row["train/loss"])
    assert by_run == {
        "low": NOISY_LOSS,
        "high, seed 0": {step: value + 4 for step, value in NOISY_LOSS.items()},
        "high, seed 1": {1: 8.0, 100: 5.0},
    }


def test_a_hidden_line_stays_hidden_after_zoom(tab, report):
    tab.goto(f"{report}#/curves")
    legend = tab.locator(".curve-section > .legend").first
    find_chart(tab, "train/loss").locator(".plot canvas").wait_for()
    assert count_pixels(tab, "train/loss", "high") > 20
    legend.get_by_role("button", name="high").click()
    tab.wait_for_function("() => location.hash.includes('hide=high')")
    assert count_pixels(tab, "train/loss", "high") == 0
    point_at(tab, "train/loss", 20)
    tab.mouse.down()
    point_at(tab, "train/loss", 60)
    tab.mouse.up()
    tab.get_by_role("button", name="show all").wait_for()
    assert count_pixels(tab, "train/loss", "high") == 0 < count_pixels(tab, "train/loss", "low")
    # all charts have the same zoom; without it this would be step 75
    for name in ("train/loss", "valid/loss"):
        point_at(tab, name, 50, first=20, last=60)
        find_chart(tab, name).locator(".cursor-value[data-step='50']").wait_for()
    # the address is written a moment after the last change
    tab.wait_for_function("() => location.hash.includes('zoom=')")
    url = tab.evaluate("location.href")
    tab.goto("about:blank")
    tab.goto(url)  # the address has both
    tab.get_by_role("button", name="show all").wait_for()
    find_chart(tab, "train/loss").locator(".plot canvas").wait_for()
    assert count_pixels(tab, "train/loss", "high") == 0 < count_pixels(tab, "train/loss", "low")
    tab.get_by_role("button", name="show all").click()
    legend.get_by_role("button", name="low").click(modifiers=["Shift"])  # already alone: shows all
    legend.get_by_role("button", name="low", pressed=True).wait_for()
    legend.get_by_role("button", name="high", pressed=True).wait_for()
    legend.get_by_role("button", name="high").dblclick()
    legend.get_by_role("button", name="low", pressed=False).wait_for()


def test_an_empty_chart_takes_no_space(tab, report):
    tab.goto(f"{report}#/curves")
    tab.locator(".chart .plot canvas").first.wait_for()
    assert find_chart(tab, "valid/empty").count() == 0
    assert tab.locator("[data-section='valid']").count() == 0
    tab.get_by_text("All values are NaN: valid/empty (4)").wait_for()


def test_sections_fold_and_curves_are_found_pinned_and_enlarged(tab, report):
    tab.goto(f"{report}#/curves")
    titles = tab.locator(".curve-section h2")
    titles.first.wait_for()
    assert [text.strip("▾ ").split()[0] for text in titles.all_inner_texts()] == [
        "Loss",
        "Training",
        "Generation",
    ]
    tab.get_by_role("button", name="Training").click()
    find_chart(tab, "train/learning_rate").wait_for(state="detached")
    tab.get_by_label("find a curve").fill("learning")
    find_chart(tab, "train/learning_rate").wait_for()
    assert tab.locator(".chart").count() == 1
    tab.get_by_label("find a curve").fill("")
    tab.get_by_role("button", name="pin generation/bits").click()
    first = tab.locator(".chart").first
    assert first.get_attribute("data-chart") == "generation/bits"
    narrow = first.bounding_box()["width"]
    tab.get_by_role("button", name="enlarge train/loss").click()
    tab.locator(".chart.wide").wait_for()
    assert find_chart(tab, "train/loss").bounding_box()["width"] > 1.2 * narrow
    tab.wait_for_function(
        "() => ['pins=', 'wide=', 'open='].every(key => location.hash.includes(key))"
    )


def test_of_200_runs_twelve_have_a_colour(tab, tmp_path):
    path = write_curves(tmp_path, "base", {"train/loss": {step: 1 / step for step in range(1, 50)}})
    data = build_page_data([Run.open(path)])
    [run], [group] = data["runs"], data["groups"]
    curve = run["scalars"]["train/loss"]
    data["runs"], data["groups"] = [], []
    for number in range(200):
        values = [value + number for value in curve["values"]]
        scalars = {"train/loss": {"steps": curve["steps"], "values": values}}
        name = f"network-{number:03}"
        data["runs"].append(run | {"id": name, "name": name, "scalars": scalars})
        data["groups"].append(group | {"label": name, "runs": [name]})
    data["experiments"] = []
    page = tmp_path / "many.html"
    page.write_text(render_page(data, "many"), encoding="utf-8")
    tab.goto(f"{page.as_uri()}#/curves?run=network-150")
    legend = tab.locator(".curve-section > .legend").first
    legend.wait_for()
    names = legend.locator("button").all_inner_texts()
    assert len(names) == 12 and "network-150" in [name.strip() for name in names]
    assert "188 more" in legend.inner_text()
    find_chart(tab, "train/loss").locator(".plot canvas").wait_for()
    point_at(tab, "train/loss", 25, last=49)  # half way up: the line of about run 100
    name = find_chart(tab, "train/loss").locator(".line-value").get_attribute("data-line")
    assert 90 <= int(name.removeprefix("network-")) <= 110


def write_capture(folder, entropy):
    """A page of one snapshot with this entropy of every head, [layer, head]."""
    maps = {f"layer {row}": np.full((len(entropy[0]), 4, 4), 0.25) for row in range(len(entropy))}
    data = build_maps_page(
        "capture",
        maps,
        measures={"entropy": np.array(entropy, np.float32)},
        descriptions={"entropy": {"unit": "nats", "description": "Entropy of the weights."}},
    )
    page = folder / "capture.html"
    page.write_text(render_page(data, "capture"), encoding="utf-8")
    return f"{page.as_uri()}#/measures?measure=entropy"


def test_measures_of_one_snapshot_are_a_table_of_heads(tab, tmp_path):
    tab.goto(write_capture(tmp_path, [[0.0, 1.5, 3.0], [0.5, 1.0, 2.0]]))
    table = tab.locator(".measure-table")
    table.wait_for()
    assert "over time" not in tab.locator("main").inner_text()
    assert table.locator(".cell").all_inner_texts() == ["0", "1.50", "3", "0.500", "1", "2"]
    assert table.locator(".term").get_attribute("title") == "Entropy of the weights."
    colours = table.locator(".cell").evaluate_all("cells => cells.map(c => c.style.background)")
    assert len(set(colours)) == 6


def test_rounding_errors_do_not_use_the_whole_colour_scale(tab, tmp_path):
    tab.goto(write_capture(tmp_path, [[2.632650, 2.632651], [2.632652, 2.632650]]))
    tab.locator(".scale", has_text="constant: 2.63 nats").wait_for()
    tab.goto("about:blank")
    tab.goto(write_capture(tmp_path, [[2.6326, 2.6330], [2.6327, 2.6328]]))
    scale = tab.locator(".measure-table .scale")
    scale.wait_for()
    low, high = (float(scale.locator("span").nth(at).inner_text().split()[0]) for at in (0, 1))
    assert low < 2.6326 and high > 2.6330 and high - low > 0.02


def test_labels_of_heads_do_not_overlap(tab, tmp_path):
    page = write_run_page([write_run(tmp_path)], tmp_path / "report.html").as_uri()
    tab.goto(f"{page}#/attention")
    tab.locator(".scatter .point").first.wait_for()
    boxes = tab.evaluate("""() => [...document.querySelectorAll('.scatter .point text')]
        .map(text => text.getBoundingClientRect()).filter(box => box.width > 0)
        .map(({left, right, top, bottom}) => ({left, right, top, bottom}))""")
    assert 5 <= len(boxes) < 36
    for index, box in enumerate(boxes):
        for other in boxes[:index]:
            assert (
                box["right"] <= other["left"]
                or other["right"] <= box["left"]
                or box["bottom"] - 2 <= other["top"]
                or other["bottom"] - 2 <= box["top"]
            )


def test_charts_are_drawn_in_view_and_all_of_them_before_printing(tab, tmp_path):
    page = write_run_page([write_run(tmp_path)], tmp_path / "report.html").as_uri()
    tab.set_viewport_size({"width": 600, "height": 300})
    tab.goto(f"{page}#/curves")
    tab.locator(".plot canvas").first.wait_for()
    charts, drawn = tab.locator(".chart").count(), tab.locator(".plot canvas").count()
    assert charts == 7 and drawn < 7
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator(".plot canvas").count() == 7
