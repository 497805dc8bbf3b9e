"""Band maths: expressions such as ``ndwi: (B3 - B8) / (B3 + B8)``, which make a new source of bands.

Expressions are parsed by Python's grammar, but only arithmetic of bands and numbers is allowed, and nothing in them is
ever executed: the tree is walked node by node.
"""

import ast
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import reduce
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.errors import InvalidInputError
from bimichi.sources.bands import first_few

MAX_LENGTH = 1000  # characters
MAX_NODES = 300
MAX_DEPTH = 60
MAX_POWER = 16.0
QUOTED = re.compile(r"`([^`]*)`")
NUMBERED = re.compile(r"b([1-9]\d*)")


class Function(NamedTuple):
    """A function of expressions, and how many arguments it takes."""

    compute: Callable[..., Any]
    least: int
    most: int


def _divide(a: Any, b: Any) -> Any:
    return np.where(b == 0, np.nan, np.divide(a, b))


FUNCTIONS: Mapping[str, Function] = {
    "abs": Function(np.abs, 1, 1),
    "min": Function(lambda *values: reduce(np.minimum, values), 2, 99),
    "max": Function(lambda *values: reduce(np.maximum, values), 2, 99),
    "sqrt": Function(np.sqrt, 1, 1),
    "log": Function(np.log, 1, 1),
    "exp": Function(np.exp, 1, 1),
    "clip": Function(lambda values, low, high: np.minimum(np.maximum(values, low), high), 3, 3),
    "nd": Function(lambda a, b: _divide(a - b, a + b), 2, 2),
    "ratio": Function(_divide, 2, 2),
}
"""What expressions may call; ``nd(a, b)`` is the normalised difference (a - b) / (a + b), ``ratio(a, b)`` is a / b."""

OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: _divide,
    ast.Pow: lambda a, b: np.where(np.isnan(a), np.nan, np.power(a, b)),  # NaN to the power of 0 would be 1
}


@dataclass(frozen=True)
class BandExpression:
    """A named expression of bands; `parse_expression` makes one, and has checked it.

    Parameters
    ----------
    name : str
        The name of the source that it makes.
    text : str
        The expression, as it was written.
    bands : tuple of str
        The bands that it uses, each once, in the order in which they occur.
    """

    name: str
    text: str
    bands: tuple[str, ...]
    _tree: ast.expr = field(repr=False, compare=False)

    def resolve(self, names: Sequence[str]) -> dict[str, str]:
        """Return which of the available bands, by `names`, each band of the expression is.

        A band is found by its exact name, or else as b1, b2, ... by its number in `names`.
        """
        return {band: self._find(band, list(names)) for band in self.bands}

    def evaluate(self, bands: Mapping[str, ArrayLike]) -> NDArray[np.floating[Any]]:
        """Compute the expression pixel by pixel.

        Parameters
        ----------
        bands : mapping of str to array-like
            Arrays of one shape by the name of the band; others than `self.bands` are not touched.

        Returns
        -------
        ndarray of float32 or float64
            float32 if all bands are floats of up to 32 bits or integers of up to 16 bits. NaN where a band is NaN,
            infinite or masked, and where the result is not a finite number, as after a division by zero.
        """
        names = self.resolve(list(bands))
        arrays = {band: _floats(bands[name], name) for band, name in names.items()}
        shapes = {array.shape for array in arrays.values()}
        if len(shapes) > 1:
            each = ", ".join(f"{band} {array.shape}" for band, array in arrays.items())
            raise InvalidInputError(
                f"The bands of {self.text!r} must have one shape, got {each}. Resample them first.",
                code="image-sizes",
                value=each,
            )
        kind = np.result_type(*(array.dtype for array in arrays.values()))
        arrays = {band: array.astype(kind, copy=False) for band, array in arrays.items()}
        with np.errstate(all="ignore"):
            return np.asarray(self._value(self._tree, arrays), dtype=kind)

    def _value(self, node: ast.expr, arrays: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]  # numbers only, as _Checker has seen to
        if isinstance(node, ast.Name):
            return arrays[_unquoted(_written(self.text, node))]
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, arrays)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp):
            operands = (self._value(node.left, arrays), self._value(node.right, arrays))
            return _finite(OPERATORS[type(node.op)](*operands))
        assert isinstance(node, ast.Call)
        function = FUNCTIONS[_written(self.text, node.func)].compute
        return _finite(function(*(self._value(argument, arrays) for argument in node.args)))

    def _find(self, band: str, names: list[str]) -> str:
        if band in names:
            return band
        number = NUMBERED.fullmatch(band)
        alike = [name for name in names if name.lower() == band.lower()]
        if number is not None and int(number[1]) <= len(names):
            found = names[int(number[1]) - 1]
            if alike and found not in alike:
                raise InvalidInputError(
                    f"The band {band} of {self.text!r} may be the one named {alike[0]!r}, or number {number[1]}, which "
                    f"is {found!r}; write the name as it is, `{alike[0]}` or `{found}`.",
                    code="band-ambiguous",
                )
            return found
        near = alike or get_close_matches(band, names, 1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        shown = first_few([f"`{name}`" for name in names]) or "none"
        raise InvalidInputError(
            f"There is no band `{band}` for {self.text!r}; there are {shown}.{hint}", code="band-unknown"
        )


def parse_expression(text: str) -> BandExpression:
    """Read an expression of bands, such as ``ndwi: (B3 - B8) / (B3 + B8)`` or ``nd(B3, B8)``.

    Parameters
    ----------
    text : str
        A name and a colon, which may be left out, and arithmetic: ``+ - * / **`` (with a number as exponent, up to
        16), parentheses, numbers, and ``abs min max sqrt log exp clip nd ratio``. A band is written by its name, in
        backticks if that is no identifier (```8A```), or by its number as ``b1``, ``b2``, ...

    Returns
    -------
    BandExpression
        Whose `evaluate` computes it.

    Raises
    ------
    InvalidInputError
        With the place marked, if it is anything else.

    Examples
    --------
    >>> ndwi = parse_expression("ndwi: (B3 - B8) / (B3 + B8)")
    >>> ndwi.name, ndwi.bands
    ('ndwi', ('B3', 'B8'))
    >>> ndwi.evaluate({"B3": np.array([3, 0]), "B8": np.array([1, 0])})
    array([0.5, nan])
    """
    if not isinstance(text, str):
        raise InvalidInputError(
            f"An expression must be text such as 'ndwi: (B3-B8)/(B3+B8)', got {text!r}.",
            code="expression-kind",
            value=text,
        )
    if len(text) > MAX_LENGTH:
        raise InvalidInputError(
            f"An expression may have up to {MAX_LENGTH} characters, got {len(text):,}.", code="expression-long"
        )
    plain = QUOTED.sub(lambda quoted: "x" * len(quoted[0]), text)
    name, body = _divided(text, plain)
    start = len(text) - len(body)
    checker = _Checker(text, start)
    tree = checker.parse(plain[start:])
    checker.check(tree)
    if not checker.bands:
        checker.refuse(start, "it uses no band. Write their names, such as B3, or b1 for the first")
    return BandExpression(name or body, body, tuple(checker.bands), tree)


class _Checker:
    """Refuses all but arithmetic, and collects the bands; positions are those in the whole `text`."""

    def __init__(self, text: str, start: int) -> None:
        self.text, self.start, self.body = text, start, text[start:]
        self.bands: dict[str, None] = {}
        self._nodes = 0

    def parse(self, plain: str) -> ast.expr:
        if any(not sign.isprintable() for sign in self.text):
            self.refuse(
                next(k for k, sign in enumerate(self.text) if not sign.isprintable()),
                "line breaks and control characters are not allowed",
            )
        if "`" in plain:
            self.refuse(self.start + plain.index("`"), "this ` is not closed. Write names as in `band 1`")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about what is refused anyway
                return ast.parse(plain, mode="eval").body
        except SyntaxError as error:
            at = (error.offset or 0) - 1
            if at < 0 or at >= len(plain.rstrip()):  # versions of Python differ in where the end is
                self.refuse(self.start + len(plain.rstrip()), "something is missing at the end")
            known = [word for word in ("never closed", "parenthes", "unmatched") if word in error.msg]
            self.refuse(self.start + at, error.msg if known else "this is not arithmetic on bands")
        except (MemoryError, RecursionError, ValueError, OverflowError):
            self.refuse(self.start, "it is nested too deeply, or a number in it is too large. Split it into several")

    def check(self, node: ast.expr, depth: int = 0) -> None:
        """Raise an error unless the node and all below it are arithmetic."""
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            self._refuse_node(node, f"it is too long, or nested more than {MAX_DEPTH} deep. Split it into several")
        if isinstance(node, ast.Constant):
            self._check_number(node)
        elif isinstance(node, ast.Name):
            self._check_band(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            self.check(node.operand, depth + 1)
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            if isinstance(node.op, ast.Pow):
                self._check_power(node.right)
            self.check(node.left, depth + 1)
            self.check(node.right, depth + 1)
        elif isinstance(node, ast.Call):
            self._check_call(node)
            for argument in node.args:
                self.check(argument, depth + 1)
        else:
            self._refuse_node(
                node, f"only + - * / **, parentheses, numbers, bands and {', '.join(FUNCTIONS)} may be used"
            )

    def _check_number(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse_node(node, "this is not a real number. Bands are written without quotes, or in `backticks`")
        if abs(value) > float(np.finfo(np.float32).max):
            self._refuse_node(node, "this number is too large")

    def _check_band(self, node: ast.Name) -> None:
        band = _unquoted(_written(self.body, node))
        if not band.strip():
            self._refuse_node(node, "this name of a band is empty")
        self.bands[band] = None

    def _check_power(self, node: ast.expr) -> None:
        number = node.operand if isinstance(node, ast.UnaryOp) else node
        value = number.value if isinstance(number, ast.Constant) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MAX_POWER:
            self._refuse_node(node, f"an exponent must be a number from -{MAX_POWER:g} to {MAX_POWER:g}")

    def _check_call(self, node: ast.Call) -> None:
        called = _written(self.body, node.func)
        if not isinstance(node.func, ast.Name) or called not in FUNCTIONS:
            near = get_close_matches(called, FUNCTIONS, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            self._refuse_node(node.func, f"there is no function {called}; there are {', '.join(FUNCTIONS)}.{hint}")
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            self._refuse_node(node, f"{called} takes values, separated by commas")
        _, least, most = FUNCTIONS[called]
        if not least <= len(node.args) <= most:
            wanted = f"{least}" if least == most else f"{least} or more"
            self._refuse_node(node, f"{called} takes {wanted} values, got {len(node.args)}")

    def _refuse_node(self, node: ast.expr, reason: str) -> NoReturn:
        self.refuse(self.start + _place(self.body, node)[0], reason)

    def refuse(self, at: int, reason: str) -> NoReturn:
        """Raise the error with a mark under the character number `at`."""
        line = "".join(sign if sign.isprintable() else "?" for sign in self.text)
        ends = "" if reason.endswith((".", "?")) else "."
        raise InvalidInputError(
            f"Cannot read the expression at column {at + 1}: {reason}{ends}\n  {line}\n  {' ' * at}^",
            code="expression-syntax",
        )


def _divided(text: str, plain: str) -> tuple[str, str]:
    """Return the name before the first colon, "" if there is none, and the expression, which ends the text."""
    before, colon, _ = plain.partition(":")
    body = text[len(before) + 1 :] if colon else text
    name = text[: len(before)].strip() if colon else ""
    if colon and (not name or "," in name or "`" in name):
        raise InvalidInputError(
            f"The name before the colon of {text[:80]!r} must not be empty, nor hold a comma or a backtick; write it "
            "as in 'ndwi: (B3-B8)/(B3+B8)'.",
            code="expression-name",
        )
    if not body.strip():
        raise InvalidInputError(
            f"The expression {text[:80]!r} is empty; write one as in 'ndwi: (B3-B8)/(B3+B8)'.", code="expression-empty"
        )
    return name, body.lstrip()


def _place(body: str, node: ast.expr) -> tuple[int, int]:
    """Return first and last character of a node; the tree counts bytes of UTF-8, with quoted names as letters x."""
    plain = QUOTED.sub(lambda quoted: "x" * len(quoted[0]), body).encode()
    start, stop = node.col_offset, node.end_col_offset or node.col_offset
    return len(plain[:start].decode()), len(plain[:stop].decode())


def _written(body: str, node: ast.expr) -> str:
    start, stop = _place(body, node)
    return body[start:stop]


def _unquoted(name: str) -> str:
    return name[1:-1] if name.startswith("`") else name


def _floats(values: ArrayLike, name: str) -> Any:
    """Return floats, so that integers neither wrap around nor divide to integers; NaN where masked or infinite."""
    array = np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if array.dtype.kind not in "buif":
        raise InvalidInputError(
            f"Band {name!r} must be real numbers, got {array.dtype}.", code="source-type", value=array.dtype
        )
    kind = np.result_type(array.dtype, np.float32)
    floats = array.astype(kind if kind in (np.float32, np.float64) else np.float64)
    return _finite(np.where(np.ma.getmaskarray(values), np.nan, floats) if np.ma.isMaskedArray(values) else floats)


def _finite(values: Any) -> Any:
    """Return values with NaN in the place of infinity; no copy is made if there is none."""
    return values if np.isfinite(values).all() else np.where(np.isfinite(values), values, np.nan)
