"""A kernel of the user's own on fidelities: what it may be, and what is said where it is not."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca.domain.errors import InvalidInput


def by_source(a, b):
    return np.where(a["source"] == b["source"], 1.0, 0.5)


@pytest.mark.parametrize(
    ("fidelity", "words"),
    [
        (boca.Space(src=boca.Choice(["a", "b"]), n=boca.Int(1, 9)), r"KeyError\('source'\).*are: 'src', 'n'\."),
        (None, r"KeyError\('source'\).*are: none, so leave fidelity_kernel out"),
    ],
)
def test_a_kernel_with_a_misspelt_name_is_told_the_names(fidelity, words):
    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), fidelity, target={"src": "b"} if fidelity else None)
    strategy = boca.Boca(surrogate=boca.Surrogate(fidelity_kernel=by_source))
    with pytest.raises(InvalidInput, match=words):
        boca.Optimizer(problem, budget=boca.targets(3), strategy=strategy)
