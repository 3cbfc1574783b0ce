"""The experiments of the paper's figures: problems, methods, seeds, and how long they take.

[K17] Kandasamy, Dasarathy, Schneider, Poczos: Multi-fidelity Bayesian Optimisation with Continuous Approximations,
ICML 2017.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from boca.bench.runner import Cell
from boca.domain.errors import InvalidInput

OF_THE_PAPER = ("boca-paper", "gp-ucb", "gp-ei", "mf-gp-ucb", "mf-sko")


@dataclass(frozen=True)
class Experiment:
    """What one figure of the paper shows; `boca` is beside the paper's five methods."""

    problems: Sequence[str]
    methods: Sequence[str] = ("boca", *OF_THE_PAPER)
    seeds: int = 20


EXPERIMENTS: Mapping[str, Experiment] = {
    "3": Experiment(("gp-smooth", "gp-rough", "currin", "hartmann3", "hartmann6", "borehole")),
    "4a": Experiment(("branin",), ("boca", *OF_THE_PAPER, "mf-gp-ucb-3", "mf-sko-3")),
    "4b": Experiment(("supernova",), seeds=10),
    "4c": Experiment(("newsgroups-small",), seeds=10),
}

# Seconds of one run of boca and of the paper's methods in their order: the overhead columns of docs/benchmarks.md, of a
# small virtual machine with both cores busy; None where no run was ever finished.  Budgets in seconds stand as they
# are; that of newsgroups is 40 evaluations of 358 s at the target.
SECONDS: Mapping[str, Sequence[float | None]] = {
    "gp-smooth": (0.6, 4.2, 3.6, 2.1, 7.3, 3.9),
    "gp-rough": (0.4, 10.0, 2.4, 1.5, 9.4, 3.4),
    "currin": (5.2, 7.5, 13.0, 6.1, 19.0, 18.0),
    "hartmann3": (13.0, 16.0, 9.6, 6.5, 30.0, 400.0),
    "hartmann6": (98.0, 160.0, 35.0, 45.0, 90.0, None),
    "borehole": (33.0, 50.0, 34.0, 33.0, 56.0, None),
    "branin": (4.1, 7.0, 5.2, 5.9, 29.0, 170.0),
    "supernova": (90.0,) * 6,
    "newsgroups-small": (300.0,) * 6,
    "newsgroups": (14_320.0,) * 6,
}


def named(figure: str) -> dict[str, Experiment]:
    """Return the experiment of a figure by its name; "all" stands for all of them."""
    if figure == "all":
        return dict(EXPERIMENTS)
    if figure not in EXPERIMENTS:
        raise InvalidInput(
            f"--figure {figure} is not known; it must be one of {', '.join(EXPERIMENTS)}, all with runs, or 1, 2, "
            "good-set, gain, bound without. Try --figure 3."
        )
    return {figure: EXPERIMENTS[figure]}


def seconds(cell: Cell) -> float | None:
    """Return how long a run took where it was measured; None if it never was."""
    names = ("boca", *OF_THE_PAPER)
    method = cell.method.removesuffix("-3")
    if cell.problem not in SECONDS or method not in names:
        return None
    return SECONDS[cell.problem][names.index(method)]


def forecast(cells: Iterable[Cell]) -> str:
    """Return in words how long the cells take on one core, and which were never measured."""
    known, unknown = 0.0, set()
    for cell in cells:
        took = seconds(cell)
        if took is None:
            unknown.add(f"{cell.method} on {cell.problem}")
        else:
            known += took
    words = f"About {known / 3600.0:.1f} hours on one core"
    return f"{words}, and longer: never measured were {', '.join(sorted(unknown))}." if unknown else f"{words}."
