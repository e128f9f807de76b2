"""Files of head importance with known truth, for tests of what reads them."""

import math

import numpy as np

from neural.runs.importance_file import (
    ClassImportance,
    ImportanceHeader,
    ImportanceStep,
    PairImportance,
    write_importance,
)


def write_importance_file(
    folder,
    change,
    *,
    se=0.004,
    steps=None,
    loss=None,
    chance_loss=3.3,
    examples=64,
    pairs=(),
    classes=None,
    heads=None,
    method="mean",
):
    """Write `importance.json`; `change` is [step, layer, head], `se` likewise or one number.

    `pairs` are (first, second, both) of the last step; `classes` name → [step, layer, head]. The
    loss falls evenly to 1.3, so that the smallest relevant change at the end is 0.02.
    """
    change = np.asarray(change, float)
    count, layers, most_heads = change.shape
    heads = tuple(heads or [most_heads] * layers)
    steps = np.arange(1, count + 1) * 50 if steps is None else steps
    loss = np.linspace(2.5, 1.3, count + 1)[1:] if loss is None else loss
    errors = np.broadcast_to(se, change.shape)
    for layer, layer_heads in enumerate(heads):
        change[:, layer, layer_heads:] = math.nan
    header = ImportanceHeader(
        data="64 validation windows of handbook",
        method=method,
        examples=examples,
        layers=tuple(f"layer.{layer}" for layer in range(layers)),
        heads=heads,
        chance_loss=chance_loss,
    )

    def create_pair(first, second, both):
        alone = change[-1, *first] + change[-1, *second]
        return PairImportance(first, second, both, 0.01, both - alone, 0.01)

    return write_importance(
        folder,
        header,
        [
            ImportanceStep(
                step=int(step),
                loss=float(loss[index]),
                loss_se=0.01,
                change=change[index],
                se=errors[index],
                gradient=0.9 * change[index],
                classes={
                    name: ClassImportance(0.4, np.asarray(values, float)[index], errors[index])
                    for name, values in (classes or {}).items()
                },
                pairs=[create_pair(*pair) for pair in pairs] if index == count - 1 else [],
            )
            for index, step in enumerate(steps)
        ],
    )


def create_story(snapshots=20, layers=3, heads=4, noise=0.002):
    """Importance [step, layer, head] in which everything happens that the checks report.

    L2 h2 becomes necessary at half of the steps; L1 h3 takes over from L0 h1 at three fifths; the
    others have no effect.
    """
    change = noise * np.random.default_rng(5).normal(size=(snapshots, layers, heads))
    late, later = snapshots // 2, snapshots * 3 // 5
    change[late:, 2, 2] += 0.41
    change[:later, 0, 1] += 0.22
    change[later:, 1, 3] += 0.25
    return change
