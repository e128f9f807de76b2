"""`neural generate`: text by the language model of a run; tokens are characters or bytes.

A decoder computes the next token: `compiled` by one compiled kernel, `cached` with a key/value
cache, or `recomputed` with a full forward pass for every token. A sample is one generated text.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import RUN, SEED, FiniteFloatRange
from neural.cli._options import json_option, runs_option
from neural.core.escape import escape_controls

if TYPE_CHECKING:
    from neural.workflows.attention_export import AttentionExport

ALIASES = ("sample",)
"""Other names of this command."""


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option("--prompt", metavar="TEXT", help="Text to continue; a line break by default.")
@click.option(
    "--tokens",
    type=click.IntRange(1),
    default=500,
    show_default=True,
    help="Number of characters or bytes to generate.",
)
@click.option(
    "--temperature",
    type=FiniteFloatRange(0),
    default=0.8,
    show_default=True,
    help="0 takes the most probable token; 1 samples from the network's distribution.",
)
@click.option(
    "--top-k", type=click.IntRange(1), help="Sample from the k most probable tokens only."
)
@click.option(
    "--top-p",
    type=FiniteFloatRange(0, 1, min_open=True),
    help="Sample from the fewest tokens whose probabilities sum to p.",
)
@click.option(
    "--samples", type=click.IntRange(1), default=1, show_default=True, help="Number of texts."
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Random seed; the same seed gives the same texts.",
)
@click.option(
    "--attention",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.npz",
    help="Write the attention of every generated token.",
)
@click.option(
    "--decoder",
    type=click.Choice(["auto", "compiled", "cached", "recomputed"]),
    default="auto",
    show_default=True,
    help="How to compute; with the same weights, all decoders give the same text.",
)
@click.option(
    "--weights",
    type=click.Choice(["auto", "float32", "int8"]),
    default="auto",
    show_default=True,
    help="int8 is twice as fast and slightly less exact; auto uses it where it is supported.",
)
@runs_option()
@json_option("Print one JSON object at the end instead of the text.")
def command(run: str | None, **options: Any) -> None:
    """Generate text with a language model run; the newest run by default.

    \b
    $ neural generate --prompt "The statement" --tokens 200
    $ neural generate RUN --samples 10 --temperature 1.0 --top-k 200
    $ neural generate RUN --prompt "To be" --attention weights.npz

    When the context is full, generation continues from its last half.
    """
    _generate(run, **options)


def _generate(
    run: str | None,
    prompt: str | None,
    tokens: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    samples: int,
    seed: int,
    attention: Path | None,
    decoder: Any,
    weights: Any,
    root: Path,
    as_json: bool,
) -> None:
    from neural.cli._run_selection import select_run
    from neural.tasks._text_generator import SAMPLE_BATCH_SIZE
    from neural.workflows.attention_export import AttentionExport
    from neural.workflows.generate import load_generator

    if attention is not None:
        _check_attention_path(attention, decoder)
    run_path = select_run(run, root)
    generator = load_generator(run_path)
    prompt_text, ids = generator.encode_prompt(prompt)
    token_decoder = generator.create_decoder(
        decoder=decoder, precision=weights, capture_attention=attention is not None
    )
    export = AttentionExport(prompt_text, ids) if attention is not None else None
    texts: list[str] = []
    start_time = time.perf_counter()
    for first_sample_index in range(0, samples, SAMPLE_BATCH_SIZE):
        batch_size = min(SAMPLE_BATCH_SIZE, samples - first_sample_index)
        batch_texts = [""] * batch_size
        if not as_json:
            _print_prompt(first_sample_index, samples, prompt_text)
        if export is not None:
            export.start_batch()
        for step in generator.stream(
            prompt_text,
            tokens,
            samples=batch_size,
            first_sample_index=first_sample_index,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            capture_attention=export is not None,
            decoder=token_decoder,
        ):
            batch_texts = [
                sample + token for sample, token in zip(batch_texts, step.texts, strict=True)
            ]
            if export is not None:
                export.add_step(step)
            # The first sample of a batch is printed while it grows, the others after it.
            if not as_json:
                click.echo(_make_printable(step.texts[0]), nl=False)
                sys.stdout.flush()
        if not as_json:
            click.echo()
            for index, sample in enumerate(batch_texts[1:], start=first_sample_index + 1):
                _print_prompt(index, samples, prompt_text)
                click.echo(_make_printable(sample))
        texts += batch_texts
    seconds = time.perf_counter() - start_time
    if export is not None and attention is not None:
        _write_attention(export, attention)
    token_count = len(texts) * tokens
    if as_json:
        click.echo(
            json.dumps(
                {
                    "run": str(run_path),
                    "prompt": prompt_text,
                    "seed": seed,
                    "temperature": temperature,
                    "top_k": top_k,
                    "top_p": top_p,
                    "samples": texts,
                    "tokens": token_count,
                    "seconds": round(seconds, 4),
                    "decoder": type(token_decoder).__name__.removesuffix("Decoder").lower(),
                    "attention": None if attention is None else str(attention),
                }
            )
        )
        return
    attention_note = f"; attention: {attention}" if attention is not None else ""
    speed = f"{token_count / seconds:,.0f} per second"
    click.echo(f"{token_count:,} tokens in {seconds:.2f} s, {speed}{attention_note}", err=True)


def _print_prompt(index: int, samples: int, prompt: str) -> None:
    """Print the prompt of sample `index` (from 0), under a heading if there are several."""
    if samples > 1:
        click.echo(f"{chr(10) if index else ''}--- {index + 1} of {samples}")
    click.echo(_make_printable(prompt), nl=False)
    sys.stdout.flush()


def _make_printable(text: str) -> str:
    """Without control characters on a terminal: the vocabulary may be of a foreign run."""
    return escape_controls(text) if sys.stdout.isatty() else text


def _check_attention_path(path: Path, decoder: str) -> None:
    """Raise NeuralError for a wrong path or decoder, before text is generated."""
    from neural.core.errors import NeuralError

    if decoder in ("compiled", "recomputed"):
        raise NeuralError(f"--attention needs cached decoding: leave out --decoder {decoder}")
    if not path.name:
        raise NeuralError("--attention needs the name of an .npz file")
    if not path.absolute().parent.is_dir():
        raise NeuralError(f"there is no folder {path.parent} for --attention")
    if path.suffix != ".npz":
        raise NeuralError(f"--attention writes an .npz file: {path.with_suffix('.npz')}")


def _write_attention(export: AttentionExport, path: Path) -> None:
    from neural.core.errors import CommandFailedError, describe_os_error

    try:
        export.write(path)
    except OSError as error:
        raise CommandFailedError(f"{path}: {describe_os_error(error)}") from None
