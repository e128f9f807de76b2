"""The view of head importance: heads × steps, linked to the slider, on report and board."""

import csv
import io
import re

import numpy as np
import pytest

from neural.report.run_report import write_run_page
from tests.board.boards import AUTHORIZATION, serve_board
from tests.browser.test_export import read_texts, save
from tests.findings.symptomatic_runs import write_attention_run
from tests.importance_files import create_story, write_importance_file
from tests.report_runs import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = write_attention_run(tmp_path_factory.mktemp("runs"))
    change = create_story()
    digits = np.zeros_like(change)
    digits[:, 0, 2] = 0.5
    write_importance_file(
        run.path, change, pairs=[((1, 1), (1, 2), 0.31)], classes={"digits": digits}
    )
    return run


@pytest.fixture(scope="module")
def report(run):
    return write_run_page([run.path], run.path.parent / "report.html")


def open_importance(tab, report, query="", width=1280):
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto(f"{report.as_uri()}#/importance{query}")
    tab.locator(".importance-cells canvas").wait_for()


def list_rows(tab):
    return [row.inner_text().split()[-2:] for row in tab.locator(".importance-heads li").all()]


def cell_position(tab, row, column, rows=12, columns=20):
    box = tab.locator(".importance-cells canvas").bounding_box()
    return {"x": (column + 0.5) * box["width"] / columns, "y": (row + 0.5) * box["height"] / rows}


def test_rows_are_heads_by_importance_and_say_what_they_cost(tab, report):
    open_importance(tab, report)
    rows = list_rows(tab)
    assert rows[:2] == [["L2", "h2"], ["L1", "h3"]] and len(rows) == 12
    text = tab.locator("main").inner_text()
    assert "Measured on 64 validation windows of handbook by neural ablate " in text
    assert "at least 1 % of what the model has learned (0.02 nats)" in text
    table = tab.locator("section", has_text="Heads at step").locator("tbody tr")
    assert re.sub(r"\s+", " ", table.first.inner_text()) == (
        "L2 h2 0.409 ± 0.004 0.368 previous token 550 550 550"
    )
    pairs = tab.locator("section", has_text="Pairs").locator("tbody tr")
    assert re.sub(r"\s+", " ", pairs.first.inner_text()).startswith(
        "L1 h1, L1 h2 0.310 ± 0.010 0.313 ± 0.010 redundant"
    )


def test_a_cell_shows_its_number_and_a_click_moves_the_step_and_selects_the_head(tab, report):
    open_importance(tab, report)
    canvas = tab.locator(".importance-cells canvas")
    canvas.hover(position=cell_position(tab, 0, 11))
    tip = tab.locator(".importance-tip").inner_text()
    assert "L2 h2, previous token, step 600" in tip
    assert re.search(r"0\.4\d\d ± 0\.004 nats", tip)
    canvas.click(position=cell_position(tab, 1, 11))
    tab.wait_for_url(re.compile(r"step=600&layer=1&head=3|layer=1&head=3&step=600"))
    assert "step 600" in tab.locator("header output").inner_text()
    assert tab.locator(".importance-heads .selected").inner_text().endswith("L1 h3")
    assert tab.locator("h2", has_text="Heads at step 600").count() == 1


def test_the_slider_moves_the_marked_column_and_the_loss_curve_moves_the_slider(tab, report):
    open_importance(tab, report, "?step=300")
    marker = tab.locator(".importance-cells .importance-step")
    box, width = marker.bounding_box(), tab.locator(".importance-cells canvas").bounding_box()
    left = (box["x"] - width["x"]) / width["width"] * 20
    assert left == pytest.approx(5, abs=0.2), "300 is the sixth of 20 steps"
    tab.keyboard.press("ArrowRight")
    tab.wait_for_function("document.querySelector('output').innerText.includes('350')")
    curve = tab.locator(".importance-loss")
    curve.click(position={"x": curve.bounding_box()["width"] - 5, "y": 30})
    tab.wait_for_function("document.querySelector('output').innerText.includes('1,000')")


def test_marks_are_at_the_steps_of_role_and_necessity(tab, report):
    open_importance(tab, report)
    canvas = tab.locator(".importance-cells canvas").bounding_box()

    def columns(selector):
        boxes = [mark.bounding_box() for mark in tab.locator(selector).all()]
        return sorted(
            int((box["x"] + box["width"] / 2 - canvas["x"]) / canvas["width"] * 20) for box in boxes
        )

    assert columns(".importance-cells circle.importance-mark") == [0, 0, 10, 10]
    assert columns(".importance-cells path.importance-mark") == [10, 12], "filled: at once"
    assert tab.locator(".importance-cells .importance-arrow").count() == 1


def test_a_class_of_tokens_has_its_own_order(tab, report):
    open_importance(tab, report)
    tab.get_by_label("tokens", exact=True).select_option("digits")
    tab.wait_for_function("document.querySelector('.importance-heads li').innerText == 'L0 h2'")
    tab.wait_for_url(re.compile("tokens=digits"))
    assert "marks: all tokens" in tab.locator("main").inner_text()
    option = tab.locator("option", has_text="digits")
    assert option.inner_text() == "digits, 40 %"


def test_the_name_of_a_head_opens_its_attention(tab, report):
    open_importance(tab, report, "?step=500")
    tab.locator(".importance-heads").get_by_text("L1 h3").click()
    selected = tab.locator(".heads .selected")
    selected.wait_for()
    assert selected.get_attribute("title").startswith("L1 h3")
    assert "step 500" in tab.locator("header output").inner_text()


def test_the_attention_view_can_be_sorted_by_importance(tab, report):
    tab.goto(f"{report.as_uri()}#/attention?sort=importance")
    tab.locator(".heads.flat button").first.wait_for()
    assert tab.locator(".heads.flat button").first.get_attribute("title").startswith("L2 h2")


def test_the_picture_is_saved_with_its_marks_and_numbers(tab, report):
    open_importance(tab, report)
    name, svg = save(tab, "importance-over-training", "SVG")
    assert name == "importance-over-training.svg"
    texts = read_texts(svg)
    assert {"L2 h2", "previous token", "role since", "necessary since", "1,000"} <= {*texts}
    assert b"<image" in svg
    assert save(tab, "importance-over-training", "SVG")[1] == svg
    _, table = save(tab, "importance-over-training", "CSV")
    rows = list(csv.DictReader(io.StringIO(table.decode())))
    assert len(rows) == 12 * 20
    last = next(row for row in rows if row["head"] == "L2 h2" and row["step"] == "1000")
    assert float(last["change"]) == pytest.approx(0.409, abs=0.001)
    assert save(tab, "importance-over-training", "PNG")[1].startswith(b"\x89PNG")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_the_screen_in_both_themes(tab, report, width, theme):
    tab.emulate_media(color_scheme=theme)
    open_importance(tab, report, width=width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    contrast = tab.evaluate(
        """() => {
            const canvas = document.querySelector('.importance-cells canvas')
            const { data } = canvas.getContext('2d').getImageData(0, 0, 20, 12)
            const pixel = (x, y) => [...data.slice(4 * (20 * y + x), 4 * (20 * y + x) + 4)]
            return [pixel(0, 5), pixel(19, 0)]
        }"""
    )
    none, strong = np.array(contrast, float)[:, :3]
    assert np.abs(none - strong).max() > 80, "an important head stands out"
    assert (none.mean() > 200) == (theme == "light")


def test_many_heads_are_cut_until_all_are_asked_for(tab, tmp_path):
    path = write_run(tmp_path, layers=8, heads=8)
    write_importance_file(path, np.random.default_rng(0).normal(size=(3, 8, 8)))
    open_importance(tab, write_run_page([path], tmp_path / "many.html"))
    assert tab.locator(".importance-heads li").count() == 36
    tab.get_by_label("all 64 heads").check()
    tab.wait_for_function("document.querySelectorAll('.importance-heads li').length == 64")


def test_runs_without_a_measurement_have_no_such_view(tab, tmp_path):
    report = write_run_page([write_run(tmp_path, layers=1, heads=2)], tmp_path / "none.html")
    tab.goto(f"{report.as_uri()}#/overview")
    tab.locator("nav button").first.wait_for()
    assert tab.get_by_role("button", name="Importance", exact=True).count() == 0


def test_the_board_shows_it_as_soon_as_it_is_measured(chromium, tmp_path):
    path = write_run(tmp_path / "runs", "small", layers=2, heads=2)
    page = chromium.new_page(
        viewport={"width": 1280, "height": 900}, extra_http_headers=AUTHORIZATION
    )
    page.set_default_timeout(15_000)
    with serve_board(tmp_path / "runs") as address:
        page.goto(f"{address}/#/overview?run={path.name}")
        page.locator("main .card").first.wait_for()
        importance = page.locator("nav").get_by_text("Importance", exact=True)
        assert importance.count() == 0
        write_importance_file(path, np.full((2, 2, 2), 0.3))
        importance.click()
        page.locator(".importance-cells canvas").wait_for()
        assert page.locator(".importance-cells path.importance-mark").count() == 4
    page.close()
