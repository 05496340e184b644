# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's generators of random numbers in recorded code: their methods, and the ways with traced parameters.

Labels: those of the arguments.
"""

import operator
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import SUPPORTED_DTYPES
from tracejit.functions.numpy_api.draws import (
    DrawCall,
    by_value,
    computed,
    number_of,
    outside_of_programs,
    plainly,
    takes_traced,
    whole,
    without_constants,
)
from tracejit.functions.numpy_api.lists import as_array_of_list
from tracejit.record import made_arrays, ndarrays, patches, random_methods, recorder
from tracejit.util.frames import is_internal
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import module_of

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
_ARRAYS = (dlarray, np.ndarray)
_BY_SIZES = ("rand", "randn")  # their arguments are sizes
_TAKEN = 3 if sys.version_info < (3, 12) else 2  # references that a call np.random.shuffle(x) takes to x


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
    if name == "permuted" and type(given.get("out")) in _ARRAYS:
        return _permuted_into(draw, given)
    if not takes_traced((*args, *kwargs.values())):
        return draw.result(args, kwargs)
    if name in _BY_SIZES:
        return draw.result(tuple([whole(size, name) for size in args]), kwargs)
    if len(args) > len(_PARAMETERS[name]):
        return NotImplemented
    if "size" in given:
        given["size"] = whole(given["size"], name)
        if not takes_traced([*given.values()]):
            return draw.result((), given)
    # A subclass may draw in another way.
    way = _WAYS.get(name) if module_of(type(generator)).startswith("numpy.") else None
    result = NotImplemented if way is None else way(draw, given)
    return by_value(draw, given) if result is NotImplemented else result


# Draws with traced parameters


def _double(x: Any) -> Any:
    """Return a parameter in double precision, in which NumPy computes; None if NumPy does not take it."""
    x = x._array if recorder.is_number(x) else as_array_of_list(x)
    if not isinstance(x, dlarray):
        return np.asarray(x, np.float64) if np.asarray(x).dtype.kind in "biuf" else None
    if x.dtype.kind not in "biuf":
        return None
    return x if x.dtype == np.float64 else x.astype(np.float64)


class _Parameters(NamedTuple):
    """The parameters of a draw.

    arrays     in double precision
    size       of the result
    is_number  whether NumPy gives a number of Python's
    """

    arrays: list[Any]
    size: Any
    is_number: bool

    def result(self, array: Any) -> Any:
        """Return what stands for the result, given the array of it."""
        return number_of(array, float) if self.is_number else array


def _parameters(given: Mapping[str, Any], *names: str) -> _Parameters | None:
    """Return the parameters of some names, or None if NumPy raises an error for them."""
    arrays = [_double(given[name]) for name in names]
    if any(array is None for array in arrays):
        return None
    shape = np.broadcast_shapes(*[np.shape(x) for x in arrays])
    size = given.get("size")
    if size is not None:
        wanted = tuple(size) if np.ndim(size) else (size,)
        try:
            if np.broadcast_shapes(shape, wanted) != wanted:
                return None
        except ValueError:
            return None
    return _Parameters(arrays, shape if size is None else size, size is None and not shape)


def _is_scale(x: Any) -> bool:
    """Return whether no element has a minus sign (-0.0 counts). The answer is a guard."""
    return bool(np.all(np.logical_or(np.isnan(x), np.logical_not(np.signbit(x)))))


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
        found = _parameters(given, *[name for name in (loc, scale) if name])
        if found is None:
            return NotImplemented
        if not _is_scale(found.arrays[-1]):
            return plainly(draw, given)
        result = found.arrays[-1] * draw.of(standard).array(size=found.size)
        return found.result(found.arrays[0] + result if loc else result)

    return way


def _uniform(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    given = {"low": 0.0, "high": 1.0, **given}
    found = _parameters(given, "low", "high")
    if found is None:
        return NotImplemented
    low, high = found.arrays
    width = np.subtract(high, low)
    is_new = not hasattr(draw.generator, "random_sample")
    is_fine = np.isfinite(width) & np.greater_equal(width, 0) if is_new else np.isfinite(width)
    if not bool(np.all(is_fine)):
        return plainly(draw, given)
    return found.result(low + width * draw.of("random" if is_new else "random_sample").array(found.size))


def _lognormal(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    normal = _scaled("standard_normal", "mean", "sigma")(draw, given)
    if normal is NotImplemented:
        return NotImplemented
    return number_of(np.exp(normal._array), float) if recorder.is_number(normal) else np.exp(normal)


def _gamma(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    given = {"scale": 1.0, **given}
    found = None if takes_traced([given["shape"]]) else _parameters(given, "shape", "scale")
    if found is None:
        return NotImplemented
    shape, scale = found.arrays
    if not _is_scale(scale):
        return plainly(draw, given)
    return found.result(scale * draw.of("standard_gamma").array(shape, found.size))


def _multivariate_normal(draw: DrawCall, given: dict[str, Any]) -> Any:
    if takes_traced([value for name, value in given.items() if name != "mean"]):
        return NotImplemented
    mean = as_array_of_list(given["mean"])
    return draw.array(**{**given, "mean": np.zeros(np.shape(mean))}) + mean


def _integers(draw: DrawCall, given: dict[str, Any]) -> Any:
    """Answer integers and randint: each bound that varies is a guard where no program can draw."""
    result = computed(draw, given)
    if result is not NotImplemented:
        return result
    bounds: dict[str, Any] = {name: given[name] for name in ("low", "high") if given.get(name) is not None}
    if any(not recorder.is_number(bound) and np.ndim(bound) for bound in bounds.values()):
        return NotImplemented
    return draw.result((), {**given, **{name: whole(bound, draw.name) for name, bound in bounds.items()}})


def _choice(draw: DrawCall, given: dict[str, Any]) -> Any:
    a, p = given["a"], given.get("p")
    if takes_traced([given.get(name) for name in ("replace", "axis", "shuffle")]):
        return NotImplemented
    if (recorder.is_number(a) or not np.ndim(a)) and p is None:
        result = computed(draw, given)
        if result is not NotImplemented:
            return result
    a = whole(a, draw.name) if recorder.is_number(a) else as_array_of_list(a)
    if not isinstance(a, dlarray) and np.ndim(a):
        a = np.asarray(a)  # of a list, or a range
        if a.dtype not in SUPPORTED_DTYPES:  # of texts
            return outside_of_programs(
                draw, given, "draw places, and take what lies there outside of the function"
            )
    is_of_array, is_old = bool(np.ndim(a)), hasattr(draw.generator, "random_sample")
    if is_old and (np.ndim(a) > 1 or "axis" in given):
        return NotImplemented
    axis = given.get("axis", 0)
    count = a.shape[axis] if is_of_array else operator.index(a)
    if p is None or not takes_traced([p]):
        named = {name: value for name, value in given.items() if name not in ("a", "axis")}
        places = draw.array(count, **named)
    else:
        shares = _double(p)
        if not given.get("replace", True) or shares is None or np.ndim(shares) != 1 or shares.size != count:
            return NotImplemented
        kind = getattr(p, "dtype", shares.dtype)
        least = max(np.finfo(kind if kind.kind == "f" else float).eps, np.finfo(float).eps)
        is_whole = np.abs(np.sum(shares) - 1) <= np.sqrt(least)
        if not bool(is_whole & np.all(np.greater_equal(shares, 0))):
            return plainly(draw, {**given, "a": count})
        sums = np.cumsum(shares)
        uniform = draw.of("random_sample" if is_old else "random").array(given.get("size"))
        places = np.searchsorted(sums / sums[-1], uniform, side="right")
    if is_of_array:
        return np.take(as_array(a) if takes_traced([places]) else a, places, axis=axis)  # which asks no place
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
    places = draw.of("permutation").array(x.shape[axis])
    if type(x) is np.ndarray and recorder.is_array(places) and ndarrays.is_to_replace(x, places):
        # np.random.shuffle is an object, which hands its arguments on; rng.shuffle is a function of Python.
        through = made_arrays.replaced_in_operation(x, _TAKEN if _is_of_module(sys._getframe(1)) else 0)
        x = x if through is None else through
    np.copyto(x, np.take(x, places, axis=axis))
    return None


def _is_of_module(frame: FrameType | None) -> bool:
    """Return whether the user's code has called a method of a generator as a function of np.random."""
    while frame is not None and is_internal(frame.f_code.co_filename):
        if frame.f_code is patches.AskedByUser.__call__.__code__:
            return True
        frame = frame.f_back
    return False


def _filled(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    """Return the array of the argument `out`, with what is drawn in it."""
    out = given["out"]
    if type(out) not in _ARRAYS or not out.flags.c_contiguous or not out.flags.writeable:
        return NotImplemented
    named = {name: value for name, value in given.items() if name != "out"}
    size, wanted = whole(given.get("size"), draw.name), np.dtype(given.get("dtype") or float)
    if out.dtype != wanted or (size is not None and np.empty(size).shape != out.shape):
        return draw.method(
            draw.generator, **{**named, "out": np.empty(out.shape, out.dtype)}
        )  # NumPy's error
    np.copyto(out, draw.array(**{**named, "size": out.shape}))
    return out


def _permuted_into(draw: DrawCall, given: Mapping[str, Any]) -> Any:
    """Return the array of the argument `out`, with what is permuted in it."""
    out, x = given["out"], given["x"]
    dtype = getattr(as_array_of_list(x), "dtype", None) or np.asarray(x).dtype
    if np.shape(x) != out.shape or not np.can_cast(dtype, out.dtype, "safe"):
        return plainly(draw, {**given, "out": np.empty(out.shape, out.dtype)})  # NumPy's error
    named = {name: value for name, value in given.items() if name != "out"}
    np.copyto(out, by_value(draw, named) if takes_traced([*named.values()]) else draw.array(**named))
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
