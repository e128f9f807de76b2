"""Statistics of few trainings and of correlated data: estimates with intervals, tests, matching.

Nothing here knows a task, a run or torch. Distributions, ranks and assignments are those of scipy,
which is imported where it is needed: it takes as long to import as the rest of a command.
"""
