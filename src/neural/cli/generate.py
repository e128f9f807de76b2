"""`neural generate`: text from a trained run."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from neural.cli._arguments import RUN, Number


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option("--prompt", metavar="TEXT", help="What to go on from; a new line if not said.")
@click.option("--tokens", type=click.IntRange(1), default=500, show_default=True, help="Characters or bytes to write.")
@click.option("--temperature", type=Number(0), default=0.8, show_default=True,
              help="0 takes the likeliest; 1 draws as the network says.")  # fmt: skip
@click.option("--top-k", type=click.IntRange(1), help="Only the likeliest few.")
@click.option("--top-p", type=Number(0, 1, min_open=True), help="Only the fewest that hold this share.")
@click.option("--samples", type=click.IntRange(1), default=1, show_default=True, help="How many texts.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The same seed, the same texts.")
@click.option("--attention", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.npz",
              help="Write what every character looked at.")  # fmt: skip
@click.option("--way", type=click.Choice(["auto", "compiled", "cached", "recomputed"]), default="auto",
              help="How to compute: with the same weights, all ways give the same text.")  # fmt: skip
@click.option("--weights", type=click.Choice(["auto", "float32", "int8"]), default="auto", show_default=True,
              help="int8 is twice as fast and not quite the same; auto takes it where it can.")  # fmt: skip
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object at the end, and no text before it.")
def command(run: str | None, **asked: Any) -> None:
    """Write text with the network of a run; the newest if none is named.

    \b
    $ neural generate --prompt "The statement" --tokens 200
    $ neural generate RUN --samples 10 --temperature 1.0 --top-k 200
    $ neural generate RUN --prompt "To be" --attention seen.npz

    When the network's window is full, the text goes on from the last half of it.
    """
    from neural.cli._mistakes import told

    with told():
        _generate(run, **asked)


def _generate(
    run: str | None, prompt: str | None, tokens: int, temperature: float, top_k: int | None, top_p: float | None,
    samples: int, seed: int, attention: Path | None, way: Any, weights: Any, runs: Path, as_json: bool,
) -> None:  # fmt: skip
    from neural.attention_file import AttentionFile
    from neural.experiments import find_run
    from neural.generation import AT_ONCE, writer_of

    if attention is not None:
        _check(attention, way)
    path = find_run(run, runs)
    writer = writer_of(path)
    text, ids = writer.prompt(prompt)
    decoding = writer.decoding(way=way, precision=weights, watched=attention is not None)
    seen = AttentionFile(text, ids) if attention is not None else None
    texts: list[str] = []
    begun = time.perf_counter()
    for first in range(0, samples, AT_ONCE):
        some = min(AT_ONCE, samples - first)
        written = [""] * some
        if not as_json:
            _begin(first, samples, text)
        if seen is not None:
            seen.begin()
        for new in writer.stream(
            text, tokens, samples=some, first=first, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed,
            watched=seen is not None, decoding=decoding,
        ):  # fmt: skip
            written = [old + more for old, more in zip(written, new.text, strict=True)]
            if seen is not None:
                seen.add(new)
            if not as_json:   # the first of those that are written together is shown as it comes, the others after it
                click.echo(new.text[0], nl=False)
                sys.stdout.flush()
        if not as_json:
            click.echo()
            for number, one in enumerate(written[1:], start=first + 1):
                _begin(number, samples, text)
                click.echo(one)
        texts += written
    seconds = time.perf_counter() - begun
    if seen is not None and attention is not None:
        _write(seen, attention)
    count = len(texts) * tokens
    if as_json:
        click.echo(json.dumps({
            "run": str(path), "prompt": text, "seed": seed, "temperature": temperature, "top_k": top_k, "top_p": top_p,
            "samples": texts, "tokens": count, "seconds": round(seconds, 4), "way": type(decoding).__name__.lower(),
            "attention": None if attention is None else str(attention),
        }))  # fmt: skip
        return
    where = f"; what they looked at: {attention}" if attention is not None else ""
    click.echo(f"{count:,} tokens in {seconds:.2f} s, {count / seconds:,.0f} per second{where}", err=True)


def _begin(number: int, samples: int, prompt: str) -> None:
    if samples > 1:
        click.echo(f"{chr(10) if number else ''}--- {number + 1} of {samples}")
    click.echo(prompt, nl=False)
    sys.stdout.flush()


def _check(attention: Path, way: str) -> None:
    """Say what is wrong before an hour of writing, not after it."""
    from neural.cli._mistakes import Refused

    if way in ("compiled", "recomputed"):
        raise Refused(f"--attention is told by cached decoding: leave out --way {way}")
    if not attention.absolute().parent.is_dir():
        raise Refused(f"there is no folder {attention.parent} for --attention")
    if attention.suffix != ".npz":
        raise Refused(f"--attention writes an .npz file: {attention.with_suffix('.npz')}")


def _write(seen: Any, attention: Path) -> None:
    from neural.cli._mistakes import Failed

    try:
        seen.write(attention)
    except OSError as error:
        raise Failed(f"{attention}: {(error.strerror or str(error)).lower()}") from None
