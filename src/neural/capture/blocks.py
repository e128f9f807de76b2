"""Transformer blocks of a model, and interventions on their MLPs and on the residual stream.

    blocks = find_blocks(model)                 path, attention, output projection, MLP of each
    streams = record_residual(model, ids)       streams[l] enters block l; streams[-1] leaves the last
    with intervene(model, zero_mlp(1), skip_layer(2), patch_residual(3, streams[3], positions=[5])):
        model(ids)

A block adds the outputs of attention and of an MLP to the residual stream, (B, T, E). Blocks are the
elements of a `ModuleList` or `Sequential` that each contain attention. The layer of these
interventions is the index of a block. In a model with one attention per block, it is also the layer
of the heads; in an encoder-decoder model it is not, because its decoder blocks have two.

The MLP is the module whose output the block adds to the stream: `mlp`, `ffn` or `feed_forward`, or
the last linear map if a block has none (`fc2`, `linear2`, BERT's `output.dense`). An MLP that
contains a norm may contain the addition, too, so it is refused.

Axes: B examples, T positions, E width of the stream.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neural.capture.intervene import intervene
from neural.capture.interventions import (
    Intervention,
    InterventionError,
    build_row_mask,
    to_index,
    widen,
)
from neural.capture.recorder import (
    NON_ATTENTION_NAME,
    WRAPPER_PREFIXES,
    is_attention,
    strip_wrappers,
)
from neural.capture.threads import in_this_thread
from neural.capture.watch import run_model
from neural.nn.build import NetworkModule
from neural.nn.lazy_torch import nn, torch
from neural.nn.multi_head_attention import MultiHeadAttentionModule

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.capture.interventions import Rows

    Layer = int | str

SUPPORTED = (
    "Supported are networks of `neural` with TransformerEncoder or TransformerDecoder blocks, and "
    "models whose blocks are the elements of a ModuleList or Sequential that each contain attention: "
    "GPT-2, Llama, Qwen, Mistral, Gemma, GPT-NeoX, OPT, BERT, T5 and most others of transformers"
)
MLP_NAMES = ("mlp", "ffn", "feed_forward", "ff", "mlp_block", "block_sparse_moe", "moe")
"""Attributes of blocks that are an MLP or a mixture of experts."""
LAST_LINEAR_NAMES = (("fc1", "fc2"), ("linear1", "linear2"), ("ffn", "ffn_output"))
"""First and last linear map of an MLP that is no module of its own."""
INNER_MLP_NAMES = ("sublayer", "DenseReluDense", "mlp")
"""The MLP inside a module that also has the norm and the residual addition (`neural`, T5)."""
PROJECTION_NAMES = (
    "o_proj",
    "out_proj",
    "c_proj",
    "dense",
    "o",
    "out",
    "wo",
    "Wo",
    "to_out",
    "out_lin",
    "proj",
)
"""Attributes of attention modules that are the output projection."""
BLOCK_CLASS = re.compile(r"(Block|Layer)$")
"""Classes of blocks that are not in a list."""
STREAM_NAMES = ("hidden_states", "hidden_state", "x", "src", "tgt", "inputs")
"""Names under which the residual stream is passed to a block as a keyword argument."""
RESIDUAL_ARGUMENT = "residual"
"""Argument of MLPs that add the stream themselves (BLOOM, MPT): their last linear map is changed."""
OTHER_AXES = ("XLNetLayer", "SqueezeBertModule", "ProphetNetDecoderLayer")
"""Blocks whose stream has three axes that are not (examples, positions, width)."""
LAYER_NAME = re.compile(r"^L(\d+)$", re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """One transformer block."""

    path: str
    module: nn.Module
    attention: list[nn.Module]
    """Attention modules: self-attention first, then cross-attention."""
    output_projections: list[nn.Module | None]
    """Output projection of each attention module; None if it is not known."""
    mlp: nn.Module | None
    """Module whose output the block adds to the stream; None if it is not known."""

    @property
    def output_projection(self) -> nn.Module | None:
        """Output projection of the first attention module."""
        return self.output_projections[0] if self.output_projections else None


def find_blocks(model: nn.Module) -> list[Block]:
    """The transformer blocks of a model, in the order of its modules; empty if there are none.

        for block in neural.interventions.find_blocks(model):
            print(block.path, block.mlp)

    `mlp` is the module whose output the block adds to the residual stream; None if it is not known.
    """
    blocks: list[Block] = []
    for path, module in _find_block_modules(model):
        attention = _find_attention(module)
        blocks.append(
            Block(
                strip_wrappers(path),
                module,
                [attention_module for _, attention_module in attention],
                [_find_output_projection(module, inner_path) for inner_path, _ in attention],
                _find_mlp(module),
            )
        )
    return blocks


def _find_block_modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Paths and modules of the blocks, without the wrappers of compiled or checkpointed blocks."""
    networks = [module for module in model.modules() if isinstance(module, NetworkModule)]
    own_blocks = {id(unwrap(block)) for network in networks for block in network.blocks()}
    if own_blocks:
        named_modules = model.named_modules()
        return [(path, module) for path, module in named_modules if id(module) in own_blocks]
    complete, partial = [], []
    for path, module in model.named_modules():
        if not isinstance(module, nn.ModuleList | nn.Sequential) or not len(module):
            continue
        contains_attention = [
            child is not None and bool(_find_attention(child)) for child in module
        ]
        if all(contains_attention):
            complete.append(path)
        elif any(contains_attention) and isinstance(module, nn.ModuleList):
            partial.append(path)
    # The innermost list: stages of a vision model contain lists of blocks. A hybrid of attention
    # and recurrence has a list of which some elements contain attention.
    innermost = [
        path for path in complete if not any(other.startswith(f"{path}.") for other in complete)
    ]
    paths = innermost or partial[:1]
    if paths:
        return [
            (f"{path}.{name}", unwrap(child))
            for path in paths
            for name, child in model.get_submodule(path).named_children()
        ]
    singles = [
        (path, module)
        for path, module in model.named_modules()
        if path and BLOCK_CLASS.search(type(module).__name__) and _find_attention(module)
    ]
    return [
        (path, module)
        for path, module in singles
        if not any(path.startswith(f"{other}.") for other, _ in singles)
    ]


def unwrap(module: nn.Module) -> nn.Module:
    """The module inside the wrappers of `torch.compile` and of activation checkpointing."""
    for prefix in WRAPPER_PREFIXES * 2:
        module = getattr(module, prefix.rstrip("."), module)
    return module


def _find_attention(block: nn.Module) -> list[tuple[str, nn.Module]]:
    """Paths and modules of the attention strictly inside a block, the innermost of nested ones.

    A module called attention that has one matrix or none is a norm, a projection or dropout.
    """
    named = [
        (path, module)
        for path, module in block.named_modules()
        if path and _is_attention_module(path.rpartition(".")[2], module)
    ]
    return [
        (path, module)
        for path, module in named
        if not any(other.startswith(f"{path}.") for other, _ in named)
    ]


def _is_attention_module(name: str, module: nn.Module) -> bool:
    if isinstance(module, MultiHeadAttentionModule | nn.MultiheadAttention):
        return True
    if not is_attention(name, module) or NON_ATTENTION_NAME.search(name):
        return False
    return sum(param.ndim > 1 for param in module.parameters()) > 1


def _find_output_projection(block: nn.Module, attention_path: str) -> nn.Module | None:
    attention = block.get_submodule(attention_path)
    if isinstance(attention, MultiHeadAttentionModule):
        return attention.output
    for name in PROJECTION_NAMES:
        projection = getattr(attention, name, None)
        if isinstance(projection, nn.Module) and _is_linear(projection):
            return projection
    # BERT has the projection beside the attention: attention.self, attention.output.dense
    parent = block.get_submodule(attention_path.rpartition(".")[0])
    projection = getattr(getattr(parent, "output", None), "dense", None)
    is_beside = parent is not block and isinstance(projection, nn.Module)
    return projection if is_beside and _is_linear(projection) else None


def _is_linear(module: nn.Module) -> bool:
    """Whether it is one linear map: `nn.Linear`, or `Conv1D` of transformers."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, torch.Tensor) and weight.ndim == 2 and not list(module.children())


def _find_mlp(block: nn.Module) -> nn.Module | None:
    """The module whose output the block adds to the stream."""
    for first, last in LAST_LINEAR_NAMES:
        linears = [getattr(block, name, None) for name in (first, last)]
        if all(isinstance(linear, nn.Module) and _is_linear(linear) for linear in linears):
            return linears[1]
    intermediate, output = (getattr(block, name, None) for name in ("intermediate", "output"))
    dense = getattr(output, "dense", None)
    if isinstance(intermediate, nn.Module) and isinstance(dense, nn.Module) and _is_linear(dense):
        # the module's own feed-forward modules before these (MobileBERT) would not be covered
        return None if getattr(block, "ffn", None) is not None else dense
    sublayers = getattr(block, "layer", None)
    candidates = [getattr(block, name, None) for name in MLP_NAMES]
    candidates += [sublayers[-1]] if isinstance(sublayers, nn.ModuleList) else []  # T5
    for candidate in candidates:
        if not isinstance(candidate, nn.Module) or isinstance(candidate, nn.ModuleList):
            continue
        inner = [getattr(candidate, name, None) for name in INNER_MLP_NAMES]
        for module in (candidate, *inner):
            if isinstance(module, nn.Module) and _is_mlp(module):
                return _find_last_linear(module) if _adds_residual(module) else module
    return None


def _is_mlp(module: nn.Module) -> bool:
    """Whether it has several matrices, and neither a norm nor attention."""
    names = [
        f"{path} {type(part).__name__}".lower() for path, part in module.named_modules() if path
    ]
    has_other_parts = any("norm" in name or "attention" in name or "attn" in name for name in names)
    return sum(param.ndim > 1 for param in module.parameters()) > 1 and not has_other_parts


def _adds_residual(mlp: nn.Module) -> bool:
    return RESIDUAL_ARGUMENT in inspect.signature(mlp.forward).parameters


def _find_last_linear(mlp: nn.Module) -> nn.Module | None:
    linears = [module for module in mlp.modules() if _is_linear(module)]
    return linears[-1] if linears else None


# interventions


class BlockIntervention(Intervention):
    """A change of one block, in some examples and at some positions.

    `layer`: index of the block, also as `L2`, or its path. `examples` and `positions`: indices or a
    boolean mask of the batch and of the sequence; all if None.
    """

    def __init__(self, layer: Layer, *, examples: Rows = None, positions: Rows = None) -> None:
        self.layer, self.examples, self.positions = layer, examples, positions
        self._has_run = self._has_other_axes = False

    def __repr__(self) -> str:
        return f"{type(self).__name__.strip('_')}({self.layer!r})"

    @contextmanager
    def attach(self, model: nn.Module) -> Iterator[None]:
        """Hooks of this intervention are on the model inside the block."""
        self._has_run = False
        handles: list[Any] = []
        try:
            blocks = find_blocks(model)
            _refuse_repeated_blocks(model, blocks, handles)
            self.register(blocks, handles)
            yield
        finally:
            for handle in handles:
                handle.remove()

    def register(self, blocks: list[Block], handles: list[Any]) -> None:
        """Add hooks to modules of the block, and their handles to `handles`."""
        raise NotImplementedError

    def describe_unmatched(self, layers: Sequence[str]) -> str | None:
        """Say that the block did not run."""
        return None if self._has_run else f"block {self.layer} of the model did not run"

    def find_block(self, blocks: list[Block]) -> Block:
        """The block at `layer`; raises InterventionError if there is none."""
        if not blocks:
            raise InterventionError(f"no transformer blocks were found in this model. {SUPPORTED}")
        layer = self.layer
        match = LAYER_NAME.match(layer) if isinstance(layer, str) else None
        index = int(match[1]) if match else layer
        by_path = {block.path: block for block in blocks}
        block = by_path.get(index) if isinstance(index, str) else None
        if isinstance(index, int) and 0 <= index < len(blocks):
            block = blocks[index]
        if block is not None:
            self._has_other_axes = type(block.module).__name__ in OTHER_AXES
            return block
        last = len(blocks) - 1
        raise InterventionError(
            f"there is no block {layer}: the model has {len(blocks)}, L0 to L{last} "
            f"(`{blocks[0].path}` … `{blocks[last].path}`)"
        )

    def replace(
        self, old: Float[Tensor, "B T E"], new: Float[Tensor, "*B *T *E"]
    ) -> Float[Tensor, "B T E"]:
        """`new` in the selected examples and positions, `old` elsewhere."""
        self._has_run = True
        try:
            # a copy, because the model may change its tensors in place
            new = new.to(old).expand(old.shape).clone()
        except RuntimeError:
            raise InterventionError(
                f"values of {tuple(new.shape)} cannot replace those of {tuple(old.shape)} "
                f"(examples, positions, width) in block {self.layer}: both inputs need the same "
                "number of tokens"
            ) from None
        if self.examples is None and self.positions is None:
            return new
        if old.ndim != 3 or self._has_other_axes:
            raise InterventionError(
                f"the stream of block {self.layer}, {tuple(old.shape)}, is not (examples, "
                "positions, width), so `examples` and `positions` are not known: change all of it"
            )
        examples = build_row_mask(self.examples, old.shape[0], "examples", old.device)
        positions = build_row_mask(self.positions, old.shape[1], "positions", old.device)
        return torch.where(examples[:, None, None] & positions[None, :, None], new, old)


def _get_stream(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int | str, Tensor]:
    """The residual stream among the arguments of a block, and its index or name."""
    if args and isinstance(args[0], torch.Tensor):
        return 0, args[0]
    for name in STREAM_NAMES:
        if isinstance(kwargs.get(name), torch.Tensor):
            return name, kwargs[name]
    raise InterventionError(
        f"a block was called without a tensor as first argument, so its stream is not known. "
        f"{SUPPORTED}"
    )


def _get_first(output: Any) -> Tensor:
    """The tensor that a module returns, or the first of a tuple."""
    return output[0] if isinstance(output, tuple | list) else output


def _set_first(output: Any, new: Tensor) -> Any:
    if hasattr(output, "_fields"):
        raise InterventionError(
            f"a block returns several tensors ({', '.join(output._fields)}), so its stream is not "
            f"known. {SUPPORTED}"
        )
    if isinstance(output, tuple | list):
        return type(output)((new, *output[1:]))
    return new


def _refuse_repeated_blocks(model: nn.Module, blocks: list[Block], handles: list[Any]) -> None:
    """Raise InterventionError if a block runs twice in one forward pass of the model.

    That is so with shared weights (ALBERT): then an index of a block does not say which pass.
    """
    finished: set[str] | None = None  # blocks of the present pass; None outside of the model

    def start(*_: Any) -> None:
        nonlocal finished
        finished = set()

    def end(*_: Any) -> None:
        nonlocal finished
        finished = None

    def note(path: str) -> Callable[..., None]:
        def check(*_: Any) -> None:
            if finished is None:
                return
            if path in finished:
                raise InterventionError(
                    f"`{path}` runs several times in one forward pass, so the index of a block "
                    "does not say which run; heads are counted by run, L0, L1, …"
                )
            finished.add(path)

        return in_this_thread(check)

    handles += [block.module.register_forward_pre_hook(note(block.path)) for block in blocks]
    # after the blocks, one of which may be the model itself
    handles.append(model.register_forward_pre_hook(in_this_thread(start), prepend=True))
    handles.append(model.register_forward_hook(in_this_thread(end), always_call=True))


def _add_stream_hook(
    block: Block,
    handles: list[Any],
    change: Callable[[Float[Tensor, "B T E"]], Float[Tensor, "B T E"]],
    *,
    at_output: bool,
) -> None:
    """Replace the stream that enters or leaves a block by `change(stream)`."""

    def change_input(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        key, stream = _get_stream(args, kwargs)
        new = change(stream)
        if isinstance(key, str):
            return args, {**kwargs, key: new}
        return (new, *args[1:]), kwargs

    def change_output(_: Any, __: Any, output: Any) -> Any:
        return _set_first(output, change(_get_first(output)))

    if at_output:
        handles.append(block.module.register_forward_hook(in_this_thread(change_output)))
    else:
        hook = in_this_thread(change_input)
        handles.append(block.module.register_forward_pre_hook(hook, with_kwargs=True))


def _add_mlp_hook(
    block: Block,
    handles: list[Any],
    change: Callable[[Float[Tensor, "B T E"]], Float[Tensor, "B T E"]],
) -> None:
    """Replace the output of the MLP by `change(output)`."""
    if block.mlp is None:
        raise InterventionError(
            f"the MLP of `{block.path}` ({type(block.module).__name__}) is not known: it has no "
            f"{', '.join(f'`{name}`' for name in MLP_NAMES[:3])} without a norm inside. {SUPPORTED}"
        )
    shape: list[int] = []

    def note_shape(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        shape[:] = _get_stream(args, kwargs)[1].shape

    def change_output(_: Any, __: Any, output: Any) -> Any:
        tensor = _get_first(output)
        # OPT calls its MLP with examples and positions in one axis
        is_flat = tensor.ndim == 2 and len(shape) == 3
        new = change(tensor.unflatten(0, shape[:2]) if is_flat else tensor)
        return _set_first(output, new.flatten(0, 1) if is_flat else new)

    hook = in_this_thread(note_shape)
    handles.append(block.module.register_forward_pre_hook(hook, with_kwargs=True))
    handles.append(block.mlp.register_forward_hook(in_this_thread(change_output)))


class MlpIntervention(BlockIntervention):
    """Replaces the output of the MLP of a block."""

    def register(self, blocks: list[Block], handles: list[Any]) -> None:
        """Add a hook to the MLP."""
        block = self.find_block(blocks)
        _add_mlp_hook(block, handles, lambda old: self.replace(old, self.compute(old)))

    def compute(self, output: Float[Tensor, "B T E"]) -> Float[Tensor, "*B *T *E"]:
        """The new output."""
        raise NotImplementedError


class _ZeroMlp(MlpIntervention):
    def compute(self, output: Tensor) -> Tensor:
        return output.new_zeros(())


class _ReplaceMlpByMean(MlpIntervention):
    def __init__(
        self, layer: Layer, reference: BlockOutputs, *, per_position: bool, **rows: Rows
    ) -> None:
        super().__init__(layer, **rows)
        self.reference, self.per_position = reference, per_position
        self._mean: Tensor | None = None

    def register(self, blocks: list[Block], handles: list[Any]) -> None:
        index = blocks.index(self.find_block(blocks))
        values, real = widen(self.reference.get_layer(index)), self.reference.real
        if real is None:
            self._mean = values.mean(dim=0 if self.per_position else (0, 1))
        else:
            weights = real.to(values)[..., None]
            dims = (0,) if self.per_position else (0, 1)
            self._mean = (values * weights).sum(dim=dims) / weights.sum(dim=dims).clamp(min=1)
        super().register(blocks, handles)

    def compute(self, output: Tensor) -> Tensor:
        assert self._mean is not None  # `register` has run
        return self._mean


class _PatchMlp(MlpIntervention):
    def __init__(
        self,
        layer: Layer,
        source: BlockOutputs | Tensor,
        *,
        source_rows: Sequence[int] | Tensor | None = None,
        **rows: Rows,
    ) -> None:
        super().__init__(layer, **rows)
        self.source, self.source_rows = source, source_rows
        self._values: Tensor | None = None

    def register(self, blocks: list[Block], handles: list[Any]) -> None:
        index = blocks.index(self.find_block(blocks))
        self._values = _take_rows(self.source, index, self.source_rows)
        super().register(blocks, handles)

    def compute(self, output: Tensor) -> Tensor:
        assert self._values is not None  # `register` has run
        return self._values


class _SkipLayer(BlockIntervention):
    def register(self, blocks: list[Block], handles: list[Any]) -> None:
        block = self.find_block(blocks)

        # The block runs although its result is not used: a cache expects the keys of every layer,
        # and the state of the random number generator stays that of a full pass.
        def replace_output(
            _: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
        ) -> Any:
            stream, old = _get_stream(args, kwargs)[1], _get_first(output)
            if stream.shape != old.shape:
                raise InterventionError(
                    f"`{block.path}` cannot be skipped: it turns {tuple(stream.shape)} into "
                    f"{tuple(old.shape)}"
                )
            return _set_first(output, self.replace(old, stream))

        hook = in_this_thread(replace_output)
        handles.append(block.module.register_forward_hook(hook, with_kwargs=True))


class _PatchResidual(BlockIntervention):
    def __init__(
        self,
        layer: Layer,
        source: BlockOutputs | Tensor,
        *,
        source_rows: Sequence[int] | Tensor | None = None,
        **rows: Rows,
    ) -> None:
        super().__init__(layer, **rows)
        self.source, self.source_rows = source, source_rows

    def register(self, blocks: list[Block], handles: list[Any]) -> None:
        is_end = bool(blocks) and self.layer in (len(blocks), f"L{len(blocks)}")
        block = blocks[-1] if is_end else self.find_block(blocks)
        index = len(blocks) if is_end else blocks.index(block)
        values = _take_rows(self.source, index, self.source_rows)

        def change(stream: Tensor) -> Tensor:
            return self.replace(stream, values)

        _add_stream_hook(block, handles, change, at_output=is_end)


def _take_rows(
    source: BlockOutputs | Tensor, layer: int, rows: Sequence[int] | Tensor | None
) -> Tensor:
    """Values of a layer, with the examples `rows`."""
    values = source.get_layer(layer) if isinstance(source, BlockOutputs) else source
    if not isinstance(values, torch.Tensor):
        raise InterventionError(
            "give a tensor (examples, positions, width), or what `record_residual` or "
            "`record_mlp_outputs` returned"
        )
    if rows is None:
        return values
    count = len(values) if values.ndim == 3 else 0  # else there are no examples to name
    there_are = f"the values are {tuple(values.shape)}"
    index = to_index(rows, count, "`rows` names example", there_are, values.device)
    return values.index_select(0, index)


def zero_mlp(layer: Layer, *, examples: Rows = None, positions: Rows = None) -> BlockIntervention:
    """Set the output of the MLP of a block to zero.

        with neural.intervene(model, neural.interventions.zero_mlp(1)):
            logits = model(ids)

    `examples`, `positions`: indices, a slice or a mask of the batch and of the sequence; all if
    None.
    """
    return _ZeroMlp(layer, examples=examples, positions=positions)


def replace_mlp_by_mean(
    layer: Layer,
    reference: BlockOutputs,
    *,
    per_position: bool = False,
    examples: Rows = None,
    positions: Rows = None,
) -> BlockIntervention:
    """Replace the output of the MLP by its mean over a reference (`record_mlp_outputs`).

        clean = neural.interventions.record_mlp_outputs(model, other_ids)
        with neural.intervene(model, neural.interventions.replace_mlp_by_mean(1, clean)):
            logits = model(ids)

    The mean is over examples and positions that are not padding; with `per_position` over examples
    only, which needs inputs of the reference's length.
    """
    return _ReplaceMlpByMean(
        layer, reference, per_position=per_position, examples=examples, positions=positions
    )


def patch_mlp(
    layer: Layer,
    source: BlockOutputs | Tensor,
    *,
    rows: Sequence[int] | Tensor | None = None,
    examples: Rows = None,
    positions: Rows = None,
) -> BlockIntervention:
    """Replace the output of the MLP by that of another forward pass.

        clean = neural.interventions.record_mlp_outputs(model, other_ids)
        with neural.intervene(model, neural.interventions.patch_mlp(1, clean)):
            logits = model(ids)

    `source`: from `record_mlp_outputs`, or a tensor broadcastable to (B, T, E). `rows`: for each
    example of the batch, the example of the source.
    """
    return _PatchMlp(layer, source, source_rows=rows, examples=examples, positions=positions)


def skip_layer(layer: Layer, *, examples: Rows = None, positions: Rows = None) -> BlockIntervention:
    """Pass the residual stream around a block: its output is its input.

        with neural.intervene(model, neural.interventions.skip_layer(1)):
            logits = model(ids)

    `examples`, `positions`: indices, a slice or a mask of the batch and of the sequence; all if
    None.
    """
    return _SkipLayer(layer, examples=examples, positions=positions)


def patch_residual(
    layer: Layer,
    source: BlockOutputs | Tensor,
    *,
    rows: Sequence[int] | Tensor | None = None,
    examples: Rows = None,
    positions: Rows = None,
) -> BlockIntervention:
    """Replace the residual stream that enters a block.

        clean = neural.interventions.record_residual(model, other_ids)
        with neural.intervene(model, neural.interventions.patch_residual(1, clean, positions=[5])):
            logits = model(ids)

    `layer`: index of the block; the number of blocks names the stream that leaves the last block.
    `source`: from `record_residual`, or a tensor broadcastable to (B, T, E). `rows`: for each
    example of the batch, the example of the source.
    """
    return _PatchResidual(layer, source, source_rows=rows, examples=examples, positions=positions)


# recording


@dataclass
class BlockOutputs(Sequence["Tensor"]):
    """Tensors (B, T, E) by layer: residual streams, or outputs of MLPs."""

    kind: str
    """What they are: "residual stream" or "MLP output"."""
    layers: list[Tensor | None] = field(default_factory=list)
    real: Tensor | None = None
    """(B, T), True for positions that are not padding; None if none is."""

    def __getitem__(self, layer: Any) -> Any:
        return self.get_layer(layer) if isinstance(layer, int) else self.layers[layer]

    def __len__(self) -> int:
        return len(self.layers)

    def get_layer(self, layer: int) -> Tensor:
        """The tensor of a layer; raises InterventionError if it was not recorded."""
        values = self.layers[layer] if -len(self) <= layer < len(self) else None
        if values is None and 0 <= layer < len(self):
            raise InterventionError(f"the {self.kind} of block {layer} was not recorded")
        if values is None:
            raise IndexError(f"there are {len(self)} layers, so none for {layer}")
        return values


def record_residual(
    model: nn.Module, probe: Any, *interventions: Intervention, real: Tensor | None = None
) -> BlockOutputs:
    """The residual stream that enters each block and, as last element, that leaves the last block.

        streams = neural.interventions.record_residual(model, ids)
        streams[1]  # enters block 1: (examples, positions, width)

    `probe` is a batch as for `neural.watch`, run without gradients, inside `interventions`. `real`
    (B, T): True for positions that are not padding. InterventionError if a block runs several times.
    In an encoder-decoder model, the stream that leaves the encoder is not recorded.
    """
    return _record(model, probe, interventions, "residual stream", real)


def record_mlp_outputs(
    model: nn.Module, probe: Any, *interventions: Intervention, real: Tensor | None = None
) -> BlockOutputs:
    """The output of the MLP of each block, as for `record_residual`.

        outputs = neural.interventions.record_mlp_outputs(model, ids)
        outputs[1]  # of block 1: (examples, positions, width)

    Blocks whose MLP is not known are left out; asking for them is an error.
    """
    return _record(model, probe, interventions, "MLP output", real)


def _record(
    model: nn.Module,
    probe: Any,
    interventions: Sequence[Intervention],
    kind: str,
    real: Tensor | None,
) -> BlockOutputs:
    recording = _Recording(kind)
    # the hooks of the recording come last, so that they see the changed values
    with intervene(model, *interventions, recording), torch.no_grad():
        run_model(model, probe)
    return BlockOutputs(kind, recording.layers, real)


class _Recording(Intervention):
    """Changes nothing; keeps the streams or the outputs of MLPs."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.layers: list[Tensor | None] = []

    @contextmanager
    def attach(self, model: nn.Module) -> Iterator[None]:
        blocks, handles = find_blocks(model), []
        if not blocks:
            raise InterventionError(f"no transformer blocks were found in this model. {SUPPORTED}")
        is_stream = self.kind == "residual stream"
        self.layers = [None] * (len(blocks) + is_stream)

        def keep(layer: int) -> Callable[[Tensor], Tensor]:
            def store(values: Tensor) -> Tensor:
                self.layers[layer] = values.detach().clone()
                return values

            return store

        try:
            _refuse_repeated_blocks(model, blocks, handles)
            for layer, block in enumerate(blocks):
                if is_stream:
                    _add_stream_hook(block, handles, keep(layer), at_output=False)
                elif block.mlp is not None:
                    _add_mlp_hook(block, handles, keep(layer))
            if is_stream:
                _add_stream_hook(blocks[-1], handles, keep(len(blocks)), at_output=True)
            yield
        finally:
            for handle in handles:
                handle.remove()
