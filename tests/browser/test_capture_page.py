"""The page of `neural.watch(...).save(...)` in a real Chromium without a network."""

import pytest
import torch
from torch import nn

import neural
from tests.report_runs import NASTY

WORDS = ["the", "cat", NASTY, "sat", "characteristically", "."]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of two layers with two heads and six labelled positions."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    model = nn.TransformerEncoder(layer, num_layers=2).eval()
    capture = neural.watch(model, torch.randn(1, len(WORDS), 8), labels=WORDS)
    return capture.save(tmp_path_factory.mktemp("page") / "heads.html").as_uri()


def test_it_opens_with_the_heads_and_shows_only_what_exists(tab, page):
    tab.goto(page)
    tab.locator(".heads canvas").first.wait_for()
    assert tab.locator(".heads canvas").count() == 4
    assert tab.locator("nav button").all_inner_texts() == ["Overview", "Measures", "Attention"]
    assert tab.locator(".detail-card .description-list").inner_text().startswith("diagonal mass")


def test_rows_and_columns_have_their_labels_as_text(tab, page):
    tab.goto(page)
    tab.locator("svg .tick").first.wait_for()
    ticks = tab.locator("svg .tick").all_text_contents()
    assert len(ticks) == 2 * len(WORDS)  # columns, then rows
    assert ticks[: len(WORDS)] == ticks[len(WORDS) :]
    ticks = tab.locator("svg .tick").evaluate_all(
        "all => all.map(tick => tick.firstChild.textContent)"  # the second child is the tooltip
    )
    assert ticks[:2] == ["the", "cat"] and ticks[4] == "characteristically"
    assert ticks[2].endswith("…")
    tokens = tab.locator(".token-strip button").all_text_contents()
    assert tokens[2] == NASTY.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")
    assert tokens[4] == "characteristically"


def test_every_thumbnail_has_a_role_and_a_click_on_a_role_shows_its_heads(tab, page):
    tab.goto(page)
    badges = tab.locator(".heads .role-badge")
    badges.first.wait_for()
    assert badges.count() == 4
    roles = tab.locator(".roles button")
    name, count = roles.first.inner_text().rsplit(" ", 1)
    roles.first.click()
    tab.locator(".heads.flat button").first.wait_for()
    assert tab.locator(".heads.flat button").count() == int(count)
    assert {name} == {
        label.split(", ")[1]
        for label in tab.locator(".heads.flat button").evaluate_all(
            "all => all.map(button => button.getAttribute('aria-label'))"
        )
    }
