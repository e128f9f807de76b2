"""A segmented text as a page."""

import numpy as np

from neural.report.segmentation_page import SegmentView, render_segmentation_page

SEGMENTS = [
    SegmentView("A <title>", "0 – 9", None, ["one & two", "three"], 0),
    SegmentView("B", "9 – 12", 0.87, ["<b>"], 2),
]


def render(**options):
    return render_segmentation_page(
        "notes <1>", "2 segments", SEGMENTS, np.array([0, 0.25, 0.87]), threshold=0.5, **options
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
    assert render(paragraph_starts=[0, 1, 2]).count("<p class=n") == 1


def test_the_contents_link_to_every_segment():
    html = render()
    for number in (1, 2):
        assert f'href="#segment-{number}"' in html
        assert f'id="segment-{number}"' in html
