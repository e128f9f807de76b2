"""Lines between the tokens of one head."""

import re

import numpy as np
import pytest

import neural
from neural.capture.map_encoding import decode_map
from neural.report.attention_snapshot import FigureError
from neural.report.paper_figures.lines import MIN_SHOWN_WEIGHT
from tests.report.paper_figures.figure_files import check_figure, read_texts
from tests.report_runs import write_run


def test_the_opacity_of_a_line_is_its_weight(tmp_path):
    path = write_run(tmp_path, layers=1, heads=2, positions=7)
    figure = neural.figure(path, "lines", layer=0, head=1, step=10)
    file = check_figure(figure, tmp_path)
    (encoded,) = neural.open_run(path).maps(10).values()
    weights = decode_map(encoded)[1]
    expected = np.sort(weights[weights >= MIN_SHOWN_WEIGHT])
    opacities = [float(each) for each in re.findall(r"stroke-opacity: ([\d.]+)", file.read_text())]
    full = int((expected >= 1).sum())  # matplotlib does not write an opacity of 1
    assert len(opacities) + full == len(expected)
    assert np.allclose(np.sort(opacities), expected[: len(opacities)], atol=0.01)
    texts = read_texts(file)
    assert [texts.count(token) for token in "abcdefg"] == [2] * 7


def test_too_many_tokens_are_refused_with_another_kind(tmp_path):
    run = write_run(tmp_path, layers=1, heads=1, positions=150, snapshots=1)
    with pytest.raises(FigureError, match=r"has 150 tokens; lines can be read up to 128.*head"):
        neural.figure(run, "lines")
