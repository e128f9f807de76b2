"""The baseline `change_points`: exact optimum, changes of subject, any text."""

from itertools import pairwise, product

import numpy as np
import pytest

from neural.tasks.segmentation.baselines.change_points import ChangePoints
from neural.tasks.segmentation.tokenization import tokenize_elements
from neural.tasks.segmentation.word_vectors import load_word_vectors

ELEMENTS = (
    "The orchestra rehearsed the symphony with a new conductor.",
    "Violins and cellos carried the melody of the opera.",
    "Critics praised the concert and the pianist.",
    "Enzymes bind to proteins inside the membrane.",
    "The nucleus of a cell holds its chromosomes.",
    "Ribosomes assemble amino acids into proteins.",
    "The senate passed the law about taxes.",
    "Voters elected a president and a congress.",
)


def test_changes_of_subject_are_found():
    assert np.flatnonzero(ChangePoints(penalty=0.25).predict(ELEMENTS)).tolist() == [3, 6]


@pytest.mark.parametrize("penalty", [0.05, 0.15, 0.25, 0.4, 2.0])
def test_the_result_is_the_optimum_of_all_segmentations(penalty):
    vectors = load_word_vectors().embed_elements(tokenize_elements(ELEMENTS))
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    count = len(ELEMENTS)

    def score(flags):
        edges = [0, *(index for index, flag in enumerate(flags, start=1) if flag), count]
        return sum(
            np.sum(units[start:end].sum(axis=0) ** 2) / (end - start)
            - penalty * np.sqrt(count * np.log(count))
            for start, end in pairwise(edges)
        )

    best = max(product((False, True), repeat=count - 1), key=score)
    result = ChangePoints(penalty=penalty).predict(ELEMENTS)
    assert score(result[1:]) == pytest.approx(score(best))


@pytest.mark.parametrize("elements", [["One."], ["!", "?"], ["the"] * 5])
def test_texts_without_known_words(elements):
    assert len(ChangePoints().predict(elements)) == len(elements)
