"""Problems to compare methods on: seven with a known optimum, and the real ones of the paper.

A problem is a function from a seed to a `Benchmark`.  To add one, write that function in a file of its own
and give it a line below; what it needs beyond NumPy it imports when it is called.
"""

from __future__ import annotations

from collections.abc import Callable

from boca.domain.errors import InvalidInput
from boca.domain.space import whole_number
from boca.problems import gp_samples, newsgroups, supernova, synthetic
from boca.problems.benchmark import Benchmark

__all__ = ["Benchmark", "get", "names"]

_REGISTRY: dict[str, Callable[[int], Benchmark]] = {
    "gp-smooth": gp_samples.smooth,
    "gp-rough": gp_samples.rough,
    "currin": synthetic.currin,
    "hartmann3": synthetic.hartmann3,
    "hartmann6": synthetic.hartmann6,
    "borehole": synthetic.borehole,
    "branin": synthetic.branin,
    "supernova": supernova.supernova,
    "newsgroups": newsgroups.newsgroups,
    "newsgroups-small": newsgroups.newsgroups_small,
}


def names() -> tuple[str, ...]:
    """Return the names that `get` knows, in the order in which the paper shows them."""
    return tuple(_REGISTRY)


def get(name: str, *, seed: int = 0) -> Benchmark:
    """Return the problem of this name.

    The seed picks the draw if a problem is random; the others are the same for every seed, and only store it.
    """
    if name not in names():
        raise InvalidInput(f"{name!r} is not a problem; the name must be one of {', '.join(names())}.")
    number = whole_number(seed, "seed")
    if number < 0:
        raise InvalidInput(f"seed must not be negative; got {seed!r}.")
    return _REGISTRY[name](number)
