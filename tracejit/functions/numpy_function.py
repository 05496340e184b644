# SPDX-License-Identifier: BSD-3-Clause
"""Functions of dlarrays as functions of ndarrays, for libraries that compute with ndarrays."""

from collections.abc import Callable
from typing import Any, final

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.evaluate import dlfeval
from tracejit.record import recorder
from tracejit.util.text import name_of


@final
class NumpyFunction:
    """A function that takes and returns ndarrays and numbers of Python. Made by numpy_function.

    Attributes:
        function: the function of dlarrays.
    """

    def __init__(self, function: Callable[..., Any], like: Any = None) -> None:
        if not callable(function):
            raise ArgumentError(
                f"numpy_function: expected a function, not {type(function).__name__}; pass the function itself, f, not "
                "f(x)."
            )
        self.function = function
        self._like: list[dlarray] = []
        self._treedef: tree.TreeDef | None = None
        if like is not None:
            leaves, self._treedef = tree.flatten(like, function="numpy_function")
            self._like = [self._parameter(leaf, number) for number, leaf in enumerate(leaves)]

    def _parameter(self, leaf: Any, number: int) -> dlarray:
        assert self._treedef is not None
        place = tree.paths(self._treedef, "like")[number]
        array = as_array(leaf, "numpy_function", place)
        if array.dtype.kind != "f":
            raise ArgumentError(
                f"numpy_function: {place} is {recorder.describe(array)}, expected floating point; leave "
                "values that do not vary out of like."
            )
        recorder.check_open(array)
        return dlarray(np.array(array), array.format)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and return arrays of its result as ndarrays, scalars as numbers."""
        if self._treedef is not None:
            if not args:
                raise ArgumentError(
                    f"{name_of(self.function)}: the vector that stands for like is missing; pass it as the first "
                    "argument."
                )
            args = (self.unflatten(args[0]), *args[1:])
        result = dlfeval(self.function, *args, **kwargs)
        leaves, treedef = tree.flatten(result, self._is_like, "numpy_function")
        return tree.unflatten(treedef, [self._as_numpy(leaf) for leaf in leaves])

    def flatten(self, parameters: Any) -> np.ndarray:
        """Return parameters as one vector of float64.

        Args:
            parameters: containers and arrays of the sizes of `like`.

        Raises:
            ArgumentError: if the function was made without `like`, or the containers differ from it.
            DimsError: if an array has the wrong size.
        """
        leaves, treedef = tree.flatten(parameters, function="flatten")
        if treedef != self._needed():
            raise ArgumentError(f"flatten: parameters are {treedef}, expected {self._treedef}, as in like.")
        for number, (leaf, like) in enumerate(zip(leaves, self._like, strict=True)):
            if np.shape(leaf) != like.shape:
                place = tree.paths(treedef, "parameters")[number]
                raise DimsError(
                    f"flatten: {place} has shape {np.shape(leaf)}, expected {like.shape}, as in like."
                )
        vectors = [np.asarray(leaf, np.float64).ravel() for leaf in leaves]
        return np.concatenate([np.empty(0), *vectors])

    def unflatten(self, x: Any) -> Any:
        """Return parameters with the numbers of a vector, and the containers, formats and dtypes of `like`.

        Args:
            x: a vector, such as the solution of an optimiser.

        Raises:
            ArgumentError: if the function was made without `like`.
            DimsError: if the vector has the wrong size.
        """
        treedef = self._needed()
        total = sum(like.size for like in self._like)
        vector = np.asarray(x)
        if vector.shape != (total,):
            raise DimsError(
                f"unflatten: x has shape {vector.shape}, expected ({total},), the numbers of like."
            )
        parts = np.split(vector, np.cumsum([like.size for like in self._like])[:-1]) if self._like else []
        leaves = [
            dlarray(part.reshape(like.shape).astype(like.dtype), like.format)
            for part, like in zip(parts, self._like, strict=True)
        ]
        return tree.unflatten(treedef, leaves)

    def _needed(self) -> tree.TreeDef:
        if self._treedef is None:
            raise ArgumentError(
                "numpy_function: without like there are no parameters to flatten; pass numpy_function(f, like=params)."
            )
        return self._treedef

    def _is_like(self, part: Any) -> bool:
        """Return whether a part of a result is parameters, such as their gradients."""
        if self._treedef is None:
            return False
        leaves, treedef = tree.flatten(part)
        return treedef == self._treedef and [np.shape(leaf) for leaf in leaves] == [
            x.shape for x in self._like
        ]

    def _as_numpy(self, leaf: Any) -> Any:
        if self._is_like(leaf):
            return self.flatten(leaf)
        if type(leaf) is not dlarray:
            return leaf
        return leaf.item() if leaf.ndim == 0 else np.array(leaf)  # SciPy writes into what it gets

    def __reduce__(self) -> tuple[Any, ...]:
        like = None if self._treedef is None else tree.unflatten(self._treedef, self._like)
        return (NumpyFunction, (self.function, like))

    def __repr__(self) -> str:
        return f"numpy_function({name_of(self.function)})"


def numpy_function(function: Callable[..., Any], like: Any = None) -> NumpyFunction:
    """Return a function that takes ndarrays and returns ndarrays and numbers, for SciPy and other libraries.

    Args:
        function: a function of arrays: an accelerated one, or any that dlfeval takes.
        like: the parameters, in containers, if the library knows only one vector of them. The new function then takes
            this vector as its first argument; the function gets it as parameters of the sizes, formats and dtypes of
            `like`, and gradients in its result that are like them become vectors too.

    Returns:
        A NumpyFunction; its methods flatten(parameters) and unflatten(x) convert parameters to a vector and back.

    Raises:
        ArgumentError: if `function` cannot be called, or `like` holds anything but floating-point arrays.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from scipy.optimize import minimize
        >>> @tj.dlaccelerate
        ... def loss(params):
        ...     value = ((params["a"] - 3.0) ** 2).sum() + (params["b"] + 1.0) ** 2
        ...     return value, tj.dlgradient(value, params)
        >>> start = {"a": np.zeros(2), "b": np.array(0.0)}
        >>> fun = tj.numpy_function(loss, like=start)
        >>> fun(np.zeros(3))
        (19.0, array([-6., -6.,  2.]))
        >>> found = minimize(fun, fun.flatten(start), jac=True)
        >>> fun.unflatten(found.x)["a"].round(6).tolist()
        [3.0, 3.0]
    """
    return NumpyFunction(function, like)
