# SPDX-License-Identifier: BSD-3-Clause
"""Functions of scipy.sparse.linalg, linear operators and factors of sparse matrices that get traced arrays.

The program calls them, and those that are linear have derivatives (host_solvers.py). Factors are objects in C: their
class gets another method while something is recorded, and a method of one that something holds, as `factorized` gives
it, is replaced by what asks tracejit first.
"""

import functools
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import update_wrapper
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.errors import ArgumentValueError, DTypeError
from tracejit.functions.numpy_api import host_solvers
from tracejit.functions.numpy_api.lists import is_traced
from tracejit.functions.numpy_api.scipy_functions import (
    call_in_program,
    draws,
    either,
    first_of,
    has_traced,
    with_entered,
)
from tracejit.functions.refusals import refuse
from tracejit.record import monitor, patches
from tracejit.record.current import thread
from tracejit.util.arguments import is_option
from tracejit.util.text import brief

_PACKAGE = "scipy.sparse.linalg"
_MAKERS = frozenset(
    {"aslinearoperator", "factorized", "splu", "spilu"}
)  # functions whose results are objects
_RULES: dict[str, host_solvers.MethodRule] = {
    "rmatvec": host_solvers.of_product_from_left,
    **dict.fromkeys(("__matmul__", "dot", "matvec", "matmat"), host_solvers.of_product),
}
_MOST = 16  # systems, and held methods, that are kept


def install() -> None:
    """Have functions and methods answered while something is recorded, once they are imported."""
    patches.when_imported(_PACKAGE, _install)


def _install() -> None:
    module = sys.modules[_PACKAGE]
    for name in module.__all__:
        if isinstance(getattr(module, name), FunctionType):
            patches.answer(module, name, functools.partial(_answer, name))
    for name, rule in _RULES.items():
        host_solvers.add_rule(getattr(module.LinearOperator, name), rule)
        patches.replace_method(module.LinearOperator, name, functools.partial(_multiplied, name))
    patches.replace_method(module.SuperLU, "solve", _solved)
    patches.replace_objects(BuiltinFunctionType, functools.partial(_held, module.SuperLU))


def _answer(name: str, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    """Return the result of a function of a matrix, the first argument, and of traced arrays."""
    return with_entered(functools.partial(_answer_to, name, function), args, options)


def _answer_to(name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    if not args or not has_traced((*args, *options.values())):
        return NotImplemented
    if is_traced(args[0]):
        return _of_dense(name, function, args, options)
    called = functools.partial(_in_program, name, function, args, options)
    code = functools.partial(monitor.watched, function, *args, **options)
    return first_of([functools.partial(either, called, code)])


def _of_dense(name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    """Return the result of a function of a traced matrix, which is no sparse one."""
    called = f"{_PACKAGE}.{name}"
    result = NotImplemented
    if name not in _MAKERS and not draws(function):
        result = call_in_program(called, function, args, options)
    if result is NotImplemented:
        refuse(
            called,
            "not supported for a matrix that is traced; use a function of scipy.linalg, or a sparse matrix that is "
            "made outside of the function",
        )
    return result


def _in_program(name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    """Have the program call a function of a matrix that is not traced."""
    called, (matrix, *others) = f"{_PACKAGE}.{name}", args
    if name not in host_solvers.LINEAR:
        return call_in_program(called, MethodType(function, matrix), others, options)
    try:
        given = inspect.signature(function).bind(*args, **options).arguments
    except TypeError:  # which SciPy's function says itself
        return NotImplemented
    names = [*given]
    fixed = {name: given.pop(name) for name in names[2:] if _is_fixed(given[name])}
    system = _system(name, function, matrix, fixed)
    method = MethodType(host_solvers.solved, system)
    named = given.pop("kwargs", {}) | {
        name: given[name] for name in names[2:] if name in given and name != "kwargs"
    }
    return call_in_program(called, method, (given[names[1]],), named)


def _is_fixed(given: Any) -> bool:
    """Return whether an option is an object that the program keeps: a preconditioner."""
    return hasattr(given, "shape") and not is_traced(given) and not isinstance(given, np.generic)


_systems: OrderedDict[Any, host_solvers.System] = OrderedDict()  # by the ids of what they keep


def _system(
    name: str, function: Callable[..., Any], matrix: Any, fixed: dict[str, Any]
) -> host_solvers.System:
    """Return what solves with a matrix; the same for the same, so that recordings are alike."""
    key = name, id(matrix), tuple([(option, id(given)) for option, given in fixed.items()])
    if key not in _systems:
        _systems[key] = host_solvers.System(name, function, matrix, fixed)
        while len(_systems) > _MOST:
            _systems.popitem(last=False)
    return _systems[key]


def _multiplied(name: str, method: Callable[..., Any], operator: Any, other: Any) -> Any:
    """Return the product of a linear operator and an array."""

    def answer_to(args: Any, options: dict[str, Any]) -> Any:
        if not has_traced(args):
            return monitor.watched(method, operator, *args)
        called = f"{_PACKAGE}.LinearOperator.{name}"
        return first_of([functools.partial(call_in_program, called, MethodType(method, operator), args, {})])

    return with_entered(answer_to, (other,), {})


def _solved(method: Callable[..., Any], factors: Any, *args: Any, **options: Any) -> Any:
    """Return what the method of factors returns."""
    return with_entered(functools.partial(_solved_of, MethodType(method, factors), factors), args, options)


def _solved_of(method: Callable[..., Any], factors: Any, args: Any, options: dict[str, Any]) -> Any:
    """Return what the method of factors, which takes ndarrays only, returns of the arguments."""
    if has_traced((*args, *options.values())):
        with monitor.paused():
            return _factored(factors, *args, **options)
    plain = [np.asarray(x) if isinstance(x, dlarray) else x for x in args]
    return method(
        *plain, **{name: np.asarray(x) if isinstance(x, dlarray) else x for name, x in options.items()}
    )


def _factored(factors: Any, rhs: Any, trans: str = "N") -> Any:
    """Return the solution of a system whose matrix has been factored."""
    name = f"{_PACKAGE}.SuperLU.solve"
    if not is_option(trans, ("N", "T", "H")):
        refuse(name, f'trans must be "N", "T" or "H", not {brief(trans)}', ArgumentValueError)
    found = call_in_program(name, MethodType(host_solvers.factored, factors), (rhs, trans), {})
    if found is NotImplemented:
        dtype, given = factors.U.dtype, getattr(rhs, "dtype", type(rhs).__name__)
        raise DTypeError(
            f"{name}: rhs must be an array whose dtype can be cast to {dtype}, that of the factors, not {given}; solve "
            "for real and imaginary parts, or factor a matrix of its dtype."
        )
    return found


class _HeldSolve(patches.Patched):
    """The replacement of the method of factors that something holds."""

    is_made_for_users = False

    def __init__(self, original: Any) -> None:
        update_wrapper(self, original)
        self.name = original.__name__
        self._original = original

    def __call__(self, *args: Any, **options: Any) -> Any:
        if thread.recorder is None:
            return self._original(*args, **options)
        answer = functools.partial(_solved_of, self._original, self._original.__self__)
        return with_entered(answer, args, options)


_held_solves: OrderedDict[Any, None] = OrderedDict()


def _held(kind: type, function: Any) -> _HeldSolve | None:
    """Return what stands for a method of factors, of which the last few are kept; None for any other function."""
    if type(function.__self__) is not kind or function.__name__ != "solve":
        return None
    _held_solves[function] = None
    while len(_held_solves) > _MOST:
        patches.forget(_held_solves.popitem(last=False)[0])
    return _HeldSolve(function)
