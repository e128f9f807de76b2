"""Text generation and segmentation for the board (the local web page), with the networks of runs.

A run is the folder of one training. Segmentation groups the elements of a text, such as sentences,
into segments. A boundary is an element with which a segment begins.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.board.requests import GenerateRequest, SegmentRequest
from neural.capture.map_encoding import to_shares
from neural.core.errors import TaskError
from neural.runs.run import Run

# imported inside of functions below: they import torch, which the board needs only here
if TYPE_CHECKING:
    from neural.tasks._text_generator import TextGenerator
    from neural.tasks.segmentation.pipeline import SegmentationPipeline

MAX_CACHED_MODELS = 4
"""Generators, and likewise segmenters, that stay in memory."""


def handle_generate(path: Path, request: GenerateRequest) -> Iterator[dict[str, Any]]:
    """Yield the prompt and the layers, then each new token with its attention weights.

    `path` is the run folder. In the yielded data, `weights` are the attention weights of the new
    token as bytes 255·√weight in base64, [layer, head, key]. The keys are the tokens of the
    attention window, which starts at token `first` of the text.
    """
    generator = _load_generator(path, _latest_checkpoint_step(path))
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
    pipeline = _load_pipeline(path, _latest_checkpoint_step(path) if path is not None else 0)
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


@lru_cache(MAX_CACHED_MODELS)
def _load_generator(path: Path, checkpoint_step: int) -> TextGenerator:
    """Load the generator of a run. `checkpoint_step` is only a cache key."""
    from neural.workflows.generate import load_generator

    _limit_threads()
    return load_generator(path)


@lru_cache(MAX_CACHED_MODELS)
def _load_pipeline(path: Path | None, checkpoint_step: int) -> SegmentationPipeline:
    """Load the segmenter of a run, or the shipped one. `checkpoint_step` is only a cache key."""
    from neural.tasks.segmentation.pipeline import load_shipped_pipeline
    from neural.workflows.segment import load_run_pipeline

    _limit_threads()
    return load_shipped_pipeline() if path is None else load_run_pipeline(Run.open(path))


def _latest_checkpoint_step(path: Path) -> int:
    """The step of the newest checkpoint, −1 without one.

    As a cache key, it makes the network of a running training load again after each checkpoint.
    """
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
