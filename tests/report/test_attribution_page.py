"""The page of an explanation: self-contained, escaped, complete."""

import re

from neural.report.attribution_page import render_attribution_page
from tests.report.attribution_data import create_data


def test_every_method_has_a_strip_with_its_number():
    page = render_attribution_page(create_data())
    assert page.count('class="strip"') == 2
    assert "faithfulness +0.31 (+0.12 … +0.50), 8 examples" in page
    assert "faithfulness −0.2, 8 examples" in page
    assert page.count('class="against"') == 1
    assert "a note" in page


def test_faithfulness_of_a_score_is_not_in_nats():
    data = create_data()
    assert "over random orders in nats" in render_attribution_page(data)
    data["answer"] = {**data["answer"], "text": "cosine", "probability": None}
    page = render_attribution_page(data)
    assert "over random orders in units of the score" in page
    for drawn in ("faithfulness (nats)", "log p of the answer"):
        assert drawn not in page  # the figure is text in the page


def test_heads_of_a_difference_are_drawn_as_parts_of_it():
    data = create_data()
    assert "direct part of the logit (2.50) by head" in render_attribution_page(data)
    data["against"] = {"id": 1, "text": " dog", "probability": 0.1, "logit": 0.0}
    page = render_attribution_page(data)
    assert "direct part of the difference of the logits (2.50) by head" in page


def test_one_example_is_not_a_plural():
    data = create_data()
    for method in data["methods"].values():
        method["faithfulness"]["examples"] = 1
    assert ", 1 example<" in render_attribution_page(data)


def test_the_figure_is_dark_on_a_dark_screen_but_not_on_paper():
    page = render_attribution_page(create_data())
    assert "@media screen and (prefers-color-scheme: dark) { figure svg { filter: invert" in page


def test_tokens_are_escaped_and_nothing_is_loaded():
    page = render_attribution_page(create_data())
    assert "<b>cat" not in page
    assert "&lt;b&gt;cat&lt;/b&gt;" in page
    assert "<script" not in page
    assert not re.search(r'(src|href)="https?:', page)


def test_parts_lens_and_effects_are_listed():
    page = render_attribution_page(create_data())
    rows = re.findall(r"<tr><td>(L0 h\d)</td><td>head</td><td>(.*?)</td><td>(.*?)</td>", page)
    assert rows == [("L0 h0", "+2.0000", "+1.5000"), ("L0 h1", "−0.5000", "−0.2500")]
    assert "correlate with 0.90" in page
    assert "Logit lens" in page


def test_what_was_not_measured_is_said():
    page = render_attribution_page(create_data(faithfulness=False, attribution=False))
    assert "Faithfulness was not measured" in page
    assert "Direct logit attribution</h2>" not in page
