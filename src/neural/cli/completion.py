"""`neural completion`: verbs, options, files and runs completed by the shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PLACES = {
    "bash": ("~/.local/share/bash-completion/completions/neural", 'or in ~/.bashrc: eval "$(neural completion bash)"'),
    "zsh": ("~/.zfunc/_neural", "with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc"),
    "fish": ("~/.config/fish/completions/neural.fish", "or at once: neural completion fish | source"),
}
"""Where the script goes, and what else to know."""
VARIABLE = "_NEURAL_COMPLETE"
"""By it the script asks `neural` for completions; click makes it of the command's name."""


@click.command()
@click.argument("shell", type=click.Choice(list(PLACES)))
def command(shell: str) -> None:
    """Print a script for your shell: it completes verbs, options, programs, runs, layers and codes.

    \b
    $ neural completion bash > ~/.local/share/bash-completion/completions/neural
    $ neural completion zsh > ~/.zfunc/_neural
    $ neural completion fish > ~/.config/fish/completions/neural.fish

    Its first lines say where it goes. The next shell that is started has it.
    """
    from neural.cli.main import main

    found = get_completion_class(shell)
    assert found is not None   # click knows these three
    head, _, body = found(main, {}, "neural", VARIABLE).source().partition("\n")
    place, more = PLACES[shell]
    where = f"# goes into {place}\n# {more}"
    # the first line of zsh's script must stay the first: it says what is completed
    click.echo(f"{head}\n{where}\n{body}" if head.startswith("#") else f"{where}\n{head}\n{body}")
