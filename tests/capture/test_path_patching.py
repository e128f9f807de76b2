"""Path patching: known circuits, independent computations, and messages."""

import pytest
import torch
import transformers

from neural.capture.intervene import intervene, record_head_outputs
from neural.capture.interventions import InterventionError, patch
from neural.capture.path_patching import THROUGH, find_projection, patch_path
from tests import circuits

FAMILIES = ("own", "gpt2")


@pytest.fixture(scope="module", params=FAMILIES)
def zoo(request):
    return circuits.build_zoo(request.param).model


def measure(logits, pairs):
    """Logit differences at the last position."""
    rows = torch.arange(len(pairs.answer))
    return logits[rows, -1, pairs.answer] - logits[rows, -1, pairs.foil]


def restore(model, pairs, sender, receiver, through="all", **options):
    """Restored share of every pair."""
    clean = record_head_outputs(model, pairs.clean)
    patched = patch_path(
        model,
        pairs.corrupted,
        sender,
        receiver,
        clean=clean,
        through=through,
        forward=lambda: circuits.compute_logits(model, pairs.corrupted),
        **options,
    )
    with torch.no_grad():
        low, high = (
            measure(circuits.compute_logits(model, ids), pairs)
            for ids in (pairs.corrupted, pairs.clean)
        )
    return (measure(patched, pairs) - low) / (high - low)


def test_the_previous_token_head_speaks_to_the_keys_of_the_induction_head(zoo):
    pairs = circuits.draw_pairs(5, seed=1)
    expected = {"all": 1.0, "q": 0.0, "k": 1.0, "v": 0.0}
    for through in THROUGH:
        shares = restore(zoo, pairs, circuits.PREVIOUS_HEAD, circuits.INDUCTION, through)
        assert shares.tolist() == pytest.approx([expected[through]] * 5, abs=1e-4), through


def test_other_paths_carry_nothing(zoo):
    pairs = circuits.draw_pairs(3, seed=2)
    for sender, receiver in [
        (circuits.DECOY, circuits.INDUCTION),
        (circuits.PREVIOUS_HEAD, circuits.SECOND_REDUNDANT),
        (circuits.PREVIOUS_HEAD, "output"),
    ]:
        assert restore(zoo, pairs, sender, receiver).abs().max() < 1e-4, (sender, receiver)
    direct = restore(zoo, pairs, circuits.INDUCTION, "output")
    assert direct.tolist() == pytest.approx([1.0] * 3, abs=1e-4)


@pytest.mark.parametrize("through", THROUGH)
def test_a_path_from_a_run_to_itself_changes_no_bit(through):
    model = circuits.build_random("gpt2", seed=3, scale=3.0)
    ids = circuits.draw_pairs(3, seed=3).clean
    outputs = record_head_outputs(model, ids)
    with torch.no_grad():
        expected = model(ids).logits
    for receiver in ("L1 h2", "output") if through == "all" else ("L1 h2",):
        patched = patch_path(model, ids, "L0 h1", receiver, clean=outputs, through=through)
        assert torch.equal(patched.logits, expected)


def build_llama(layers=3):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=23,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.3,
    )
    return transformers.LlamaForCausalLM(config).eval()


def test_values_of_one_query_head_change_although_heads_share_them():
    """Through v, the receiver writes its old weights times new values; h2 shares them with h3."""
    model = build_llama()
    random = torch.Generator().manual_seed(1)
    clean_ids, ids = torch.randint(0, 23, (2, 2, 7), generator=random)
    clean = record_head_outputs(model, clean_ids)
    corrupted = record_head_outputs(model, ids, keep_weights=True)
    with torch.no_grad():
        before = model(ids).logits
        patched = patch_path(model, ids, "L0 h1", "L1 h2", clean=clean, through="v").logits

        # by hand: the stream that L1 reads has the sender's clean output, all else is corrupted
        attention = model.model.layers[0].self_attn
        width = attention.head_dim
        change = clean[0].output[:, 1] - corrupted[0].output[:, 1]
        columns = attention.o_proj.weight[:, width : 2 * width]
        stream = model(ids, output_hidden_states=True).hidden_states
        block = model.model.layers[0]
        middle = stream[0] + attention.o_proj(corrupted[0].output.transpose(1, 2).flatten(2))
        middle = middle + change @ columns.T
        entering = middle + block.mlp(block.post_attention_layernorm(middle))
        receiver = model.model.layers[1]
        values = receiver.self_attn.v_proj(receiver.input_layernorm(entering))
        new_output = corrupted[1].weights[:, 2] @ values[..., width : 2 * width]

        outputs = record_head_outputs(model, ids)
        outputs[1].output[:, 2] = new_output
        with intervene(model, patch("L1 h2", outputs)):
            expected = model(ids).logits
    assert (expected - before).abs().max() > 1e-2
    assert torch.allclose(patched, expected, atol=1e-5)


def test_heads_between_sender_and_receiver_are_frozen():
    """With L1 free, L2 would hear the sender through L1, too."""
    model = build_llama()
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    with torch.no_grad():
        for attention in (model.model.layers[0].self_attn, model.model.layers[1].self_attn):
            attention.o_proj.weight.mul_(3)
    clean = record_head_outputs(model, torch.tensor([[6, 2, 3, 4, 5]]))
    frozen = patch_path(model, ids, "L0 h0", "L2 h0", clean=clean).logits
    free_outputs = record_head_outputs(model, ids, patch("L0 h0", clean))
    with torch.no_grad(), intervene(model, patch("L2 h0", free_outputs)):
        free = model(ids).logits
    assert (frozen - free).abs().max() > 1e-3


def test_rows_choose_examples_of_the_source(zoo):
    pairs = circuits.draw_pairs(4, seed=5)
    order = [1, 2, 3, 0]
    shares = restore(zoo, pairs, circuits.PREVIOUS_HEAD, circuits.INDUCTION, rows=order)
    assert shares.abs().max() < 0.6  # the previous token of another text does not match
    same = restore(zoo, pairs, circuits.PREVIOUS_HEAD, circuits.INDUCTION, rows=[0, 1, 2, 3])
    assert same.tolist() == pytest.approx([1.0] * 4, abs=1e-4)


@pytest.mark.parametrize(
    ("sender", "receiver", "through", "message"),
    [
        ("L1 h0", "L0 h1", "all", "not a later layer"),
        ("L1 h0", "L1 h1", "all", "not a later layer"),
        ("L0 h9", "L1 h1", "all", "L0 has 4 heads, h0 to h3"),
        ("L0 h1", "L7 h1", "all", "2 layers of attention, L0 to L1"),
        ("L0 h1", "L1 h1", "x", "one of all, q, k, v"),
        ("L0 h1", "output", "q", "the output has no `q`"),
        ("zero", "L1 h1", "all", "write `L1 h3`"),
    ],
)
def test_wrong_paths_are_messages(sender, receiver, through, message):
    model = circuits.build_random("own")
    ids = circuits.draw_pairs(1, seed=0).clean
    clean = record_head_outputs(model, ids)
    with pytest.raises(InterventionError, match=message):
        patch_path(model, ids, sender, receiver, clean=clean, through=through)


def test_an_unknown_projection_names_the_way_out():
    class Strange(torch.nn.Module):
        pass

    model = torch.nn.Sequential(Strange())
    with pytest.raises(InterventionError, match="through=all"):
        find_projection(model, "0", "q", 0, heads=2, width=4)
