"""What every attention mechanism promises to those who train, compile and export it."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from neural.contract.attention_inputs import LONG, B, K, Q, extra_of, gradients, leaves_of, mask_of, three
from neural.contract.layers import counts_parameters, reaches_every_parameter
from neural.contract.measured import Sizes, batch
from neural.contract.promise import hold, promise, same, shape_of
from neural.modules.compiled import plain_torch
from neural.modules.late import Module, torch
from neural.modules.layers.multi_head_attention import MultiHeadAttention
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from torch import Tensor

EXPORTED = ("none", "causal keys")
SHARES = {"float32": 1e-5, "bfloat16": 3e-2}
"""How far away a result may be with fewer digits, of its mean size."""


@promise(kind=("none", "causal keys", "key_bias bias keys window segments"))
def gradients_are_those_of_finite_differences(entry: type[Mechanism], kind: str) -> None:
    """Small steps in every input, in double precision."""
    mechanism, (q, k, v), mask = entry.tiny(), three(Q, K), mask_of(kind, Q, K)
    extra = extra_of(mechanism, q, k)
    if mechanism.straight_through:   # in what the weights are made of, it is another gradient on purpose
        q, k = q.detach(), k.detach()
        mask = replace(mask, **{one: getattr(mask, one).detach() for one in kind.split() if "bias" in one})
    leaves = [one for one in leaves_of((q, k, v), mask, extra) if one.requires_grad]
    torch.autograd.gradcheck(lambda *_: mechanism.mix(q, k, v, mask, extra=extra), leaves, fast_mode=True)


@promise(digits=tuple(SHARES), kind=("none", "causal keys"))
def fewer_digits_change_little(entry: type[Mechanism], digits: str, kind: str) -> None:
    """The result has the type of what went in."""
    dtype, share = getattr(torch, digits), SHARES[digits]
    mechanism, mask = entry.tiny(), mask_of(kind, K, K)
    low = [one.detach().to(dtype).requires_grad_() for one in three(K, K)]
    exact = [one.detach().double().requires_grad_() for one in low]
    extra = extra_of(mechanism, *exact[:2])
    less = None if extra is None else extra.detach().to(dtype)
    found = mechanism.mix(low[0], low[1], low[2], mask, extra=less)
    wanted = mechanism.mix(exact[0], exact[1], exact[2], mask, extra=extra)
    for name, one in (("mix", found), ("weights", mechanism.weights(low[0], low[1], mask, less))):
        hold(one.dtype == dtype, f"`{name}` gives {one.dtype} where everything that went in is {dtype}")
    away = (found - wanted).abs().mean() / wanted.abs().mean()
    hold(away < share, f"in {digits} the result is {away:.2g} away, more than {share:g}")
    for one in gradients(found, low, torch.ones_like(found)):
        hold(one.isfinite().all(), f"a gradient in {digits} is not finite")


@promise(kind=EXPORTED)
def compiled_by_torch_it_is_the_same(entry: type[Mechanism], kind: str) -> None:
    """In one graph, backwards too."""
    torch.compiler.reset()
    mechanism, qkv, mask = entry.tiny(), three(K, K), mask_of(kind, K, K)
    extra = extra_of(mechanism, *qkv[:2])

    def plain(q: Tensor, k: Tensor, v: Tensor, keys: Tensor | None) -> Tensor:
        return mechanism.mix(q, k, v, replace(mask, keys=keys), extra=extra)

    mix = torch.compile(plain, backend="eager", fullgraph=True)
    found, wanted = mix(*qkv, mask.keys), plain(*qkv, mask.keys)
    same(found, wanted, "compiled by torch, `mix` gives something else")
    towards = torch.randn_like(found)
    for one, other in zip(gradients(found, qkv, towards), gradients(wanted, qkv, towards), strict=True):
        same(one, other, "compiled by torch, `mix` has other gradients")


class Exported(Module):
    """A mechanism as the exporter meets it: inside a module, with a padding mask among the inputs."""

    def __init__(self, mechanism: Mechanism, mask: Mask, extra: Tensor | None) -> None:
        super().__init__()
        self.mechanism, self.mask, self.extra = mechanism, mask, extra

    def forward(self, q: Tensor, k: Tensor, v: Tensor, keys: Tensor | None) -> Tensor:
        """By the fast way."""
        return self.mechanism.mix(q, k, v, replace(self.mask, keys=keys), extra=self.extra)


@promise(kind=EXPORTED, kernels=("compiled", "plain"))
def exported_by_torch_it_is_the_same(entry: type[Mechanism], kind: str, kernels: str) -> None:
    """By `torch.export`, with compiled kernels around and without."""
    mechanism, mask = entry.tiny(), mask_of(kind, K, K)
    q, k, v = (one.detach() for one in three(K, K))
    extra = extra_of(mechanism, q, k)
    extra = extra.detach() if extra is not None else None
    given = (q, k, v, mask.keys)
    with plain_torch() if kernels == "plain" else nullcontext():
        program = torch.export.export(Exported(mechanism, mask, extra), given, strict=True)
        found, wanted = program.module()(*given), mechanism.mix(q, k, v, mask, extra=extra)
    same(found, wanted, "exported, `mix` gives something else")


@promise(kind=EXPORTED, length=(K, LONG))
def per_sample_gradients_are_those_of_single_examples(entry: type[Mechanism], kind: str, length: int) -> None:
    """`torch.func.vmap(grad(…))` over a batch, against one backward pass for each example."""
    mechanism, mask = entry.tiny(), mask_of(kind, length, length)
    qkv = tuple(tensor.detach().float() for tensor in three(length, length))
    extra = extra_of(mechanism, qkv[0][:1], qkv[1][:1])   # of one example, shared by all
    padding = {} if mask.keys is None else {"keys": mask.keys}

    def loss(qkv: tuple[Tensor, ...], padding: dict[str, Tensor]) -> Tensor:
        q, k, v = (tensor.unsqueeze(0) for tensor in qkv)
        own = replace(mask, keys=padding["keys"].unsqueeze(0) if padding else None)
        return mechanism.mix(q, k, v, own, extra=extra).square().sum()

    with warnings.catch_warnings():
        # torch loops over the examples where one of its own operators, such as fused attention, has no batching rule
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        found = torch.func.vmap(torch.func.grad(loss))(qkv, padding)
    for example in range(B):
        leaves = tuple(tensor[example].clone().requires_grad_() for tensor in qkv)
        result = loss(leaves, {name: tensor[example] for name, tensor in padding.items()})
        wanted = gradients(result, leaves, torch.ones_like(result))
        for one, other in zip(found, wanted, strict=True):
            same(one[example], other, "`torch.func.grad` gives other gradients", rtol=1e-4, atol=1e-5)


def around(mechanism: Mechanism) -> tuple[MultiHeadAttention, Sizes]:
    """A layer with the mechanism inside, and what to feed it."""
    return MultiHeadAttention(num_heads=2, key_dim=3, attention=mechanism), (7, 5)


@promise()
def the_learned_part_gives_what_extra_shows(entry: type[Mechanism]) -> None:
    """`extra` stands in for it wherever a mechanism is tried without a layer around it."""
    layer, shape = around(entry.tiny())
    q = torch.randn(B, 2, 7, 3)
    learned, shown = layer.attention.learned(5, 2, 3), layer.attention.extra(q, q)
    both = "`learned` gives a module and `extra` shows what that returns; without one, both give None"
    hold((learned is None) == (shown is None), both)
    if learned is not None:
        given = learned(batch(layer, shape))
        hold(given.shape == shown.shape, f"`learned` gives the shape {shape_of(given)}, `extra` {shape_of(shown)}")


@promise()
def in_a_layer_its_parameters_are_counted_and_learn(entry: type[Mechanism]) -> None:
    """Those of the learned part, by `learned_cost`."""
    layer, shape = around(entry.tiny())
    torch.manual_seed(0)
    module = layer.build(shape)
    counts_parameters(module, layer, shape)
    if module.learned is not None:
        reaches_every_parameter(module.learned, module(batch(layer, shape)))
