"""neural.attend: every mechanism as a function."""

import re

import pytest
import torch

import neural
from neural.nn.attention import registry as attention
from neural.nn.attention.topk import Topk
from neural.nn.mask import Mask

B, H, Q, K, D, V = 2, 6, 5, 7, 11, 13


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    return torch.randn(B, H, Q, D), torch.randn(B, H, K, D), torch.randn(B, H, K, V)


@pytest.mark.parametrize("name", attention.names())
def test_every_mechanism_can_be_called_by_name(name, qkv):
    torch.manual_seed(1)
    extra = attention.get(name)().example_extra(*qkv[:2])
    assert neural.attend(*qkv, mechanism=name, extra=extra).shape == (B, H, Q, V)


def test_a_mechanism_takes_its_own_arguments(qkv):
    q, k, v = qkv
    narrow = neural.attend(q, k, v, mechanism="localized", window=1)
    torch.testing.assert_close(narrow, v[:, :, K - Q :])


def test_an_argument_called_k_can_be_set_by_keyword_and_inside_the_name(qkv):
    expected = Topk(k=3).attend(*qkv, Mask())
    torch.testing.assert_close(neural.attend(*qkv, "topk", k=3), expected)
    torch.testing.assert_close(neural.attend(*qkv, "topk(k=3)"), expected)
    torch.testing.assert_close(neural.attend(*qkv, Topk(k=3)), expected)
    assert not torch.allclose(neural.attend(*qkv, "topk", k=1), expected)


@pytest.mark.parametrize("mechanism", ["topk(k=3)", Topk(k=3)])
def test_arguments_for_a_mechanism_that_already_has_some_are_refused(qkv, mechanism):
    with pytest.raises(TypeError, match=r"topk\(k=3\) already has arguments; move `k` into it"):
        neural.attend(*qkv, mechanism, k=2)


def test_an_unknown_argument_is_named_with_the_known_ones(qkv):
    with pytest.raises(TypeError, match="`topk` takes `k`, got `is_causal`; did you mean `causal`"):
        neural.attend(*qkv, "topk", is_causal=True)


@pytest.mark.parametrize(
    "hidden", [-torch.inf, torch.finfo(torch.float32).min], ids=["-inf", "lowest"]
)
@pytest.mark.parametrize("name", ["self", "localized", "sparsemax"])
def test_an_additive_mask_has_the_meaning_of_torch(qkv, hidden, name):
    visible = torch.rand(B, 1, Q, K) > 0.4
    visible[..., 2] = True
    additive = torch.zeros(B, 1, Q, K).masked_fill(~visible, hidden)
    torch.testing.assert_close(
        neural.attend(*qkv, name, additive), neural.attend(*qkv, name, visible)
    )


def test_other_floats_are_a_bias_as_in_torch(qkv):
    bias = torch.randn(1, H, Q, K).masked_fill(torch.rand(1, H, Q, K) > 0.7, -torch.inf)
    expected = torch.nn.functional.scaled_dot_product_attention(*qkv, attn_mask=bias)
    torch.testing.assert_close(neural.attend(*qkv, mask=bias), expected)


def test_a_query_without_visible_keys_under_an_additive_mask_gets_zeros(qkv):
    additive = torch.zeros(1, 1, Q, K)
    additive[..., 3, :] = -torch.inf
    output = neural.attend(*qkv, mask=additive)
    assert not output[:, :, 3].any()
    torch.testing.assert_close(output[:, :, :3], neural.attend(*qkv)[:, :, :3])


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.zeros(1, 1, Q, K), "`mask` is 0.0 everywhere"),
        (torch.full((1, 1, Q, K), torch.nan), "contains NaN or"),
        (
            torch.zeros(B, K).masked_fill(torch.arange(K) > 4, -torch.inf),
            "mask `keys` must be True or 1 for real",
        ),
        (Mask(pairs=torch.full((1, 1, Q, K), 0.5)), "mask `pairs` must be True or 1 for real"),
    ],
)
def test_an_ambiguous_mask_is_refused(qkv, mask, message):
    with pytest.raises(ValueError, match=message):
        neural.attend(*qkv, mask=mask)


def test_networks_refuse_an_additive_padding_mask():
    model = neural.parse("""network Small {
      input: (5, 4)
      layers:
        TransformerEncoder(num_heads=2, d_model=4, dff=8)
        Output(2, activation="softmax")
    }""").build()
    x, mask = torch.randn(3, 5, 4), torch.arange(5) < torch.tensor([[5], [2], [4]])
    torch.testing.assert_close(model(x, mask.float()), model(x, mask))
    with pytest.raises(ValueError, match="Small: the mask must be True or 1 for real positions"):
        model(x, torch.zeros(3, 5).masked_fill(~mask, -torch.inf))


def test_masks_may_be_padding_pairs_or_rules(qkv):
    padding = torch.arange(K) < torch.tensor([[K], [4]])
    by_keys = neural.attend(*qkv, mask=padding)
    torch.testing.assert_close(neural.attend(*qkv, mask=padding.float()), by_keys)
    torch.testing.assert_close(neural.attend(*qkv, mask=padding[:, None, None, :]), by_keys)
    torch.testing.assert_close(neural.attend(*qkv, mask=Mask(keys=padding)), by_keys)


def test_causal_is_added_to_rules(qkv):
    rules = Mask(keys=torch.arange(K) < torch.tensor([[K], [4]]))
    both = (neural.attend(*qkv, mask=mask, causal=True) for mask in (rules, rules.keys))
    torch.testing.assert_close(*both)


@pytest.mark.parametrize("name", attention.names())
@pytest.mark.parametrize(
    "sizes", [(2, 3, 0), (2, 0, 0), (0, 3, 3)], ids=["no keys", "nothing", "no examples"]
)
def test_empty_inputs_give_zeros(name, sizes):
    batch, queries, keys = sizes
    q, k, v = (
        torch.randn(batch, 2, count, 4, requires_grad=True) for count in (queries, keys, keys)
    )
    mechanism, mask = attention.get(name).example(), Mask(keys=torch.ones(batch, keys))
    extra = mechanism.example_extra(q, k)
    output = mechanism.attend(q, k, v, mask, 0.0, extra)
    assert output.shape == (batch, 2, queries, 4)
    assert not output.any()
    output.sum().backward()


def test_groups_of_heads_share_keys_and_values(qkv):
    q, k, v = qkv
    shared = neural.attend(q, k[:, :2], v[:, :2])
    repeated = neural.attend(q, k[:, [0, 0, 0, 1, 1, 1]], v[:, [0, 0, 0, 1, 1, 1]])
    torch.testing.assert_close(shared, repeated)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q, k, v: (q[0], k, v), "must be (batch, heads, positions, width)"),
        (lambda q, k, v: (q, k, v[:, :, :-1]), "k and v must have the same"),
        (
            lambda q, k, v: (q[..., :-1], k, v),
            "the same width, got q (2, 6, 5, 10), k (2, 6, 7, 11)",
        ),
        (lambda q, k, v: (q, k[:, :4], v[:, :4]), "the heads of k and v must divide those of q"),
        (lambda q, k, v: (q / 0, k, v), "`q` (2, 6, 5, 11) contains NaN or infinity"),
    ],
)
def test_bad_shapes_and_numbers_are_named(qkv, change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        neural.attend(*change(*qkv))


def test_a_mask_of_the_wrong_shape_is_named(qkv):
    with pytest.raises(
        ValueError,
        match=r"mask `keys` must have the shape \(2, 7\) or broadcast to it, got \(2, 6\)",
    ):
        neural.attend(*qkv, mask=torch.ones(B, K - 1))


def test_a_bad_argument_and_a_misspelt_mechanism_are_named(qkv):
    with pytest.raises(ValueError, match="`window` must be an odd number of 1 or more, got 0"):
        neural.attend(*qkv, mechanism="localized", window=0)
    with pytest.raises(LookupError, match="did you mean `localized`"):
        neural.attend(*qkv, mechanism="localised")


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of torch's own attention
@pytest.mark.parametrize("mechanism", ["self", "localized(window=3)", "linear", "topk(k=2)"])
def test_vmap_gives_what_a_loop_gives(mechanism):
    q = torch.randn(3, 1, 2, 5, 8, generator=torch.Generator().manual_seed(0))
    actual = torch.func.vmap(lambda x: neural.attend(x, x, x, mechanism=mechanism))(q)
    expected = torch.stack([neural.attend(x, x, x, mechanism=mechanism) for x in q])
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
