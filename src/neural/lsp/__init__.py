"""Language server for `.neural` programs and experiment files.

positions    line and character as editors count them ↔ offsets
outline      text → networks, sections and calls; works for unfinished programs too
document     a text with its outline, diagnostics, networks and symbols
lookup       offset → class of a layer, loss or optimizer, or one of its arguments
completion   text and offset → completions
hover        text and offset → explanation of the word there
server       the language server protocol (pygls)
"""
