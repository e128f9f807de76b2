"""Contract rules of attention mechanisms.

A mechanism is a kind of attention (nn/mechanism.py). Its method `weights` defines it; `attend`
computes weights · values, usually without the dense weights. A rule (rule.py) is called with
`entry`, the class of a mechanism, once per combination of the cases in its decorator. `kind`
describes a mask by words, such as "causal keys" (`make_mask` in attention_inputs.py). Some
mechanisms have parameters of their own, in a learned module (`build_learned`); `extra` is its
output.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from neural.native.library import available_levels, force_level
from neural.nn.attention.self import Self
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.layers.multi_head_attention import MultiHeadAttention
from neural.nn.lazy_torch import Module, lazy_import, torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism
from neural.testing.attention_inputs import (
    LENGTHS,
    LONG_LENGTH,
    MASKS,
    B,
    D,
    H,
    K,
    Q,
    SequenceLengths,
    collect_leaves,
    compute_gradients,
    compute_visibility,
    explain_hidden_key,
    make_extra,
    make_mask,
    random_qkv,
)
from neural.testing.fixtures import Sizes, make_batch, use_math_kernels
from neural.testing.layer_rules import assert_gradients, assert_parameter_count
from neural.testing.rule import (
    ContractError,
    contract_rule,
    first_true_index,
    format_shape_of,
    require,
    require_close,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor

flop_counter = lazy_import("torch.utils.flop_counter")

MASK_HELP = (
    "`mask.to_keep_mask(queries, keys, device)` is True where a query may see a key, and None if all "
    "keys are visible; the last query is aligned with the last key"
)

SIGNED_HELP = "if that is intended, declare `signed: ClassVar[bool] = True`"
SIGNED_CAUSE = "weights below 0; declare `signed = True`"


def assert_matches_definition(mechanism: Mechanism, qkv: Sequence[Tensor], mask: Mask) -> None:
    """Compare `attend` with `weights @ v`, and their gradients."""
    q, k, v = qkv
    extra = make_extra(mechanism, q, k)
    leaves = collect_leaves(qkv, mask, extra)
    output = mechanism.attend(q, k, v, mask, extra=extra)
    weights = mechanism.weights(q, k, mask, extra)
    require_shape(weights, q.shape[-2], k.shape[-2])
    expected = weights @ v
    try:
        require_close(output, expected, "`attend(q, k, v, mask)` is not `weights(q, k, mask) @ v`")
    except AssertionError:
        # a mask that only `weights` forgets would look like an error of `attend`
        require_mask_applied(weights, mask)
        raise
    grad_output = torch.randn_like(output)
    for gradient, expected_gradient in zip(
        compute_gradients(output, leaves, grad_output),
        compute_gradients(expected, leaves, grad_output),
        strict=True,
    ):
        shape = format_shape_of(gradient)
        require(
            gradient.isfinite().all(), f"a gradient of `attend`, of shape {shape}, is not finite"
        )
        require_close(
            gradient,
            expected_gradient,
            f"the gradients of `attend` and `weights @ v` differ for an input of shape {shape}",
        )


@contract_rule(lengths=LENGTHS, kind=MASKS)
def attend_equals_weights_times_v_in_values_and_gradients(
    entry: type[Mechanism], lengths: SequenceLengths, kind: str
) -> None:
    """Checked with more queries than keys, with fewer, and with one query; under every mask."""
    assert_matches_definition(entry.example(), random_qkv(*lengths), make_mask(kind, *lengths))


@contract_rule(kind=("none", "causal keys", "window segments"))
def long_sequences_match_the_definition(entry: type[Mechanism], kind: str) -> None:
    """Implementations that work in blocks of positions must be right at block edges too."""
    assert_matches_definition(
        entry.example(),
        random_qkv(LONG_LENGTH, LONG_LENGTH),
        make_mask(kind, LONG_LENGTH, LONG_LENGTH),
    )


MAX_FLOAT32_ERROR = 2e-5
"""Allowed error of 32-bit kernels, relative to the largest value or gradient."""


def has_native_kernel(entry: type[Mechanism]) -> bool:
    """Whether `use_kernel` decorates `attend`."""
    return hasattr(entry.attend, "__wrapped__")


@contract_rule(applies=has_native_kernel, lengths=LENGTHS, kind=MASKS)
def every_instruction_set_gives_the_definition(
    entry: type[Mechanism], lengths: SequenceLengths, kind: str
) -> None:
    """In 32 bits, where native kernels run: values and gradients, for all that this machine has."""
    mechanism, exact, mask = entry.example(), random_qkv(*lengths), make_mask(kind, *lengths)
    extra = make_extra(mechanism, *exact[:2])
    leaves = collect_leaves(exact, mask, extra)
    expected = mechanism.weights(*exact[:2], mask, extra) @ exact[2]
    grad_output = torch.randn_like(expected)
    expected_gradients = compute_gradients(expected, leaves, grad_output)
    floats = {id(leaf): leaf.detach().float().requires_grad_() for leaf in leaves}

    def to_float(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else floats.get(id(tensor), tensor)

    low_mask = replace(mask, bias=to_float(mask.bias), key_bias=to_float(mask.key_bias))
    q, k, v = (floats[id(tensor)] for tensor in exact)
    for level in available_levels():
        with force_level(level):
            output = mechanism.attend(q, k, v, low_mask, extra=to_float(extra))
            gradients = compute_gradients(
                output, [floats[id(leaf)] for leaf in leaves], grad_output.float()
            )
        pairs = zip((output, *gradients), (expected, *expected_gradients), strict=True)
        for index, (actual, exact_value) in enumerate(pairs):
            error = (actual.double() - exact_value).abs().max().item()
            largest = max(1.0, exact_value.abs().max().item())
            name = f"gradient {index}" if index else "output"
            require(
                error <= MAX_FLOAT32_ERROR * largest,
                f"{level}: the {name} differs from the definition by {error / largest:.2g}",
            )


@contract_rule(kind=("none", "causal keys"), dtype_name=("float32", "float64"))
def a_nan_in_a_query_is_not_hidden(entry: type[Mechanism], kind: str, dtype_name: str) -> None:
    """Outputs are NaN wherever `weights @ v` is: a diverged training must not look healthy."""
    mechanism, mask = entry.example(), make_mask(kind, LONG_LENGTH, LONG_LENGTH)
    q, k, v = (
        tensor.detach().to(getattr(torch, dtype_name))
        for tensor in random_qkv(LONG_LENGTH, LONG_LENGTH)
    )
    extra = make_extra(mechanism, q, k)
    q[0, 1, LONG_LENGTH // 2, 0] = torch.nan
    output = mechanism.attend(q, k, v, mask, extra=extra)
    expected = mechanism.weights(q, k, mask, extra) @ v
    lost_nan = expected.isnan() & ~output.isnan()
    if lost_nan.any():
        raise AssertionError(
            f"`attend` is finite at {first_true_index(lost_nan)}, where `weights @ v` is NaN"
        )


@contract_rule(
    applies=lambda entry: entry.spreads_nan, name=("q", "k", "v"), length=(7, LONG_LENGTH)
)
def a_nan_reaches_the_output(entry: type[Mechanism], name: str, length: int) -> None:
    """`spreads_nan` promises it: `neural.attend` checks the output instead of the inputs."""
    for dtype in (torch.float32, torch.float64):
        q, k, v = (tensor.detach().to(dtype) for tensor in random_qkv(length, length))
        {"q": q, "k": k, "v": v}[name][0, 1, length // 2, -1] = torch.nan
        mechanism = entry.example()
        output = mechanism.attend(q, k, v, Mask(), extra=make_extra(mechanism, q, k))
        require(output.isnan().any(), f"`attend` is finite with a NaN in {name}, in {dtype}")


def compute_checked_weights(
    mechanism: Mechanism, mask: Mask, queries: int, keys: int
) -> Float[Tensor, "B H Q K"]:
    """Weights under a mask; their shape is checked, and that they are 0 for masked keys."""
    q, k, _ = random_qkv(queries, keys)
    w = mechanism.weights(q, k, mask, make_extra(mechanism, q, k))
    require_shape(w, queries, keys)
    require_mask_applied(w, mask)
    return w


def require_shape(weights: Tensor, queries: int, keys: int) -> None:
    """Raise ContractError unless the weights are (batch, heads, queries, keys)."""
    expected_shape = (B, H, queries, keys)
    require(
        weights.shape == expected_shape,
        f"`weights` has shape {format_shape_of(weights)}, must be {expected_shape}: batch, heads, "
        "queries, keys",
    )


def require_mask_applied(weights: Float[Tensor, "B H Q K"], mask: Mask) -> None:
    """Raise ContractError if a masked key has a weight other than 0."""
    queries, keys = weights.shape[-2:]
    leaked = (weights != 0) & ~compute_visibility(mask, queries, keys).expand_as(weights)
    if leaked.any():
        example, head, query, key = first_true_index(leaked)
        reason = explain_hidden_key(mask, example, query, key, keys - queries)
        raise ContractError(
            f"query {query} gives key {key} a weight of {weights[example, head, query, key]:.3g}, "
            f"must be 0: {reason}.\n{MASK_HELP}",
            f"`weights` does not apply the mask: a key has a weight although {reason}",
        )


def has_negative_weights(entry: type[Mechanism]) -> bool:
    """Whether a weight is negative for random queries and keys, without a mask."""
    q, k, _ = random_qkv(K, K)
    mechanism = entry.example()
    return bool((mechanism.weights(q, k, Mask(), make_extra(mechanism, q, k)) < 0).any())


def _is_signed(entry: type[Mechanism]) -> bool:
    return entry.signed


def _is_unsigned(entry: type[Mechanism]) -> bool:
    return not entry.signed


@contract_rule(lengths=LENGTHS, kind=MASKS, applies=_is_unsigned)
def rows_sum_to_one_and_masked_keys_get_zero(
    entry: type[Mechanism], lengths: SequenceLengths, kind: str
) -> None:
    """Rows without a visible key may be all zero."""
    (queries, keys), mask = lengths, make_mask(kind, *lengths)
    w = compute_checked_weights(entry.example(), mask, queries, keys)
    require(not w.isnan().any(), "a weight is NaN")
    require((w >= 0).all(), f"a weight is negative: {w.min():g}; {SIGNED_HELP}", SIGNED_CAUSE)
    total = w.sum(dim=-1)
    is_zero_row = (w == 0).all(dim=-1)
    has_wrong_sum = ((total - 1).abs() > 1e-7) & ~is_zero_row
    if has_wrong_sum.any():
        example, head, query = first_true_index(has_wrong_sum)
        raise ContractError(
            f"the weights of query {query} sum to {total[example, head, query]:.4g}, must sum to 1 "
            f"(example {example}, head {head})",
            # negative weights, which this case happens not to have, explain it
            SIGNED_CAUSE if has_negative_weights(entry) else "rows do not sum to 1",
        )
    if kind in ("none", "bias", "causal") and queries <= keys:
        require(not is_zero_row.any(), "a row of `weights` is zero though the query can see keys")


@contract_rule(lengths=LENGTHS, kind=MASKS, applies=_is_signed)
def signed_weights_are_finite_and_masked_keys_get_zero(
    entry: type[Mechanism], lengths: SequenceLengths, kind: str
) -> None:
    """The rows of a signed mechanism may have any sum."""
    w = compute_checked_weights(entry.example(), make_mask(kind, *lengths), *lengths)
    require(w.isfinite().all(), "a weight is NaN or infinite")


@contract_rule(applies=_is_signed)
def a_signed_mechanism_has_negative_weights(entry: type[Mechanism]) -> None:
    """`signed` switches off checks and changes the measures: it must be needed."""
    require(
        has_negative_weights(entry),
        "no weight is negative for random queries and keys: remove `signed = True`, then rows are "
        "checked to sum to 1",
    )


@contract_rule(lengths=LENGTHS)
def a_fully_masked_row_is_zero_not_nan(entry: type[Mechanism], lengths: SequenceLengths) -> None:
    """Rows of padding only are common: a batch is as long as its longest text."""
    mechanism, qkv, mask = entry.example(), random_qkv(*lengths), make_mask("empty", *lengths)
    q, k, v = qkv
    extra = make_extra(mechanism, q, k)
    output = mechanism.attend(q, k, v, mask, extra=extra)
    require((output[0] == 0).all(), "`attend` is not zero where everything is masked")
    require(
        (mechanism.weights(q, k, mask, extra)[0] == 0).all(),
        "`weights` are not zero where everything is masked",
    )
    for gradient in compute_gradients(output, qkv, torch.ones_like(output)):
        require((gradient[0] == 0).all(), "a gradient is not zero where everything is masked")
        require(
            gradient.isfinite().all(),
            "a gradient is not finite when another example of the batch is fully masked",
        )


@contract_rule(kind=MASKS)
def masked_keys_do_not_reach_the_output(entry: type[Mechanism], kind: str) -> None:
    """The gradients of the output with respect to masked keys and values are exactly zero."""
    mechanism, (q, k, v), mask = entry.example(), random_qkv(K, K), make_mask(kind, K, K)
    visible = compute_visibility(mask, K, K)
    for query in range(K):
        output = mechanism.attend(q, k, v, mask, extra=make_extra(mechanism, q, k))[:, :, query]
        for name, gradient in zip(
            ("key", "value"),
            compute_gradients(output, [k, v], torch.randn_like(output)),
            strict=True,
        ):
            leak = (gradient.abs().amax(dim=(1, 3)) > 0) & ~visible[:, 0, query]
            if leak.any():
                example, key = first_true_index(leak)
                reason = explain_hidden_key(mask, example, query, key, 0)
                raise AssertionError(
                    f"{name} {key} changes the output of `attend` for query {query}, "
                    f"must not: {reason}.\n{MASK_HELP}"
                )


@contract_rule()
def large_scores_stay_finite(entry: type[Mechanism]) -> None:
    """The softmax must subtract the largest score q·k before the exponential."""
    mechanism, (q, k, v), mask = entry.example(), random_qkv(K, K), make_mask("causal keys", K, K)
    q, k = q.float() * 1e4, k.float() * 1e4
    extra = make_extra(mechanism, q, k)
    require(
        mechanism.attend(q, k, v.float(), mask, extra=extra).isfinite().all(),
        "`attend` is not finite with large scores",
    )
    require(
        mechanism.weights(q, k, mask, extra).isfinite().all(),
        "`weights` are not finite with large scores",
    )


@contract_rule()
def the_last_queries_can_be_computed_alone(entry: type[Mechanism]) -> None:
    """Cached generation computes the newest query against all keys."""
    mechanism, (q, k, v), mask = entry.example(), random_qkv(K, K), Mask(causal=True)
    extra = make_extra(mechanism, q, k)
    expected = mechanism.attend(q, k, v, mask, extra=extra)
    for queries in range(1, K + 1):
        output = mechanism.attend(q[:, :, -queries:], k, v, mask, extra=extra)
        require_close(
            output,
            expected[:, :, -queries:],
            f"the last {queries} of {K} queries, computed alone, give a different output",
        )


@contract_rule()
def dropout_drops_weights_and_keeps_their_mean(entry: type[Mechanism]) -> None:
    """Inverted dropout: remaining weights are scaled up, so that evaluation needs no scaling."""
    mechanism, (q, k, v) = entry.example(), random_qkv(K, K)
    torch.manual_seed(2)
    with torch.no_grad():
        extra = make_extra(mechanism, q, k)
        expected = mechanism.attend(q, k, v, Mask(), extra=extra)
        outputs = torch.stack(
            [mechanism.attend(q, k, v, Mask(), dropout=0.3, extra=extra) for _ in range(600)]
        )
    require(not torch.equal(outputs[0], expected), "`dropout` changes nothing")
    difference = (outputs.mean(dim=0) - expected).abs().mean() / expected.abs().mean()
    require(difference < 0.1, f"dropout changes the mean of the output by {difference:.0%}")


@contract_rule()
def the_predicted_multiply_adds_are_the_counted_ones(entry: type[Mechanism]) -> None:
    """`cost` predicts the multiply-adds of `attend` for one example; `neural check` shows them."""
    mechanism, (q, k, v) = entry.example(), random_qkv(Q, K)
    extra = make_extra(mechanism, q, k)
    with use_math_kernels(), no_kernels(), flop_counter.FlopCounterMode(display=False) as counter:
        mechanism.attend(q, k, v[..., :D], Mask(), extra=extra)
    predicted, counted = (
        mechanism.cost(H, Q, K, D).multiply_adds,
        counter.get_total_flops() / (2 * B),
    )
    # A native kernel may visit fewer pairs than the torch fallback that is counted here.
    require(
        predicted <= counted if has_native_kernel(entry) else predicted == counted,
        f"`cost` predicts {predicted:,} multiply-adds for {H} heads, {Q} queries, "
        f"{K} keys of width {D}; torch counts {counted:,g}",
    )


@contract_rule(kind=("causal", "causal keys bias", "key_bias", "keys"))
def softmax_mask_gives_the_same_weights(entry: type[Mechanism], kind: str) -> None:
    """`softmax_mask` returns the mask under which `weights` are softmax(q·kᵀ / √D), or None.

    It must not be None for a plain softmax, because measures of attention use it to avoid the dense
    weights.
    """
    mechanism, (q, k, _), mask = entry.example(), random_qkv(K, K), make_mask(kind, K, K)
    extra = make_extra(mechanism, q, k)
    w = mechanism.weights(q, k, mask, extra)
    softmax_mask = mechanism.softmax_mask(q, k, mask, extra)
    if softmax_mask is not None:
        require_close(
            Self().weights(q, k, softmax_mask),
            w,
            "the softmax under `softmax_mask` is not `weights`",
        )
    else:
        is_softmax = torch.allclose(Self().weights(q, k, mask), w, atol=1e-3)
        require(
            not is_softmax, "the weights are a plain softmax: `softmax_mask` must return the mask"
        )


@contract_rule()
def an_example_is_independent_of_its_batch(entry: type[Mechanism]) -> None:
    """Results are bit-identical whatever the other examples of the batch are."""
    mechanism, qkv, mask = entry.example(), random_qkv(K, K), make_mask("keys", K, K)
    others = [torch.cat((tensor[:1], torch.randn_like(tensor[1:]))) for tensor in qkv]
    extra = make_extra(mechanism, *qkv[:2])
    first, second = (mechanism.attend(q, k, v, mask, extra=extra)[0] for q, k, v in (qkv, others))
    require_close(
        first, second, "an example changes with the other examples of its batch", rtol=0, atol=0
    )


def _supports_cross_attention(entry: type[Mechanism]) -> bool:
    return not entry.self_attention_only


@contract_rule(
    lengths=(SequenceLengths(Q, K), SequenceLengths(K, Q)), applies=_supports_cross_attention
)
def the_order_of_queries_and_keys_does_not_matter(
    entry: type[Mechanism], lengths: SequenceLengths
) -> None:
    """Permuted queries and keys give the same weights, permuted.

    Cross-attention needs this; a mechanism that cannot do it declares `self_attention_only`.
    """
    mechanism, (q, k, _) = entry.example(), random_qkv(*lengths)
    learned, source = (
        mechanism.build_learned(D, H, D),
        torch.randn(B, lengths.keys, D, dtype=torch.float64),
    )
    rows, columns = torch.randperm(lengths.queries), torch.randperm(lengths.keys)

    def compute_weights(q: Tensor, k: Tensor, source: Tensor) -> Tensor:
        extra = None if learned is None else learned.double()(source)
        return mechanism.weights(q, k, Mask(), extra)

    expected = compute_weights(q, k, source)[:, :, rows][..., columns]
    shuffled = compute_weights(q[:, :, rows], k[:, :, columns], source[:, columns])
    require_close(
        shuffled,
        expected,
        "the weights depend on the order of queries or keys, so the mechanism cannot relate two "
        "sequences: declare `self_attention_only: ClassVar[bool] = True`",
    )


EXPORT_MASKS = ("none", "causal keys")
"""Masks of the rules about torch.compile, torch.export and torch.func."""
RELATIVE_TOLERANCES = {"float32": 1e-5, "bfloat16": 3e-2}
"""Allowed mean difference in lower precision, relative to the mean size of the result."""


@contract_rule(kind=("none", "causal keys", "key_bias bias keys window segments"))
def gradients_are_those_of_finite_differences(entry: type[Mechanism], kind: str) -> None:
    """`gradcheck` in double precision."""
    mechanism, (q, k, v), mask = entry.example(), random_qkv(Q, K), make_mask(kind, Q, K)
    extra = make_extra(mechanism, q, k)
    if mechanism.straight_through:
        # Such weights have the gradient of a smoother function by design, so the gradients of their
        # inputs are not compared with finite differences.
        q, k = q.detach(), k.detach()
        biases = [word for word in kind.split() if "bias" in word]
        mask = replace(mask, **{name: getattr(mask, name).detach() for name in biases})
    leaves = [leaf for leaf in collect_leaves((q, k, v), mask, extra) if leaf.requires_grad]
    torch.autograd.gradcheck(
        lambda *_: mechanism.attend(q, k, v, mask, extra=extra), leaves, fast_mode=True
    )


@contract_rule(dtype_name=tuple(RELATIVE_TOLERANCES), kind=("none", "causal keys"))
def lower_precision_changes_little(entry: type[Mechanism], dtype_name: str, kind: str) -> None:
    """The result has the dtype of the inputs, and is close to that in float64."""
    dtype, tolerance = getattr(torch, dtype_name), RELATIVE_TOLERANCES[dtype_name]
    mechanism, mask = entry.example(), make_mask(kind, K, K)
    low = [tensor.detach().to(dtype).requires_grad_() for tensor in random_qkv(K, K)]
    exact = [tensor.detach().double().requires_grad_() for tensor in low]
    extra = make_extra(mechanism, *exact[:2])
    low_extra = None if extra is None else extra.detach().to(dtype)
    output = mechanism.attend(low[0], low[1], low[2], mask, extra=low_extra)
    weights = mechanism.weights(low[0], low[1], mask, low_extra)
    expected = mechanism.attend(exact[0], exact[1], exact[2], mask, extra=extra)
    for name, tensor in (("attend", output), ("weights", weights)):
        require(
            tensor.dtype == dtype, f"`{name}` returns {tensor.dtype} for inputs of type {dtype}"
        )
    difference = (output - expected).abs().mean() / expected.abs().mean()
    require(
        difference < tolerance,
        f"in {dtype_name} the result differs by {difference:.2g}, more than {tolerance:g}",
    )
    for gradient in compute_gradients(output, low, torch.ones_like(output)):
        require(gradient.isfinite().all(), f"a gradient in {dtype_name} is not finite")


@contract_rule(kind=EXPORT_MASKS)
def torch_compile_gives_the_same_output(entry: type[Mechanism], kind: str) -> None:
    """`torch.compile` in one graph, forward and backward."""
    torch.compiler.reset()
    mechanism, qkv, mask = entry.example(), random_qkv(K, K), make_mask(kind, K, K)
    extra = make_extra(mechanism, *qkv[:2])

    def attend(q: Tensor, k: Tensor, v: Tensor, keys: Tensor | None) -> Tensor:
        return mechanism.attend(q, k, v, replace(mask, keys=keys), extra=extra)

    compiled = torch.compile(attend, backend="eager", fullgraph=True)
    output, expected = compiled(*qkv, mask.keys), attend(*qkv, mask.keys)
    require_close(output, expected, "`attend` gives a different output under `torch.compile`")
    grad_output = torch.randn_like(output)
    for gradient, expected_gradient in zip(
        compute_gradients(output, qkv, grad_output),
        compute_gradients(expected, qkv, grad_output),
        strict=True,
    ):
        require_close(
            gradient,
            expected_gradient,
            "`attend` has different gradients under `torch.compile`",
        )


class ExportableAttention(Module):
    """A mechanism inside a module, with the padding mask as an input, for `torch.export`."""

    def __init__(self, mechanism: Mechanism, mask: Mask, extra: Tensor | None) -> None:
        super().__init__()
        self.mechanism, self.mask, self.extra = mechanism, mask, extra

    def forward(self, q: Tensor, k: Tensor, v: Tensor, keys: Tensor | None) -> Tensor:
        return self.mechanism.attend(q, k, v, replace(self.mask, keys=keys), extra=self.extra)


@contract_rule(kind=EXPORT_MASKS, kernels=("compiled", "plain"))
def torch_export_gives_the_same_output(entry: type[Mechanism], kind: str, kernels: str) -> None:
    """`torch.export`, with native kernels enabled and disabled."""
    mechanism, mask = entry.example(), make_mask(kind, K, K)
    q, k, v = (tensor.detach() for tensor in random_qkv(K, K))
    extra = make_extra(mechanism, q, k)
    extra = extra.detach() if extra is not None else None
    inputs = (q, k, v, mask.keys)
    with no_kernels() if kernels == "plain" else nullcontext():
        program = torch.export.export(
            ExportableAttention(mechanism, mask, extra), inputs, strict=True
        )
        output, expected = program.module()(*inputs), mechanism.attend(q, k, v, mask, extra=extra)
    require_close(output, expected, "`attend` gives a different output after `torch.export`")


@contract_rule(kind=EXPORT_MASKS, length=(K, LONG_LENGTH))
def per_sample_gradients_are_those_of_single_examples(
    entry: type[Mechanism], kind: str, length: int
) -> None:
    """`torch.func.vmap(grad(…))` over a batch equals one backward pass per example."""
    mechanism, mask = entry.example(), make_mask(kind, length, length)
    qkv = tuple(tensor.detach().float() for tensor in random_qkv(length, length))
    extra = make_extra(mechanism, qkv[0][:1], qkv[1][:1])  # one example's, shared by all
    padding = {} if mask.keys is None else {"keys": mask.keys}

    def compute_loss(qkv: tuple[Tensor, ...], padding: dict[str, Tensor]) -> Tensor:
        q, k, v = (tensor.unsqueeze(0) for tensor in qkv)
        example_mask = replace(mask, keys=padding["keys"].unsqueeze(0) if padding else None)
        return mechanism.attend(q, k, v, example_mask, extra=extra).square().sum()

    with warnings.catch_warnings():
        # torch loops over the examples where an operator, such as fused attention, has no
        # batching rule.
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        gradients = torch.func.vmap(torch.func.grad(compute_loss))(qkv, padding)
    for example in range(B):
        leaves = tuple(tensor[example].clone().requires_grad_() for tensor in qkv)
        loss = compute_loss(leaves, {name: tensor[example] for name, tensor in padding.items()})
        expected = compute_gradients(loss, leaves, torch.ones_like(loss))
        for gradient, expected_gradient in zip(gradients, expected, strict=True):
            require_close(
                gradient[example],
                expected_gradient,
                "`torch.func.grad` gives different gradients",
                rtol=1e-4,
                atol=1e-5,
            )


def wrap_in_layer(mechanism: Mechanism) -> tuple[MultiHeadAttention, Sizes]:
    """A layer with the mechanism inside, and its input shape."""
    return MultiHeadAttention(num_heads=2, key_dim=3, attention=mechanism), (7, 5)


@contract_rule()
def example_extra_matches_the_learned_module(entry: type[Mechanism]) -> None:
    """`example_extra` replaces the learned module when a mechanism is tested without a layer."""
    layer, shape = wrap_in_layer(entry.example())
    q = torch.randn(B, 2, 7, 3)
    learned, example = layer.attention.build_learned(5, 2, 3), layer.attention.example_extra(q, q)
    require(
        (learned is None) == (example is None),
        "`build_learned` and `example_extra` must both return None, or neither",
    )
    if learned is not None:
        extra = learned(make_batch(layer, shape))
        require(
            extra.shape == example.shape,
            f"the learned module returns the shape {format_shape_of(extra)}, "
            f"`example_extra` {format_shape_of(example)}",
        )


@contract_rule()
def parameters_in_a_layer_are_counted_and_trained(entry: type[Mechanism]) -> None:
    """`learned_cost` counts the parameters of the learned module, and all of them get gradients."""
    layer, shape = wrap_in_layer(entry.example())
    torch.manual_seed(0)
    module = layer.build(shape)
    assert_parameter_count(module, layer, shape)
    if module.learned is not None:
        assert_gradients(module.learned, module(make_batch(layer, shape)))
