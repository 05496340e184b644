# SPDX-License-Identifier: BSD-3-Clause
"""Functions of NumPy and SciPy without an op: the program calls the libraries' own functions; few have a derivative."""

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import MethodType
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.aval import SUPPORTED_DTYPES, Aval, is_half
from tracejit.errors import DTypeError, GradientError
from tracejit.functions.numpy_api import host_matrix_rules, host_rules, host_solvers
from tracejit.ops import Kind, Op
from tracejit.ops.op import HANDLED, PythonCall
from tracejit.record import host, recorder, views
from tracejit.util.compositions import to_compose
from tracejit.util.named_tuples import NamedTuple

_MODULES = ("numpy.linalg", "numpy.fft", "numpy.polynomial.polynomial")
_FUNCTIONS = (np.roots, np.sort_complex)
_NUMBERS = (int, float, complex)
# Numbers that a program passes on where they vary, and their forms; whole ones are mostly sizes.
_FRACTIONS = {float: "float", np.float64: "number", np.float32: "number"}
_PLAIN = (bool, int, float, complex, str, type(None), type(Ellipsis), slice, np.dtype, np.generic, type)


class Arguments(NamedTuple):
    """The arguments of a call besides its arrays: their structure, with a number in the place of each array."""

    structure: tree.TreeDef
    leaves: tuple[Any, ...]

    def __repr__(self) -> str:
        return repr(tree.unflatten(self.structure, list(self.leaves)))

    def option(self, name: str, usual: Any, place: int = -1) -> Any:
        """Return an argument that has a name, and a place unless it goes by its name only."""
        args, options = tree.unflatten(self.structure, list(self.leaves))
        return options.get(name, args[place] if 0 <= place < len(args) else usual)


class ArgumentPlace(NamedTuple):
    """The place of an array among the arguments.

    number  of the array
    form    in which the function gets it: None for an array, "number" for a number of NumPy, "float" or "int" for one
            of Python
    """

    number: int
    form: str | None = None

    def of(self, data: Any) -> Any:
        """Return what the function gets, of the data of all arrays."""
        array = data[self.number]
        return array if self.form is None else array[()] if self.form == "number" else array.item()

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
    arrays: list[dlarray] = []
    kept: list[Any] = []
    for given in leaves:
        leaf = given
        if recorder.is_number(leaf) and type(leaf._number) in _FRACTIONS:
            kept.append(ArgumentPlace(len(arrays), _FRACTIONS[type(leaf._number)]))
            arrays.append(leaf._array)
            continue
        if recorder.is_number(leaf):
            leaf = leaf.needed(name)
        if isinstance(leaf, dlarray) or (type(leaf) is np.ndarray and leaf.dtype in SUPPORTED_DTYPES):
            is_number = isinstance(leaf, dlarray) and views.is_scalar(leaf)
            kept.append(ArgumentPlace(len(arrays), "number" if is_number else None))
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
    arguments = Arguments(structure, tuple(kept))
    try:
        returned = host.run(
            lambda *data: called_with(function, data, arguments), [host.read_only(a._data) for a in arrays]
        )
    except TypeError:  # there is no such function for these dtypes
        return NotImplemented
    parts, shape = _parts_of(returned)
    if not parts or not all(map(_is_result, parts)):
        return NotImplemented
    results = [np.array(part, order="C") for part in parts]
    avals = [Aval(x.shape, _format(function, arrays, x.shape), x.dtype) for x in results]
    params = {"arguments": arguments, "results": tuple(avals), HANDLED: True}
    found = zip(host.append(op, arrays, params, op.infer(**params), results), parts, strict=True)
    return _rebuilt(returned, tree.unflatten(shape, [_as_returned(array, part) for array, part in found]))


def _is_result(part: Any) -> bool:
    """Return whether a part of a result can be one of a program."""
    if isinstance(part, (np.ndarray, np.generic)):
        return part.dtype in SUPPORTED_DTYPES
    return type(part) in (*_NUMBERS, bool)


def _as_returned(array: dlarray, part: Any) -> Any:
    """Return a part of a result as a function returned it: an array, or a number that varies; a truth is a guard."""
    if type(part) is bool:
        return bool(array)
    if type(part) in _NUMBERS:
        return array.item()
    return views.without_axes(array) if type(part) is np.ndarray and not part.ndim else array


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
    arguments = Arguments(structure, (*map(ArgumentPlace, range(len(inputs))), *leaves[len(inputs) :]))
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


def called_with(function: Callable[..., Any], data: Any, arguments: Arguments) -> Any:
    """Return the result of a function, given the data of the arrays among its arguments, and the other ones."""
    args, options = _put_together(arguments, data)
    try:
        return function(*args, **options)
    except ValueError as error:  # of code in C that declares its arguments as ones that it writes
        if "read-only" not in str(error):
            raise
    args, options = _put_together(arguments, [array.copy() for array in data])
    return function(*args, **options)


def _put_together(arguments: Arguments, data: Any) -> Any:
    """Return the arguments of a call, and those by name."""
    leaves = [leaf.of(data) if type(leaf) is ArgumentPlace else leaf for leaf in arguments.leaves]
    names = _names_of_flat(arguments.structure)
    if names is None:
        return tree.unflatten(arguments.structure, leaves)
    first = len(leaves) - len(names)
    return leaves[:first], dict(zip(names, leaves[first:], strict=True))


_flat: dict[int, tuple[tree.TreeDef, Sequence[str] | None]] = {}
_MOST_FLAT = 1024


def _names_of_flat(structure: tree.TreeDef) -> Sequence[str] | None:
    """Return the names of arguments none of which is a container, the last ones; None if one is."""
    known = _flat.get(id(structure))
    if known is None or known[0] is not structure:
        marks = [object() for _ in range(structure.size)]
        args, options = tree.unflatten(structure, list(marks))
        names = tuple(options) if marks == [*args, *options.values()] else None
        if len(_flat) >= _MOST_FLAT:
            _flat.clear()
        known = _flat[id(structure)] = structure, names
    return known[1]


def _parts_of(returned: Any) -> tuple[list[Any], tree.TreeDef]:
    """Return the parts of a result; those of SciPy's tuples with more attributes are all of these."""
    if isinstance(returned, tuple) and hasattr(returned, "_extra_fields"):
        returned = (*returned, *[getattr(returned, name) for name in returned._extra_fields])
    return tree.flatten(returned)


def _rebuilt(returned: Any, found: Any) -> Any:
    """Return such a tuple of SciPy's of other parts."""
    return (
        like_tuple(returned, found)
        if isinstance(returned, tuple) and hasattr(returned, "_extra_fields")
        else found
    )


def like_tuple(returned: Any, parts: Any) -> Any:
    """Return a named tuple with the fields of one of SciPy's tuples, which has its other attributes too.

    Args:
        returned: the tuple, of a class that trees do not know.
        parts: the values of the fields, and of the other attributes.
    """
    kind: Any = type(returned)
    found = _class_like(kind, hasattr(returned, "correlation"))(*parts[: len(returned)])
    for name, part in zip(returned._extra_fields, parts[len(returned) :], strict=True):
        setattr(found, name, part)
    return found


@lru_cache(maxsize=64)
def _class_like(kind: Any, is_correlation: bool) -> Any:
    """Return a class of named tuples with the name and the fields of one of SciPy's."""
    fields: Any = namedtuple(kind.__name__, kind._fields)  # type: ignore[misc]
    older = {"correlation": property(lambda self: self.statistic)} if is_correlation else {}
    return type(kind.__name__, (fields,), older)


_ops: dict[Any, Op] = {}
_ops_of_objects: OrderedDict[Any, Op] = OrderedDict()  # which are kept as long as these are
_MOST_OBJECTS = 64


def _op_of(name: str, function: Callable[..., Any]) -> Op:
    """Return the op that calls a function; the same for the same."""
    if not isinstance(function, MethodType):
        return _ops.get(function) or _ops.setdefault(function, _new_op(name, function))
    op = _ops_of_objects.get(function)
    if op is None:
        op = _ops_of_objects[function] = _new_op(name, function)
        while len(_ops_of_objects) > _MOST_OBJECTS:
            _ops_of_objects.popitem(last=False)
    return op


def _new_op(name: str, function: Callable[..., Any]) -> Op:

    def run(*data: np.ndarray, arguments: Arguments, results: tuple[Aval, ...]) -> Any:
        parts, _ = _parts_of(host.run(lambda *given: called_with(function, given, arguments), data))
        found = tuple([part if type(part) is np.ndarray else np.asarray(part) for part in parts])
        return found[0] if len(found) == 1 else found

    def gradient(b: Any, node: Any, ct: Any) -> Any:
        is_method = isinstance(function, MethodType)
        rule = host_solvers.rule_of(function) if is_method else host_rules.RULES.get(function)  # type: ignore[arg-type]
        found = None if rule is None else rule(b, node, ct)
        if found is not None:
            return found
        raise GradientError(
            f"{name}: {'SciPy' if name.startswith('scipy.') else 'NumPy'}'s own function runs here, which has no "
            f"derivative; {to_compose(name)}. Or give it a derivative with tj.DifferentiableFunction."
        )

    def infer(*inputs: Aval, arguments: Any, results: tuple[Aval, ...], handled: bool = False) -> Any:
        return results[0] if len(results) == 1 else results

    return Op(
        name=name, doc=f"{name}, NumPy's or SciPy's own function", kind=Kind.HOST, infer=infer,
        numpy=host.copies(run), vjp=gradient, emit=PythonCall(run), samples=(), analytic=False,
    )  # fmt: skip
