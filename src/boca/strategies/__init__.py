"""Strategies: one paper, one file.  A strategy is a pure function of problem, history, budget and random numbers."""

from boca.strategies.base import Strategy
from boca.strategies.boca import Boca, Theorem
from boca.strategies.gp_ei import GPEI
from boca.strategies.gp_ucb import GPUCB
from boca.strategies.mf_gp_ucb import MFGPUCB
from boca.strategies.mf_sko import MFSKO
from boca.strategies.random import RandomSearch

__all__ = ["GPEI", "GPUCB", "MFGPUCB", "MFSKO", "Boca", "RandomSearch", "Strategy", "Theorem"]
