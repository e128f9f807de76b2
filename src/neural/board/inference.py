"""Text generation and segmentation for the board (the local web page), with the networks of runs.

A run is the folder of one training. Segmentation groups the elements of a text, such as sentences,
into segments. A boundary is an element with which a segment begins.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from neural.board.requests import GenerateRequest, SegmentRequest
from neural.capture.map_encoding import to_shares
from neural.core.errors import TaskError
from neural.runs.run import Run

# imported inside of functions below: they import torch, which the board needs only here
if TYPE_CHECKING:
    from neural.tasks._text_generator import TextGenerator
    from neural.tasks.segmentation.pipeline import SegmentationPipeline

ModelType = TypeVar("ModelType")
MAX_CACHED_MODELS = 4
"""Generators, and likewise segmenters, that stay in memory."""


def handle_generate(path: Path, request: GenerateRequest) -> Iterator[dict[str, Any]]:
    """Yield the prompt and the layers, then each new token with its attention weights.

    `path` is the run folder. In the yielded data, `weights` are the attention weights of the new
    token as bytes 255·√weight in base64, [layer, head, key]. The keys are the tokens of the
    attention window, which starts at token `first` of the text.
    """
    generator = _generators.get(path)
    prompt_ids = generator.encode_prompt(request.prompt)[1]
    decode = generator.tokenizer.create_decoder()
    is_first = True
    for step in generator.stream(
        request.prompt,
        request.tokens,
        temperature=request.temperature,
        top_k=request.top_k,
        seed=request.seed,
        capture_attention=True,
    ):
        if is_first:
            is_first = False
            yield {
                "prompt": [decode(token_id) for token_id in prompt_ids],
                "layers": list(step.attention),
                "heads": [weights.shape[1] for weights in step.attention.values()],
            }
        yield {
            "text": step.texts[0],
            "first": step.window_start,
            "keys": _window_length(step.attention),
            "weights": _encode_attention(step.attention),
        }
    yield {"done": request.tokens}


def handle_segment(path: Path | None, request: SegmentRequest) -> dict[str, Any]:
    """Segments of a text and the boundary probability of every element.

    `path` is the run folder of the segmenter; None for the shipped one.
    """
    from neural.tasks.segmentation.reader import RawText
    from neural.tasks.segmentation.segment_stream import SegmentOptions
    from neural.workflows.segment import segment_text

    if not request.text.strip():
        raise TaskError("the text is empty: there is nothing to segment")
    pipeline = _pipelines.get(path)
    result = segment_text(
        RawText("the text", request.text, "utf-8"),
        pipeline,
        SegmentOptions(
            min_elements=request.min_elements,
            max_elements=request.max_elements,
            threshold=request.threshold,
        ),
    )
    offsets = result.document.offsets or ()
    return {
        "segmenter": pipeline.name,
        "threshold": result.threshold,
        "unit": result.unit,
        "notes": list(pipeline.notes),
        "elements": [
            {
                "text": request.text[start:end],
                "probability": float(probability),
                "is_boundary": bool(is_boundary),
            }
            for (start, end), probability, is_boundary in zip(
                offsets, result.probabilities, result.boundaries, strict=True
            )
        ],
        "segments": [
            {
                "first": segment.first,
                "last": segment.last,
                "title": segment.title,
                "probability": segment.probability,
            }
            for segment in result.segments
        ],
    }


class ModelCache(Generic[ModelType]):
    """The most recently used models of runs, one for each run: that of its newest checkpoint.

    Used by one job at a time (`JobLock`).
    """

    def __init__(self, load: Callable[[Path | None], ModelType]) -> None:
        self._load = load
        self._models: dict[Path | None, tuple[int, ModelType]] = {}
        """Checkpoint step and model by run folder, the least recently used first."""

    def get(self, path: Path | None) -> ModelType:
        """The model of a run folder; None is the shipped one.

        The model of a running training is loaded again after each checkpoint.
        """
        step = -1 if path is None else _latest_checkpoint_step(path)
        cached = self._models.pop(path, None)
        if cached is None or cached[0] != step:
            del cached  # an older model is freed before the next one is loaded
            _limit_threads()
            cached = step, self._load(path)
        self._models[path] = cached
        if len(self._models) > MAX_CACHED_MODELS:
            del self._models[next(iter(self._models))]
        return cached[1]


def _load_generator(path: Path | None) -> TextGenerator:
    """Load the generator of a run."""
    from neural.workflows.generate import load_generator

    assert path is not None, "no generator is shipped"
    return load_generator(path)


def _load_pipeline(path: Path | None) -> SegmentationPipeline:
    """Load the segmenter of a run, or the shipped one."""
    from neural.tasks.segmentation.pipeline import load_shipped_pipeline
    from neural.workflows.segment import load_run_pipeline

    return load_shipped_pipeline() if path is None else load_run_pipeline(Run.open(path))


_generators = ModelCache(_load_generator)
_pipelines = ModelCache(_load_pipeline)


def _latest_checkpoint_step(path: Path) -> int:
    """The step of the newest checkpoint, −1 without one."""
    with Run.open(path) as run:
        return max((checkpoint.step for checkpoint in run.checkpoints()), default=-1)


def _limit_threads() -> None:
    """Use one thread: the other cores are for training."""
    from neural.nn.lazy_torch import torch

    torch.set_num_threads(1)


def _window_length(attention: dict[str, np.ndarray]) -> int:
    """Largest number of keys of a layer; weights are (1, H, K) by layer."""
    return max(weights.shape[2] for weights in attention.values())


def _encode_attention(attention: dict[str, np.ndarray]) -> str:
    """All layers as one array [layer, head, key] in base64.

    0 for heads that a layer lacks, and for old keys that a layer with a shorter window dropped.
    Signed weights are encoded as their shares of the absolute weight.
    """
    num_heads = max(weights.shape[1] for weights in attention.values())
    num_keys = _window_length(attention)
    encoded = np.zeros((len(attention), num_heads, num_keys), np.uint8)
    for layer, weights in enumerate(attention.values()):
        encoded[layer, : weights.shape[1], num_keys - weights.shape[2] :] = np.rint(
            255 * np.sqrt(np.clip(to_shares(weights[0]), 0, 1))
        )
    return base64.b64encode(encoded.tobytes()).decode()
