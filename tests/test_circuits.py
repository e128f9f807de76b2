"""The hand-set circuits do what they claim, shown without the interventions of the project."""

import math

import pytest
import torch

import neural
from tests.circuits import (
    ALL_HEADS,
    BALANCE,
    FIRST_WORD,
    HEAD_WIDTH,
    HEADS,
    IDLE,
    INDUCTION,
    LAYERS,
    LENGTH,
    PREVIOUS_HEAD,
    REDUNDANT,
    SECOND_REDUNDANT,
    VOCABULARY,
    build_copy,
    build_decoy,
    build_induction,
    build_random,
    build_redundant,
    build_tokenizer,
    build_zoo,
    change_head_outputs,
    compute_logits,
    compute_losses,
    draw_pairs,
    find_attention,
    find_output_projection,
    format_tokens,
    make_repeated_sequences,
    zero_columns,
)

BUILDERS = [build_zoo, build_induction, build_copy, build_redundant, build_decoy]
FAMILIES = ["own", "gpt2"]
NECESSARY, HARMLESS = 0.3, 0.01


@torch.no_grad()
def measure_loss(model, batch):
    return compute_losses(model, batch).nanmean().item()


@torch.no_grad()
def record_inputs(modules, run):
    """The input of each module during `run()`."""
    inputs = []
    handles = [
        module.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
        for module in modules
    ]
    run()
    for handle in handles:
        handle.remove()
    return inputs


def record_outputs(model, tokens):
    """Outputs (B, T, H, D) of the heads of each layer."""
    projections = [find_output_projection(model, layer) for layer in range(LAYERS)]
    inputs = record_inputs(projections, lambda: compute_logits(model, tokens))
    return [layer.unflatten(-1, (HEADS, HEAD_WIDTH)) for layer in inputs]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("build", BUILDERS)
def test_zeroed_columns_show_the_described_truth(build, family):
    circuit = build(family)
    batch = circuit.draw(32, seed=1)
    base = measure_loss(circuit.model, batch)
    assert base < 1e-3
    changes = {
        head: measure_loss(zero_columns(circuit.model, [head]), batch) - base
        for head in sorted(ALL_HEADS)
    }
    assert {head for head, change in changes.items() if change > NECESSARY} == circuit.necessary
    assert {head for head, change in changes.items() if abs(change) < HARMLESS} == circuit.harmless
    for pair in circuit.redundant_pairs:
        assert measure_loss(zero_columns(circuit.model, pair), batch) - base > NECESSARY
    assert measure_loss(zero_columns(circuit.model, circuit.decoys), batch) - base < HARMLESS


@pytest.mark.parametrize("seed", range(3))
def test_truth_stays_if_all_weights_are_noisy(seed):
    circuit = build_zoo(noise=0.02, seed=seed)
    batch = circuit.draw(32, seed=1)
    base = measure_loss(circuit.model, batch)
    for head in sorted(ALL_HEADS):
        change = measure_loss(zero_columns(circuit.model, [head]), batch) - base
        assert change > NECESSARY if head in circuit.necessary else abs(change) < HARMLESS
    logits, without_idle = (
        compute_logits(model, batch.tokens)
        for model in (circuit.model, zero_columns(circuit.model, [IDLE]))
    )
    assert (logits - without_idle).abs().max() > 0.01
    (pair,) = circuit.redundant_pairs
    assert measure_loss(zero_columns(circuit.model, pair), batch) - base > NECESSARY


@pytest.mark.parametrize("family", FAMILIES)
def test_means_of_outputs_show_the_same_truth(family):
    circuit = build_zoo(family)
    batch, reference = circuit.draw(32, seed=1), circuit.draw(64, seed=2)
    means = [layer.mean(dim=(0, 1)) for layer in record_outputs(circuit.model, reference.tokens)]

    def measure(heads):
        changes = {(layer, head): lambda _, mean=means[layer][head]: mean for layer, head in heads}
        with change_head_outputs(circuit.model, changes):
            return measure_loss(circuit.model, batch)

    base = measure([])
    assert base == measure_loss(circuit.model, batch)
    changes = {head: measure([head]) - base for head in sorted(ALL_HEADS)}
    assert {head for head, change in changes.items() if change > NECESSARY} == circuit.necessary
    assert {head for head, change in changes.items() if abs(change) < HARMLESS} == circuit.harmless
    (pair,) = circuit.redundant_pairs
    assert measure(pair) - base > NECESSARY


def test_resampling_a_redundant_head_writes_a_wrong_token():
    circuit = build_redundant()
    batch = circuit.draw(64, seed=1)

    def measure(*heads):
        changes = dict.fromkeys(heads, lambda output: output.roll(1, dims=0))
        with change_head_outputs(circuit.model, changes):
            return measure_loss(circuit.model, batch)

    # a tie of two tokens; sometimes the other example has its question elsewhere, and no tie
    assert 0.1 < measure(REDUNDANT) <= math.log(2) + 0.01
    assert measure(SECOND_REDUNDANT) == pytest.approx(measure(REDUNDANT), abs=0.01)
    assert measure(REDUNDANT, SECOND_REDUNDANT) > 2


def test_uniform_patterns_show_the_same_truth():
    circuit = build_zoo()
    batch = circuit.draw(32, seed=1)
    model = circuit.model
    values = []
    handles = [
        attention.value.register_forward_hook(lambda *args: values.append(args[-1]))
        for attention in find_attention(model)
    ]
    base = measure_loss(model, batch)
    for handle in handles:
        handle.remove()
    seen = torch.arange(1, batch.tokens.shape[1] + 1)[:, None]

    def measure(*heads):
        changes = {
            (layer, head): lambda output, layer=layer, head=head: (
                values[layer].unflatten(-1, (HEADS, HEAD_WIDTH))[:, :, head].cumsum(1) / seen
            )
            for layer, head in heads
        }
        with change_head_outputs(model, changes):
            return measure_loss(model, batch)

    changes = {head: measure(head) - base for head in sorted(ALL_HEADS)}
    assert {head for head, change in changes.items() if change > NECESSARY} == circuit.necessary
    assert {head for head, change in changes.items() if abs(change) < HARMLESS} == circuit.harmless
    assert measure(REDUNDANT, SECOND_REDUNDANT) - base > NECESSARY


def test_both_families_compute_the_same_function():
    batch = build_zoo().draw(16, seed=3)
    own, gpt2 = (compute_logits(build_zoo(family).model, batch.tokens) for family in FAMILIES)
    assert torch.allclose(own, gpt2, atol=1e-4)
    assert own.std() > 1


@pytest.mark.parametrize("family", FAMILIES)
def test_norms_are_nearly_the_identity(family):
    circuit = build_zoo(family)
    norms = [module for module in circuit.model.modules() if isinstance(module, torch.nn.LayerNorm)]
    assert len(norms) == 2 * LAYERS + 1
    tokens = circuit.draw(8, seed=4).tokens
    inputs = record_inputs(norms, lambda: compute_logits(circuit.model, tokens))
    for norm, x in zip(norms, inputs, strict=True):
        assert torch.allclose(norm(x)[..., :BALANCE], x[..., :BALANCE], atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_decoys_and_the_first_head_attend_to_the_previous_token(family):
    circuit = build_zoo(family)
    tokens = circuit.draw(16, seed=5).tokens
    capture = neural.watch(circuit.model, tokens)
    heads = {
        (layer, head)
        for layer, call in enumerate(capture)
        for head, mass in enumerate(call.measures["previous_token_mass"])
        if mass > 0.99
    }
    assert heads == circuit.previous_token_heads
    assert circuit.decoys < circuit.previous_token_heads
    batch = build_induction(family).draw(16, seed=5)
    maps = neural.watch(circuit.model, batch.tokens)[INDUCTION[0]].maps()[:, INDUCTION[1]]
    half = (batch.tokens.shape[1] - 2) // 2
    for query in range(2 + half, 2 + 2 * half - 1):
        assert (maps[:, query, query - half + 1] > 0.99).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_random_weights_know_nothing(family, seed):
    batch = build_zoo().draw(64, seed=6)
    for scale in (1.0, 3.0):
        model = build_random(family, seed, scale)
        assert measure_loss(model, batch) > math.log(VOCABULARY) - 0.2
    assert not torch.equal(
        compute_logits(build_random(family, seed), batch.tokens),
        compute_logits(build_random(family, seed + 10), batch.tokens),
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("changed", ["key", "query"])
def test_pairs_differ_in_one_token_and_in_the_answer(changed, family):
    circuit, pairs = build_zoo(family), draw_pairs(16, seed=7, changed=changed)
    is_different = pairs.clean != pairs.corrupted
    assert (is_different.sum(dim=1) == 1).all()
    assert is_different[:, pairs.changed_position].all()
    rows = torch.arange(16)

    @torch.no_grad()
    def measure_difference(tokens):
        last = compute_logits(circuit.model, tokens)[:, -1]
        return last[rows, pairs.answer] - last[rows, pairs.foil]

    assert (measure_difference(pairs.clean) > 20).all()
    corrupted = measure_difference(pairs.corrupted)
    assert (corrupted < -20).all() if changed == "query" else (corrupted.abs() < 0.1).all()

    # the outputs of single heads at single positions, moved from the clean to the corrupted run
    clean = record_outputs(circuit.model, pairs.clean)
    for layer, head in sorted(ALL_HEADS):
        for position in range(pairs.clean.shape[1]):

            def patch(output, source=clean[layer][:, :, head], position=position):
                output = output.clone()
                output[:, position] = source[:, position]
                return output

            with change_head_outputs(circuit.model, {(layer, head): patch}):
                restored = measure_difference(pairs.corrupted) - corrupted
            if pairs.important.get((layer, head)) == position:
                assert (restored > 10).all()
            else:
                assert (restored.abs() < 0.1).all()


def test_previous_token_head_acts_only_through_the_induction_head():
    circuit, pairs = build_zoo(), draw_pairs(16, seed=8)
    clean = record_outputs(circuit.model, pairs.clean)
    corrupted = record_outputs(circuit.model, pairs.corrupted)
    layer, head = PREVIOUS_HEAD
    changes = {PREVIOUS_HEAD: lambda _: clean[layer][:, :, head]}
    with change_head_outputs(circuit.model, changes):
        patched = record_outputs(circuit.model, pairs.corrupted)
        outputs = compute_logits(circuit.model, pairs.corrupted)
    differences = (patched[1] - corrupted[1]).abs().amax(dim=(0, 1, 3))
    assert set((differences > 0.1).nonzero().flatten().tolist()) == {INDUCTION[1]}
    # with the induction head as in the corrupted run, nothing arrives at the logits
    changes[INDUCTION] = lambda _: corrupted[1][:, :, INDUCTION[1]]
    with change_head_outputs(circuit.model, changes):
        blocked = compute_logits(circuit.model, pairs.corrupted)
    plain = compute_logits(circuit.model, pairs.corrupted)
    assert (outputs - plain)[:, -1].abs().max() > 10
    assert (blocked - plain).abs().max() < 0.01


def test_hooks_for_comparison_leave_the_model_as_it_was():
    circuit = build_zoo("gpt2")
    tokens = circuit.draw(2, seed=9).tokens
    before = compute_logits(circuit.model, tokens)
    with change_head_outputs(circuit.model, {INDUCTION: torch.zeros_like}):
        changed = compute_logits(circuit.model, tokens)
    zeroed = compute_logits(zero_columns(circuit.model, [INDUCTION]), tokens)
    assert torch.equal(changed, zeroed)
    assert torch.equal(compute_logits(circuit.model, tokens), before)


def test_repeated_sequences():
    sequences = make_repeated_sequences(VOCABULARY, 10, 50, seed=1, first_id=FIRST_WORD)
    assert sequences.shape == (50, 20)
    assert torch.equal(sequences[:, :10], sequences[:, 10:])
    assert all(len(set(row)) == 10 for row in sequences.tolist())
    assert sequences.min() == FIRST_WORD
    assert sequences.max() == VOCABULARY - 1
    assert torch.equal(
        sequences, make_repeated_sequences(VOCABULARY, 10, 50, seed=1, first_id=FIRST_WORD)
    )
    assert not torch.equal(
        sequences, make_repeated_sequences(VOCABULARY, 10, 50, seed=2, first_id=FIRST_WORD)
    )
    with pytest.raises(ValueError, match="need a vocabulary of 10"):
        make_repeated_sequences(9, 10, 1, seed=1)


def test_targets_are_next_tokens_and_positions_vary():
    batch = build_zoo().draw(64, seed=10)
    following = torch.cat((batch.tokens[:, 1:], batch.tokens[:, -1:]), dim=1)
    assert torch.equal(batch.targets[batch.has_target], following[batch.has_target])
    assert not batch.has_target[:, -1].any()
    assert set(batch.has_target.sum(dim=1).tolist()) == {11}
    assert len({tuple(row) for row in batch.has_target.tolist()}) > 32
    assert batch.tokens.shape[1] <= LENGTH


def test_tokenizer_reads_formatted_tokens():
    tokens = build_zoo().draw(1, seed=11).tokens[0]
    assert build_tokenizer()(format_tokens(tokens))["input_ids"] == tokens.tolist()
