"""How many programs of Keras, PyTorch and Hugging Face users are right after their hints.

python benchmarks/hints.py            all collections, with the programs that are not right
python benchmarks/hints.py --scores   only the scores

A program is right if, after all fixes of one `neural check` are applied once, it has no errors and
describes the network that its author means (tests/language/snippets/).
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.language.foreign_snippets import COLLECTIONS, find_failure, load_snippets


def main() -> None:
    """Print the score of each collection, and what is left in the other programs."""
    for collection in COLLECTIONS:
        snippets = load_snippets(collection)
        failures = {snippet.name: find_failure(snippet) for snippet in snippets}
        wrong = {name: failure for name, failure in failures.items() if failure}
        print(f"{collection}: {len(snippets) - len(wrong)} of {len(snippets)} right")
        if "--scores" not in sys.argv:
            for name, failure in wrong.items():
                print(f"  {name}: {failure}")


if __name__ == "__main__":
    main()
