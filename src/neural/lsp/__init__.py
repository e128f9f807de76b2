"""What editors ask about a program: text and a place → an answer. All but server.py are plain functions.

positions    line and character as editors count them ↔ places in the text
outline      text → networks, sections and calls, also where half of them is not written yet
document     a text with what can be known of it: outline, diagnostics, networks
meaning      a place → the declaration, the argument or the entry that stands there
completion, hover, symbols, formatting        the answers
experiments  what is wrong with an experiment file
server       the protocol around all that (pygls)
"""
