"""Self-similarity of elements (sentences or lines) by syntax: part-of-speech tags and tag bigrams.

The columns are twelve statistics of each element's similarities; see `SelfSimilarity` in
feature.py. The tagger is a word list with suffix rules, made for speed and not for accuracy.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from neural.tasks.segmentation.feature import SelfSimilarity, SimilarityFunction
from neural.tasks.segmentation.tokenization import ElementTokens


class PartOfSpeech(SelfSimilarity):
    """The similarity is the cosine between the counts of tags and tag bigrams of two elements."""

    def make_similarity_function(self, tokens: ElementTokens) -> SimilarityFunction:
        """Similarity function: cosines of rows of a count matrix, (elements, tags + bigrams)."""
        num_tags = len(POS_TAGS)
        width = num_tags + num_tags * num_tags
        tags = tokens.map_vocabulary(tag_word)[tokens.ids]
        same_element = tokens.element_ids[1:] == tokens.element_ids[:-1]
        bigrams = num_tags + tags[:-1][same_element] * num_tags + tags[1:][same_element]
        # Flat indices into the count matrix.
        cells = np.concatenate(
            [
                tokens.element_ids * width + tags,
                tokens.element_ids[1:][same_element] * width + bigrams,
            ]
        )
        counts = (
            np.bincount(cells, minlength=len(tokens) * width).reshape(-1, width).astype(np.float32)
        )
        squared_norms = (counts * counts).sum(axis=1, dtype=np.float64)
        squared_norms[squared_norms == 0] = np.inf  # an element without words is similar to none

        def compute_block(rows: slice, columns: slice) -> np.ndarray:
            norms = np.sqrt(squared_norms[rows, None] * squared_norms[columns])
            return (counts[rows] @ counts[columns].T) / norms

        return compute_block


POS_TAGS = (
    "noun",
    "verb",
    "adjective",
    "adverb",
    "pronoun",
    "determiner",
    "preposition",
    "conjunction",
    "auxiliary",
    "number",
    "other",
)
_WORDS_BY_TAG = {
    "pronoun": """
        i you he she it we they me him her us them mine yours hers ours theirs myself yourself
        himself herself itself ourselves yourselves themselves who whom whose what which someone
        somebody something anyone anybody anything everyone everybody everything nobody nothing one
        ones i'm i've i'd i'll you're you've you'll you'd he's she's it's we're we've we'll they're
        they've they'll that's there's who's what's
    """,
    "determiner": """
        a an the this that these those my your his its our their some any no every each either
        neither both all many much few several another such more most other
    """,
    "preposition": """
        of in to for with on at from by about as into through after over between out against during
        without before under around among within along across behind beyond near above below toward
        towards upon off until since per despite onto inside outside beneath beside up down like
        than
    """,
    "conjunction": """
        and or but nor so yet because although though while if unless whether when where whenever
        wherever however therefore
    """,
    "auxiliary": """
        be is am are was were been being have has had having do does did will would shall should can
        could may might must ought isn't aren't wasn't weren't haven't hasn't hadn't don't doesn't
        didn't won't wouldn't shouldn't can't couldn't cannot gonna gotta wanna ain't
    """,
    "adverb": """
        not never always often sometimes here there now then again too very just only also even
        still almost already soon once twice perhaps maybe away back ever far well today tonight
        tomorrow yesterday how why
    """,
    "verb": """
        go goes went gone come comes came get gets got make makes made take takes took see sees saw
        seen know knows knew say says said think thinks thought give gives gave find finds found
        feel feels felt keep keeps kept let lets leave leaves left want wants need needs run runs
        ran hold holds held bring tell tells told
    """,
    "adjective": """
        good bad new old great small big long little young high low own same right wrong true free
        full real
    """,
    "number": """
        zero two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty
        hundred thousand million first second third
    """,
    "other": """
        oh ah yeah yes hey la na ooh uh hello please
    """,
}
_TAG_IDS = {tag: number for number, tag in enumerate(POS_TAGS)}
_KNOWN_WORDS = {
    word: _TAG_IDS[tag] for tag, words in _WORDS_BY_TAG.items() for word in words.split()
}
_TAG_SUFFIXES = (
    ("verb", ("ing", "ed", "ize", "ise", "ify", "in'")),
    ("adverb", ("ly", "wards", "wise")),
    (
        "adjective",
        (
            "ous",
            "ful",
            "less",
            "able",
            "ible",
            "ive",
            "ical",
            "ic",
            "al",
            "ish",
            "ary",
            "ant",
            "ent",
        ),
    ),
    (
        "noun",
        (
            "tion",
            "sion",
            "ness",
            "ment",
            "ity",
            "ism",
            "ist",
            "ship",
            "hood",
            "dom",
            "ance",
            "ence",
            "er",
            "or",
        ),
    ),
)
"""Tag and suffixes; the first suffix that matches decides."""
_MIN_LETTERS_BEFORE_SUFFIX = 2
"""A suffix after fewer letters does not count: "sing" is not a form with "ing"."""


@lru_cache(maxsize=1 << 16)
def tag_word(word: str) -> int:
    """Index of the tag in `POS_TAGS`, by a word list and suffixes; unknown words are nouns."""
    word = word.replace("’", "'")
    known_tag = _KNOWN_WORDS.get(word)
    if known_tag is not None:
        return known_tag
    if word[0].isdigit():
        return _TAG_IDS["number"]
    for tag, suffixes in _TAG_SUFFIXES:
        if word[_MIN_LETTERS_BEFORE_SUFFIX:].endswith(suffixes):
            return _TAG_IDS[tag]
    return _TAG_IDS["noun"]
