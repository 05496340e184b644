# SPDX-License-Identifier: BSD-3-Clause
"""A right-hand side, and the solvers' functions that are accelerated for it."""

import copy
import types
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.accelerate.function import dlaccelerate, with_constants
from tracejit.array import as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions.elementwise import stop_gradient
from tracejit.functions.evaluate import dlgradient
from tracejit.functions.saved_values import gradients_from_saved
from tracejit.ode.equation import Arrays, Equation, plain, unlabelled
from tracejit.ode.solve import Solution, TakenStep, integrate
from tracejit.ode.steps import State, StepSizes, Tolerances
from tracejit.record import monitor
from tracejit.util.text import brief

MOST_KEPT = 16  # right-hand sides whose accelerated functions are kept


class Containers:
    """The containers of a state or of parameters, and the formats of the arrays in them."""

    def __init__(self, what: str, argument: str, value: Any) -> None:
        leaves, self.treedef = tree.flatten(value, function=what)
        self.arrays = [as_array(leaf, what, argument) for leaf in leaves]
        self.formats = tuple([array.format for array in self.arrays])

    @property
    def key(self) -> Hashable:
        return self.treedef, self.formats

    def emptied(self) -> "Containers":
        """Return the containers without the arrays, for what outlives a call."""
        other = copy.copy(self)
        other.arrays = []
        return other

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
        self.state = state.emptied()
        self.theta = None if theta is None else theta.emptied()

    def slope(self, t: Any, state: State, theta: State) -> State:
        """Return the derivatives of the arrays of a state.

        Raises:
            DimsError: if their containers or sizes differ from those of the state.
        """
        y, t = self.state.filled(state), as_array(t, self.what, "t")
        result = self.fun(t, y) if self.theta is None else self.fun(t, y, self.theta.filled(theta))
        leaves, treedef = tree.flatten(result, function=self.what)
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

    def _fast_slope(self, t: Any, state: State, theta: State) -> State:
        """Return what slope() does, in a function that outlives the call, in which nothing else names the user's."""
        monitor.note_used(self.fun)
        return self.slope(t, state, theta)

    @cached_property
    def equation(self) -> Equation:
        """The equation of the state."""
        return Equation(self.what, lambda t, y, theta: tuple(map(unlabelled, self._fast_slope(t, y, theta))))

    @cached_property
    def adjoint_equation(self) -> Equation:
        """The equation of the state, the cotangents by it, and the gradients by the parameters."""
        return Equation(f"{self.what}, adjoint", self.adjoint_slope)

    @cached_property
    def _fast_slope_gradients(self) -> Any:
        def gradients(t: Any, state: State, theta: State, cotangents: State, before: State) -> Any:
            found = dlgradient(_products(cotangents, self._fast_slope(t, state, theta)), (*state, *theta))
            return _sums(found, before)

        return dlaccelerate(gradients)

    @cached_property
    def _fast_step_gradients(self) -> Any:
        def gradients(
            t: Any, h: Any, state: State, first: State, theta: State, by_after: State, by_last: State,
            by_theta: State, by_parts: State, saved: State,
        ) -> Any:  # fmt: skip
            count = len(state)
            by_slopes = [tuple([h * by[number] for by in by_parts]) for number in range(1, 8)]
            by_slopes[-1] = _sums(by_slopes[-1], by_last)
            found = gradients_from_saved(
                self.equation.step_outputs(t, h, state, first, theta),
                (*state, *first, *theta),
                (*by_after, *[part for by in by_slopes[1:] for part in by]),
                saved,
            )
            return (
                _sums(found[:count], [by[0] for by in by_parts]),
                _sums(found[count : 2 * count], by_slopes[0]),
                _sums(found[2 * count :], by_theta),
            )

        return with_constants(gradients)

    def adjoint_slope(self, t: Any, state: State, theta: State) -> State:
        """Return the derivatives of a state, of the cotangents by it, and of the gradients by the parameters."""
        count = len(self.state.formats)
        # The state of a stage depends on the parameters by the stages before; the slope is differentiated as if not.
        y, theta = tuple(map(stop_gradient, state[:count])), tuple(map(stop_gradient, theta))
        slopes = self._fast_slope(t, y, theta)
        gradients = dlgradient(_products(state[count : 2 * count], slopes), (*y, *theta))
        return (*map(unlabelled, slopes), *[-unlabelled(g) for g in gradients])

    def solved(
        self,
        times: Sequence[float],
        state: Arrays,
        theta: Arrays,
        tolerances: Tolerances,
        sizes: StepSizes,
        saves: bool = False,
    ) -> Solution:
        """Return the solution for all times; `saves` if its steps save what their gradients read."""
        return integrate(self.equation, times, state, theta, tolerances, sizes, saves)

    def solved_adjoint(
        self, times: Sequence[float], state: Arrays, theta: Arrays, tolerances: Tolerances
    ) -> Solution:
        """Return the solution of the adjoint equation: the state, the cotangents, and the gradients by parameters."""
        return integrate(self.adjoint_equation, times, state, theta, tolerances, StepSizes())

    def step_gradients(
        self,
        step: TakenStep,
        theta: Arrays,
        by_after: Arrays,
        by_last: Arrays,
        by_theta: Arrays,
        by_parts: Arrays,
    ) -> tuple[Arrays, Arrays, Arrays]:
        """Return the gradients by the state, the first slope and the parameters of a step that was taken.

        Args:
            step: the step.
            theta: the parameters.
            by_after: the gradients by the state after it.
            by_last: the gradients by the slope there.
            by_theta: the gradients by the parameters of the steps behind it, to which these are added.
            by_parts: those of weighted_cotangents().
        """
        found = self._fast_step_gradients(
            step.time,
            step.size,
            step.state,
            step.first,
            theta,
            by_after,
            by_last,
            by_theta,
            by_parts,
            step.saved,
        )
        return plain(found[0]), plain(found[1]), plain(found[2])

    def slope_gradients(
        self, t: np.ndarray, state: Arrays, theta: Arrays, cotangents: Arrays, before: Arrays
    ) -> Arrays:
        """Return the gradients by a state and the parameters of the slope there, added to those before."""
        return plain(self._fast_slope_gradients(t, state, theta, cotangents, before))


def _products(cotangents: Sequence[Any], arrays: State) -> Any:
    """Return the sum of the products of cotangents and arrays."""
    products = [(unlabelled(a) * unlabelled(b)).sum() for a, b in zip(cotangents, arrays, strict=True)]
    return sum(products[1:], products[0])


def _sums(arrays: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([a + b for a, b in zip(arrays, others, strict=True)])


def treedef_text(containers: Containers) -> str:
    return brief(tree.unflatten(containers.treedef, ["*"] * len(containers.formats)))


_problems: "OrderedDict[Hashable, tuple[Problem, Any]]" = OrderedDict()


def problem_of(what: str, fun: Callable[..., Any], state: Containers, theta: Containers | None) -> Problem:
    """Return the problem of a right-hand side; one that was met before has its accelerated functions already.

    Functions of the same code that hold the same objects, such as a lambda in a loop, are the same right-hand side, as
    long as they do: a variable of theirs may get another value, which what is accelerated notices.
    """
    containers = state.key, None if theta is None else theta.key
    held = _held(fun)
    for key in ((id(fun), *containers), (tuple(map(id, held)), *containers)):
        found = _problems.get(key)
        if found is not None and (found[0].fun is fun or _are_same(_held(found[0].fun), held)):
            break
    else:
        found = Problem(what, fun, state, theta), held  # which keeps the ids
    for key in ((tuple(map(id, held)), *containers), (id(found[0].fun), *containers)):
        _problems[key] = found
        _problems.move_to_end(key)
    while len(_problems) > 2 * MOST_KEPT:
        _problems.popitem(last=False)
    return found[0]


def _held(fun: Callable[..., Any]) -> tuple[Any, ...]:
    """Return what makes a function: its code and the objects that it holds; itself if these cannot be told."""
    if type(fun) is types.MethodType:  # each access makes a new one
        return fun.__func__, fun.__self__
    if type(fun) is not types.FunctionType:
        return (fun,)
    try:
        contents = [cell.cell_contents for cell in fun.__closure__ or ()]
    except ValueError:  # an empty cell
        return (fun,)
    return (fun.__code__, fun.__globals__, fun.__defaults__, fun.__kwdefaults__, *contents)


def _are_same(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))
