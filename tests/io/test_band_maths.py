"""Band maths: what expressions compute, and all that they must refuse."""

import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refused

from bimichi import InvalidInputError
from bimichi.sources.expressions import MAX_LENGTH, parse_expression

B3, B8 = np.array([[30, 0], [200, 7]], np.uint8), np.array([[10, 0], [100, 255]], np.uint8)
BANDS = {"B3": B3, "B8": B8}


def test_integers_are_computed_as_floats_and_a_division_by_zero_is_invalid():
    ndwi = parse_expression("ndwi: (B3-B8)/(B3+B8)")
    assert (ndwi.name, ndwi.text, ndwi.bands) == ("ndwi", "(B3-B8)/(B3+B8)", ("B3", "B8"))
    found = ndwi.evaluate(BANDS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.5, np.nan], [1 / 3, -248 / 262]], rtol=1e-6)
    np.testing.assert_array_equal(parse_expression("nd(B3, B8)").evaluate(BANDS), found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ratio(B3, B8)", lambda a, b: np.where(b == 0, np.nan, a / np.where(b == 0, 1, b))),
        ("-B3 + 2*B8 - .5", lambda a, b: -a + 2 * b - 0.5),
        ("B3**2 - B8**0.5", lambda a, b: a**2 - b**0.5),
        ("B3**-1", lambda a, b: np.where(a == 0, np.nan, 1 / np.where(a == 0, 1, a))),
        ("min(B3, B8, 20) + max(B3, 5)", lambda a, b: np.minimum(np.minimum(a, b), 20) + np.maximum(a, 5)),
        ("clip(B3 - B8, -10, 10)", lambda a, b: np.clip(a - b, -10, 10)),
        ("abs(B8 - B3) * exp(-B3)", lambda a, b: np.abs(b - a) * np.exp(-a)),
        ("sqrt(B3 - 10)", lambda a, b: np.sqrt(np.where(a < 10, np.nan, a - 10))),
        ("log(B8)", lambda a, b: np.log(np.where(b == 0, np.nan, b))),
        ("+`B3` - b2", lambda a, b: a - b),
    ],
)
def test_values_are_those_of_numpy(text, expected):
    wanted = expected(B3.astype(float), B8.astype(float))
    np.testing.assert_allclose(parse_expression(text).evaluate(BANDS), wanted, rtol=1e-6, atol=1e-30)


def test_nan_masked_and_infinite_pixels_stay_invalid():
    given = {"a": np.array([np.nan, np.inf, 1, 2]), "b": np.ma.MaskedArray([1.0, 1, 1, 1], [False, False, True, False])}
    for text in ("a + b", "a**0 + b", "min(a, b)", "clip(a, 0, 1) * b", "1 / a + 0 * b"):
        assert np.isnan(parse_expression(text).evaluate(given)).tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("kind", "result"), [("u1", "f4"), ("i2", "f4"), ("f2", "f4"), ("f4", "f4"), ("i4", "f8"), ("f8", "f8")]
)
def test_result_types_hold_every_value_of_the_bands(kind, result):
    assert parse_expression("2*b1").evaluate({"x": np.arange(3).astype(kind)}).dtype == result


def test_any_name_of_a_band_can_be_quoted_and_numbers_count_from_one():
    bands = {"8A": np.array([1.0]), "VV-asc: dB": np.array([2.0]), "é": np.array([4.0])}
    expression = parse_expression("odd: `8A` - `VV-asc: dB` * é + b3")
    assert expression.name == "odd"
    assert expression.bands == ("8A", "VV-asc: dB", "é", "b3")
    assert expression.resolve(list(bands))["b3"] == "é"
    assert expression.evaluate(bands) == [-3.0]
    assert parse_expression("a: `8A` - `VV-asc: dB`").name == "a"
    assert parse_expression("`8A`*2").name == "`8A`*2"


def test_expressions_are_values():
    one = parse_expression("x: b1 + b2")
    assert one == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(parse_expression("x: b1 + b2"))
    with pytest.raises(AttributeError):
        one.name = "y"


def test_a_number_that_looks_like_a_name_is_refused():
    with refused("band-ambiguous", "'B3'", "'B4'"):
        parse_expression("b3 * 2").resolve(["B2", "B3", "B4"])
    assert parse_expression("b2 * 2").resolve(["B1", "B2"]) == {"b2": "B2"}


def test_a_missing_band_names_the_nearest_and_shapes_must_agree():
    with refused("band-unknown", "`B33`", "`B3`", "`B8`"):
        parse_expression("B33 - B8").evaluate(BANDS)
    with refused("image-sizes"):
        parse_expression("B3 - B8").evaluate({"B3": np.zeros((2, 2)), "B8": np.zeros((3, 2))})
    with refused("source-type"):
        parse_expression("B3").evaluate({"B3": np.array(["x"])})


REFUSED = {
    "ndwi: (B3-B8/(B3+B8)": 7,
    "a: B3 +": 8,
    "B3 B4": 4,
    "a: __import__('os').system('true')": 4,
    "x: B3.real": 4,
    "B3[0]": 1,
    "B3 if 1 else B4": 1,
    "B3 < 2": 1,
    "B3 @ B4": 1,
    "B3 // 2": 1,
    "[x*x for x in B3]": 1,
    "a: 'B3'": 4,
    "2 + 1j*B3": 5,
    "a + True": 5,
    "a + 1e999": 5,
    "eval(B3)": 1,
    "`abs`(B3)": 1,
    "nd(B3)": 1,
    "nd(*B3)": 1,
    "clip(B3, low=0, high=1)": 1,
    "B3**B4": 5,
    "B3**99": 5,
    "2 * B3**-17": 9,
    "1 + 2": 1,
    "`B3": 1,
    "`` + B3": 1,
    "B3\n+B4": 3,
    "B3 := 4": 5,
    "-" * 900 + "a": None,
    "(" * 400 + "a" + ")" * 400: None,
    "+".join(["a"] * 400): None,
}


@pytest.mark.parametrize("text", REFUSED)
def test_all_else_is_refused_with_its_place(text):
    with pytest.raises(InvalidInputError) as caught:
        parse_expression(text)
    message = str(caught.value)
    assert len(message) < 3000
    if REFUSED[text] is not None:
        assert f"at column {REFUSED[text]}:" in message
        assert message.splitlines()[-1].index("^") == REFUSED[text] + 1


@pytest.mark.parametrize("text", ["", "  ", "ndwi:", ": B3", "a,b: B3", "B" * (MAX_LENGTH + 1), None, 3])
def test_empty_and_unnamed_ones_are_refused(text):
    with pytest.raises(InvalidInputError):
        parse_expression(text)


@given(st.text("aB13 +-*/().,:`nd[]'\\=\n", max_size=40) | st.text(max_size=30))
def test_any_text_is_an_expression_or_an_error_of_ours(text):
    try:
        expression = parse_expression(text)
    except InvalidInputError:
        return
    found = expression.evaluate({band: np.array([0.0, 1.0, np.nan]) for band in expression.bands})
    assert found.shape == (3,)
    assert not np.isinf(found).any()
