"""Curves by hand, and pictures of them: where they start, what their bars span, and the same bytes every time."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boca.bench import figures, methods, records
from boca.bench.figures import Curve
from boca.bench.table import FLOOR
from boca.domain.errors import InvalidInput

Make = Callable[..., dict[str, Any]]

SHARES = np.array([1.0, 2.0, 3.0, 4.0])


# Curves -----------------------------------------------------------------------------------------------------------


def test_a_curve_starts_where_every_seed_has_had_a_query_at_the_target(make_record: Make) -> None:
    quick = make_record([0.5, 2.5], [-3.0, -1.0])
    slow = make_record([0.5, 1.5, 3.0], [None, -5.0, -4.0])
    curve = figures.curve([quick, slow], SHARES)
    assert curve.spent.tolist() == [2.0, 3.0, 4.0]
    assert curve.mean.tolist() == [4.0, 2.5, 2.5]  # of 3 and 5, 1 and 4
    np.testing.assert_allclose(curve.error, [1.0, 1.5, 1.5])  # of two: half the distance
    assert figures.curve([quick], SHARES).spent.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_the_standard_error_of_three(make_record: Make) -> None:
    runs = [make_record([1.0], [-regret]) for regret in (1.0, 2.0, 6.0)]
    curve = figures.curve(runs, SHARES)
    np.testing.assert_allclose(curve.mean, 3.0)
    np.testing.assert_allclose(curve.error, math.sqrt((4 + 1 + 9) / 2 / 3))


def test_a_query_counts_at_the_point_that_it_meets_but_for_rounding(make_record: Make) -> None:
    curve = figures.curve([make_record([1.0, 3.0 + 1e-12], [-2.0, -1.0])], SHARES)
    assert curve.mean.tolist() == [2.0, 2.0, 1.0, 1.0]


def test_a_run_that_never_reached_the_target_leaves_no_curve(make_record: Make) -> None:
    curve = figures.curve([make_record([1.0], [-2.0]), make_record([1.0], [None])], SHARES)
    assert len(curve.spent) == len(curve.mean) == len(curve.error) == 0


def test_one_seed_has_no_error(make_record: Make) -> None:
    assert np.isnan(figures.curve([make_record([1.0], [-2.0])], SHARES).error).all()


def test_regrets_are_floored_and_values_are_not(make_record: Make) -> None:
    assert figures.curve([make_record([1.0], [1e-12])], SHARES).mean.tolist() == [FLOOR] * 4
    falling = make_record([1.0, 2.0, 3.0], [-5.0, -4.0, -7.0], optimum=None, direction="minimize")
    assert figures.curve([falling], SHARES).mean.tolist() == [-5.0, -5.0, -7.0, -7.0]


def test_a_curve_agrees_with_the_tables(make_record: Make) -> None:
    rng = np.random.default_rng(0)
    for direction in ("maximize", "minimize"):
        values = [float(v) if rng.random() < 0.5 else None for v in rng.normal(size=40)]
        spent = np.sort(rng.uniform(0.0, 4.0, 40)).tolist()
        run = make_record(spent, values, direction=direction, optimum=5.0 if direction == "maximize" else -5.0)
        curve = figures.curve([run], figures.grid([run]))
        quarters = [figures.POINTS * k // 4 - 1 - (figures.POINTS - len(curve.mean)) for k in (1, 2, 3, 4)]
        assert [curve.mean[i] for i in quarters] == pytest.approx(records.regrets(run))


def test_bars_span_one_standard_error_and_end_at_the_floor() -> None:
    curve = Curve(SHARES[:2], np.array([1e-3, 1.0]), np.array([5.0, 0.25]))
    down, up = figures.bars(curve, floor=FLOOR)
    assert (curve.mean - down).tolist() == pytest.approx([FLOOR, 0.75])
    assert up.tolist() == [5.0, 0.25]
    assert figures.bars(curve)[0].tolist() == [5.0, 0.25]


def test_a_linear_axis_shows_what_matters() -> None:
    def curve(*means: float, first: int = 0) -> Curve:
        return Curve(SHARES[first:], np.array(means), np.full(len(means), 0.5))

    curves = {
        "boca": curve(-8.0, -2.0, -1.5, first=1),  # late: counted from where it starts
        "gp-ucb": curve(-4.0, -3.0, -2.0, -1.0),  # -4 at a quarter
        "random": curve(-900.0, -500.0, -100.0, -90.0),
    }
    # from -8 to -1 + 0.5, and a twentieth more on both sides
    assert figures.limits(curves, 4.0, 1.0) == pytest.approx((-8.375, -0.125))
    mirrored = {name: Curve(c.spent, -c.mean, c.error) for name, c in curves.items()}
    assert figures.limits(mirrored, 4.0, -1.0) == pytest.approx((8.375, 0.125))
    assert figures.limits({"random": curves["random"]}, 4.0, 1.0)[0] < -900.0


def test_a_linear_axis_of_one_value_has_a_height() -> None:
    low, high = figures.limits({"boca": Curve(SHARES, np.ones(4), np.full(4, math.nan))}, 4.0, 1.0)
    assert low < 1.0 < high


# Looks ------------------------------------------------------------------------------------------------------------


def test_no_two_methods_look_alike_in_colour_or_without_it() -> None:
    own = [f"own:{letter}" for letter in "abcdef"]
    looks = figures.styles([*figures.STYLES, *own])
    assert set(methods.METHODS) <= set(looks)
    for one, other in itertools.combinations(looks.values(), 2):
        assert (one.marker, one.filled) != (other.marker, other.filled)
        assert one.line != other.line
    colors = [look.color for look in figures.STYLES.values() if look.filled]  # a variant has the color of its method
    assert len(set(colors)) == len(colors)


def test_a_method_looks_the_same_in_every_company() -> None:
    assert figures.styles(["random", "boca", "own:a"]) == {
        "boca": figures.STYLES["boca"],
        "random": figures.STYLES["random"],
        "own:a": figures.styles(["own:a"])["own:a"],
    }
    assert list(figures.styles(reversed(figures.STYLES))) == [
        "boca",
        "boca-paper",
        "gp-ucb",
        "gp-ei",
        "mf-gp-ucb",
        "mf-sko",
        "random",
        "boca-paper-sobol",
        "boca-learned",
        "boca-paper-c1",
        "boca-paper-theorem",
        "mf-gp-ucb-3",
        "mf-sko-3",
    ]


# Pictures ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def runs(make_record: Make) -> records.Runs:
    """Three seeds of three methods on a known problem and on one of ours, both with an optimum, and on one without."""
    rng = np.random.default_rng(1)

    def run(method: str, seed: int, **others: Any) -> dict[str, Any]:
        first = 3 + seed if method == "boca" else 0
        values = [None] * first + sorted((-rng.lognormal(-2.0, 2.0, 40 - first)).tolist())
        return make_record(np.linspace(0.1, 4.0, 40).tolist(), values, method=method, seed=seed, **others)

    return {
        problem: {m: {s: run(m, s, problem=problem, **others) for s in range(3)} for m in ("boca", "gp-ucb", "random")}
        for problem, others in (
            ("branin", {}),
            ("own:problem", {}),
            ("own:clock", {"optimum": None, "unit": "seconds"}),
        )
    }


def panels(group: records.Runs) -> list[Any]:
    return [axes for axes in figures.draw(group).axes if axes.get_title()]


def test_a_panel_says_what_it_shows(runs: records.Runs) -> None:
    known, own, clock = panels(runs)
    assert known.get_title() == "branin (p = 3, d = 2)"
    assert known.get_xlabel() == "budget in cost units; 3 seeds"
    assert known.get_ylabel() == "simple regret"
    assert known.get_yscale() == "log"
    assert known.get_xlim() == (0.0, 4.0)
    assert {own.get_title(), clock.get_title()} == {"own:problem", "own:clock"}
    (alone,) = panels({"own:clock": runs["own:clock"]})
    assert alone.get_xlabel().splitlines()[0] == "budget in seconds; 3 seeds"
    assert alone.get_ylabel() == "best value"
    assert alone.get_yscale() == "linear"


def test_curves_of_a_panel_start_at_the_first_common_query_and_go_down_in_steps(runs: records.Runs) -> None:
    (panel,) = panels({"branin": runs["branin"]})
    lines = {line.get_color(): line for line in (bar.lines[0] for bar in panel.containers)}
    begins = {name: lines[figures.STYLES[name].color].get_xdata()[0] for name in ("boca", "gp-ucb", "random")}
    assert begins["gp-ucb"] == begins["random"] == pytest.approx(0.1)
    assert begins["boca"] == pytest.approx(0.6)  # seeds 0, 1, 2 begin at 0.4, 0.5, 0.6
    for line in lines.values():
        assert line.get_drawstyle() == "steps-post"
        assert line.get_xdata()[-1] == 4.0
        assert (np.diff(line.get_ydata()) <= 0).all()


def test_bars_of_two_methods_stand_apart_and_end_above_zero(runs: records.Runs) -> None:
    (panel,) = panels({"branin": runs["branin"]})
    places = []
    for container in panel.containers:
        (collection,) = container.lines[2]
        segments = collection.get_segments()
        assert figures.BARS - 1 <= len(segments) <= figures.BARS
        assert min(y for segment in segments for _, y in segment) >= FLOOR * (1 - 1e-9)
        places.append({x for (x, _), _ in segments})
    assert len(places) == 3
    assert all(one.isdisjoint(other) for one, other in itertools.combinations(places, 2))


def test_there_is_one_legend_for_all_panels(runs: records.Runs) -> None:
    for group in (runs, {"branin": runs["branin"]}, runs | {f"own:{i}": runs["branin"] for i in range(2)}):
        figure = figures.draw(group)
        legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
        assert [[text.get_text() for text in legend.get_texts()] for legend in legends] == [
            ["boca", "gp-ucb", "random"]
        ]


def test_a_panel_says_what_it_does_not_show(runs: records.Runs, make_record: Make) -> None:
    runs["branin"]["own:never"] = {0: make_record([1.0], [None])}
    (panel,) = panels({"branin": runs["branin"]})
    assert panel.get_xlabel().split("\n", 1)[0] == "budget in cost units; 1 to 3 seeds"
    assert " ".join(panel.get_xlabel().split("\n")[1:]) == "no query at z* in a run of own:never"
    assert len(panel.containers) == 3

    poor = make_record([0.1, 4.0], [-900.0, -1.0], optimum=None, unit="seconds")
    runs["own:clock"]["random"] = {0: poor}
    (panel,) = panels({"own:clock": runs["own:clock"]})
    bottom, _ = panel.get_ylim()
    assert bottom > -900.0
    assert f"values below {bottom:.3g} are not shown" in " ".join(panel.get_xlabel().split("\n"))


def test_a_problem_on_which_nobody_reached_the_target_has_an_empty_panel(make_record: Make) -> None:
    for others in ({}, {"optimum": None}):
        (panel,) = panels({"branin": {"boca": {0: make_record([1.0], [None], **others)}}})
        assert not panel.containers


def test_files_are_the_same_whenever_they_are_written(runs: records.Runs, tmp_path: Path) -> None:
    import matplotlib

    for problem, by_method in runs.items():
        for method, by_seed in by_method.items():
            for run in by_seed.values():
                records.append(records.path_of(tmp_path, problem, method), run)
    first = figures.write(records.load(tmp_path), tmp_path / "first")
    names = ["regret.png", "regret.svg", "value.png", "value.svg"]
    assert [path.name for path in first] == names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in first[::2])
    assert all(b"<svg" in path.read_bytes() for path in first[1::2])

    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "pink"}):  # a user's taste is not ours
        second = figures.write(records.load(tmp_path), tmp_path / "second")
    script = (
        "import sys; from pathlib import Path; from boca.bench import figures, records\n"
        "figures.write(records.load(Path(sys.argv[1])), Path(sys.argv[1]) / 'third')\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    for path in first:
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()
        assert path.read_bytes() == (tmp_path / "third" / path.name).read_bytes()
    assert len(second) == 4

    runs["branin"]["boca"][0]["trace"]["value"][-1] = 0.0
    third = figures.write({"branin": runs["branin"]}, tmp_path / "other")
    assert [path.name for path in third] == names[:2]
    assert third[0].read_bytes() != first[0].read_bytes()


def test_without_matplotlib_the_error_says_what_to_install(
    runs: records.Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(InvalidInput, match=r"pip install 'boca\[plots\]'"):
        figures.write(runs, tmp_path / "out")
    assert not (tmp_path / "out").exists()
