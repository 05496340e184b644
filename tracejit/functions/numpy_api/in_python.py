# SPDX-License-Identifier: BSD-3-Clause
"""Functions of NumPy and SciPy without an op: the program calls the libraries' own functions; few have a derivative."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.aval import SUPPORTED_DTYPES, Aval, is_half
from tracejit.errors import DTypeError, GradientError
from tracejit.functions.numpy_api import host_matrix_rules, host_rules
from tracejit.ops import Kind, Op
from tracejit.ops.op import HANDLED, PythonCall
from tracejit.record import host, recorder
from tracejit.util.compositions import advice
from tracejit.util.named_tuples import NamedTuple

_MODULES = ("numpy.linalg", "numpy.fft", "numpy.polynomial.polynomial")
_FUNCTIONS = (np.roots, np.sort_complex)
_PLAIN = (bool, int, float, complex, str, type(None), type(Ellipsis), slice, np.dtype, np.generic, type)


class _Arguments(NamedTuple):
    """The arguments of a call besides its arrays: their structure, with a number in the place of each array."""

    structure: tree.TreeDef
    leaves: tuple[Any, ...]

    def __repr__(self) -> str:
        return repr(tree.unflatten(self.structure, list(self.leaves)))

    def option(self, name: str, usual: Any, place: int = -1) -> Any:
        """Return an argument that has a name, and a place unless it goes by its name only."""
        args, options = tree.unflatten(self.structure, list(self.leaves))
        return options.get(name, args[place] if 0 <= place < len(args) else usual)


class _Place(NamedTuple):
    """The place of an array among the arguments."""

    number: int

    def __repr__(self) -> str:
        return f"array {self.number}"


def is_pure(function: Any, name: str) -> bool:
    """Return whether a function of NumPy or SciPy depends on its arguments only, and makes new arrays."""
    if isinstance(function, np.ufunc):
        return name.startswith(("np.", "scipy.special."))
    return function.__module__ in _MODULES or function in _FUNCTIONS


def call(name: str, function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    """Return the result of a function with dlarrays among its arguments, or NotImplemented if that is impossible.

    Args:
        name: the name of the function with that of its package.
        function: the function, which is pure.
        args, options: what it was called with.
    """
    leaves, structure = tree.flatten((args, options))
    for leaf in leaves:
        if recorder.is_number(leaf):
            leaf.needed(name)  # which makes it a true number
    arrays: list[dlarray] = []
    kept: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, dlarray) or (type(leaf) is np.ndarray and leaf.dtype in SUPPORTED_DTYPES):
            kept.append(_Place(len(arrays)))
            arrays.append(as_array(leaf))
        elif isinstance(leaf, _PLAIN):
            kept.append(leaf)
        else:
            return NotImplemented
    for array in arrays:
        recorder.check_open(array)
        if is_half(array.dtype):
            raise DTypeError(
                f"{name}: not supported for numbers of 16 bits; cast them first (x.astype(np.float32))."
            )
    op = _op_of(name, function)
    arguments = _Arguments(structure, tuple(kept))
    try:
        returned = host.run(
            lambda *data: _called(function, data, arguments), [host.read_only(a._data) for a in arrays]
        )
    except TypeError:  # there is no such function for these dtypes
        return NotImplemented
    parts, shape = tree.flatten(returned)
    if not parts or not all(
        isinstance(part, (np.ndarray, np.generic)) and part.dtype in SUPPORTED_DTYPES for part in parts
    ):
        return NotImplemented
    results = [np.array(part, order="C") for part in parts]
    avals = [Aval(x.shape, _format(function, arrays, x.shape), x.dtype) for x in results]
    params = {"arguments": arguments, "results": tuple(avals), HANDLED: True}
    found = host.append(op, arrays, params, op.infer(**params), results)
    return tree.unflatten(shape, found)


def node_of(
    b: Any,
    function: Callable[..., Any],
    given: Any,
    results: list[Aval],
    options: dict[str, Any] | None = None,
) -> Any:
    """Return the results of a function of an array, or of a tuple of arrays, which a rule calls."""
    inputs = given if type(given) is tuple else (given,)
    leaves, structure = tree.flatten(((0,) * len(inputs), options or {}))
    package = "np.linalg" if function.__module__.startswith("numpy") else "linalg"
    op = _op_of(f"{package}.{function.__name__}", function)
    arguments = _Arguments(structure, (*map(_Place, range(len(inputs))), *leaves[len(inputs) :]))
    params = {"arguments": arguments, "results": tuple(results), HANDLED: True}
    return b.apply(op, inputs, params)


host_matrix_rules.set_caller(node_of)


def _format(function: Any, arrays: list[dlarray], shape: tuple[int, ...]) -> str | None:
    """Return the format of a result: that of the operands of an elementwise function, if they agree."""
    formats = {array.format for array in arrays if array.ndim}
    same = isinstance(function, np.ufunc) and len(formats) == 1
    return (
        next(iter(formats)) if same and all(array.shape == shape for array in arrays if array.ndim) else None
    )


def _called(function: Callable[..., Any], data: Any, arguments: _Arguments) -> Any:
    leaves = [data[leaf.number] if type(leaf) is _Place else leaf for leaf in arguments.leaves]
    args, options = tree.unflatten(arguments.structure, leaves)
    return function(*args, **options)


_ops: dict[Any, Op] = {}


def _op_of(name: str, function: Callable[..., Any]) -> Op:
    """Return the op that calls a function; the same for the same."""
    op = _ops.get(function)
    if op is not None:
        return op

    def run(*data: np.ndarray, arguments: _Arguments, results: tuple[Aval, ...]) -> Any:
        parts, _ = tree.flatten(host.run(lambda *given: _called(function, given, arguments), data))
        found = tuple([part if type(part) is np.ndarray else np.asarray(part) for part in parts])
        return found[0] if len(found) == 1 else found

    def gradient(b: Any, node: Any, ct: Any) -> Any:
        rule = host_rules.RULES.get(function)
        found = None if rule is None else rule(b, node, ct)
        if found is not None:
            return found
        raise GradientError(
            f"{name}: NumPy's own function runs here, which has no derivative; {advice(name)}. Or give it a derivative "
            "with tj.custom_gradient."
        )

    def infer(*inputs: Aval, arguments: Any, results: tuple[Aval, ...], handled: bool = False) -> Any:
        return results[0] if len(results) == 1 else results

    return _ops.setdefault(
        function,
        Op(
            name=name, doc=f"{name}, NumPy's or SciPy's own function", kind=Kind.HOST, infer=infer,
            numpy=host.copies(run), vjp=gradient, emit=PythonCall(run), samples=(), analytic=False,
        ),
    )  # fmt: skip
