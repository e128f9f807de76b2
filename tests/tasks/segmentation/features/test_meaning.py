"""The feature `meaning`: finite for any text, and large changes where the subject changes."""

import numpy as np
import pytest

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.features.meaning import Meaning
from neural.tasks.segmentation.tokenization import tokenize_elements

MUSIC = (
    "The orchestra rehearsed the symphony with a new conductor.",
    "Violins and cellos carried the melody.",
    "A soprano sang the aria after the overture.",
    "The composer revised the score of the opera.",
    "Critics praised the concert and the pianist.",
)
CELLS = (
    "Enzymes bind to proteins inside the membrane.",
    "The nucleus of a cell holds its chromosomes.",
    "Mitochondria release energy from glucose molecules.",
    "Bacteria divide and copy their genes.",
    "Ribosomes assemble amino acids into proteins.",
)


def compute(elements):
    document = SegmentationDocument("text", tuple(elements))
    return Meaning().compute(document, tokenize_elements(elements))


def column(table, name):
    return table[:, Meaning.columns.index(name)]


@pytest.mark.parametrize(
    "elements",
    [
        ["One."],
        ["…", "!?", "—"],
        ["the", "of the"],
        ["zzqx " * 9] * 3,
        ["雪が降る。", "川は長い。"],
    ],
)
def test_every_text_gives_finite_numbers(elements):
    table = compute(elements)
    assert table.shape == (len(elements), len(Meaning.columns))
    assert np.isfinite(table).all()


def test_the_change_of_subject_stands_out_without_a_shared_word():
    table = compute((*MUSIC, *CELLS))
    change = len(MUSIC)
    for name in ("cosine_3", "own_3"):
        assert column(table, name)[1:].argmin() + 1 == change
    for name in ("parted_3", "odds_short", "odds_softly"):
        assert column(table, name).argmax() == change


def test_one_subject_has_no_likely_boundary():
    assert column(compute(MUSIC), "begins_medium").max() < 0.5
