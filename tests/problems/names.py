"""The synthetic problems by name, and points by their coordinates."""

from __future__ import annotations

NAMES = ("gp-smooth", "gp-rough", "currin", "hartmann3", "hartmann6", "borehole", "branin")
SYNTHETIC = NAMES[2:]
SAMPLES = NAMES[:2]


def point(prefix, *values):
    return {f"{prefix}{i}": value for i, value in enumerate(values, start=1)}


def xs(*values):
    return point("x", *values)


def zs(*values):
    return point("z", *values)
