"""Documents whose parts share no topic."""

import numpy as np


def document(lengths, *, seed=0, words=8):
    """Sentences of so many words, from twenty of the part's own, as long parts as asked for."""
    generator = np.random.default_rng(seed)
    own = [[f"{chr(97 + part)}{chr(97 + number)}{chr(97 + part)}ox" for number in range(20)] for part in range(26)]
    return [
        " ".join(generator.choice(own[part], words)) for part, length in enumerate(lengths) for _ in range(length)
    ]
