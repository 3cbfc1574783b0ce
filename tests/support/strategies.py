"""Strategies as tests need them."""

from __future__ import annotations

import boca
from boca.study.spec import off_values

EARLIER = boca.Boca(surrogate=boca.Surrogate(**off_values(boca.Surrogate)), **off_values(boca.Boca))
"""The default with what came later switched off: the model sees values and fidelities as they are."""
