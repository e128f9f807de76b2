"""Contract tests for mechanisms, layers and other registry entries, built-in or your own.

from neural.testing.contract import collect_checks

for check in collect_checks(Fading):
    check()           # AssertionError with an explanation where a rule is broken
"""
