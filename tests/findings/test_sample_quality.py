"""Every measure of generated text against numbers computed by hand."""

import math
import sys

import pytest

from neural.findings.quality import registry
from neural.findings.quality.distance_from_real import wasserstein_distance
from neural.findings.quality.longest_repeat import find_longest_repeat
from neural.findings.quality.segments import cosine_similarity, weight_words
from neural.findings.quality_measure import ReferenceTexts
from neural.findings.sample_quality import measure_quality, measure_real_text
from neural.findings.text_statistics import InverseDocumentFrequency, split_into_segments

REFERENCES = ReferenceTexts(training="abcdefghijklmno", held_out="abab")


def compute_scores(name, *samples, references=REFERENCES):
    return registry.get(name)().compute_scores(samples, references)


def test_distinct_counts_different_ngrams():
    # abab: 2 of 4 letters, ab ba ab: 2 of 3, aba bab: 2 of 2, abab: 1 of 1
    assert compute_scores("distinct", "abab") == pytest.approx(
        {"distinct_1": 2 / 4, "distinct_2": 2 / 3, "distinct_3": 1, "distinct_4": 1}
    )


def test_distinct_is_the_average_over_samples_not_of_all_together():
    assert compute_scores("distinct", "aaaa", "abcd")["distinct_1"] == pytest.approx(
        (1 / 4 + 1) / 2
    )


def test_repeated_counts_every_occurrence_of_a_repeated_ngram():
    # 10 n-grams; "abcdefgh" occurs twice
    assert compute_scores("repeated", "abcdefghXabcdefgh") == {"repeated_8": pytest.approx(2 / 10)}
    assert compute_scores("repeated", "abcdefghijk") == {"repeated_8": 0}
    assert compute_scores("repeated", "aaaaaaaaaaaa") == {"repeated_8": 1}


@pytest.mark.parametrize(
    ("text", "length"),
    [("", 0), ("a", 0), ("abc", 0), ("aa", 1), ("aaaa", 3), ("banana", 3), ("xabcyabcz", 3)],
)
def test_the_longest_repeat_may_overlap_itself(text, length):
    assert find_longest_repeat(text) == length


def test_the_longest_repeat_is_averaged():
    assert compute_scores("longest_repeat", "banana", "xabcda") == {"longest_repeat": 2}


def test_bits_are_those_of_the_held_out_text():
    bits = compute_scores("bits", "ab", "ba")["bits"]
    assert bits == pytest.approx(
        (REFERENCES.ngrams.bits_per_character("ab") + REFERENCES.ngrams.bits_per_character("ba"))
        / 2
    )
    assert 0 < bits < math.log2(3)


def test_novelty_is_the_share_that_was_not_copied():
    assert compute_scores("novelty", "abcdefgh") == {"novelty": 0}
    assert compute_scores("novelty", "abcdefghX") == {"novelty": 1 / 2}
    assert compute_scores("novelty", "hgfedcba", "abcdefgh") == {"novelty": 1 / 2}


def test_segments_have_a_fixed_number_of_words_and_a_rest_is_dropped():
    assert split_into_segments("One two, THREE four five", words_per_segment=2) == [
        ["one", "two"],
        ["three", "four"],
    ]


def test_words_are_weighted_by_their_rarity_in_the_held_out_text():
    rarity = InverseDocumentFrequency("a " * 20 + "a b " * 10 + "b " * 20)
    common, rare, unknown = math.log(4 / 3) + 1, math.log(4 / 3) + 1, math.log(4) + 1
    assert (rarity["a"], rarity["b"], rarity["c"]) == pytest.approx((common, rare, unknown))
    first, second, third = weight_words([["a", "a", "b"], ["a", "c"], ["d"]], rarity)
    assert first == pytest.approx({"a": 2 * common, "b": rare})
    assert second == pytest.approx({"a": common, "c": unknown})
    norms = math.hypot(2 * common, rare) * math.hypot(common, unknown)
    assert cosine_similarity(first, second) == pytest.approx(2 * common**2 / norms)
    assert cosine_similarity(first, third) == 0
    assert cosine_similarity(first, first) == pytest.approx(1)
    assert cosine_similarity({}, first) == 0


def test_one_loop_in_all_samples_is_as_similar_as_can_be():
    """Weighted by the samples themselves, its words would have weight 0: every segment has them."""
    loop = "sail mast wind wave " * 15
    scores = compute_scores("segments", loop, loop)
    assert scores == pytest.approx(
        {"segment_similarity": 1, "segment_baseline": 1, "segment_coherence": 0}
    )


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ([1.0], [1.0], 0.0),
        ([1.0, 3.0], [3.0, 1.0, 1.0, 3.0], 0.0),
        ([0.0, 4.0], [2.0], 2.0),
        ([0.0], [1.0, 3.0], 2.0),
    ],
)
def test_the_distance_between_two_distributions_by_hand(first, second, distance):
    assert wasserstein_distance(first, second) == pytest.approx(distance)
    assert wasserstein_distance(second, first) == pytest.approx(distance)
    assert math.isnan(wasserstein_distance([math.nan], second))


def test_the_distance_from_real_text_by_hand():
    """All chunks of the training text are equal, so both distances are those of the means."""
    references = ReferenceTexts(training="abcdefghij" * 40, held_out="abcdefghij" * 10)
    bits, real = references.ngrams.bits_per_character, references.compute_real_text_statistics(40)
    sample = "jihgfedcba" * 4
    expected = sum(abs(bits(sample) - value) for value in real.bits) / len(real.bits)
    (distance,) = compute_scores("distance_from_real", sample, references=references).values()
    assert distance == pytest.approx(expected), "both are loops"
    (same,) = compute_scores("distance_from_real", "abcdefghij" * 4, references=references).values()
    assert same < 0.3 < distance


def test_repetition_adds_the_bits_of_real_text_to_the_distance():
    references = ReferenceTexts(
        training="abcdefghijklmnopqrstuvwxyz" * 4, held_out="abcdefghijklmnopqrstuvwxyz"
    )
    real, loop = references.compute_real_text_statistics(24), "abcdefgh" * 3
    assert set(real.repeated) == {0.0}
    by_bits = wasserstein_distance([references.ngrams.bits_per_character(loop)], real.bits)
    scores = measure_quality([loop], references)["generation/distance_from_real"]
    assert scores == pytest.approx(by_bits + sum(real.bits) / len(real.bits))


def test_the_distance_is_nan_if_the_real_text_is_shorter():
    assert math.isnan(compute_scores("distance_from_real", "abcdefgh" * 3)["distance_from_real"])


def test_neighbours_that_share_their_words_are_coherent():
    ships, bees = "sail mast wind wave " * 15, "hive wing wax honey " * 15  # three segments each
    assert compute_scores("segments", ships, bees) == pytest.approx(
        {"segment_similarity": 1, "segment_baseline": 0, "segment_coherence": 1}
    )


def test_neighbours_without_common_words_are_not():
    alternating = ("sail mast wind wave " * 5) + ("hive wing wax honey " * 5)
    scores = compute_scores("segments", alternating, alternating)
    # neighbours share nothing; of the four pairs of different samples two are equal
    assert scores == pytest.approx(
        {"segment_similarity": 0, "segment_baseline": 1 / 2, "segment_coherence": -1 / 2}
    )


def test_a_single_sample_has_its_own_distant_segments_as_baseline():
    ship, bee, owl = ("sail mast " * 10, "hive wing " * 10, "night eye " * 10)
    scores = compute_scores("segments", ship + ship + bee + owl)
    assert scores["segment_similarity"] == pytest.approx(1 / 3)
    assert scores["segment_baseline"] == 0


def test_every_measure_has_its_own_metrics():
    text = "the cat sat on the mat and saw the dog that ate the hat of the man " * 8
    scores = measure_quality(
        [text[:400], text[20:420]], ReferenceTexts(training=text, held_out=text)
    )
    assert {
        "generation/distinct_2",
        "generation/bits",
        "generation/repeated_8",
        "generation/novelty",
    } <= set(scores)
    assert "generation/distance_from_real" in scores
    assert all(math.isfinite(value) for value in scores.values()), scores


def test_samples_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match=r"same length.*3 to 4"):
        measure_quality(["abc", "abcd"], REFERENCES)
    with pytest.raises(ValueError, match="no characters"):
        measure_quality([], REFERENCES)


def test_a_sample_too_short_for_a_measure_is_nan_in_that_measure_only():
    scores = measure_quality(["abc"], REFERENCES)
    assert math.isnan(scores["generation/repeated_8"])
    assert scores["generation/distinct_3"] == 1


def test_real_text_is_measured_for_comparison():
    references = ReferenceTexts(
        training="the cat sat on the mat. " * 20, held_out="the cat sat on the mat. " * 5
    )
    scores = measure_real_text(references, sample_count=3, length=100)
    assert scores["generation/novelty"] == 0
    assert scores["generation/bits"] < 1
    with pytest.raises(ValueError, match="fewer than a sample"):
        measure_real_text(ReferenceTexts(training="abc", held_out="a"), sample_count=1, length=4)


@pytest.mark.parametrize("name", registry.names())
def test_a_measure_has_a_unit_and_a_summary(name):
    measure = registry.get(name)
    assert measure.unit
    assert measure.summary().endswith(".")
    assert sys.modules[measure.__module__].__doc__
