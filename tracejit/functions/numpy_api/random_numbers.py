# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's generators of random numbers in recorded code: their methods, and the ways with traced parameters.

Labels: those of the arguments.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import SUPPORTED_DTYPES
from tracejit.functions.numpy_api.draws import DrawCall, by_value, check, number_of, whole, without_constants
from tracejit.functions.numpy_api.lists import as_array_of_list, holds_traced
from tracejit.record import random_methods, recorder

# The methods and their parameters.
_PARAMETERS = {
    name: tuple(parameters)
    for name, *parameters in map(
        str.split,
        """
        beta a b size
        binomial n p size
        chisquare df size
        choice a size replace p axis shuffle
        dirichlet alpha size
        exponential scale size
        f dfnum dfden size
        gamma shape scale size
        geometric p size
        gumbel loc scale size
        hypergeometric ngood nbad nsample size
        integers low high size dtype endpoint
        laplace loc scale size
        logistic loc scale size
        lognormal mean sigma size
        logseries p size
        multinomial n pvals size
        multivariate_hypergeometric colors nsample size method
        multivariate_normal mean cov size check_valid tol
        negative_binomial n p size
        noncentral_chisquare df nonc size
        noncentral_f dfnum dfden nonc size
        normal loc scale size
        pareto a size
        permutation x axis
        permuted x axis
        poisson lam size
        power a size
        rand
        randint low high size dtype
        randn
        random size dtype
        random_integers low high size
        random_sample size
        rayleigh scale size
        shuffle x axis
        standard_cauchy size
        standard_exponential size dtype method
        standard_gamma shape size dtype
        standard_normal size dtype
        standard_t df size
        tomaxint size
        triangular left mode right size
        uniform low high size
        vonmises mu kappa size
        wald mean scale size
        weibull a size
        zipf a size
        """.strip().splitlines(),
    )
}
_SETTING = ("seed", "set_state")
_FILLING = frozenset({"random", "standard_exponential", "standard_gamma", "standard_normal"})  # have an out=
_BY_SIZES = ("rand", "randn")  # their arguments are sizes


def install() -> None:
    """Have the methods of NumPy's generators ask while something is recorded."""
    random_methods.install("numpy.random", ("Generator", "RandomState"), (*_PARAMETERS, *_SETTING), _answer)


def _answer(
    generator: Any, name: str, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if name in _SETTING:
        return DrawCall(generator, name, method).set(args, kwargs)
    draw = DrawCall(generator, name, method)
    if name != "shuffle":  # which writes its argument
        args = without_constants(args)
        kwargs = {key: x if key == "out" else without_constants(x) for key, x in kwargs.items()}
    given = dict(zip(_PARAMETERS[name], args, strict=False)) | kwargs
    if given.get("out") is not None and name in _FILLING:
        return _filled(draw, given)
    if name == "shuffle":
        return _shuffle(draw, given)
    if not holds_traced((*args, *kwargs.values())):
        return draw.result(args, kwargs)
    if name in _BY_SIZES:
        return draw.result(tuple([whole(size, name) for size in args]), kwargs)
    if len(args) > len(_PARAMETERS[name]):
        return NotImplemented
    if "size" in given:
        given["size"] = whole(given["size"], name)
        if not holds_traced([*given.values()]):
            return draw.result((), given)
    way = _WAYS.get(name)
    result = NotImplemented if way is None else way(draw, given)
    return by_value(draw, given) if result is NotImplemented else result


# Draws with traced parameters


def _size_of(given: Mapping[str, Any], *names: str) -> tuple[Any, list[Any], bool]:
    """Return the shape of a draw, its parameters as arrays, and whether NumPy gives a number of Python's."""
    arrays = [as_array_of_list(given[name]) for name in names]
    shape = np.broadcast_shapes(*[np.shape(x) for x in arrays])
    size = given.get("size")
    return (shape if size is None else size), arrays, size is None and not shape


def _scaled(
    standard: str, loc: str = "loc", scale: str = "scale"
) -> Callable[[DrawCall, Mapping[str, Any]], Any]:
    """Return the way of a distribution with a location and a scale.

    Args:
        standard: the method that draws with the location 0 and the scale 1.
        loc: the name of the location, "" if there is none.
        scale: the name of the scale.
    """

    def way(draw: DrawCall, given: Mapping[str, Any]) -> Any:
        given = {**({loc: 0.0} if loc else {}), scale: 1.0, **given}
        names = [name for name in (loc, scale) if name]
        size, arrays, is_number = _size_of(given, *names)
        check(draw, given, np.logical_not(np.less(arrays[-1], 0)))
        result = arrays[-1] * draw.of(standard).array(size=size)
        if loc:
            result = arrays[0] + result
        return number_of(result, float) if is_number else result

    return way


def _uniform(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    given = {"low": 0.0, "high": 1.0, **given}
    size, (low, high), is_number = _size_of(given, "low", "high")
    width = np.subtract(high, low)
    is_new = hasattr(draw.generator, "random") and not hasattr(draw.generator, "random_sample")
    is_fine = np.isfinite(width) & np.greater_equal(width, 0) if is_new else np.isfinite(width)
    check(draw, given, is_fine)
    result = low + width * draw.of("random" if is_new else "random_sample").array(size)
    return number_of(result, float) if is_number else result


def _lognormal(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    normal = _scaled("standard_normal", "mean", "sigma")(draw, given)
    return np.exp(normal) if isinstance(normal, dlarray) else number_of(np.exp(normal._array), float)


def _gamma(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    given = {"scale": 1.0, **given}
    if holds_traced([given["shape"]]):
        return NotImplemented
    size, (shape, scale), is_number = _size_of(given, "shape", "scale")
    check(draw, given, np.logical_not(np.less(scale, 0)))
    result = scale * draw.of("standard_gamma").array(shape, size)
    return number_of(result, float) if is_number else result


def _multivariate_normal(draw: DrawCall, given: dict[str, Any]) -> Any:
    if holds_traced([value for name, value in given.items() if name != "mean"]):
        return NotImplemented
    mean = as_array_of_list(given["mean"])
    return draw.array(**{**given, "mean": np.zeros(np.shape(mean))}) + mean


def _integers(draw: DrawCall, given: dict[str, Any]) -> Any:
    """Answer integers and randint: each bound that varies is a guard."""
    bounds: dict[str, Any] = {name: given[name] for name in ("low", "high") if given.get(name) is not None}
    if any(map(np.ndim, bounds.values())):
        return NotImplemented
    return draw.result((), {**given, **{name: whole(bound, draw.name) for name, bound in bounds.items()}})


def _choice(draw: DrawCall, given: dict[str, Any]) -> Any:
    a, p = given["a"], given.get("p")
    a = whole(a, draw.name) if recorder.is_number(a) else as_array_of_list(a)
    if holds_traced([given.get(name) for name in ("replace", "axis", "shuffle")]):
        return NotImplemented
    is_of_array = bool(np.ndim(a))
    axis = given.get("axis", 0)
    count = a.shape[axis] if is_of_array else operator.index(a)
    if p is None or not holds_traced([p]):
        named = {name: value for name, value in given.items() if name not in ("a", "axis")}
        places = draw.array(count, **named)
    else:
        if not given.get("replace", True):
            return NotImplemented
        p = as_array_of_list(p)
        least = max(np.finfo(p.dtype if p.dtype.kind == "f" else float).eps, np.finfo(float).eps)
        is_fine = np.ndim(p) == 1 and p.size == count and count > 0
        is_fine = is_fine and (np.abs(np.sum(p) - 1) <= np.sqrt(least)) & np.all(np.greater_equal(p, 0))
        check(draw, {**given, "a": count}, is_fine)
        sums = np.cumsum(p)
        uniform = "random_sample" if hasattr(draw.generator, "random_sample") else "random"
        places = np.searchsorted(sums / sums[-1], draw.of(uniform).array(given.get("size")), side="right")
    if is_of_array:
        return np.take(a, places, axis=axis)
    return number_of(places, int) if given.get("size") is None else places


def _permutation(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    x = given["x"]
    if recorder.is_number(x):
        return draw.result((whole(x, draw.name),), {})
    x, axis = as_array_of_list(x), given.get("axis", 0)
    if not np.ndim(x):
        return draw.result((whole(x, draw.name),), {})
    return np.take(x, draw.array(x.shape[axis]), axis=axis)


def _shuffle(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    x, axis = given["x"], given.get("axis", 0)
    if type(x) not in (dlarray, np.ndarray) or not np.ndim(x) or x.dtype not in SUPPORTED_DTYPES:
        return draw.method(draw.generator, **given)  # a list, whose elements it moves
    np.copyto(x, np.take(x, draw.of("permutation").array(x.shape[axis]), axis=axis))
    return None


def _filled(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    """Return the array of the argument `out`, with what is drawn in it."""
    out = given["out"]
    if type(out) not in (dlarray, np.ndarray) or not out.flags.c_contiguous or not out.flags.writeable:
        return NotImplemented
    named = {name: value for name, value in given.items() if name != "out"}
    np.copyto(out, draw.array(**{**named, "size": out.shape}))
    return out


_WAYS: dict[str, Callable[[DrawCall, dict[str, Any]], Any]] = {
    "choice": _choice,
    "exponential": _scaled("standard_exponential", ""),
    "gamma": _gamma,
    "gumbel": _scaled("gumbel"),
    "integers": _integers,
    "laplace": _scaled("laplace"),
    "logistic": _scaled("logistic"),
    "lognormal": _lognormal,
    "multivariate_normal": _multivariate_normal,
    "normal": _scaled("standard_normal"),
    "permutation": _permutation,
    "randint": _integers,
    "rayleigh": _scaled("rayleigh", ""),
    "uniform": _uniform,
}
