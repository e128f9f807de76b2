"""Interventions recover circuits that are known by construction, and nothing else.

tests/circuits.py has the networks. The "zoo" contains a previous-token head and an induction head, a
copy head, two redundant heads, two decoys with a role and without effect, and an idle head.
"""

from itertools import product

import numpy as np
import pytest
import torch

import neural
from neural.capture.head_importance import measure_head_importance
from neural.capture.intervene import intervene, record_head_outputs
from neural.capture.interventions import patch, replace_by_mean, replace_pattern, zero
from neural.capture.path_patching import patch_path
from neural.findings.head_necessity import decide_necessity, find_redundant_pairs
from neural.runs.importance_file import (
    ImportanceHeader,
    ImportanceStep,
    load_importance,
    save_importance_step,
)
from tests.circuits import (
    ALL_HEADS,
    COPY,
    HEADS,
    INDUCTION,
    build_random,
    build_successor,
    build_zoo,
    compute_logits,
    compute_losses,
    compute_named_losses,
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


@pytest.mark.parametrize("changed", ["key", "query"])
def test_patching_heads_at_positions_recovers_where_the_answer_is_decided(changed):
    circuit, pairs = build_zoo(), draw_pairs(4, seed=4, changed=changed)
    model, rows = circuit.model, torch.arange(4)

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
def test_the_only_path_leads_to_the_keys_of_the_induction_head(family):
    circuit, pairs = build_zoo(family), draw_pairs(4, seed=5)
    model, rows = circuit.model, torch.arange(4)

    def measure_difference(logits):
        last = logits.detach()[:, -1]
        return last[rows, pairs.answer] - last[rows, pairs.foil]

    clean = measure_difference(compute_logits(model, pairs.clean))
    corrupted = measure_difference(compute_logits(model, pairs.corrupted))
    source = record_head_outputs(model, pairs.clean)

    def find_paths(senders, receivers, through="all"):
        shares = {}
        for sender, receiver in product(senders, receivers):
            logits = patch_path(
                model,
                pairs.corrupted,
                sender,
                receiver,
                clean=source,
                through=through,
                forward=lambda: compute_logits(model, pairs.corrupted),
            )
            restored = (measure_difference(logits) - corrupted) / (clean - corrupted)
            shares[sender, receiver] = restored.mean().item()
        strong = {path for path, share in shares.items() if share > 0.9}
        assert strong == {path for path, share in shares.items() if abs(share) > 0.01}
        return strong

    first, second = HEAD_LIST[:HEADS], HEAD_LIST[HEADS:]
    assert find_paths(first, second) == circuit.path_edges
    assert find_paths(first, second, "k") == circuit.path_edges
    assert find_paths(first, second, "q") == set()
    assert find_paths(first, second, "v") == set()
    assert find_paths(HEAD_LIST, ["output"]) == {(INDUCTION, "output")}


def list_pairs(pairs):
    """Pairs as `neural.patch` takes them."""
    return [
        {"clean": clean, "corrupted": corrupted, "answer": answer, "wrong": foil}
        for clean, corrupted, answer, foil in zip(
            pairs.clean.tolist(),
            pairs.corrupted.tolist(),
            pairs.answer.tolist(),
            pairs.foil.tolist(),
            strict=True,
        )
    ]


ALL_PATHS = [
    (f"L0 h{sender}", f"L1 h{receiver}") for sender in range(HEADS) for receiver in range(HEADS)
]


def list_effects(result, kind):
    return {tuple(index) for index in np.argwhere(result[kind].has_effect).tolist()}


def list_edges(result):
    return {
        ((path.sender.layer, path.sender.head), (path.receiver.layer, path.receiver.head))
        for path, has_effect in zip(
            result.paths.paths, result.paths.effects.has_effect, strict=True
        )
        if has_effect
    }


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("changed", ["key", "query"])
def test_a_patching_experiment_finds_the_circuit_and_nothing_else(changed, family):
    circuit = build_zoo(family, noise=0.02 if family == "own" else 0.0)
    pairs = draw_pairs(5, seed=6, changed=changed, text_length=5)
    result = neural.patch(
        circuit.model, list_pairs(pairs), sweeps=["heads", "positions"], paths=ALL_PATHS
    )
    assert list_effects(result, "heads") == set(pairs.important)
    units = {(*head, position) for head, position in pairs.important.items()}
    assert list_effects(result, "positions") == units
    # if the query changes, the previous-token head writes the same on both inputs
    assert list_edges(result) == (circuit.path_edges if changed == "key" else set())


def test_patching_random_networks_finds_no_more_than_the_level_allows():
    heads = edges = 0
    for seed in range(10):
        pairs = draw_pairs(5, seed=200 + seed, text_length=5)
        result = neural.patch(
            build_random("own", 100 + seed, scale=3.0),
            list_pairs(pairs),
            sweeps="heads",
            paths=ALL_PATHS,
        )
        heads += bool(list_effects(result, "heads"))
        edges += bool(list_edges(result))
    # more than 2 of 10 have a probability of 1 % if each has 5 %
    assert heads <= 2
    assert edges <= 2


def measure_importance(model, batch, **options):
    return measure_head_importance(model, compute_named_losses, [batch.to_mapping()], **options)


def save_importance(folder, importance, batch, step=1):
    header = ImportanceHeader(
        data="sequences of the zoo",
        method=importance.method,
        examples=importance.examples,
        layers=importance.layers,
        heads=importance.heads,
        chance_loss=batch.chance_loss,
    )
    save_importance_step(
        folder,
        header,
        ImportanceStep(
            step=step,
            loss=importance.loss,
            loss_se=importance.loss_se,
            change=importance.change,
            se=importance.standard_error,
            gradient=importance.gradient_estimate,
            classes=importance.classes,
            pairs=importance.pairs,
        ),
    )


def decide(folder, importance, batch):
    """Necessary heads, heads without effect and redundant pairs of a measurement."""
    save_importance(folder, importance, batch)
    necessity = decide_necessity(load_importance(folder))
    return (
        set(necessity.list_necessary_heads()),
        {tuple(head) for head in np.argwhere(necessity.is_without_effect[-1]).tolist()},
        {(pair.first, pair.second) for pair in find_redundant_pairs(necessity)},
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", ["mean", "zero", "resample", "pattern"])
def test_decisions_about_heads_are_the_truth(method, family, tmp_path):
    circuit = build_zoo(family, noise=0.02 if family == "gpt2" else 0.0)
    # resampled redundant heads cost only 0.05 nats, which takes more examples
    batch = circuit.draw(64 if method == "resample" else 20, seed=7)
    importance = measure_importance(
        circuit.model, batch, method=method, with_pairs=method != "resample"
    )
    necessary, without_effect, pairs = decide(tmp_path, importance, batch)
    if method == "resample":
        assert necessary == circuit.necessary_if_resampled
        assert without_effect == ALL_HEADS - circuit.necessary_if_resampled
    else:
        assert necessary == circuit.necessary
        assert without_effect == circuit.harmless
        assert pairs == circuit.redundant_pairs


@pytest.mark.parametrize("method", ["mean", "zero", "pattern"])
def test_importance_equals_that_of_single_interventions(method):
    circuit = build_zoo(noise=0.02)
    batch = circuit.draw(16, seed=8)
    importance = measure_importance(circuit.model, batch, method=method)
    name = "uniform" if method == "pattern" else method
    remove = build_method(name, circuit.model, batch, batch)
    base = measure_loss(circuit.model, batch)
    for head in HEAD_LIST:
        change = measure_loss(circuit.model, batch, remove(head)) - base
        assert importance.change[head] == pytest.approx(change, abs=1e-4)
    for pair in importance.pairs:
        heads = [pair.first, pair.second]
        change = measure_loss(circuit.model, batch, remove(heads)) - base
        assert pair.both == pytest.approx(change, abs=1e-4)


@pytest.mark.parametrize("is_random", [True, False], ids=["random", "successor"])
def test_controls_have_no_necessary_head_and_no_pair(is_random, tmp_path):
    zoo = build_zoo()
    for seed in range(10):
        circuit = zoo if is_random else build_successor(noise=0.05, seed=100 + seed)
        model = build_random("own", 100 + seed, scale=3.0) if is_random else circuit.model
        batch = circuit.draw(20, seed=300 + seed)
        importance = measure_importance(model, batch)
        # the control is not silent: its heads change the loss, but do not help
        assert np.abs(importance.change).max() > 1e-4
        assert (importance.loss < 0.5 * batch.chance_loss) == (not is_random)
        necessary, _, pairs = decide(tmp_path, importance, batch)
        assert necessary == set()
        assert pairs == set()


def test_findings_of_a_run_name_the_circuit_its_start_and_the_decoys(tmp_path):
    circuit, model = build_zoo(), build_random("own", seed=0)
    batch, probe = circuit.draw(20, seed=9), circuit.draw(8, seed=10)
    folder = tmp_path / "runs" / "zoo"
    with neural.track(model, probe.tokens, every=1, run=folder) as tracker:
        for step in range(1, 8):
            is_learned = step > 3
            state = circuit.model if is_learned else build_random("own", seed=step, scale=3.0)
            model.load_state_dict(state.state_dict())
            importance = measure_importance(model, batch, with_pairs=is_learned)
            tracker.step(loss=importance.loss)
            save_importance(tracker.path, importance, batch, step)
    symptoms = {
        finding.code: symptom.figure["marks"]
        for finding in neural.analyze(str(tracker.path))
        if finding.code.startswith("CAU")
        for _, symptom in finding.symptoms
    }
    heads = {
        code: {(mark["layer"], mark["head"]) for mark in marks} for code, marks in symptoms.items()
    }
    assert heads == {
        "CAU001": circuit.necessary,
        "CAU002": circuit.decoys,
        "CAU003": {head for pair in circuit.redundant_pairs for head in pair},
    }
    assert {mark["onset"] for mark in symptoms["CAU001"]} == {4}
    assert {mark["label"] for mark in symptoms["CAU002"]} == {"previous token"}


def test_findings_of_a_random_run_say_nothing_about_heads(tmp_path):
    model, batch = build_random("own", seed=0), build_zoo().draw(20, seed=11)
    with neural.track(
        model, batch.tokens[:8], every=1, run=tmp_path / "runs" / "random"
    ) as tracker:
        for step in range(1, 4):
            model.load_state_dict(build_random("own", seed=step, scale=3.0).state_dict())
            importance = measure_importance(model, batch)
            tracker.step(loss=importance.loss)
            save_importance(tracker.path, importance, batch, step)
    codes = {finding.code for finding in neural.analyze(str(tracker.path))}
    assert not [code for code in codes if code.startswith("CAU")]
