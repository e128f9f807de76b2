"""One Chromium for all tests of a process: the system's, never a download."""

import shutil

import pytest

from neural.views.browser import BROWSERS


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert found, f"these tests need a browser: one of {', '.join(BROWSERS)}"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium):
    """A page without a network, which must not fail at anything: `tab.open(url)`."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    page.set_default_timeout(10_000)
    trouble = []
    page.on("console", lambda said: trouble.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("requestfailed", lambda request: trouble.append(f"failed: {request.url}"))
    page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}") or dialog.dismiss())
    yield page
    context.close()
    assert trouble == []
