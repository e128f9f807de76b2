"""Watch other torch models: every attention function is captured, and outputs do not change."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.functional import scaled_dot_product_attention as sdpa_by_another_name

from neural.capture.watch import NoAttentionError, watch

B, H, T, S, D = 3, 2, 7, 11, 5  # all different, all prime: a swapped axis cannot pass by luck
E = H * D


def random_tensor(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def compute_weights(q, k, *, mask=None, causal=False, scale=None) -> np.ndarray:
    """The documented formula of `scaled_dot_product_attention`, in double precision."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    scores = q.double() @ k.double().mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(torch.ones(q.shape[-2], k.shape[-2]).tril() == 0, -torch.inf)
    if mask is not None:
        scores = (
            scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
        )
    return scores.softmax(dim=-1).nan_to_num(0).detach().numpy()


class Calls(nn.Module):
    """One call of an attention function, with extra keyword arguments."""

    def __init__(self, call=functional.scaled_dot_product_attention, **kwargs):
        super().__init__()
        self.call, self.kwargs = call, kwargs

    def forward(self, q, k, v):
        return self.call(q, k, v, **self.kwargs)


class Stack(nn.Module):
    """A module that contains others."""

    def __init__(self, *blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, *x):
        return self.blocks[0](*x)


def assert_same_with_and_without(model, *inputs, grads=True, **kwargs):
    """Run a model with and without a watch; returns the capture.

    Outputs, gradients and random states must be identical.
    """

    def run():
        torch.manual_seed(7)
        leaves = [
            x.detach().clone().requires_grad_() if grads and x.is_floating_point() else x
            for x in inputs
        ]
        with nullcontext() if grads else torch.no_grad():
            out = model(*leaves, **kwargs)
        out = getattr(out, "last_hidden_state", None) if hasattr(out, "last_hidden_state") else out
        out = getattr(out, "logits", out)
        out = out[0] if isinstance(out, tuple) else out
        out = torch.nested.to_padded_tensor(out, 0.0) if out.is_nested else out
        if grads:
            out.square().sum().backward()
        tensors = [*leaves, *model.parameters()]
        gradients = [tensor.grad.clone() for tensor in tensors if tensor.grad is not None]
        model.zero_grad()
        return [out.detach(), *gradients, torch.get_rng_state()]

    modes = [module.training for module in model.modules()]
    hooks = (
        len(torch.nn.modules.module._global_forward_hooks),
        len(torch.nn.modules.module._global_forward_pre_hooks),
    )
    without = run()
    with watch(model) as capture:
        watched = run()
    after = run()
    for plain_tensor, watched_tensor, later_tensor in zip(without, watched, after, strict=True):
        assert torch.equal(plain_tensor, watched_tensor), "the watch changed a result"
        assert torch.equal(plain_tensor, later_tensor), "the watch did not restore the model"
    assert modes == [module.training for module in model.modules()]
    assert hooks == (
        len(torch.nn.modules.module._global_forward_hooks),
        len(torch.nn.modules.module._global_forward_pre_hooks),
    )
    return capture


BOOL = random_tensor(B, 1, T, S, seed=9) > -0.5
KINDS = {
    "plain": {},
    "bool": {"attn_mask": BOOL},
    "bool per head": {"attn_mask": random_tensor(B, H, T, S, seed=9) > -0.5},
    "bool of two axes": {"attn_mask": BOOL[0, 0]},
    "keys": {
        "attn_mask": torch.arange(S).repeat(B, 1)[:, None, None]
        < torch.tensor([S, 4, 1])[:, None, None, None]
    },
    "float": {"attn_mask": random_tensor(B, 1, T, S, seed=8)},
    "minus infinity": {"attn_mask": torch.zeros(B, 1, T, S).masked_fill(~BOOL, -torch.inf)},
    "smallest": {
        "attn_mask": torch.zeros(B, 1, T, S).masked_fill(~BOOL, torch.finfo(torch.float32).min)
    },
    "causal": {"is_causal": True},
    "scale": {"scale": 0.7},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_argument_of_sdpa_is_supported(kind):
    kwargs, (q, k, v) = (
        KINDS[kind],
        (
            random_tensor(B, H, T, D),
            random_tensor(B, H, S, D, seed=2),
            random_tensor(B, H, S, D, seed=3),
        ),
    )
    capture = assert_same_with_and_without(Stack(Calls(**kwargs)), q, k, v)
    assert [call.path for call in capture] == ["blocks.0"]
    mask, causal = kwargs.get("attn_mask"), kwargs.get("is_causal", False)
    expected = compute_weights(q, k, mask=mask, causal=causal, scale=kwargs.get("scale"))
    np.testing.assert_allclose(capture[0].maps(), expected, atol=1e-6)
    has_keys = expected.sum(-1) > 0
    entropy = -np.where(
        expected > 0, expected * np.log(np.where(expected > 0, expected, 1)), 0
    ).sum(-1)
    np.testing.assert_allclose(
        capture[0].measures["entropy"],
        [entropy[:, h][has_keys[:, h]].mean() for h in range(H)],
        rtol=1e-4,
    )


def test_with_is_causal_the_first_query_is_at_the_first_key():
    q, k, v = (
        random_tensor(B, H, T, D),
        random_tensor(B, H, S, D, seed=2),
        random_tensor(B, H, S, D, seed=3),
    )
    (call,) = assert_same_with_and_without(Calls(is_causal=True), q, k, v)
    assert (call.maps()[:, :, 0, 0] == 1).all()
    assert (call.maps()[:, :, :, T:] == 0).all()
    diagonal = compute_weights(q, k, causal=True)[..., np.arange(T), np.arange(T)]
    np.testing.assert_allclose(
        call.measures["diagonal_mass"], diagonal.mean(axis=(0, 2)), rtol=1e-5
    )


@pytest.mark.parametrize("shared", [1, 2])
def test_grouped_heads_share_keys(shared):
    q, k, v = (
        random_tensor(B, 4, T, D),
        random_tensor(B, shared, S, D, seed=2),
        random_tensor(B, shared, S, D, seed=3),
    )
    (call,) = assert_same_with_and_without(Calls(enable_gqa=True), q, k, v)
    assert call.heads == 4
    np.testing.assert_allclose(call.maps(), compute_weights(q, k), atol=1e-6)


@pytest.mark.parametrize(
    "shape", [(T, D), (B, T, D), (2, B, H, T, D)], ids=["two axes", "three", "five"]
)
def test_other_numbers_of_axes_are_captured(shape):
    x = random_tensor(*shape)
    (call,) = assert_same_with_and_without(Calls(), x, x, x)
    expected = (x.double() @ x.double().mT * D**-0.5).softmax(-1).numpy()
    np.testing.assert_allclose(call.maps().reshape(expected.shape), expected, atol=1e-6)


def test_a_function_imported_under_another_name_is_captured():
    x = random_tensor(B, H, T, D)
    assert len(assert_same_with_and_without(Calls(sdpa_by_another_name), x, x, x)) == 1


def test_queries_of_a_growing_cache_are_at_the_last_keys():
    q, k, v = (
        random_tensor(B, H, S, D),
        random_tensor(B, H, S, D, seed=2),
        random_tensor(B, H, S, D, seed=3),
    )
    model = Calls()
    with watch(model) as capture:
        for first, last in ((0, 7), (7, 10), (10, S)):  # the cache grows
            model(q[:, :, first:last], k[:, :, :last], v[:, :, :last])
    assert [
        (call.attention.known_positions, call.attention.first_query_position) for call in capture
    ] == [
        ("queries_and_keys", 0),
        ("queries_and_keys", 7),
        ("queries_and_keys", 10),
    ]
    own = compute_weights(q[:, :, -1:], k)[:, :, 0, -1].mean(0)
    np.testing.assert_allclose(capture[-1].measures["diagonal_mass"], own, rtol=1e-5)


POSITIONAL = {"span", "span90", "diagonal_mass", "previous_token_mass"}


def test_queries_without_known_positions_have_no_distances():
    """A pooling query looks like a step of generation; only a growing cache tells them apart."""
    q, k, v = (
        random_tensor(B, H, 1, D),
        random_tensor(B, H, S, D, seed=2),
        random_tensor(B, H, S, D, seed=3),
    )
    (call,) = watch(Calls(), (q, k, v))
    assert not POSITIONAL & set(call.measures)
    assert not {"expected_position", "first_key_mass"} & set(call.measures)
    assert "1 queries among 11 keys" in call.note
    expected = compute_weights(q, k)
    np.testing.assert_allclose(call.maps(), expected, atol=1e-6)
    np.testing.assert_allclose(
        call.measures["largest_weight"], expected.max(-1).mean(axis=(0, 2)), rtol=1e-5
    )


def test_a_static_cache_is_placed_by_its_mask():
    q, k, v = (
        random_tensor(B, H, T, D),
        random_tensor(B, H, 24, D, seed=2),
        random_tensor(B, H, 24, D, seed=3),
    )
    mask = torch.arange(24) <= torch.arange(2, 2 + T)[:, None]
    (call,) = watch(Calls(attn_mask=mask), (q, k, v))
    expected = compute_weights(q, k, mask=mask)[..., : 2 + T]
    assert call.maps().shape == (B, H, T, 2 + T)  # no columns of empty slots
    np.testing.assert_allclose(call.maps(), expected, atol=1e-6)
    distance = np.abs(np.arange(2 + T) - np.arange(2, 2 + T)[:, None])
    np.testing.assert_allclose(
        call.measures["span"], (expected * distance).sum(-1).mean(axis=(0, 2)), rtol=1e-5
    )
    own = expected[..., np.arange(T), np.arange(2, 2 + T)]
    np.testing.assert_allclose(call.measures["diagonal_mass"], own.mean(axis=(0, 2)), rtol=1e-5)


class Projected(nn.Module):
    """Cross-attention that only the inputs of its projections show."""

    def __init__(self):
        super().__init__()
        self.to_q, self.to_kv = nn.Linear(E, E), nn.Linear(E, 2 * E)

    def forward(self, x, y):
        projected = self.to_q(x), *self.to_kv(y).chunk(2, dim=-1)
        q, k, v = (tensor.unflatten(-1, (H, D)).transpose(1, 2) for tensor in projected)
        return functional.scaled_dot_product_attention(q, k, v)


def test_cross_attention_is_recognised_by_the_inputs_of_its_projections():
    torch.manual_seed(0)
    model, x, y = Projected(), random_tensor(B, T, E), random_tensor(B, T, E, seed=2)
    (own,) = watch(model, (x, x))
    assert own.measures.keys() >= POSITIONAL
    assert (watch(model, (x, x.clone()))[0].attention.known_positions, own.note) == (
        "queries_and_keys",
        "",
    )
    (cross,) = watch(model, (x, y))
    assert not POSITIONAL & set(cross.measures)
    assert {"expected_position", "first_key_mass"} <= set(
        cross.measures
    )  # keys have positions of their own
    assert "two sequences" in cross.note


class CrossAttentionBlock(nn.Module):
    """Self-attention inside a block whose name says cross-attention."""

    def __init__(self):
        super().__init__()
        self.self_attn, self.cross_attn = Projected(), Projected()

    def forward(self, x, y):
        return self.self_attn(x, x), self.cross_attn(x, y)


def test_inputs_of_projections_count_more_than_names():
    own, cross = watch(
        CrossAttentionBlock(), (random_tensor(B, T, E), random_tensor(B, T, E, seed=2))
    )
    assert (own.attention.known_positions, cross.attention.known_positions) == (
        "queries_and_keys",
        "keys",
    )


def test_keys_that_are_overwritten_later_are_measured_before():
    class Cached(nn.Module):
        def forward(self, q, k, v):
            out = functional.scaled_dot_product_attention(q, k, v)
            k.zero_()
            return out

    q, k, v = (
        random_tensor(B, H, T, D),
        random_tensor(B, H, S, D, seed=2),
        random_tensor(B, H, S, D, seed=3),
    )
    expected = compute_weights(q, k)
    np.testing.assert_allclose(watch(Cached(), (q, k, v))[0].maps(), expected, atol=1e-6)


def test_queries_that_are_padding_do_not_count():
    x, real = random_tensor(B, H, T, D), torch.arange(T) < torch.tensor([[T], [4], [1]])
    (call,) = watch(Calls(attn_mask=real[:, None, None, :]), (x, x, x))
    expected = compute_weights(x, x, mask=real[:, None, None, :])
    largest = np.array(
        [[expected[b, h, : real[b].sum()].max(-1).mean() for h in range(H)] for b in range(B)]
    )
    mean = (largest * real.sum(1).numpy()[:, None]).sum(0) / real.sum().item()
    np.testing.assert_allclose(call.measures["largest_weight"], mean, rtol=1e-5)
    # as in Hugging Face models: causal and padding in one mask
    both = (torch.ones(T, T).tril() > 0) & real[:, None, None, :]
    (merged,) = watch(Calls(attn_mask=both), (x, x, x))
    assert merged.attention is not None
    assert torch.equal(merged.attention.valid_queries(), real)
    # without a mask, the caller may pass it
    (unmasked,) = watch(Calls(), (x, x, x), real=real)
    assert unmasked.attention is not None
    assert torch.equal(unmasked.attention.valid_queries(), real)


def test_padding_of_the_key_sequence_hides_no_queries():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cross_attention = Calls(
                attn_mask=torch.arange(T) < torch.tensor([[[[T]]], [[[4]]], [[[1]]]])
            )

        def forward(self, q, k, v):
            return self.cross_attention(q, k, v)

    x, y = random_tensor(B, H, T, D), random_tensor(B, H, T, D, seed=2)
    (call,) = watch(Model(), (x, y, y))
    expected = compute_weights(x, y, mask=Model().cross_attention.kwargs["attn_mask"])
    np.testing.assert_allclose(
        call.measures["largest_weight"], expected.max(-1).mean(axis=(0, 2)), rtol=1e-5
    )


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_captured_with_their_lengths():
    examples = [random_tensor(length, H, D, seed=length) for length in (T, 4, 1)]
    x = torch.nested.nested_tensor(examples, layout=torch.jagged).transpose(1, 2)
    (call,) = assert_same_with_and_without(Calls(), x, x, x, grads=False)
    first = compute_weights(examples[1].transpose(0, 1)[None], examples[1].transpose(0, 1)[None])
    np.testing.assert_allclose(call.maps()[1, :, :4, :4], first[0], atol=1e-6)
    assert call.attention is not None
    assert call.attention.valid_queries().sum() == T + 4 + 1


def project_heads(module: nn.MultiheadAttention, query, key) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys (B, H, T, D), projected by the module's weights."""
    if module.in_proj_weight is not None:
        weight = module.in_proj_weight.chunk(3)
    else:
        weight = module.q_proj_weight, module.k_proj_weight
    bias = module.in_proj_bias.chunk(3) if module.in_proj_bias is not None else (None, None)
    projected = (
        functional.linear(query, weight[0], bias[0]),
        functional.linear(key, weight[1], bias[1]),
    )
    return tuple(tensor.unflatten(-1, (H, D)).transpose(1, 2) for tensor in projected)


PADDING = torch.arange(T) >= torch.tensor([[T], [4], [1]])
AHEAD = torch.ones(T, T).triu(1) > 0


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize(
    "masks", ["none", "padding", "float padding", "ahead", "float ahead", "both", "by head", "flag"]
)
def test_masks_of_multihead_attention_are_supported(masks, need_weights):
    torch.manual_seed(0)
    module, x = nn.MultiheadAttention(E, H, batch_first=True, dropout=0.2), random_tensor(B, T, E)
    nn.init.normal_(module.in_proj_bias)
    kwargs = {"need_weights": need_weights}
    hidden = torch.zeros(B, 1, T, T, dtype=torch.bool)
    if "padding" in masks or masks == "both":
        kwargs["key_padding_mask"] = (
            torch.zeros(B, T).masked_fill(PADDING, -torch.inf) if "float" in masks else PADDING
        )
        hidden = hidden | PADDING[:, None, None, :]
    if "ahead" in masks or masks in ("both", "flag"):
        kwargs["attn_mask"] = (
            torch.zeros(T, T).masked_fill(AHEAD, -torch.inf) if "float" in masks else AHEAD
        )
        kwargs["is_causal"] = masks == "flag"
        hidden = hidden | AHEAD
    if masks == "by head":
        by_head = (random_tensor(B, H, T, T, seed=4) > 0.8) & ~torch.eye(T, dtype=torch.bool)
        kwargs["attn_mask"], hidden = by_head.flatten(0, 1), by_head
    real = ~PADDING if "key_padding_mask" in kwargs else torch.ones(B, T, dtype=torch.bool)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.self_attn = module

        def forward(self, x):
            return self.self_attn(x, x, x, **kwargs)

    for training in (True, False):
        (call,) = assert_same_with_and_without(Model().train(training), x)
        assert call.path == "self_attn"
        q, k = project_heads(module, x, x)
        expected = compute_weights(q, k, mask=~hidden)
        np.testing.assert_allclose(call.maps(), expected, atol=1e-6)
        largest = [expected[:, h].max(-1)[real.numpy()].mean() for h in range(H)]
        np.testing.assert_allclose(call.measures["largest_weight"], largest, rtol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"kdim": 6, "vdim": 8},
        {"bias": False},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"batch_first": False},
    ],
    ids=str,
)
def test_every_option_of_multihead_attention_is_supported(options):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(E, H, **{"batch_first": True} | options).eval()
    sizes = (T, E), (S, options.get("kdim", E)), (S, options.get("vdim", E))
    x, y, z = (random_tensor(B, *size, seed=seed) for seed, size in enumerate(sizes))
    inputs = (x, y, z)
    if not module.batch_first:
        inputs = tuple(tensor.transpose(0, 1) for tensor in inputs)
    padding = torch.arange(S) >= torch.tensor([[S], [4], [1]])

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = module

        def forward(self, *inputs):
            return self.attn(*inputs, key_padding_mask=padding, average_attn_weights=False)

    (call,) = assert_same_with_and_without(Model(), *inputs)
    _, expected = module(*inputs, key_padding_mask=padding, average_attn_weights=False)
    # a map has columns for the input keys, not for those that the module adds
    np.testing.assert_allclose(call.maps(), expected.detach().numpy()[..., :S], atol=1e-6)
    rows = expected.detach().numpy().max(-1)
    # no query is padding, although keys are
    np.testing.assert_allclose(call.measures["largest_weight"], rows.mean(axis=(0, 2)), rtol=1e-5)


@pytest.mark.parametrize("masked", ["no mask", "ahead", "padding", "flag"])
@pytest.mark.parametrize(
    "options",
    [
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"add_bias_kv": True, "add_zero_attn": True},
    ],
    ids=["bias", "zero", "both"],
)
def test_keys_that_the_module_adds_are_extra_keys(options, masked):
    torch.manual_seed(0)
    module, x = (
        nn.MultiheadAttention(E, H, batch_first=True, **options).eval(),
        random_tensor(B, T, E),
    )
    kwargs = {"average_attn_weights": False}
    if masked in ("ahead", "flag"):
        kwargs["attn_mask"] = AHEAD
    if masked == "padding":
        kwargs["key_padding_mask"] = PADDING
    _, expected = module(x, x, x, **kwargs)
    expected, extra = expected.detach().numpy(), len(options)
    # without weights torch uses the flag alone, which hides all keys after the first T
    if masked == "flag":
        kwargs |= {"is_causal": True, "need_weights": False}
        hidden = np.triu(np.ones((T, T + extra)), 1) > 0
        expected = np.where(hidden, 0, expected)
        expected /= expected.sum(-1, keepdims=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = module

        def forward(self, x):
            return self.attn(x, x, x, **kwargs)

    (call,) = assert_same_with_and_without(Model(), x)
    np.testing.assert_allclose(call.maps(), expected[..., :T], atol=1e-6)
    real = ~PADDING.numpy() if masked == "padding" else np.ones((B, T), bool)
    placed = expected[..., :T]
    distance = np.abs(np.arange(T) - np.arange(T)[:, None])
    logs = np.log(np.where(expected > 0, expected, 1))
    rows = {
        "span": (placed * distance).sum(-1),
        "diagonal_mass": placed[..., np.arange(T), np.arange(T)],
        "extra_key_mass": expected[..., T:].sum(-1),
        "entropy": -(expected * logs).sum(-1),
    }
    for name, values in rows.items():
        mean = [values[:, h][real].mean() for h in range(H)]
        np.testing.assert_allclose(call.measures[name], mean, rtol=1e-4, atol=1e-6, err_msg=name)


def test_queries_and_keys_with_other_values_share_an_axis():
    """As in DETR: position embeddings are added to queries and keys, not to values."""
    torch.manual_seed(0)
    module, x, placed = (
        nn.MultiheadAttention(E, H, batch_first=True),
        random_tensor(B, T, E),
        random_tensor(B, T, E, seed=2),
    )

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = module

        def forward(self, x, placed):
            return self.attn(placed, placed, x, key_padding_mask=PADDING)

    (call,) = watch(Model(), (x, placed))
    assert call.attention is not None
    assert call.attention.known_positions == "queries_and_keys"
    assert torch.equal(call.attention.valid_queries(), ~PADDING)


def build_encoder(norm_first: bool = False, layers: int = 2, **kwargs) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(E, H, 17, batch_first=True, norm_first=norm_first)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=not norm_first, **kwargs)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])
@pytest.mark.parametrize("padded", [False, True], ids=["unpadded", "padded"])
@pytest.mark.parametrize("mode", ["training", "gradients", "fast"])
def test_the_encoder_of_torch_is_captured_on_every_path(mode, padded, norm_first):
    model, x = build_encoder(norm_first).train(mode == "training"), random_tensor(B, T, E)
    kwargs = {"src_key_padding_mask": PADDING} if padded else {}
    fast_calls = []
    original = torch._transformer_encoder_layer_fwd

    def count_call(x, *args):
        fast_calls.append(x.is_nested)
        return original(x, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "_transformer_encoder_layer_fwd", count_call)
        capture = assert_same_with_and_without(model, x, grads=mode != "fast", **kwargs)
    # three runs of two layers: the watch has not changed the path
    assert fast_calls == ([padded and not norm_first] * 6 if mode == "fast" else [])
    assert [call.path for call in capture] == ["layers.0.self_attn", "layers.1.self_attn"]
    normed = model.layers[0].norm1(x) if norm_first else x
    mask = ~PADDING[:, None, None] if padded else None
    expected = compute_weights(*project_heads(model.layers[0].self_attn, normed, normed), mask=mask)
    real = ~PADDING.numpy() if padded else np.ones((B, T), bool)
    for h in range(H):
        rows = expected[:, h].max(-1)[real]
        np.testing.assert_allclose(capture[0].measures["largest_weight"][h], rows.mean(), rtol=1e-5)


def test_masks_on_the_fast_path_are_supported():
    model, x = build_encoder().eval(), random_tensor(B, T, E)
    capture = assert_same_with_and_without(model, x, grads=False, mask=AHEAD, is_causal=True)
    expected = compute_weights(*project_heads(model.layers[0].self_attn, x, x), causal=True)
    np.testing.assert_allclose(capture[0].maps(), expected, atol=1e-6)
    both = assert_same_with_and_without(
        model, x, grads=False, mask=AHEAD, src_key_padding_mask=PADDING
    )
    expected = compute_weights(
        *project_heads(model.layers[0].self_attn, x, x), mask=~(AHEAD | PADDING[:, None, None])
    )
    np.testing.assert_allclose(both[0].maps()[0], expected[0], atol=1e-6)


def test_multihead_attention_keeps_its_fast_path():
    torch.manual_seed(0)
    module, x, fast_calls = (
        nn.MultiheadAttention(E, H, batch_first=True).eval(),
        random_tensor(B, T, E),
        [],
    )
    original = torch._native_multi_head_attention
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            torch,
            "_native_multi_head_attention",
            lambda *args: fast_calls.append(1) or original(*args),
        )

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = module

            def forward(self, x):
                return self.attention(x, x, x, key_padding_mask=PADDING)

        (call,) = assert_same_with_and_without(Model().eval(), x, grads=False)
    assert len(fast_calls) == 3
    np.testing.assert_allclose(
        call.maps(),
        compute_weights(*project_heads(module, x, x), mask=~PADDING[:, None, None]),
        atol=1e-6,
    )


def test_a_custom_layer_inside_the_encoder_of_torch_is_captured():
    class Layer(nn.TransformerEncoderLayer):
        def forward(self, src, **_):
            y = src.unflatten(-1, (H, D)).transpose(1, 2)
            return functional.scaled_dot_product_attention(y, y, y).transpose(1, 2).flatten(2)

    model = nn.TransformerEncoder(Layer(E, H, batch_first=True), 2, enable_nested_tensor=False)
    capture = assert_same_with_and_without(model, random_tensor(B, T, E))
    assert [call.path for call in capture] == ["layers.0", "layers.1"]


def test_encoder_and_decoder_of_torch_are_captured_in_order():
    torch.manual_seed(0)
    model = nn.Transformer(E, H, 1, 1, 17, batch_first=True).eval()
    capture = assert_same_with_and_without(
        model, random_tensor(B, S, E), random_tensor(B, T, E, seed=2)
    )
    assert [(call.path, call.attention.queries, call.attention.keys) for call in capture] == [
        ("encoder.layers.0.self_attn", S, S),
        ("decoder.layers.0.self_attn", T, T),
        ("decoder.layers.0.multihead_attn", T, S),
    ]


class Gpt(nn.Module):
    """A small decoder."""

    def __init__(self, recompute=None, by_softmax=False):
        super().__init__()
        torch.manual_seed(0)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(E, 3 * E), "out": nn.Linear(E, E)})
        self.block = CausalSelfAttention(self.attn, by_softmax)
        self.recompute = recompute

    def forward(self, x):
        if self.recompute is None:
            return self.block(x)
        return torch.utils.checkpoint.checkpoint(
            self.block, x, use_reentrant=self.recompute == "reentrant"
        )


class CausalSelfAttention(nn.Module):
    def __init__(self, layers, by_softmax):
        super().__init__()
        self.layers, self.by_softmax = layers, by_softmax

    def forward(self, x):
        q, k, v = (
            projected.unflatten(-1, (H, D)).transpose(1, 2)
            for projected in self.layers["qkv"](x).chunk(3, dim=-1)
        )
        if self.by_softmax:
            scores = (q @ k.mT * D**-0.5).masked_fill(torch.ones(T, T).tril() == 0, -torch.inf)
            output = functional.dropout(functional.softmax(scores, dim=-1), 0.2, self.training) @ v
        else:
            output = functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, dropout_p=0.2 * self.training
            )
        return self.layers["out"](output.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("recompute", ["reentrant", "not reentrant"])
def test_recomputation_in_a_backward_pass_is_not_captured(recompute):
    model, x = Gpt(recompute), random_tensor(B, T, E)
    assert len(assert_same_with_and_without(model, x)) == 1


def test_a_compiled_model_is_captured_and_not_recompiled():
    model, x, frames = Gpt().eval(), random_tensor(B, T, E), []
    model.compile(backend=lambda graph, _: frames.append(1) or graph.forward)
    with torch.no_grad():
        without = model(x)
        assert frames == [1]
        with watch(model) as capture:
            model(x)
        assert torch.equal(model(x), without)
    assert frames == [1]
    assert [call.path for call in capture] == ["block"]


def test_half_precision_is_measured_in_32_bits():
    model, x = Gpt().eval(), random_tensor(B, T, E)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (call,) = assert_same_with_and_without(model, x)
    assert call.attention is not None and call.attention.q.dtype == torch.bfloat16
    expected = compute_weights(call.attention.q, call.attention.k, causal=True)
    np.testing.assert_allclose(
        call.measures["largest_weight"], expected.max(-1).mean(axis=(0, 2)), rtol=1e-5
    )


def test_a_softmax_is_captured_on_request():
    model, fused, x = Gpt(by_softmax=True), Gpt(), random_tensor(B, T, E)
    with pytest.raises(NoAttentionError, match="`block`"):
        watch(model, x)
    torch.manual_seed(0)
    with watch(model.train(), softmax=True) as capture:
        model(x)
    expected = watch(fused, x)
    assert [call.path for call in capture] == ["block"]
    np.testing.assert_allclose(capture[0].maps(), expected[0].maps(), atol=1e-6)
    for name, values in expected[0].measures.items():
        np.testing.assert_allclose(
            capture[0].measures[name], values, rtol=1e-3, atol=1e-5, err_msg=name
        )


def test_an_error_inside_the_model_is_passed_on():
    class Wrong(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = nn.MultiheadAttention(E, H)

        def forward(self, x):
            return self.attn(x, x, x[..., :3])

    with pytest.raises(AssertionError), watch(Wrong()):
        Wrong()(random_tensor(T, B, E))
    module = Wrong()
    with pytest.raises(AssertionError), watch(module):
        module(random_tensor(T, B, E))
    assert torch._C._len_torch_function_stack() == 0
    assert torch._C._is_torch_function_enabled()
    assert functional.multi_head_attention_forward.__module__ == "torch.nn.functional"


@pytest.mark.parametrize("kind", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "t5"])
def test_hugging_face_models_are_captured(name, kind):
    import transformers

    small = {"vocab_size": 31, "attn_implementation": kind}
    sizes = {
        "hidden_size": E,
        "num_hidden_layers": 2,
        "num_attention_heads": H,
        "intermediate_size": 17,
    }
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
        config = transformers.T5Config(
            d_model=E, d_kv=D, d_ff=17, num_layers=2, num_heads=H, **small
        )
        model = transformers.T5EncoderModel._from_config(config)
    ids = torch.randint(0, 31, (B, T), generator=torch.Generator().manual_seed(1))
    real = torch.arange(T) < torch.tensor([[T], [4], [1]])
    inputs = {"input_ids": ids, "attention_mask": real.long()}
    model.eval()
    capture = assert_same_with_and_without(PositionalIds(model), ids, attention_mask=real.long())
    assert len(capture) == 2
    assert all("att" in call.path.lower() for call in capture)
    model.set_attn_implementation("eager")
    expected = model(**inputs, output_attentions=True).attentions
    for call, weights in zip(capture, expected, strict=True):
        rows = real.numpy()[:, None].repeat(H, 1)
        np.testing.assert_allclose(call.maps()[rows], weights.detach().numpy()[rows], atol=1e-5)
        assert call.attention is not None
        assert torch.equal(call.attention.valid_queries(), real)


class PositionalIds(nn.Module):
    """Takes ids as a positional argument, as the other models here do."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, **kwargs):
        return self.model(input_ids=ids, **kwargs)


def test_generation_with_a_cache_is_captured_token_by_token():
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=31,
        n_embd=E,
        n_layer=1,
        n_head=H,
        n_positions=S,
        bos_token_id=0,
        eos_token_id=None,
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    ids = torch.randint(0, 31, (1, 3), generator=torch.Generator().manual_seed(1))
    options = {
        "max_new_tokens": 4,
        "do_sample": False,
        "pad_token_id": 0,
        "attention_mask": torch.ones_like(ids),
    }
    without = model.generate(ids, **options)
    with watch(model) as capture:
        assert torch.equal(model.generate(ids, **options), without)
    assert [(call.attention.queries, call.attention.keys) for call in capture] == [
        (3, 3),
        (1, 4),
        (1, 5),
        (1, 6),
    ]
    whole = watch(model, {"input_ids": without[:, :-1]})[0].maps()
    np.testing.assert_allclose(capture[-1].maps()[0, :, 0], whole[0, :, -1], atol=1e-5)
