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
from neural.tasks.segmentation.kernels import mark_word_kinds
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
        kinds = tokens.map_vocabulary(_word_kind).astype(np.int8)
        marks = mark_word_kinds(
            tokens.ids, tokens.starts, kinds, len(_KINDS), (1, OPENING_WORDS, len(tokens.ids))
        )
        return np.concatenate(
            [marks.reshape(len(tokens), -1), _count_subjects(tokens), _year_steps(tokens, kinds)],
            axis=1,
        )


def _word_kind(word: str) -> int:
    """Index of a word's kind in `_KINDS`, −1 for none."""
    if word.isdecimal():
        return len(WORD_GROUPS) + (len(word) == 4 and "1000" <= word < "2100")
    return _GROUP_IDS.get(word, -1)


def _count_subjects(tokens: ElementTokens) -> np.ndarray:
    """`subject` and `early_subject` of each element, (n, 2)."""
    stems = tokens.stems
    most_frequent = np.argsort(-stems.distinct.element_frequency, kind="stable")[:SUBJECT_STEMS]
    ranks = np.full(len(stems.vocabulary), -1, np.int8)
    ranks[most_frequent] = np.arange(len(most_frequent))
    limits = (len(stems.ids), OPENING_WORDS // 2)
    return mark_word_kinds(stems.ids, stems.starts, ranks, SUBJECT_STEMS, limits).sum(axis=2)


def _year_steps(tokens: ElementTokens, kinds: np.ndarray) -> np.ndarray:
    """`year_step` and `year_back` of each element, (n, 2); 0 if no year is named on one side.

    `kinds` are those of the words of the vocabulary.
    """
    year_by_word = np.zeros(len(tokens.vocabulary), np.int16)
    for word in np.flatnonzero(kinds == len(_KINDS) - 1).tolist():
        year_by_word[word] = int(tokens.vocabulary[word])
    year_by_token = year_by_word[tokens.ids] if len(tokens.ids) else np.zeros(0, np.int16)
    year_tokens = np.flatnonzero(year_by_token)
    years = year_by_token[year_tokens].astype(np.int64)
    element_ids = np.searchsorted(tokens.starts, year_tokens, side="right") - 1
    # Index of the first year in or after each element.
    after = np.searchsorted(element_ids, np.arange(len(tokens)))
    has_both = (after > 0) & (after < len(years))
    step = np.zeros(len(tokens))
    step[has_both] = years[after[has_both]] - years[after[has_both] - 1]
    return np.stack([np.sign(step) * np.log1p(np.abs(step)), (step < -1).astype(float)], axis=1)
