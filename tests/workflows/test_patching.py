"""Patching experiments: known circuits, controls, exactness, and messages."""

import numpy as np
import pytest
import torch

import neural
from neural.capture.blocks import patch_residual, record_residual
from neural.capture.intervene import intervene, record_head_outputs
from neural.core.errors import TaskError
from neural.workflows.patching import PatchUnits
from neural.workflows.patching_result import Unit
from tests import circuits


def list_pairs(pairs):
    """Pairs of tests/circuits.py as `neural.patch` takes them."""
    rows = zip(pairs.clean, pairs.corrupted, pairs.answer, pairs.foil, strict=True)
    return [
        {
            "clean": clean.tolist(),
            "corrupted": corrupted.tolist(),
            "answer": int(answer),
            "wrong": int(wrong),
        }
        for clean, corrupted, answer, wrong in rows
    ]


@pytest.fixture(scope="module", params=["own", "gpt2"])
def zoo(request):
    return circuits.build_zoo(request.param).model


@pytest.mark.parametrize("changed", ["key", "query"])
def test_exactly_the_heads_and_positions_of_the_circuit_have_an_effect(zoo, changed):
    pairs = circuits.draw_pairs(5, seed=1, changed=changed)
    result = neural.patch(zoo, list_pairs(pairs))
    heads, positions = result["heads"], result["positions"]
    assert set(zip(*np.nonzero(heads.has_effect), strict=True)) == set(pairs.important)
    expected = {(*head, position) for head, position in pairs.important.items()}
    assert set(zip(*np.nonzero(positions.has_effect), strict=True)) == expected
    for head in circuits.ALL_HEADS:
        share = 1.0 if head in pairs.important else 0.0
        assert heads.restored[head] == pytest.approx(share, abs=1e-4)
    assert heads.p.shape == (2, 4)
    assert positions.p.shape == (2, 4, pairs.clean.shape[1])


def test_the_residual_stream_moves_from_the_changed_token_to_the_answer(zoo):
    pairs = circuits.draw_pairs(5, seed=2)
    sweep = neural.patch(zoo, list_pairs(pairs), sweeps="residual")["residual"]
    last = pairs.clean.shape[1] - 1
    route = [pairs.changed_position, pairs.important[circuits.PREVIOUS_HEAD], last]
    assert [int(row.argmax()) for row in sweep.restored] == route
    for layer, position in enumerate(route):
        assert sweep.restored[layer, position] == pytest.approx(1, abs=1e-6)
        assert sweep.has_effect[layer, position]
    assert int(sweep.has_effect.sum()) == 3


def test_all_paths_between_the_heads_that_matter_are_the_edges_of_the_circuit(zoo):
    pairs = circuits.draw_pairs(5, seed=3)
    rows = (
        neural.patch(zoo, list_pairs(pairs), sweeps="heads", paths=True)
        .tables["paths"]
        .to_records()
    )
    effects = {(row["sender"], row["receiver"]) for row in rows if row["effect"]}
    assert effects == {("L0 h1", "L1 h0"), ("L1 h0", "output")}
    assert {(row["sender"], row["receiver"]) for row in rows} == effects | {("L0 h1", "output")}


def test_chosen_paths_lead_through_one_input(zoo):
    pairs = list_pairs(circuits.draw_pairs(4, seed=4))
    paths = [("L0 h1", "L1 h0", "k"), ("L0 h1", "L1 h0", "q"), ("L0 h1", "L1 h0")]
    rows = neural.patch(zoo, pairs, sweeps="heads", paths=paths).tables["paths"].to_records()
    assert [row["restored"] for row in rows] == pytest.approx([1, 0, 1], abs=1e-4)


@pytest.mark.parametrize("metric", ["loss", "probability"])
def test_other_metrics_find_the_same_heads(zoo, metric):
    pairs = list_pairs(circuits.draw_pairs(5, seed=5))
    result = neural.patch(zoo, pairs, metric=metric, sweeps="heads")
    assert set(zip(*np.nonzero(result["heads"].has_effect), strict=True)) == {(0, 1), (1, 0)}
    better = result.clean < result.corrupted if metric == "loss" else result.clean > 0.9
    assert better.all()


def test_random_weights_have_few_effects():
    """At a level of 5 %, 4 or more of 12 sweeps with an effect have a probability of .2 %."""
    count = 0
    for seed in range(12):
        model = circuits.build_random(("own", "gpt2")[seed % 2], seed=900 + seed, scale=3.0)
        pairs = list_pairs(circuits.draw_pairs(5, seed=seed))
        sweep = neural.patch(model, pairs, sweeps="heads", batch_size=256)["heads"]
        assert np.abs(sweep.restored).max() > 1e-3  # heads do something, but nothing in common
        count += bool(sweep.has_effect.any())
    assert count <= 3


def test_patching_a_run_into_itself_changes_no_bit():
    model = circuits.build_random("gpt2", seed=1, scale=3.0)
    ids = circuits.draw_pairs(8, seed=1).clean
    outputs = record_head_outputs(model, ids)
    units = [Unit(layer, head) for layer in range(2) for head in range(4)]
    with torch.no_grad():
        expected = model(ids).logits
        with intervene(model, PatchUnits(units, outputs, range(8))):
            assert torch.equal(model(ids).logits, expected)
        at_positions = [unit._replace(position=-2) for unit in units]
        with intervene(model, PatchUnits(at_positions, outputs, range(8))):
            assert torch.equal(model(ids).logits, expected)


@pytest.mark.parametrize("family", ["own", "gpt2"])
def test_all_heads_and_the_embedded_tokens_restore_everything(family):
    model = circuits.build_random(family, seed=2, scale=3.0)
    pairs = circuits.draw_pairs(4, seed=2)
    clean = record_head_outputs(model, pairs.clean)
    streams = record_residual(model, pairs.clean)
    heads = [neural.interventions.patch("all", clean), patch_residual(0, streams)]
    with torch.no_grad():
        expected = circuits.compute_logits(model, pairs.clean)
        with intervene(model, *heads):
            patched = circuits.compute_logits(model, pairs.corrupted)
    assert torch.allclose(patched, expected, atol=1e-6)


def test_every_example_of_a_batch_has_its_own_patch():
    """Small and large batches give the same shares, and one head agrees with `intervene`."""
    model = circuits.build_random("own", seed=3, scale=3.0)
    pairs = list_pairs(circuits.draw_pairs(4, seed=3))
    alone, together = (
        neural.patch(model, pairs, sweeps=("heads", "positions"), null=False, batch_size=size)
        for size in (7, 500)
    )
    for kind in ("heads", "positions"):
        assert together[kind].restored == pytest.approx(alone[kind].restored, abs=1e-4)
    # one head by hand
    clean = torch.tensor([pair["clean"] for pair in pairs])
    corrupted = torch.tensor([pair["corrupted"] for pair in pairs])
    change = neural.interventions.patch("L0 h2", record_head_outputs(model, clean))
    with torch.no_grad():
        scores = {"clean": model.logits(clean), "corrupted": model.logits(corrupted)}
        with intervene(model, change):
            scores["patched"] = model.logits(corrupted)
    values = {
        name: np.array(
            [
                float(row[-1, pair["answer"]] - row[-1, pair["wrong"]])
                for row, pair in zip(logits, pairs, strict=True)
            ]
        )
        for name, logits in scores.items()
    }
    shares = (values["patched"] - values["corrupted"]) / (values["clean"] - values["corrupted"])
    assert alone["heads"].restored[0, 2] == pytest.approx(shares.mean(), abs=1e-4)


def test_mismatched_pairs_are_the_differences_of_other_pairs():
    """The share of other pairs by hand: their clean source minus their corrupted source."""
    model = circuits.build_random("own", seed=4, scale=3.0)
    pairs = circuits.draw_pairs(4, seed=4)
    result = neural.patch(model, list_pairs(pairs), sweeps="heads")
    assert result.is_used.all()
    rows = torch.arange(4)

    def score(ids, *changes):
        with torch.no_grad(), intervene(model, *changes):
            logits = model.logits(ids)[:, -1]
        return (logits[rows, pairs.answer] - logits[rows, pairs.foil]).numpy()

    differences = score(pairs.clean) - score(pairs.corrupted)
    shares = []
    for shift in (1, 2, 3):  # all other pairs
        order = [(row + shift) % 4 for row in range(4)]
        with_clean, with_corrupted = (
            score(
                pairs.corrupted,
                neural.interventions.patch("L1 h1", record_head_outputs(model, ids), rows=order),
            )
            for ids in (pairs.clean, pairs.corrupted)
        )
        shares.append((with_clean - with_corrupted) / differences)
    assert np.abs(shares).max() > 0.01
    assert result["heads"].mismatched[1, 1] == pytest.approx(np.mean(shares), abs=1e-4)


def test_pairs_of_several_lengths_are_aligned_at_their_ends(zoo):
    short, long = (
        circuits.draw_pairs(3, seed=seed, text_length=length) for seed, length in ((6, 5), (7, 6))
    )
    result = neural.patch(zoo, list_pairs(short) + list_pairs(long))
    assert any("counted from the end" in note for note in result.notes)
    sweep = result["positions"]
    assert sweep.restored.shape[-1] == short.clean.shape[1]
    assert sweep.restored[1, 0, -1] == pytest.approx(1, abs=1e-4)
    assert sweep.has_effect[1, 0, -1]


def test_pairs_without_a_difference_are_left_out(zoo):
    pairs = list_pairs(circuits.draw_pairs(5, seed=8))
    # a token after which nothing is asked: both inputs have the same logits at the end
    pairs.append({**pairs[0], "clean": [*pairs[0]["clean"][:-1], 0]})
    pairs[-1]["corrupted"] = [*pairs[0]["corrupted"][:-1], 0]
    result = neural.patch(zoo, pairs, sweeps="heads")
    assert result.is_used.tolist() == [True] * 5 + [False]
    assert any("left out" in note and "pair 6" in note for note in result.notes)
    with pytest.raises(TaskError, match="does not tell clean from corrupted"):
        neural.patch(zoo, pairs[-1:], sweeps="heads")


def test_few_pairs_decide_nothing_and_say_so(zoo):
    pairs = list_pairs(circuits.draw_pairs(3, seed=9))
    result = neural.patch(zoo, pairs, sweeps="heads")
    assert any("4 pairs or more" in note for note in result.notes)
    assert not result["heads"].has_effect.any()
    assert result["heads"].restored[1, 0] == pytest.approx(1, abs=1e-4)


def test_the_model_is_as_before(zoo):
    pairs = circuits.draw_pairs(4, seed=10)
    with torch.no_grad():
        before = circuits.compute_logits(zoo, pairs.clean)
    neural.patch(zoo, list_pairs(pairs), sweeps=("heads", "residual"), paths=True)
    with torch.no_grad():
        assert torch.equal(circuits.compute_logits(zoo, pairs.clean), before)


def test_progress_counts_examples(zoo):
    calls = []
    pairs = list_pairs(circuits.draw_pairs(4, seed=11))
    neural.patch(zoo, pairs, sweeps="heads", on_progress=lambda *call: calls.append(call))
    examples = 8 * (4 * 4 + 4 * 3)  # heads × (clean sources and corrupted sources of other pairs)
    assert calls[-1] == ("heads", examples, examples)
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)


def test_nan_is_a_message_with_the_pair():
    model = circuits.build_random("own")
    pairs = list_pairs(circuits.draw_pairs(4, seed=0))
    with torch.no_grad():
        next(iter(model.parameters()))[pairs[1]["clean"][2]] = torch.nan
    with pytest.raises(TaskError, match=r"pair \d \(pairs, line \d+\): the logits .* are NaN"):
        neural.patch(model, pairs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paths": [("L0 h1", "L9 h0")]}, "L0 to L1"),
        ({"paths": [("L0 h1", "L1 h8")]}, "h0 to h3"),
        ({"paths": [("L1 h0", "L0 h1")]}, "not in a later layer"),
        ({"paths": [("L1 h0", "output", "k")]}, "the output has no `k`"),
        ({"paths": ["L1 h0"]}, "is not a path"),
        ({"sweeps": "heds"}, "there is no sweep `heds`"),
    ],
)
def test_wrong_arguments_are_messages(zoo, options, message):
    pairs = list_pairs(circuits.draw_pairs(4, seed=0))
    with pytest.raises(TaskError, match=message):
        neural.patch(zoo, pairs, **{"sweeps": "heads", **options})


def test_a_model_without_attention_is_a_message():
    model = torch.nn.Sequential(torch.nn.Embedding(20, 8), torch.nn.Linear(8, 20))
    with pytest.raises(TaskError, match="no attention"):
        neural.patch(model, list_pairs(circuits.draw_pairs(4, seed=0, changed="query")))
