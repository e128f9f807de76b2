"""The segmenter that comes with the package: its files, what it finds, and what it leaves alone."""

import json

import numpy as np
import pytest

from neural.segmenting import SHIPPED, shipped
from neural.tasks.cutting.collection import handbook
from neural.tasks.cutting.compose import compose
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.scores import baseline_answers, plain_scores

WINE = """Wine is made from grapes that are pressed soon after the harvest. The juice ferments in vats for some weeks.
Yeast turns the sugar of the grapes into alcohol. Red wine ferments with the skins of the grapes, white wine without.
Old vats of oak give the wine tannin. Cellars keep the wine cool while it ripens in its vats. """
TRAINS = """A steam locomotive burns coal to boil water. The steam drives pistons, which turn the locomotive's wheels.
Railways of the time laid iron rails on wooden sleepers. A locomotive pulled forty wagons over these rails.
Signals beside the rails told the driver to stop. Later railways replaced the locomotive's boiler by motors. """


@pytest.fixture(scope="module")
def cutter():
    return shipped()


def test_both_files_together_are_small_and_say_where_they_come_from():
    size = sum(one.stat().st_size for one in SHIPPED.parent.glob("segmenter.*"))
    assert size < 3_000_000
    about = json.loads(SHIPPED.read_text(encoding="utf-8"))["about"]
    assert {"made_by", "texts"} <= set(about)


def test_it_needs_no_optional_package(cutter):
    assert not {"embedded", "rhyme"} & set(cutter.features)


def test_a_change_of_subject_is_found(cutter):
    document = Document.of(" ".join((WINE + TRAINS).split()))
    begins = int(np.flatnonzero([one.startswith("A steam") for one in document.elements])[0])
    assert cutter.probabilities(document).argmax() == begins


def test_a_text_about_one_thing_stays_whole(cutter):
    assert not cutter.cut(Document.of(" ".join(WINE.split()))).any()


def test_it_beats_every_untrained_method_on_mixed_documents(cutter):
    sentences = [[one for one in elements if len(one.split()) > 4 and one[-1] == "."] for _, elements in handbook()]
    mixed = compose(sentences, 20, seed=11)
    truths = [one.boundaries for one in mixed]
    ours = plain_scores(truths, [cutter.cut(one) for one in mixed])["pk"]
    others = baseline_answers([one.elements for one in mixed], truths)
    assert ours < min(plain_scores(truths, answers)["pk"] for answers in others.values())


def test_one_sentence_and_none_that_has_words_are_answered(cutter):
    for text in ("One.", "1 2 3.\n\n4 5 6."):
        document = Document.of(text)
        assert len(cutter.cut(document)) == len(document)
