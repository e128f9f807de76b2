"""Every measure of generated text against numbers computed by hand."""

import math
import sys

import pytest

from neural.views.inverse_frequency import InverseFrequency, split_words
from neural.views.judge import judge, real_text
from neural.views.quality import registry
from neural.views.quality.distance_from_real import wasserstein
from neural.views.quality.longest_repeat import longest_repeat
from neural.views.quality.segments import cosine, weighed
from neural.views.quality_measure import References

REFERENCES = References(training="abcdefghijklmno", held_out="abab")


def scores(name, *samples, references=REFERENCES):
    return registry.get(name)().scores(samples, references)


def test_distinct_counts_different_grams():
    # abab: 2 of 4 letters, ab ba ab: 2 of 3, aba bab: 2 of 2, abab: 1 of 1
    assert scores("distinct", "abab") == pytest.approx(
        {"distinct_1": 2 / 4, "distinct_2": 2 / 3, "distinct_3": 1, "distinct_4": 1}
    )


def test_distinct_is_the_average_over_samples_not_of_all_together():
    assert scores("distinct", "aaaa", "abcd")["distinct_1"] == pytest.approx((1 / 4 + 1) / 2)


def test_repeated_counts_every_place_of_a_gram_that_comes_twice():
    # 10 places; "abcdefgh" stands at two of them
    assert scores("repeated", "abcdefghXabcdefgh") == {"repeated_8": pytest.approx(2 / 10)}
    assert scores("repeated", "abcdefghijk") == {"repeated_8": 0}
    assert scores("repeated", "aaaaaaaaaaaa") == {"repeated_8": 1}


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("a", 0), ("abc", 0), ("aa", 1), ("aaaa", 3), ("banana", 3), ("xabcyabcz", 3)]
)
def test_the_longest_repeat_may_overlap_itself(text, length):
    assert longest_repeat(text) == length


def test_the_longest_repeat_is_averaged():
    assert scores("longest_repeat", "banana", "xabcda") == {"longest_repeat": 2}


def test_bits_are_those_of_the_held_out_text():
    found = scores("bits", "ab", "ba")["bits"]
    assert found == pytest.approx((REFERENCES.ngrams.bits("ab") + REFERENCES.ngrams.bits("ba")) / 2)
    assert 0 < found < math.log2(3)


def test_novelty_is_the_share_that_was_not_copied():
    assert scores("novelty", "abcdefgh") == {"novelty": 0}
    assert scores("novelty", "abcdefghX") == {"novelty": 1 / 2}
    assert scores("novelty", "hgfedcba", "abcdefgh") == {"novelty": 1 / 2}


def test_segments_are_of_so_many_words_and_a_rest_is_none():
    assert split_words("One two, THREE four five", words=2) == [["one", "two"], ["three", "four"]]


def test_words_are_weighed_by_how_rare_they_are_in_the_held_out_text():
    rarity = InverseFrequency("a " * 20 + "a b " * 10 + "b " * 20)
    common, rare, unknown = math.log(4 / 3) + 1, math.log(4 / 3) + 1, math.log(4) + 1
    assert (rarity["a"], rarity["b"], rarity["c"]) == pytest.approx((common, rare, unknown))
    first, second, third = weighed([["a", "a", "b"], ["a", "c"], ["d"]], rarity)
    assert first == pytest.approx({"a": 2 * common, "b": rare})
    assert second == pytest.approx({"a": common, "c": unknown})
    lengths = math.hypot(2 * common, rare) * math.hypot(common, unknown)
    assert cosine(first, second) == pytest.approx(2 * common**2 / lengths)
    assert cosine(first, third) == 0
    assert cosine(first, first) == pytest.approx(1)
    assert cosine({}, first) == 0


def test_one_loop_in_all_samples_is_as_similar_as_can_be():
    """Weighed by the samples themselves, its words would count nothing, being in every segment."""
    loop = "sail mast wind wave " * 15
    found = scores("segments", loop, loop)
    assert found == pytest.approx({"segment_similarity": 1, "segment_strangers": 1, "segment_coherence": 0})


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [([1.0], [1.0], 0.0), ([1.0, 3.0], [3.0, 1.0, 1.0, 3.0], 0.0), ([0.0, 4.0], [2.0], 2.0), ([0.0], [1.0, 3.0], 2.0)],
)
def test_the_distance_between_two_distributions_by_hand(first, second, distance):
    assert wasserstein(first, second) == pytest.approx(distance)
    assert wasserstein(second, first) == pytest.approx(distance)
    assert math.isnan(wasserstein([math.nan], second))


def test_the_distance_from_real_text_by_hand():
    """All pieces of the training text are alike, so both distances are those of the means."""
    references = References(training="abcdefghij" * 40, held_out="abcdefghij" * 10)
    bits, real = references.ngrams.bits, references.real_text(40)
    sample = "jihgfedcba" * 4
    wanted = sum(abs(bits(sample) - piece) for piece in real.bits) / len(real.bits)
    (distance,) = scores("distance_from_real", sample, references=references).values()
    assert distance == pytest.approx(wanted), "both repeat all that they say"
    (same,) = scores("distance_from_real", "abcdefghij" * 4, references=references).values()
    assert same < 0.3 < distance


def test_text_that_repeats_itself_is_farther_by_the_bits_of_real_text():
    references = References(training="abcdefghijklmnopqrstuvwxyz" * 4, held_out="abcdefghijklmnopqrstuvwxyz")
    real, loop = references.real_text(24), "abcdefgh" * 3
    assert set(real.repeated) == {0.0}
    by_bits = wasserstein([references.ngrams.bits(loop)], real.bits)
    found = judge([loop], references)["generation/distance_from_real"]
    assert found == pytest.approx(by_bits + sum(real.bits) / len(real.bits))


def test_the_distance_is_nan_where_there_is_no_real_text_as_long():
    assert math.isnan(scores("distance_from_real", "abcdefgh" * 3)["distance_from_real"])


def test_neighbours_that_share_their_words_are_coherent():
    ships, bees = "sail mast wind wave " * 15, "hive wing wax honey " * 15   # three segments each
    assert scores("segments", ships, bees) == pytest.approx(
        {"segment_similarity": 1, "segment_strangers": 0, "segment_coherence": 1}
    )


def test_neighbours_that_are_strangers_are_not():
    turns = ("sail mast wind wave " * 5) + ("hive wing wax honey " * 5)
    found = scores("segments", turns, turns)
    # neighbours share nothing; of the four pairs of strangers two are the same
    assert found == pytest.approx({"segment_similarity": 0, "segment_strangers": 1 / 2, "segment_coherence": -1 / 2})


def test_one_sample_alone_is_compared_with_what_is_further_away_in_it():
    ship, bee, owl = ("sail mast " * 10, "hive wing " * 10, "night eye " * 10)
    found = scores("segments", ship + ship + bee + owl)
    assert found["segment_similarity"] == pytest.approx(1 / 3)
    assert found["segment_strangers"] == 0


def test_every_measure_has_a_row_of_its_own():
    text = "the cat sat on the mat and saw the dog that ate the hat of the man " * 8
    found = judge([text[:400], text[20:420]], References(training=text, held_out=text))
    assert {"generation/distinct_2", "generation/bits", "generation/repeated_8", "generation/novelty"} <= set(found)
    assert "generation/distance_from_real" in found
    assert all(math.isfinite(one) for one in found.values()), found


def test_samples_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match=r"one length.*3 to 4"):
        judge(["abc", "abcd"], REFERENCES)
    with pytest.raises(ValueError, match="nothing"):
        judge([], REFERENCES)


def test_a_sample_too_short_for_a_question_is_nan_there_alone():
    found = judge(["abc"], REFERENCES)
    assert math.isnan(found["generation/repeated_8"])
    assert found["generation/distinct_3"] == 1


def test_real_text_is_judged_to_compare_with():
    references = References(training="the cat sat on the mat. " * 20, held_out="the cat sat on the mat. " * 5)
    found = real_text(references, samples=3, length=100)
    assert found["generation/novelty"] == 0
    assert found["generation/bits"] < 1
    with pytest.raises(ValueError, match="fewer than a sample"):
        real_text(References(training="abc", held_out="a"), samples=1, length=4)


@pytest.mark.parametrize("name", registry.names())
def test_a_measure_says_its_unit_and_what_it_is(name):
    entry = registry.get(name)
    assert entry.unit
    assert entry.summary().endswith(".")
    assert sys.modules[entry.__module__].__doc__
