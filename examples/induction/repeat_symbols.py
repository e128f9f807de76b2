"""Write a text of random symbols in which every block occurs three times in a row.

    python examples/induction/repeat_symbols.py examples/induction/repeats.txt
    python examples/induction/repeat_symbols.py repeats.txt --seed 3
    python examples/induction/repeat_symbols.py control.txt --copies 1

A block is 8 to 24 different symbols in random order. Its first copy is nearly unpredictable: the
loss stays near the logarithm of the number of symbols, 3.69 nats. The other copies can be predicted
by looking up what followed the same symbol before: that is what an induction head does. Block lengths
vary, so that attention to a fixed distance does not help.
"""

from __future__ import annotations

import argparse
import string
import sys
from pathlib import Path

import numpy as np

SYMBOLS = string.ascii_letters[:40]
MIN_BLOCK, MAX_BLOCK = 8, 24
"""Shortest and longest block, in symbols; two copies of the longest fit into a context of 64."""
COPIES = 3
DEFAULT_LENGTH = 1_000_000
"""Characters of the text: so many that a small network cannot learn it by heart."""


def generate_repeats(length: int, seed: int, copies: int = COPIES) -> str:
    """A text of `length` symbols, the same for the same seed."""
    random = np.random.default_rng(seed)
    alphabet = np.array(list(SYMBOLS))
    blocks: list[str] = []
    size = 0
    while size < length:
        # different symbols inside a block: the previous occurrence of a symbol is then always in
        # the first copy, and what followed it there is always the right prediction
        number = int(random.integers(MIN_BLOCK, MAX_BLOCK + 1))
        block = "".join(random.permutation(alphabet)[:number])
        blocks.append(block * copies)
        size += len(blocks[-1])
    return "".join(blocks)[:length]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a text of repeated random blocks.")
    parser.add_argument("file", type=Path, help="text file to write")
    parser.add_argument("--length", type=int, default=DEFAULT_LENGTH, help="characters")
    parser.add_argument("--copies", type=int, default=COPIES, help="of each block, in a row")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.length < 1 or options.copies < 1 or options.seed < 0:
        sys.exit("--length and --copies must be at least 1, --seed at least 0")
    text = generate_repeats(options.length, options.seed, options.copies)
    try:
        options.file.write_text(text, encoding="utf-8")
    except OSError as error:
        sys.exit(f"{options.file} cannot be written: {error.strerror}")


if __name__ == "__main__":
    main()
