"""A segmented text as a page."""

import numpy as np
import pytest

from neural.report.segmentation_page import SegmentView, render_segmentation_page

SEGMENTS = [
    SegmentView("A <title>", "0 – 9", None, ["one & two", "three"], 0),
    SegmentView("B", "9 – 12", 0.87, ["<b>"], 2),
]


def render(threshold=0.5, **options):
    probabilities = np.array([0, 0.25, 0.87])
    return render_segmentation_page(
        "notes <1>", "2 segments", SEGMENTS, probabilities, threshold=threshold, **options
    )


def test_text_is_never_markup():
    html = render(warnings=["read as <Latin>"])
    for text in (
        "notes &lt;1&gt;",
        "A &lt;title&gt;",
        "one &amp; two",
        ">&lt;b&gt;</p>",
        "read as &lt;Latin&gt;",
    ):
        assert text in html
    assert "<b>B" not in html.replace("<b>2. B", "")


def test_the_curve_connects_each_probability_with_the_next():
    html = render()
    assert '--p:0;--q:25">one' in html
    assert '--p:25;--q:87">three' in html
    assert '--p:87;--q:0">&lt;b&gt;' in html
    assert "--threshold:50" in html


def test_a_paragraph_has_a_gap_unless_it_starts_a_segment():
    assert render(paragraph_starts=[0, 1, 2]).count('<p class="n"') == 1


def test_code_keeps_its_line_breaks():
    html = render(paragraph_starts=[1], code=[0, 1])
    assert html.count('<p class="code"') == html.count('<p class="n code"') == 1


def test_without_a_threshold_there_is_no_line():
    html = render(threshold=None)
    assert 'class="text together"' in html and "dashed line" not in html
    assert "least expected Pk, the share of pairs of places" in html


def render_one(title, *elements):
    view = SegmentView(title, "0 – 9", None, list(elements), 0)
    probabilities = np.zeros(len(elements))
    return render_segmentation_page("notes", "1 segment", [view], probabilities, threshold=None)


@pytest.mark.parametrize(
    ("title", "element"),
    [
        ("The harbour opens at six.", "The harbour\nopens at six."),
        ("The harbour opens…", "The harbour opens at six."),
    ],
)
def test_a_title_that_is_the_first_sentence_is_no_heading(title, element):
    html = render_one(title, element, "Ferries leave at seven.")
    assert "<b>1</b>" in html
    assert html.count(f"{title}</span>") == 1, "the contents still have it"
    assert 'class="h"' not in html


def test_a_heading_of_the_text_is_shown_once_and_in_bold():
    html = render_one("Ferries", "# Ferries", "They leave at seven.")
    assert "<b>1</b>" in html
    assert '<p class="h" style="--p:0;--q:0"># Ferries</p>' in html


def test_a_title_from_further_down_is_a_heading():
    assert "<b>1. Ferries leave.</b>" in render_one("Ferries leave.", "* * *", "Ferries leave.")


def test_the_contents_link_to_every_segment():
    html = render()
    for number in (1, 2):
        assert f'href="#segment-{number}"' in html
        assert f'id="segment-{number}"' in html
