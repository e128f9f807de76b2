"""Token decoders, which compute the logits of the next token, and the sampler that draws from them.

    decoder = CachedDecoder(model, resolve_context(model, None))
    ids = Sampler(len(prompt), temperature=0.8).sample(decoder.start(prompt).numpy())
    logits = decoder.step(torch.from_numpy(ids))

The window is the part of the text that the network reads: at most `context` tokens. A batch has
several samples, texts that are generated at the same time. Axes: B samples, T tokens, V vocabulary,
H heads, K keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.errors import NeuralError
from neural.language.layer import Layer
from neural.language.network import Network
from neural.native.library import NativeFunction, native_available
from neural.nn.attention.causal import Causal
from neural.nn.build import NetworkModule, SequentialNetwork, accepts_any_length
from neural.nn.kv_cache import CachedModel, copy_sharing_weights
from neural.nn.layers.residual import Residual
from neural.nn.lazy_torch import torch
from neural.nn.mechanism import Mechanism
from neural.nn.positions.learned import Learned

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

MAX_KERNEL_VOCAB_SIZE = 4096
"""Largest vocabulary that `Sampler` draws from with the native kernel; numpy is faster for more."""
DEFAULT_CONTEXT = 1024
"""Tokens in the window of a network that declares no input length."""

_sample_tokens = NativeFunction("sample_tokens", "p iii p i ppp")


class DecodingError(NeuralError, ValueError):
    """The network does not predict a next token, or not with this decoder."""


class TokenDecoder(ABC):
    """Base class of decoders: reads tokens and returns the logits of the next one."""

    def __init__(self, model: NetworkModule, context: int) -> None:
        self.model, self.context = model, context
        self.length = 0
        """Tokens in the window."""
        # With a cross-entropy loss, the model returns logits, and `output_activation` is the
        # softmax applied to them later. Without such a loss, the last layer applies its softmax
        # itself, and `output_activation` is "linear".
        last_layer = model.network.layers[-1].layer
        self._outputs_probabilities = (
            model.network.output_activation == "linear"
            and getattr(last_layer, "activation", "") == "softmax"
        )

    def start(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """Read a new text from position 0; returns the logits of the next token."""
        if not 0 < ids.shape[1] <= self.context:
            raise ValueError(f"a prompt must have 1 to {self.context} tokens, got {ids.shape[1]}")
        self.length = ids.shape[1]
        with torch.inference_mode():
            return self._to_logits(self.prefill(ids))

    def step(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """Read one more token; returns the logits of the next one."""
        self.length += 1
        with torch.inference_mode():
            return self._to_logits(self.decode_next(ids))

    @abstractmethod
    def prefill(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """Output of the network at the last position of a text: logits or probabilities."""

    @abstractmethod
    def decode_next(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """Output of the network after one more token per sample: logits or probabilities."""

    def attention_weights(self) -> dict[str, Float[Tensor, "B H K"]]:
        """Attention weights of the newest position, by module path; the last key is the newest."""
        raise DecodingError("attention weights need the cached decoder")

    def _to_logits(self, outputs: Tensor) -> Tensor:
        """Outputs of the network as logits: the logarithm if they are probabilities."""
        return (
            outputs.clamp(min=torch.finfo(outputs.dtype).tiny).log()
            if self._outputs_probabilities
            else outputs
        )


class RecomputedDecoder(TokenDecoder):
    """Runs the network on the whole window for every token: slow, but for any network."""

    def __init__(self, model: NetworkModule, context: int) -> None:
        super().__init__(model, context)
        self.model_copy = copy_sharing_weights(model).eval()

    def prefill(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """One forward pass."""
        self.ids = ids
        return self.model_copy.logits(ids)[:, -1]

    def decode_next(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """One forward pass over the whole window."""
        return self.prefill(torch.cat((self.ids, ids.unsqueeze(-1)), dim=-1))


class CachedDecoder(TokenDecoder):
    """Reads each token once, with a key/value cache."""

    def __init__(
        self, model: NetworkModule, context: int, *, capture_weights: bool = False
    ) -> None:
        """With `capture_weights`, `attention_weights` returns the weights of the newest token."""
        super().__init__(model, context)
        obstacle = find_cache_obstacle(model.network)
        if obstacle:
            raise DecodingError(f"{model.network.name} cannot be decoded with a cache: {obstacle}")
        self.cached_model = CachedModel(model, context)
        for mechanism in self.cached_model.attentions.values():
            mechanism.capture_weights = capture_weights

    def prefill(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """One pass over the text, which fills the cache."""
        self.cached_model.reset()
        return self.cached_model.forward(ids)[:, -1]

    def decode_next(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """One pass over one position."""
        return self.cached_model.forward(ids.unsqueeze(-1))[:, -1]

    def attention_weights(self) -> dict[str, Float[Tensor, "B H K"]]:
        """The captured weights; empty without `capture_weights`."""
        return {
            path: mechanism.last_weights
            for path, mechanism in self.cached_model.attentions.items()
            if mechanism.last_weights is not None
        }


def resolve_context(model: NetworkModule, context: int | None) -> int:
    """The largest number of tokens in the window: `context`, or a default if it is None.

    Raises DecodingError if the network predicts no next token or does not allow the context.
    """
    network = model.network
    if (
        not isinstance(model, SequentialNetwork)
        or not network.takes_token_ids
        or len(network.output) != 2
    ):
        raise DecodingError(
            f"{network.name} does not generate text: that takes token ids, `input: (length,)` and "
            "`Embedding(…)`, decoder blocks, and an `Output` at every position"
        )
    declared = network.input[0]
    if not accepts_any_length(network, stream="source"):
        raise DecodingError(
            f"{network.name} cannot generate text: it only takes sequences of length {declared}"
        )
    max_context = min(
        (
            len(getattr(model, placed_layer.name).table)
            for placed_layer in network.layers
            if isinstance(getattr(placed_layer.layer, "encoding_type", None), Learned)
        ),
        default=None,
    )
    if context is None:
        default = declared if isinstance(declared, int) else DEFAULT_CONTEXT
        return default if max_context is None else min(default, max_context)
    if context < 2 or (max_context is not None and context > max_context):
        limit = (
            "at least 2"
            if context < 2
            else f"at most {max_context}, the number of its learned positions"
        )
        raise DecodingError(f"the context of {network.name} must be {limit}, got {context}")
    return context


def find_cache_obstacle(network: Network) -> str | None:
    """Why a network cannot be decoded with a cache, as a message; None if it can.

    The cache has only keys and values of attention. So no other layer may combine positions. A
    layer that adds positions to its input must know how many tokens are in the cache: `CachedModel`
    tells it, but only to a layer that is outside `Residual` and has one copy.
    """
    for placed_layer in network.layers:
        layer = placed_layer.layer
        if not _is_cacheable(layer):
            return f"`{type(layer).__name__}` uses other positions without attention"
        is_repeated = layer.role == "positions" and placed_layer.copies > 1
        if is_repeated or _contains_positions(layer):
            return "a positional encoding is repeated or inside `Residual`"
    return None


def _is_cacheable(layer: Layer) -> bool:
    """Whether a layer combines positions by causal attention only, or not at all."""
    if isinstance(layer, Residual):
        return all(_is_cacheable(inner) for inner in layer.layers)
    mechanism = getattr(layer, "attention", None)
    if isinstance(mechanism, Mechanism):
        return layer.role == "decoder" or isinstance(mechanism, Causal)
    return layer.pointwise or layer.role == "output"


def _contains_positions(layer: Layer) -> bool:
    """Whether a layer that adds a positional encoding is inside this layer, a `Residual`."""
    return isinstance(layer, Residual) and any(
        inner.role == "positions" or _contains_positions(inner) for inner in layer.layers
    )


class Sampler:
    """Draws one token id per sample from its logits; each sample has its own random stream.

    The stream depends on (seed, sample number) only and gives one random number per token. So a
    sample is the same alone and in a batch if its logits are. A native kernel draws from small
    vocabularies, without `top_p`; otherwise numpy, which is faster than torch for such short rows.
    """

    def __init__(
        self,
        num_samples: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        first_sample_index: int = 0,
        vocab_size: int | None = None,
    ) -> None:
        """`temperature` divides the logits; 0 selects the most probable id.

        `top_k` keeps the k most probable ids, `top_p` the smallest set of ids with at least that
        total probability. `first_sample_index` is the number of the first sample; a sample's
        number selects its random stream. With `vocab_size`, only ids below it are drawn.
        """
        if not 0 <= temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or more, got {temperature}")
        if top_k is not None and top_k < 1:
            raise ValueError(f"top-k must be 1 or more, got {top_k}")
        if top_p is not None and not 0 < top_p <= 1:
            raise ValueError(f"top-p must be above 0 and at most 1, got {top_p}")
        self.temperature, self.top_k, self.top_p, self.vocab_size = (
            temperature,
            top_k,
            top_p,
            vocab_size,
        )
        seed_sequences = [
            np.random.SeedSequence(entropy=seed, spawn_key=(first_sample_index + sample,))
            for sample in range(num_samples)
        ]
        self.generators = [
            np.random.Generator(np.random.Philox(sequence)) for sequence in seed_sequences
        ]
        self._uniform, self._ids = np.empty(num_samples), np.empty(num_samples, np.int64)
        self._parameters = np.empty(2 * MAX_KERNEL_VOCAB_SIZE + 1)
        """Temperature, then the workspace of the kernel."""
        self._parameters[0] = temperature
        # `ctypes.data` takes longer than drawing an id
        self._addresses = [
            array.ctypes.data for array in (self._parameters, self._uniform, self._ids)
        ]

    def sample(self, logits: Any) -> np.ndarray:
        """A token id for every row of `logits` (samples, ids)."""
        logits = logits[:, : self.vocab_size]
        if self._kernel_supports(logits):
            ids = self._sample_with_kernel(logits)
            is_finite = min(ids.tolist(), default=0) >= 0
        else:
            is_finite = np.isfinite(logits).all()
            ids = self._sample_with_numpy(logits) if is_finite else logits
        if not is_finite:
            raise ValueError("the network outputs logits that are not finite: check its weights")
        return ids

    def _kernel_supports(self, logits: np.ndarray) -> bool:
        """Whether the kernel can draw from these logits."""
        return (
            self.temperature > 0
            and (self.top_p is None or self.top_p == 1)
            and 0 < logits.shape[1] <= MAX_KERNEL_VOCAB_SIZE
            and len(logits) == len(self.generators)
            and logits.dtype == np.float32
            and logits.strides[1] == logits.itemsize
            and logits.strides[0] % logits.itemsize == 0
            and native_available()
        )

    def _sample_with_kernel(self, logits: np.ndarray) -> np.ndarray:
        """`sample` by the native kernel; an id is −1 if a logit of the row is not finite."""
        for sample, generator in enumerate(self.generators):
            self._uniform[sample] = generator.random()
        samples, vocab_size = logits.shape
        parameters_address, uniform_address, ids_address = self._addresses
        _sample_tokens(
            logits.ctypes.data,
            samples,
            logits.strides[0] // logits.itemsize,
            vocab_size,
            parameters_address,
            self.top_k or vocab_size,
            uniform_address,
            parameters_address + self._parameters.itemsize,
            ids_address,
        )
        return self._ids.copy()

    def _sample_with_numpy(self, logits: np.ndarray) -> np.ndarray:
        """`sample` of finite logits in numpy."""
        if self.temperature == 0:
            return logits.argmax(axis=-1)
        # Inverse transform sampling: the first id whose cumulative probability exceeds a uniform
        # number. `nextafter` keeps the number below the total if rounding made them equal.
        cumulative = self.unnormalized_probabilities(logits).cumsum(axis=-1)
        total = cumulative[:, -1:]
        uniform = np.array([[generator.random()] for generator in self.generators]) * total
        return (cumulative <= np.minimum(uniform, np.nextafter(total, 0))).sum(axis=-1)

    def unnormalized_probabilities(self, logits: Any) -> np.ndarray:
        """Probabilities of all ids up to a factor per row; 0 outside `top_k` and `top_p`."""
        scaled = logits.astype(np.float64) / self.temperature
        probabilities = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
        if self.top_k is not None and self.top_k < probabilities.shape[-1]:
            threshold = np.partition(probabilities, -self.top_k, axis=-1)[:, -self.top_k, None]
            probabilities[probabilities < threshold] = 0
        if self.top_p is not None and self.top_p < 1:
            order = np.argsort(-probabilities, axis=-1, kind="stable")
            descending = np.take_along_axis(probabilities, order, axis=-1)
            # Total of the ids that are more probable: an id stays while this is below top_p.
            preceding_total = descending.cumsum(axis=-1) - descending
            total = probabilities.sum(axis=-1, keepdims=True)
            descending[preceding_total >= self.top_p * total] = 0
            np.put_along_axis(probabilities, order, descending, axis=-1)
        return probabilities
