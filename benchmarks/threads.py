"""Training steps with one thread and with two, by the size of the network.

    python benchmarks/threads.py

Prints medians, in turns, their ratio (two threads over one: above 1, one thread is faster), and the
ratio of the fastest steps, which other programs on the machine disturb least. `MIN_PARALLEL_WORK` of
training/cpu_threads.py is the work (parameters × rows) from which the second thread is used.
"""

import statistics
import time

import torch
from torch import nn

WIDTHS = {32: (32, 128, 256, 512, 1024), 256: (64, 128, 256), 2048: (32, 64, 128)}
"""Units of a layer by the number of rows."""
ROUNDS, STEPS = 5, 15


def measure(model: nn.Module, inputs: torch.Tensor) -> dict[int, list[float]]:
    """Seconds of each step by the number of threads."""
    optimizer = torch.optim.AdamW(model.parameters())
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for threads, measured in seconds.items():
            torch.set_num_threads(threads)
            for step in range(STEPS + 1):
                start = time.perf_counter()
                optimizer.zero_grad()
                model(inputs).square().mean().backward()
                optimizer.step()
                if step:  # the first one starts the threads
                    measured.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Print a line per network."""
    print("rows  parameters      work  1 thread  2 threads   ratio  of the fastest")
    for rows, widths in WIDTHS.items():
        for width in widths:
            model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
            parameters = sum(weight.numel() for weight in model.parameters())
            seconds = measure(model, torch.randn(rows, width)).values()
            one, two = map(statistics.median, seconds)
            fastest_one, fastest_two = map(min, seconds)
            print(
                f"{rows:4}  {parameters:10,}  {parameters * rows:8.1e}  {1e3 * one:6.2f} ms  "
                f"{1e3 * two:7.2f} ms  {two / one:6.2f}  {fastest_two / fastest_one:14.2f}"
            )


if __name__ == "__main__":
    main()
