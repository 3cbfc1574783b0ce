"""A parameter as an axis: its scale, its positions, its ends."""

from __future__ import annotations

import numpy as np
import pytest

from boca import Choice, Float, Int, Space
from boca.domain.errors import InvalidInput
from boca.plots.axis import Axis, axis_of, marks
from boca.plots.study import study
from plots.hills import go, optimizer


@pytest.mark.parametrize(
    ("parameter", "scale", "is_whole", "ends"),
    [
        (Float(0.5, 2.0), "linear", False, (0.5, 2.0)),
        (Float(0.5, 2.0, log=True), "log", False, (0.5, 2.0)),
        (Int(1, 9), "linear", True, (1.0, 9.0)),
        (Int(1, 9, log=True), "log", True, (1.0, 9.0)),
        (Choice(["a", "b", "c"]), "choice", False, (0.0, 2.0)),
    ],
)
def test_every_kind_of_parameter_is_an_axis(parameter, scale, is_whole, ends):
    axis = Axis("p", parameter)
    assert (axis.scale, axis.is_whole, axis.ends) == (scale, is_whole, ends)


@pytest.mark.parametrize("parameter", [Float(1.0, 100.0, log=True), Int(-3, 4), Int(1, 1000, log=True)])
def test_ordered_values_stand_where_they_are(parameter):
    axis = Axis("p", parameter)
    values = [parameter.from_unit(u) for u in (0.0, 0.3, 1.0)]
    assert axis.positions(values).tolist() == values
    assert axis.at(parameter.to_unit(values)) == pytest.approx(values)


def test_options_stand_at_whole_numbers_and_none_is_one():
    axis = Axis("p", Choice(["a", None, 3]))
    assert axis.options == ["a", "None", "3"]
    assert axis.positions([3, "a", None]).tolist() == [2.0, 0.0, 1.0]
    assert axis.at(np.array([0.0, 0.5, 1.0])).tolist() == [0.0, 1.0, 2.0]


def test_a_name_that_is_none_of_the_space_is_refused_with_the_argument():
    with pytest.raises(InvalidInput, match=r"y must be one of \['a'\]; got 'b'"):
        axis_of(Space(a=Float(0, 1)), "b", "y")


def test_marks_say_what_became_of_every_trial():
    opt = go(optimizer(), 3, failing=(1,))
    opt.ask()
    found = marks(study(opt))
    assert [t.number for t in found.trials] == [0, 1, 2, 3]
    assert found.failed.tolist() == [False, True, False, False]
    assert np.isnan(found.value).tolist() == [False, True, False, True]
    assert found.cost == pytest.approx([t.cost for t in opt.history])
    assert found.at_target.tolist() == [opt.problem.is_target(t.z) for t in opt.history]
    complete = marks(study(opt), complete=True)
    assert [t.number for t in complete.trials] == [0, 2]
    assert complete.along(Axis("N", opt.problem.fidelity["N"])).tolist() == [
        opt.history[0].z["N"],
        opt.history[2].z["N"],
    ]
