"""A model under study: load any, give it inputs, read its logits and losses."""
