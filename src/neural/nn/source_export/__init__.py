"""Export of networks as standalone Python source that needs torch alone.

The exporter copies the definitions that run here, so that the two cannot differ
(docs/decisions/0004). A definition is identified by module and name, so two modules may use one
name for different things: one of them is renamed, at its definition and at every reference.

    scopes.py            names of a statement that belong to its module
    symbols.py           meaning of such a name: a definition to copy, or an import
    definitions.py       one copied definition: what is removed, what is renamed
    bundle.py            all definitions and imports that a file needs, and their names
    standalone_file.py   Network → Python file
"""
