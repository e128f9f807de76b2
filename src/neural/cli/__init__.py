"""Command line: one file per verb, each defining `command`; `main` is the entry point.

Arguments become a call of a function in `workflows`, its result becomes printed text and an exit
code. Files that start with `_` are shared by several verbs. All verbs are imported for
`neural --help` and shell completion, so torch, numpy and pydantic are imported inside functions.
"""
