"""Exact Gaussian-process regression on NumPy and SciPy: arrays in, arrays out.

Nothing here knows of trials, fidelities or users.
"""
