"""Export of networks as standalone Python source that needs torch alone.

The exporter copies the source text of the classes and functions that the network uses, so that the
exported file computes the same (docs/decisions/0004). Two modules may define different things under
one name: one of them is renamed, at its definition and at every reference.

    scopes.py            which names in a statement are names of its module, not local variables
    symbols.py           meaning of such a name: a definition to copy, or an import
    definitions.py       one copied definition: what is removed, what is renamed
    bundle.py            all definitions and imports that a file needs, and their names
    standalone_file.py   Network → Python file
"""
