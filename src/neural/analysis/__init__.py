"""Statistics of runs: intervals, significance, correlation, change points, assignment."""
