"""Synthetic runs that together have the symptom of every check.

Runs whose settings differ in their name alone are repetitions, so each has a `variant`, too.
"""

import numpy as np
import torch

from tests.findings.synthetic_runs import create_head_divergence, write_synthetic_run
from tests.importance_files import create_story, write_importance_file

SNAPSHOTS, LAYERS, HEADS, T = 20, 3, 4, 11
LABELS = ["␣" if index % 4 == 0 else "abcdefghijk"[index] for index in range(T)]


def create_map(rule):
    """A causal map [query, key] with weights proportional to `rule(query, key)`."""
    weights = np.array([[rule(i, j) if j <= i else 0.0 for j in range(T)] for i in range(T)])
    return weights / weights.sum(axis=1, keepdims=True)


UNIFORM = create_map(lambda i, j: 1.0)
SOFT = create_map(lambda i, j: 1 + 4 * np.sin(3 * i + 5 * j) ** 2)
SOFTER = create_map(lambda i, j: 1 + 4 * np.cos(2 * i + 7 * j) ** 2)
PREVIOUS = create_map(lambda i, j: 20.0 if j == max(i - 1, 0) else 0.1)
SINK = create_map(lambda i, j: 200.0 if j == 0 else 0.1)
THIRD = create_map(lambda i, j: 30.0 if j == max(i - 3, 0) else 0.1)


def create_measure(default, since=0, **heads):
    """[snapshot, layer, head]: `default`, and other values from a snapshot on: L1h2=0.9."""
    values = np.full((SNAPSHOTS, LAYERS, HEADS), float(default))
    for name, value in heads.items():
        layer, head = name[1:].split("h")
        values[since:, int(layer), int(head)] = value
    return values


def create_weights():
    """Weights in which L2 h1 has forty times the output of the other heads, and L1 h0 almost none."""
    random, width = np.random.default_rng(0), 3
    tensors = {}
    for layer in range(LAYERS):
        norms = [0.001 if layer == 1 else 1.0, 40.0 if layer == 2 else 1.0, 1.0, 1.0]
        output = np.concatenate([np.full((7, width), norm) for norm in norms], axis=1)
        value = random.normal(size=(HEADS * width, 7))
        value /= np.linalg.norm(value, axis=1, keepdims=True)
        output = output * random.normal(size=(7, 1))
        for name, weight in (("output", output), ("value", value)):
            tensors[f"model.layer.{layer}.{name}.weight"] = torch.tensor(
                weight, dtype=torch.float32
            )
    return tensors


def write_attention_run(root, seed=0, name="attention"):
    """A language model with the symptoms of all checks of attention; it also overfits.

    L0 is uniform, L1 h0 is dead, and a sink, L1 h1 and L1 h2 are duplicates, L1 h3 has large logits, L2
    h2 attends to the previous token since step 550. L2 diverges from the others, which become alike.
    L2 h2 is necessary, too; L1 h3 takes over from L0 h1, L1 h1 and L1 h2 are redundant, and the sink
    has no effect.
    """
    end = SNAPSHOTS // 2

    def create_snapshot(index):
        late = PREVIOUS if index >= end else SOFT
        return np.array(
            [[UNIFORM] * HEADS, [SINK, THIRD, THIRD, SOFT], [SOFT, SOFTER, late, SOFTER]]
        )

    def diverge(index):
        return lambda i, j: 0.7 if j == 2 and index >= end else 0.3 if index < end else 0.01

    losses = np.interp(range(SNAPSHOTS), [0, 6, 12, 19], [3.0, 1.6, 1.2, 1.7])
    noise = 0.002 * np.random.default_rng(seed).normal(size=(2, SNAPSHOTS))
    train = np.interp(range(SNAPSHOTS), [0, 6, 12, 19], [3.0, 1.5, 0.9, 0.3])
    run = write_synthetic_run(
        root,
        seed,
        settings={"name": name, "variant": name},
        arrays={
            "relative_entropy": create_measure(0.6, L0h0=0.99, L0h1=0.98, L0h2=0.98, L0h3=0.97),
            "previous_token_mass": create_measure(0.1, since=end, L2h2=0.9),
            "sink_excess": create_measure(0.05, since=end, L1h0=0.97),
            "largest_logit": create_measure(5, since=end, L1h3=83),
            "heads/divergence": np.stack(
                [
                    create_head_divergence([HEADS] * LAYERS, diverge(index), within=0.2)
                    for index in range(SNAPSHOTS)
                ]
            ),
        },
        scalars={"valid/loss": losses + noise[0], "train/loss": train + noise[1]},
        maps=[create_snapshot(index) for index in range(SNAPSHOTS)],
        labels=LABELS,
        heads=[HEADS] * LAYERS,
        tensors=create_weights(),
    )
    write_importance_file(
        run.path, create_story(SNAPSHOTS, LAYERS, HEADS), pairs=[((1, 1), (1, 2), 0.31)]
    )
    return run


def write_training_runs(root):
    """Runs without attention: at chance, still falling, worse after its best, with a plateau."""
    count = SNAPSHOTS
    random = np.random.default_rng(1)
    at_chance = write_synthetic_run(
        root,
        0,
        settings={"task": "supervised", "name": "chance"},
        scalars={
            "valid/loss": 0.7 + 0.001 * random.normal(size=count),
            "valid/accuracy": np.full(count, 0.5),
        },
        metadata={
            "data/chance_loss": 0.69,
            "data/majority_share": 0.6,
            "data/feature_scales": {"income": 5200.0, "age": 41.0, "rate": 0.3},
        },
    )
    falling = write_synthetic_run(
        root,
        0,
        settings={"name": "short", "variant": "short"},
        scalars={"valid/loss": 3 - 0.1 * np.arange(count) + 0.001 * random.normal(size=count)},
    )
    worse = write_synthetic_run(
        root,
        0,
        settings={"name": "worse", "variant": "worse"},
        scalars={"valid/loss": np.interp(range(count), [0, 8, 19], [3.0, 1.0, 1.8])},
    )
    plateau = write_synthetic_run(
        root,
        0,
        settings={"name": "plateau", "variant": "plateau"},
        scalars={
            "valid/loss": np.interp(range(count), [0, 4, 5, 12, 19], [5.0, 2.0, 2.05, 2.05, 1.0])
        },
    )
    return [at_chance, falling, worse, plateau]
