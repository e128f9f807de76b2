"""Interventions recover circuits that are known by construction, and nothing else.

tests/circuits.py has the networks. The "zoo" contains a previous-token head and an induction head, a
copy head, two redundant heads, two decoys with a role and without effect, and an idle head.
"""

import pytest
import torch

from neural.capture.intervene import intervene, record_head_outputs
from neural.capture.interventions import patch, replace_by_mean, replace_pattern, zero
from tests.circuits import (
    ALL_HEADS,
    COPY,
    HEADS,
    INDUCTION,
    build_zoo,
    compute_logits,
    compute_losses,
    draw_pairs,
    zero_columns,
)

FAMILIES = ["own", "gpt2"]
NECESSARY, HARMLESS = 0.3, 0.01
HEAD_LIST = sorted(ALL_HEADS)


@torch.no_grad()
def measure_loss(model, batch, *interventions):
    with intervene(model, *interventions):
        return compute_losses(model, batch).nanmean().item()


def build_method(name, model, batch, reference):
    """A function from heads to an intervention that removes them."""
    if name == "zero":
        return zero
    if name == "mean":
        outputs = record_head_outputs(model, reference.tokens)
        return lambda heads: replace_by_mean(heads, outputs)
    if name == "mean per position":
        outputs = record_head_outputs(model, reference.tokens)
        return lambda heads: replace_by_mean(heads, outputs, per_position=True)
    if name == "resample":
        outputs = record_head_outputs(model, batch.tokens)
        rows = torch.arange(len(batch.tokens)).roll(1)
        return lambda heads: patch(heads, outputs, rows=rows)
    if name == "average pattern":
        outputs = record_head_outputs(model, reference.tokens, keep_weights=True)
        return lambda heads: replace_pattern(heads, outputs)
    return lambda heads: replace_pattern(heads, name)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "method", ["zero", "mean", "mean per position", "resample", "uniform", "diagonal"]
)
def test_every_method_recovers_the_necessary_heads_and_the_pair(method, family):
    circuit = build_zoo(family)
    batch, reference = circuit.draw(32, seed=1), circuit.draw(64, seed=2)
    remove = build_method(method, circuit.model, batch, reference)
    base = measure_loss(circuit.model, batch)
    changes = {head: measure_loss(circuit.model, batch, remove(head)) - base for head in HEAD_LIST}
    assert {head for head in HEAD_LIST if changes[head] > NECESSARY} == circuit.necessary
    # a resampled redundant head writes a wrong token where both examples have the question
    harmless = HARMLESS if method != "resample" else 0.1
    assert {head for head in HEAD_LIST if abs(changes[head]) < harmless} == circuit.harmless
    costs = {
        (first, second): measure_loss(circuit.model, batch, remove([first, second])) - base
        for index, first in enumerate(HEAD_LIST)
        for second in HEAD_LIST[index + 1 :]
        if {first, second} <= circuit.harmless
    }
    assert {pair for pair, cost in costs.items() if cost > NECESSARY} == circuit.redundant_pairs
    others = [cost for pair, cost in costs.items() if pair not in circuit.redundant_pairs]
    assert max(others) < harmless


def test_patterns_that_a_head_has_anyway_change_nothing():
    circuit = build_zoo()
    batch, reference = circuit.draw(32, seed=1), circuit.draw(64, seed=2)
    base = measure_loss(circuit.model, batch)

    def find_changed(method):
        remove = build_method(method, circuit.model, batch, reference)
        changes = {
            head: measure_loss(circuit.model, batch, remove(head)) - base for head in HEAD_LIST
        }
        return {head for head, change in changes.items() if abs(change) > HARMLESS}

    # a previous-token head attends to the same positions in all texts
    assert find_changed("previous") == {INDUCTION, COPY}
    assert find_changed("average pattern") == {INDUCTION, COPY}


@pytest.mark.parametrize("family", FAMILIES)
def test_zeroing_equals_zeroed_columns(family):
    circuit = build_zoo(family, noise=0.02)
    tokens = circuit.draw(8, seed=3).tokens
    for heads in ([INDUCTION], *map(list, circuit.redundant_pairs), HEAD_LIST):
        with intervene(circuit.model, zero(heads)):
            logits = compute_logits(circuit.model, tokens)
        expected = compute_logits(zero_columns(circuit.model, heads), tokens)
        assert torch.allclose(logits, expected, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("changed", ["key", "query"])
def test_patching_heads_at_positions_recovers_where_the_answer_is_decided(changed, family):
    circuit, pairs = build_zoo(family), draw_pairs(16, seed=4, changed=changed)
    model, rows = circuit.model, torch.arange(16)

    @torch.no_grad()
    def measure_difference(tokens, *interventions):
        with intervene(model, *interventions):
            last = compute_logits(model, tokens)[:, -1]
        return last[rows, pairs.answer] - last[rows, pairs.foil]

    clean = measure_difference(pairs.clean)
    corrupted = measure_difference(pairs.corrupted)
    source = record_head_outputs(model, pairs.clean)
    restored = {}
    for head in HEAD_LIST:
        for position in range(pairs.clean.shape[1]):
            patched = measure_difference(pairs.corrupted, patch(head, source, positions=[position]))
            restored[head, position] = ((patched - corrupted) / (clean - corrupted)).mean().item()
    important = set(pairs.important.items())
    assert {unit for unit, share in restored.items() if share > 0.9} == important
    assert {unit for unit, share in restored.items() if abs(share) > 0.01} == important


@pytest.mark.parametrize("family", FAMILIES)
def test_paths_between_heads_are_those_of_the_circuit(family):
    circuit, pairs = build_zoo(family), draw_pairs(16, seed=5)
    model, rows = circuit.model, torch.arange(16)

    @torch.no_grad()
    def measure_difference(tokens, *interventions):
        with intervene(model, *interventions):
            last = compute_logits(model, tokens)[:, -1]
        return last[rows, pairs.answer] - last[rows, pairs.foil]

    clean = measure_difference(pairs.clean)
    corrupted = measure_difference(pairs.corrupted)
    source = record_head_outputs(model, pairs.clean)
    restored = {}
    for sender in HEAD_LIST[:HEADS]:
        # what the heads of the next layer write if only the sender is as in the clean run
        reached = record_head_outputs(model, pairs.corrupted, patch(sender, source))
        for receiver in HEAD_LIST[HEADS:]:
            patched = measure_difference(pairs.corrupted, patch(receiver, reached))
            share = ((patched - corrupted) / (clean - corrupted)).mean().item()
            restored[sender, receiver] = share
    assert {edge for edge, share in restored.items() if share > 0.9} == circuit.path_edges
    assert {edge for edge, share in restored.items() if abs(share) > 0.01} == circuit.path_edges
