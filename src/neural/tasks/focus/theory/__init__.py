"""Gradient flow of focus models in the linear orthogonal setting, solved (numpy and scipy only).

setting.py       C classes, m segments, relative learning rate of the focus; scores ↔ focus
laws.py          loss, incentive and margin rate of soft, hard, LVML and Rényi paradigms
numerics.py      integrals of smooth functions, and their inverse
trajectory.py    closed-form flows of focus and classifier; hybrids and their switches
annealed.py      Rényi orders that change in time, among them the steepest; numerical integration
asymptotics.py   1 − focus for large times
advice.py        which schedule to train with, for C, m and a budget
overview.py      all results for one setting
linear_model.py  the dataset, and gradient descent on the linear model
"""
