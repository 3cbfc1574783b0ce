"""Spaces: what a value may be, and where it lies in the unit cube."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import boca
from boca import BocaError, Choice, Float, Int, Space
from boca.domain.errors import InvalidInput

always = settings(deadline=None, derandomize=True, max_examples=80)

UNIT = st.floats(0.0, 1.0)
ANY_UNIT = st.floats(-0.5, 1.5)
REAL = st.floats(-1e12, 1e12, allow_subnormal=False)
OPTIONS = st.lists(st.one_of(st.text(max_size=5), st.integers(-9, 9)), min_size=2, max_size=7, unique=True)


@st.composite
def floats(draw):
    """A Float wide enough to tell a million values apart."""
    if draw(st.booleans()):
        low = draw(st.floats(1e-30, 1e30))
        return Float(low, low * draw(st.floats(1.01, 1e30)), log=True)
    low, width = draw(REAL), draw(st.floats(1e-3, 1e12))
    assume(width > 1e-8 * abs(low))
    return Float(low, low + width)


@st.composite
def ints(draw):
    if draw(st.booleans()):
        low = draw(st.integers(1, 2**44))
        return Int(low, draw(st.integers(low + 1, 2**45)), log=True)
    low = draw(st.integers(-(2**51), 2**51 - 1))
    return Int(low, draw(st.integers(low + 1, 2**51)))


def inside(parameter):
    return st.integers(parameter.low, parameter.high)


# Conversions ----------------------------------------------------------------------------------------------------------


@always
@given(floats(), UNIT)
def test_a_float_comes_back_up_to_rounding(parameter, u):
    value = parameter.from_unit(u)
    assert parameter.low <= value <= parameter.high
    back = parameter.from_unit(float(parameter.to_unit([value])[0]))
    tolerance = 1e-12 * value if parameter.log else 4 * math.ulp(max(abs(parameter.low), abs(parameter.high)))
    assert abs(back - value) <= tolerance


@always
@given(floats())
def test_the_ends_of_a_float_are_hit_exactly(parameter):
    assert parameter.to_unit([parameter.low, parameter.high]).tolist() == [0.0, 1.0]
    assert [parameter.from_unit(0.0), parameter.from_unit(1.0)] == [parameter.low, parameter.high]


@always
@given(floats(), UNIT, UNIT)
def test_floats_keep_their_order(parameter, a, b):
    low, high = sorted((a, b))
    assert parameter.from_unit(low) <= parameter.from_unit(high)
    values = [parameter.from_unit(low), parameter.from_unit(high)]
    assert parameter.to_unit(values)[0] <= parameter.to_unit(values)[1]


def test_coordinates_are_fractions_of_the_width_and_on_a_log_scale_of_the_orders_of_magnitude():
    assert Float(2.0, 6.0).to_unit([2.0, 3.0, 5.0, 6.0]).tolist() == [0.0, 0.25, 0.75, 1.0]
    assert Float(2.0, 6.0).from_unit(0.25) == 3.0
    logarithmic = Float(1e-2, 1e2, log=True)
    np.testing.assert_allclose(logarithmic.to_unit([1e-2, 1e-1, 1.0, 1e2]), [0.0, 0.25, 0.5, 1.0], atol=1e-15)
    assert logarithmic.from_unit(0.75) == pytest.approx(10.0, rel=1e-14)
    assert Int(0, 4).to_unit([0, 1, 4]).tolist() == [0.0, 0.25, 1.0]
    np.testing.assert_allclose(Int(1, 16, log=True).to_unit([1, 2, 4, 16]), [0.0, 0.25, 0.5, 1.0], atol=1e-15)
    assert Choice(["a", "b", "c"]).to_unit(["c", "a", "b"]).tolist() == [1.0, 0.0, 0.5]


@always
@given(st.data(), ints())
def test_an_int_comes_back_exactly(data, parameter):
    value = data.draw(inside(parameter))
    u = float(parameter.to_unit([value])[0])
    assert 0.0 <= u <= 1.0
    assert parameter.from_unit(u) == value
    assert type(parameter.from_unit(u)) is int
    assert parameter.snap(np.array([u])).tolist() == [u]


@always
@given(ints())
def test_the_ends_of_an_int_are_the_ends_of_the_unit_interval(parameter):
    assert parameter.to_unit([parameter.low, parameter.high]).tolist() == [0.0, 1.0]
    assert [parameter.from_unit(0.0), parameter.from_unit(1.0)] == [parameter.low, parameter.high]


@pytest.mark.parametrize("make", [lambda: Int(-(2**53), 2**53), lambda: Int(1, 2**53, log=True)])
def test_an_int_too_wide_to_come_back_exactly_is_refused(make):
    try:
        parameter = make()
    except InvalidInput:
        return
    rng = np.random.default_rng(0)
    values = [int(v) for v in rng.integers(parameter.low, parameter.high, size=500)]
    assert [parameter.from_unit(float(u)) for u in parameter.to_unit(values)] == values


@always
@given(st.data(), OPTIONS)
def test_a_choice_comes_back_exactly(data, options):
    parameter = Choice(options)
    value = data.draw(st.sampled_from(options))
    u = float(parameter.to_unit([value])[0])
    assert parameter.from_unit(u) == value
    assert type(parameter.from_unit(u)) is type(value)
    assert parameter.snap(np.array([u])).tolist() == [u]


@always
@example(Choice(["a", "b", "c"]), [1.5, -0.5])
@example(Int(1, 3), [1.5, -0.5])
@given(st.one_of(floats(), ints(), st.builds(Choice, OPTIONS)), st.lists(ANY_UNIT, min_size=1, max_size=20))
def test_snapping_lands_on_points_that_exist_and_stays_there(parameter, us):
    once = parameter.snap(np.array(us))
    assert np.all((once >= 0.0) & (once <= 1.0))
    assert parameter.snap(once).tolist() == once.tolist()
    if not isinstance(parameter, Float):
        values = [parameter.from_unit(float(u)) for u in once]
        assert parameter.to_unit(values).tolist() == once.tolist()


@always
@given(st.data(), ints(), UNIT)
def test_snapping_an_int_takes_the_nearest_one(data, parameter, u):
    assume(not parameter.log)
    value = parameter.from_unit(float(parameter.snap(np.array([u]))[0]))
    exact = parameter.low + u * (parameter.high - parameter.low)
    assert abs(value - exact) <= 0.5 + 1e-3


def test_a_uniform_draw_favours_no_option_of_a_choice():
    parameter = Choice(["a", "b", "c", "d", "e"])
    u = (np.arange(1000) + 0.5) / 1000
    counts = Counter(parameter.from_unit(float(v)) for v in parameter.snap(u))
    assert set(counts) == set("abcde")
    assert max(counts.values()) - min(counts.values()) <= 2


def test_around_are_the_values_on_either_side_and_adjacent_those_one_step_away():
    linear, logarithmic, choice = Int(0, 10), Int(1, 64, log=True), Choice(["a", "b", "c"])

    def values(parameter, units):
        return [parameter.from_unit(u) for u in units]

    assert values(linear, linear.around(0.33)) == [3, 4]
    assert values(linear, linear.adjacent(0.3)) == [2, 4]
    assert values(linear, linear.adjacent(0.0)) == [1]
    assert values(linear, linear.adjacent(1.0)) == [9]
    assert values(logarithmic, logarithmic.around(math.log(5.5) / math.log(64))) == [5, 6]
    assert values(logarithmic, logarithmic.adjacent(math.log(8) / math.log(64))) == [7, 9]
    assert values(choice, choice.adjacent(0.5)) == ["a", "c"]
    assert Float(0, 1).adjacent(0.5) == []
    assert Float(0, 1).around(0.5) == [0.5]


@always
@given(st.data(), ints())
@example(None, Int(1, 2, log=True))
def test_adjacent_ints_differ_by_one(data, parameter):
    value = parameter.low if data is None else data.draw(inside(parameter))
    near = [parameter.from_unit(u) for u in parameter.adjacent(float(parameter.to_unit([value])[0]))]
    assert near == [v for v in (value - 1, value + 1) if parameter.low <= v <= parameter.high]


# Parameters that cannot be meant --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Float, Int])
@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1)])
def test_low_must_be_below_high(kind, low, high):
    with pytest.raises(InvalidInput, match=rf"{kind.__name__} needs low < high; got low={low}.*high={high}"):
        kind(low, high)


@pytest.mark.parametrize("kind", [Float, Int])
@pytest.mark.parametrize("low", [0, -3])
def test_a_log_scale_needs_positive_bounds(kind, low):
    with pytest.raises(InvalidInput, match=r"log scale needs low > 0.*Raise low or drop log=True"):
        kind(low, 10, log=True)


@pytest.mark.parametrize("log", [5, 1, 0, "no", None])
@pytest.mark.parametrize("kind", [Float, Int])
def test_a_scale_is_on_logs_or_not(kind, log):
    """A step or a word in the third place would count as true."""
    with pytest.raises(InvalidInput, match=f"log must be True or False; got {log!r}"):
        kind(1, 100, log)
    assert kind(1, 100, True) == kind(1, 100, log=True)


@pytest.mark.parametrize("bound", [math.nan, math.inf, -math.inf, "1", None, True, [1], 1j])
@pytest.mark.parametrize("kind", [Float, Int])
def test_bounds_must_be_finite_numbers(kind, bound):
    with pytest.raises(InvalidInput, match=f"{kind.__name__} low"):
        kind(bound, 10)
    with pytest.raises(InvalidInput, match=f"{kind.__name__} high"):
        kind(-10, bound)


@pytest.mark.parametrize("bound", [1.5, "2", 2**53 + 2])
def test_bounds_of_an_int_must_be_integers_that_a_float_can_hold(bound):
    with pytest.raises(InvalidInput, match="Int"):
        Int(0, bound)


def test_a_float_must_have_a_finite_width():
    with pytest.raises(InvalidInput, match="finite width"):
        Float(-1.7e308, 1.7e308)


def test_a_log_scale_too_narrow_for_logarithms_is_refused_or_works():
    low = 1e10
    try:
        parameter = Float(low, math.nextafter(low, math.inf), log=True)
    except InvalidInput:
        return
    assert parameter.to_unit([parameter.low, parameter.high]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([], "at least two"),
        (["a"], "at least two"),
        (["a", "b", "a"], "differ"),
        ([1, 1.0], "differ"),
        ([1, True], "differ"),
        ("abc", "a list of options"),
        ({"a", "b"}, "a list of options"),
        (3, "a list of options"),
        ([1.0, math.nan], "finite"),
        ([1.0, math.inf], "finite"),
        ([["a"], ["b"]], "strings, numbers, booleans or None"),
        ([int, float], "strings, numbers, booleans or None"),
    ],
)
def test_choices_must_be_different_plain_values(choices, message):
    with pytest.raises(InvalidInput, match=message):
        Choice(choices)


class Color(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Depth(enum.IntEnum):
    FLAT = 1
    DEEP = 2


def test_options_of_an_enum_are_the_plain_values_that_a_storage_gives_back(tmp_path):
    space = Space(color=Choice(list(Color)), depth=Choice(list(Depth)))
    assert space["color"].choices == ("red", "blue")
    for storage in (None, f"sqlite:///{tmp_path / 'study.db'}"):
        opt = boca.Optimizer(boca.Problem(space), budget=boca.targets(9), storage=storage)
        opt.enqueue({"color": Color.RED, "depth": Depth.DEEP})
        x = opt.ask().x
        assert x == {"color": "red", "depth": 2}
        assert [type(value) for value in x.values()] == [str, int]
    with pytest.raises(InvalidInput, match="strings, numbers, booleans or None"):
        Choice(list(enum.Enum("Bare", ["A", "B"])))


# Values ---------------------------------------------------------------------------------------------------------------


def test_values_are_taken_in_their_canonical_type():
    space = Space(f=Float(0, 10), i=Int(0, 10), c=Choice(["a", 2, None, False]))
    point = space.validate({"i": np.int64(3), "c": np.str_("a"), "f": 4}, "x")
    assert point == {"f": 4.0, "i": 3, "c": "a"}
    assert [type(v) for v in point.values()] == [float, int, str]
    assert list(point) == ["f", "i", "c"]
    assert type(space.validate({"f": np.float32(0.5), "i": 7.0, "c": 2.0}, "x")["i"]) is int
    assert type(space.validate({"f": 1, "i": 7, "c": 2.0}, "x")["c"]) is int
    assert space.validate({"f": 1, "i": 7, "c": None}, "x")["c"] is None
    assert space.validate({"f": 1, "i": 7, "c": False}, "x")["c"] is False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"f": 10.5}, r"x\['f'\] must lie in \[0.0, 10.0\]; got 10.5"),
        ({"f": -1e-9}, r"x\['f'\] must lie in"),
        ({"f": math.nan}, r"x\['f'\] must be a finite number; got nan"),
        ({"f": math.inf}, r"x\['f'\] must be a finite number; got inf"),
        ({"f": "3"}, r"x\['f'\] must be a finite number; got '3'"),
        ({"f": None}, r"x\['f'\] must be a finite number; got None"),
        ({"f": True}, r"x\['f'\] must be a finite number; got True"),
        ({"f": [1.0, 2.0]}, r"x\['f'\] must be a finite number"),
        ({"f": np.ma.masked}, r"x\['f'\] must be a finite number; got masked"),
        ({"f": np.ma.array([1.0], mask=[True])}, r"x\['f'\] must be a finite number; got masked"),
        ({"i": np.ma.array(3, mask=True)}, r"x\['i'\] must be an integer; got masked"),
        ({"i": 11}, r"x\['i'\] must lie in \[0, 10\]; got 11"),
        ({"i": 3.5}, r"x\['i'\] must be an integer; got 3.5"),
        ({"i": True}, r"x\['i'\] must be an integer; got True"),
        ({"i": "3"}, r"x\['i'\] must be"),
        ({"i": math.nan}, r"x\['i'\] must be"),
        ({"c": "z"}, r"x\['c'\] must be one of \['a', 'b'\]; got 'z'"),
        ({"c": 0}, r"x\['c'\] must be one of"),
        ({"c": ["a"]}, r"x\['c'\] must be one of"),
        ({"c": np.array(["a", "b"])}, r"x\['c'\] must be one of"),
        ({"extra": 1}, r"exactly the names \['f', 'i', 'c'\]; missing: none, unknown: \['extra'\]"),
    ],
)
def test_values_outside_are_refused_with_name_bounds_and_value(change, message):
    space = Space(f=Float(0, 10), i=Int(0, 10), c=Choice(["a", "b"]))
    with pytest.raises(InvalidInput, match=message):
        space.validate({"f": 1.0, "i": 1, "c": "a"} | change, "x")


def test_missing_names_and_other_shapes_are_refused():
    space = Space(f=Float(0, 10), i=Int(0, 10))
    with pytest.raises(InvalidInput, match=r"missing: \['i'\], unknown: \['I'\]"):
        space.validate({"f": 1.0, "I": 1}, "x")
    for other in ([1.0, 1], None, "fi", 3):
        with pytest.raises(InvalidInput, match="x must be a mapping with the names"):
            space.validate(other, "x")


def test_validating_copies_and_leaves_the_argument_alone():
    given_point = {"f": 1}
    point = Space(f=Float(0, 10)).validate(given_point, "x")
    point["f"] = 9.0
    assert given_point == {"f": 1}


# Spaces ---------------------------------------------------------------------------------------------------------------


def test_a_space_is_a_read_only_mapping_in_order():
    space = Space(b=Float(0, 1), a=Int(1, 5))
    assert isinstance(space, Mapping)
    assert list(space) == list(space.keys()) == ["b", "a"]
    assert list(space.values()) == [Float(0, 1), Int(1, 5)]
    assert dict(space.items()) == {"b": Float(0, 1), "a": Int(1, 5)}
    assert len(space) == 2
    assert space["a"] == Int(1, 5)
    assert "a" in space
    assert "c" not in space
    assert space.get("c") is None
    with pytest.raises(KeyError):
        space["c"]
    with pytest.raises(TypeError):
        space["a"] = Int(1, 6)
    with pytest.raises(TypeError):
        del space["a"]
    with pytest.raises(AttributeError):
        space["a"].high = 6


def test_a_space_does_not_follow_the_mapping_that_it_was_made_from():
    parameters = {"a": Float(0, 1)}
    space = Space(parameters, b=Int(1, 2))
    parameters["c"] = Float(0, 1)
    assert list(space) == ["a", "b"]


def test_a_name_that_is_given_twice_is_refused():
    parameters = {"a": Float(0, 1), "b": Float(0, 1)}
    with pytest.raises(InvalidInput, match=r"every name once; got \['a'\]"):
        Space(parameters, a=Int(1, 3))
    assert Space({**parameters, "a": Int(1, 3)})["a"] == Int(1, 3)


def test_spaces_are_equal_by_content_and_order():
    one, same = Space(a=Float(0, 1), b=Choice(["x", "y"])), Space({"a": Float(0.0, 1.0), "b": Choice(("x", "y"))})
    assert one == same
    assert hash(one) == hash(same)
    others = [
        Space(b=Choice(["x", "y"]), a=Float(0, 1)),
        Space(a=Float(0, 1), b=Choice(["y", "x"])),
        Space(a=Float(0, 2), b=Choice(["x", "y"])),
        Space(a=Int(0, 1), b=Choice(["x", "y"])),
        Space(a=Float(0, 1)),
        {"a": Float(0, 1), "b": Choice(["x", "y"])},
    ]
    assert all(one != other for other in others)
    assert len({one, same, *others[:5]}) == 6


def test_the_representation_of_a_space_makes_it_again():
    space = Space(a=Float(1.0, 2.0, log=True), b=Int(1, 2), c=Choice(["x", None, 3]))
    names = {"Space": Space, "Float": Float, "Int": Int, "Choice": Choice}
    assert eval(repr(space), names) == space


@pytest.mark.parametrize("parameter", [1.0, (0, 1), None, "float", Float])
def test_a_space_is_made_of_parameters(parameter):
    with pytest.raises(InvalidInput, match=r"'a' must be boca.Float, boca.Int or boca.Choice"):
        Space(a=parameter)


@pytest.mark.parametrize("name", ["", 3, None])
def test_names_must_be_non_empty_strings(name):
    with pytest.raises(InvalidInput, match="name must be a non-empty string"):
        Space({name: Float(0, 1)})


@pytest.mark.parametrize("parameters", ["abc", [Float(0, 1)], 3])
def test_a_space_of_something_else_than_a_mapping_is_refused(parameters):
    with pytest.raises(BocaError):
        Space(parameters)


def test_the_size_counts_points():
    assert Space(a=Int(1, 3), b=Choice(["w", "x", "y", "z"])).size == 12
    assert Space(a=Int(1, 3), b=Float(0, 1)).size == math.inf
    assert Space().size == 1


@always
@given(st.lists(st.tuples(*[UNIT] * 5), min_size=1, max_size=5))
def test_points_of_a_mixed_space_come_back_from_the_cube(rows):
    space = Space(
        f=Float(-3, 5), i=Int(1, 1000, log=True), c=Choice(["a", "b", "c"]), g=Float(1e-5, 1e5, log=True), j=Int(0, 7)
    )
    U = space.snap(np.array(rows))
    points = [space.from_unit(u) for u in U]
    for point in points:
        assert space.validate(point, "x") == point
    back = space.to_unit(points)
    np.testing.assert_allclose(back, U, atol=1e-14)
    assert back[:, [1, 2, 4]].tolist() == U[:, [1, 2, 4]].tolist()


def test_a_space_without_parameters_has_one_point():
    space = Space()
    assert space.validate({}, "z") == {}
    assert space.from_unit(np.empty(0)) == {}
    assert space.to_unit([{}, {}]).shape == (2, 0)
    assert space.snap(np.empty((3, 0))).shape == (3, 0)
