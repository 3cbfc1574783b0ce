"""Real tuning tasks: trainings that were made, networks fitted to such trainings, and searches that run; see README.md.

`make real` runs every method on the half to tune on, in an environment of its own.
"""
