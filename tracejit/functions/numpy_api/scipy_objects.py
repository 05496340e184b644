# SPDX-License-Identifier: BSD-3-Clause
"""Objects of SciPy that recorded code uses with traced arrays: splines, interpolators, distributions, trees.

A class that makes an object of traced arrays is tracejit's own of the same name. A method of an object of SciPy's goes
the ways of a function of SciPy's (Note [functions of SciPy] in scipy_functions.py).
"""

import functools
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

from tracejit.array import dlarray
from tracejit.functions.numpy_api.draws import without_constants
from tracejit.functions.numpy_api.scipy_functions import (
    call_in_program,
    counterpart_of,
    first_of,
    has_traced,
    ways_without,
    with_entered,
)
from tracejit.functions.refusals import refuse
from tracejit.record import monitor, patches, recorder
from tracejit.record.conversion import LISTS
from tracejit.util.compositions import has_counterpart
from tracejit.util.text import module_of

_Make = Callable[[Any, Any], Any]  # takes tracejit's package of the same name, and an object of SciPy's


def _spline(package: Any, o: Any) -> Any:
    is_of_powers = isinstance(o, sys.modules["scipy.interpolate"].PPoly)  # not of Bernstein's polynomials
    return package.PPoly(o.c, o.x, o.extrapolate, o.axis) if is_of_powers else None


def _of_b_splines(package: Any, o: Any) -> Any:
    return package.BSpline(o.t, o.c, o.k, o.extrapolate, o.axis)


def _between_neighbours(package: Any, o: Any) -> Any:
    kind, places = o._kind, o.x  # a name, which SciPy keeps nowhere else
    if kind == "spline":  # which SciPy computes in float64
        kind, places = o._spline.k, o.x.astype(float)
    return package.interp1d(
        places, o.y, kind, o.axis, False, o.bounds_error, o.fill_value, assume_sorted=True
    )


def _on_grid(package: Any, o: Any) -> Any:
    return package.RegularGridInterpolator(o.grid, o.values, o.method, o.bounds_error, o.fill_value)


def _distribution(package: Any, o: Any) -> Any:
    known: Any = getattr(sys.modules["scipy.stats"], str(o.name), None)
    is_known = type(known) is type(o) and (o.a, o.b) == (known.a, known.b)
    return getattr(package, o.name, None) if is_known else None


def _rotation(package: Any, o: Any) -> Any:
    return package.Rotation(o.as_quat())


def _between(package: Any, o: Any) -> Any:
    last = o.rotations[-1] * type(o.rotations).from_rotvec(
        o.rotvecs[-1]
    )  # which SciPy's object does not keep
    return package.Slerp(o.times, package.Rotation.concatenate([o.rotations, last]))


def _named(name: str, package: Any, o: Any) -> Any:
    return getattr(package, name)


_OF_DISTRIBUTIONS = (
    "pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf", "mean",
    "median", "var", "std", "entropy",
)  # fmt: skip
_OF_VECTORS = ("pdf", "logpdf", "cdf", "logcdf")
_DISTRIBUTIONS_OF_VECTORS = ("multivariate_normal", "multivariate_t", "dirichlet")
_OF_TREES = ("query", "query_ball_point")
_OF_LISTS = frozenset({"query_ball_point"})  # whose results are lists, in each call of other lengths
_OF_TRANSFORMS = ("stft", "stft_detrend", "istft", "spectrogram")
_METHODS: dict[str, dict[str, tuple[tuple[str, ...], _Make | None]]] = {
    "scipy.interpolate": {
        "PPoly": (("__call__",), _spline),
        "BPoly": (("__call__",), _spline),  # its own since SciPy 1.18
        "BSpline": (("__call__",), _of_b_splines),
        "RegularGridInterpolator": (("__call__",), _on_grid),
        "interp1d": (("__call__",), _between_neighbours),
        **dict.fromkeys(
            ("BarycentricInterpolator", "NdPPoly", "LinearNDInterpolator", "NearestNDInterpolator",
             "RBFInterpolator", "UnivariateSpline", "RectBivariateSpline"),
            (("__call__",), None),
        ),
    },
    "scipy.stats": {
        "rv_continuous": (_OF_DISTRIBUTIONS, _distribution),
        "rv_discrete": (_OF_DISTRIBUTIONS, _distribution),
        "gaussian_kde": (("__call__", "evaluate", "logpdf"), None),
        **{name: (_OF_VECTORS, functools.partial(_named, name)) for name in _DISTRIBUTIONS_OF_VECTORS},
    },
    "scipy.spatial": {"KDTree": (_OF_TREES, None), "cKDTree": (_OF_TREES, None)},
    "scipy.spatial.transform": {"Rotation": (("apply",), _rotation), "Slerp": (("__call__",), _between)},
    "scipy.signal": {"ShortTimeFFT": (_OF_TRANSFORMS, None)},
}  # fmt: skip
"""Methods by package and class, and what makes tracejit's object of one of SciPy's, if it has one."""


def install() -> None:
    """Have classes and methods of SciPy's packages answered while something is recorded, once these are imported."""
    for package in _METHODS:
        patches.when_imported(package, functools.partial(_install, package))


def _install(package: str) -> None:
    module = sys.modules[package]
    if package == "scipy.signal":
        patches.replace_method(module.ShortTimeFFT, "__init__", _with_window)
    for name, (methods, make) in _METHODS[package].items():
        found = getattr(module, name, None)
        kind = found if isinstance(found, type) else type(found)
        frozen = getattr(sys.modules[kind.__module__], f"{name}_frozen", None)  # with fixed parameters
        for method in methods:
            _replace(kind, method, functools.partial(_answer, package, make, method))
            if frozen is not None:
                _replace(frozen, method, functools.partial(_answer, package, None, method))
    for name in getattr(module, "__all__", ()):
        if has_counterpart(f"{package}.{name}") and isinstance(getattr(module, name, None), type):
            attribute = functools.partial(_attribute, package, name)
            patches.answer_class(module, name, functools.partial(_made, package, name), attribute)


def _replace(kind: type, method: str, answer: Callable[..., Any]) -> None:
    """Have a method replaced in the class that a class has it from."""
    owner = next((base for base in kind.__mro__ if method in vars(base)), None)
    if owner is not None:
        patches.replace_method(owner, method, answer)


def _with_window(method: Callable[..., Any], transform: Any, *args: Any, **options: Any) -> Any:
    """Make a ShortTimeFFT, which locks the memory of its window: an ndarray, and none that is traced."""
    if has_traced((*args, *options.values())):
        refuse(
            "scipy.signal.ShortTimeFFT",
            "its window cannot be traced; make it outside of the function, or use tj.stft(x, window), which has "
            "derivatives by the window",
        )
    plain, named = _plain(args, options)
    return method(transform, *plain, **named)


def _plain(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments with ndarrays in the place of constants, whose memory code in C may not write or lock."""
    return [*map(without_constants, args)], {name: without_constants(part) for name, part in options.items()}


def _made(package: str, name: str, kind: type, /, *args: Any, **options: Any) -> Any:
    """Return an object of tracejit's class that has the name of one of SciPy's; or NotImplemented."""
    return with_entered(functools.partial(_made_of, package, name, kind), args, options)


def _made_of(package: str, name: str, kind: type, args: Any, options: dict[str, Any]) -> Any:
    if not has_traced((*args, *options.values())):
        return NotImplemented
    ours = getattr(counterpart_of(package), name)
    return first_of([
        functools.partial(ours, *args, **options),
        functools.partial(monitor.watched, kind, *args, **options),
    ])  # fmt: skip


def _attribute(package: str, name: str, attribute: str, theirs: Any) -> Any:
    """Return what stands for an attribute of a class: for another function that makes objects, one that asks."""
    ours = getattr(counterpart_of(package), name)
    if not isinstance(vars(ours).get(attribute), classmethod):
        return theirs

    def made(args: Any, options: dict[str, Any]) -> Any:
        if not has_traced((*args, *options.values())):
            plain, named = _plain(args, options)
            return theirs(*plain, **named)
        with monitor.paused():
            return getattr(ours, attribute)(*args, **options)

    return lambda *args, **options: with_entered(made, args, options)


def _answer(
    package: str, make: _Make | None, name: str, method: Callable[..., Any], owner: Any, /,
    *args: Any, **options: Any,
) -> Any:  # fmt: skip
    """Return the result of a method of an object of SciPy's."""
    return with_entered(functools.partial(_answer_to, package, make, name, method, owner), args, options)


def _answer_to(
    package: str, make: _Make | None, name: str, method: Callable[..., Any], owner: Any,
    args: Any, options: dict[str, Any],
) -> Any:  # fmt: skip
    if not has_traced((*args, *options.values())):
        plain, named = _plain(args, options)
        return monitor.watched(method, owner, *plain, **named)
    title = str(getattr(owner, "name", ""))
    title = title if title.isidentifier() else type(owner).__name__
    called = f"{package}.{title}" if name == "__call__" else f"{package}.{title}.{name}"
    code = functools.partial(monitor.watched, method, owner, *args, **options)
    in_program = functools.partial(call_in_program, called, MethodType(method, owner), args, options)
    ways = ways_without(code, in_program)
    if name in _OF_LISTS and not options.get("return_length"):
        ways = [functools.partial(_by_value, called, method, owner, args, options)]
    if make is not None and module_of(type(owner)).startswith("scipy."):  # not of a class of the user's
        ways.insert(0, functools.partial(_by_counterpart, package, make, name, owner, args, options))
    return first_of(ways)


def _by_value(
    called: str, method: Callable[..., Any], owner: Any, args: Any, options: dict[str, Any]
) -> Any:  # fmt: skip
    """Return what a method gives for the values of its arguments, which are guards: it has no derivative."""
    values = [_value_of(called, x) for x in args]
    named = {key: _value_of(called, x) for key, x in options.items()}
    return monitor.watched(method, owner, *values, **named)


def _value_of(called: str, given: Any) -> Any:
    if type(given) in LISTS:
        return type(given)([_value_of(called, part) for part in given])
    if recorder.is_number(given):
        return given.needed(called, drops=False)
    return recorder.need_value(given, called) if isinstance(given, dlarray) else given


def _by_counterpart(
    package: str, make: _Make, name: str, owner: Any, args: Any, options: dict[str, Any]
) -> Any:  # fmt: skip
    ours = make(counterpart_of(package), owner)
    return NotImplemented if ours is None else getattr(ours, name)(*args, **options)
