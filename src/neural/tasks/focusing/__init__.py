"""Focus models: which of many segments matters, and how the choice of loss decides what is learned."""
