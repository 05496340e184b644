# SPDX-License-Identifier: BSD-3-Clause
"""Elementwise ops: arithmetic, mathematical functions, comparisons, logic, selection and casts.

Templates name functions of the emitted source with a dtype suffix (``exp_f32``); every target defines them.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from tracejit.aval import Aval, broadcast_shapes, is_inexact, supported
from tracejit.errors import DTypeError
from tracejit.ops.floats import as_float, infer_float, promote_float
from tracejit.ops.op import TITLES, Kind, Op, Sample, Scalar, Vjp

_PAIR = (Sample(((2, 3), (2, 3))), Sample(((2, 3), (3,))), Sample(((2, 1), (1, 3))), Sample(((), (2, 3))))
_ONE = (Sample(((2, 3),)), Sample(((),)))


@lru_cache(maxsize=4096)
def _loop(ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
    """Return the dtypes (inputs and output) of the loop that NumPy runs, float16 widened to float32."""
    try:
        resolved = ufunc.resolve_dtypes((*dtypes, None))
    except TypeError:
        names = ", ".join(map(str, dtypes))
        raise DTypeError(
            f"{ufunc.__name__}: not defined for {names}; cast the operands first (x.astype(np.float64))."
        ) from None
    return tuple(supported(dtype) for dtype in resolved)


def elementwise(
    name: str,
    ufunc: np.ufunc,
    template: str,
    doc: str,
    vjp: Vjp | None = None,
    *,
    cost: int = 1,
    for_bool: str | None = None,
    **fields: Any,
) -> Op:
    """Return the record of an op whose reference is a NumPy ufunc with one output."""

    @lru_cache(maxsize=1024)  # a loop has the same few
    def infer(*avals: Aval) -> Aval:
        dtype = _loop(ufunc, tuple([aval.dtype for aval in avals]))[-1]
        return Aval(broadcast_shapes(TITLES.get(name, name), avals), format_of(avals), dtype)

    def promote(*dtypes: np.dtype) -> tuple[np.dtype, ...]:
        return _loop(ufunc, dtypes)[:-1]

    def reference(*arrays: np.ndarray) -> np.ndarray:
        result: np.ndarray = ufunc(*arrays)
        if (
            result.dtype.char == "e"
        ):  # of bools and small integers: computed again without its overflow and rounding
            result = ufunc(*[np.asarray(x, np.float32) for x in arrays])
        return result

    fields.setdefault("samples", _ONE if ufunc.nin == 1 else _PAIR)
    return Op(
        name=name,
        doc=doc,
        kind=Kind.ELEMENTWISE,
        infer=infer,
        numpy=reference,
        vjp=vjp,
        emit=Scalar(template, cost, for_bool),
        promote=promote,
        takes_complex=True,  # where the ufunc does
        **fields,
    )


def format_of(avals: Any) -> str | None:
    """Return the common format of operands that the door has aligned (equal or None)."""
    formats: Iterator[str] = (aval.format for aval in avals if aval.format is not None)
    return next(formats, None)


def _unary(derivative: Callable[[Any, Any, Any], Any]) -> Vjp:
    """Return the adjoint of y = f(x) from the function (b, x, y) -> f'(x)."""
    return lambda b, node, ct: (b.mul(ct, derivative(b, node.inputs[0], node.output)),)


def _vjp_mul(b: Any, node: Any, ct: Any) -> Any:
    x, y = node.inputs
    return (lambda: b.mul(ct, y), lambda: b.mul(ct, x))


def _vjp_div(b: Any, node: Any, ct: Any) -> Any:
    y = node.inputs[1]
    return (lambda: b.div(ct, y), lambda: b.neg(b.div(b.mul(ct, node.output), y)))


def _vjp_pow(b: Any, node: Any, ct: Any) -> Any:
    x, p = node.inputs

    def by_base() -> Any:
        # x**(p-1) is infinite at x = 0 for p < 1; for p = 0 the derivative is 0 all the same. Its own derivatives are
        # taken at another x then: they would multiply 0 by infinity, as would those up to the fourth of tiny x. The
        # logarithms of negative and infinite x, by which they are derived by p, have no number to multiply.
        constant, least = b.equal(p, 0.0), 1e-75 if x.dtype.name in ("float64", "complex128") else 1e-9
        regular = b.less_equal(least, b.abs(x) if x.dtype.kind == "c" else x)
        regular = b.logical_and(regular, b.isfinite(x))
        base = b.where(constant, b.where(regular, x, 1.0), x)
        slope = b.mul(p, b.pow(base, b.sub(p, 1.0)))
        return b.mul(ct, b.where(constant, b.where(regular, slope, 0.0), slope))

    def by_exponent() -> Any:
        # 0**p is constant in p for p > 0: without the guard its derivative would be 0 * log 0 = NaN.
        log_x = b.log(b.where(b.equal(x, 0.0), 1.0, x))
        return b.mul(ct, b.mul(node.output, log_x))

    return (by_base, by_exponent)


def _vjp_sign(b: Any, node: Any, ct: Any) -> Any:
    x, y = node.inputs[0], node.output
    if x.dtype.kind != "c":
        return (None,)
    size = b.abs(x)
    along = b.mul(b.conj(y), b.real(b.mul(ct, y)))
    slope = b.div(b.sub(ct, along), b.where(b.equal(size, 0.0), 1.0, size))
    return (b.where(b.equal(size, 0.0), 0.0, slope),)


# Note [sides of branch cuts]
# The sign of a zero part tells the side of a cut. x - (-1) keeps that of the imaginary part, where x + 1 adds 0 to it,
# and -(x - 1) turns it, where 1 - x subtracts it from 0.


def _by_arcsin(b: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind == "c":  # Note [sides of branch cuts]
        return b.reciprocal(b.sqrt(b.neg(b.sub(b.square(x), 1.0))))
    return b.reciprocal(b.sqrt(b.sub(1.0, b.square(x))))


def _by_arcsinh(b: Any, x: Any, y: Any) -> Any:
    square = b.square(x)
    one_more = (
        b.sub(square, -1.0) if x.dtype.kind == "c" else b.add(square, 1.0)
    )  # Note [sides of branch cuts]
    return b.reciprocal(b.sqrt(one_more))


def _by_arccosh(b: Any, x: Any, y: Any) -> Any:
    if (
        x.dtype.kind == "c"
    ):  # the root of the product has another sign where x.real < 0; Note [sides of branch cuts]
        return b.reciprocal(b.mul(b.sqrt(b.sub(x, 1.0)), b.sqrt(b.sub(x, -1.0))))
    return b.reciprocal(b.sqrt(b.sub(b.square(x), 1.0)))


def _vjp_extremum(b: Any, node: Any, ct: Any) -> Any:
    x, y = node.inputs
    out = node.output
    # Ties share the cotangent equally, so that max(x, x) has the derivative 1.
    tie = b.where(b.equal(x, y), 0.5, 1.0)
    return (
        lambda: b.where(b.equal(x, out), b.mul(ct, tie), 0.0),
        lambda: b.where(b.equal(y, out), b.mul(ct, tie), 0.0),
    )


def _vjp_atan2(b: Any, node: Any, ct: Any) -> Any:
    y, x = node.inputs
    length = b.hypot(x, y)  # the sum of squares has half of the exponents only
    scale = b.div(ct, length)
    return (lambda: b.mul(scale, b.div(x, length)), lambda: b.neg(b.mul(scale, b.div(y, length))))


def _vjp_mod(b: Any, node: Any, ct: Any) -> Any:
    x, y = node.inputs
    return (lambda: ct, lambda: b.neg(b.mul(ct, b.floor(b.div(x, y)))))


_FLOAT_MOD = "mod_{T}({0}, {1})"
_MAX = "where(({0} > {1}) | ({0} != {0}), {0}, {1})"
_MIN = "where(({0} < {1}) | ({0} != {0}), {0}, {1})"

ARITHMETIC = (
    elementwise("add", np.add, "{0} + {1}", "x + y; ct, ct. Booleans: or",
                 lambda b, n, ct: (ct, ct), for_bool="{0} | {1}"),
    elementwise("sub", np.subtract, "{0} - {1}", "x - y; ct, -ct",
                 lambda b, n, ct: (ct, lambda: b.neg(ct))),
    elementwise("mul", np.multiply, "{0} * {1}", "x y; ct y, ct x. Booleans: and", _vjp_mul,
                 for_bool="{0} & {1}"),
    elementwise("div", np.true_divide, "{0} / {1}", "x / y; ct / y, -ct (x / y) / y", _vjp_div, cost=4,
                 domain=(0.5, 3.0)),
    elementwise("floordiv", np.floor_divide, "floordiv_{T}({0}, {1})", "floor(x / y); no derivative",
                 cost=8, domain=(0.5, 3.0), analytic=False),
    elementwise("mod", np.remainder, _FLOAT_MOD, "x - floor(x / y) y, the sign of y; ct, -ct floor(x / y)",
                 _vjp_mod, cost=8, domain=(0.6, 0.9), analytic=False),
    elementwise("pow", np.power, "pow_{T}({0}, {1})",
                 "x ** y; ct y x**(y-1) (0 where y = 0), ct x**y log x (0 where x = 0 < y)", _vjp_pow,
                 cost=20, domain=(0.3, 2.5)),
    elementwise("neg", np.negative, "-{0}", "-x; -ct", lambda b, n, ct: (b.neg(ct),)),
    elementwise("square", np.square, "{0} * {0}", "x x; 2 x ct",
                 _unary(lambda b, x, y: b.mul(x, 2.0))),
    elementwise("reciprocal", np.reciprocal, "reciprocal_{T}({0})", "1 / x; -ct y y",
                 _unary(lambda b, x, y: b.neg(b.square(y))), cost=4, domain=(0.5, 3.0)),
    elementwise("abs", np.absolute, "abs({0})", "|x|; ct sign(x), 0 at 0",
                 _unary(lambda b, x, y: b.conj(b.sign(x)) if x.dtype.kind == "c" else b.sign(x)), kinks=(0.0,),
                 analytic=False, for_bool="{0}"),
    elementwise("sign", np.sign, "sign_{T}({0})",
                 "-1, 0 or 1, NaN for NaN; no derivative. Complex: x / |x|, 0 at 0; (ct - Re(ct y) conj(y)) / |x|",
                 _vjp_sign, analytic=False, kinks=(0.0,)),
    elementwise("maximum", np.maximum, _MAX, "the larger, NaN if either is; ct to the larger, half each at ties",
                 _vjp_extremum, analytic=False),
    elementwise("minimum", np.minimum, _MIN, "the smaller, NaN if either is; ct to the smaller, half each at ties",
                 _vjp_extremum, analytic=False),
)  # fmt: skip

ROUNDING = (
    elementwise("floor", np.floor, "floor_{T}({0})", "largest integer <= x; no derivative", analytic=False),
    elementwise("ceil", np.ceil, "ceil_{T}({0})", "smallest integer >= x; no derivative", analytic=False),
    elementwise("trunc", np.trunc, "trunc_{T}({0})", "x towards 0; no derivative", analytic=False),
    elementwise("rint", np.rint, "rint_{T}({0})", "nearest integer, halves to even; no derivative",
                 analytic=False),
)  # fmt: skip


def _function(
    name: str, ufunc: np.ufunc, doc: str, derivative: Callable[[Any, Any, Any], Any], **fields: Any
) -> Op:
    """Return the record of a mathematical function that every target defines under its own name."""
    return elementwise(name, ufunc, f"{name}_{{T}}({{0}})", doc, _unary(derivative), cost=20, **fields)


FUNCTIONS = (
    _function("exp", np.exp, "e**x; ct y", lambda b, x, y: y),
    _function("expm1", np.expm1, "e**x - 1; ct e**x", lambda b, x, y: b.exp(x)),
    _function("exp2", np.exp2, "2**x; ct y log 2", lambda b, x, y: b.mul(y, float(np.log(2.0)))),
    _function("log", np.log, "natural logarithm; ct / x", lambda b, x, y: b.reciprocal(x), domain=(0.2, 3.0)),
    _function("log2", np.log2, "logarithm to base 2; ct / (x log 2)",
              lambda b, x, y: b.reciprocal(b.mul(x, float(np.log(2.0)))), domain=(0.2, 3.0)),
    _function("log10", np.log10, "logarithm to base 10; ct / (x log 10)",
              lambda b, x, y: b.reciprocal(b.mul(x, float(np.log(10.0)))), domain=(0.2, 3.0)),
    _function("log1p", np.log1p, "log(1 + x); ct / (1 + x)",
              lambda b, x, y: b.reciprocal(b.add(x, 1.0)), domain=(-0.7, 3.0)),
    elementwise("sqrt", np.sqrt, "sqrt_{T}({0})", "square root; ct / (2 y)",
                 _unary(lambda b, x, y: b.div(0.5, y)), cost=6, domain=(0.2, 3.0)),
    _function("cbrt", np.cbrt, "cube root; ct / (3 y y)",
              lambda b, x, y: b.mul(b.square(b.reciprocal(y)), 1.0 / 3.0), domain=(0.2, 3.0), analytic=False),
    _function("sin", np.sin, "sine; ct cos x", lambda b, x, y: b.cos(x)),
    _function("cos", np.cos, "cosine; -ct sin x", lambda b, x, y: b.neg(b.sin(x))),
    _function("tan", np.tan, "tangent; ct (1 + y y)", lambda b, x, y: b.add(b.square(y), 1.0),
              domain=(-1.2, 1.2)),
    _function("arcsin", np.arcsin, "inverse sine; ct / sqrt(1 - x x)", _by_arcsin, domain=(-0.9, 0.9)),
    _function("arccos", np.arccos, "inverse cosine; -ct / sqrt(1 - x x)",
              lambda b, x, y: b.neg(_by_arcsin(b, x, y)), domain=(-0.9, 0.9)),
    _function("arctan", np.arctan, "inverse tangent; ct / (1 + x x)",
              lambda b, x, y: b.reciprocal(b.add(b.square(x), 1.0))),
    _function("sinh", np.sinh, "hyperbolic sine; ct cosh x", lambda b, x, y: b.cosh(x)),
    _function("cosh", np.cosh, "hyperbolic cosine; ct sinh x", lambda b, x, y: b.sinh(x)),
    _function("tanh", np.tanh, "hyperbolic tangent; ct (1 - y y)",
              lambda b, x, y: b.sub(1.0, b.square(y))),
    _function("arcsinh", np.arcsinh, "inverse hyperbolic sine; ct / sqrt(x x + 1)", _by_arcsinh),
    _function("arccosh", np.arccosh, "inverse hyperbolic cosine; ct / sqrt(x x - 1)",
              _by_arccosh, domain=(1.2, 3.0)),
    _function("arctanh", np.arctanh, "inverse hyperbolic tangent; ct / (1 - x x)",
              lambda b, x, y: b.reciprocal(b.sub(1.0, b.square(x))), domain=(-0.9, 0.9)),
    elementwise("arctan2", np.arctan2, "arctan2_{T}({0}, {1})",
                 "angle of (x2, x1); ct x2 / r / r, -ct x1 / r / r with r = hypot(x1, x2)", _vjp_atan2, cost=20,
                 domain=(0.5, 2.0), analytic=False),
)  # fmt: skip


def _compare(name: str, ufunc: np.ufunc, symbol: str) -> Op:
    return elementwise(
        name, ufunc, f"{{0}} {symbol} {{1}}", f"x {symbol} y as bool; no derivative", analytic=False
    )


LOGIC = (
    _compare("equal", np.equal, "=="),
    _compare("not_equal", np.not_equal, "!="),
    _compare("less", np.less, "<"),
    _compare("less_equal", np.less_equal, "<="),
    _compare("greater", np.greater, ">"),
    _compare("greater_equal", np.greater_equal, ">="),
    elementwise("logical_and", np.logical_and, "({0} != 0) & ({1} != 0)", "x and y as bool; no derivative",
                 analytic=False),
    elementwise("logical_or", np.logical_or, "({0} != 0) | ({1} != 0)", "x or y as bool; no derivative",
                 analytic=False),
    elementwise("logical_xor", np.logical_xor, "({0} != 0) ^ ({1} != 0)", "x xor y as bool; no derivative",
                 analytic=False),
    elementwise("logical_not", np.logical_not, "{0} == 0", "not x as bool; no derivative", analytic=False),
    elementwise("bitwise_and", np.bitwise_and, "{0} & {1}", "x & y of integers or bools; no derivative",
                 analytic=False, samples=(Sample(((2, 3), (3,)), dtypes=("int64", "int64")),)),
    elementwise("bitwise_or", np.bitwise_or, "{0} | {1}", "x | y of integers or bools; no derivative",
                 analytic=False, samples=(Sample(((2, 3), (3,)), dtypes=("int64", "int64")),)),
    elementwise("bitwise_xor", np.bitwise_xor, "{0} ^ {1}", "x ^ y of integers or bools; no derivative",
                 analytic=False, samples=(Sample(((2, 3), (3,)), dtypes=("int64", "int64")),)),
    elementwise("invert", np.invert, "~{0}", "~x of integers or bools; no derivative",
                 analytic=False, for_bool="{0} == 0", samples=(Sample(((2, 3),), dtypes=("int64",)),)),
    elementwise("isnan", np.isnan, "{0} != {0}", "x is NaN; no derivative", analytic=False),
    elementwise("isinf", np.isinf, "isinf_{T}({0})", "x is +inf or -inf; no derivative", analytic=False),
    elementwise("isfinite", np.isfinite, "isfinite_{T}({0})", "x is neither NaN nor infinite; no derivative",
                 analytic=False),
)  # fmt: skip


def _infer_where(condition: Aval, x: Aval, y: Aval) -> Aval:
    avals = (condition, x, y)
    return Aval(broadcast_shapes("where", avals), format_of(avals), np.result_type(x.dtype, y.dtype))


def _promote_where(condition: np.dtype, x: np.dtype, y: np.dtype) -> tuple[np.dtype, ...]:
    common = np.result_type(x, y)
    return (np.dtype(bool), common, common)


def _vjp_where(b: Any, node: Any, ct: Any) -> Any:
    # The cotangent is masked, never multiplied: 0 * inf in the branch not taken would give NaN.
    condition = node.inputs[0]
    return (None, lambda: b.where(condition, ct, 0.0), lambda: b.where(condition, 0.0, ct))


def _infer_cast(x: Aval, *, dtype: np.dtype) -> Aval:
    return Aval(x.shape, x.format, dtype)


def _numpy_cast(x: np.ndarray, *, dtype: np.dtype) -> np.ndarray:
    return x.astype(dtype)


def _erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf  # only here: importing tracejit must not import SciPy

    # SciPy computes small integers in float32.
    result: np.ndarray = erf(as_float(x))
    return result


def _relu(x: np.ndarray) -> np.ndarray:
    return np.where(x.real <= 0, x.dtype.type(0), x)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    x = as_float(x)
    result: np.ndarray = 1 / (1 + np.exp(-x))  # exp overflows to inf, whose inverse is 0
    return result


def _softplus(x: np.ndarray) -> np.ndarray:
    x = as_float(x)
    positive = x.real > 0
    return np.where(positive, x, 0) + np.log1p(np.exp(np.where(positive, -x, x)))


def _by_softplus(b: Any, x: Any, y: Any) -> Any:
    """Return sigmoid(x), near 1 as 1 - sigmoid(-x), whose derivative is that of a small number."""
    positive = b.less_equal(0.0, x)
    small = b.sigmoid(b.where(positive, b.neg(x), x))
    return b.where(positive, b.sub(1.0, small), small)


SELECTION = (
    Op(name="where", doc="x where the condition holds, else y; ct masked", kind=Kind.ELEMENTWISE,
       infer=_infer_where, numpy=np.where, promote=_promote_where, vjp=_vjp_where,
       emit=Scalar("where({0}, {1}, {2})"), analytic=False, takes_complex=True,
       samples=(Sample(((2, 3), (2, 3), (2, 3)), dtypes=("bool", None, None)),
                Sample(((2, 1), (3,), ()), dtypes=("bool", None, None)))),
    Op(name="cast", doc="x in another dtype; ct (none through integers and bools)", kind=Kind.ELEMENTWISE,
       infer=_infer_cast, numpy=_numpy_cast,
       vjp=lambda b, n, ct: (ct if is_inexact(n.output.dtype) else None,),
       emit=Scalar("{R}({0})"), analytic=False, takes_complex=True,
       samples=tuple(Sample(((2, 3),), {"dtype": np.dtype(to)}, low=0.0, high=2.9)
                     for to in ("float64", "float32", "int64", "int32", "uint8", "bool"))),
    Op(name="stop_gradient", doc="x; no derivative", kind=Kind.ELEMENTWISE,
       infer=lambda x: x, numpy=lambda x: x.copy(), vjp=None, emit=Scalar("{0}", 0), samples=_ONE, analytic=False,
       takes_complex=True),
    Op(name="erf", doc="error function; ct 2 / sqrt(pi) exp(-x x)", kind=Kind.ELEMENTWISE,
       infer=infer_float, numpy=_erf, promote=promote_float,
       vjp=_unary(lambda b, x, y: b.mul(b.exp(b.neg(b.square(x))), float(2.0 / np.sqrt(np.pi)))),
       emit=Scalar("erf_{T}({0})", 20), samples=_ONE),
)  # fmt: skip

# These are ops because their adjoints need only the result, or one function of x; the adjoint of a composition
# would keep its parts or compute them again.
ACTIVATIONS = (
    Op(name="relu", doc="x where x > 0, NaN for NaN, else 0; ct where y > 0, so relu'(0) = 0",
       kind=Kind.ELEMENTWISE, infer=lambda x: x, numpy=_relu,
       vjp=lambda b, n, ct: (b.where(b.less_equal(n.output, 0.0), 0.0, ct),),
       emit=Scalar("where({0} <= {T}(0), {T}(0), {0})", for_bool="{0}"), samples=_ONE, kinks=(0.0,)),
    Op(name="sigmoid", doc="1 / (1 + e**-x); ct y (1 - y)", kind=Kind.ELEMENTWISE,
       infer=infer_float, numpy=_sigmoid, promote=promote_float,
       vjp=_unary(lambda b, x, y: b.mul(y, b.sub(1.0, y))),
       emit=Scalar("{T}(1.0) / ({T}(1.0) + exp_{T}(-{0}))", 25), samples=_ONE),
    Op(name="softplus", doc="log(1 + e**x), as max(x, 0) + log1p(e**-|x|) without overflow; ct sigmoid(x)",
       kind=Kind.ELEMENTWISE, infer=infer_float, numpy=_softplus, promote=promote_float,
       vjp=_unary(_by_softplus),
       emit=Scalar("where({0} > {T}(0.0), {0}, {T}(0.0)) + log1p_{T}(exp_{T}(-abs({0})))", 45), samples=_ONE),
)  # fmt: skip

OPS = (*ARITHMETIC, *ROUNDING, *FUNCTIONS, *LOGIC, *SELECTION, *ACTIVATIONS)
