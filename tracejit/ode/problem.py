# SPDX-License-Identifier: BSD-3-Clause
"""A right-hand side, and the functions of solvers that are accelerated for it."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.accelerate.function import dlaccelerate
from tracejit.array import as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions.elementwise import stop_gradient
from tracejit.functions.evaluate import dlgradient
from tracejit.ode import steps
from tracejit.ode.solve import integrate
from tracejit.ode.steps import State, Steps, Tolerances
from tracejit.util.text import brief

MOST_KEPT = 16  # right-hand sides whose accelerated functions are kept


class Containers:
    """The containers of a state or of parameters, and the formats of the arrays in them."""

    def __init__(self, what: str, argument: str, value: Any) -> None:
        leaves, self.treedef = tree.flatten(value)
        self.arrays = [as_array(leaf, what, argument) for leaf in leaves]
        self.formats = tuple([array.format for array in self.arrays])

    @property
    def key(self) -> Hashable:
        return self.treedef, self.formats

    def filled(self, arrays: Sequence[Any]) -> Any:
        """Return the containers around other arrays, which get the formats of the first ones."""
        leaves = [
            dlarray(array, form) if form and getattr(array, "format", None) != form else array
            for array, form in zip(arrays, self.formats, strict=True)
        ]
        return tree.unflatten(self.treedef, leaves)


class Problem:
    """A right-hand side f(t, y, theta) on the arrays of its state, with what solvers accelerate of it."""

    def __init__(
        self, what: str, fun: Callable[..., Any], state: Containers, theta: Containers | None
    ) -> None:
        self.what, self.fun = what, fun
        self.state_treedef, self.state = state.treedef, state
        self.theta = theta

    def slope(self, t: Any, state: State, theta: State) -> State:
        """Return the derivatives of the arrays of a state.

        Raises:
            DimsError: if their containers or sizes differ from those of the state.
        """
        y = self.state.filled(state)
        result = self.fun(t, y) if self.theta is None else self.fun(t, y, self.theta.filled(theta))
        leaves, treedef = tree.flatten(result)
        if treedef != self.state.treedef:
            raise DimsError(
                f"{self.what}: the right-hand side returned {brief(result)}; return the derivative in the containers "
                f"of the state, {treedef_text(self.state)}."
            )
        slopes = []
        for number, (leaf, y_part) in enumerate(zip(leaves, state, strict=True)):
            part = as_array(leaf, self.what, "the derivative")
            if part.shape != y_part.shape:
                where = tree.paths(self.state.treedef, "y")[number]
                raise DimsError(
                    f"{self.what}: the right-hand side returned a derivative of {where} of size {part.shape}, expected "
                    f"{y_part.shape}, the size of the state."
                )
            slopes.append(part)
        return tuple(slopes)

    @cached_property
    def fast_slope(self) -> Any:
        return dlaccelerate(self.slope)

    @cached_property
    def fast_between(self) -> Any:
        return dlaccelerate(steps.between)

    def fast_step(self, tolerances: Tolerances) -> Any:
        """Return an accelerated step."""
        return self._kept(
            ("step", tolerances),
            lambda: dlaccelerate(
                lambda t, h, state, first, theta: steps.dormand_prince(
                    lambda t, y: self.slope(t, y, theta), t, h, state, first, tolerances
                )
            ),
        )

    def adjoint_slope(self, t: Any, state: State, theta: State) -> State:
        """Return the derivatives of a state, of the cotangents by it, and of the gradients by the parameters."""
        count = len(self.state.formats)
        # The state of a stage depends on the parameters by the stages before; the slope is differentiated as if not.
        y, theta = tuple(map(stop_gradient, state[:count])), tuple(map(stop_gradient, theta))
        cotangents = state[count : 2 * count]
        slopes = self.slope(t, y, theta)
        pairs = [(a * unlabelled(f)).sum() for a, f in zip(cotangents, slopes, strict=True)]
        gradients = dlgradient(sum(pairs[1:], pairs[0]), (*y, *theta))
        return (*map(unlabelled, slopes), *[-unlabelled(g) for g in gradients])

    @cached_property
    def fast_adjoint_slope(self) -> Any:
        return dlaccelerate(self.adjoint_slope)

    def fast_adjoint_step(self, tolerances: Tolerances) -> Any:
        """Return an accelerated step of the adjoint."""
        return self._kept(
            ("adjoint", tolerances),
            lambda: dlaccelerate(
                lambda t, h, state, first, theta: steps.dormand_prince(
                    lambda t, y: self.adjoint_slope(t, y, theta), t, h, state, first, tolerances
                )
            ),
        )

    def _kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        kept: dict[Hashable, Any] = self.__dict__.setdefault("_functions", {})
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def solved(
        self, times: Sequence[float], state: State, theta: State, tolerances: Tolerances, sizes: Steps
    ) -> list[State]:
        """Return the states at all times but the first, by accelerated steps."""
        step = self.fast_step(tolerances)
        return integrate(
            self.what,
            lambda t, y: self.fast_slope(t, y, theta),
            lambda t, h, y, first: step(t, h, y, first, theta),
            self.fast_between,
            times, state, tolerances, sizes,
        )  # fmt: skip

    def solved_adjoint(
        self, times: Sequence[float], state: State, theta: State, tolerances: Tolerances
    ) -> State:
        """Return the state, the cotangents and the gradients at the second of two times."""
        step = self.fast_adjoint_step(tolerances)
        (result,) = integrate(
            f"{self.what}, adjoint",
            lambda t, y: self.fast_adjoint_slope(t, y, theta),
            lambda t, h, y, first: step(t, h, y, first, theta),
            self.fast_between,
            times, state, tolerances, Steps(),
        )  # fmt: skip
        return result


def unlabelled(array: Any) -> Any:
    return array.stripdims() if isinstance(array, dlarray) and array.format else array


def treedef_text(containers: Containers) -> str:
    return brief(tree.unflatten(containers.treedef, ["*"] * len(containers.formats)))


_problems: "OrderedDict[Hashable, tuple[Problem, Any]]" = OrderedDict()


def problem_of(what: str, fun: Callable[..., Any], state: Containers, theta: Containers | None) -> Problem:
    """Return the problem of a right-hand side; one that was met before has its accelerated functions already.

    Functions of the same code that hold the same objects, such as a lambda in a loop, are the same right-hand side.
    """
    code = getattr(fun, "__code__", None)
    held: tuple[Any, ...] = (fun,)
    if code is not None and type(fun).__name__ == "function":
        cells = getattr(fun, "__closure__", None) or ()
        try:
            contents = [cell.cell_contents for cell in cells]
            held = (code, fun.__globals__, fun.__defaults__, fun.__kwdefaults__, *contents)  # type: ignore[attr-defined]
        except ValueError:  # an empty cell
            held = (fun,)
    parameters = None if theta is None else theta.key
    key = (tuple(map(id, held)), state.key, parameters)
    found = _problems.get(key)
    if found is None:
        found = _problems[key] = Problem(what, fun, state, theta), held  # which keeps the ids
        while len(_problems) > MOST_KEPT:
            _problems.popitem(last=False)
    _problems.move_to_end(key)
    return found[0]


def plain(arrays: Sequence[Any]) -> list[np.ndarray]:
    """Return the elements of arrays."""
    return [array._data if isinstance(array, dlarray) else np.asarray(array) for array in arrays]
