"""Command line: one file per subcommand, each defining `command`; `main` is the entry point.

A command calls a function in `workflows` with its arguments, prints the result and sets the exit
code. Files that start with `_` are shared by several commands. All commands are imported for
`neural --help` and shell completion, so torch, numpy and pydantic are imported inside functions.
"""
