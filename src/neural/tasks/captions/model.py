"""Small captioning model: LSTM over the previous words, attention over regions, word classifier.

After Xu et al. (2015), "Show, attend and tell", with one change (Deng et al., 2018): the LSTM reads
words only, not the attended regions. So the focus of a word (its attention over the regions) does
not depend on that of earlier words, and the marginal over regions is exact for every word. A
paradigm (tasks/focus/paradigm.py) combines focus and word classifier into one loss; for it, each
word is an example, and each region a segment of the example.

Axes: B captions, T words of a caption, N words of all captions, m regions, d features of a region,
U units of the LSTM, V = 2 U, C words of the vocabulary, R any number of segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.nn.lazy_torch import Module, functional, nn, torch
from neural.tasks.captions.data import END_ID, CaptionSplit
from neural.tasks.focus.model import average_segments

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from neural.tasks.focus.paradigm import Paradigm
    from neural.tasks.focus.segment_batch import SegmentBatch


class RegionAttention(Module):
    """Attention of the next word over regions: scaled dot product of query and keys."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.query = nn.Linear(units, units)
        self.key = nn.Sequential(nn.Linear(units, units), nn.ReLU(), nn.Linear(units, units))

    def score(
        self, regions: Float[Tensor, "N m U"], lstm_output: Float[Tensor, "N U"]
    ) -> Float[Tensor, "N m"]:
        """Attention scores of the regions for one word per row."""
        query, keys = self.query(lstm_output), self.key(regions)
        return torch.einsum("nu,nmu->nm", query, keys) / query.shape[-1] ** 0.5

    def forward(
        self,
        regions: Float[Tensor, "B m U"],
        lstm_output: Float[Tensor, "B T U"],
        word_mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T U"]:
        """Mean of the regions weighted by attention, for every word; zeros for padding.

        Used only to capture the attention weights: neural.capture records those of torch's
        attention function.
        """
        query, keys = self.query(lstm_output).unsqueeze(1), self.key(regions).unsqueeze(1)
        mask = word_mask[:, None, :, None].expand(-1, 1, -1, regions.shape[1])
        return functional.scaled_dot_product_attention(
            query, keys, regions.unsqueeze(1), mask
        ).squeeze(1)


class Captioner(Module):
    """Predicts the next word from regions and previous words.

    Every word is an example of m segments; a segment is a region concatenated with the LSTM output.
    Paradigms use the same attributes and methods as those of `FocusModel` (tasks/focus/model.py):
    `focus`, `schedule_state`, `score`, `classify` …
    """

    schedule_state: Tensor

    def __init__(
        self, features: int, vocabulary_size: int, units: int, *, focus_lr_factor: float = 1.0
    ) -> None:
        """`focus_lr_factor`: learning rate of the attention relative to the rest."""
        super().__init__()
        self.units = units
        self.rate_factors = {"focus.": focus_lr_factor}  # read by the training engine
        self.region_encoder = nn.Sequential(nn.Linear(features, units), nn.ReLU())
        self.scene_encoder = nn.Sequential(nn.Linear(units, units), nn.ReLU())
        self.initial_state_layer = nn.Linear(units, 2 * units)
        self.embedding = nn.Embedding(vocabulary_size, units)
        self.lstm = nn.LSTM(units, units, batch_first=True)
        self.focus = RegionAttention(units)
        # the word classifier: body, then head
        self.body = nn.Sequential(nn.Linear(2 * units, units), nn.ReLU())
        self.head = nn.Linear(units, vocabulary_size)
        # State of a paradigm that switches its loss during training, as in FocusModel.
        self.register_buffer("schedule_state", torch.zeros(4, dtype=torch.int64))
        self.classifier_calls = 0

    def encode_words(
        self, regions: Float[Tensor, "B m U"], previous_words: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T U"]:
        """LSTM outputs at every word; the initial state depends on all regions."""
        return self.step(previous_words, self.initial_state(regions))[0]

    def step(
        self,
        words: Int[Tensor, "B T"],
        state: tuple[Float[Tensor, "1 B U"], Float[Tensor, "1 B U"]],
    ) -> tuple[Float[Tensor, "B T U"], tuple[Float[Tensor, "1 B U"], Float[Tensor, "1 B U"]]]:
        """Advance the LSTM by T words from `state`, (hidden, cell). Returns outputs, new state."""
        # Few CPUs support an LSTM in 16 bits.
        with torch.autocast(words.device.type, enabled=False):
            hidden, cell = (tensor.to(self.embedding.weight.dtype) for tensor in state)
            return self.lstm(self.embedding(words), (hidden, cell))

    def initial_state(
        self, regions: Float[Tensor, "B m U"]
    ) -> tuple[Float[Tensor, "1 B U"], Float[Tensor, "1 B U"]]:
        """LSTM state before the first word, computed from the mean of all regions."""
        hidden, cell = (
            self.initial_state_layer(self.scene_encoder(regions).mean(dim=1))
            .tanh()
            .unsqueeze(0)
            .chunk(2, dim=-1)
        )
        return hidden.contiguous(), cell.contiguous()

    def build_segments(
        self, regions: Float[Tensor, "N m U"], lstm_output: Float[Tensor, "N U"]
    ) -> Float[Tensor, "N m V"]:
        """Each region concatenated with the LSTM output."""
        return torch.cat(
            [regions, lstm_output.unsqueeze(1).expand(-1, regions.shape[1], -1)], dim=-1
        )

    def score(self, x: Float[Tensor, "N m V"]) -> Float[Tensor, "N m"]:
        """Attention scores of the regions."""
        return self.focus.score(x[..., : self.units], x[:, 0, self.units :])

    def classify(self, x: Float[Tensor, "R V"]) -> Float[Tensor, "R C"]:
        """Word logits of single segments."""
        self.classifier_calls += len(x)
        return self.head(self.body(x))

    def classify_blend(
        self, x: Float[Tensor, "N m V"], weights: Float[Tensor, "N m"]
    ) -> Float[Tensor, "N C"]:
        """Word logits of the weighted mean of the segments."""
        return self.classify(average_segments(x, weights))

    def classify_features(
        self, x: Float[Tensor, "N m V"], weights: Float[Tensor, "N m"]
    ) -> Float[Tensor, "N C"]:
        """Word logits of the weighted mean of the last layer's inputs."""
        self.classifier_calls += x.shape[0] * x.shape[1]
        return self.head(average_segments(self.body(x), weights))

    def forward(
        self,
        x: Float[Tensor, "B m d"],
        previous_words: Int[Tensor, "B T"],
        word_mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T U"]:
        """Mean of the regions weighted by attention, for every word."""
        regions = self.region_encoder(x)
        return self.focus(regions, self.encode_words(regions, previous_words), word_mask)


BATCH_PICTURES = 256
"""Pictures captioned at once."""


@dataclass(frozen=True)
class GeneratedCaption:
    """A generated caption with the focus (attention over regions) of each word."""

    words: tuple[int, ...]
    """Word ids, without END."""
    focus: np.ndarray
    """Focus on every region at every word, (words, m)."""


def generate_captions(
    model: Any,
    regions: np.ndarray,
    paradigm: Paradigm,
    create_segments: Callable[[Any, Tensor, Tensor], SegmentBatch],
    max_words: int,
) -> list[GeneratedCaption]:
    """Generate captions of pictures (N, m, d) greedily, by the paradigm's prediction rule.

    `create_segments(model, x, y)` is `FocusTask.create_segment_batch`. The labels y are unknown
    here; predictions do not use them, so the previous words are passed instead.
    """
    device = next(model.parameters()).device
    captions: list[GeneratedCaption] = []
    for start in range(0, len(regions), BATCH_PICTURES):
        encoded = model.region_encoder(
            torch.from_numpy(regions[start : start + BATCH_PICTURES]).to(device)
        )
        state = model.initial_state(encoded)
        last_word = torch.full((len(encoded), 1), END_ID, device=device)
        word_steps, focus_steps = [], []
        for _ in range(max_words):
            lstm_output, state = model.step(last_word, state)
            segments = create_segments(
                model, model.build_segments(encoded, lstm_output.squeeze(1)), last_word.squeeze(1)
            )
            last_word = paradigm.predict(segments).argmax(dim=-1, keepdim=True)
            word_steps.append(last_word.squeeze(1))
            focus_steps.append(paradigm.focus_weights(segments.scores))
        word_ids, focus = (
            torch.stack(word_steps, dim=1).cpu().numpy(),
            torch.stack(focus_steps, dim=1).cpu().numpy(),
        )
        for ids, word_focus in zip(word_ids, focus, strict=True):
            ends = np.flatnonzero(ids == END_ID)
            length = int(ends[0]) if len(ends) else max_words
            captions.append(GeneratedCaption(tuple(ids[:length].tolist()), word_focus[:length]))
    return captions


def caption_accuracy(
    captions: list[GeneratedCaption], pictures: list[int], split: CaptionSplit
) -> float:
    """Share of pictures whose caption equals one of its reference captions, word for word.

    `pictures` are the indices in `split` of the captioned pictures.
    """
    references = split.references()
    return float(
        np.mean(
            [
                caption.words in references[picture]
                for caption, picture in zip(captions, pictures, strict=True)
            ]
        )
    )
