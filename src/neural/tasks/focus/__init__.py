"""Focus models: learn which of many segments decides the label, supervised by labels alone."""
