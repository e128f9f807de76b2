"""Promises that every mechanism, every layer and every entry keeps, ours and yours; broken ones are told in words.

    from neural.contract.promises import promises_of

    for promise in promises_of(Fading):
        promise()           # AssertionError, in words, where it is broken
"""
