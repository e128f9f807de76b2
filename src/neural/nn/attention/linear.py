"""Linear attention (Katharopoulos et al., 2020): weights are products of positive features.

With φ(x) = elu(x) + 1 the weight of key j for query i is φ(q_i)·φ(k_j), divided by the sum over the
visible keys. Then Σ_j (φ(q_i)·φ(k_j)) v_j = φ(q_i)·(Σ_j φ(k_j) v_jᵀ): the sum in brackets is the
same for all queries, so time and memory are linear in the length. A bias b on a score multiplies
the weight by exp(b), as in a softmax.

A mechanism (mechanism.py): `weights` defines it, `attend` computes `weights @ v` fast, and `cost`
counts its multiply-adds and the values saved for the backward pass. `extra` is unused: it is for
mechanisms with learned parameters.

A `Mask` (mask.py) combines causality, padding (`keys`), a largest distance (`reach`), packed
documents (`segments`), any other rule (`pairs`) and biases of the scores.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from types import ModuleType
from typing import TYPE_CHECKING

from neural.language.shapes import Cost
from neural.nn.kernel_dispatch import use_kernel
from neural.nn.lazy_torch import functional, torch
from neural.nn.mask import Mask, as_bool
from neural.nn.mechanism import Mechanism
from neural.nn.positionwise import attend_in_chunks, fill_masked

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    # Σ_j k_j v_jᵀ and Σ_j k_j over some keys j.
    KeyValueSums = tuple[Float[Tensor, "B H D V"], Float[Tensor, "B H D"]]

MAX_CHUNK_ELEMENTS = 2**20
"""Largest number of values in one chunk of the queries or keys: 4 MB of float32."""
BLOCK_SIZE = 64
"""Positions of a block in causal attention.

Pairs inside a block are multiplied one by one; all earlier blocks are in running sums.
"""


def _load_kernel() -> ModuleType:
    """The compiled form of `attend`, imported at its first use."""
    from neural.nn.kernels import linear

    return linear


class Linear(Mechanism):
    """Weights are φ(q)·φ(k) over their sum, with φ(x) = elu(x) + 1: linear time and memory.

    Dropout drops whole keys of a head: single weights are never computed. The output is zero for a
    query whose products with all keys sum to less than about 7e-20 (q near −50), so that no
    gradient overflows.
    """

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """φ(q)·φ(k)·exp(bias), divided by the sum of the row."""
        keep, bias = mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device), mask.combine_biases()
        products = feature_map(q) @ feature_map(k).transpose(-1, -2)
        if bias is not None:
            # The largest factor of a row becomes 1, so that none overflows.
            bias = fill_masked(bias.to(products.dtype).expand_as(products), keep)
            products = products * (bias - bias.amax(dim=-1, keepdim=True).detach()).exp()
        if keep is not None:
            products = products.masked_fill(~keep, 0)
        return safe_divide(products, products.sum(dim=-1, keepdim=True)).to(q.dtype)

    @use_kernel(_load_kernel)
    def attend(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K V"],
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """O(n) by sums over the keys, which are running sums if causal.

        Other rules and biases of the mask need the weights: then `weights @ v` in chunks, O(n²).
        """
        if dropout:
            v = v * functional.dropout(v.new_ones(*v.shape[:-1], 1), dropout)
        has_pair_rules = not all(
            rule is None for rule in (mask.reach, mask.segments, mask.pairs, mask.bias)
        )
        # A key bias b multiplies weights by exp(b − largest b). In a causal mask, the key of the
        # largest b may be later than a query, and the factors of all visible keys may underflow.
        if has_pair_rules or (mask.causal and mask.key_bias is not None) or k.shape[-2] == 0:
            # No dropout of weights: it was applied to v above.
            return attend_in_chunks(self, q, k, v, mask, dropout=0.0, extra=extra)
        key_mask = None if mask.keys is None else as_bool(mask.keys)[:, None, :, None]
        if mask.key_bias is not None:
            key_bias = fill_masked(
                mask.key_bias.to(k.dtype).expand(k.shape[:-1]),
                None if key_mask is None else key_mask.squeeze(-1),
            )
            factor = (key_bias - key_bias.amax(dim=-1, keepdim=True).detach()).exp().unsqueeze(-1)
        else:
            factor = None
        chunks = attend_chunks(q, k, v, factor, key_mask, causal=mask.causal)
        return torch.cat([*chunks], dim=-2).to(v.dtype)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """The products φ(k)ᵀ·v, φ(q) with that sum, and φ(q) with the sum of φ(k).

        Saves the output and the divisor of each query. Without the kernel, also φ(q), φ(k) and the
        two sums. Causal attention multiplies more than twice as much as returned here.
        """
        return Cost(
            multiply_adds=heads * width * (keys * width + queries * width + queries),
            activations=heads * queries * (width + 1),
        )


def feature_map(x: Float[Tensor, "B H T D"]) -> Float[Tensor, "B H T D"]:
    """φ(x) = elu(x) + 1, which is positive; in at least 32 bits, so that sums are precise."""
    return functional.elu(x.to(torch.promote_types(x.dtype, torch.float32))) + 1


def safe_divide(
    numerator: Float[Tensor, "B H Q N"], total: Float[Tensor, "B H Q 1"]
) -> Float[Tensor, "B H Q N"]:
    """numerator / total; 0 for a tiny total, so that no gradient overflows. NaN stays NaN."""
    is_tiny = total <= torch.finfo(total.dtype).tiny ** 0.5
    return (numerator / total.masked_fill(is_tiny, 1)).masked_fill(is_tiny, 0)


def attend_chunks(
    q: Float[Tensor, "B H Q D"],
    k: Float[Tensor, "B H K D"],
    v: Float[Tensor, "B H K V"],
    factor: Float[Tensor, "B H K 1"] | None,
    key_mask: Bool[Tensor, "B 1 K 1"] | None,
    *,
    causal: bool,
) -> Iterator[Float[Tensor, "B H P V"]]:
    """Yield the attention output of each chunk of queries (P positions).

    The features of each key are multiplied by its `factor`. First the function sums over the keys
    that all queries see: all keys or, if causal, the keys before the first query. Then it
    computes the queries; if causal, the keys of a chunk are added to the sums after the chunk.
    """
    # Causal queries are aligned with the last keys. With more queries than keys, the first queries
    # (`num_blind`) are before the first key and have no visible keys.
    num_blind = max(0, q.shape[-2] - k.shape[-2]) if causal else 0
    num_seeing = q.shape[-2] - num_blind
    num_shared_keys = k.shape[-2] - num_seeing if causal else k.shape[-2]
    key_sizes, query_sizes = split_sizes(num_shared_keys, k), split_sizes(num_seeing, q)
    # If causal, the keys after the shared ones are split like the queries. One `split`, not a slice
    # per chunk: the gradient of each slice would be as large as the whole tensor.
    key_chunks = zip(
        *(
            split_time(tensor, key_sizes + query_sizes * causal)
            for tensor in (k, v, factor, key_mask)
        ),
        strict=True,
    )
    sums: KeyValueSums = (
        k.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1]),
        k.new_zeros(*k.shape[:2], k.shape[-1]),
    )
    for _ in key_sizes:
        sums = add_to_sums(sums, *prepare_keys(*next(key_chunks)))
    if num_blind:
        yield v.new_zeros(*q.shape[:2], num_blind, v.shape[-1])
    for query_chunk in q.split([num_blind, *query_sizes], dim=-2)[1:]:
        queries = feature_map(query_chunk)
        if causal:
            keys_and_values = prepare_keys(*next(key_chunks))
            yield safe_divide(*running_sums(queries, *keys_and_values, sums))
            sums = add_to_sums(sums, *keys_and_values)
        else:
            yield safe_divide(queries @ sums[0], queries @ sums[1].unsqueeze(-1))


def prepare_keys(
    k: Tensor, v: Tensor, factor: Tensor | None, key_mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Features φ(k)·factor of the keys, 0 for padding, and the values in the same precision."""
    k = feature_map(k)
    if factor is not None:
        k = k * factor
    if key_mask is not None:
        k = k.masked_fill(~key_mask, 0)
    return k, v.to(k.dtype)


def add_to_sums(
    sums: KeyValueSums, k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"]
) -> KeyValueSums:
    """The sums Σ_j k_j v_jᵀ and Σ_j k_j with more keys added; `k` are features φ(k)."""
    return sums[0] + k.transpose(-1, -2) @ v, sums[1] + k.sum(dim=-2)


def running_sums(
    q: Float[Tensor, "B H T D"],
    k: Float[Tensor, "B H T D"],
    v: Float[Tensor, "B H T V"],
    before: KeyValueSums,
) -> tuple[Float[Tensor, "B H T V"], Float[Tensor, "B H T 1"]]:
    """Σ_j (q·k_j) v_j and Σ_j q·k_j over the keys up to each query; `q` and `k` are features φ.

    Inside a block of BLOCK_SIZE positions, pairs of queries and keys are multiplied. Earlier blocks
    enter by their sums; `before` are the sums over the keys before the first query.
    """
    time = q.shape[-2]
    q, k, v = (split_into_blocks(tensor) for tensor in (q, k, v))
    block_sums = k.transpose(-1, -2) @ v, k.sum(dim=-2)
    past_kv, past_k = (
        torch.cat((start.unsqueeze(2), block[:, :, :-1]), dim=2).cumsum(dim=2)
        for start, block in zip(before, block_sums, strict=True)
    )
    inside = (q @ k.transpose(-1, -2)).tril()
    numerator = inside @ v + q @ past_kv
    total = inside.sum(dim=-1, keepdim=True) + q @ past_k.unsqueeze(-1)
    return numerator.flatten(2, 3)[..., :time, :], total.flatten(2, 3)[..., :time, :]


def split_sizes(length: int, x: Float[Tensor, "B H T D"]) -> list[int]:
    """Sizes of the chunks into which `length` positions of a tensor like `x` are split.

    Chunks have at most MAX_CHUNK_ELEMENTS values: the operating system allocates larger tensors
    anew for each call, page by page, which is slow.
    """
    step = max(1, MAX_CHUNK_ELEMENTS // max(1, x[..., :1, :].numel() * BLOCK_SIZE)) * BLOCK_SIZE
    if torch.compiler.is_compiling() or length <= step:
        return [length]
    return [step] * (length // step) + [length % step] * (length % step > 0)


def split_time(x: Tensor | None, sizes: list[int]) -> Iterable[Tensor | None]:
    """Chunks along time; None for each chunk of None."""
    return x.split(sizes, dim=-2) if x is not None else repeat(None, len(sizes))


def split_into_blocks(x: Float[Tensor, "B H T D"]) -> Float[Tensor, "B H N T D"]:
    """N blocks of BLOCK_SIZE positions, the last one padded with zeros."""
    return functional.pad(x, (0, 0, 0, -x.shape[-2] % BLOCK_SIZE)).unflatten(-2, (-1, BLOCK_SIZE))
