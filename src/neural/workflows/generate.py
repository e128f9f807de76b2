"""Generate text with a trained run: called by `neural generate`, the board and Python."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any, overload

from neural.core.errors import TaskError
from neural.runs.find import DEFAULT_RUNS_DIR, RunName, open_run
from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.training.trained_run import TrainedRunFolder


def load_generator(run: str | Path | Run) -> Any:
    """The text generator of a run with its best weights; its class depends on the run's task."""
    opened = TrainedRunFolder(run if isinstance(run, Run) else Run.open(run))
    return tasks.get(opened.task_name).load_generator(opened)


@overload
def generate(
    run: RunName | None = ...,
    prompt: str | None = ...,
    *,
    tokens: int = ...,
    samples: None = ...,
    temperature: float = ...,
    top_k: int | None = ...,
    top_p: float | None = ...,
    seed: int = ...,
    runs: str | Path = ...,
) -> str: ...
@overload
def generate(
    run: RunName | None = ...,
    prompt: str | None = ...,
    *,
    tokens: int = ...,
    samples: int,
    temperature: float = ...,
    top_k: int | None = ...,
    top_p: float | None = ...,
    seed: int = ...,
    runs: str | Path = ...,
) -> list[str]: ...
def generate(
    run: RunName | None = None,
    prompt: str | None = None,
    *,
    tokens: int = 500,
    samples: int | None = None,
    temperature: float = 0.8,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    runs: str | Path = DEFAULT_RUNS_DIR,
) -> str | list[str]:
    """Text by the language model of a run, without the prompt; a list of texts with `samples`.

        print(neural.generate("novel", prompt="To be", tokens=200))

    `run` is a run, its name or path; the newest run by default. `prompt` is the text to continue; a
    line break by default. `tokens` is the number of characters or bytes. `temperature` 0 takes the
    most probable token; `top_k` and `top_p` limit the choice to the most probable ones. The same
    `seed` gives the same text. TaskError if the run generates no text,
    or if a number is out of range.
    """
    _check_whole_number("tokens", tokens)
    if samples is not None:
        _check_whole_number("samples", samples)
    if top_k is not None:
        _check_whole_number("top_k", top_k)
    generator = load_generator(open_run(run, runs=runs))
    texts: list[str] = generator.generate(
        prompt,
        tokens,
        samples=1 if samples is None else samples,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
    return texts[0] if samples is None else texts


def _check_whole_number(name: str, value: Any) -> None:
    """TaskError if a value is not a whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
        raise TaskError(f"`{name}` must be a whole number, at least 1, not {value!r}")
