"""The words that say nothing about what a text is about."""

from __future__ import annotations

_LISTED = """
    a about above after again against ago all almost along already also although always am among an and another any
    anybody anyone anything anywhere are around as at away back be became because become becomes been before behind
    being below beside between beyond both but by came can cannot could did do does doing done down during each
    either else enough even ever every everybody everyone everything everywhere except few for from further get gets
    getting give given go goes going gone got had has have having he her here hers herself him himself his how
    however i if in indeed instead into is it its itself just keep kept last least less let like likely made make
    makes making many may maybe me might mine more moreover most much must my myself near nearly neither never
    nevertheless next no nobody none nor not nothing now nowhere of off often on once one only onto or other others
    otherwise ought our ours ourselves out over own per perhaps put quite rather really said same saw say says see
    seem seemed seems seen several shall she should since so some somebody someone something sometimes somewhere
    soon still such take taken takes than that the their theirs them themselves then there therefore these they
    thing things this those though three through throughout thus to together too took toward towards two under
    unless until up upon us use used uses using very was way we well went were what whatever when whenever where
    whereas wherever whether which while who whoever whole whom whose why will with within without would yes yet you
    your yours yourself yourselves
    aren couldn d didn doesn don hadn hasn haven isn ll m re s shouldn t ve wasn weren won wouldn
"""
SMALL = frozenset(_LISTED.split())
"""English, in lower case; at the end what is left of "he'll", "it's" and "wouldn't" when the apostrophe parts them."""
