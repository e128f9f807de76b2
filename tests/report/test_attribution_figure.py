"""The figure of an explanation."""

import numpy as np
import pytest

from neural.report.attribution_figure import draw_attribution
from neural.report.attribution_scores import format_gain, scale_scores
from tests.report.attribution_data import create_data


def read_svg(data):
    return draw_attribution(data)._repr_svg_()


def test_text_stays_text_and_the_numbers_are_there():
    svg = read_svg(create_data())
    for text in ("attention rollout", "+0.31 (+0.12 … +0.50)", "deletion", "insertion", "−0.50"):
        assert text in svg
    assert "&lt;b&gt;cat" in svg


def test_the_same_data_give_the_same_bytes():
    assert read_svg(create_data()) == read_svg(create_data())


@pytest.mark.parametrize("faithfulness", [True, False])
@pytest.mark.parametrize("attribution", [True, False])
def test_missing_parts_are_left_out(faithfulness, attribution):
    svg = read_svg(create_data(faithfulness=faithfulness, attribution=attribution))
    assert ("deletion" in svg) == faithfulness
    assert ("by head" in svg) == attribution


def test_long_inputs_make_the_figure_wider():
    data = create_data()
    short = draw_attribution(data).size_in_inches[0]
    data["tokens"] = data["tokens"] * 30
    for method in data["methods"].values():
        method["scores"] = method["scores"] * 30
    assert draw_attribution(data).size_in_inches[0] > 1.3 * short


def test_scores_are_scaled_to_the_largest():
    np.testing.assert_allclose(scale_scores([1, -4, None, 0]), [0.25, -1, np.nan, 0])
    np.testing.assert_allclose(scale_scores([0, 0]), [0, 0])


def test_gains_are_written_with_their_interval():
    assert format_gain(None) == ""
    assert format_gain({"value": -0.2, "low": None, "high": None, "examples": 1}) == "−0.2"
