"""`neural.watch`: capture the attention of any torch model, name what its heads do, save a page.

    capture = watch(model, ids, labels=["the", "cat", "sat"])
    capture.head_roles()          what each head does, by layer and head
    capture.save("heads.html")    one page that opens offline

capture/watch.py does the capturing. This module is above `analysis`, which names the roles of
heads, and above `report`, which writes pages; `capture` may import neither of them. Both are
imported at their first use: watching alone does not need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from neural.capture.capture_result import Capture
from neural.capture.watch import capture_calls, run_probe, warn_at_caller
from neural.capture.watch_arguments import (
    check_model,
    check_positions,
    convert_positions,
    explain_input_error,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import numpy as np
    from jaxtyping import Bool, Int
    from torch import Tensor, nn

    Labels = Sequence[str] | Sequence[Sequence[str]] | np.ndarray
    TokenIds = Int[Tensor, "B T"] | Sequence[Sequence[int]] | np.ndarray
    PaddingMask = Bool[Tensor, "B T"] | Sequence[Sequence[bool]] | np.ndarray


class WatchResult(Capture):
    """The captured attention of one model, which can be saved as a page."""

    model_name = "model"
    """Name of the model's class, the title of the page."""

    def head_roles(self, example: int = 0) -> np.ndarray:
        """What each head does, [layer, head]: "previous token", "induction", "uniform" …

        analysis/head_roles.py defines the roles. "mixed" for heads without one of them, "" where a
        layer has fewer heads. Measures are means over all examples; maps are those of `example`.
        """
        from neural.report.capture_page import find_capture_roles

        return find_capture_roles(self, example)

    def save(self, path: str | Path, *, example: int = 0, title: str | None = None) -> Path:
        """Write one HTML page that opens offline: every head, its labels, measures and roles.

        The maps are those of one `example` of the batch. ValueError if the name of the file does
        not end with .html or if there is no such example; RunError if it cannot be written.
        """
        from neural.report.capture_page import write_capture_page

        return write_capture_page(self, Path(path), name=title or self.model_name, example=example)


@overload
def watch(
    model: nn.Module,
    *,
    labels: Labels | None = ...,
    tokens: TokenIds | None = ...,
    measures: Iterable[str] | None = ...,
    real: PaddingMask | None = ...,
    softmax: bool | None = ...,
    on_warning: Callable[[str], None] = ...,
) -> AbstractContextManager[WatchResult]: ...
@overload
def watch(
    model: nn.Module,
    first_input: Any,
    /,
    *inputs: Any,
    labels: Labels | None = ...,
    tokens: TokenIds | None = ...,
    measures: Iterable[str] | None = ...,
    real: PaddingMask | None = ...,
    softmax: bool | None = ...,
    on_warning: Callable[[str], None] = ...,
) -> WatchResult: ...
def watch(
    model: nn.Module,
    *inputs: Any,
    labels: Labels | None = None,
    tokens: TokenIds | None = None,
    measures: Iterable[str] | None = None,
    real: PaddingMask | None = None,
    softmax: bool | None = None,
    on_warning: Callable[[str], None] = warn_at_caller,
) -> AbstractContextManager[WatchResult] | WatchResult:
    """Capture the attention of any torch model, in a `with` block or on one batch.

        capture = neural.watch(model, ids, labels=["the", "cat", "sat"])
        capture.measure_arrays()["entropy"]
        capture.save("heads.html")

        with neural.watch(model) as capture:
            model(ids)

    `inputs`: one batch, run without gradients: `watch(model, x)` calls `model(x)`, `watch(model, x,
    y)` calls `model(x, y)`; a mapping holds named inputs. Without inputs, `watch` is a `with` block
    in which you run the model.
    `labels`: a text for each position, such as its token, or a list of texts for each example.
    `tokens` (B, T): token ids, for measures that need them; a tensor, an array or nested lists.
    `measures`: names of measures; all that apply if None.
    `real` (B, T): True for positions that are not padding, if the model's masks do not show it.
    `softmax`: whether a softmax over the last axis of (B, H, Q, K) or (B, Q, K) is attention: in
    modules with "attention" in their names, or in all if none has. If None, only in Hugging Face
    models.
    `on_warning`: receives a message if some attention is not measured, or if there is none; by
    default an `AttentionWarning` is emitted.
    """
    check_model(model)
    token_ids, is_real = convert_positions("tokens", tokens), convert_positions("real", real)
    capture = WatchResult(measures)
    capture.model_name = type(model).__name__
    block = capture_calls(
        model,
        capture,
        labels=labels,
        tokens=token_ids,
        real=is_real,
        softmax=softmax,
        on_warning=on_warning,
    )
    checked_block = _check_at_end(block, token_ids, is_real)
    if not inputs:
        return checked_block
    batch = inputs[0] if len(inputs) == 1 else inputs
    try:
        return run_probe(model, batch, checked_block)
    except (TypeError, ValueError, IndexError, RuntimeError, AttributeError) as error:
        advice = explain_input_error(batch)
        if not advice or capture.calls:
            raise
        raise ValueError(f"watch: the model failed on this input: {error}; {advice}") from error


@contextmanager
def _check_at_end(
    block: AbstractContextManager[WatchResult], tokens: Tensor | None, real: Tensor | None
) -> Iterator[WatchResult]:
    """The block, then a check that `tokens` and `real` fit the captured attention."""
    with block as capture:
        yield capture
    check_positions("tokens", tokens, capture)
    check_positions("real", real, capture)
