"""Attention in Keras' words: its multi-head attention is a softmax over what a mask allows, and so are some of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neural.core.names import snake
from neural.modules.attention.causal import Causal
from neural.modules.attention.localized import Localized
from neural.modules.attention.self import Self
from neural.modules.position import InsideAttention

if TYPE_CHECKING:
    from neural.exports._keras_words import Words
    from neural.modules.heads import Heads


def no_words_for(heads: Heads) -> list[str]:
    """What Keras has no words for in an attention of ours."""
    found = []
    if not isinstance(heads.mechanism, Self | Causal | Localized):
        found.append(f'attention="{snake(type(heads.mechanism).__name__)}"; it takes self, causal, cross and localized')
    if heads.position is not None and [*heads.position.parameters(), *_acting(heads.position)]:
        name = snake(type(heads.position).__name__.removesuffix("Positions"))
        found.append(f'positional="{name}", which works inside attention')
    if heads.qk_norm:
        found.append("qk_norm")
    return found


def _acting(position: InsideAttention) -> list[str]:
    """The methods by which a position does something."""
    return [name for name in ("rotate", "bias", "key_bias") if name in _defined(position)]


def _defined(position: InsideAttention) -> set[str]:
    classes = [one for one in type(position).__mro__ if issubclass(one, InsideAttention) and one is not InsideAttention]
    return {name for one in classes for name in vars(one)}


def attention_words(
    words: Words, x: Any, heads: Heads, name: str, *, mask: Any = None, memory: Any = None
) -> Any:
    """Keras' attention with our projections, which it keeps as (width, heads, head width)."""
    source = x if memory is None else memory
    inner, width = heads.query.out_features, heads.head_width
    count, shared = inner // width, inner // width // heads.groups
    rules = []
    if mask is not None:
        rules.append(words.ops.expand_dims(mask, 1))
    if isinstance(heads.mechanism, Localized):
        at, key = words.ops.expand_dims(words.places(x), 2), words.ops.expand_dims(words.places(source), 1)
        rules.append(words.ops.abs(key - at) <= heads.mechanism.window // 2)
    allowed = rules[0] if rules else None
    for rule in rules[1:]:
        allowed = words.ops.logical_and(allowed, rule)
    call = {"value": source, "key": source, "use_causal_mask": heads.causal or isinstance(heads.mechanism, Causal)}
    if allowed is not None:
        call["attention_mask"] = allowed
    weights = []
    for one, many in ((heads.query, count), (heads.key, shared), (heads.value, shared)):
        weights.append(one.weight.T.reshape(-1, many, width))
        weights += [] if one.bias is None else [one.bias.reshape(many, width)]
    weights.append(heads.output.weight.T.reshape(count, width, -1))
    weights += [] if heads.output.bias is None else [heads.output.bias]
    said = {"use_bias": heads.query.bias is not None, "dropout": heads.dropout, "call": call}
    if heads.groups > 1:
        return words.put("GroupQueryAttention", f"{name}_heads", x, weights, width, count, shared, **said)
    return words.put("MultiHeadAttention", f"{name}_heads", x, weights, count, width, **said)
