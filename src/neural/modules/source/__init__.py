"""Classes as source text that needs torch alone: what a class uses comes along.

The exporter writes the very code that runs here, so that the two cannot drift apart
(docs/decisions/0004). Definitions are told apart by module and name, so two modules may use one
name for different things: one of them is renamed, at its definition and at every reference.

    scopes.py    which names of a statement belong to its module
    symbols.py   what such a name means: a definition to copy, or an import
    pieces.py    a definition as it is written: what is left out, what is renamed
    bundle.py    all definitions and imports that a file needs, and their names
"""
