"""The documentation site in a browser: search, from a server and from a disk, and navigation."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.documentation_site import build_site

RESULT = ".md-search-result__link"


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def server(site):
    """Address of a server of the site."""
    handler = functools.partial(QuietHandler, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def search(page, address, query):
    """Type a query into the search field; returns the addresses of the results."""
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{address}/index.html")
    page.keyboard.press("/")
    page.keyboard.type(query)
    page.wait_for_selector(RESULT, state="attached", timeout=30_000)
    allowed = (address, "blob:", "data:", "about:")
    assert [url for url in requests if not url.startswith(allowed)] == []
    return [link.get_attribute("href") for link in page.query_selector_all(RESULT)]


def test_search_from_a_disk_finds_a_page(tab, site):
    results = search(tab, site.as_uri(), "head diversity")
    assert "reference/measures.html" in results[0]


def test_search_from_a_server_finds_a_page(chromium, server):
    context = chromium.new_context()
    results = search(context.new_page(), server, "head diversity")
    context.close()
    assert "reference/measures.html" in results[0]


def test_a_part_of_a_name_is_found(tab, site):
    results = search(tab, site.as_uri(), "NetworkClassifier")
    assert any("reference/python.html" in result for result in results)


def test_the_copy_button_takes_commands_without_prompts_and_output(chromium, server):
    context = chromium.new_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server}/index.html")
    block = page.locator(".highlight", has_text="$ neural check")
    block.locator("button[data-md-type=copy]").click()
    assert page.evaluate("navigator.clipboard.readText()") == "neural check tiny.neural"
    context.close()


def test_a_tutorial_lists_the_other_tutorials(tab, site):
    tab.goto(f"{site.as_uri()}/tutorial-supervised.html")
    assert tab.locator(".md-sidebar a[href='tutorial-focus.html']").is_visible()


def test_a_page_alone_under_its_tab_has_no_navigation(tab, site):
    tab.goto(f"{site.as_uri()}/gallery.html")
    assert not tab.locator(".md-sidebar--primary").is_visible()
