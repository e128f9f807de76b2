"""Language server for `.neural` programs and experiment files.

positions    line and character as editors count them ↔ offsets
outline      text → networks, sections and calls, also of unfinished programs
document     a text with its outline, diagnostics, networks and symbols
lookup       offset → declaration, argument or registry entry
completion, hover    text and offset → answers; plain functions
server       the protocol (pygls)
"""
