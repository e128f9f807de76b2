"""Words that all the others share: names (registry) and mistakes (diagnostics). No torch."""
