"""Focus models: select the one of many segments that decides the label, from labels alone."""
