"""Cohesion across gaps, against its definition: blocks of counts, written out."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.tasks.cutting import kernels
from neural.tasks.cutting.described import columns, features
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.words import words_of

WORDS = ("river", "engine", "garden", "music", "the", "planet")
ELEMENTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), min_size=1, max_size=24)


def table(elements, *names):
    document = Document("x", tuple(elements))
    return dict(zip(columns(names), features(document, names).T, strict=True))


def defined(elements, scale):
    """The cosine of both sides of every gap."""
    stems = words_of(elements).stems
    counts = np.zeros((len(elements), len(stems.vocabulary) + 1))
    np.add.at(counts, (stems.owners, stems.ids), 1)
    counts[:, :-1] *= stems.rarity
    found = [1.0]
    for gap in range(1, len(elements)):
        left, right = counts[max(0, gap - scale) : gap].sum(axis=0), counts[gap : gap + scale].sum(axis=0)
        length = np.linalg.norm(left) * np.linalg.norm(right)
        found.append(left @ right / length if length else 0.0)
    return found


@settings(max_examples=60, deadline=None)
@given(elements=ELEMENTS, scale=st.sampled_from((1, 2, 4, 8, 16)))
def test_the_sliding_counts_equal_the_blocks_written_out(elements, scale):
    found = table(elements, "cohesion")[f"cohesion.cosine_{scale}"]
    np.testing.assert_allclose(found, defined(elements, scale), atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0)), min_size=2, max_size=12))
def test_depth_is_what_climbing_to_both_sides_gains(values):
    values, out = np.array(values), np.zeros(len(values))
    kernels.deepen(values, out)
    for at in range(1, len(values)):
        left = right = at
        while left > 1 and values[left - 1] >= values[left]:
            left -= 1
        while right < len(values) - 1 and values[right + 1] >= values[right]:
            right += 1
        assert out[at] == values[left] + values[right] - 2 * values[at]


def test_a_change_of_topic_is_the_deepest_gap():
    elements = ["the river and the garden", "a garden by it"] * 8 + ["the engine of music", "music and engine"] * 8
    found = table(elements, "cohesion")
    for scale in (2, 4, 8, 16):
        assert found[f"cohesion.cosine_{scale}"].argmin() == 16
        assert found[f"cohesion.depth_{scale}"].argmax() == 16
        assert found[f"cohesion.unusual_{scale}"].argmin() == 16


def test_new_and_gone_words_are_counted_at_the_gap():
    found = table(["river garden", "river", "engine river", "engine"], "novelty")
    np.testing.assert_allclose(found["novelty.new"], [1, 0, 0.5, 0])
    np.testing.assert_allclose(found["novelty.gone"], [0, 0.5, 0, 0.5])


def test_a_word_is_new_again_after_long_silence():
    found = table(["river", *["garden"] * 10, "river"], "novelty")
    assert found["novelty.new"][-1] == 0 and found["novelty.new_8"][-1] == 1 and found["novelty.new_32"][-1] == 0


def test_links_bridge_the_gaps_between_two_uses():
    found = table(["river", "garden", "river", "music", "music"], "chains")
    np.testing.assert_allclose(np.expm1(found["chains.links_4"]), [0, 1, 1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(found["chains.begin_4"], [1, 0, 0, 1, 0])
    np.testing.assert_allclose(found["chains.end_4"], [0, 0, 0, 1, 0])


def test_a_link_longer_than_the_reach_is_none():
    found = table(["river", *["…"] * 5, "river"], "chains")
    assert not found["chains.links_4"].any() and found["chains.links_12"][1:].all()


def test_the_same_words_have_the_same_bins_in_all_documents():
    one = features(Document("a", ("the river engine", "music")), ["hashed"])
    other = features(Document("b", ("planet", "engine rivers")), ["hashed"])
    np.testing.assert_allclose(one[0], other[1], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1, atol=1e-6)


def test_compiled_loops_give_what_they_say_as_written():
    stems = words_of([" ".join(WORDS[at % 6] for at in range(first, first + first % 5)) for first in range(30)]).stems
    sides = []
    for run in (lambda loop: loop, lambda loop: getattr(loop, "py_func", loop)):
        out = np.ones(len(stems))
        run(kernels.slide)(stems.ids, stems.starts, stems.rarity, 4, out)
        spread = run(kernels.spread)(stems.ids, stems.starts, np.full(len(stems.vocabulary), -1))
        sides.append((out, spread))
    np.testing.assert_allclose(sides[0][0], sides[1][0], atol=1e-12)
    np.testing.assert_array_equal(sides[0][1], sides[1][1])
