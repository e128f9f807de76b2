"""A small captioner: a memory of the words said so far, a gaze over the regions, a word read off what it sees.

After Xu et al. (2015), "Show, attend and tell", with one change (Deng et al., 2018): the memory reads words only, not
what was looked at before. So where to look for a word does not depend on where one looked for those before it, and
the marginal over regions is exact, word by word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.modules.late import Module, functional, nn, torch
from neural.tasks.focusing.networks import blend

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


class Gaze(Module):
    """How much the next word calls for each region: the product of a question and of what the region answers to."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.question = nn.Linear(units, units)
        self.answer = nn.Sequential(nn.Linear(units, units), nn.ReLU(), nn.Linear(units, units))

    def score(self, sight: Float[Tensor, "N m U"], memory: Float[Tensor, "N U"]) -> Float[Tensor, "N m"]:
        """For one word of each row."""
        asked, answers = self.question(memory), self.answer(sight)
        return torch.einsum("nu,nmu->nm", asked, answers) / asked.shape[-1] ** 0.5

    def forward(
        self, sight: Float[Tensor, "B m U"], memory: Float[Tensor, "B T U"], real: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T U"]:
        """What is seen at every word, as attention that can be watched; words that are padding see nothing."""
        asked, answers = self.question(memory).unsqueeze(1), self.answer(sight).unsqueeze(1)
        mask = real[:, None, :, None].expand(-1, 1, -1, sight.shape[1])
        return functional.scaled_dot_product_attention(asked, answers, sight.unsqueeze(1), mask).squeeze(1)


class Captioner(Module):
    """Regions and the words so far → the next word. A segment is a region beside the memory of what was said.

    So to a paradigm every word is an example of m segments; `focus`, `history`, `score`, `classify` … are what it asks
    of a focus model.
    """

    history: Tensor

    def __init__(self, features: int, vocabulary: int, units: int, *, rate: float = 1.0) -> None:
        """`rate` is the gaze's learning rate over that of all else."""
        super().__init__()
        self.units = units
        self.faster = {"focus.": rate}   # what the engine asks for
        self.sight = nn.Sequential(nn.Linear(features, units), nn.ReLU())
        self.whole = nn.Sequential(nn.Linear(units, units), nn.ReLU())
        self.start = nn.Linear(units, 2 * units)
        self.words = nn.Embedding(vocabulary, units)
        self.memory = nn.LSTM(units, units, batch_first=True)
        self.focus = Gaze(units)
        self.body = nn.Sequential(nn.Linear(2 * units, units), nn.ReLU())
        self.head = nn.Linear(units, vocabulary)
        self.register_buffer("history", torch.zeros(4, dtype=torch.int64))   # as in FocusModel: what a schedule marks
        self.calls = 0

    def remembered(
        self, sight: Float[Tensor, "B m U"], before: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T U"]:
        """The memory at every word; it begins with a glance at the whole."""
        return self.read(before, self.begun(sight))[0]

    def read(
        self, words: Int[Tensor, "B T"], state: tuple[Float[Tensor, "1 B U"], Float[Tensor, "1 B U"]]
    ) -> tuple[Float[Tensor, "B T U"], tuple[Float[Tensor, "1 B U"], Float[Tensor, "1 B U"]]]:
        """Some words more: the memory at each of them, and the state behind them."""
        with torch.autocast(words.device.type, enabled=False):   # few processors have recurrence in 16 bits
            hidden, cell = (one.to(self.words.weight.dtype) for one in state)
            return self.memory(self.words(words), (hidden, cell))

    def begun(self, sight: Float[Tensor, "B m U"]) -> tuple[Float[Tensor, "1 B U"], Float[Tensor, "1 B U"]]:
        """The state before the first word."""
        hidden, cell = self.start(self.whole(sight).mean(dim=1)).tanh().unsqueeze(0).chunk(2, dim=-1)
        return hidden.contiguous(), cell.contiguous()

    def segments(
        self, sight: Float[Tensor, "N m U"], memory: Float[Tensor, "N U"]
    ) -> Float[Tensor, "N m V"]:
        """Each region beside the memory."""
        return torch.cat([sight, memory.unsqueeze(1).expand(-1, sight.shape[1], -1)], dim=-1)

    def score(self, x: Float[Tensor, "N m V"]) -> Float[Tensor, "N m"]:
        """How much each region has to do with the word."""
        return self.focus.score(x[..., : self.units], x[:, 0, self.units :])

    def classify(self, x: Float[Tensor, "R V"]) -> Float[Tensor, "R C"]:
        """Scores of all words, from one region each."""
        self.calls += len(x)
        return self.head(self.body(x))

    def classify_blend(self, x: Float[Tensor, "N m V"], weights: Float[Tensor, "N m"]) -> Float[Tensor, "N C"]:
        """The same from the weighted mean of the regions."""
        return self.classify(blend(x, weights))

    def classify_features(self, x: Float[Tensor, "N m V"], weights: Float[Tensor, "N m"]) -> Float[Tensor, "N C"]:
        """The same from the weighted mean of what the last layer reads."""
        self.calls += x.shape[0] * x.shape[1]
        return self.head(blend(self.body(x), weights))

    def forward(
        self, x: Float[Tensor, "B m d"], before: Int[Tensor, "B T"], real: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T U"]:
        """What is seen at every word."""
        sight = self.sight(x)
        return self.focus(sight, self.remembered(sight, before), real)
