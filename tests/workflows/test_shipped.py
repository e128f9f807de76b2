"""The segmenter that comes with the package: files, topic changes, comparison with baselines."""

import json

import numpy as np
import pytest

from neural.tasks.segmentation.collection import compose_documents, load_handbook
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.pipeline import SHIPPED_SEGMENTER, load_shipped_pipeline
from neural.tasks.segmentation.score_table import compute_scores, run_baselines

WINE = """
Wine is made from grapes that are pressed soon after the harvest. The juice ferments in vats for
some weeks. Yeast turns the sugar of the grapes into alcohol. Red wine ferments with the skins of
the grapes, white wine without. Old vats of oak give the wine tannin. Cellars keep the wine cool
while it ripens in its vats.
"""
TRAINS = """
A steam locomotive burns coal to boil water. The steam drives pistons, which turn the locomotive's
wheels. Railways of the time laid iron rails on wooden sleepers. A locomotive pulled forty wagons
over these rails. Signals beside the rails told the driver to stop. Later railways replaced the
locomotive's boiler by motors.
"""


@pytest.fixture(scope="module")
def pipeline():
    return load_shipped_pipeline()


def test_the_files_are_small_and_record_their_origin():
    size = sum(file.stat().st_size for file in SHIPPED_SEGMENTER.parent.glob("segmenter.*"))
    assert size < 3_000_000
    metadata = json.loads(SHIPPED_SEGMENTER.read_text(encoding="utf-8"))["metadata"]
    assert {"made_by", "texts"} <= set(metadata)


def test_it_needs_no_optional_package(pipeline):
    assert not {"embedded", "rhyme"} & set(pipeline.features)


def test_a_change_of_topic_is_found(pipeline):
    document = SegmentationDocument.from_text(" ".join((WINE + TRAINS).split()))
    (start,) = np.flatnonzero([element.startswith("A steam") for element in document.elements])
    assert pipeline.probabilities(document).argmax() == start


def test_a_text_about_one_topic_is_one_segment(pipeline):
    assert not pipeline.segment(SegmentationDocument.from_text(" ".join(WINE.split()))).any()


def test_it_beats_every_baseline_on_composed_documents(pipeline):
    sentences = [
        [element for element in elements if len(element.split()) > 4 and element[-1] == "."]
        for _, elements in load_handbook()
    ]
    documents = compose_documents(sentences, 20, seed=11)
    truths = [document.boundaries for document in documents]
    predictions = [pipeline.segment(document) for document in documents]
    baselines = run_baselines([document.elements for document in documents], truths)
    assert compute_scores(truths, predictions)["pk"] < min(
        compute_scores(truths, boundaries)["pk"] for boundaries in baselines.values()
    )


def test_texts_of_one_sentence_or_without_words_are_segmented(pipeline):
    for text in ("One.", "1 2 3.\n\n4 5 6."):
        document = SegmentationDocument.from_text(text)
        assert len(pipeline.segment(document)) == len(document)
