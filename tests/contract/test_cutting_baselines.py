"""What every segmentation baseline promises."""

import sys

import numpy as np
import pytest

from neural.tasks.cutting.baselines import registry

every_baseline = pytest.mark.parametrize("name", registry.names())
SONG = ["Hello there", "how are you", "la la la", "sing it again", "la la la", "sing it again", "goodbye", "the end"]
ODD = [[""], ["one line"], ["a", "a"], ["", "", ""], ["…", "—", "!?"], ["same words"] * 13, ["字幕文字", "另一行"]]
TRAINING = [np.array([False, False, True, False, False])]


@every_baseline
def test_every_element_gets_an_answer_and_the_first_begins_nothing(name):
    for elements in [SONG, *ODD]:
        found = registry.get(name).of(TRAINING).boundaries(elements)
        assert found.dtype == bool
        assert found.shape == (len(elements),)
        assert not found[0]


@every_baseline
def test_the_same_document_gives_the_same_boundaries(name):
    baseline = registry.get(name).of(TRAINING)
    np.testing.assert_array_equal(baseline.boundaries(SONG), baseline.boundaries(tuple(SONG)))


@every_baseline
def test_a_document_of_nothing_is_refused(name):
    with pytest.raises(ValueError, match="at least one"):
        registry.get(name)().boundaries([])


@every_baseline
def test_a_baseline_says_what_it_is(name):
    entry = registry.get(name)
    assert entry.__module__ == f"{registry.package}.{name}"
    assert entry.summary().endswith(".")
    assert sys.modules[entry.__module__].__doc__
    assert all(one.doc for one in entry.settings().values())
