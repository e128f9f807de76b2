"""What the board shows and does, joined: runs as the report tells them, findings, texts written and texts cut.

    serve(Path("runs"), Door("127.0.0.1", 8765))
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.report import finding_data, run_data
from neural.tracking.run import Run
from neural.views.board.asked import ToCut, ToWrite
from neural.views.findings import findings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from neural.generation import Writer
    from neural.segmenting import Cutter
    from neural.views.board.guard import Door

KEPT = 4
"""Networks that stay in memory."""


def application(root: Path, door: Door) -> ASGIApp:
    """The board of the runs in a folder, behind its door."""
    from neural.views.board.app import Lent, application  # Starlette is an extra

    return application(root, door, Lent(described, judged, written, cut))


def described(run: Run, after: int) -> dict[str, Any]:
    """A run as the pages draw it; where its folder lies is nobody's business."""
    return {key: value for key, value in run_data(run, after=after).items() if key != "path"}


def judged(run: Run) -> list[dict[str, Any]]:
    """What the analyses say about it alone."""
    return [finding_data(one) for one in findings([run])]


def written(path: Path, asked: ToWrite) -> Iterator[dict[str, Any]]:
    """A text as it is written: first the prompt and the layers, then each new piece with what it was predicted from.

    `seen` is 255·√weight as bytes in base64, [layer, head, key] with the keys of the window, which begins at the
    position `first` of the text.
    """
    writer = _writer(path, _weights(path))
    ids = writer.prompt(asked.prompt)[1]
    read = writer.letters.reader()
    begun = False
    for new in writer.stream(
        asked.prompt, asked.tokens, temperature=asked.temperature, top_k=asked.top_k, seed=asked.seed, watched=True
    ):
        if not begun:
            begun = True
            heads = [one.shape[1] for one in new.seen.values()]
            yield {"prompt": [read(one) for one in ids], "layers": list(new.seen), "heads": heads}
        yield {"text": new.text[0], "first": new.first, "keys": _window(new.seen), "seen": _packed(new.seen)}
    yield {"done": asked.tokens}


def cut(path: Path | None, asked: ToCut) -> dict[str, Any]:
    """A text with its parts and the probability at every gap."""
    from neural.segmented import segmented
    from neural.tasks.cutting.reading import Raw
    from neural.tasks.task import TaskError

    if not asked.text.strip():
        raise TaskError("the text is empty: there is nothing to cut")
    cutter = _cutter(path, _weights(path) if path is not None else 0)
    found = segmented(
        Raw("the text", asked.text, "utf-8"), cutter, least=asked.least, most=asked.most, threshold=asked.threshold
    )
    places = found.document.offsets or ()
    return {
        "segmenter": cutter.name, "threshold": found.threshold, "unit": found.unit, "remarks": list(cutter.remarks),
        "elements": [{"text": asked.text[start:end], "probability": float(p), "begins": bool(begins)}
                     for (start, end), p, begins in zip(places, found.probabilities, found.boundaries, strict=True)],
        "parts": [{"first": one.first, "last": one.last, "title": one.title, "probability": one.probability}
                  for one in found.parts],
    }  # fmt: skip


@lru_cache(KEPT)
def _writer(path: Path, weights: int) -> Writer:
    from neural.generation import writer_of

    _alone()
    return writer_of(path)


@lru_cache(KEPT)
def _cutter(path: Path | None, weights: int) -> Cutter:
    from neural.segmenting import cutter_of_run, shipped

    _alone()
    return shipped() if path is None else cutter_of_run(Run.open(path))


def _weights(path: Path) -> int:
    """The step of the newest checkpoint: a run that goes on learning is loaded again."""
    with Run.open(path) as run:
        return max((one.step for one in run.checkpoints()), default=-1)


def _alone() -> None:
    """One thread: the processors are for what is being trained."""
    from neural.modules.late import torch

    torch.set_num_threads(1)


def _window(seen: dict[str, np.ndarray]) -> int:
    return max(one.shape[2] for one in seen.values())


def _packed(seen: dict[str, np.ndarray]) -> str:
    """All layers in one piece; heads that a layer has not, and keys that it does not keep, are 0."""
    heads, keys = max(one.shape[1] for one in seen.values()), _window(seen)
    whole = np.zeros((len(seen), heads, keys), np.uint8)
    for layer, one in enumerate(seen.values()):
        whole[layer, : one.shape[1], keys - one.shape[2] :] = np.rint(255 * np.sqrt(np.clip(one[0], 0, 1)))
    return base64.b64encode(whole.tobytes()).decode()
