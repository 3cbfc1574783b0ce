"""Exact Gaussian-process regression on NumPy and SciPy: arrays in, arrays out.

Nothing here knows what the inputs and the values stand for.
"""
