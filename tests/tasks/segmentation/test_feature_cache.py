"""Feature tables: names, properties of every feature, and the cache."""

import numpy as np
import pytest

from neural.core.registry import UnknownNameError
from neural.tasks.segmentation import feature_cache
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import (
    FEATURE_SETS,
    compute_features,
    compute_features_batch,
    dependency_versions,
    list_columns,
    resolve_features,
)
from neural.tasks.segmentation.features import registry

UNUSUAL_ELEMENTS = (
    ("",),
    ("…", "", "?"),
    ("word",) * 5,
    ("世界。", "Ünï çødé"),
    ("a" * 5000, "b"),
    ("\ud800", "\0", "\x1e"),
    ("The same line again", "the SAME line again!"),
    ("1 2 3", "# #", "a.b.c@d"),
)
LONG = SegmentationDocument.from_text(
    "The river is long. Its garden is green. Engines make noise. They do not sing.\n\n" * 20
)
every_feature = pytest.mark.parametrize("name", registry.names())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path))
    return tmp_path / "features"


@every_feature
@pytest.mark.parametrize("elements", UNUSUAL_ELEMENTS, ids=range(len(UNUSUAL_ELEMENTS)))
def test_unusual_elements_give_finite_numbers(name, elements):
    table = compute_features(SegmentationDocument("odd", elements), [name])
    assert table.shape == (len(elements), len(registry.get(name).columns))
    assert table.dtype == np.float32 and np.isfinite(table).all()


@every_feature
def test_the_same_document_gives_the_same_numbers(name):
    np.testing.assert_array_equal(compute_features(LONG, [name]), compute_features(LONG, [name]))


@every_feature
def test_column_names_are_distinct(name):
    names = registry.get(name).columns
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", FEATURE_SETS)
def test_a_set_is_the_concatenation_of_its_features(name):
    tables = [compute_features(LONG, [feature]) for feature in FEATURE_SETS[name]]
    np.testing.assert_array_equal(compute_features(LONG, name), np.concatenate(tables, axis=1))
    assert len(list_columns(name)) == compute_features(LONG, name).shape[1]


def test_sets_and_names_may_be_mixed():
    assert resolve_features(["36", "shape", "rhyme"]) == (
        "first_words",
        "last_words",
        "rhyme",
        "shape",
    )


def test_a_misspelt_feature_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="did you mean `cohesion`"):
        compute_features(LONG, ["cohesoin"])


def test_only_rhyme_depends_on_an_optional_package():
    assert set(dependency_versions("60")) == {"rhyme"} and not dependency_versions("articles")


def test_features_are_computed_once(cache, monkeypatch):
    first = compute_features(LONG, "text", use_cache=True)
    monkeypatch.setattr(feature_cache, "tokenize_elements", None)  # computing again would fail
    np.testing.assert_array_equal(compute_features(LONG, "text", use_cache=True), first)
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", b"nonsense"])
def test_a_broken_file_is_computed_again(cache, damage):
    first = compute_features(LONG, "text", use_cache=True)
    (path,) = cache.iterdir()
    intact = path.read_bytes()
    flipped = intact[:300] + bytes([intact[300] ^ 1]) + intact[301:]
    for broken in (damage, intact[: len(intact) // 2], intact[:-1], flipped):
        path.write_bytes(broken)
        np.testing.assert_array_equal(compute_features(LONG, "text", use_cache=True), first)
        assert path.read_bytes() == intact


def test_text_features_and_versions_are_part_of_the_cache_key(cache, monkeypatch):
    compute_features(LONG, "36", use_cache=True)
    compute_features(LONG, "48", use_cache=True)
    compute_features(
        SegmentationDocument("x", (*LONG.elements[:-1], "Another end.")), "36", use_cache=True
    )
    monkeypatch.setattr(registry.get("first_words"), "version", 99)
    compute_features(LONG, "36", use_cache=True)
    assert len(list(cache.iterdir())) == 4


def test_a_cache_that_cannot_be_written_is_not_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "file"))
    np.testing.assert_array_equal(
        compute_features(LONG, "36", use_cache=True), compute_features(LONG, "36")
    )


def test_short_documents_and_uncached_ones_leave_no_files(cache):
    compute_features_batch([SegmentationDocument("x", ("a", "b"))], "text", use_cache=True)
    compute_features(LONG, "text")
    assert not cache.exists()
