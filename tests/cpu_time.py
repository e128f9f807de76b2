"""Guard against super-linear algorithms without measuring speed.

The inputs of these tests take a second or less. A quadratic algorithm would take minutes, so the limit
can be wide enough for a slow or busy machine.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

MAX_CPU_SECONDS = 20


@contextmanager
def limit_cpu_time() -> Iterator[None]:
    start = time.process_time()
    yield
    seconds = time.process_time() - start
    assert seconds < MAX_CPU_SECONDS, f"{seconds:.1f} s of processor time"
