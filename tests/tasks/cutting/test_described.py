"""Features side by side: names, promises that every feature keeps, and the cache."""

import numpy as np
import pytest

from neural.core.registry import UnknownName
from neural.tasks.cutting import described
from neural.tasks.cutting.described import SETS, columns, features, features_of_all, made_with, resolve
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.features import registry

ODD = (
    ("",), ("…", "", "?"), ("word",) * 5, ("世界。", "Ünï çødé"), ("a" * 5000, "b"), ("\ud800", "\0", "\x1e"),
    ("The same line again", "the SAME line again!"), ("1 2 3", "# #", "a.b.c@d"),
)  # fmt: skip
LONG = Document.of("The river is long. Its garden is green. Engines make noise. They do not sing.\n\n" * 20)
every_feature = pytest.mark.parametrize("name", registry.names())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path))
    return tmp_path / "features"


@every_feature
@pytest.mark.parametrize("elements", ODD, ids=range(len(ODD)))
def test_odd_elements_give_finite_numbers(name, elements):
    table = features(Document("odd", elements), [name])
    assert table.shape == (len(elements), len(registry.get(name).columns))
    assert table.dtype == np.float32 and np.isfinite(table).all()


@every_feature
def test_the_same_document_gives_the_same_numbers(name):
    np.testing.assert_array_equal(features(LONG, [name]), features(LONG, [name]))


@every_feature
def test_columns_have_names_of_their_own(name):
    names = registry.get(name).columns
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_its_features_side_by_side(name):
    parts = [features(LONG, [one]) for one in SETS[name]]
    np.testing.assert_array_equal(features(LONG, name), np.concatenate(parts, axis=1))
    assert len(columns(name)) == features(LONG, name).shape[1]


def test_sets_and_names_may_be_mixed():
    assert resolve(["36", "shape", "rhyme"]) == ("first_words", "last_words", "rhyme", "shape")


def test_a_misspelt_feature_is_guessed():
    with pytest.raises(UnknownName, match="did you mean `cohesion`"):
        features(LONG, ["cohesoin"])


def test_what_rhymes_were_made_with_is_told():
    assert set(made_with("60")) == {"rhyme"} and not made_with("articles")


def test_features_are_computed_once(cache, monkeypatch):
    first = features(LONG, "text", keep=True)
    monkeypatch.setattr(described, "words_of", None)   # whoever computes again, falls
    np.testing.assert_array_equal(features(LONG, "text", keep=True), first)
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", b"nonsense"])
def test_a_broken_file_is_computed_again(cache, damage):
    first = features(LONG, "text", keep=True)
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    flipped = whole[:300] + bytes([whole[300] ^ 1]) + whole[301:]
    for broken in (damage, whole[: len(whole) // 2], whole[:-1], flipped):
        path.write_bytes(broken)
        np.testing.assert_array_equal(features(LONG, "text", keep=True), first)
        assert path.read_bytes() == whole


def test_another_text_another_set_another_version_are_other_files(cache, monkeypatch):
    features(LONG, "36", keep=True)
    features(LONG, "48", keep=True)
    features(Document("x", (*LONG.elements[:-1], "Another end.")), "36", keep=True)
    monkeypatch.setattr(registry.get("first_words"), "version", 99)
    features(LONG, "36", keep=True)
    assert len(list(cache.iterdir())) == 4


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path / "file"))
    np.testing.assert_array_equal(features(LONG, "36", keep=True), features(LONG, "36"))


def test_short_documents_and_those_not_to_be_kept_leave_no_files(cache):
    features_of_all([Document("x", ("a", "b"))], "text", keep=True)
    features(LONG, "text")
    assert not cache.exists()
