"""Linear assignment: pair rows with columns so that the sum of their costs is the smallest.

    rows, columns = solve_assignment(cost)
    cost[rows, columns].sum()

Shortest augmenting paths (Crouse, 2016): every row takes its cheapest column if that is free; each
other row then finds the cheapest way of rearranging the pairs so far, a shortest path by Dijkstra's
algorithm. Time grows with the cube of the size at worst. Plain lists instead of arrays: tables have
a few rows (the heads of a layer), and there a call of numpy costs more than the loop that it saves.
"""

from __future__ import annotations

import math

import numpy as np


def solve_assignment(cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the paired rows, ascending, and of their columns; min(rows, columns) pairs.

    ValueError if a cost is not finite.
    """
    if not np.isfinite(cost).all():
        raise ValueError("costs of an assignment must be finite")
    if len(cost) > cost.shape[1]:
        columns, rows = solve_assignment(cost.T)
        order = rows.argsort()
        return rows[order], columns[order]
    row_count, column_count = cost.shape
    table = cost.tolist()
    # Dual variables: row_price[i] + column_price[j] ≤ cost[i, j], with equality for pairs.
    row_price = [min(row) for row in table]
    column_price = [0.0] * column_count
    row_of, column_of = [-1] * column_count, [-1] * row_count
    for i, row in enumerate(table):
        cheapest = row.index(row_price[i])
        if row_of[cheapest] < 0:
            row_of[cheapest], column_of[i] = i, cheapest
    for i in range(row_count):
        if column_of[i] < 0:
            _add_row(i, table, row_price, column_price, row_of, column_of)
    return np.arange(row_count), np.array(column_of, dtype=np.int64)


def _add_row(
    start: int,
    table: list[list[float]],
    row_price: list[float],
    column_price: list[float],
    row_of: list[int],
    column_of: list[int],
) -> None:
    """Pair one more row, along the shortest path to a free column. Changes the lists."""
    distance = [math.inf] * len(row_of)
    previous_row = [-1] * len(row_of)
    remaining = list(range(len(row_of)))
    visited: list[int] = []
    i, shortest = start, 0.0
    while True:
        row, offset = table[i], shortest - row_price[i]
        nearest, shortest = 0, math.inf
        for position, j in enumerate(remaining):
            candidate = offset + row[j] - column_price[j]
            if candidate < distance[j]:
                distance[j], previous_row[j] = candidate, i
            else:
                candidate = distance[j]
            # of equally near columns, a free one ends the search
            if candidate < shortest or (candidate == shortest and row_of[j] < 0):
                nearest, shortest = position, candidate
        j = remaining[nearest]
        if row_of[j] < 0:
            break
        remaining[nearest] = remaining[-1]
        remaining.pop()
        visited.append(j)
        i = row_of[j]
    row_price[start] += shortest
    for column in visited:
        change = shortest - distance[column]
        row_price[row_of[column]] += change
        column_price[column] -= change
    while True:  # along the path, every row moves to the next column
        i = previous_row[j]
        row_of[j] = i
        column_of[i], j = j, column_of[i]
        if i == start:
            return
