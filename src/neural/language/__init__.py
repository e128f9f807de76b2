"""The `.neural` language: text → Program → Network → the shape after every layer. No torch.

lexer, token_cursor, parser            text → `Program` (syntax.py), with comments and spans
declaration, argument_types, layer     what a program may call, and with which arguments
binder, sections, assembly, check      `Program` → `Network` (network.py), or diagnostics
shapes, shape_inference                shapes and costs
formatter, program_json, summary       `Program` → text or JSON; `Network` → table
diagnostic_codes, explanations/        what `neural explain` shows
"""
