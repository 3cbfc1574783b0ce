"""Optuna: a sampler that moves fidelities, and studies from there to here and back.

What a strategy must know later is stored with Optuna's trials, in the user attributes `boca:why`, `boca:reason` and
`boca:cost`.
"""

from __future__ import annotations

from boca.domain.errors import BocaError

try:
    import optuna as _optuna  # noqa: F401
    from optuna.search_space import IntersectionSearchSpace as _InOptuna5  # noqa: F401
except ImportError as missing:
    raise BocaError("boca.integrations.optuna needs Optuna 5 or newer. Run `pip install 'boca[optuna]'`.") from missing

from boca.integrations.optuna_exchange import best_at_target, from_optuna, to_optuna
from boca.integrations.optuna_sampler import BocaPruner, BocaSampler, SpaceChanged

__all__ = ["BocaPruner", "BocaSampler", "SpaceChanged", "best_at_target", "from_optuna", "to_optuna"]
