"""Generated regions and captions in files; one region of a picture decides the animal."""

import json

import numpy as np

WORDS = ("cat", "dog")


def make_captioned_regions(count=40, m=3):
    """Regions (count, m, 4), and a caption record for each."""
    random = np.random.default_rng(0)
    classes, positions = np.arange(count) % 2, random.integers(m, size=count)
    regions = 0.1 * random.normal(size=(count, m, 4))
    regions[np.arange(count), positions, classes] += 1.0
    lines = [
        {"caption": f"a {WORDS[class_index]}", "regions": [None, int(position)]}
        for class_index, position in zip(classes, positions, strict=True)
    ]
    return regions, lines


def write_files(folder, regions, lines, name="own"):
    np.savez(folder / f"{name}.npz", regions=regions)
    (folder / f"{name}.jsonl").write_text(
        "\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8"
    )
