"""Error rates and power of every check on data whose truth is known.

A warning or a note is false if it is given for a null; a claim is false if a null supports it.
`python -m tests.validity` prints the table that docs/analysis.md shows.
"""

import functools

import numpy as np
import pytest

from neural.findings.checks import registry
from tests.validity.fake_run import FakeRun
from tests.validity.test_head_necessity import (
    draw_takeover,
    draw_walks,
    measure_heads,
    with_role,
)

SNAPSHOTS, LAYERS, HEADS, T, SEEDS = 20, 4, 4, 24, 5


def constant_measure(draw, level, spread, noise=0.02):
    """A measure whose heads differ and do not change, (snapshot, layer, head)."""
    return (
        level
        + spread * draw.normal(size=(1, LAYERS, HEADS))
        + noise * draw.normal(size=(SNAPSHOTS, LAYERS, HEADS))
    )


def random_maps(draw, sharpness, heads=HEADS, layers=1):
    """Causal maps of random heads, (layer, head, query, key)."""
    scores = sharpness * draw.normal(size=(layers, heads, T, T))
    scores = np.where(np.tri(T, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def with_head(measure, draw, value, *, since=0):
    """A constant measure with one head that changes to another value."""
    values = constant_measure(draw, 0.1, 0.05)
    values[since:, 1, 2] = value + 0.05 * draw.normal(size=SNAPSHOTS - since)
    return {"arrays": {measure: values}}


def create_divergence(draw, levels, *, heads=3, layers=4, spread=0.02):
    """Divergence of all pairs of heads at every snapshot.

    `levels(i, j, time)` is that of heads of layers i ≤ j, with time from 0 to 1.
    """
    layer = np.repeat(np.arange(layers), heads)
    pair_effect = spread * draw.normal(size=(len(layer), len(layer)))
    pair_effect = np.triu(pair_effect, 1) + np.triu(pair_effect, 1).T
    matrices = []
    for index in range(SNAPSHOTS):
        noise = 0.005 * draw.normal(size=pair_effect.shape)
        time = index / (SNAPSHOTS - 1)
        pairs = np.array([[levels(min(i, j), max(i, j), time) for j in layer] for i in layer])
        matrix = np.clip(pairs + pair_effect + np.triu(noise, 1) + np.triu(noise, 1).T, 0, 1)
        matrices.append(matrix * (1 - np.eye(len(layer))))
    return {"arrays": {"heads/divergence": np.stack(matrices)}, "heads": [heads] * layers}


def same_heads_in_another_order(draw):
    """Every layer has the same kinds of heads, which diverge from each other."""
    kinds = np.concatenate([draw.permutation(3) for _ in range(4)])
    matrices = []
    for index in range(SNAPSHOTS):
        divergence = 0.02 + 0.5 * min(1.0, 2 * index / SNAPSHOTS)
        matrix = np.where(kinds[:, None] == kinds, 0.02, divergence) + 0.005 * np.abs(
            draw.normal(size=(12, 12))
        )
        matrices.append(np.triu(matrix, 1) + np.triu(matrix, 1).T)
    return {"arrays": {"heads/divergence": np.stack(matrices)}, "heads": [3] * 4}


def specialised(onset):
    """Layers that diverge at a share of the training."""
    return lambda draw: create_divergence(
        draw, lambda i, j, time: 0.2 if i == j or time < onset else 0.5
    )


def loss_data(curve):
    return lambda draw: {"scalars": {"valid/loss": curve(draw)}}


def falling(draw, noise=0.005):
    curve = 1 + 2 * np.exp(-np.arange(40) / 7)
    return curve * (1 + noise * draw.normal(size=40))


def decaying(rate, *, noise=0.005, rise=0.0):
    """A loss that falls by exp(−rate · time), time from 0 to 1, and rises after half of it."""

    def curve(draw):
        time = np.arange(40) / 40
        loss = 1 + 2 * np.exp(-rate * time) + rise * np.maximum(time - 0.5, 0)
        return loss * (1 + noise * draw.normal(size=40))

    return curve


def losses(valid_curve):
    """A validation loss, and a noisy training loss that falls all the time."""

    def create_data(draw):
        train = 3 * np.exp(-np.arange(40) / 15) * (1 + 0.1 * draw.normal(size=40))
        return {"scalars": {"valid/loss": valid_curve(draw), "train/loss": train}}

    return create_data


def classifier(*, signal, positives=0.5, examples=200, validations=12):
    """Validations of a model whose log-odds approach the true ones, plus noise."""

    def create_data(draw):
        z, offset = draw.normal(size=examples), np.log(positives / (1 - positives))
        y = draw.random(examples) < 1 / (1 + np.exp(-(offset + signal * z)))
        learned = np.linspace(0, 1, validations)[:, None]
        noise = 0.3 * draw.normal(size=(validations, examples))
        log_odds = offset + learned * signal * z + noise
        loss = np.logaddexp(0, np.where(y, -log_odds, log_odds)).mean(axis=1)
        accuracy = ((log_odds > 0) == y).mean(axis=1)
        share = y.mean()
        chance = -share * np.log(share) - (1 - share) * np.log(1 - share)
        return {
            "scalars": {"valid/loss": loss, "valid/accuracy": accuracy},
            "settings": {"task": "supervised"},
            "metadata": {
                "data/chance_loss": float(chance),
                "data/majority_share": float(max(share, 1 - share)),
            },
        }

    return create_data


def features(*, thousands=0):
    """Scales of 20 features, of which some are in thousands."""

    def create_data(draw):
        std, mean = draw.uniform(0.1, 3, 20), draw.uniform(-3, 3, 20)
        x = mean + std * draw.normal(size=(300, 20))
        x[:, :thousands] *= 1000
        scales = np.sqrt((x**2).mean(axis=0))
        names = map(str, range(20))
        scale_by_name = dict(zip(names, scales.tolist(), strict=True))
        return {
            "settings": {"task": "supervised"},
            "metadata": {"data/feature_scales": scale_by_name},
        }

    return create_data


def with_plateau(draw):
    curve = np.interp(np.arange(40), [0, 8, 22, 39], [4, 2, 2, 1])
    return curve + 0.01 * draw.normal(size=40)


def two_sinks_that_differ(draw):
    """Two heads with .98 on the first key and the rest at random, and two random ones."""
    maps = random_maps(draw, 2.0)
    for head in (0, 1):
        maps[0, head] *= 0.02
        maps[0, head, :, 0] += 0.98
    maps[0, :, 0] = 0
    maps[0, :, 0, 0] = 1
    return {"maps": [maps]}


def with_duplicates(draw):
    maps = random_maps(draw, 2.0)
    maps[0, 3] = maps[0, 1]
    return {"maps": [maps]}


def weights_with_norms(draw, *factors):
    import torch

    value = draw.normal(size=(HEADS * 3, 7))
    output = draw.normal(size=(7, HEADS * 3)) * np.repeat(factors or (1,) * HEADS, 3)
    weights = {"output": output, "value": value}
    tensors = {
        f"model.layer.0.{name}.weight": torch.tensor(weight, dtype=torch.float32)
        for name, weight in weights.items()
    }
    return {
        "tensors": tensors,
        "heads": [HEADS],
        "arrays": {"sink_excess": constant_measure(draw, 0.1, 0.05)},
    }


def focus_data(draw, **scores):
    """Validations of a focus model, of 300 examples each."""
    means = {
        "accuracy": 0.95,
        "focus_accuracy": 0.93,
        "focus_confidence": 0.92,
        "cell_ft": 0.03,
    } | scores
    values = {
        f"valid/{name}": p + np.sqrt(p * (1 - p) / 300) * draw.normal(size=12)
        for name, p in means.items()
    }
    return {
        "scalars": values,
        "settings": {"task": "focus", "paradigm": "hybrid"},
        "metadata": {"steps": 600},
        "events": [(150, "switch", "", 0.0)],
    }


def related_curves(relation):
    """A measure and the loss: a shared trend plus random walks with correlation `relation`."""

    def create_data(draw, measure="span"):
        fall = np.exp(-np.arange(60) / 15)
        walks = np.cumsum(0.05 * draw.normal(size=(2, 60)), axis=1)
        signal = 3 - fall + walks[0]
        loss = 1.5 + fall + relation * walks[0] + np.sqrt(1 - relation**2) * walks[1]
        halves = signal[:, None] + 0.01 * draw.normal(size=(60, 2))
        windows = loss[:, None] + 0.05 * draw.normal(size=(60, 64))
        arrays = {measure: halves.mean(axis=1)[:, None, None], f"halves/{measure}": halves}
        return {
            "arrays": {**arrays, "valid/window_losses": windows},
            "scalars": {"valid/loss": windows.mean(axis=1)},
        }

    return create_data


def learned(create_data):
    return lambda draw: {"scalars": {"valid/loss": falling(draw)}, **create_data(draw)}


def by_layer(measure, slope, noise=1.0):
    levels = 10 + slope * np.arange(LAYERS)[None, :, None]
    return lambda draw: {"arrays": {measure: levels + noise * draw.normal(size=(2, LAYERS, HEADS))}}


def diverse(slope):
    levels = 0.5 + slope * np.arange(LAYERS)
    return lambda draw: {
        "arrays": {"head_diversity": levels + 0.05 * draw.normal(size=(2, LAYERS))}
    }


# check → (description of the null, its data, description of the truth, its data)
CASES = {
    "uniform_attention": (
        "heads of any entropy below uniform",
        lambda draw: {"arrays": {"relative_entropy": constant_measure(draw, 0.7, 0.08)}},
        "half of the heads within 3 % of uniform",
        lambda draw: {
            "arrays": {
                "relative_entropy": constant_measure(draw, 0.7, 0.05)
                + 0.28 * (np.arange(HEADS) % 2)
            }
        },
    ),
    "attention_sinks": (
        "uniform heads of short texts, windows: excess around 0",
        lambda draw: {"arrays": {"sink_excess": constant_measure(draw, 0.0, 0.05, 0.05)}},
        "a head with .7 on the first key",
        lambda draw: with_head("sink_excess", draw, 0.7, since=8),
    ),
    "dead_heads": (
        "heads with equal outputs and no sinks",
        weights_with_norms,
        "a head with a hundredth of the output",
        lambda draw: weights_with_norms(draw, 1, 0.01, 1, 1),
    ),
    "duplicate_heads": (
        "random heads, two of them sinks that differ elsewhere",
        two_sinks_that_differ,
        "two equal heads",
        with_duplicates,
    ),
    "dominating_head": (
        "heads with equal outputs",
        weights_with_norms,
        "a head with eight times the output",
        lambda draw: weights_with_norms(draw, 1, 8, 1, 1),
    ),
    "saturated_logits": (
        "largest logits of 10 to 30 nats",
        lambda draw: {"arrays": {"largest_logit": constant_measure(draw, 20, 4, 1.0)}},
        "a head at 80 nats",
        lambda draw: with_head("largest_logit", draw, 80),
    ),
    "layers_became_alike": (
        "layers that stay different",
        lambda draw: create_divergence(draw, lambda i, j, time: 0.2),
        "two layers that become equal",
        lambda draw: create_divergence(
            draw, lambda i, j, time: 0.005 + 0.2 * (1 - time) ** 4 if i != j else 0.2, spread=0.002
        ),
    ),
    "head_roles": (
        "random heads, sharp and flat",
        lambda draw: {"maps": [random_maps(draw, sharp, layers=2) for sharp in (0.5, 1.0, 2.0)]},
        "a head that becomes a previous-token head",
        lambda draw: with_head("previous_token_mass", draw, 0.7, since=8),
    ),
    "layers_specialised": (
        "layers with the same heads in another order",
        same_heads_in_another_order,
        "layers that diverge half-way",
        specialised(0.5),
    ),
    "training_phases": (
        "validations of noise only",
        loss_data(lambda draw: 2 + 0.1 * draw.normal(size=40)),
        "a loss that falls and saturates",
        loss_data(falling),
    ),
    "patience": (
        "a loss that falls and saturates, noise of .5 %",
        loss_data(falling),
        "a plateau of 14 validations before the best",
        loss_data(with_plateau),
    ),
    "undertrained": (
        "a loss that has levelled off, noise of 2 %",
        loss_data(decaying(13, noise=0.02)),
        "a loss that falls by a factor of e in half of the training",
        loss_data(decaying(2)),
    ),
    "best_checkpoint": (
        "a loss that has levelled off, noise of 2 %",
        loss_data(decaying(13, noise=0.02)),
        "a loss that rises by .25 after half of the training",
        loss_data(decaying(13, rise=0.5)),
    ),
    "overfitting": (
        "a validation loss that has levelled off (noise of 2 %), a training loss that falls",
        losses(decaying(13, noise=0.02)),
        "a validation loss that rises by .25 after half of the training",
        losses(decaying(13, noise=0.02, rise=0.5)),
    ),
    "loss_above_chance": (
        "200 validation examples, a model that knows the log-odds (SD 1)",
        classifier(signal=1.0),
        "targets unrelated to the inputs, log-odds of noise (SD .3)",
        classifier(signal=0.0),
    ),
    "majority_accuracy": (
        "200 validation examples, 20 % of them positive, a model that knows the log-odds (SD 3)",
        classifier(signal=3.0, positives=0.2),
        "targets unrelated to the inputs, 20 % positive, log-odds of noise (SD .3)",
        classifier(signal=0.0, positives=0.2),
    ),
    "unscaled_features": (
        "20 features with standard deviations of .1 to 3 and means of −3 to 3",
        features(),
        "one of them in thousands",
        features(thousands=1),
    ),
    "vague_focus": (
        "a confident focus",
        focus_data,
        "right, with a largest weight of .5",
        lambda draw: focus_data(draw, focus_confidence=0.5),
    ),
    "wrong_focus": (
        "a right focus",
        focus_data,
        "confident, and right in .4",
        lambda draw: focus_data(draw, focus_accuracy=0.4),
    ),
    "background_shortcut": (
        "every class is found",
        lambda draw: focus_data(draw, focus_accuracy_class_0=0.9),
        "a class found in .3, and .2 right with wrong focus",
        lambda draw: focus_data(draw, focus_accuracy_class_0=0.3, cell_ft=0.2),
    ),
    "switch_time": (
        "a switch after a quarter of the steps",
        focus_data,
        "a switch after 90 % of them",
        lambda draw: {**focus_data(draw), "events": [(540, "switch", "", 0.0)]},
    ),
    "necessary_heads": (
        "no head has an effect, per-example changes of ± .05 nats, skewed",
        lambda draw: {"importance": measure_heads(draw, np.zeros((1, 6, 6)), skew=-1)},
        "one head of 36 with .04 nats",
        lambda draw: {
            "importance": measure_heads(
                draw, np.where(np.arange(36) == 8, 0.04, 0).reshape(1, 6, 6)
            )
        },
    ),
    "role_without_effect": (
        "a head with a role and an effect of .02 nats, the bound",
        lambda draw: with_role(draw, 0.02),
        "a head with a role and no effect",
        lambda draw: with_role(draw, 0.0),
    ),
    "redundant_heads": (
        "pairs whose effects of .02 nats add up",
        lambda draw: {
            "importance": measure_heads(
                draw, np.full((1, 2, 4), 0.02), pair_effects=[0.04] * 6, sd=0.03
            )
        },
        "one of six pairs costs .3 nats together, nothing alone",
        lambda draw: {
            "importance": measure_heads(
                draw, np.zeros((1, 2, 4)), pair_effects=[0.3, 0, 0, 0, 0, 0], sd=0.03
            )
        },
    ),
    "head_takeover": (
        "random walks of .02 nats per checkpoint",
        lambda draw: {"importance": draw_walks(draw, 0.02)},
        "one head of .1 nats ends where another starts, noise of .005",
        lambda draw: {"importance": draw_takeover(draw, 0.1, drift=0.005)},
    ),
    "entropy_falls": (
        "constant entropy",
        lambda draw: {"arrays": {"entropy": constant_measure(draw, 3, 0.3, 0.1)}},
        "a fall of .3 nats, seeds differing by .1",
        lambda draw: {
            "arrays": {
                "entropy": constant_measure(draw, 3, 0.3)
                - np.linspace(0, 0.3 + 0.1 * draw.normal(), SNAPSHOTS)[:, None, None]
            }
        },
    ),
    "spans_widen": (
        "spans that do not depend on the layer",
        by_layer("span_without_sink", 0.0),
        "a position more per layer, heads differing by 1",
        by_layer("span_without_sink", 1.0),
    ),
    "local_heads": (
        "a model that did not learn",
        lambda draw: {
            "scalars": {"valid/loss": 2 + 0.1 * draw.normal(size=20)},
            "arrays": {
                "span90": np.concatenate([np.full((1, 2, 4), 20.0), np.full((1, 2, 4), 2.0)])
            },
        },
        "a head of eight becomes local, others do not",
        learned(
            lambda draw: {"arrays": {"span90": np.array([[[20.0] * 8], [[2.0] + [20.0] * 7]])}}
        ),
    ),
    "lower_layers_alike": (
        "divergence grows with distance only",
        lambda draw: create_divergence(draw, lambda i, j, time: 0.2 + 0.1 * (j - i)),
        "lower pairs .1 closer",
        lambda draw: create_divergence(
            draw, lambda i, j, time: 0.2 if i == j else 0.3 if j < 2 else 0.4
        ),
    ),
    "specialisation": (
        "divergence that grows steadily",
        lambda draw: create_divergence(
            draw, lambda i, j, time: 0.2 if i == j else 0.2 + 0.3 * time
        ),
        "an onset at two fifths",
        specialised(0.4),
    ),
    "span_and_loss": (
        "independent random walks",
        related_curves(0.0),
        "random walks with correlation .8",
        related_curves(0.8),
    ),
    "entropy_and_loss": (
        "independent random walks",
        functools.partial(related_curves(0.0), measure="entropy"),
        "random walks with correlation .8",
        functools.partial(related_curves(0.8), measure="entropy"),
    ),
    "similarity_and_loss": (
        "independent random walks",
        functools.partial(related_curves(0.0), measure="js_between"),
        "random walks with correlation .8",
        functools.partial(related_curves(0.8), measure="js_between"),
    ),
    "late_layers_diverse": (
        "diversity that does not depend on the layer",
        diverse(0.0),
        "a tenth of a nat more per layer, layers differing by .05",
        diverse(0.1),
    ),
    "higher_layers_alike": (
        "divergence grows with distance only",
        lambda draw: create_divergence(draw, lambda i, j, time: 0.2 + 0.1 * (j - i)),
        "higher pairs .1 closer",
        lambda draw: create_divergence(
            draw, lambda i, j, time: 0.2 if i == j else 0.3 if i >= 2 else 0.4
        ),
    ),
}
FAST_CHECKS = {"entropy_falls", "spans_widen", "late_layers_diverse"}
IN_OTHER_FILES = {"balanced_entropy"}
"""Simulated in other files."""


def verdict_share(name, create_data, repeats, *, verdicts=("yes", "no")):
    """Share of simulations in which a check gives one of the verdicts; claims have five seeds."""
    check, count = registry.get(name), 0
    seeds = SEEDS if check.kind == "claim" else 1
    for repeat in range(repeats):
        runs = [
            FakeRun(seed, **create_data(np.random.default_rng((repeat, seed))))
            for seed in range(seeds)
        ]
        finding = check().analyze(runs)
        count += finding is not None and finding.supported in verdicts
    return count / repeats


def rates(repeats=200, names=None):
    """For the table of docs/analysis.md, where fast simulations have ten times the repeats."""
    rows, base_repeats = [], repeats
    for name in names or CASES:
        null, create_null, truth, create_truth = CASES[name]
        repeats = 10 * base_repeats if name in FAST_CHECKS and names is None else base_repeats
        # without an effect both verdicts are wrong; for unrelated series "no" is right
        false_verdicts = ("yes",) if name.endswith("_and_loss") else ("yes", "no")
        rows.append(
            {
                "code": registry.get(name).code,
                "null": null,
                "truth": truth,
                "repeats": repeats,
                "false_positive_rate": verdict_share(
                    name, create_null, repeats, verdicts=false_verdicts
                ),
                "power": verdict_share(name, create_truth, repeats, verdicts=("yes",)),
            }
        )
    return sorted(rows, key=lambda row: row["code"])


def test_every_check_has_a_null_and_a_truth():
    assert {*CASES} | IN_OTHER_FILES == {*registry.names()}


@pytest.mark.parametrize("name", CASES)
def test_a_check_is_rarely_wrong_on_its_null_and_finds_its_truth(name):
    (row,) = rates(12, [name])
    assert row["false_positive_rate"] <= 2 / 12, row  # more would happen once in 50 at 5 %
    assert row["power"] >= 0.6, row
