"""The figures of the report, in the order of the page, from the numbers that the Matplotlib plots show."""

from __future__ import annotations

from collections.abc import Iterator

from boca.plots.study import StudyView
from boca.report import (
    curve_figures,
    feasible_figure,
    front_figures,
    importance_figure,
    model_figures,
    trial_figures,
)
from boca.report.traces import Picture


def pictures(study: StudyView, optimum: float | None = None) -> Iterator[Picture]:
    """Yield every figure of a study; the regret only if the optimum is known."""
    if study.problem.objectives:
        yield from front_figures.fronts(study)
        yield from trial_figures.fidelities(study)
        return
    yield trial_figures.progress(study)
    if optimum is not None:
        yield trial_figures.regret(study, optimum)
    yield from curve_figures.curves(study)
    yield from trial_figures.fidelities(study)
    yield importance_figure.importance(study)
    yield from model_figures.slices(study)
    yield model_figures.map2d(study)
    yield from feasible_figure.feasible_map(study)
    yield from model_figures.information_gaps(study)
    yield from model_figures.hyperparameters(study)
    yield trial_figures.parallel_coordinates(study)
