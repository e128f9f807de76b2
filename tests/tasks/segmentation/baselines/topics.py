"""Documents whose segments share no words."""

import numpy as np


def make_document(lengths, *, seed=0, words=8):
    """Segments of these lengths; sentences of `words` words from twenty words of the segment."""
    rng = np.random.default_rng(seed)
    vocabularies = [
        [f"{chr(97 + segment)}{chr(97 + word)}{chr(97 + segment)}ox" for word in range(20)]
        for segment in range(26)
    ]
    return [
        " ".join(rng.choice(vocabularies[segment], words))
        for segment, length in enumerate(lengths)
        for _ in range(length)
    ]
