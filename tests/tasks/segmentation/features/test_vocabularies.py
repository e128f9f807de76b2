"""Vocabulary features: every model finds the change of words."""

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import compute_features, list_columns


def test_every_model_finds_the_change_of_words():
    fruit = ["apples and pears", "pears and plums", "plums and apples"]
    tools = ["saws and drills", "drills and files"]
    document = SegmentationDocument("both", (*fruit, *fruit, *tools, *tools, *tools))
    table = compute_features(document, ("vocabularies",))
    assert (table[1:].argmax(axis=0) + 1 == 6).all()
    assert (table[0] == 0).all()
    assert table.shape[1] == len(list_columns(("vocabularies",)))
