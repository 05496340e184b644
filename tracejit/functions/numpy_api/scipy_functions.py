# SPDX-License-Identifier: BSD-3-Clause
"""Functions of SciPy that recorded code calls with traced arrays.

Note [functions of SciPy]
Functions of SciPy convert their arguments to ndarrays, and ask no array whether it can answer for them. So while
something is recorded, the names in SciPy's packages stand for replacements, as those in NumPy do (patches.py). With
traced arrays among the arguments these try, in this order:

1. tracejit's own function of the same name, which has derivatives (`tj.linalg.solve` for `scipy.linalg.solve`);
2. SciPy's code itself, which is recorded if it computes with NumPy's functions alone, and no value decides about it;
3. a call of SciPy's function that the program makes with the arrays of the replay. It has no derivative.

A way that raises an error leaves no trace but operations that nobody uses, and the next way is tried; the error of the
last is what the user's code sees. A function that draws random numbers, calls a function of the user's, or writes an
array that it is given is not called by a program, because it may do something else in each call. The code of one that
draws or calls back runs once: a second way would draw, and call, again.

An array that the function captures (``softmax(self.u)``) is traced only once an operation has taken it. So the traced
array of the same elements is given in its place: otherwise SciPy would compute with its numbers, and a replay would not
compute again what the function assigns. Where no way takes it, or a function of the user's is called, SciPy's code gets
what the user's code gave: it computes with the numbers, which are compared at each call.
"""

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.errors import ArgumentError
from tracejit.functions.numpy_api.lists import is_traced
from tracejit.record import monitor, patches, recorder, views
from tracejit.record.conversion import LISTS
from tracejit.record.guards import GuardFailed
from tracejit.util.compositions import has_counterpart
from tracejit.util.text import module_of
from tracejit.util.uninterrupted import is_of_handler

_PACKAGES = (
    "cluster.hierarchy", "cluster.vq", "fft", "fftpack", "integrate", "interpolate", "linalg", "ndimage", "optimize",
    "signal", "signal.windows", "sparse.csgraph", "spatial", "spatial.distance", "special", "stats",
    "stats.contingency", "stats.qmc",
)  # fmt: skip
_NO_FUNCTIONS = (type, np.ufunc, types.ModuleType)
_OTHER_BASIS = frozenset({"scipy.linalg.null_space", "scipy.linalg.orth"})  # tracejit's spans the same space
# Matrices of which SciPy reads some elements only.
_SPECIAL = frozenset({"diagonal", "tridiagonal", "banded"})
_DRAWS = frozenset({"rng", "random_state", "seed"})  # parameters of functions that draw random numbers
_WRITTEN = ("out", "output")  # options that are arrays which a function writes
_WRITTEN_BY_TRANSFORMS = (
    "distances",
    "indices",
)  # by functions named distance_transform_...; others read them
_WITHOUT_EFFECT = frozenset(
    {"check_finite", "overwrite_a", "overwrite_b", "overwrite_x", "overwrite_ab", "workers"}
)


def install() -> None:
    """Have functions of SciPy's packages answered while something is recorded, once these are imported."""
    for package in _PACKAGES:
        patches.when_imported(f"scipy.{package}", functools.partial(_install, f"scipy.{package}"))


def _install(package: str) -> None:
    module = sys.modules[package]
    for name in getattr(module, "__all__", None) or [name for name in vars(module) if name[0] != "_"]:
        function = getattr(module, name, None)
        is_function = callable(function) and not isinstance(function, _NO_FUNCTIONS)
        if is_function and hasattr(function, "__name__") and not patches.is_patched(function):
            patches.answer(module, name, functools.partial(_answer, f"{package}.{name}"))


def _answer(name: str, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    """Return the result of a function of SciPy; NotImplemented without traced arrays (Note [functions of SciPy])."""
    named = dict(zip(_parameters(function), args, strict=False)) | options
    answer = functools.partial(_answer_to, name, function, bool(named.get("overwrite_data")))
    if draws(function) or named.get("overwrite_data"):  # which no way may do in vain
        return answer(args, options)
    return with_entered(answer, args, options)


def _answer_to(
    name: str, function: Callable[..., Any], writes: bool, args: Any, options: dict[str, Any]
) -> Any:  # fmt: skip
    given = _reading_in_c(name, function, args, options)
    if given is not None:
        args, options = given
    if not has_traced((*args, *options.values())):
        return NotImplemented if given is None else monitor.watched(function, *args, **options)
    _refuse_written(name, function, args, options)
    code = functools.partial(monitor.watched, function, *args, **options)
    in_program = functools.partial(_in_program, name, function, args, options)
    is_once = draws(function) or any(map(_calls_back, (*args, *options.values())))
    ways = [code] if is_once else ways_without(code, in_program, writes)
    is_special = options.get("assume_a") in _SPECIAL
    if has_counterpart(name) and name not in _OTHER_BASIS and not is_special:
        ways.insert(0, functools.partial(_as_tracejit, name, args, options))
    return first_of(ways)


def with_entered(answer: Callable[[Any, dict[str, Any]], Any], args: Any, options: dict[str, Any]) -> Any:
    """Return the answer to a call with traced arrays in the places of captured ones; to the call itself if that fails.

    Args:
        answer: is called with the arguments, and those by name.
        args, options: what the user's code gave.
    """
    current = recorder.thread.recorder
    given = (*args, *options.values())
    if any(map(_calls_back, given)) or not has_captured(given):
        return answer(args, options)
    try:
        with current.attempt():
            return answer((*map(_entered, args),), {name: _entered(x) for name, x in options.items()})
    except GuardFailed:
        raise
    except Exception as error:
        if is_of_handler(error):
            raise
    return answer(args, options)


def has_captured(arguments: Iterable[Any], depth: int = 3) -> bool:
    """Return whether there is a captured array among arguments, or in lists of them."""
    for given in arguments:
        if type(given) is dlarray:
            if recorder.is_captured(given):
                return True
        elif type(given) in LISTS and depth and has_captured(given, depth - 1):
            return True
    return False


def _entered(given: Any, depth: int = 3) -> Any:
    """Return an argument with traced arrays in the places of captured ones, also in lists.

    They are views, because code may write its argument.
    """
    if type(given) is dlarray:
        found = views.entered(given)
        if found is not given and not views.is_scalar(given):
            views.link(found, given)
        return found
    if type(given) in LISTS and depth and has_captured(given, depth):
        return type(given)([_entered(part, depth - 1) for part in given])
    return given


def _calls_back(given: Any) -> bool:
    """Return whether an argument is a function of the user's, which no way may call in vain."""
    return callable(given) and not module_of(type(given)).startswith("scipy.") and type(given) is not np.ufunc


def ways_without(
    code: Callable[[], Any], in_program: Callable[[], Any], writes: bool = False
) -> list[Callable[[], Any]]:
    """Return the ways without tracejit's own function.

    Args:
        code: runs SciPy's code.
        in_program: has the program call it, or returns NotImplemented; then values may decide about the code.
        writes: whether the code writes its argument, and returns it: then it may take the memory of an ndarray.
    """
    return [functools.partial(without_guards, code, writes), functools.partial(either, in_program, code)]


def first_of(ways: Sequence[Callable[[], Any]]) -> Any:
    """Return the result of the first of some ways that raises no error and does not return NotImplemented.

    Raises:
        Exception: the last one, if no way works.
    """
    current = recorder.thread.recorder
    failed: Exception | None = None
    for way in ways:
        try:
            with current.attempt():
                result = way()
            if result is not NotImplemented:
                return _known(result)
        except GuardFailed:
            raise
        except Exception as error:
            if is_of_handler(error):
                raise
            failed = error
    assert failed is not None
    raise failed


def either(way: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """Return the result of a way, or of another if that returns NotImplemented."""
    result = way()
    return other() if result is NotImplemented else result


def without_guards(way: Callable[[], Any], may_take: bool = False) -> Any:
    """Return the result of a way; `may_take` if it may read the elements of arrays that are no inputs.

    Raises:
        _DecidedError: if values would decide what is recorded.
    """
    current = recorder.thread.recorder

    def noted() -> Any:
        taken = 0 if may_take else current.state.taken_count()
        return len(current.guards), len(current.needed), current.refusal, taken

    before = noted()
    result = way()
    if noted() != before:
        raise _DecidedError  # so that what it has noted is forgotten
    return result


class _DecidedError(Exception):
    """Values have decided what was recorded."""


def _known(result: Any) -> Any:
    """Return a result in containers that trees know."""
    if not isinstance(result, tuple) or not hasattr(result, "_extra_fields"):
        return result
    from tracejit.functions.numpy_api import in_python

    return in_python.like_tuple(result, (*result, *[getattr(result, name) for name in result._extra_fields]))


def has_traced(arguments: Any, depth: int = 3) -> bool:
    """Return whether there is a traced array, or a number that varies, among arguments or in lists of them."""
    for given in arguments:
        if is_traced(given):
            if recorder.is_number(given) or given._value is not None:
                return True
        elif type(given) in LISTS:
            if depth and has_traced(given, depth - 1):
                return True
        elif isinstance(given, tree.TreeNode) and has_traced(given._leaves):
            return True
    return False


def _reading_in_c(
    name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of a solver in C with functions that return ndarrays; None for any other function."""
    if name not in ("scipy.optimize.minimize", "scipy.optimize.least_squares"):
        return None
    named = dict(zip(_parameters(function), args, strict=False)) | options
    if name == "scipy.optimize.minimize":
        default = (
            "SLSQP" if named.get("constraints", ()) else "BFGS" if named.get("bounds") is None else "L-BFGS-B"
        )
        if str(named.get("method") or default).upper() not in ("L-BFGS-B", "SLSQP"):
            return None  # those in Python compute with dlarrays, so that their results have derivatives
    for key in ("fun", "jac"):
        if callable(named.get(key)):
            named[key] = functools.partial(_with_plain_result, named[key])
    return (), named


def _with_plain_result(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return the result of a function of the user's with ndarrays in place of dlarrays."""
    found = function(*args, **options)
    return tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, dlarray) else leaf, found)


def _as_tracejit(name: str, args: Any, options: dict[str, Any]) -> Any:
    """Call tracejit's function of the same name."""
    package, _, last = name.rpartition(".")
    ours = getattr(counterpart_of(package), last)
    if not options.keys().isdisjoint(_WITHOUT_EFFECT):
        known = _parameters(ours)
        options = {key: value for key, value in options.items() if key in known or key not in _WITHOUT_EFFECT}
    return ours(*args, **options)


def counterpart_of(package: str) -> Any:
    """Return tracejit's package of the name that one of SciPy has."""
    return importlib.import_module(f"tracejit{package.removeprefix('scipy')}")


def _in_program(name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    """Have the program call SciPy's function."""
    return NotImplemented if draws(function) else call_in_program(name, function, args, options)


def draws(function: Callable[..., Any]) -> bool:
    """Return whether a function takes a generator of random numbers: its calls may then differ."""
    return not _DRAWS.isdisjoint(_parameters(function))


def call_in_program(name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    """Have the program call a function; NotImplemented if it cannot."""
    from tracejit.functions.numpy_api import in_python  # late: it imports the ops of SciPy's functions

    return in_python.call(name, function, args, options)


def _refuse_written(name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]) -> None:
    """Raise an error for an array that a function writes: what SciPy's code writes into a traced one would be lost."""
    named = dict(zip(_parameters(function), args, strict=False)) | options
    is_transform = function.__name__.startswith("distance_transform")
    for option in (*_WRITTEN, *(_WRITTEN_BY_TRANSFORMS if is_transform else ())):
        if isinstance(named.get(option), (np.ndarray, dlarray)):
            raise ArgumentError(
                f"{name}: {option}= is no array that a function with traced arrays writes; leave it out, and assign "
                "the result (y[...] = result)."
            )


@functools.lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a function, in order."""
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # of one written in C
        return ()
