# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of recordings, views and derivatives."""

import importlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from messages_shared import M, N, V, X, traced

import tracejit as tj
from tracejit.errors import (
    ArgumentError,
    BoundsError,
    DimsError,
    DTypeError,
    GradientError,
    KeyTypeError,
    RangeError,
    TraceError,
    WriteError,
)
from tracejit.record import recorder as recorders
from tracejit.record.recorder import Recorder


def within() -> list[Any]:
    """Return a list that holds itself."""
    ring: list[Any] = []
    ring.append(ring)
    return ring


def kept_inside(x: Any) -> Any:
    """Use an array that a recording inside the evaluation has kept."""
    kept: list[Any] = []

    @tj.dlaccelerate
    def keeping(x: Any) -> None:
        kept[:] = [x * 2]

    keeping(x)
    return kept[0] + 1


def private(array: Any) -> Any:
    """Return an untraced array as one that the open recording has made."""
    current = recorders.recorder()
    assert current is not None
    array = recorders.wrap(array._data, array.format)
    current.memories.private(array)
    return array


def rewritten(x: Any) -> Any:
    """Take the gradient by an array whose elements NumPy has changed."""
    elements = np.random.default_rng(1).normal(size=3)
    w = tj.dlarray(elements)
    y = (w * x).sum()
    elements[0] = 2.0
    return tj.dlgradient(y + (w * x).sum(), w)


def written_since(x: Any) -> Any:
    """Take the gradient by an array that was written after the target was computed."""
    y = (x**2).sum()
    x += 1
    return tj.dlgradient(y, x)


def two_traces(fun: Callable[[Any, Any], object]) -> object:
    """Return ``fun(x, y)`` with an array of a recording and one of a recording inside it."""
    with Recorder("outer") as outer, Recorder("inner") as inner:
        return fun(outer.input(tj.dlarray(1.0)), inner.input(tj.dlarray(1.0)))


def dlfeval_of_halves(write: Callable[[Any, Any], object]) -> None:
    """Evaluate a function that writes into one of two views of an array that overlap."""

    def function(x: Any, y: Any) -> None:
        write(x, y)

    whole = np.ones(3)
    tj.dlfeval(function, whole[:2], whole[1:])


class Doubled(np.ndarray):
    """An array whose products are twice as large."""

    def __mul__(self, other: Any) -> Any:
        return np.asarray(self) * other * 2


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    # record/recorder
    (
        lambda: tj.dlarray(np.eye(1).view(np.matrix)),
        ArgumentError,
        "dlarray: a matrix has products by * and two axes always, which would be lost; pass np.asarray(data).",
    ),
    (
        lambda: tj.dlarray(np.ones(2).view(Doubled)),
        ArgumentError,
        "dlarray: a Doubled has rules of its own (__mul__), which would be lost; pass np.asarray(data).",
    ),
    (
        lambda: tj.dlarray(np.ma.array([1.0, 2.0], mask=[0, 1])),
        ArgumentError,
        "dlarray: a MaskedArray has a mask, which would be lost; pass np.asarray(data), or data.filled(value).",
    ),
    (
        lambda: tj.dlfeval(kept_inside, V),
        TraceError,
        "an array that was made at <place> while kept_inside.<locals>.keeping was evaluated is used after that "
        "evaluation ended, inside kept_inside, where it has no derivative. Return it from the function.",
    ),
    (
        lambda: two_traces(lambda x, y: x + y),
        TraceError,
        "an array of scalar float64 that outer is recording is used inside inner, which has a trace of "
        "its own; its value would become a constant there and it would have no gradient. Pass it as an "
        "argument.",
    ),
    (
        lambda: traced(lambda x: tj.dlarray([x, "x"])),
        ArgumentError,
        "dlarray: a list that holds traced dlarrays would lose their trace; join them with stack or "
        "concatenate.",
    ),
    (
        lambda: tj.add(X, importlib.import_module("scipy.sparse").csr_matrix((2, 2))),
        ArgumentError,
        "add: y is a csr_matrix of SciPy, not an array; products (S @ x, x @ S) have derivatives; "
        "for anything else a small matrix may be dense, S.toarray().",
    ),
    (
        lambda: tj.add(X, {1, 2}),
        ArgumentError,
        "add: expected an array, a number or a (nested) list of numbers as y, not {1, 2}.",
    ),
    (
        lambda: tj.dlarray([[1], [1, 2]]),
        ArgumentError,
        "dlarray: cannot make an array of list: setting an array element with a sequence. The requested "
        "array has an inhomogeneous shape after 1 dimensions. The detected shape was (2,) + inhomogeneous "
        "part; give rows of equal length as data.",
    ),
    (
        lambda: tj.sin(within()),
        ArgumentError,
        "sin: x is a list that holds itself, or is nested deeper than the 64 axes of an array; pass a list of numbers, "
        "or of such lists.",
    ),
    (
        lambda: tj.dlfeval(lambda x: x, within()),
        ArgumentError,
        "dlfeval: a container holds itself, or is nested deeper than Python's recursion limit allows; pass containers "
        "that end in arrays and numbers.",
    ),
    (
        lambda: N.astype(np.int8) + 300,
        RangeError,
        "add: y=300 does not fit int8 (-128 to 127); cast the array first (x.astype(np.int64)).",
    ),
    (
        lambda: np.fmax(N.astype(np.int8), 300),
        RangeError,
        "fmax: x=300 does not fit int8 (-128 to 127); cast the array first (x.astype(np.int64)).",
    ),
    (
        lambda: np.fmax(N, 1 << 70),
        RangeError,
        "fmax: x=1180591620717411303424 does not fit 64 bits; pass a float, or an integer from -2**63 to 2**64 - 1.",
    ),
    (
        lambda: tj.maximum(1 << 70, 2),
        RangeError,
        "maximum: x=1180591620717411303424 does not fit 64 bits; pass a float, or an integer from -2**63 to 2**64 - 1.",
    ),
    (
        lambda: N + (1 << 70),
        RangeError,
        "add: y=1180591620717411303424 does not fit 64 bits; pass a float, or an integer from -2**63 to 2**64 - 1.",
    ),
    (
        lambda: tj.dlarray(1 << 70),
        RangeError,
        "dlarray: data=1180591620717411303424 does not fit 64 bits; pass a float, or an integer from -2**63 to "
        "2**64 - 1.",
    ),
    (
        lambda: tj.dlfeval(lambda k: N**k, np.array([-1])),
        DimsError,
        "power: Integers to negative integer powers are not allowed; cast the operands first (x.astype(np.float64)), "
        "or change their values.",
    ),
    (
        lambda: N**-1,
        DimsError,
        "power: Integers to negative integer powers are not allowed; cast the operands first (x.astype(np.float64)), "
        "or change their values.",
    ),
    (
        lambda: tj.expand_dims(np.zeros((1,) * 64), 0),
        DimsError,
        f"reshape: a result of the sizes {str((1,) * 65)[:77]}... of float64 cannot be made: maximum supported "
        "dimension for an ndarray is currently 64, found 65; use smaller arrays, or several calls for parts of them.",
    ),
    (
        lambda: X.item(7),
        BoundsError,
        "item: (7,) is no place of x (2(B) x 3(C) float64); give an element's number in C order, or one index for each "
        "axis.",
    ),
    (
        lambda: tj.round(X, 400),
        ArgumentError,
        "round: decimals must be from -308 to 308, not 400: numbers have no more.",
    ),
    (
        lambda: tj.onehotencode([b"a"], 1, ["a", "b"]),
        ArgumentError,
        "onehotencode: labels contains b'a', which is not one of the 2 classes ['a', 'b']; add it to class_names.",
    ),
    (
        lambda: X[[[1], [1, 2]]],
        KeyTypeError,
        "getitem: [[1], [1, 2]] is not an index; use integers, slices, ..., None, integer arrays or boolean masks.",
    ),
    (
        lambda: tj.scatter_add(V, [0], 10**400),
        RangeError,
        f"scatter_add: values={str(10**400)[:77]}... does not fit 64 bits; pass a float, or an integer from -2**63 to "
        "2**64 - 1.",
    ),
    (
        lambda: tj.nonzero(1.0),
        DimsError,
        "nonzero: x is a scalar, which has no places; pass atleast_1d(x), or use x != 0.",
    ),
    (
        lambda: tj.array_split(V, 10**30),
        DimsError,
        "array_split: the number of parts must be at most 1048576 for 3 elements along axis 0, not "
        "1000000000000000000000000000000.",
    ),
    (
        lambda: tj.zeros(10**15),
        DimsError,
        "zeros: a result of the sizes (1000000000000000,) of float64 cannot be made: Unable to allocate 7.11 PiB for "
        "an array with shape (1000000000000000,) and data type float64; use smaller arrays, or several calls for parts "
        "of them.",
    ),
    (
        lambda: tj.zeros((1 << 40, 1 << 40)),
        DimsError,
        "zeros: shape must be the sizes of at most 64 axes and fewer than 2**60 elements, not (1099511627776, "
        "1099511627776).",
    ),
    (
        lambda: tj.sum(X, 0, "no"),
        ArgumentError,
        "sum: keepdims must be True or False, not 'no'.",
    ),
    (
        lambda: tj.var(X, ddof=1j),
        ArgumentError,
        "var: ddof must be a real number, not 1j.",
    ),
    (
        lambda: tj.tril(M, 1.5),
        ArgumentError,
        "tril: k must be an integer, not 1.5.",
    ),
    # record/views
    (
        lambda: operator.iadd(tj.dlarray(np.ones(3)), np.ones((2, 3))),
        DimsError,
        "+=: the result has size 2x3, but the array that is written has 3; an array keeps its size. Assign the result "
        "to a new name (y = x + z).",
    ),
    (
        lambda: operator.itruediv(tj.dlarray(np.ones(3, int)), 2),
        DTypeError,
        "/=: the result is float64, but the array that is written is int64; an array keeps its dtype. Cast the array "
        "first (x = x.astype(np.float64)), or assign the result to a new name (y = x / z).",
    ),
    (
        lambda: operator.setitem(tj.dlarray(np.broadcast_to(1.0, 3)), 0, 2.0),
        WriteError,
        "write: 3 float64 is read-only, like the ndarray that it was made of; write to a copy (x.copy()).",
    ),
    (
        lambda: tj.dlfeval(lambda x: operator.setitem(np.broadcast_to(x, (2, 3)), 0, 2.0), V),
        WriteError,
        "write: an array that was broadcast from 3 to 2x3 is read-only, as NumPy's is, because its elements share "
        "places in memory; write to a copy (x.copy()).",
    ),
    (
        lambda: dlfeval_of_halves(lambda x, y: operator.setitem(x, 0, y.sum())),
        WriteError,
        "write: args[1] shares memory with an array that dlfeval_of_halves.<locals>.function writes, and shows it in "
        "another way, which a trace cannot follow. Pass a copy of one of them, or pass the array that both are views "
        "of and slice it inside.",
    ),
    # functions/evaluate
    (
        lambda: tj.dlfeval(3),
        ArgumentError,
        "dlfeval: fun must be a function, not int; pass the function and then its arguments, dlfeval(fun, "
        "x), not dlfeval(fun(x)).",
    ),
    (
        lambda: tj.dlgradient(X, X),
        GradientError,
        "dlgradient: nothing is being recorded; call it inside a function that dlfeval evaluates, "
        "dlfeval(fun, x), or dlaccelerate accelerates, dlaccelerate(fun)(x).",
    ),
    (
        lambda: traced(lambda x: tj.dlgradient(x.sum())),
        ArgumentError,
        "dlgradient: there is no x to differentiate by; pass dlgradient(y, x).",
    ),
    (
        lambda: traced(lambda x: tj.dlgradient(3.0, x)),
        GradientError,
        "dlgradient: y is a float, expected a traced scalar dlarray; compute it inside the function from its "
        "arguments, with functions of tracejit, NumPy or math, and pass tj.dlarray(x) for an "
        "argument x that is a number.",
    ),
    (
        lambda: traced(lambda x: tj.dlgradient(x, x)),
        GradientError,
        "dlgradient: y is 2x3 dlarray float64, expected a traced scalar; reduce it first, e.g. sum(y), or "
        "pass the cotangent of its elements as seed of dlgradient.",
    ),
    (
        lambda: traced(lambda x: tj.dlgradient((x > 0).sum(), x)),
        GradientError,
        "dlgradient: y is scalar dlarray int64, expected a floating-point scalar; comparisons, rounding "
        "and integers have no derivative. In the arguments write -1.0 for -1.",
    ),
    (
        lambda: traced(lambda x: tj.dlgradient(tj.dlarray(1.0), x)),
        GradientError,
        "dlgradient: y is an untraced scalar dlarray float64, expected a traced scalar; compute it inside "
        "the function from the arguments of dlfeval, without extractdata or NumPy's own arrays in "
        "between.",
    ),
    (
        lambda: two_traces(tj.dlgradient),
        GradientError,
        "dlgradient: y was recorded in outer, not in inner; take the gradient in the function that "
        "computes y.",
    ),
    (
        lambda: traced(lambda x: tj.dlgradient(x.sum(), {"w": 3.0})),
        ArgumentError,
        "dlgradient: x['w'] is a Python number, which has no gradient. Pass tj.dlarray(x) in its place, such as "
        "tj.dlarray(0.5), or leave it out.",
    ),
    (
        lambda: traced(lambda x: tj.dlgradient(x.sum(), [V])),
        ArgumentError,
        "dlgradient: x[0] is an untraced array, ndarray; what NumPy computes with it is not recorded. Make it a "
        "dlarray where it is made (self.w = tj.dlarray(w)), or pass it as an argument.",
    ),
    (
        lambda: traced(lambda x: tj.dlgradient(x.sum(), {"w": "text"})),
        ArgumentError,
        "dlgradient: x['w'] is a str, expected a traced dlarray; leave it out of the containers to "
        "differentiate by.",
    ),
    (
        lambda: traced(lambda x: tj.dlgradient(x.sum(), x > 0)),
        GradientError,
        "dlgradient: x is 2x3 dlarray bool, expected floating point; integers and bools have no gradient. "
        "Write -1.0 for -1, cast it before the call (x.astype(float)), or leave it out.",
    ),
    (
        lambda: traced(lambda x: tj.dlgradient(x.sum(), x, private(X.copy()))),
        GradientError,
        "dlgradient: xs[1] is an untraced 2(B) x 3(C) dlarray float64 that the function copied or computed from "
        "untraced arrays, so that it is a constant. Copy it outside: an argument, an attribute or a global has a "
        "gradient. So has what is computed of traced arrays: 0 * x in place of zeros_like(x).",
    ),
    (
        lambda: tj.dlfeval(rewritten, V),
        GradientError,
        "dlgradient: the elements of x were changed by NumPy in the function, after it had been used. Change the "
        "dlarray instead (w -= g), whose operations are recorded, or take the gradient before.",
    ),
    (
        lambda: tj.dlfeval(written_since, V.copy()),
        GradientError,
        "dlgradient: y was computed before x was written (x += 1, x[i] = y), so that it does not depend on the new "
        "elements. Take the gradient before the write.",
    ),
)
