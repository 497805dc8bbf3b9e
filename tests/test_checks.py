import numpy as np
import pytest
from refusals import refused

from bimichi._checks import check_choice, check_integer, check_number


def test_integer_takes_whole_numbers_of_numpy_and_returns_an_int():
    for value in (3, np.int8(3), np.uint64(3)):
        assert type(check_integer(value, "n")) is int
    assert check_integer(0, "n", minimum=0) == 0
    assert check_integer(4, "n", maximum=4) == 4


@pytest.mark.parametrize("value", [0, -1, True, 1.0, np.float64(2), "3", None, np.array([1, 2])])
def test_integer_refuses_others_and_names_argument_rule_and_value(value):
    with refused("whole-number:n") as caught:
        check_integer(value, "n")
    assert repr(value) in str(caught.value)


def test_integer_names_both_bounds():
    with refused("whole-number:n"):
        check_integer(5, "n", maximum=4)


def test_number_returns_a_float():
    for value in (1, 1.0, np.float32(1), np.int64(1)):
        assert type(check_number(value, "level", 0, 1)) is float


@pytest.mark.parametrize("value", [True, "1", None, np.nan, np.inf, -np.inf, 1j, [1.0]])
def test_number_refuses_what_is_no_finite_number(value):
    with refused("number-range:mu"):
        check_number(value, "mu")


@pytest.mark.parametrize(
    ("value", "bounds", "exclusive", "bound"),
    [
        (1.5, (0, 1), False, "[0, 1]"),
        (1, (0, 1), True, "(0, 1)"),
        (-1, (0, None), False, "at least 0"),
        (0.0, (0, None), True, "above 0"),
        (2, (None, 1), False, "at most 1"),
        (1, (None, 1), True, "below 1"),
    ],
)
def test_number_names_its_bounds(value, bounds, exclusive, bound):
    with refused("number-range:x", bound) as raised:
        check_number(value, "x", *bounds, exclusive=exclusive)
    assert raised.value.value == value


def test_choice_returns_the_member():
    assert check_choice("a", "kind", {"a": 1, "b": 2}) == "a"
    assert check_choice(np.int64(2), "kind", (None, 1, 2)) == 2
    assert check_choice(None, "kind", (None, 1)) is None


@pytest.mark.parametrize("value", ["c", True, 1.0, ["a"], np.array(["a", "b"]), None])
def test_choice_refuses_others(value):
    with refused("choice:kind"):
        check_choice(value, "kind", ("a", "b", 1))
