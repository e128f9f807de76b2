"""Theory of focus models: gradient flow of a linear model, solved (numpy and scipy only).

setting.py       the linear model: C classes, m segments, learning rate of the focus; scores ↔ focus
laws.py          loss and rates of change for soft, hard, marginal likelihood and Rényi losses
numerics.py      integrals of smooth functions, and their inverse
trajectory.py    closed-form flows of focus and classifier; hybrids, which switch the loss once
annealed.py      Rényi losses whose order changes in time; numerical integration
asymptotics.py   1 − focus for large times
advice.py        which schedule to train with, for C, m and a budget
overview.py      all results for one setting
linear_model.py  the dataset, and gradient descent on the linear model
"""
