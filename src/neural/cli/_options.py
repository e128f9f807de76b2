"""The options that mean the same in every command: `--runs`, `--json` and `-o`.

`-` is standard input as an input file, and standard output after `-o`. The table of these options
in the command reference (docs/_reference/commands.py) is read from the commands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]

STANDARD_STREAM = Path("-")
"""The path that means standard output after `-o`."""


def runs_option() -> Decorator[Any]:
    """`--runs FOLDER`: where runs are created and found by name. Its parameter is `root`."""
    return click.option(
        "--runs",
        "root",
        type=click.Path(path_type=Path),
        callback=_note_new_folder,
        default=Path("runs"),
        show_default=True,
        metavar="FOLDER",
        help="Folder of the runs.",
    )


def build_option() -> Decorator[Any]:
    """`--build MODULE:FUNCTION`, for targets that are only weights. Its parameter is `build`."""
    return click.option(
        "--build",
        metavar="MODULE:FUNCTION",
        help="Builds the model of a state dict (.pt, .safetensors).",
    )


def objective_option() -> Decorator[Any]:
    """`--objective NAME`, for models without a loss on a text. Its parameter is `objective`."""
    return click.option(
        "--objective",
        metavar="NAME",
        help="What is measured of a model without a loss on a text: cosine (of two embeddings), norm, "
        "logit:LABEL, or package.module:function.",
    )


def ids_option() -> Decorator[Any]:
    """`--ids NUMBERS`, several times. Its parameter is `ids`."""
    return click.option(
        "--ids", multiple=True, metavar="NUMBERS", help="Token ids, for models without a tokenizer."
    )


def implementation_option() -> Decorator[Any]:
    """`--attention NAME`, for models of Hugging Face. Its parameter is `implementation`."""
    return click.option(
        "--attention",
        "implementation",
        metavar="NAME",
        help="attn_implementation of Hugging Face: sdpa, eager, flash_attention_2 …",
    )


def json_option(description: str = "Print JSON.", *, form: bool = False) -> Decorator[Any]:
    """`--json`: standard output has JSON and nothing else; notes go to standard error.

    Its parameter is the flag `as_json`; with `form=True` it sets `form` to "json", beside other
    options that set `form`.
    """
    if form:
        return click.option("--json", "form", flag_value="json", help=description)
    return click.option("--json", "as_json", is_flag=True, help=description)


def out_option(
    description: str,
    *,
    metavar: str = "FILE",
    default: Path | None = None,
    is_folder: bool = False,
    allow_stdout: bool = False,
) -> Decorator[Any]:
    """`-o`, `--out`: the file or folder to write. Its parameter is `out`.

    With `allow_stdout`, `-o -` is standard output (STANDARD_STREAM); messages then go to standard
    error. `metavar` with "FOLDER" allows folders, `is_folder` allows nothing else.
    """
    return click.option(
        "-o",
        "--out",
        type=click.Path(
            path_type=Path,
            file_okay=not is_folder,
            dir_okay=is_folder or "FOLDER" in metavar or metavar == "PATH",
            allow_dash=allow_stdout,
        ),
        callback=_note_new_folder if allow_stdout else _refuse_dash,
        metavar=metavar,
        default=default,
        show_default=default is not None,
        help=description + (" `-` is standard output." if allow_stdout else ""),
    )


def _refuse_dash(ctx: click.Context, option: click.Parameter, value: Path | None) -> Path | None:
    """Refuse `-o -` where the output is a folder or several files: `-` is never a file name."""
    if value == STANDARD_STREAM:
        raise click.BadParameter("this command cannot write to standard output; name a path")
    return _note_new_folder(ctx, option, value)


def _note_new_folder(
    ctx: click.Context, _option: click.Parameter, value: Path | None
) -> Path | None:
    """Say at the end if the command has made the folder above the path: it may be misspelt."""
    folder = Path() if value is None else value.parent

    def note() -> None:
        if folder.exists():
            click.echo(f"note: the folder {folder} did not exist, it was created", err=True)

    if not folder.exists():
        ctx.call_on_close(note)
    return value
