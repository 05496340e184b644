# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of SciPy that recorded code calls with functions of the user's.

Note [solvers of SciPy]
`minimize`, `fsolve`, `solve_ivp` and others call the user's function hundreds of times, and make plain numbers of what
it returns, so that their results have no derivative and are constants of the call. To record what the function does
would take a hundred times as long as the solver, and serve nothing. So the solver, and the user's function, get the
numbers of the traced arrays: in the arguments, and in the variables of functions from outside them (`lambda z:
cost(z, x)`). Each is noted as a plain number, so that a derivative by what it depends on is an error, and what the
function writes into one is written into the array afterwards. Arrays that the function reads otherwise, such as
attributes of an object, are computed with as in any recording. Powell's method computes with what the function returns,
and is recorded, with a derivative. So is a function that calls stop_gradient(), because only the values that it names
are constants.
"""

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.record import monitor, recorder, views
from tracejit.record.places import user_location
from tracejit.record.plain_numbers import PlainNumber

_NAMES = {
    "scipy.optimize": (
        "minimize", "minimize_scalar", "least_squares", "leastsq", "curve_fit", "fsolve", "root", "root_scalar",
        "brentq", "brenth", "ridder", "bisect", "toms748", "differential_evolution", "dual_annealing", "basinhopping",
        "shgo", "direct", "brute", "fmin", "fmin_bfgs", "fmin_cg", "fmin_ncg", "fmin_cobyla",
        "fmin_l_bfgs_b", "fmin_slsqp", "fmin_tnc", "fminbound", "brent", "golden",
    ),
    "scipy.integrate": ("solve_ivp", "odeint", "quad", "dblquad", "tplquad", "nquad", "quad_vec", "solve_bvp"),
}  # fmt: skip
_SOLVERS = frozenset(f"{package}.{name}" for package, names in _NAMES.items() for name in names)
_CONTAINERS = (list, tuple, dict)


def takes_numbers(name: str, named: Mapping[str, Any]) -> bool:
    """Return whether a function of SciPy is a solver whose results have no derivative.

    Args:
        name: the function.
        named: its arguments by name.
    """
    if any(map(_stops_gradients, named.values())):
        return False
    is_powells = name == "scipy.optimize.minimize" and str(named.get("method")).upper() == "POWELL"
    return name in _SOLVERS and not is_powells


def _stops_gradients(given: Any) -> bool:
    """Return whether a function says itself which of its values are constants."""
    while isinstance(given, (functools.partial, types.MethodType)):
        given = given.func if isinstance(given, functools.partial) else given.__func__
    return isinstance(given, types.FunctionType) and "stop_gradient" in given.__code__.co_names


def solved(name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    """Return the result of a solver for plain numbers (Note [solvers of SciPy])."""
    plain = _Plain(name)
    args, options = plain.of((args, options))
    result = monitor.watched(function, *args, **options)
    plain.write_back()
    return result


class _Plain:
    """The plain forms of what a solver gets.

    Args:
        name: the solver.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._arrays: dict[int, tuple[dlarray, np.ndarray]] = {}

    def of(self, given: Any) -> Any:
        """Return an argument, or what it holds, with ndarrays in the places of dlarrays."""
        kind = type(given)
        if kind is dlarray:
            return self._array(given)
        if kind in _CONTAINERS:
            parts = given.values() if kind is dict else given
            made = [self.of(part) for part in parts]
            return dict(zip(given, made, strict=True)) if kind is dict else kind(made)
        if kind is functools.partial:
            return self._calling(
                functools.partial(self.of(given.func), *self.of(given.args), **self.of(given.keywords))
            )
        if kind is types.FunctionType:
            return self._calling(self._function(given))
        return self._calling(given) if isinstance(given, types.MethodType) else given

    def _array(self, array: dlarray) -> Any:
        if recorder.is_number(array):
            return array
        known = self._arrays.get(id(array))
        if known is None:
            data = recorder.need_value(array, self._name).copy()
            value: Any = array._value
            if value is not None and data.dtype.kind in "fc" and recorder.is_open(array):
                value.owner.plain_numbers.setdefault(value, PlainNumber(self._name, user_location()))
            known = self._arrays[id(array)] = array, data
        return known[1][()] if views.is_scalar(array) else known[1]

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        """Return a function with ndarrays in the places of the dlarrays among its variables from outside."""
        cells = function.__closure__ or ()
        if not any(type(_content(cell)) is dlarray for cell in cells):
            return function
        closure = tuple(
            [
                types.CellType(self.of(cell.cell_contents)) if type(_content(cell)) is dlarray else cell
                for cell in cells
            ]
        )
        made = types.FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, closure
        )
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    def _calling(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that returns ndarrays in the places of dlarrays."""

        @functools.wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            found = function(*args, **options)
            return tree.map(lambda leaf: np.asarray(leaf) if type(leaf) is dlarray else leaf, found)

        return called

    def write_back(self) -> None:
        """Write into the arrays what the user's function has written into their plain forms."""
        for array, data in self._arrays.values():
            if data.tobytes() != array._data.tobytes():
                array[...] = data


def _content(cell: types.CellType) -> Any:
    """Return what a variable from outside stands for; None if it has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
