"""Change of meaning by sentence embeddings, with and without the optional package."""

import numpy as np
import pytest

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import compute_features, list_columns
from neural.tasks.segmentation.features import embedded

FRUIT = (
    "Apples and pears grow on trees.",
    "Pears and plums are sweet.",
    "Plums and apples are eaten fresh.",
)
TOOLS = ("A saw cuts planks.", "A drill and a saw need power.", "The drill bores planks.")


@pytest.fixture(params=["as installed", "without the package"])
def table(request, monkeypatch):
    if request.param == "without the package":
        monkeypatch.setattr(embedded, "_load_embedding", lambda: None)
    return compute_features(SegmentationDocument("both", FRUIT + TOOLS), ("embedded",))


def test_a_change_of_topic_has_the_lowest_similarity(table):
    names = list_columns(("embedded",))
    assert table[1:, names.index("embedded.cosine_3")].argmin() + 1 == 3
    assert table[1:, names.index("embedded.parted_3")].argmax() + 1 == 3
    assert np.isfinite(table).all()


def test_the_dependency_has_a_version():
    assert embedded.Embedded.dependency_version()


def test_an_element_without_words_gives_finite_numbers():
    assert np.isfinite(
        compute_features(SegmentationDocument("some", ("", "Apples.", "")), ("embedded",))
    ).all()
