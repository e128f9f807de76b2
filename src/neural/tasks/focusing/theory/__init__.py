"""Focus models in the linear orthogonal setting, where everything can be solved (numpy and scipy only).

setting.py     C classes, m segments, the focus's rate; scores ↔ focus
law.py         what a paradigm's law of motion consists of; soft.py and renyi.py (hard, LVML and all between) hold them
laws.py        the laws by name
integral.py    integrals that are asked for at many places, and turned round
motion.py      focus and classifier together, from any start: place by time, time by place
course.py      motions one after the other: hybrids, switched where the next law pulls harder, or at the best place
annealed.py    the Rényi order that pulls hardest at every moment, and any other order in time
flow.py        the equations of motion, integrated step by step
late.py        how fast the focus finishes
advice.py      which schedule to train by, for C, m and a budget, and why
overview.py    all of it for one setting, as numbers
linear.py      the data set itself, and gradient descent on the real linear model
"""
