"""What a notebook shows of a capture, in a real Chromium without a network."""

import pytest

import neural
from neural.workflows.notebook import render_capture
from tests.hugging_face_folders import build_t5, train_tokenizer

SOURCE = "the cat sat on the mat"


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """The HTML of a capture of T5: encoder, decoder, and attention between them."""
    tokenizer = train_tokenizer()
    model = build_t5(tokenizer)
    capture = neural.watch(model, SOURCE, "a dog sat", tokenizer=tokenizer)
    path = tmp_path_factory.mktemp("notebook") / "cell.html"
    path.write_text(f"<!doctype html>{render_capture(capture)}", encoding="utf-8")
    return path.as_uri()


def test_both_sequences_have_their_tokens(tab, output):
    tab.goto(output)
    frame = tab.frame_locator("iframe")
    frame.locator(".heads canvas").first.wait_for()
    assert frame.locator(".heads canvas").count() == 3 * 2
    frame.locator(".heads button").last.click()  # a head between decoder and encoder
    ticks = frame.locator("svg .tick")
    frame.locator("svg .tick", has_text="[PAD]").first.wait_for()
    texts = ticks.evaluate_all("all => all.map(tick => tick.firstChild.textContent)")
    # keys name the columns, queries the rows
    assert texts[: len(SOURCE.split())] == SOURCE.split()
    assert texts[len(SOURCE.split()) :] == ["[PAD]", "a", "dog"]


def test_lines_between_tokens_connect_the_two_sequences(tab, output):
    tab.goto(output)
    frame = tab.frame_locator("iframe")
    frame.locator(".heads button").last.click()
    frame.get_by_role("button", name="lines", exact=True).click()
    lines = frame.locator(".attention-lines")
    lines.wait_for()
    names = lines.locator("[aria-label]").evaluate_all(
        "all => all.map(token => token.getAttribute('aria-label'))"
    )
    assert {"query [PAD] (0)", "query dog (2)", "key the (0)", "key mat (5)"} <= set(names)
    assert not any(name.startswith("query") and "mat" in name for name in names)
