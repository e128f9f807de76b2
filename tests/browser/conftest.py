"""One Chromium for all tests of a process."""

import pytest

from tests.set_up import find_part


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    executable = find_part("browser")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium):
    """A page without a network; the test fails if it has errors or warnings."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    page.set_default_timeout(10_000)
    errors = []
    page.on(
        "console",
        lambda message: (
            errors.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("requestfailed", lambda request: errors.append(f"failed: {request.url}"))
    page.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}") or dialog.dismiss())
    yield page
    context.close()
    assert errors == []
