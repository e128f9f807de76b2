"""Contract of the segmentation baselines."""

import sys

import numpy as np
import pytest

from neural.tasks.segmentation.baselines import registry

every_baseline = pytest.mark.parametrize("name", registry.names())
SONG = [
    "Hello there",
    "how are you",
    "la la la",
    "sing it again",
    "la la la",
    "sing it again",
    "goodbye",
    "the end",
]
EDGE_CASES = [
    [""],
    ["one line"],
    ["a", "a"],
    ["", "", ""],
    ["…", "—", "!?"],
    ["same words"] * 13,
    ["字幕文字", "另一行"],
]
TRAINING = [np.array([False, False, True, False, False])]


@every_baseline
def test_every_element_is_classified_and_the_first_is_no_boundary(name):
    for elements in [SONG, *EDGE_CASES]:
        boundaries = registry.get(name).from_training(TRAINING).predict(elements)
        assert boundaries.dtype == bool
        assert boundaries.shape == (len(elements),)
        assert not boundaries[0]


@every_baseline
def test_the_same_document_gives_the_same_boundaries(name):
    baseline = registry.get(name).from_training(TRAINING)
    np.testing.assert_array_equal(baseline.predict(SONG), baseline.predict(tuple(SONG)))


@every_baseline
def test_an_empty_document_is_refused(name):
    with pytest.raises(ValueError, match="at least one"):
        registry.get(name)().predict([])


@every_baseline
def test_a_baseline_has_docstrings(name):
    entry = registry.get(name)
    assert entry.__module__ == f"{registry.package}.{name}"
    assert entry.summary().endswith(".")
    assert sys.modules[entry.__module__].__doc__
    assert all(spec.doc for spec in entry.argument_specs().values())
