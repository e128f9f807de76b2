"""A text that was cut, as a page."""

import numpy as np

from neural.views.segmented_page import Shown, segmented_page

PARTS = [Shown("A <title>", "0 – 9", None, ["one & two", "three"]), Shown("B", "9 – 12", 0.87, ["<b>"])]


def page(**more):
    return segmented_page("notes <1>", "2 parts", PARTS, np.array([0, 0.25, 0.87]), threshold=0.5, **more)


def test_text_is_never_markup():
    made = page(remarks=["read as <Latin>"])
    for text in ("notes &lt;1&gt;", "A &lt;title&gt;", "one &amp; two", ">&lt;b&gt;</p>", "read as &lt;Latin&gt;"):
        assert text in made
    assert "<b>B" not in made.replace("<b>2. B", "")


def test_the_curve_goes_from_each_probability_to_the_next():
    made = page()
    assert '--p:0;--q:25">one' in made
    assert '--p:25;--q:87">three' in made
    assert '--p:87;--q:0">&lt;b&gt;' in made
    assert "--threshold:50" in made


def test_a_paragraph_keeps_its_distance_but_for_the_first_of_a_part():
    assert page(paragraphs=[0, 1, 2]).count("<p class=n") == 1


def test_every_part_can_be_gone_to():
    made = page()
    for number in (1, 2):
        assert f'href="#part-{number}"' in made
        assert f'id="part-{number}"' in made
