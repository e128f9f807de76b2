"""Name of this package on the package index, and the commands that install its extras.

The import and the command are `neural`; that name belongs to another project on the index.
"""

from __future__ import annotations

DISTRIBUTION_NAME = "neural-lab"


def format_install_command(extra: str) -> str:
    """The pip command that installs an extra. Double quotes work in every shell, cmd.exe too."""
    return f'pip install "{DISTRIBUTION_NAME}[{extra}]"'
