"""The frame around the panes in a real Chromium: header, choice of the run, print, small screens.

Accessibility is tested on every pane, so that new ones are held to it.
"""

import re
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from neural.core.settings import dump_settings
from neural.report.html_page import PLACEHOLDER
from neural.report.pdf_export import print_to_pdf
from neural.report.run_report import write_run_page
from neural.runs.run import Run
from neural.tasks.language_model.task import LanguageModel
from tests.report_runs import write_run

MAX_PDF_PAGES = 8
PRINT_WIDTH = 688
"""Pixels between the margins of a page of A4."""
RUN_SELECT = "select[aria-label=run]"


def write_plain_run(root, name, *, seed=0, task="focus", data="digits"):
    """A finished run without attention: losses only."""
    own_settings = {"name": name, "data": data, "training": {"steps": 4, "seed": seed}}
    settings = dump_settings(LanguageModel.Settings.model_validate(own_settings)) | {"task": task}
    run = Run.create(root, f"{name}-{seed}", settings=settings, program=None, environment={})
    for step in range(1, 5):
        run.log(step, {"train/loss": 2 / step, "valid/loss": 2.5 / step + seed / 10})
    run.finish("finished")
    return run.path


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Three experiments: a language model, a segmenter with calibration, two seeds without attention."""
    root = tmp_path_factory.mktemp("runs")
    paths = [
        write_run(root, "written", layers=2, heads=3, positions=24),
        write_run(root, "cut", layers=1, heads=2, calibrated=True, task="segmentation"),
        *(write_plain_run(root, "plain", seed=seed) for seed in (0, 1)),
    ]
    return write_run_page(paths, root / "report.html").as_uri()


def to_path(url):
    return Path(unquote(urlparse(url).path))


def choose_run(tab, text):
    """Choose a run by its text in the selector; returns its id."""
    select = tab.locator(RUN_SELECT)
    select.select_option(label=text)
    return select.input_value()


def open_panes(tab, report):
    """Open every pane with the run that the page chooses for it, one after the other."""
    tab.goto(report)
    tabs = tab.locator("nav button")
    tabs.first.wait_for()
    for position in range(tabs.count()):
        tabs.nth(position).click()
        tab.wait_for_function(
            "position => document.querySelectorAll('nav button')[position].matches('.selected')",
            arg=position,
        )
        settle(tab)
        yield tabs.nth(position).inner_text()


def settle(tab):
    """Wait until everything is drawn: maps are decoded asynchronously."""
    tab.evaluate(
        """async () => {
            for (let frame = 0; frame < 6; frame++) await new Promise(requestAnimationFrame)
        }"""
    )


def test_a_run_without_attention_gets_a_message_and_stays_selected(tab, report):
    tab.goto(report)
    tab.locator("nav button", has_text="Overview").wait_for()
    chosen = choose_run(tab, "plain, seed 1")
    tab.locator("nav button", has_text="Attention").click()
    message = tab.locator(".missing")
    message.wait_for()
    assert "plain, seed 1 has no attention maps" in message.inner_text()
    assert tab.locator(RUN_SELECT).input_value() == chosen
    assert tab.locator("nav button.selected").inner_text() == "Attention"
    assert tab.locator("main canvas").count() == 0 and tab.locator(".slider").count() == 0
    for pane in ("Calibration", "Samples"):
        tab.locator("nav button", has_text=pane).click()
        tab.locator(".missing", has_text=f"no {pane.lower()}").wait_for()
        assert tab.locator(RUN_SELECT).input_value() == chosen
    tab.go_back()
    # the message leads to a run that has what is missing
    tab.locator(".missing", has_text="no calibration").get_by_role("button", name="cut").click()
    tab.locator("svg.reliability").first.wait_for()
    assert tab.locator(f"{RUN_SELECT} option:checked").inner_text() == "cut"


def test_until_a_run_is_chosen_every_tab_shows_one_that_has_something(tab, report):
    for pane in open_panes(tab, report):
        assert tab.locator(".missing").count() == 0, pane
        assert tab.locator("main").inner_text().strip(), pane


def test_the_selector_names_experiments_and_seeds(tab, report):
    tab.goto(report)
    options = tab.locator(f"{RUN_SELECT} option")
    options.first.wait_for(state="attached")
    assert sorted(options.all_inner_texts()) == ["cut", "plain, seed 0", "plain, seed 1", "written"]


def test_tabs_that_do_not_fit_have_an_arrow_that_scrolls_to_them(tab, report):
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.goto(report)
    last = tab.locator("nav button").last
    last.wait_for()
    assert last.bounding_box()["x"] > 390
    assert tab.locator(".arrow-left").count() == 0
    for _ in range(6):
        if tab.locator(".arrow-right").count() == 0:
            break
        before = tab.locator("nav").evaluate("nav => nav.scrollLeft")
        tab.locator(".arrow-right").click()
        tab.wait_for_function(
            "before => document.querySelector('nav').scrollLeft > before", arg=before
        )
        tab.wait_for_timeout(400)  # smooth scrolling
    box = last.bounding_box()
    assert box["x"] + box["width"] <= 390
    tab.locator(".arrow-left").wait_for()


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_covers_the_header(tab, report, width):
    tab.set_viewport_size({"width": width, "height": 700})
    for pane in open_panes(tab, report):
        for share in (0, 0.3, 0.6, 1):
            covering = tab.evaluate(
                """share => {
                    scrollTo(0, share * (document.documentElement.scrollHeight - innerHeight))
                    const box = document.querySelector('header').getBoundingClientRect()
                    const found = []
                    for (let x = 3; x < box.width; x += 23)
                        for (let y = box.top + 2; y < box.bottom - 1; y += 9) {
                            const element = document.elementFromPoint(x, y)
                            if (element && !element.closest('header'))
                                found.push(element.outerHTML.slice(0, 90))
                        }
                    return found
                }""",
                share,
            )
            assert covering == [], f"{pane} at {share}"


UNNAMED_PICTURES = """() => {
    const name = element => element.getAttribute('aria-label') || element.getAttribute('title')
        || element.getAttribute('aria-labelledby') || element.querySelector(':scope > title')
    const isNamed = picture => {
        // a picture in a control or in a larger picture is part of it
        for (let element = picture; element; element = element.parentElement) {
            const isPicture = element === picture || element.getAttribute('role') === 'img'
            const isControl = element.matches('button, a, [role=button], [role=gridcell]')
            if ((isPicture || isControl) && (name(element) || (isControl && element.innerText.trim())))
                return true
        }
        return false
    }
    return [...document.querySelectorAll('canvas, svg')]
        .filter(picture => picture.getClientRects().length && !isNamed(picture))
        .map(picture => picture.outerHTML.slice(0, 100) + ' in ' + picture.parentElement.className)
}"""


def test_every_picture_has_an_accessible_name(tab, report):
    for pane in open_panes(tab, report):
        assert tab.evaluate(UNNAMED_PICTURES) == [], pane


UNNAMED_CONTROLS = """() => [...document.querySelectorAll('button, select, input, a[href], [role=button]')]
    .filter(control => control.getClientRects().length)
    .filter(control => !(control.getAttribute('aria-label') || control.getAttribute('title')
        || control.textContent.trim() || control.labels?.[0]?.innerText.trim()))
    .map(control => control.outerHTML.slice(0, 120))"""


def test_every_control_has_a_name(tab, report):
    for pane in open_panes(tab, report):
        assert tab.evaluate(UNNAMED_CONTROLS) == [], pane


SMALL_TARGETS = """minimum => {
    const controls = 'button, select, summary, input'
    return [...document.querySelectorAll(controls)]
        .filter(control => control.getClientRects().length && !control.disabled)
        // reached in other ways too: cells of a grid, arrows of the tabs; tokens are part of a text
        .filter(control => control.tabIndex >= 0 && !control.closest('.skip-link, .token-strip'))
        .map(control => [control, control.closest('label') ?? control])
        .filter(([, target]) => {
            const { width, height } = target.getBoundingClientRect()
            return height < minimum || width < minimum
        })
        .map(([control, target]) => control.outerHTML.slice(0, 100)
            + ` ${target.offsetWidth} x ${target.offsetHeight}`)
}"""

SMALL_TEXTS = """minimum => {
    const found = new Set()
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement
        const isDrawn = element.getClientRects().length
            && !element.closest('script, style, noscript, title')
        if (!walker.currentNode.data.trim() || !isDrawn) continue
        // drawings are scaled
        const matrix = element instanceof SVGGraphicsElement ? element.getScreenCTM() : null
        const scale = matrix ? Math.hypot(matrix.a, matrix.b) : 1
        const size = parseFloat(getComputedStyle(element).fontSize) * scale
        if (size < minimum - 0.05)
            found.add(`${walker.currentNode.data.slice(0, 30)}: ${size.toFixed(1)} px, `
                + `${element.tagName} ${element.getAttribute('class')}`)
    }
    return [...found]
}"""


def test_a_small_screen_has_readable_text_and_large_targets(tab, report):
    tab.set_viewport_size({"width": 390, "height": 844})
    for pane in open_panes(tab, report):
        assert tab.evaluate(SMALL_TARGETS, 40) == [], pane
        assert tab.evaluate(SMALL_TEXTS, 10) == [], pane
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, pane


def test_the_page_is_usable_by_keyboard(tab, report):
    tab.goto(f"{report}#/attention")
    tab.locator("nav button").first.wait_for()
    tab.keyboard.press("Tab")
    skip = tab.locator(".skip-link")
    assert skip.evaluate("link => link === document.activeElement && link.offsetWidth > 40")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.tagName") == "MAIN"
    current = tab.locator("nav [aria-current=page]")
    assert current.count() == 1 and current.inner_text() == "Attention"
    tab.locator("nav button", has_text="Curves").focus()
    outline = tab.locator("nav button", has_text="Curves").evaluate(
        "button => { button.blur(); button.focus({ focusVisible: true });"
        " return getComputedStyle(button).outlineStyle }"
    )
    assert outline != "none"
    tab.keyboard.press("Enter")
    tab.locator("nav [aria-current=page]", has_text="Curves").wait_for()
    tab.locator("nav button", has_text="Attention").click()
    step = tab.locator(".slider output")
    assert step.get_attribute("aria-live") == "polite"
    before = step.inner_text()
    tab.locator("input[type=range][aria-label=step]").press("ArrowLeft")
    tab.wait_for_function(
        "before => document.querySelector('.slider output').innerText !== before", arg=before
    )


CONTRAST_PAIRS = [
    *(
        (name, surface, 4.5)
        for name in ("text", "muted", "link", "yes", "no", "undecided", "warning")
        for surface in ("background", "card")
    ),
    ("text", "border", 4.5),
    ("accent", "background", 4.5),
    ("accent", "card", 4.5),
    ("muted", "masked", 4.5),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_have_enough_contrast(tab, report, theme):
    tab.emulate_media(color_scheme=theme)
    tab.goto(report)
    tab.locator("nav button").first.wait_for()
    names = sorted({name for *pair, _ in CONTRAST_PAIRS for name in pair})
    colours = tab.evaluate(
        """names => Object.fromEntries(names.map(name => {
            const probe = document.createElement('i')
            probe.style.color = `var(--${name})`
            document.body.append(probe)
            return [name, getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number)]
        }))""",
        names,
    )
    assert len({tuple(colour) for colour in colours.values()}) > 5
    low = {
        (name, surface): round(contrast(colours[name], colours[surface]), 2)
        for name, surface, minimum in CONTRAST_PAIRS
        if contrast(colours[name], colours[surface]) < minimum
    }
    assert low == {}


def contrast(first, second):
    """Contrast ratio of two colours (WCAG 2.2)."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    red, green, blue = (
        level / 255 / 12.92 if level <= 10 else ((level / 255 + 0.055) / 1.055) ** 2.4
        for level in colour[:3]
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_placeholder_is_in_the_page_before_data_and_script(tab, report):
    html = to_path(report).read_text(encoding="utf-8")
    assert html.index(PLACEHOLDER) < html.index('id="neural-data"') < html.rindex("<script>")
    texts = []
    tab.expose_function("seen", lambda text: texts.append(text))
    tab.add_init_script(
        """new MutationObserver((_, observer) => {
            const app = document.getElementById('app')
            if (!app?.firstChild) return
            observer.disconnect()
            window.seen(app.innerText)
        }).observe(document, { childList: true, subtree: true })"""
    )
    tab.goto(report)
    tab.locator("nav button").first.wait_for()
    assert texts[0] == "drawing…"
    assert tab.get_by_text("drawing…").count() == 0


def count_pdf_pages(path):
    return len(re.findall(rb"/Type\s*/Page\b", path.read_bytes()))


def test_three_experiments_are_printed_on_at_most_eight_pages(report, tmp_path):
    out = tmp_path / "report.pdf"
    print_to_pdf(to_path(report), out)
    assert 1 <= count_pdf_pages(out) <= MAX_PDF_PAGES


def test_the_digest_shows_every_experiment_and_nothing_is_cut(tab, report):
    tab.emulate_media(media="print")
    tab.set_viewport_size({"width": PRINT_WIDTH, "height": 1000})
    tab.goto(f"{report}#/print")
    tab.locator(".digest canvas").first.wait_for()
    settle(tab)
    text = tab.locator(".digest").inner_text()
    for part in ("Main findings", "Losses", "Attention of written", "Samples of written"):
        assert part in text
    for experiment in ("written", "cut", "plain"):
        assert experiment in text
    assert tab.locator("header").is_hidden()
    wide = tab.evaluate(
        """width => [...document.querySelectorAll('.digest *')]
            .filter(element => element.getBoundingClientRect().right > width + 1)
            .map(element => element.outerHTML.slice(0, 100))""",
        PRINT_WIDTH,
    )
    assert wide == []
    assert tab.evaluate(UNNAMED_PICTURES) == []


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Forty experiments of two seeds."""
    root = tmp_path_factory.mktemp("many")
    paths = [
        write_plain_run(root, f"plain{number}", seed=seed, data=f"data{number}")
        for number in range(40)
        for seed in (0, 1)
    ]
    return write_run_page(paths, root / "report.html").as_uri()


def test_many_runs_are_printed_on_at_most_eight_pages(many, tmp_path):
    out = tmp_path / "many.pdf"
    print_to_pdf(to_path(many), out)
    assert 1 <= count_pdf_pages(out) <= MAX_PDF_PAGES


def test_many_runs_can_be_chosen_by_name(tab, many):
    tab.goto(f"{many}#/curves")
    tab.locator("nav button").first.wait_for()
    assert tab.locator(f"{RUN_SELECT} option").count() == 80
    chosen = choose_run(tab, "plain23, seed 1")
    tab.wait_for_function("id => location.hash.includes(encodeURIComponent(id))", arg=chosen)
