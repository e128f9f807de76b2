"""Text → Program → Network → the shape after every layer. Knows nothing of torch, so `neural check` is quick.

lexer, parser   text → `Program` (syntax.py), with every comment and place
check           `Program` → `Network` (network.py), by the declarations in a `Catalogue`
printer, json   `Program` → text again
"""
