"""`neural completion`: shell completion of commands, options, files and runs."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

INSTALL_PATHS = {
    "bash": (
        "~/.local/share/bash-completion/completions/neural",
        'or in ~/.bashrc: eval "$(neural completion bash)"',
    ),
    "zsh": ("~/.zfunc/_neural", "with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc"),
    "fish": (
        "~/.config/fish/completions/neural.fish",
        "or in the current shell: neural completion fish | source",
    ),
}
"""By shell: the path of the script, and an alternative or requirement."""
COMPLETE_VARIABLE = "_NEURAL_COMPLETE"
"""Environment variable with which the script calls `neural` for completions; click's convention."""


@click.command()
@click.argument("shell", type=click.Choice(list(INSTALL_PATHS)))
def command(shell: str) -> None:
    """Print a completion script for a shell: commands, options, programs, runs, layers and codes.

    \b
    $ neural completion bash > ~/.local/share/bash-completion/completions/neural
    $ neural completion zsh > ~/.zfunc/_neural
    $ neural completion fish > ~/.config/fish/completions/neural.fish

    Its first lines say where to put it. It takes effect in the next shell that is started.
    """
    from neural.cli.main import main

    completion_class = get_completion_class(shell)
    assert completion_class is not None  # click supports these three
    script = completion_class(main, {}, "neural", COMPLETE_VARIABLE).source()
    first_line, _, body = script.partition("\n")
    path, note = INSTALL_PATHS[shell]
    comment = f"# install as {path}\n# {note}"
    # zsh requires its `#compdef` line to be the first.
    lines = [first_line, comment] if first_line.startswith("#") else [comment, first_line]
    click.echo("\n".join([*lines, body]))
