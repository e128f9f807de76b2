"""The board in a real Chromium: runs that are being written, and what only a server can do."""

import time

import pytest

from tests.views.board.boards import Written, served, written, written_segmenter

EVIL = "<img src=x onerror=alert(1)>"
SHOWN = "() => document.querySelector('output')?.innerText"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("board") / "runs"
    found = {"done": written(root, "done"), "other": written(root, "other", seed=1)}
    found["segmenter"] = written_segmenter(root)
    evil = written(root, "evil", looks=(0,), settings={"data": EVIL})
    evil.path.rename(root / EVIL)
    (root / "notes").mkdir()
    found["live"] = Written(root, "live")
    found["live"].look(50)
    yield found
    found["live"].run.close()


@pytest.fixture(scope="module")
def address(runs):
    with served(runs["done"].path.parent) as found:
        yield found


@pytest.fixture
def page(chromium):
    """A page that must not complain about anything."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    found = context.new_page()
    found.set_default_timeout(15_000)
    trouble = []
    found.on("console", lambda said: trouble.append(said.text) if said.type in ("error", "warning") else None)
    found.on("pageerror", lambda error: trouble.append(str(error)))
    found.on("response", lambda answer: trouble.append(answer.url) if answer.status >= 400 else None)
    found.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}") or dialog.dismiss())
    yield found
    context.close()
    assert trouble == []


def colours(page, where):
    """Of all pictures there: changes when any of them is drawn anew."""
    return page.evaluate("where => [...document.querySelectorAll(where)].map(canvas => canvas.toDataURL())", where)


def wait_for_change(page, where, before):
    """Until another picture is drawn than was."""
    page.wait_for_function("""([where, before]) =>
        [...document.querySelectorAll(where)].some((canvas, at) => canvas.toDataURL() !== before[at])""",
        arg=[where, before])  # fmt: skip


def wait_for_step(page, text):
    page.wait_for_function(f"text => ({SHOWN})()?.replace(/\\s+/g, ' ').includes(text)", arg=text)


def test_all_runs_are_listed_and_no_name_is_markup(page, address, runs):
    page.goto(address)
    page.locator("tr", has_text="live").get_by_text("running").wait_for()
    assert page.locator("tr", has_text=EVIL).get_by_text("finished").count() == 1
    assert "no rows.sqlite" in page.locator("tr", has_text="notes").inner_text()
    page.get_by_role("link", name=EVIL).click()
    page.locator("h2", has_text=EVIL).wait_for()
    assert EVIL in page.locator("main").inner_text()
    assert page.locator("img").count() == 0


def test_new_steps_appear_without_reload_and_the_slider_follows_them_until_it_is_moved(page, address, runs):
    live = runs["live"]
    page.goto(f"{address}/#/attention?run={live.name}")
    page.locator(".heads canvas").nth(5).wait_for()
    page.evaluate("window.same = true")
    live.look(100)
    wait_for_step(page, "step 100 of 100, live")
    before = colours(page, ".heads canvas")
    live.look(150)
    wait_for_step(page, "step 150 of 150, live")
    wait_for_change(page, ".heads canvas", before)
    page.keyboard.press("ArrowLeft")
    wait_for_step(page, "step 100 of 150")
    live.look(200)
    wait_for_step(page, "step 100 of 200")
    page.keyboard.press("End")
    wait_for_step(page, "step 200 of 200")
    live.look(250)
    wait_for_step(page, "step 250 of 250, live")
    assert page.evaluate("window.same")


def test_an_alarm_is_shown_when_it_fires(page, address, runs):
    live = runs["live"]
    for step in (260, 270, 280, 290):
        live.look(step)
    page.goto(f"{address}/#/curves?run={live.name}")
    page.locator(".u-over").first.wait_for()
    page.wait_for_timeout(300)
    chart = page.locator(".u-over").first.bounding_box()
    for share, move in ((0.9, page.mouse.down), (0.97, page.mouse.up)):
        page.mouse.move(chart["x"] + share * chart["width"], chart["y"] + 50)
        move()
    live.look(300, logit=60.0)
    alarm = page.locator(".alarm", has_text="ATT006")
    alarm.wait_for()
    page.mouse.move(chart["x"] + 0.99 * chart["width"], chart["y"] + 50)   # news do not undo a zoom
    page.locator("figcaption", has_text="train/loss").get_by_text("step 280").wait_for()
    alarm.get_by_text("all findings").click()
    page.locator(".finding", has_text="attention logits are saturated").wait_for()
    alarm.get_by_label("close").click()
    assert alarm.count() == 0


def test_two_runs_are_compared_and_their_maps_subtracted(page, address, runs):
    page.goto(address)
    for name in ("done", "other"):
        page.locator("tr", has_text=runs[name].name).get_by_role("checkbox").check()
    page.get_by_role("button", name="compare 2").click()
    page.locator(".chart", has_text="train/loss").locator(".legend li").nth(1).wait_for()
    assert page.locator(".chart", has_text="train/loss").locator(".legend li").all_inner_texts() == [
        runs["done"].name, runs["other"].name
    ]  # fmt: skip
    page.locator(".heads canvas").nth(5).wait_for()
    before = colours(page, ".heads canvas")
    page.get_by_label("step B").select_option("0")
    wait_for_change(page, ".heads canvas", before)
    assert "moves" in page.locator(".said li").first.inner_text()
    page.wait_for_function("() => location.hash.includes('bs=0')")
    there = page.url
    page.goto("about:blank")
    page.goto(there)   # the address holds all of it
    page.locator(".heads canvas").nth(5).wait_for()
    assert page.get_by_label("step B").input_value() == "0"


def test_a_character_shows_what_it_was_predicted_from(page, address, runs):
    page.goto(f"{address}/#/generate?run={runs['done'].name}")
    page.get_by_label("prompt").fill("bad ")
    page.get_by_label("tokens").fill("12")
    page.get_by_role("button", name="generate", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll('.written [role=button]').length === 12")
    page.locator(".written [role=button]").nth(3).click()
    page.locator(".looks", has_text="L1 h1").wait_for()
    assert "character 8, predicted from the 7 before it" in page.locator(".card h2").inner_text()
    before = colours(page, ".seen-by canvas")
    page.keyboard.press("ArrowRight")
    page.locator(".card h2", has_text="character 9, predicted from the 8").wait_for()
    wait_for_change(page, ".seen-by canvas", before)
    page.locator(".looks").get_by_text("L0 h1").click()
    seen = page.locator(".written span[title$=attention]")
    shares = seen.evaluate_all("all => all.map(one => parseFloat(one.title))")
    assert len(shares) == 8
    assert sum(shares) == pytest.approx(1, abs=0.05)
    page.get_by_label("prompt").fill("Ω")
    page.get_by_role("button", name="generate", exact=True).click()
    page.locator(".remark", has_text="does not occur in what the network was trained on").wait_for()


def test_a_pasted_text_is_cut_with_probabilities(page, address, runs):
    page.goto(f"{address}/#/segment?by={runs['segmenter'].name}")
    page.get_by_label("text").fill(f"Apple pear. {EVIL} it is.\n\nSaw file.\n\nDrill.")
    page.get_by_role("button", name="segment", exact=True).click()
    page.locator(".cut p").nth(3).wait_for()
    assert EVIL in page.locator(".cut").inner_text()
    figures = page.locator(".cut .figure").all_inner_texts()
    assert figures[0] == ""
    assert all(0 <= float(one) <= 1 for one in figures[1:])


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_every_view_fits_the_screen_and_keys_lead_through_all(page, address, runs, width, theme):
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{address}/#/runs?run={runs['done'].name}")
    page.locator("nav button", has_text="Generate").wait_for()
    for number, name in enumerate(page.locator("nav button").all_inner_texts(), start=1):
        page.keyboard.press(str(number))
        page.locator("nav button.chosen", has_text=name).wait_for()
        assert page.evaluate("location.hash").startswith(f"#/{name.lower()}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.keyboard.press("1")
    for _ in range(100):   # keys are faster than pages
        if page.evaluate("document.activeElement.matches('input[type=search]')"):
            break
        page.keyboard.press("/")
        page.wait_for_timeout(50)
    page.keyboard.type("other")
    page.wait_for_function("() => document.querySelectorAll('.runs tbody tr').length === 1")


def test_a_run_that_ends_and_one_that_begins_are_seen_in_the_list(page, address, runs):
    page.goto(address)
    page.locator("tr", has_text="live").wait_for()
    more = Written(runs["done"].path.parent, "late")
    page.locator("tr", has_text="late").get_by_text("running").wait_for()
    more.run.finish("finished")
    page.locator("tr", has_text="late").get_by_text("finished").wait_for()


def test_a_board_that_ends_is_told(chromium, runs):
    page = chromium.new_page()
    with served(runs["done"].path.parent) as here:
        page.goto(here)
        page.locator("tr", has_text="live").wait_for()
        time.sleep(0.3)
    page.get_by_text("The board does not answer").wait_for(timeout=10_000)
    page.close()
