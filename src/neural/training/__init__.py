"""Module + task → a finished run.

optimizers/   one file per optimizer
schedules/    one file per way of changing the learning rate
"""
