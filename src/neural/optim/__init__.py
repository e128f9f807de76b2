"""Optimizers and learning-rate schedules.

optimizer.py          base class of optimizers
optimizers/           one file per optimizer
schedule.py           base classes of schedules
schedules/            one file per schedule: the learning rate as a function of the step
optimizer_factory.py  training settings → optimizer, schedule, torch optimizers
batched_muon.py       Muon's update for many matrices at once, in float32
catalogue.py          the built-in layers, losses and optimizers that `.neural` programs can name
"""
