"""Openings of elements (sentences or lines): connectives, pronouns, years, the document's subject.

The opening is the first words of an element. At the start of a segment writers name things ("Brahms
was born in 1833"); within a segment they refer back ("He also …"). A stem is a word without its
suffix.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature
from neural.tasks.segmentation.tokenization import ElementTokens

WORD_GROUPS = {
    "person": "he she it they him her them his hers its their theirs itself himself herself "
    "themselves",
    "pointing": "this that these those such same latter former here",
    "adding": "also too again another other further furthermore moreover additionally likewise "
    "similarly besides and",
    "contrast": "however but yet although though nevertheless nonetheless instead despite whereas "
    "still otherwise",
    "result": "thus therefore hence consequently so accordingly because",
    "next": "then later subsequently eventually afterwards afterward soon finally meanwhile next "
    "thereafter",
    "beginning": "born originally origin origins early began begin begins founded established "
    "history first initially started introduced childhood",
    "article": "the a an",
    "time": "in on at during after before since when until following from by",
    "speaker": "i you we my me your our us",
}
"""Words by their role in the text; the keys are parts of column names."""
OPENING_WORDS = 6
"""Number of words that count as the opening of an element."""
SUBJECT_STEMS = 5
"""Number of most frequent stems that count as the subject of the document."""
_GROUP_IDS = {
    word: number for number, words in enumerate(WORD_GROUPS.values()) for word in words.split()
}
_KINDS = (*WORD_GROUPS, "number", "year")  # a year is a number from 1000 to 2099


class Openings(Feature):
    """Which kinds of words an element begins with, and its relation to subject and years.

    `first_K`, `early_K` and `any_K` are 1 if the first word, one of the first six words, or any
    word is of kind K: a key of `WORD_GROUPS`, a number or a year. `subject` is how many of the
    document's five most frequent stems the element contains; `early_subject` is how many of them
    are among its first three stems.

    The year step is the first year named in or after the element minus the last year named before
    it. `year_step` is its sign times log(1 + |step|); `year_back` is 1 if the step is below −1.
    """

    columns: ClassVar[tuple[str, ...]] = (
        *(f"{word_range}_{kind}" for word_range in ("first", "early", "any") for kind in _KINDS),
        "subject",
        "early_subject",
        "year_step",
        "year_back",
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Columns by lookup tables over the vocabulary."""
        element_count = len(tokens)
        kinds = tokens.map_vocabulary(_word_kind)[tokens.ids] if len(tokens.ids) else tokens.ids
        position = np.arange(len(tokens.ids)) - tokens.starts[:-1][tokens.element_ids]
        opening_columns = [
            _mark_kinds(tokens.element_ids, kinds, position < word_count, element_count)
            for word_count in (1, OPENING_WORDS)
        ]
        return np.concatenate(
            [
                *opening_columns,
                _mark_kinds(tokens.element_ids, kinds, position >= 0, element_count),
                _count_subjects(tokens),
                _year_steps(tokens),
            ],
            axis=1,
        )


def _word_kind(word: str) -> int:
    """Index of a word's kind in `_KINDS`, −1 for none."""
    if word.isdecimal():
        return len(WORD_GROUPS) + (len(word) == 4 and "1000" <= word < "2100")
    return _GROUP_IDS.get(word, -1)


def _mark_kinds(
    element_ids: np.ndarray, kinds: np.ndarray, mask: np.ndarray, element_count: int
) -> np.ndarray:
    """1 for every kind that occurs among an element's words, else 0: (element_count, kinds).

    `element_count` is the number of elements. `element_ids`, `kinds` and `mask` have an entry per
    word; only words where the mask is True count.
    """
    marks = np.zeros((element_count, len(_KINDS)))
    selected = mask & (kinds >= 0)
    marks[element_ids[selected], kinds[selected]] = 1
    return marks


def _count_subjects(tokens: ElementTokens) -> np.ndarray:
    """`subject` and `early_subject` of each element, (n, 2)."""
    stems, element_count = tokens.stems, len(tokens)
    marks = np.zeros((2, SUBJECT_STEMS, element_count))
    if len(stems.ids):
        # Every pair of stem and element once: frequency is the number of elements with the stem.
        pairs = np.unique(stems.ids.astype(np.int64) * element_count + stems.element_ids)
        element_frequency = np.bincount(pairs // element_count, minlength=len(stems.vocabulary))
        position = np.arange(len(stems.ids)) - stems.starts[:-1][stems.element_ids]
        most_frequent = np.argsort(-element_frequency, kind="stable")[:SUBJECT_STEMS]
        for row, stem in enumerate(most_frequent):
            is_stem = stems.ids == stem
            marks[0, row, stems.element_ids[is_stem]] = 1
            marks[1, row, stems.element_ids[is_stem & (position < OPENING_WORDS // 2)]] = 1
    return marks.sum(axis=1).T


def _year_steps(tokens: ElementTokens) -> np.ndarray:
    """`year_step` and `year_back` of each element, (n, 2); 0 if no year is named on one side."""
    year_by_word = tokens.map_vocabulary(
        lambda word: int(word) if _word_kind(word) == len(_KINDS) - 1 else 0
    )
    year_by_token = year_by_word[tokens.ids] if len(tokens.ids) else np.zeros(0, np.int64)
    year_tokens = np.flatnonzero(year_by_token)
    years, element_ids = year_by_token[year_tokens], tokens.element_ids[year_tokens]
    # Index of the first year in or after each element.
    after = np.searchsorted(element_ids, np.arange(len(tokens)))
    has_both = (after > 0) & (after < len(years))
    step = np.zeros(len(tokens))
    step[has_both] = years[after[has_both]] - years[after[has_both] - 1]
    return np.stack([np.sign(step) * np.log1p(np.abs(step)), (step < -1).astype(float)], axis=1)
