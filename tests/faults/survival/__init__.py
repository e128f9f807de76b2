"""What a training has to survive, one fault per file: each has a function `survive(bench)` that tells what it saw."""
