"""Watching models that know nothing of us: every way to call torch's attention, seen right and left as it was."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.functional import scaled_dot_product_attention as under_another_name

from neural.tracking.watch import NothingSeen, watch

B, H, T, S, D = 3, 2, 7, 11, 5   # all different, all prime: a swapped axis cannot pass by luck
E = H * D


def numbers(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def weights_of(q, k, *, mask=None, causal=False, scale=None) -> np.ndarray:
    """The documented formula of `scaled_dot_product_attention`, in double precision."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    scores = q.double() @ k.double().mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(torch.ones(q.shape[-2], k.shape[-2]).tril() == 0, -torch.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(dim=-1).nan_to_num(0).detach().numpy()


class Calls(nn.Module):
    """One call of torch's attention, with whatever arguments."""

    def __init__(self, call=functional.scaled_dot_product_attention, **named):
        super().__init__()
        self.call, self.named = call, named

    def forward(self, q, k, v):
        return self.call(q, k, v, **self.named)


class Stack(nn.Module):
    """Modules with attention, one after the other, inside something else."""

    def __init__(self, *parts):
        super().__init__()
        self.blocks = nn.ModuleList(parts)

    def forward(self, *x):
        return self.blocks[0](*x)


def assert_same_with_and_without(model, *inputs, grads=True, **named):
    """Run it with and without a watch: outputs, gradients and random numbers are identical; what was seen."""

    def run():
        torch.manual_seed(7)
        given = [one.detach().clone().requires_grad_() if grads and one.is_floating_point() else one for one in inputs]
        with nullcontext() if grads else torch.no_grad():
            out = model(*given, **named)
        out = getattr(out, "last_hidden_state", None) if hasattr(out, "last_hidden_state") else out
        out = getattr(out, "logits", out)
        out = out[0] if isinstance(out, tuple) else out
        out = torch.nested.to_padded_tensor(out, 0.0) if out.is_nested else out
        if grads:
            out.square().sum().backward()
        kept = [one.grad.clone() for one in [*given, *model.parameters()] if one.grad is not None]
        model.zero_grad()
        return [out.detach(), *kept, torch.get_rng_state()]

    modes = [one.training for one in model.modules()]
    hooks = len(torch.nn.modules.module._global_forward_hooks), len(torch.nn.modules.module._global_forward_pre_hooks)
    without = run()
    with watch(model) as seen:
        watched = run()
    again = run()
    for one, other, third in zip(without, watched, again, strict=True):
        assert torch.equal(one, other), "the watch changed something"
        assert torch.equal(one, third), "the watch left something behind"
    assert modes == [one.training for one in model.modules()]
    assert hooks == (
        len(torch.nn.modules.module._global_forward_hooks), len(torch.nn.modules.module._global_forward_pre_hooks)
    )  # fmt: skip
    return seen


BOOL = numbers(B, 1, T, S, seed=9) > -0.5
KINDS = {
    "plain": {},
    "bool": {"attn_mask": BOOL},
    "bool per head": {"attn_mask": numbers(B, H, T, S, seed=9) > -0.5},
    "bool of two axes": {"attn_mask": BOOL[0, 0]},
    "keys": {"attn_mask": torch.arange(S).repeat(B, 1)[:, None, None] < torch.tensor([S, 4, 1])[:, None, None, None]},
    "float": {"attn_mask": numbers(B, 1, T, S, seed=8)},
    "minus infinity": {"attn_mask": torch.zeros(B, 1, T, S).masked_fill(~BOOL, -torch.inf)},
    "smallest": {"attn_mask": torch.zeros(B, 1, T, S).masked_fill(~BOOL, torch.finfo(torch.float32).min)},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.7},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_argument_of_torchs_attention_is_understood(kind):
    named, (q, k, v) = KINDS[kind], (numbers(B, H, T, D), numbers(B, H, S, D, seed=2), numbers(B, H, S, D, seed=3))
    seen = assert_same_with_and_without(Stack(Calls(**named)), q, k, v)
    assert [call.path for call in seen] == ["blocks.0"]
    mask, causal = named.get("attn_mask"), named.get("is_causal", False)
    wanted = weights_of(q, k, mask=mask, causal=causal, scale=named.get("scale"))
    np.testing.assert_allclose(seen[0].maps(), wanted, atol=1e-6)
    full = wanted.sum(-1) > 0
    entropy = -np.where(wanted > 0, wanted * np.log(np.where(wanted > 0, wanted, 1)), 0).sum(-1)
    np.testing.assert_allclose(
        seen[0].measures["entropy"], [entropy[:, h][full[:, h]].mean() for h in range(H)], rtol=1e-4
    )


def test_the_flag_puts_the_first_query_at_the_first_key():
    q, k, v = numbers(B, H, T, D), numbers(B, H, S, D, seed=2), numbers(B, H, S, D, seed=3)
    (call,) = assert_same_with_and_without(Calls(is_causal=True), q, k, v)
    assert (call.maps()[:, :, 0, 0] == 1).all()
    assert (call.maps()[:, :, :, T:] == 0).all()
    diagonal = weights_of(q, k, causal=True)[..., np.arange(T), np.arange(T)]
    np.testing.assert_allclose(call.measures["diagonal_mass"], diagonal.mean(axis=(0, 2)), rtol=1e-5)


@pytest.mark.parametrize("shared", [1, 2])
def test_groups_of_heads_share_keys(shared):
    q, k, v = numbers(B, 4, T, D), numbers(B, shared, S, D, seed=2), numbers(B, shared, S, D, seed=3)
    (call,) = assert_same_with_and_without(Calls(enable_gqa=True), q, k, v)
    assert call.heads == 4
    np.testing.assert_allclose(call.maps(), weights_of(q, k), atol=1e-6)


@pytest.mark.parametrize("shape", [(T, D), (B, T, D), (2, B, H, T, D)], ids=["two axes", "three", "five"])
def test_other_numbers_of_axes_are_seen_too(shape):
    x = numbers(*shape)
    (call,) = assert_same_with_and_without(Calls(), x, x, x)
    wanted = (x.double() @ x.double().mT * D**-0.5).softmax(-1).numpy()
    np.testing.assert_allclose(call.maps().reshape(wanted.shape), wanted, atol=1e-6)


def test_another_name_for_the_function_is_no_disguise():
    x = numbers(B, H, T, D)
    assert len(assert_same_with_and_without(Calls(under_another_name), x, x, x)) == 1


def test_the_last_queries_of_a_cache_stand_at_the_last_keys():
    q, k, v = numbers(B, H, S, D), numbers(B, H, S, D, seed=2), numbers(B, H, S, D, seed=3)
    model = Calls()
    with watch(model) as seen:
        for first, last in ((0, 7), (7, 10), (10, S)):   # the cache grows
            model(q[:, :, first:last], k[:, :, :last], v[:, :, :last])
    assert [(call.look.axis, call.look.start) for call in seen] == [("shared", 0), ("shared", 7), ("shared", 10)]
    own = weights_of(q[:, :, -1:], k)[:, :, 0, -1].mean(0)
    np.testing.assert_allclose(seen[-1].measures["diagonal_mass"], own, rtol=1e-5)


POSITIONAL = {"span", "span90", "diagonal_mass", "previous_token_mass"}


def test_queries_that_nothing_places_have_no_distances():
    """A pooling query looks like a step of generation: only a cache that was seen growing makes it one."""
    q, k, v = numbers(B, H, 1, D), numbers(B, H, S, D, seed=2), numbers(B, H, S, D, seed=3)
    (call,) = watch(Calls(), (q, k, v))
    assert not POSITIONAL & set(call.measures)
    assert not {"expected_position", "first_key_mass"} & set(call.measures)
    assert "1 queries among 11 keys" in call.note
    wanted = weights_of(q, k)
    np.testing.assert_allclose(call.maps(), wanted, atol=1e-6)
    np.testing.assert_allclose(call.measures["largest_weight"], wanted.max(-1).mean(axis=(0, 2)), rtol=1e-5)


def test_a_static_cache_is_placed_by_its_mask():
    q, k, v = numbers(B, H, T, D), numbers(B, H, 24, D, seed=2), numbers(B, H, 24, D, seed=3)
    mask = torch.arange(24) <= torch.arange(2, 2 + T)[:, None]
    (call,) = watch(Calls(attn_mask=mask), (q, k, v))
    wanted = weights_of(q, k, mask=mask)[..., : 2 + T]
    assert call.maps().shape == (B, H, T, 2 + T)   # no columns of empty slots
    np.testing.assert_allclose(call.maps(), wanted, atol=1e-6)
    away = np.abs(np.arange(2 + T) - np.arange(2, 2 + T)[:, None])
    np.testing.assert_allclose(call.measures["span"], (wanted * away).sum(-1).mean(axis=(0, 2)), rtol=1e-5)
    own = wanted[..., np.arange(T), np.arange(2, 2 + T)]
    np.testing.assert_allclose(call.measures["diagonal_mass"], own.mean(axis=(0, 2)), rtol=1e-5)


class Projected(nn.Module):
    """Attention of one sequence to another, by nothing but what its projections are given."""

    def __init__(self):
        super().__init__()
        self.to_q, self.to_kv = nn.Linear(E, E), nn.Linear(E, 2 * E)

    def forward(self, x, y):
        parts = self.to_q(x), *self.to_kv(y).chunk(2, dim=-1)
        q, k, v = (part.unflatten(-1, (H, D)).transpose(1, 2) for part in parts)
        return functional.scaled_dot_product_attention(q, k, v)


def test_cross_attention_is_told_by_what_the_projections_are_given():
    torch.manual_seed(0)
    model, x, y = Projected(), numbers(B, T, E), numbers(B, T, E, seed=2)
    (own,) = watch(model, (x, x))
    assert own.measures.keys() >= POSITIONAL
    assert (watch(model, (x, x.clone()))[0].look.axis, own.note) == ("shared", "")
    (cross,) = watch(model, (x, y))
    assert not POSITIONAL & set(cross.measures)
    assert {"expected_position", "first_key_mass"} <= set(cross.measures)   # keys have positions of their own
    assert "two sequences" in cross.note


class CrossAttentionBlock(nn.Module):
    """Self-attention inside a block that is named after something else."""

    def __init__(self):
        super().__init__()
        self.self_attn, self.cross_attn = Projected(), Projected()

    def forward(self, x, y):
        return self.self_attn(x, x), self.cross_attn(x, y)


def test_projections_are_better_evidence_than_names():
    own, cross = watch(CrossAttentionBlock(), (numbers(B, T, E), numbers(B, T, E, seed=2)))
    assert (own.look.axis, cross.look.axis) == ("shared", "keys")


def test_keys_that_are_overwritten_later_are_measured_as_they_were():
    class Cached(nn.Module):
        def forward(self, q, k, v):
            out = functional.scaled_dot_product_attention(q, k, v)
            k.zero_()
            return out

    q, k, v = numbers(B, H, T, D), numbers(B, H, S, D, seed=2), numbers(B, H, S, D, seed=3)
    wanted = weights_of(q, k)
    np.testing.assert_allclose(watch(Cached(), (q, k, v))[0].maps(), wanted, atol=1e-6)


def test_queries_that_are_padding_do_not_count():
    x, real = numbers(B, H, T, D), torch.arange(T) < torch.tensor([[T], [4], [1]])
    (call,) = watch(Calls(attn_mask=real[:, None, None, :]), (x, x, x))
    wanted = weights_of(x, x, mask=real[:, None, None, :])
    largest = np.array([[wanted[b, h, : real[b].sum()].max(-1).mean() for h in range(H)] for b in range(B)])
    mean = (largest * real.sum(1).numpy()[:, None]).sum(0) / real.sum().item()
    np.testing.assert_allclose(call.measures["largest_weight"], mean, rtol=1e-5)
    # as Hugging Face writes it: causal and padding in one mask
    both = (torch.ones(T, T).tril() > 0) & real[:, None, None, :]
    (merged,) = watch(Calls(attn_mask=both), (x, x, x))
    assert merged.look is not None
    assert torch.equal(merged.look.counted(), real)
    # and where no mask tells, the caller may
    (told,) = watch(Calls(), (x, x, x), real=real)
    assert told.look is not None
    assert torch.equal(told.look.counted(), real)


def test_padding_of_another_sequence_hides_no_queries():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cross_attention = Calls(attn_mask=torch.arange(T) < torch.tensor([[[[T]]], [[[4]]], [[[1]]]]))

        def forward(self, q, k, v):
            return self.cross_attention(q, k, v)

    x, y = numbers(B, H, T, D), numbers(B, H, T, D, seed=2)
    (call,) = watch(Model(), (x, y, y))
    wanted = weights_of(x, y, mask=Model().cross_attention.named["attn_mask"])
    np.testing.assert_allclose(call.measures["largest_weight"], wanted.max(-1).mean(axis=(0, 2)), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_seen_with_their_own_lengths():
    parts = [numbers(length, H, D, seed=length) for length in (T, 4, 1)]
    x = torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
    (call,) = assert_same_with_and_without(Calls(), x, x, x, grads=False)
    first = weights_of(parts[1].transpose(0, 1)[None], parts[1].transpose(0, 1)[None])
    np.testing.assert_allclose(call.maps()[1, :, :4, :4], first[0], atol=1e-6)
    assert call.look is not None
    assert call.look.counted().sum() == T + 4 + 1


def heads_of(module: nn.MultiheadAttention, query, key) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys (B, H, T, D), by the module's own weights."""
    if module.in_proj_weight is not None:
        weight = module.in_proj_weight.chunk(3)
    else:
        weight = module.q_proj_weight, module.k_proj_weight
    bias = module.in_proj_bias.chunk(3) if module.in_proj_bias is not None else (None, None)
    made = (functional.linear(one, *by) for one, *by in ((query, weight[0], bias[0]), (key, weight[1], bias[1])))
    return tuple(one.unflatten(-1, (H, D)).transpose(1, 2) for one in made)


PADDING = torch.arange(T) >= torch.tensor([[T], [4], [1]])
AHEAD = torch.ones(T, T).triu(1) > 0


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize(
    "masks", ["none", "padding", "float padding", "ahead", "float ahead", "both", "by head", "flag"]
)
def test_multi_head_attention_of_torch_is_understood(masks, need_weights):
    torch.manual_seed(0)
    module, x = nn.MultiheadAttention(E, H, batch_first=True, dropout=0.2), numbers(B, T, E)
    nn.init.normal_(module.in_proj_bias)
    named = {"need_weights": need_weights}
    hidden = torch.zeros(B, 1, T, T, dtype=torch.bool)
    if "padding" in masks or masks == "both":
        named["key_padding_mask"] = torch.zeros(B, T).masked_fill(PADDING, -torch.inf) if "float" in masks else PADDING
        hidden = hidden | PADDING[:, None, None, :]
    if "ahead" in masks or masks in ("both", "flag"):
        named["attn_mask"] = torch.zeros(T, T).masked_fill(AHEAD, -torch.inf) if "float" in masks else AHEAD
        named["is_causal"] = masks == "flag"
        hidden = hidden | AHEAD
    if masks == "by head":
        by_head = (numbers(B, H, T, T, seed=4) > 0.8) & ~torch.eye(T, dtype=torch.bool)
        named["attn_mask"], hidden = by_head.flatten(0, 1), by_head
    real = ~PADDING if "key_padding_mask" in named else torch.ones(B, T, dtype=torch.bool)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.self_attn = module

        def forward(self, x):
            return self.self_attn(x, x, x, **named)

    for training in (True, False):
        (call,) = assert_same_with_and_without(Model().train(training), x)
        assert call.path == "self_attn"
        q, k = heads_of(module, x, x)
        wanted = weights_of(q, k, mask=~hidden)
        np.testing.assert_allclose(call.maps(), wanted, atol=1e-6)
        largest = [wanted[:, h].max(-1)[real.numpy()].mean() for h in range(H)]
        np.testing.assert_allclose(call.measures["largest_weight"], largest, rtol=1e-5)


@pytest.mark.parametrize("options", [
    {"kdim": 6, "vdim": 8}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"batch_first": False},
], ids=str)  # fmt: skip
def test_every_option_of_multi_head_attention_is_understood(options):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(E, H, **{"batch_first": True} | options).eval()
    sizes = (T, E), (S, options.get("kdim", E)), (S, options.get("vdim", E))
    x, y, z = (numbers(B, *size, seed=seed) for seed, size in enumerate(sizes))
    given = (x, y, z) if module.batch_first else tuple(one.transpose(0, 1) for one in (x, y, z))
    padding = torch.arange(S) >= torch.tensor([[S], [4], [1]])

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = module

        def forward(self, *given):
            return self.attn(*given, key_padding_mask=padding, average_attn_weights=False)

    (call,) = assert_same_with_and_without(Model(), *given)
    _, wanted = module(*given, key_padding_mask=padding, average_attn_weights=False)
    # a map has the columns of the keys that were given, not those that the module adds
    np.testing.assert_allclose(call.maps(), wanted.detach().numpy()[..., :S], atol=1e-6)
    rows = wanted.detach().numpy().max(-1)
    # no query is padding, whatever the keys are
    np.testing.assert_allclose(call.measures["largest_weight"], rows.mean(axis=(0, 2)), rtol=1e-5)


@pytest.mark.parametrize("masked", ["no mask", "ahead", "padding", "flag"])
@pytest.mark.parametrize("options", [
    {"add_bias_kv": True}, {"add_zero_attn": True}, {"add_bias_kv": True, "add_zero_attn": True},
], ids=["bias", "zero", "both"])  # fmt: skip
def test_keys_that_the_module_adds_are_no_positions(options, masked):
    torch.manual_seed(0)
    module, x = nn.MultiheadAttention(E, H, batch_first=True, **options).eval(), numbers(B, T, E)
    named = {"average_attn_weights": False}
    if masked in ("ahead", "flag"):
        named["attn_mask"] = AHEAD
    if masked == "padding":
        named["key_padding_mask"] = PADDING
    _, wanted = module(x, x, x, **named)
    wanted, extra = wanted.detach().numpy(), len(options)
    if masked == "flag":   # without weights torch takes the flag alone, which hides all keys behind the first T
        named |= {"is_causal": True, "need_weights": False}
        hidden = np.triu(np.ones((T, T + extra)), 1) > 0
        wanted = np.where(hidden, 0, wanted)
        wanted /= wanted.sum(-1, keepdims=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = module

        def forward(self, x):
            return self.attn(x, x, x, **named)

    (call,) = assert_same_with_and_without(Model(), x)
    np.testing.assert_allclose(call.maps(), wanted[..., :T], atol=1e-6)
    real = ~PADDING.numpy() if masked == "padding" else np.ones((B, T), bool)
    placed = wanted[..., :T]
    away = np.abs(np.arange(T) - np.arange(T)[:, None])
    logs = np.log(np.where(wanted > 0, wanted, 1))
    rows = {
        "span": (placed * away).sum(-1), "diagonal_mass": placed[..., np.arange(T), np.arange(T)],
        "extra_key_mass": wanted[..., T:].sum(-1), "entropy": -(wanted * logs).sum(-1),
    }  # fmt: skip
    for name, values in rows.items():
        mean = [values[:, h][real].mean() for h in range(H)]
        np.testing.assert_allclose(call.measures[name], mean, rtol=1e-4, atol=1e-6, err_msg=name)


def test_queries_and_keys_with_other_values_are_one_sequence():
    """As in DETR: positions are added to queries and keys, not to values; the module hands on other views of them."""
    torch.manual_seed(0)
    module, x, placed = nn.MultiheadAttention(E, H, batch_first=True), numbers(B, T, E), numbers(B, T, E, seed=2)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = module

        def forward(self, x, placed):
            return self.attn(placed, placed, x, key_padding_mask=PADDING)

    (call,) = watch(Model(), (x, placed))
    assert call.look is not None
    assert call.look.axis == "shared"
    assert torch.equal(call.look.counted(), ~PADDING)


def encoder(norm_first: bool = False, layers: int = 2, **named) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(E, H, 17, batch_first=True, norm_first=norm_first)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=not norm_first, **named)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("way", ["training", "gradients", "fast"])
def test_the_encoder_of_torch_is_seen_on_every_path(way, padded, norm_first):
    model, x = encoder(norm_first).train(way == "training"), numbers(B, T, E)
    named = {"src_key_padding_mask": PADDING} if padded else {}
    took = []
    own = torch._transformer_encoder_layer_fwd

    def taken(x, *rest):
        took.append(x.is_nested)
        return own(x, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "_transformer_encoder_layer_fwd", taken)
        seen = assert_same_with_and_without(model, x, grads=way != "fast", **named)
    # without, with and again, two layers each: the watch has not changed the path
    assert took == ([padded and not norm_first] * 6 if way == "fast" else [])
    assert [call.path for call in seen] == ["layers.0.self_attn", "layers.1.self_attn"]
    inside = model.layers[0].norm1(x) if norm_first else x
    mask = ~PADDING[:, None, None] if padded else None
    wanted = weights_of(*heads_of(model.layers[0].self_attn, inside, inside), mask=mask)
    real = ~PADDING.numpy() if padded else np.ones((B, T), bool)
    for h in range(H):
        rows = wanted[:, h].max(-1)[real]
        np.testing.assert_allclose(seen[0].measures["largest_weight"][h], rows.mean(), rtol=1e-5)


def test_a_mask_on_the_fast_path_is_understood():
    model, x = encoder().eval(), numbers(B, T, E)
    seen = assert_same_with_and_without(model, x, grads=False, mask=AHEAD, is_causal=True)
    wanted = weights_of(*heads_of(model.layers[0].self_attn, x, x), causal=True)
    np.testing.assert_allclose(seen[0].maps(), wanted, atol=1e-6)
    both = assert_same_with_and_without(model, x, grads=False, mask=AHEAD, src_key_padding_mask=PADDING)
    wanted = weights_of(*heads_of(model.layers[0].self_attn, x, x), mask=~(AHEAD | PADDING[:, None, None]))
    np.testing.assert_allclose(both[0].maps()[0], wanted[0], atol=1e-6)


def test_multi_head_attention_keeps_its_own_fast_path():
    torch.manual_seed(0)
    module, x, took = nn.MultiheadAttention(E, H, batch_first=True).eval(), numbers(B, T, E), []
    own = torch._native_multi_head_attention
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "_native_multi_head_attention", lambda *args: took.append(1) or own(*args))

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = module

            def forward(self, x):
                return self.attention(x, x, x, key_padding_mask=PADDING)

        (call,) = assert_same_with_and_without(Model().eval(), x, grads=False)
    assert len(took) == 3
    np.testing.assert_allclose(
        call.maps(), weights_of(*heads_of(module, x, x), mask=~PADDING[:, None, None]), atol=1e-6
    )


def test_a_layer_of_ones_own_inside_the_encoder_of_torch_is_seen():
    class Layer(nn.TransformerEncoderLayer):
        def forward(self, src, **_):
            y = src.unflatten(-1, (H, D)).transpose(1, 2)
            return functional.scaled_dot_product_attention(y, y, y).transpose(1, 2).flatten(2)

    model = nn.TransformerEncoder(Layer(E, H, batch_first=True), 2, enable_nested_tensor=False)
    seen = assert_same_with_and_without(model, numbers(B, T, E))
    assert [call.path for call in seen] == ["layers.0", "layers.1"]


def test_encoder_and_decoder_of_torch_are_seen_in_order():
    torch.manual_seed(0)
    model = nn.Transformer(E, H, 1, 1, 17, batch_first=True).eval()
    seen = assert_same_with_and_without(model, numbers(B, S, E), numbers(B, T, E, seed=2))
    assert [(call.path, call.look.queries, call.look.keys) for call in seen] == [
        ("encoder.layers.0.self_attn", S, S), ("decoder.layers.0.self_attn", T, T),
        ("decoder.layers.0.multihead_attn", T, S),
    ]  # fmt: skip


class Gpt(nn.Module):
    """A small decoder as people write it."""

    def __init__(self, recompute=None, written_out=False):
        super().__init__()
        torch.manual_seed(0)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(E, 3 * E), "out": nn.Linear(E, E)})
        self.block = CausalSelfAttention(self.attn, written_out)
        self.recompute = recompute

    def forward(self, x):
        if self.recompute is None:
            return self.block(x)
        return torch.utils.checkpoint.checkpoint(self.block, x, use_reentrant=self.recompute == "reentrant")


class CausalSelfAttention(nn.Module):
    def __init__(self, parts, written_out):
        super().__init__()
        self.parts, self.written_out = parts, written_out

    def forward(self, x):
        q, k, v = (one.unflatten(-1, (H, D)).transpose(1, 2) for one in self.parts["qkv"](x).chunk(3, dim=-1))
        if self.written_out:
            scores = (q @ k.mT * D**-0.5).masked_fill(torch.ones(T, T).tril() == 0, -torch.inf)
            mixed = functional.dropout(functional.softmax(scores, dim=-1), 0.2, self.training) @ v
        else:
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.2 * self.training)
        return self.parts["out"](mixed.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("recompute", ["reentrant", "not reentrant"])
def test_what_a_backward_pass_computes_again_is_not_counted(recompute):
    model, x = Gpt(recompute), numbers(B, T, E)
    assert len(assert_same_with_and_without(model, x)) == 1


def test_a_compiled_model_is_seen_and_not_compiled_again():
    model, x, frames = Gpt().eval(), numbers(B, T, E), []
    model.compile(backend=lambda graph, _: frames.append(1) or graph.forward)
    with torch.no_grad():
        without = model(x)
        assert frames == [1]
        with watch(model) as seen:
            model(x)
        assert torch.equal(model(x), without)
    assert frames == [1]
    assert [call.path for call in seen] == ["block"]


def test_half_precision_is_measured_in_full():
    model, x = Gpt().eval(), numbers(B, T, E)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (call,) = assert_same_with_and_without(model, x)
    assert call.look is not None and call.look.q.dtype == torch.bfloat16
    wanted = weights_of(call.look.q, call.look.k, causal=True)
    np.testing.assert_allclose(call.measures["largest_weight"], wanted.max(-1).mean(axis=(0, 2)), rtol=1e-5)


def test_a_softmax_counts_when_one_says_so():
    model, fused, x = Gpt(written_out=True), Gpt(), numbers(B, T, E)
    with pytest.raises(NothingSeen, match="`block`"):
        watch(model, x)
    torch.manual_seed(0)
    with watch(model.train(), softmax=True) as seen:
        model(x)
    wanted = watch(fused, x)
    assert [call.path for call in seen] == ["block"]
    np.testing.assert_allclose(seen[0].maps(), wanted[0].maps(), atol=1e-6)
    for name, values in wanted[0].measures.items():
        np.testing.assert_allclose(seen[0].measures[name], values, rtol=1e-3, atol=1e-5, err_msg=name)


def test_an_error_inside_the_model_is_the_models_own():
    class Wrong(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = nn.MultiheadAttention(E, H)

        def forward(self, x):
            return self.attn(x, x, x[..., :3])

    with pytest.raises(AssertionError), watch(Wrong()):
        Wrong()(numbers(T, B, E))
    module = Wrong()
    with pytest.raises(AssertionError), watch(module):
        module(numbers(T, B, E))
    assert torch._C._len_torch_function_stack() == 0
    assert torch._C._is_torch_function_enabled()
    assert functional.multi_head_attention_forward.__module__ == "torch.nn.functional"


@pytest.mark.parametrize("kind", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "t5"])
def test_models_of_hugging_face_are_seen(name, kind):
    import transformers

    small = {"vocab_size": 31, "attn_implementation": kind}
    sizes = {"hidden_size": E, "num_hidden_layers": 2, "num_attention_heads": H, "intermediate_size": 17}
    torch.manual_seed(0)
    if name == "gpt2":
        config = transformers.GPT2Config(n_embd=E, n_layer=2, n_head=H, n_positions=S, **small)
        model = transformers.GPT2LMHeadModel._from_config(config)
    elif name == "llama":
        config = transformers.LlamaConfig(**sizes, head_dim=6, num_key_value_heads=1, **small)
        model = transformers.LlamaForCausalLM._from_config(config)
    elif name == "bert":
        config = transformers.BertConfig(**sizes, max_position_embeddings=S, **small)
        model = transformers.BertModel._from_config(config, add_pooling_layer=False)
    else:
        config = transformers.T5Config(d_model=E, d_kv=D, d_ff=17, num_layers=2, num_heads=H, **small)
        model = transformers.T5EncoderModel._from_config(config)
    ids = torch.randint(0, 31, (B, T), generator=torch.Generator().manual_seed(1))
    real = torch.arange(T) < torch.tensor([[T], [4], [1]])
    given = {"input_ids": ids, "attention_mask": real.long()}
    model.eval()
    seen = assert_same_with_and_without(Named(model), ids, attention_mask=real.long())
    assert len(seen) == 2
    assert all("att" in call.path.lower() for call in seen)
    model.set_attn_implementation("eager")
    wanted = model(**given, output_attentions=True).attentions
    for call, weights in zip(seen, wanted, strict=True):
        rows = real.numpy()[:, None].repeat(H, 1)
        np.testing.assert_allclose(call.maps()[rows], weights.detach().numpy()[rows], atol=1e-5)
        assert call.look is not None
        assert torch.equal(call.look.counted(), real)


class Named(nn.Module):
    """Takes ids by position, as the others here do."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, **named):
        return self.model(input_ids=ids, **named)


def test_generation_with_a_cache_is_seen_token_by_token():
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=31, n_embd=E, n_layer=1, n_head=H, n_positions=S, bos_token_id=0, eos_token_id=None
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    ids = torch.randint(0, 31, (1, 3), generator=torch.Generator().manual_seed(1))
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0, "attention_mask": torch.ones_like(ids)}
    without = model.generate(ids, **options)
    with watch(model) as seen:
        assert torch.equal(model.generate(ids, **options), without)
    assert [(call.look.queries, call.look.keys) for call in seen] == [(3, 3), (1, 4), (1, 5), (1, 6)]
    whole = watch(model, {"input_ids": without[:, :-1]})[0].maps()
    np.testing.assert_allclose(seen[-1].maps()[0, :, 0], whole[0, :, -1], atol=1e-5)
