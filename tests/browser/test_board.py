"""The board in a real Chromium, with runs that are being written."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from neural.board.launch import write_redirect_file
from neural.board.security import SecurityMiddleware
from tests.board.boards import (
    AUTHORIZATION,
    TOKEN,
    LiveRun,
    serve_board,
    write_finished_run,
    write_segmenter_run,
)

EVIL = "<img src=x onerror=alert(1)>"
STEP_TEXT = "() => document.querySelector('output')?.innerText"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("board") / "runs"
    runs = {
        "done": write_finished_run(root, "done"),
        "other": write_finished_run(root, "other", seed=1),
    }
    runs["segmenter"] = write_segmenter_run(root)
    evil = write_finished_run(root, "evil", steps=(0,), settings={"data": EVIL})
    evil.path.rename(root / EVIL)
    (root / "notes").mkdir()
    runs["live"] = LiveRun(root, "live")
    runs["live"].write_step(50)
    yield runs
    runs["live"].run.close()


@pytest.fixture(scope="module")
def address(runs):
    with serve_board(runs["done"].path.parent) as url:
        yield url


@pytest.fixture
def page(chromium):
    """A page; the test fails if it has errors or warnings."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 900}, extra_http_headers=AUTHORIZATION
    )
    page = context.new_page()
    page.set_default_timeout(15_000)
    errors = []
    page.on(
        "console",
        lambda message: (
            errors.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "response", lambda response: errors.append(response.url) if response.status >= 400 else None
    )
    page.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}") or dialog.dismiss())
    yield page
    context.close()
    assert errors == []


def read_canvases(page, selector):
    """Contents of all canvases of a selector."""
    return page.evaluate(
        "selector => [...document.querySelectorAll(selector)].map(canvas => canvas.toDataURL())",
        selector,
    )


def wait_for_change(page, selector, before):
    """Wait until a canvas of a selector has another content."""
    page.wait_for_function(
        """([selector, before]) => [...document.querySelectorAll(selector)]
            .some((canvas, index) => canvas.toDataURL() !== before[index])""",
        arg=[selector, before],
    )


def wait_for_step(page, text):
    page.wait_for_function(
        f"text => ({STEP_TEXT})()?.replace(/\\s+/g, ' ').includes(text)", arg=text
    )


def test_all_runs_are_listed_and_no_name_is_markup(page, address, runs):
    page.goto(address)
    page.locator("tr", has_text="live").get_by_text("running").wait_for()
    assert page.locator("tr", has_text=EVIL).get_by_text("finished").count() == 1
    assert "no rows.sqlite" in page.locator("tr", has_text="notes").inner_text()
    page.get_by_role("link", name=EVIL).click()
    page.locator("h2", has_text=EVIL).wait_for()
    assert EVIL in page.locator("main").inner_text()
    assert page.locator("img").count() == 0


def test_new_steps_appear_without_reload_and_the_slider_follows_them_until_it_is_moved(
    page, address, runs
):
    live = runs["live"]
    page.goto(f"{address}/#/attention?run={live.name}")
    page.locator(".heads canvas").nth(5).wait_for()
    page.evaluate("window.wasNotReloaded = true")
    live.write_step(100)
    wait_for_step(page, "step 100 of 100, live")
    before = read_canvases(page, ".heads canvas")
    live.write_step(150)
    wait_for_step(page, "step 150 of 150, live")
    wait_for_change(page, ".heads canvas", before)
    page.keyboard.press("ArrowLeft")
    wait_for_step(page, "step 100 of 150")
    live.write_step(200)
    wait_for_step(page, "step 100 of 200")
    page.keyboard.press("End")
    wait_for_step(page, "step 200 of 200")
    live.write_step(250)
    wait_for_step(page, "step 250 of 250, live")
    assert page.evaluate("window.wasNotReloaded")


def test_a_new_warning_is_shown_as_a_notification(page, address, runs):
    live = runs["live"]
    for step in (260, 270, 280, 290):
        live.write_step(step)
    page.goto(f"{address}/#/curves?run={live.name}")
    page.locator(".u-over").first.wait_for()
    page.wait_for_timeout(300)
    chart = page.locator(".u-over").first.bounding_box()
    for share, move in ((0.9, page.mouse.down), (0.97, page.mouse.up)):
        page.mouse.move(chart["x"] + share * chart["width"], chart["y"] + 50)
        move()
    live.write_step(300, logit=60.0)
    notification = page.locator(".notification", has_text="ATT006")
    notification.wait_for()
    # updates do not undo a zoom
    page.mouse.move(chart["x"] + 0.99 * chart["width"], chart["y"] + 50)
    page.locator("figcaption", has_text="train/loss").get_by_text("step 280").wait_for()
    notification.get_by_text("all findings").click()
    page.locator("main").get_by_text("attention logits are saturated").first.wait_for()
    notification.get_by_label("close").click()
    assert notification.count() == 0


def test_two_runs_are_compared_and_their_maps_subtracted(page, address, runs):
    page.goto(address)
    for name in ("done", "other"):
        page.locator("tr", has_text=runs[name].name).get_by_role("checkbox").check()
    page.get_by_role("button", name="compare 2").click()
    page.locator(".chart", has_text="train/loss").locator(".legend li").nth(1).wait_for()
    assert page.locator(".chart", has_text="train/loss").locator(
        ".legend li"
    ).all_inner_texts() == ["done", "other"]
    page.locator(".heads canvas").nth(5).wait_for()
    before = read_canvases(page, ".heads canvas")
    page.get_by_label("step B").select_option("0")
    wait_for_change(page, ".heads canvas", before)
    assert "moves" in page.locator(".finding-list li").first.inner_text()
    page.wait_for_function("() => location.hash.includes('bs=0')")
    url = page.url
    page.goto("about:blank")
    page.goto(url)  # the URL holds the whole state
    page.locator(".heads canvas").nth(5).wait_for()
    assert page.get_by_label("step B").input_value() == "0"


def test_a_character_shows_the_attention_it_was_predicted_with(page, address, runs):
    page.goto(f"{address}/#/generate?run={runs['done'].name}")
    page.get_by_label("prompt").fill("bad ")
    page.get_by_label("tokens").fill("12")
    page.get_by_role("button", name="generate", exact=True).click()
    page.wait_for_function(
        "() => document.querySelectorAll('.generated-text [role=button]').length === 12"
    )
    page.locator(".generated-text [role=button]").nth(3).click()
    page.locator(".head-weights", has_text="L1 h1").wait_for()
    assert "character 8, predicted from the 7 before it" in page.locator(".card h2").inner_text()
    before = read_canvases(page, ".head-strips canvas")
    page.keyboard.press("ArrowRight")
    page.locator(".card h2", has_text="character 9, predicted from the 8").wait_for()
    wait_for_change(page, ".head-strips canvas", before)
    page.locator(".head-weights").get_by_text("L0 h1").click()
    attended = page.locator(".generated-text span[title$=attention]")
    shares = attended.evaluate_all("spans => spans.map(span => parseFloat(span.title))")
    assert len(shares) == 8
    assert sum(shares) == pytest.approx(1, abs=0.05)
    page.get_by_label("prompt").fill("Ω")
    page.get_by_role("button", name="generate", exact=True).click()
    page.locator(".note", has_text="does not occur in the training text").wait_for()


def test_a_pasted_text_is_segmented_with_probabilities(page, address, runs):
    page.goto(f"{address}/#/segment?by={runs['segmenter'].name}")
    page.get_by_label("text").fill(f"Apple pear. {EVIL} it is.\n\nSaw file.\n\nDrill.")
    page.get_by_role("button", name="segment", exact=True).click()
    page.locator(".segmented-text p").nth(3).wait_for()
    assert EVIL in page.locator(".segmented-text").inner_text()
    probabilities = page.locator(".segmented-text .probability").all_inner_texts()
    assert probabilities[0] == ""
    assert all(0 <= float(text) <= 1 for text in probabilities[1:])


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_every_view_fits_the_screen_and_the_first_ten_have_a_key(page, address, runs, width, theme):
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{address}/#/runs?run={runs['done'].name}")
    page.locator("nav button", has_text="Generate").wait_for()
    for number, name in enumerate(page.locator("nav button").all_inner_texts(), start=1):
        if number <= 10:
            page.keyboard.press(str(number % 10))
        else:  # tabs after the tenth have no key
            page.locator("nav button").nth(number - 1).click()
        page.locator("nav button.selected", has_text=name).wait_for()
        assert page.evaluate("location.hash").startswith(f"#/{name.lower()}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.keyboard.press("1")
    for _ in range(100):  # keys are faster than pages
        if page.evaluate("document.activeElement.matches('input[type=search]')"):
            break
        page.keyboard.press("/")
        page.wait_for_timeout(50)
    page.keyboard.type("other")
    page.wait_for_function("() => document.querySelectorAll('.runs tbody tr').length === 1")


def test_the_list_follows_runs_that_start_and_end(page, address, runs):
    page.goto(address)
    page.locator("tr", has_text="live").wait_for()
    late = LiveRun(runs["done"].path.parent, "late")
    page.locator("tr", has_text="late").get_by_text("running").wait_for()
    late.run.finish("finished")
    page.locator("tr", has_text="late").get_by_text("finished").wait_for()


def test_a_stopped_board_is_reported(chromium, runs):
    page = chromium.new_page(extra_http_headers=AUTHORIZATION)
    with serve_board(runs["done"].path.parent) as url:
        page.goto(url)
        page.locator("tr", has_text="live").wait_for()
        time.sleep(0.3)
    page.get_by_text("The board does not answer").wait_for(timeout=10_000)
    page.close()


def save_page(context, page):
    """The page with all its parts, as the browser saves it (MHTML)."""
    saved = context.new_cdp_session(page).send("Page.captureSnapshot", {"format": "mhtml"})["data"]
    assert "Snapshot-Content-Location" in saved
    return saved.replace("=\r\n", "")  # lines that were wrapped


@pytest.mark.parametrize("opened_by", ["printed URL", "redirect file"])
def test_the_token_leaves_the_url_and_the_cookie_opens_every_view(
    chromium, address, runs, tmp_path, opened_by
):
    context = chromium.new_context()
    try:
        page = context.new_page()
        refused = page.goto(address)
        assert refused is not None and refused.status == 401
        url = f"{address}/?token={TOKEN}"
        referrers = []
        page.on("request", lambda request: referrers.append(request.headers.get("referer", "")))
        page.goto(write_redirect_file(tmp_path, url).as_uri() if "file" in opened_by else url)
        page.wait_for_selector(f"text={runs['done'].name}")
        assert page.url.startswith(f"{address}/") and TOKEN not in page.url
        page.reload()
        page.wait_for_selector(f"text={runs['done'].name}")
        assert not [referrer for referrer in referrers if TOKEN in referrer]
        assert page.evaluate("document.cookie") == ""
        assert TOKEN not in page.content() + page.evaluate("document.referrer")
        assert TOKEN not in save_page(context, page)
        storage = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
        assert TOKEN not in storage
        while page.go_back():  # no earlier entry of the window's history has the token
            assert TOKEN not in page.url
    finally:
        context.close()


def test_too_many_texts_are_refused_in_plain_words(chromium, address, runs):
    page = chromium.new_page(extra_http_headers=AUTHORIZATION)
    page.route(
        "**/api/segment",
        lambda route: route.fulfill(
            status=429,
            headers={"retry-after": "3"},
            body="too many texts in a short time; try again in 3 s\n",
        ),
    )
    page.goto(f"{address}/#/segment?by={runs['segmenter'].name}")
    page.get_by_label("text", exact=True).fill("One. Two.")
    page.keyboard.press("Control+Enter")
    page.get_by_text("too many texts in a short time; try again in 3 s").wait_for()
    page.close()


def test_a_link_on_another_site_does_not_use_the_cookie(chromium, address, runs, tmp_path):
    """SameSite=Strict: the browser keeps the cookie back, so the board asks for the token."""
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(f"{address}/?token={TOKEN}")
        page.wait_for_selector(f"text={runs['done'].name}")
        other_site = tmp_path / "other.html"
        other_site.write_text(f'<a href="{address}/">a link</a>')
        page.goto(other_site.as_uri())
        with page.expect_response(f"{address}/") as answer:
            page.click("text=a link")
        assert answer.value.status == 401
    finally:
        context.close()


OTHER_PAGE = """
<!doctype html><title>another page</title><iframe src="ADDRESS/"></iframe><img src="ADDRESS/api/runs">
<script src="ADDRESS/bundle/neural.js"></script><form method=post action="ADDRESS/api/segment"></form>
"""
ATTEMPTS = """async address => {
    const attempt = promise => promise.then(answer => answer.text(), error => error.name)
    const json = {"content-type": "application/json"}
    const stream = new EventSource(`${address}/api/events`, {withCredentials: true})
    return await Promise.all([
        attempt(fetch(`${address}/api/runs`, {credentials: "include"})),
        attempt(fetch(`${address}/api/runs`, {credentials: "include", mode: "no-cors"})),
        attempt(fetch(`${address}/api/segment`,
            {credentials: "include", method: "POST", body: "{}", headers: json})),
        new Promise(resolve => { stream.onerror = () => resolve("closed") }),
    ])
}"""


class OtherServer(BaseHTTPRequestHandler):
    """A server of somebody else on another port."""

    page = ""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.page.encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture
def checked_requests(monkeypatch):
    """Path, whether a cookie was sent, and the status of refusals, of all requests to the board."""
    requests = []
    check = SecurityMiddleware._reject_request

    def record(middleware, scope):
        rejection = check(middleware, scope)
        has_cookie = any(name == b"cookie" for name, _ in scope["headers"])
        requests.append((scope["path"], has_cookie, rejection and rejection.status_code))
        return rejection

    monkeypatch.setattr(SecurityMiddleware, "_reject_request", record)
    return requests


def test_a_page_on_another_port_of_this_machine_can_use_nothing(
    chromium, address, runs, checked_requests
):
    """For the browser it is the same site, and the cookie is sent: the board itself must refuse."""
    handler = type("Handler", (OtherServer,), {"page": OTHER_PAGE.replace("ADDRESS", address)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(f"{address}/?token={TOKEN}")
        page.wait_for_selector(f"text={runs['done'].name}")
        page.goto("about:blank")
        checked_requests.clear()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        page.wait_for_load_state("load")
        assert page.frames[1].url.startswith("chrome-error:"), "no page can show the board inside"
        texts = page.evaluate(ATTEMPTS, address)
        assert texts == ["TypeError", "TypeError", "TypeError", "closed"]
        with page.expect_response(f"{address}/api/segment"):
            page.evaluate("document.forms[0].submit()")
    finally:
        context.close()
        server.shutdown()
        server.server_close()
    refused = [request for request in checked_requests if request[0] != "/"]
    expected_paths = {"/bundle/neural.js", "/api/runs", "/api/events", "/api/segment"}
    assert {path for path, _, _ in refused} == expected_paths
    assert {status for _, _, status in refused} == {403}
    assert any(has_cookie for _, has_cookie, _ in refused), "else this test shows nothing"
