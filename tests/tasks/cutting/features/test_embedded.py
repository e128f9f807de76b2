import numpy as np
import pytest

from neural.tasks.cutting.described import columns, features
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.features import embedded

FRUIT = ("Apples and pears grow on trees.", "Pears and plums are sweet.", "Plums and apples are eaten fresh.")
TOOLS = ("A saw cuts planks.", "A drill and a saw need power.", "The drill bores planks.")


@pytest.fixture(params=["as it is", "without the package"])
def table(request, monkeypatch):
    if request.param == "without the package":
        monkeypatch.setattr(embedded, "_pieces", lambda: None)
    return features(Document("both", FRUIT + TOOLS), ("embedded",))


def test_both_sides_of_a_change_are_least_alike(table):
    names = columns(("embedded",))
    assert table[1:, names.index("embedded.cosine_3")].argmin() + 1 == 3
    assert table[1:, names.index("embedded.parted_3")].argmax() + 1 == 3
    assert np.isfinite(table).all()


def test_what_the_numbers_were_made_with_is_known():
    assert embedded.Embedded.made_with()


def test_an_element_without_words_is_like_nothing():
    assert np.isfinite(features(Document("some", ("", "Apples.", "")), ("embedded",))).all()
