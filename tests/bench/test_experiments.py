"""The experiments of the paper's figures are the paper's, and their forecast is a sum of what was measured."""

from __future__ import annotations

import pytest

from boca import problems
from boca.bench import command, experiments, methods
from boca.bench.runner import Cell
from boca.domain.errors import InvalidInput


def test_every_experiment_has_the_five_methods_and_the_seeds_of_the_paper() -> None:
    for figure, shown in experiments.EXPERIMENTS.items():
        assert set(shown.methods) >= {"boca-paper", "gp-ucb", "gp-ei", "mf-gp-ucb", "mf-sko"}
        assert shown.seeds == (20 if figure in ("3", "4a") else 10)
        assert all(name in problems.names() for name in shown.problems)
        assert all(name in methods.METHODS for name in shown.methods)
    synthetic = {name for figure in ("3", "4a") for name in experiments.EXPERIMENTS[figure].problems}
    assert synthetic == set(command.DEFAULT_PROBLEMS)
    assert experiments.named("all") == dict(experiments.EXPERIMENTS)


def test_a_figure_that_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"--figure 5 .* 3, 4a, 4b, 4c.*--figure 3"):
        experiments.named("5")


def test_the_forecast_adds_up_what_was_measured_and_names_what_never_was() -> None:
    currin = [Cell("currin", "gp-ucb", seed) for seed in range(20)]
    assert experiments.forecast(currin) == "About 0.1 hours on one core."  # 20 x 13 s
    supernova = [Cell("supernova", name, seed) for name in experiments.OF_THE_PAPER for seed in range(8)]
    assert experiments.forecast(supernova) == "About 1.0 hours on one core."
    words = experiments.forecast([*supernova, Cell("hartmann6", "mf-sko", 0), Cell("toy", "random", 0)])
    assert words.startswith("About 1.0 hours on one core, and longer")
    assert "mf-sko on hartmann6, random on toy" in words
    assert experiments.seconds(Cell("branin", "mf-sko-3", 0)) == experiments.seconds(Cell("branin", "mf-sko", 0))
