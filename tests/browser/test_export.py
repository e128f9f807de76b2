"""Pictures of the page are saved as SVG, PDF, PNG and CSV, offline."""

import csv
import io
import json
import re
from xml.etree import ElementTree

import pytest

from neural.report.run_report import write_run_page
from neural.runs.run import Run
from tests.report_runs import write_run

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(
        tmp_path_factory.mktemp("runs"), "small", layers=2, heads=3, positions=7, calibrated=True
    )


@pytest.fixture(scope="module")
def report(run):
    return write_run_page([run], run.parent / "report.html")


def open_pane(tab, report, address):
    tab.goto(f"{report.as_uri()}#/{address}")
    tab.wait_for_selector(".export-menu")


def save(tab, name, form):
    """File name and content of what the menu of the picture `name` saves as `form`."""
    menu = tab.locator(".export-menu", has=tab.get_by_label(f"Save {name}", exact=True)).first
    menu.scroll_into_view_if_needed()
    if not menu.evaluate("menu => menu.open"):
        # hovering first: in the corner of a picture the menu is shown then
        menu.hover()
        menu.locator("summary").click()
    with tab.expect_download() as download:
        menu.get_by_role("button", name=form).click()
    path = download.value.path()
    return download.value.suggested_filename, path.read_bytes()


def read_texts(data):
    return ["".join(text.itertext()) for text in ElementTree.fromstring(data).iter(f"{SVG}text")]


def test_a_chart_is_an_svg_with_lines_and_text_and_the_same_bytes_twice(tab, report):
    open_pane(tab, report, "curves")
    name, first = save(tab, "train/loss", "SVG")
    assert name == "train-loss.svg"
    texts = read_texts(first)
    assert "train/loss" in texts
    assert {"step", "10", "40"} <= set(texts), "the axis and its ticks"
    assert b"<image" not in first, "a chart is drawn with lines, not with pixels"
    lengths = [
        path.get("d").count("L") for path in ElementTree.fromstring(first).iter(f"{SVG}path")
    ]
    assert max(lengths) == 39, "all 40 points of the curve"
    assert save(tab, "train/loss", "SVG")[1] == first


def test_the_dark_theme_gives_the_same_file(chromium, report):
    files = []
    for scheme in ("light", "dark"):
        context = chromium.new_context(
            viewport={"width": 1280, "height": 900}, offline=True, color_scheme=scheme
        )
        tab = context.new_page()
        open_pane(tab, report, "curves")
        files.append(save(tab, "valid/loss", "SVG")[1])
        is_dark = tab.evaluate("getComputedStyle(document.body).backgroundColor") != (
            "rgb(255, 255, 255)"
        )
        assert is_dark == (scheme == "dark"), "the theme of the page is as before"
        context.close()
    assert files[0] == files[1]


def test_csv_has_the_stored_points(tab, report, run):
    open_pane(tab, report, "curves")
    name, data = save(tab, "valid/loss", "CSV")
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    with Run.open(run) as opened:
        steps, values = opened.scalars("valid/loss")
    assert name == "valid-loss.csv"
    assert [int(row["step"]) for row in rows] == steps.tolist()
    assert [float(row["valid/loss"]) for row in rows] == values.tolist()


def test_a_pdf_has_text_as_text_and_the_same_bytes_twice(tab, report):
    open_pane(tab, report, "curves")
    name, first = save(tab, "train/loss", "PDF")
    assert name == "train-loss.pdf"
    assert first.startswith(b"%PDF-")
    strings = re.findall(rb"\(((?:\\.|[^\\)])*)\) Tj", first)
    assert b"train/loss" in strings
    assert b"step" in strings
    assert b"Date" not in first
    start = int(re.search(rb"startxref\n(\d+)", first)[1])
    assert first[start:].startswith(b"xref\n")
    assert save(tab, "train/loss", "PDF")[1] == first


def test_a_png_has_three_pixels_per_pixel_of_the_screen(tab, report):
    open_pane(tab, report, "curves")
    _, svg = save(tab, "train/loss", "SVG")
    _, png = save(tab, "train/loss", "PNG")
    root = ElementTree.fromstring(svg)
    width, height = (int.from_bytes(png[at : at + 4]) for at in (16, 20))
    assert png.startswith(b"\x89PNG")
    assert (width, height) == (3 * int(root.get("width")), 3 * int(root.get("height")))


def test_the_map_of_a_head_has_its_tokens_and_an_image_of_its_cells(tab, report):
    open_pane(tab, report, "attention?step=30&layer=1&head=2")
    tab.wait_for_selector(".attention-map canvas")
    _, data = save(tab, "attention L1 h2 step 30", "SVG")
    texts = read_texts(data)
    for token in "abcdefg":
        assert texts.count(token) == 2, "as a query and as a key"
    title = " ".join(texts)
    assert "attention L1 h2 step 30" in title
    assert "rows are queries, columns are keys" in title
    assert b"#b3166f" not in data, "no selected row"
    images = list(ElementTree.fromstring(data).iter(f"{SVG}image"))
    assert len(images) == 1
    assert images[0].get("href").startswith("data:image/png;base64,")


def test_all_heads_are_in_one_file(tab, report):
    open_pane(tab, report, "attention?step=30")
    tab.wait_for_selector(".heads canvas")
    _, data = save(tab, "all heads step 30", "SVG")
    assert len(list(ElementTree.fromstring(data).iter(f"{SVG}image"))) == 6
    assert {"L0", "L1", "h0", "h1", "h2"} <= set(read_texts(data))
    assert "the darkest is a weight of 1, grey is masked" in " ".join(read_texts(data))


@pytest.mark.parametrize(
    ("address", "name", "word"),
    [
        ("attention?step=30", "heads entropy span", "L0 h0"),
        ("attention?step=30", "layers cosine_between", "L1"),
        ("measures?measure=entropy", "heads-over-time", "L1"),
        ("calibration", "reliability boundary", "predicted probability"),
    ],
)
def test_other_pictures_are_saved_with_their_words(tab, report, address, name, word):
    open_pane(tab, report, address)
    _, data = save(tab, name, "SVG")
    assert any(word in text for text in read_texts(data))
    _, table = save(tab, name, "CSV")
    assert len(table.decode().splitlines()) > 1


def test_the_figures_of_findings_can_be_saved(tab, report):
    tab.goto(f"{report.as_uri()}#/findings")
    frames = tab.locator(".picture-frame:visible")
    frames.first.wait_for()
    for index in range(min(frames.count(), 4)):
        frame = frames.nth(index)
        frame.scroll_into_view_if_needed()
        frame.hover()
        frame.locator("summary[aria-label^=Save]").click()
        with tab.expect_download() as download:
            frame.get_by_role("button", name="SVG").click()
        ElementTree.fromstring(download.value.path().read_bytes())


def test_the_menu_works_with_the_keyboard(tab, report):
    open_pane(tab, report, "curves")
    summary = tab.get_by_label("Save train/loss", exact=True)
    summary.focus()
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "SVG"
    tab.keyboard.press("Escape")
    assert not tab.locator(".export-menu[open]").count()
    assert json.loads(tab.evaluate("JSON.stringify(document.activeElement.tagName)")) == "SUMMARY"


def test_names_are_text_in_the_file(tab, tmp_path):
    run = write_run(tmp_path, layers=1, heads=2, positions=4, nasty=True)
    report = write_run_page([run], tmp_path / "report.html")
    open_pane(tab, report, "attention?step=30")
    tab.wait_for_selector(".heads canvas")
    label = tab.locator(".detail summary[aria-label^=Save]").get_attribute("aria-label")
    _, data = save(tab, label.removeprefix("Save "), "SVG")
    assert b"<img" not in data
    assert any(text.startswith("<img") for text in read_texts(data))
