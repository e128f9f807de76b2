"""Regions and captions in files: the region that is marked says which of two words is true of the picture."""

import json

import numpy as np

WORDS = ("cat", "dog")


def pairs(count=40, m=3):
    """Regions (count, m, 4), and a line for each."""
    random = np.random.default_rng(0)
    kind, place = np.arange(count) % 2, random.integers(m, size=count)
    regions = 0.1 * random.normal(size=(count, m, 4))
    regions[np.arange(count), place, kind] += 1.0
    lines = [{"caption": f"a {WORDS[one]}", "regions": [None, int(at)]} for one, at in zip(kind, place, strict=True)]
    return regions, lines


def write(folder, regions, lines, name="own"):
    np.savez(folder / f"{name}.npz", regions=regions)
    (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
