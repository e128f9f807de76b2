"""Contract tests: rules that every attention mechanism, layer and other registry entry must keep.

They are for built-in entries and for your own, such as the mechanism `Fading`:

from neural.testing.contract import check_contract, collect_checks

for check in collect_checks(Fading):
    check()           # raises AssertionError with an explanation if a rule is broken

check_contract(Fading)    # all of them; one line per cause of failures
"""
