"""Importance of heads: agrees with computations by hand; standard errors hold; messages."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import neural
from neural.capture import head_importance
from neural.capture.head_importance import (
    ImportanceError,
    estimate_ratio,
    measure_head_importance,
)
from neural.capture.intervene import intervene, record_head_outputs
from neural.capture.interventions import (
    InterventionError,
    patch,
    replace_by_mean,
    replace_pattern,
    zero,
)
from tests.capture.test_replay import (
    EXAMPLES,
    LENGTH,
    VOCABULARY,
    build_decoder,
    build_sequential,
    build_shared,
    make_batch,
    next_token_losses,
)

PAD = 0


def measure(model, batch, **options):
    return measure_head_importance(model, next_token_losses, [batch], **options)


def changes_by_hand(model, batch, interventions):
    """Mean change and its standard error over examples, [head] → numbers."""
    with torch.no_grad():
        clean = next_token_losses(model, batch).double().mean(dim=1)
        results = {}
        for head, intervention in interventions.items():
            with intervene(model, intervention):
                changed = next_token_losses(model, batch).double().mean(dim=1)
            change = (changed - clean).numpy()
            results[head] = change.mean(), change.std(ddof=1) / math.sqrt(len(change))
    return results


def assert_agrees(importance, expected):
    for head, (change, standard_error) in expected.items():
        assert importance.change[head] == pytest.approx(change, abs=1e-6)
        assert importance.standard_error[head] == pytest.approx(standard_error, abs=1e-6)
    assert max(abs(change) for change, _ in expected.values()) > 1e-3


ALL_HEADS = [(layer, head) for layer in range(3) for head in range(3)]


def test_zero_is_zeroing_columns_of_the_output_projection():
    model, batch = build_decoder(), make_batch()
    importance = measure(model, batch, method="zero")
    with torch.no_grad():
        clean = next_token_losses(model, batch).double().mean(dim=1)
        for layer, head in ALL_HEADS:
            weight = model.transformer_decoder[layer].attention.sublayer.output.weight
            columns = weight[:, 4 * head : 4 * head + 4].clone()
            weight[:, 4 * head : 4 * head + 4] = 0
            change = next_token_losses(model, batch).double().mean(dim=1) - clean
            weight[:, 4 * head : 4 * head + 4] = columns
            assert importance.change[layer, head] == pytest.approx(float(change.mean()), abs=1e-6)
    np.testing.assert_allclose(
        importance.example_changes.mean(axis=-1), importance.change, atol=1e-12
    )


@pytest.mark.parametrize("build", [build_decoder, build_shared])
def test_mean_and_pattern_agree_with_interventions(build):
    model, batch = build(), make_batch()
    outputs = record_head_outputs(model, (batch["x"],), keep_weights=True)
    by_mean = {head: replace_by_mean(head, outputs) for head in ALL_HEADS}
    assert_agrees(measure(model, batch), changes_by_hand(model, batch, by_mean))
    for pattern in ("uniform", "previous", "average"):
        source = outputs if pattern == "average" else pattern
        by_pattern = {head: replace_pattern(head, source) for head in ALL_HEADS}
        importance = measure(model, batch, method="pattern", pattern=pattern, memory_bytes=1)
        assert_agrees(importance, changes_by_hand(model, batch, by_pattern))
        assert importance.method == f"pattern {pattern}"


def test_resampling_takes_another_example():
    model, batch = build_decoder(), make_batch()
    outputs = record_head_outputs(model, (batch["x"],))
    importance = measure(model, batch, method="resample", seed=4)
    rotations = [
        {
            head: patch(head, outputs, rows=[(i + k) % EXAMPLES for i in range(EXAMPLES)])
            for head in ALL_HEADS
        }
        for k in range(1, EXAMPLES)
    ]
    expected = [changes_by_hand(model, batch, rotation) for rotation in rotations]
    matches = [
        np.allclose([importance.change[h] for h in ALL_HEADS], [e[h][0] for h in ALL_HEADS])
        for e in expected
    ]
    assert sum(matches) == 1


def test_the_fast_way_little_memory_and_complete_passes_agree():
    model, batch = build_decoder(), make_batch()
    expected = measure(model, batch)
    for options in ({"use_blocks": False}, {"memory_bytes": 1}):
        importance = measure(model, batch, **options)
        for name in ("change", "standard_error", "gradient_estimate"):
            np.testing.assert_allclose(
                getattr(importance, name), getattr(expected, name), atol=1e-6
            )
        pairs = {(pair.first, pair.second): pair for pair in importance.pairs}
        for pair in expected.pairs:
            other = pairs[pair.first, pair.second]
            assert other.both == pytest.approx(pair.both, abs=1e-6)
            assert other.interaction == pytest.approx(pair.interaction, abs=1e-6)


class LinearHeads(nn.Module):
    """The loss of an example is linear in what each head writes."""

    def __init__(self):
        super().__init__()
        self.embedding, self.attention = nn.Embedding(VOCABULARY, 12), Attention()

    def forward(self, ids):
        return self.attention(self.embedding(ids))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.output = nn.Linear(12, 36), nn.Linear(12, 1)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v)
        return self.output(attended.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("method", ["zero", "mean", "resample", "pattern"])
def test_the_gradient_estimate_is_exact_for_a_loss_that_is_linear_in_the_heads(method):
    torch.manual_seed(0)
    # weights of the losses: without them, the mean of the changes would be 0 for "mean"
    batch = {**make_batch(), "weight": torch.randn(EXAMPLES, LENGTH)}
    importance = measure_head_importance(
        LinearHeads(),
        lambda model, batch: model(batch["x"])[..., 0] * batch["weight"],
        [batch],
        method=method,
    )
    np.testing.assert_allclose(importance.gradient_estimate, importance.change, atol=1e-6)
    assert np.abs(importance.change).max() > 1e-3
    assert all(abs(pair.interaction) < 1e-6 for pair in importance.pairs)


class DetachedBlocks(nn.Module):
    """Two blocks; no gradient gets through what lies between them."""

    def __init__(self):
        super().__init__()
        self.layers = build_sequential()

    def forward(self, ids):
        embedding, first, second, head = self.layers
        return head(second(first(embedding(ids)).detach()))


def test_a_gradient_that_cannot_be_had_is_missing_and_not_zero():
    importance = measure(DetachedBlocks(), make_batch())
    assert np.isnan(importance.gradient_estimate[0]).all()
    assert np.abs(importance.gradient_estimate[1]).min() > 0
    note = "the gradient estimate of L0 is missing: the model has no derivative here"
    assert importance.notes == (note,)


def test_unequal_examples_are_weighted_by_their_targets_and_padding_is_not_in_the_mean():
    """Padded examples give the same result as each alone, and as a computation by hand."""
    torch.manual_seed(0)
    program = """network Padded {
      input: (11,)
      layers:
        Embedding(input_dim=13, output_dim=12, pad_id=0)
        TransformerEncoder(num_heads=3, d_model=12, dff=13) * 2
        Output(13, activation="softmax")
      loss: "sparse_categorical_crossentropy"
    }"""
    model = neural.parse(program).build().eval()
    ids = torch.randint(1, VOCABULARY, (EXAMPLES, LENGTH))
    targets = torch.randint(1, VOCABULARY, (EXAMPLES, LENGTH))
    lengths = [11, 4, 7, 9, 2]
    for row, length in enumerate(lengths):
        ids[row, length:] = PAD
        targets[row, length:] = -1

    def losses(model, batch):
        values = functional.cross_entropy(
            model.logits(batch["x"]).transpose(1, 2), batch["y"].clamp(min=0), reduction="none"
        )
        return values.masked_fill(batch["y"] < 0, math.nan)

    batch = {"x": ids, "y": targets}
    importance = measure_head_importance(model, losses, [batch])
    assert importance.targets == sum(lengths)
    outputs = record_head_outputs(model, (ids,), keep_weights=True)
    real = ids != PAD
    with torch.no_grad():
        clean = losses(model, batch)
        for head in ((0, 0), (1, 2)):
            mean = outputs[head[0]].output[:, head[1]][real].mean(dim=0)
            source = record_head_outputs(model, (ids,))
            source[head[0]].output[:] = mean
            with intervene(model, patch(head, source)):
                change = (losses(model, batch) - clean)[real].double()
            assert importance.change[head] == pytest.approx(float(change.mean()), abs=1e-6)
    # one batch per example: another padding, the same result
    single = [
        {"x": ids[[row], :length], "y": targets[[row], :length]}
        for row, length in enumerate(lengths)
    ]
    alone = measure_head_importance(model, losses, single)
    np.testing.assert_allclose(alone.change, importance.change, atol=1e-6)
    np.testing.assert_allclose(alone.standard_error, importance.standard_error, atol=1e-6)
    np.testing.assert_allclose(alone.gradient_estimate, importance.gradient_estimate, atol=1e-6)


def test_the_standard_error_of_a_ratio_holds_in_simulation():
    """Intervals cover the true value about as often as they say, with unequal examples."""
    random = np.random.default_rng(11)
    covered = []
    for _ in range(2000):
        counts = random.integers(5, 60, size=24).astype(float)
        # examples differ, and their targets are correlated
        sums = counts * (0.3 + 0.2 * random.normal(size=24)) + np.sqrt(counts) * random.normal(
            size=24
        )
        ratio, error = estimate_ratio(sums, counts)
        covered.append(abs(ratio - 0.3) < 2.07 * error)  # t quantile of 23 degrees
    assert 0.92 < np.mean(covered) < 0.97


def test_token_classes_are_means_over_their_targets():
    model, batch = build_decoder(), make_batch()
    even = batch["y"] % 2 == 0
    rare = torch.zeros_like(even)
    rare[0, 0] = True
    classes = [{"even": even, "rare": rare}]
    importance = measure(model, batch, method="zero", classes=classes, with_pairs=False)
    assert list(importance.classes) == []  # fewer than 30 targets
    doubled = {name: torch.cat([ids, ids.flip(0)]) for name, ids in batch.items()}
    classes = [{name: torch.cat([mask, mask.flip(0)]) for name, mask in classes[0].items()}]
    importance = measure(model, doubled, method="zero", classes=classes, with_pairs=False)
    assert list(importance.classes) == ["even"]
    members = classes[0]["even"]
    assert importance.classes["even"].share == pytest.approx(float(members.float().mean()))
    with torch.no_grad():
        clean = next_token_losses(model, doubled)
        with intervene(model, zero((1, 1))):
            change = next_token_losses(model, doubled) - clean
    assert importance.classes["even"].change[1, 1] == pytest.approx(
        float(change[members].mean()), abs=1e-6
    )
    assert importance.classes["even"].change[1, 1] != pytest.approx(importance.change[1, 1])


class RedundantHeads(nn.Module):
    """Heads 1 and 4 of six in layer 0 say the answer; the loss saturates, so one is enough.

    The other heads, and those of two more layers, write into directions that nobody reads.
    """

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 24)
        self.layers = nn.ModuleList([RedundantLayer(layer) for layer in range(3)])

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = x + layer(x)
        return x


class RedundantLayer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.qkv, self.output = nn.Linear(24, 72), nn.Linear(24, 24, bias=False)
        with torch.no_grad():
            self.output.weight[0] = 0  # the answer is read from coordinate 0
            if layer == 0:
                for head in (1, 4):
                    self.qkv.weight[48 + 4 * head] = 0
                    self.qkv.bias[48 + 4 * head] = 1.0  # the value is always 1
                    self.output.weight[0, 4 * head] = 6.0

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 6, 4)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(attended.transpose(1, 2).flatten(2))


def answer_losses(model, batch):
    """−log P of a binary answer whose logit is coordinate 0, without the embedding's part."""
    x = model(batch["x"])
    return functional.softplus(-(x[..., 0] - model.embedding(batch["x"])[..., 0]))


def test_a_redundant_pair_is_found_among_many_heads():
    torch.manual_seed(0)
    batch = {"x": torch.randint(VOCABULARY, (12, LENGTH))}
    importance = measure_head_importance(RedundantHeads(), answer_losses, [batch], method="zero")
    assert sum(importance.heads) > head_importance.MAX_HEADS_ALL_PAIRS
    assert np.abs(importance.change).max() < 0.01  # no head does anything alone
    strongest = importance.pairs[0]
    assert (strongest.first, strongest.second) == ((0, 1), (0, 4))
    assert strongest.both == pytest.approx(math.log(2), abs=0.01)
    assert strongest.interaction == pytest.approx(math.log(2), abs=0.01)
    assert all(abs(pair.both) < 0.01 for pair in importance.pairs[1:])
    assert len(importance.pairs) < 40


@pytest.mark.parametrize(
    ("examples", "how"),
    [
        (3, "and measured on the same few examples"),
        (6, "on every 4th example and measured on the others"),
    ],
)
def test_few_examples_do_not_measure_all_pairs_of_many_heads(examples, how):
    torch.manual_seed(0)
    batch = {"x": torch.randint(VOCABULARY, (examples, LENGTH))}
    importance = measure_head_importance(RedundantHeads(), answer_losses, [batch], method="zero")
    assert (importance.pairs[0].first, importance.pairs[0].second) == ((0, 1), (0, 4))
    assert math.isfinite(importance.pairs[0].interaction_se)
    assert importance.notes == (f"{len(importance.pairs)} pairs of heads were chosen {how}",)
    assert len(importance.pairs) < 40


def test_only_named_heads_are_measured():
    model, batch = build_decoder(), make_batch()
    importance = measure(model, batch, heads=["L1 h2", (0, 1)])
    assert np.argwhere(np.isfinite(importance.change)).tolist() == [[0, 1], [1, 2]]
    assert [(pair.first, pair.second) for pair in importance.pairs] == [((0, 1), (1, 2))]
    assert np.isfinite(importance.gradient_estimate).sum() == 2


def test_progress_counts_to_the_end():
    progress = []
    importance = measure(
        build_decoder(), make_batch(), on_progress=lambda *count: progress.append(count)
    )
    assert len(importance.pairs) == 36
    assert progress[-1][0] == progress[-1][1] and progress == sorted(progress)
    assert len({total for _, total in progress}) == 1  # pairs are counted from the beginning


def test_progress_is_not_at_its_end_before_the_pairs_of_many_heads():
    progress, batch = [], {"x": torch.randint(VOCABULARY, (12, LENGTH))}
    importance = measure_head_importance(
        RedundantHeads(),
        answer_losses,
        [batch],
        method="zero",
        on_progress=lambda *count: progress.append(count),
    )
    totals = [total for _, total in progress]
    assert progress[-1] == (totals[-1], totals[-1]) and len(importance.pairs) < 40
    # candidates of several kinds may be the same pair, so that there are fewer than planned
    assert totals == sorted(totals, reverse=True) and totals[0] <= totals[-1] + 30
    assert all(done < total for done, total in progress[:-1])


def spoil(model):
    with torch.no_grad():
        next(model.parameters())[0, 0] = math.nan
    return model


def test_input_that_cannot_be_measured_is_a_message():
    model, batch = build_decoder(), make_batch()
    one = {name: ids[:1] for name, ids in batch.items()}

    def no_targets(model, batch):
        return next_token_losses(model, batch) * math.nan

    def infinite(model, batch):
        losses = next_token_losses(model, batch)
        return torch.where(torch.arange(len(losses))[:, None] == 3, math.inf, losses)

    cases = [
        (ImportanceError, "no method `sum`", lambda: measure(model, batch, method="sum")),
        (
            ImportanceError,
            "no pattern `up`",
            lambda: measure(model, batch, method="pattern", pattern="up"),
        ),
        (ImportanceError, "at least 2 examples", lambda: measure(model, one)),
        (InterventionError, "no head L9 h0", lambda: measure(model, batch, heads="L9 h0")),
        (InterventionError, "no head L1 h3", lambda: measure(model, batch, heads=[(1, 3)])),
        (ImportanceError, "not finite", lambda: measure(spoil(build_decoder()), batch)),
        (
            ImportanceError,
            "no example has a target",
            lambda: measure_head_importance(model, no_targets, [batch]),
        ),
        (
            ImportanceError,
            "loss of example 3 is infinite",
            lambda: measure_head_importance(model, infinite, [batch], use_blocks=False),
        ),
        (
            ImportanceError,
            "a loss for each example",
            lambda: measure_head_importance(
                model, lambda *args: next_token_losses(*args).mean(), [batch]
            ),
        ),
    ]
    for error, message, call in cases:
        with pytest.raises(error, match=message):
            call()


def test_a_loss_that_is_not_finite_without_a_head_names_head_and_example():
    model, batch = build_sequential(), make_batch()
    with torch.no_grad():
        expected = model(batch["x"])

    def losses(model, batch):
        """Infinite for the third example as soon as the output changes."""
        output = model(batch["x"])
        rows = torch.arange(len(output)) % EXAMPLES
        is_same = torch.isclose(output, expected[rows], atol=1e-5).all(dim=(1, 2))
        return torch.where((rows == 2) & ~is_same, math.inf, output.square().mean(dim=(1, 2)))

    with pytest.raises(ImportanceError, match="without L1 h0, the loss of example 2 is not finite"):
        measure_head_importance(
            model, losses, [batch], heads=[(1, 0)], method="zero", use_blocks=False
        )
