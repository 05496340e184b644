# SPDX-License-Identifier: BSD-3-Clause
"""The table of messages: how to provoke each error that a user can meet, and its exact text."""

import dataclasses
import importlib
import itertools
import math
import operator
import pickle
import re
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import messages_convolution
import messages_layers
import messages_linalg
import messages_nn
import messages_numpy
import messages_sequences
import numpy as np

import tracejit as tj
from tracejit import config
from tracejit.array import apply
from tracejit.errors import (
    ArgumentError,
    BoundsError,
    CacheError,
    ChangedTraceWarning,
    DimsError,
    DTypeError,
    GradientError,
    LostChangeWarning,
    NotAcceleratedWarning,
    OutputsDifferWarning,
    RetraceError,
    RetraceWarning,
    TraceError,
    TraceJitWarning,
    WriteError,
)
from tracejit.ir import Builder, Graph
from tracejit.ops import OPS, linear
from tracejit.ops.op import Scalar, Table
from tracejit.record import recorder as recorders
from tracejit.record.recorder import Recorder
from tracejit.util import arguments

M = np.ones((2, 3))
V = np.ones(3)
X = tj.dlarray(M, "BC")
N = tj.dlarray([[1, 2, 3], [4, 5, 6]])


class Row(NamedTuple):
    """A message: a call that meets it, the type of the error, and its text with <place> for a file and line."""

    provoke: Callable[[], object]
    error: type[Exception]
    text: str


class Outcome(NamedTuple):
    """The error that a row's call raised, and the raise statements that it came through: files and lines."""

    error: type[Exception] | None
    text: str
    statements: frozenset[tuple[Path, int]]


@cache
def outcome(row: Row) -> Outcome:
    """Return what the call of a row raises; a warning counts as an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", TraceJitWarning)
            row.provoke()
    except Exception as error:
        text = re.sub(rf"{re.escape(__file__)}:\d+", "<place>", str(error))
        text = re.sub(r"\b0x[0-9a-f]{8,}", "<address>", text)
        return Outcome(type(error), text, frozenset(statements(error)))
    return Outcome(None, "", frozenset())


def statements(error: BaseException | None) -> set[tuple[Path, int]]:
    """Return where an error and those that it came from were raised."""
    if error is None:
        return set()
    last = traceback.extract_tb(error.__traceback__)[-1]
    return {(Path(last.filename), last.lineno or 0)} | statements(error.__context__)


def traced(fun: Callable[[Any], object]) -> object:
    """Return ``fun(x)`` with a traced 2x3 array."""
    return tj.dlfeval(fun, M)


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
    elements = 1.0 - np.arange(3.0)
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


def put(x: Any, key: Any, value: Any) -> None:
    """Assign to an element of a copy."""
    x.copy()[key] = value


def dlfeval_of_halves(write: Callable[[Any, Any], object]) -> None:
    """Evaluate a function that writes into one of two views of an array that overlap."""

    def function(x: Any, y: Any) -> None:
        write(x, y)

    whole = np.ones(3)
    tj.dlfeval(function, whole[:2], whole[1:])


def too_many_traces() -> None:
    """Record a function once more than it may be."""
    double = tj.dlaccelerate(lambda x: x * 2)
    with tj.testing.assert_max_traces(double, 0):
        double(X)


def replay_out_of_range() -> None:
    """Replay an index that is out of range."""
    pick = tj.dlaccelerate(lambda x, i: tj.take(x, i, 0))
    for index in (0, 1, 2, 3):
        pick(V, np.array([index]))


def under_policy(policy: str, call: Callable[[], object]) -> object:
    """Return what a call gives under a policy."""
    tj.set_policy(policy)
    try:
        return call()
    finally:
        tj.set_policy("default")


def repeat(function: Callable[..., object], *args: Any) -> None:
    """Call a function as often as it takes to record and audit it."""
    for _ in range(4):
        function(*args)


@tj.dlaccelerate
def square(x: Any, y: Any = None) -> Any:
    return x * x


def counting() -> tj.AcceleratedFunction:
    """Return a function that multiplies by 1, 2, 3, ... in its calls."""
    calls = itertools.count(1)

    def scale(x: Any) -> Any:
        return x * np.array([next(calls)])

    return tj.dlaccelerate(scale)


def uncompiled_under_a_policy() -> None:
    """Call a function that runs uncompiled where that is an error."""
    function = counting()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        repeat(function, X)
    under_policy("error-on-retrace", lambda: function(X))


def lost_change() -> None:
    """Change a container in the arguments."""

    def step(p: Any, x: Any) -> Any:
        p["w"] = p["w"] * x
        return x.sum()

    repeat(tj.dlaccelerate(step), {"w": X}, X)


def constant_that_changes(**options: Any) -> None:
    """Replay a constant that changes after some calls."""
    phase = iter([1.0, 1.0, 5.0, 5.0, 5.0])

    def scale(x: Any) -> Any:
        return x * np.array([next(phase)])

    function = tj.dlaccelerate(scale, **options)
    for _ in range(8):
        function(V)


def number_that_is_needed() -> None:
    """Call a function with numbers that it needs themselves."""
    function = tj.dlaccelerate(lambda x, n: x * math.gamma(n))
    for n in range(100):
        function(V, 1.0 + n / 10)


def turnover() -> None:
    """Call a function with more sizes than its cache keeps."""
    function = tj.dlaccelerate(lambda x: x.sum(), cache_size=4)
    for n in range(40):
        function(np.ones(1 + n))


async def coroutine() -> None: ...


def generator() -> Iterator[int]:
    yield 1


class Slotted:
    __slots__ = ()

    @tj.dlaccelerate
    def step(self, x: Any) -> Any:
        return x


def refused(function: Callable[[Any], object]) -> None:
    """Call an accelerated function with different values until it is known to run uncompiled."""
    accelerated = tj.dlaccelerate(function)
    for n in range(12):
        accelerated(V + n)


def in_turn(*functions: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a function that does in each call what the next of some functions does."""
    turns = itertools.cycle(functions)

    def call(x: Any) -> object:
        return next(turns)(x)

    return call


def reads_a_different_number() -> None:
    """Call a function that reads a number with a different one in each call."""
    settings = {"rate": 0.0}
    scale = tj.dlaccelerate(lambda x: x * settings["rate"], audit=False)
    for n in range(30):
        settings["rate"] = float(n)
        scale(V)


def reads_a_large_array() -> Callable[[Any], object]:
    """Return a function with a number that NumPy computes of a large array."""
    weights = np.ones(100_000)
    return lambda x: x * float(np.sum(weights))


def changes_what_it_reads() -> Callable[[Any], object]:
    """Return a function that counts its calls."""
    calls = [0]

    def count(x: Any) -> Any:
        calls[0] += 1
        return x * calls[0]

    return count


def reads_what_changes() -> Callable[[Any], object]:
    """Return a function with an attribute of a different value in each call."""

    class Settings:
        @property
        def rate(self) -> float:
            return next(rates)

    rates, settings = itertools.count(1.0), Settings()
    return lambda x: x * settings.rate


def in_a_thread(call: Callable[[], object]) -> object:
    """Return what a call gives in another thread."""
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


def caught(call: Callable[[], object]) -> object:
    """Return what a call gives, or None for an index out of range."""
    try:
        return call()
    except IndexError:
        return None


ROWS: tuple[Row, ...] = (
    # array
    Row(
        lambda: len(tj.dlarray(1.0)),
        ArgumentError,
        "len(): a scalar dlarray has no length; its size is 1.",
    ),
    Row(
        lambda: iter(tj.dlarray(1.0)),
        ArgumentError,
        "iter(): a scalar dlarray cannot be iterated over; use item() for its value.",
    ),
    Row(
        lambda: bool(X),
        DimsError,
        "bool(): 2(B) x 3(C) float64 has 6 elements, not one; use any() or all().",
    ),
    Row(
        lambda: float(X),
        DimsError,
        "float(): 2(B) x 3(C) float64 has 6 elements, not one; reduce it or select an element first.",
    ),
    Row(
        lambda: traced(np.asarray),
        TraceError,
        "conversion of a traced 2x3 float64 to an ndarray at <place> would silently drop its derivative. Fill an "
        "array that holds traced values: one that np.zeros, np.ones, np.empty, np.full or np.array, called by "
        "name, made in the function, or tj.dlarray(y).copy() of an ndarray y; or join the values with np.stack. "
        "If the value is meant to be a constant, use extractdata.",
    ),
    Row(
        lambda: operator.index(X),
        ArgumentError,
        "index: an integer scalar is needed, not 2(B) x 3(C) float64; cast it, for example with int(x).",
    ),
    Row(
        lambda: X.sum().__setitem__(..., 1),
        ArgumentError,
        "setitem: x of scalar float64 is a number that an operation gave, and a number is not written, as NumPy's "
        "scalars are not; assign a new one (x = 0.0).",
    ),
    Row(
        lambda: traced(pickle.dumps),
        TraceError,
        "pickle: 2x3 float64 is traced, and a trace cannot be pickled; use extractdata(x) for its value.",
    ),
    Row(
        lambda: X.__array__(np.float32, copy=False),
        ValueError,
        "dlarray: float64 data cannot be seen as float32 without a copy.",
    ),
    # aval
    Row(
        lambda: tj.dlarray(M, 5),
        DimsError,
        "dlarray: format must be a string of the labels S, C, B, T, U or None, not int.",
    ),
    Row(
        lambda: tj.dlarray(M, "BX"),
        DimsError,
        "dlarray: format 'BX' has the label 'X'; labels are S (spatial), C (channel), B (batch), T (time) "
        "and U (unspecified).",
    ),
    Row(
        lambda: tj.dlarray(M, "BB"),
        DimsError,
        "dlarray: format 'BB' has the label 'B' 2 times; C, B and T may occur once. Use S for further "
        "spatial axes or U for axes without a meaning.",
    ),
    Row(
        lambda: tj.dlarray(M, "B"),
        DimsError,
        "dlarray: format 'B' labels 1 axes, but the data has 2; give one label for each axis (U where an "
        "axis has no meaning).",
    ),
    Row(
        lambda: tj.dlarray("text"),
        DTypeError,
        "dlarray: data of type <U4 is not supported; use float64, float32, bool or an integer type (for "
        "example data.astype(np.float32)).",
    ),
    Row(
        lambda: tj.add(X, np.ones(4)),
        DimsError,
        "add: operands of sizes 2(B) x 3(C) and 4 do not align: 3 against 4 on axis 1. Sizes must be "
        "equal or 1; formatted arrays align by label, others from the last axis.",
    ),
    # record/recorder
    Row(
        lambda: tj.dlarray(np.ma.array([1.0, 2.0], mask=[0, 1])),
        ArgumentError,
        "dlarray: a MaskedArray has rules of its own (a mask, products by *), which would be lost; pass "
        "np.asarray(data), or data.filled(value) of a masked array.",
    ),
    Row(
        lambda: tj.dlfeval(kept_inside, V),
        TraceError,
        "an array that was made at <place> while kept_inside.<locals>.keeping was evaluated is used after that "
        "evaluation ended, inside kept_inside, where it has no derivative. Return it from the function.",
    ),
    Row(
        lambda: two_traces(lambda x, y: x + y),
        TraceError,
        "an array of scalar float64 that outer is recording is used inside inner, which has a trace of "
        "its own; its value would become a constant there and it would have no gradient. Pass it as an "
        "argument.",
    ),
    Row(
        lambda: traced(lambda x: tj.dlarray([x, x])),
        ArgumentError,
        "dlarray: a list that holds traced dlarrays would lose their trace; join them with stack or "
        "concatenate.",
    ),
    Row(
        lambda: tj.add(X, {1, 2}),
        ArgumentError,
        "add: expected an array, a number or a (nested) list of numbers as y, not {1, 2}.",
    ),
    Row(
        lambda: tj.dlarray([[1], [1, 2]]),
        ArgumentError,
        "dlarray: cannot make an array of list: setting an array element with a sequence. The requested "
        "array has an inhomogeneous shape after 1 dimensions. The detected shape was (2,) + inhomogeneous "
        "part; give rows of equal length as data.",
    ),
    Row(
        lambda: tj.sin(within()),
        ArgumentError,
        "sin: x is a list that holds itself, or is nested deeper than the 64 axes of an array; pass a list of numbers, "
        "or of such lists.",
    ),
    Row(
        lambda: tj.dlfeval(lambda x: x, within()),
        ArgumentError,
        "dlfeval: a container holds itself, or is nested deeper than Python's recursion limit allows; pass containers "
        "that end in arrays and numbers.",
    ),
    Row(
        lambda: N + (1 << 70),
        ArgumentError,
        "add: y=1180591620717411303424 does not fit 64 bits; pass a float, or an integer from -2**63 to 2**64 - 1.",
    ),
    Row(
        lambda: tj.dlarray(1 << 70),
        ArgumentError,
        "dlarray: data=1180591620717411303424 does not fit 64 bits; pass a float, or an integer from -2**63 to "
        "2**64 - 1.",
    ),
    Row(
        lambda: N**-1,
        DimsError,
        "power: Integers to negative integer powers are not allowed; cast the operands first (x.astype(np.float64)), "
        "or change their values.",
    ),
    Row(
        lambda: tj.expand_dims(np.zeros((1,) * 64), 0),
        DimsError,
        f"reshape: a result of the sizes {str((1,) * 65)[:77]}... of float64 cannot be made: maximum supported "
        "dimension for an ndarray is currently 64, found 65; use smaller arrays, or several calls for parts of them.",
    ),
    Row(
        lambda: X.item(7),
        BoundsError,
        "item: (7,) is no place of x (2(B) x 3(C) float64); give an element's number in C order, or one index for each "
        "axis.",
    ),
    Row(
        lambda: tj.round(X, 400),
        ArgumentError,
        "round: decimals must be from -308 to 308, not 400: numbers have no more.",
    ),
    Row(
        lambda: tj.onehotencode([b"a"], 1, ["a", "b"]),
        ArgumentError,
        "onehotencode: labels contains b'a', which is not one of the 2 classes ['a', 'b']; add it to class_names.",
    ),
    Row(
        lambda: X[[[1], [1, 2]]],
        ArgumentError,
        "getitem: [[1], [1, 2]] is not an index; use integers, slices, ..., None, integer arrays or boolean masks.",
    ),
    Row(
        lambda: tj.scatter_add(V, [0], 10**400),
        ArgumentError,
        f"scatter_add: values={str(10**400)[:77]}... does not fit 64 bits; pass a float, or an integer from -2**63 to "
        "2**64 - 1.",
    ),
    Row(
        lambda: tj.nonzero(1.0),
        DimsError,
        "nonzero: x is a scalar, which has no places; pass atleast_1d(x), or use x != 0.",
    ),
    Row(
        lambda: tj.array_split(V, 10**30),
        DimsError,
        "array_split: the number of parts must be at most 1048576 for 3 elements along axis 0, not "
        "1000000000000000000000000000000.",
    ),
    Row(
        lambda: tj.zeros(10**15),
        DimsError,
        "zeros: a result of the sizes (1000000000000000,) of float64 cannot be made: Unable to allocate 7.11 PiB for "
        "an array with shape (1000000000000000,) and data type float64; use smaller arrays, or several calls for parts "
        "of them.",
    ),
    Row(
        lambda: tj.zeros((1 << 40, 1 << 40)),
        DimsError,
        "zeros: shape must be the sizes of at most 64 axes and fewer than 2**60 elements, not (1099511627776, "
        "1099511627776).",
    ),
    Row(
        lambda: tj.sum(X, 0, "no"),
        ArgumentError,
        "sum: keepdims must be True or False, not 'no'.",
    ),
    Row(
        lambda: tj.var(X, ddof=1j),
        ArgumentError,
        "var: ddof must be a real number, not 1j.",
    ),
    Row(
        lambda: tj.tril(M, 1.5),
        ArgumentError,
        "tril: k must be an integer, not 1.5.",
    ),
    # tree
    Row(
        lambda: tj.tree.unflatten(tj.tree.flatten((1, 2))[1], [1]),
        ArgumentError,
        "unflatten: the tree has 2 leaves, but 1 were given.",
    ),
    Row(
        lambda: tj.tree.map(max, [1, 2], [1]),
        ArgumentError,
        "map: tree 2 differs from the first: tree has 2 elements in one and 1 in the other. All trees "
        "must have the same containers and keys.",
    ),
    # config
    Row(
        lambda: config.from_environment({"TRACEJIT_THREADS": "0"}),
        ArgumentError,
        "TRACEJIT_THREADS='0' is not valid; use an integer of at least 1.",
    ),
    Row(
        lambda: config.from_environment({"TRACEJIT_CACHE_DIR": ""}),
        ArgumentError,
        "TRACEJIT_CACHE_DIR='' is not valid; use the path of a folder.",
    ),
    Row(
        lambda: config.from_environment({"TRACEJIT_BACKEND": "gpu"}),
        ArgumentError,
        "TRACEJIT_BACKEND='gpu' is not valid; use one of 'cpu', 'python'.",
    ),
    # ir
    Row(
        lambda: Builder(Graph()).nothing,
        AttributeError,
        "there is no op named 'nothing'",
    ),
    # record/views
    Row(
        lambda: operator.iadd(tj.dlarray(np.ones(3)), np.ones((2, 3))),
        DimsError,
        "+=: the result has size 2x3, but the array that is written has 3; an array keeps its size. Assign the result "
        "to a new name (y = x + z).",
    ),
    Row(
        lambda: operator.itruediv(tj.dlarray(np.ones(3, int)), 2),
        DTypeError,
        "/=: the result is float64, but the array that is written is int64; an array keeps its dtype. Cast the array "
        "first (x = x.astype(np.float64)), or assign the result to a new name (y = x / z).",
    ),
    Row(
        lambda: operator.setitem(tj.dlarray(np.broadcast_to(1.0, 3)), 0, 2.0),
        WriteError,
        "write: 3 float64 is read-only, as the ndarray that it was made of is; write to a copy (x.copy()).",
    ),
    Row(
        lambda: tj.dlfeval(lambda x: operator.setitem(np.broadcast_to(x, (2, 3)), 0, 2.0), V),
        WriteError,
        "write: an array that was broadcast from 3 to 2x3 is read-only, as NumPy's is, because its elements share "
        "places in memory; write to a copy (x.copy()).",
    ),
    Row(
        lambda: dlfeval_of_halves(lambda x, y: operator.setitem(x, 0, y.sum())),
        WriteError,
        "write: args[1] shares memory with an array that dlfeval_of_halves.<locals>.function writes, and shows it in "
        "another way, which a trace cannot follow. Pass a copy of one of them, or pass the array that both are views "
        "of and slice it inside.",
    ),
    # optim
    Row(
        lambda: tj.adamupdate(X, X, None, None, 0),
        ArgumentError,
        "adamupdate: iteration counts from 1, found 0; pass 1 in the first call.",
    ),
    Row(
        lambda: tj.dlupdate(3, X),
        ArgumentError,
        "dlupdate: fun must be a function, not int.",
    ),
    Row(
        lambda: tj.dlupdate(abs),
        ArgumentError,
        "dlupdate: there is nothing to update; pass dlupdate(fun, params).",
    ),
    Row(
        lambda: tj.dlupdate(lambda p: (p, p) if p.ndim else p, [X, tj.dlarray(1.0)]),
        ArgumentError,
        "dlupdate: fun must return the same number of results for each leaf; found a single result and a "
        "tuple of 2.",
    ),
    Row(
        lambda: tj.sgdmupdate(X, X, None, "high"),
        ArgumentError,
        "sgdmupdate: learn_rate must be a number or a scalar array, not 'high'.",
    ),
    Row(
        lambda: tj.sgdmupdate(X, X, None, V),
        DimsError,
        "sgdmupdate: learn_rate is of size 3; expected a scalar.",
    ),
    Row(
        lambda: tj.sgdmupdate([X], X, None),
        ArgumentError,
        "sgdmupdate: grads does not match params: grads is an array, params is a list. They must "
        "have the same containers and keys.",
    ),
    Row(
        lambda: tj.adamupdate(X, X, None, None, 1, grad_decay=1.0),
        ArgumentError,
        "adamupdate: decay factors must be at least 0 and less than 1, found 1.0.",
    ),
    Row(
        lambda: tj.sgdmupdate([X, N], [X, X], None),
        DTypeError,
        "sgdmupdate: params[1] holds int64, expected floating point; leave it out of the containers, or "
        "cast it.",
    ),
    Row(
        lambda: tj.sgdmupdate({"w": X}, {"w": V}, None),
        DimsError,
        "sgdmupdate: grads['w'] is of size 3, but params['w'] is of size 2(B) x 3(C); they must have the "
        "same sizes and labels.",
    ),
    # testing
    Row(
        lambda: tj.testing.check_gradients(abs, X, order=0),
        ArgumentError,
        "check_gradients: order must be a positive integer, not 0.",
    ),
    Row(
        lambda: tj.testing.check_gradients(lambda x: 3, X),
        ArgumentError,
        "check_gradients: <lambda>.<locals>.<lambda> returns no traced floating-point dlarray, so it has "
        "no gradient.",
    ),
    Row(
        lambda: tj.testing.check_gradients(tj.log, -X),
        AssertionError,
        "check_gradients: log gives nan at args; choose args where it is finite.",
    ),
    Row(
        lambda: tj.testing.check_gradients(abs, N),
        ArgumentError,
        "check_gradients: args of abs hold no floating-point array to differentiate by.",
    ),
    Row(
        lambda: tj.testing.assert_max_traces(abs, 1).__enter__(),
        ArgumentError,
        "assert_max_traces: expected an accelerated function, not builtin_function_or_method; pass what "
        "dlaccelerate returned.",
    ),
    Row(
        too_many_traces,
        AssertionError,
        "too_many_traces.<locals>.<lambda> was recorded, or ran uncompiled, 1 times, expected at most 0. "
        "The last call: too_many_traces.<locals>.<lambda>: miss. A new trace was recorded for x: 2(B) x "
        "3(C) float64, because there was none yet.",
    ),
    # ops/elementwise
    Row(
        lambda: -tj.dlarray([True]),
        DTypeError,
        "negative: not defined for bool; cast the operands first (x.astype(np.float64)).",
    ),
    # ops/indexing
    Row(
        lambda: tj.take(X, [0.5], 0),
        DTypeError,
        "take: index has dtype float64, expected integers. Round and cast it (index.astype(np.int64)), or "
        "turn a mask into indices with nonzero.",
    ),
    Row(
        lambda: apply("take", V, N, axis=1),
        DimsError,
        "take: axis 1 is out of range for x of 3; axes are 0 to 0, and a scalar has none.",
    ),
    Row(
        lambda: tj.scatter_add(tj.dlarray([True]), [0], [True]),
        DTypeError,
        "scatter_add: x has dtype bool, which cannot hold sums; cast it (x.astype(np.int64)).",
    ),
    Row(
        lambda: tj.take(X, [5], 0),
        BoundsError,
        "take: index 5 is out of range for an axis of size 2; valid indices are -2 to 1.",
    ),
    Row(
        lambda: tj.scatter_add(V, [0, 1], [1.0, 2.0, 3.0]),
        DimsError,
        "scatter_add: v has size 3, but the indexed elements have size 2 (x of 3 at an index of 2 along "
        "axis 0); broadcast v to that size.",
    ),
    Row(
        lambda: tj.take_along_axis(X, [0], 0),
        DimsError,
        "take_along_axis: index has size 1 and x 2(B) x 3(C); all sizes except along axis 0 must be equal.",
    ),
    Row(
        lambda: apply("add_along_axis", M, np.zeros((2, 3), int), V, axis=0),
        DimsError,
        "add_along_axis: v has size 3 and index 2x3; one number is added for each index, so broadcast v "
        "to that size.",
    ),
    # ops/linear
    Row(
        lambda: tj.dlarray(np.ones((1, 1, 1)), "BSS") @ tj.dlarray(np.ones((1, 1, 1)), "TSS"),
        DimsError,
        "matmul: an axis labelled B meets an axis labelled T in operands of 1(B) x 1(S) x 1(S) and 1(T) x "
        "1(S) x 1(S); transpose one of them, or drop the labels with stripdims.",
    ),
    Row(
        lambda: apply("matmul", M, M),
        DimsError,
        "matmul: x has 3 columns but y has 2 rows in operands of 2x3 and 2x3; these must be equal. "
        "Transpose y (x @ y.T)?",
    ),
    Row(
        lambda: apply("matmul_add", M, np.ones((3, 2)), V),
        DimsError,
        "matmul_add: z is float64 of size 3, but the product that is added to it is float64 of size 2x2; "
        "sizes and dtypes must be equal. Use matmul and add, which broadcasts.",
    ),
    Row(
        lambda: tj.outer(tj.dlarray(V, "C"), tj.dlarray(V, "C")),
        DimsError,
        "outer: the result of operands of 3(C) and 3(C) would be labelled 'CC', with C 2 times, but C, B "
        "and T occur once; drop the labels of one operand with stripdims.",
    ),
    Row(
        lambda: linear._loop(np.dtype("M8[s]"), np.dtype("M8[s]")),
        DTypeError,
        "matmul: not defined for datetime64[s] and datetime64[s]; cast the operands first "
        "(x.astype(np.float64)).",
    ),
    Row(
        lambda: apply("matmul", V, M),
        DimsError,
        "matmul: x (3) has 1 axes, but a matrix has at least 2; reshape it to one row or one column.",
    ),
    Row(
        lambda: tj.matmul(np.ones((2, 3, 3)), np.ones((4, 3, 3))),
        DimsError,
        "matmul: the batch axes (all but the last two) of operands of 2x3x3 and 4x3x3 do not align; "
        "aligned from the last, their sizes must be equal or 1.",
    ),
    # ops/movement
    Row(
        lambda: apply("reshape", M, shape=(4,)),
        DimsError,
        "reshape: x has 6 elements (2x3), but shape=(4,) holds 4; the sizes must have the same product.",
    ),
    Row(
        lambda: apply("transpose", M, axes=(0, 0)),
        DimsError,
        "transpose: axes=(0, 0) is not an order of the 2 axes of x (2x3); name each of 0 to 1 once.",
    ),
    Row(
        lambda: tj.broadcast_to(M, (3, 2)),
        DimsError,
        "broadcast_to: x of size 2x3 does not broadcast to shape=(3, 2); aligned from the last axis, each "
        "size of x must be 1 or equal.",
    ),
    Row(
        lambda: apply("slice", M, starts=(0,), stops=(1,), steps=(1,)),
        DimsError,
        "slice: starts=(0,), stops=(1,) and steps=(1,) must have one entry for each of the 2 axes of x "
        "(2x3).",
    ),
    Row(
        lambda: apply("slice", V, starts=(0,), stops=(9,), steps=(1,)),
        DimsError,
        "slice: range(0, 9, 1) leaves axis 0 of x (3); indices must lie in 0 to 2, and a step is not 0.",
    ),
    Row(
        lambda: apply("setslice", V, M, starts=(0,), stops=(1,), steps=(1,)),
        DimsError,
        "setslice: a value of size 2x3 does not broadcast to the 1 places of x (3) that are assigned; "
        "aligned from the last axis, each size must be 1 or equal.",
    ),
    Row(
        lambda: tj.concatenate([M, np.ones((2, 4))]),
        DimsError,
        "concatenate: array 0 has size 2x3 and array 1 2x4; all sizes except along axis 0 must be equal.",
    ),
    Row(
        lambda: apply("concatenate", 1.0, 2.0, axis=0),
        DimsError,
        "concatenate: axis 0 is out of range for arrays of scalar; a scalar has no axes, so reshape it to "
        "(1,) first.",
    ),
    Row(
        lambda: tj.concatenate([X, tj.dlarray(M, "CB")]),
        DimsError,
        "concatenate: the arrays have the formats 'BC' and 'CB'; joined axes must have the same labels. "
        "Permute or relabel one of them.",
    ),
    Row(
        lambda: apply("assemble", V, shape=(2,), places=(((0,), (2,), (1,)),)),
        DimsError,
        "assemble: a value of size 3 is to fill 2 places; the sizes must be equal.",
    ),
    Row(
        lambda: apply("pad", V, widths=(), value=0.0),
        DimsError,
        "pad: widths=() must be one pair (before, after) of sizes >= 0 for each of the 1 axes of x (3).",
    ),
    # ops/op
    Row(
        lambda: dataclasses.replace(OPS["exp"], emit=None),
        TypeError,
        "op 'exp' of kind ELEMENTWISE has emit=None",
    ),
    Row(
        lambda: dataclasses.replace(OPS["exp"], doc=""),
        TypeError,
        "op 'exp' lacks its doc or its samples",
    ),
    Row(
        lambda: dataclasses.replace(OPS["exp"], emit=Scalar("{0} if {0} else 0")),
        TypeError,
        "op 'exp': its template chooses with if, and, or or; choose with where(condition, a, b), because "
        "operands may be vectors",
    ),
    Row(
        lambda: Table([[OPS["exp"]], [dataclasses.replace(OPS["exp"], doc="another")]]),
        ValueError,
        "two ops are named 'exp'",
    ),
    Row(lambda: OPS["nothing"], KeyError, "'nothing'"),
    # ops/random
    Row(
        lambda: apply("permutation", M),
        DimsError,
        "permutation: expected a vector of float64 numbers, not 2x3 float64.",
    ),
    Row(
        lambda: apply("uniform32", V, shape=(2,), offset=0, stream=0),
        DimsError,
        "uniform32: the state of a generator is (key, position) in int64, not 3 float64.",
    ),
    # ops/reduce
    Row(
        lambda: apply("sum_add", M, M, axes=(0,), keepdims=False),
        DimsError,
        "sum_add: z is float64 of size 2x3, but the sum that is added to it is float64 of size 3; use sum "
        "and add, which broadcast and promote.",
    ),
    Row(
        lambda: tj.max(np.ones((2, 0)), 1),
        DimsError,
        "max: axis 1 of an array of 2x0 is empty, so it has no maximum; reduce axes that hold elements, "
        "or pad this one first.",
    ),
    # functions/layers/activations
    Row(
        lambda: tj.softmax(tj.dlarray(V, "B")),
        DimsError,
        "softmax: an array of size 3(B) has no channels (C) to sum over; name the axis instead, with axis=.",
    ),
    Row(
        lambda: tj.gelu(X, approximation="erf"),
        ArgumentError,
        'gelu: approximation must be "none" or "tanh", not \'erf\'.',
    ),
    Row(
        lambda: tj.softmax(X, axis=0, data_format="BC"),
        ArgumentError,
        "softmax: axis=0 and data_format='BC' both say where the channels are; pass one of them.",
    ),
    # functions/axes
    Row(
        lambda: tj.sum(X, 0.5),
        ArgumentError,
        "sum: axis must be an integer, a tuple of integers, a string of labels or None, not 0.5.",
    ),
    Row(
        lambda: tj.sum(X, (0, 0)),
        DimsError,
        "sum: axis=(0, 0) names axis 0 twice in an array of 2(B) x 3(C); name each axis once.",
    ),
    Row(
        lambda: tj.sum(X, 2),
        DimsError,
        "sum: axis 2 is out of range for an array of 2(B) x 3(C); axes are -2 to 1.",
    ),
    Row(
        lambda: tj.sum(1.0, 0),
        DimsError,
        "sum: axis 0 is out of range for an array of scalar; a scalar has no axes.",
    ),
    Row(
        lambda: tj.sum(X, "X"),
        DimsError,
        "sum: axis='X' is not a string of labels; labels are S (spatial), C (channel), B (batch), T "
        "(time) and U (unspecified).",
    ),
    Row(
        lambda: tj.sum(M, "C"),
        DimsError,
        "sum: axis='C' names axes by label, but the array of 2x3 is unformatted; give numbers, or label "
        "it with dlarray(x, format).",
    ),
    Row(
        lambda: tj.cumsum(tj.dlarray(np.ones((2, 2)), "SS"), "S"),
        DimsError,
        "cumsum: axis='S' names 2 axes of an array of 2(S) x 2(S), but one is needed; give its number.",
    ),
    Row(
        lambda: tj.sum(X, "T"),
        DimsError,
        "sum: axis='T' names the label T, but the array is of 2(B) x 3(C); name labels of its format 'BC'.",
    ),
    # functions/creation
    Row(
        lambda: tj.zeros((2, -1)),
        DimsError,
        "zeros: sizes must not be negative, found (2, -1) as shape.",
    ),
    Row(
        lambda: tj.arange(0, 1, 0),
        ArgumentError,
        "arange: cannot go from 0 to 1 by 0: division by zero; give numbers, and a step that is not 0 and "
        "leads there soon.",
    ),
    Row(
        lambda: tj.zeros("two"),
        DimsError,
        "zeros: shape must be an integer or a tuple of integers, not 'two'.",
    ),
    Row(
        lambda: tj.zeros(2, dtype="number"),
        ArgumentError,
        "zeros: dtype must be a NumPy dtype such as np.float32, not 'number'.",
    ),
    # functions/layers/dense
    Row(
        lambda: tj.fullyconnect(tj.dlarray(V, "B"), M, 0),
        DimsError,
        "fullyconnect: X ('B', 3) has no channels to sum over; expected a label C, S or U.",
    ),
    Row(
        lambda: tj.fullyconnect(X, np.ones((3, 2)), None),
        DimsError,
        "fullyconnect: weights have 2 columns but X ('BC', 2x3) has 3 channels; weights must be (outputs, "
        "channels). Pass weights.T?",
    ),
    Row(
        lambda: tj.fullyconnect(X, M.T[:1], None),
        DimsError,
        "fullyconnect: weights have 2 columns but X ('BC', 2x3) has 3 channels; weights must be (outputs, "
        "channels). Check both sizes.",
    ),
    Row(
        lambda: tj.fullyconnect(X, V, None),
        DimsError,
        "fullyconnect: weights are of size 3 but X ('BC', 2x3) has 3 channels; weights must be (outputs, "
        "channels). Check both sizes.",
    ),
    Row(
        lambda: tj.fullyconnect(X, M, V),
        DimsError,
        "fullyconnect: bias is of size 3, but weights have 2 rows; bias must be (outputs,).",
    ),
    # functions/elementwise
    Row(
        lambda: tj.round(X, 0.5),
        ArgumentError,
        "round: decimals must be an integer, not 0.5.",
    ),
    Row(
        lambda: tj.cast(X, "number"),
        ArgumentError,
        "cast: dtype must be a NumPy dtype such as np.float32, not 'number'.",
    ),
    # functions/layers/encoding
    Row(
        lambda: tj.onehotdecode(X, 4),
        DimsError,
        "onehotdecode: y (2(B) x 3(C)) has size 3 along axis='C', but there are 4 classes; these must be "
        "equal.",
    ),
    Row(
        lambda: tj.onehotencode([1], "C", []),
        ArgumentError,
        "onehotencode: class_names must be a number of classes or a sequence of numbers or strings, not [].",
    ),
    Row(
        lambda: tj.onehotencode([1], "C", [1, 1]),
        ArgumentError,
        "onehotencode: class_names contains 1 more than once; name each class once.",
    ),
    Row(
        lambda: tj.onehotencode(["eel"], "C", ["cat", "dog"]),
        ArgumentError,
        "onehotencode: labels contains 'eel', which is not one of the 2 classes ['cat', 'dog']; add it to "
        "class_names.",
    ),
    Row(
        lambda: tj.onehotencode([1], "C", 2, dtype="number"),
        ArgumentError,
        "onehotencode: dtype must be a NumPy dtype such as np.float32, not 'number'.",
    ),
    Row(
        lambda: tj.onehotencode([1], "C", ["cat"]),
        ArgumentError,
        "onehotencode: labels are numbers (int64), but class_names are strings; give the classes as numbers.",
    ),
    Row(
        lambda: tj.onehotencode([1], "X", 2),
        DimsError,
        "onehotencode: axis='X' is not a label; expected a number or one of S, C, B, T, U.",
    ),
    Row(
        lambda: tj.onehotencode([3], "C", 2),
        ArgumentError,
        "onehotencode: labels contains 3, which is not one of the 2 classes [0, 1]; add it to class_names.",
    ),
    Row(
        lambda: tj.onehotencode(tj.dlarray([[0, 1]], "BC"), "C", 2),
        DimsError,
        "onehotencode: labels of size 1(B) x 2(C) have an axis C of size 2; it must be of size 1 to hold "
        "the classes. Give the place of a new axis as a number.",
    ),
    # functions/evaluate
    Row(
        lambda: tj.dlfeval(3),
        ArgumentError,
        "dlfeval: fun must be a function, not int; pass the function and then its arguments, dlfeval(fun, "
        "x), not dlfeval(fun(x)).",
    ),
    Row(
        lambda: tj.dlgradient(X, X),
        GradientError,
        "dlgradient: nothing is being recorded; call it inside a function that dlfeval evaluates, "
        "dlfeval(fun, x), or dlaccelerate accelerates, dlaccelerate(fun)(x).",
    ),
    Row(
        lambda: traced(lambda x: tj.dlgradient(x.sum())),
        ArgumentError,
        "dlgradient: there is no x to differentiate by; pass dlgradient(y, x).",
    ),
    Row(
        lambda: traced(lambda x: tj.dlgradient(3.0, x)),
        GradientError,
        "dlgradient: y is a float, expected a traced scalar dlarray; compute it inside the function from its "
        "arguments, with functions of tracejit or NumPy (tj.exp instead of math.exp), and pass tj.dlarray(x) for an "
        "argument x that is a number.",
    ),
    Row(
        lambda: traced(lambda x: tj.dlgradient(x, x)),
        GradientError,
        "dlgradient: y is 2x3 dlarray float64, expected a traced scalar; reduce it first, e.g. sum(y).",
    ),
    Row(
        lambda: traced(lambda x: tj.dlgradient((x > 0).sum(), x)),
        GradientError,
        "dlgradient: y is scalar dlarray int64, expected a floating-point scalar; comparisons, rounding "
        "and integers have no derivative. In the arguments write -1.0 for -1.",
    ),
    Row(
        lambda: traced(lambda x: tj.dlgradient(tj.dlarray(1.0), x)),
        GradientError,
        "dlgradient: y is an untraced scalar dlarray float64, expected a traced scalar; compute it inside "
        "the function from the arguments of dlfeval, without extractdata or NumPy's own arrays in "
        "between.",
    ),
    Row(
        lambda: two_traces(tj.dlgradient),
        GradientError,
        "dlgradient: y was recorded in outer, not in inner; take the gradient in the function that "
        "computes y.",
    ),
    Row(
        lambda: traced(lambda x: tj.dlgradient(x.sum(), {"w": 3.0})),
        ArgumentError,
        "dlgradient: x['w'] is a Python number, which has no gradient. Pass tj.dlarray(x) in its place, such as "
        "tj.dlarray(0.5), or leave it out.",
    ),
    Row(
        lambda: traced(lambda x: tj.dlgradient(x.sum(), [V])),
        ArgumentError,
        "dlgradient: x[0] is an untraced array, ndarray; what NumPy computes with it is not recorded. Make it a "
        "dlarray where it is made (self.w = tj.dlarray(w)), or pass it as an argument.",
    ),
    Row(
        lambda: traced(lambda x: tj.dlgradient(x.sum(), {"w": "text"})),
        ArgumentError,
        "dlgradient: x['w'] is a str, expected a traced dlarray; leave it out of the containers to "
        "differentiate by.",
    ),
    Row(
        lambda: traced(lambda x: tj.dlgradient(x.sum(), x > 0)),
        GradientError,
        "dlgradient: x is 2x3 dlarray bool, expected floating point; integers and bools have no gradient. "
        "Write -1.0 for -1, cast it before the call (x.astype(float)), or leave it out.",
    ),
    Row(
        lambda: traced(lambda x: tj.dlgradient(x.sum(), x, private(X.copy()))),
        GradientError,
        "dlgradient: xs[1] is an untraced 2(B) x 3(C) dlarray float64 that the function copied or computed from "
        "untraced arrays, so that it is a constant. Copy it outside: an argument, an attribute or a global has a "
        "gradient.",
    ),
    Row(
        lambda: tj.dlfeval(rewritten, V),
        GradientError,
        "dlgradient: the elements of x were changed by NumPy in the function, after it had been used. Change the "
        "dlarray instead (w -= g), whose operations are recorded, or take the gradient before.",
    ),
    Row(
        lambda: tj.dlfeval(written_since, V.copy()),
        GradientError,
        "dlgradient: y was computed before x was written (x += 1, x[i] = y), so that it does not depend on the new "
        "elements. Take the gradient before the write.",
    ),
    # functions/formats
    Row(
        lambda: tj.softmax(M),
        DimsError,
        "softmax: an array of size 2x3 has no labels, but softmax sums over the channels (C); label it "
        'with dlarray(x, format), or pass data_format (for example "CB"), or pass axis.',
    ),
    Row(
        lambda: tj.softmax(X, data_format="BC"),
        DimsError,
        "softmax: data_format='BC' is given for an array of size 2(B) x 3(C), which has labels of its "
        "own; leave data_format out, or remove the labels with stripdims(x).",
    ),
    # functions/indexing
    Row(
        lambda: X[[0.5]],
        DTypeError,
        "getitem: an index array has dtype float64, expected integers or booleans. Round and cast it "
        "(index.astype(np.int64)).",
    ),
    Row(
        lambda: X[0, 0, 0],
        BoundsError,
        "getitem: the key indexes 3 axes, but x (2(B) x 3(C)) has 2; leave out indices, or add axes with "
        "None.",
    ),
    Row(
        lambda: X[np.ones(3, bool)],
        BoundsError,
        "getitem: a mask of 3 does not fit x (2(B) x 3(C)) from axis 0 on; it must have the sizes of the "
        "axes that it selects from.",
    ),
    Row(
        lambda: put(X, 0, tj.dlarray(V, "T")),
        DimsError,
        "setitem: the value is 3(T), but the assigned part of x is 3(C); labels must agree. Permute the "
        "value, or use stripdims.",
    ),
    Row(
        lambda: put(X, 0, np.ones(4)),
        DimsError,
        "setitem: a value of size 4 does not broadcast to the 3(C) places of x (2(B) x 3(C)) that are "
        "assigned; aligned from the last axis, each size must be 1 or equal.",
    ),
    Row(
        lambda: X[True],
        ArgumentError,
        "getitem: a single boolean is not an index; use where(condition, a, b), or a mask of the size of x.",
    ),
    Row(
        lambda: X[[0, 1], [0, 1, 2]],
        DimsError,
        "getitem: index arrays of sizes 2 and 3 do not broadcast together; their sizes, aligned from the "
        "last, must be equal or 1. Index one axis after the other, or reshape them.",
    ),
    Row(
        lambda: X[[0, 5], [0, 1]],
        BoundsError,
        "getitem: index 5 is out of range for an axis of size 2; valid indices are -2 to 1.",
    ),
    Row(
        lambda: X[2],
        BoundsError,
        "getitem: index 2 is out of range for axis 0 of x (2(B) x 3(C)); valid indices are -2 to 1.",
    ),
    Row(
        lambda: tj.dlarray(np.ones((0, 3)))[0],
        BoundsError,
        "getitem: index 0 is out of range for axis 0 of x (0x3); the axis is empty.",
    ),
    Row(
        lambda: put(tj.dlarray(np.zeros(2, np.int8)), 0, 300),
        ArgumentError,
        "setitem: the value 300 does not fit x of type int8 (-128 to 127); cast x first.",
    ),
    Row(
        lambda: X[0.5:],
        ArgumentError,
        "getitem: slice(0.5, None, None) is not an index of an axis: slice indices must be integers or "
        "None or have an __index__ method.",
    ),
    Row(
        lambda: X["C"],
        ArgumentError,
        "getitem: 'C' is not an index; use integers, slices, ..., None, integer arrays or boolean masks.",
    ),
    Row(
        lambda: X[..., ...],
        BoundsError,
        "getitem: the key has two ellipses (...); one stands for all axes left out.",
    ),
    # functions/labels
    Row(
        lambda: tj.finddim(X, "X"),
        DimsError,
        "finddim: label must be one of S, C, B, T, U, not 'X'.",
    ),
    Row(
        lambda: tj.dims(3.0),
        ArgumentError,
        "dims: x must be a dlarray, not float; make one with dlarray(x).",
    ),
    Row(
        lambda: tj.stripdims(X, "B"),
        DimsError,
        "stripdims: format 'B' has no place for every axis of 2(B) x 3(C); name each of its labels.",
    ),
    # functions/linear
    Row(
        lambda: tj.matmul(V, np.ones(4)),
        DimsError,
        "matmul: x (3) has 3 elements, but y (4) has 4 elements; these must be equal.",
    ),
    Row(
        lambda: tj.tensordot(M, M, ((0, 1), (0,))),
        DimsError,
        "tensordot: axes=((0, 1), (0,)) pairs the axes (0, 1) of x with (0,) of y; name the same number "
        "of each, none twice.",
    ),
    Row(
        lambda: tj.einsum(M, [0, 1]),
        ArgumentError,
        "einsum: subscripts come first, as a string such as 'ij,jk->ik', not ndarray; write lists of axis "
        "numbers as letters.",
    ),
    Row(
        lambda: tj.einsum("ij,jk", M),
        ArgumentError,
        "einsum: subscripts 'ij,jk' have 2 terms for 1 operands; separate one term for each operand by "
        "commas.",
    ),
    Row(
        lambda: tj.einsum("...i,...i->i", M, M),
        ArgumentError,
        "einsum: '...' stands for 1 axes in the operands of '...i,...i->i', but the result has none; add "
        "'...' to the result, or name the axes to sum over them.",
    ),
    Row(
        lambda: np.trace(tj.dlarray(V)),
        DimsError,
        "trace: x of 3 has 1 axes, but a matrix has at least 2.",
    ),
    Row(
        lambda: tj.diag(np.ones((2, 2, 2))),
        DimsError,
        "diag: x of 2x2x2 must be a vector or a matrix.",
    ),
    Row(
        lambda: tj.matmul(1.0, M),
        DimsError,
        "matmul: x is a scalar, but a product of matrices needs axes; use x * y.",
    ),
    Row(
        lambda: tj.tensordot(M, M, (1, 2, 3)),
        ArgumentError,
        "tensordot: axes must be a number or a pair (axes of x, axes of y), not (1, 2, 3).",
    ),
    Row(
        lambda: tj.tensordot(M, M, 3),
        DimsError,
        "tensordot: axes=3, but the operands of 2x3 and 2x3 have 2 and 2 axes; give a number from 0 to "
        "the smaller.",
    ),
    Row(
        lambda: tj.dot(M, M),
        DimsError,
        "dot: axis 1 of x (2x3) has size 3, but axis 0 of y (2x3), over which they are multiplied and "
        "summed, has size 2; these must be equal.",
    ),
    Row(
        lambda: tj.einsum("i1->i", M),
        ArgumentError,
        "einsum: 'i1' in subscripts 'i1->i' is not made of letters with at most one '...'.",
    ),
    Row(
        lambda: tj.einsum("i->i", M),
        DimsError,
        "einsum: the term 'i' names 1 axes, but operand 0 is of 2x3, with 2 axes; write one letter for "
        "each axis, or '...' for further ones.",
    ),
    Row(
        lambda: tj.einsum("ij->ii", M),
        ArgumentError,
        "einsum: the letter 'i' of subscripts 'ij->ii' occurs twice in the result.",
    ),
    Row(
        lambda: tj.einsum("ij->k", M),
        ArgumentError,
        "einsum: the letter 'k' of subscripts 'ij->k' is in no operand.",
    ),
    Row(
        lambda: tj.tensordot(M, M, None),
        ArgumentError,
        "tensordot: axes must be a number or a pair (axes of x, axes of y), not None.",
    ),
    Row(
        lambda: tj.einsum("ij,ij->i", M, np.ones((2, 4))),
        DimsError,
        "einsum: axes of sizes 3 and 4 have the letter 'j' in operands of 2x3 and 2x4 with the letters "
        "ij,ij; axes of one letter must be equal in size.",
    ),
    Row(
        lambda: tj.einsum("...", np.ones((1,) * 53)),
        ArgumentError,
        "einsum: subscripts '...' and its '...' need more letters than there are.",
    ),
    # functions/layers/losses
    Row(
        lambda: tj.l2loss(X, M, np.ones((4, 5))),
        DimsError,
        "l2loss: weights of 4x5 cannot be applied to y of 2(B) x 3(C); expected the sizes of y, or labels "
        "of y (as a dlarray) and its sizes or 1.",
    ),
    Row(
        lambda: tj.crossentropy(X, M, classification_mode="single"),
        ArgumentError,
        'crossentropy: classification_mode must be "single-label" or "multilabel", not \'single\'.',
    ),
    Row(
        lambda: tj.huber(X, M, transition_point=0),
        ArgumentError,
        "huber: transition_point must be positive, not 0.",
    ),
    Row(
        lambda: tj.mse(X, V),
        DimsError,
        "mse: y is of size 2(B) x 3(C), but targets are of size 3; they must have the same sizes and "
        "labels. Sizes are not broadcast: (2, 3) against (3,) would give 6 differences.",
    ),
    Row(
        lambda: tj.crossentropy(X, V),
        DimsError,
        "crossentropy: y is of size 2(B) x 3(C), but targets are of size 3; they must have the same sizes "
        "and labels. For classes as numbers use onehotencode.",
    ),
    Row(
        lambda: tj.l1loss(X, M, reduction="mean"),
        ArgumentError,
        'l1loss: reduction must be "sum" or "none", not \'mean\'.',
    ),
    Row(
        lambda: tj.l1loss(X, M, normalization_factor="all"),
        ArgumentError,
        "l1loss: normalization_factor must be one of batch-size, all-elements, mask-included, none, not "
        "'all'.",
    ),
    Row(
        lambda: tj.crossentropy(tj.dlarray(M, "BT"), M),
        DimsError,
        "crossentropy: y is of 2(B) x 3(T), without classes (C); label them, or use "
        'classification_mode="multilabel" for elements that are independent probabilities.',
    ),
    Row(
        lambda: tj.crossentropy(X, M, tj.dlarray(V, "C"), weights_format="C"),
        DimsError,
        "crossentropy: weights_format='C' is given for weights of size 3(C), which have labels of their "
        "own; leave weights_format out.",
    ),
    Row(
        lambda: tj.crossentropy(X, M, weights_format="C"),
        ArgumentError,
        "crossentropy: weights_format='C' is given without weights; pass both.",
    ),
    Row(
        lambda: tj.l1loss(X, M, normalization_factor="mask-included"),
        ArgumentError,
        'l1loss: normalization_factor="mask-included" needs mask, which says what is included.',
    ),
    # functions/numpy_api/methods
    Row(
        lambda: X.reshape(6, order="F"),
        ArgumentError,
        "reshape: order must be 'C', not 'F'; transpose around the reshape instead.",
    ),
    # functions/movement
    Row(
        lambda: tj.moveaxis(M, 0, (0, 1)),
        DimsError,
        "moveaxis: source=0 and destination=(0, 1) must name the same number of axes, each once.",
    ),
    Row(
        lambda: tj.expand_dims(M, (0, 0)),
        DimsError,
        "expand_dims: axis=(0, 0) must name places of the result from -4 to 3, each once.",
    ),
    Row(
        lambda: tj.expand_dims(X, 0, label="TT"),
        DimsError,
        "expand_dims: label='TT' must be one label, or one for each of the 1 new axes.",
    ),
    Row(
        lambda: tj.concatenate([]),
        ArgumentError,
        "concatenate: arrays must be a list or tuple of at least one array, not [].",
    ),
    Row(
        lambda: tj.roll(M, (1, 2, 3), (0, 1)),
        DimsError,
        "roll: shift=(1, 2, 3) and axis=(0, 1) have different lengths; give one shift, or one for each axis.",
    ),
    Row(
        lambda: tj.pad(X, 1, "linear_ramp"),
        ArgumentError,
        "pad: mode='linear_ramp' is not supported; use one of constant, edge, reflect, symmetric, wrap.",
    ),
    Row(
        lambda: tj.pad(M, -1),
        DimsError,
        "pad: pad_width=-1 for x of 2x3 must be made of integers >= 0.",
    ),
    Row(
        lambda: tj.repeat(M, (1, 2, 3), 0),
        DimsError,
        "repeat: repeats=(1, 2, 3) must be one number >= 0, or one for each of the 2 places of axis 0 of "
        "x (2x3).",
    ),
    Row(
        lambda: tj.tile(M, -1),
        DimsError,
        "tile: reps=-1 must be made of integers >= 0.",
    ),
    Row(
        lambda: tj.reshape(M, 2.5),
        ArgumentError,
        "reshape: shape must be an integer or a tuple of integers, not 2.5.",
    ),
    Row(
        lambda: tj.reshape(M, (4, -1)),
        DimsError,
        "reshape: shape=(4, -1) does not fit the 6 elements of x (2x3); one size may be -1, and the "
        "others must divide the number of elements.",
    ),
    Row(
        lambda: tj.transpose(X, "BT"),
        DimsError,
        "transpose: axes='BT' is not an order of the labels of x (2(B) x 3(C)); name each of its labels "
        "once.",
    ),
    Row(
        lambda: tj.stack([V, np.ones(4)]),
        DimsError,
        "stack: arrays of sizes 3 and 4 are given; all must have the same sizes.",
    ),
    Row(
        lambda: tj.split(M, 2, 1),
        DimsError,
        "split: axis 1 of x (2x3) does not divide into 2 equal parts; use array_split, or give the places "
        "to cut at.",
    ),
    Row(
        lambda: tj.array_split(M, 0),
        DimsError,
        "array_split: the number of parts must be at least 1, not 0.",
    ),
    Row(
        lambda: tj.pad(M, ((1, 2, 3),)),
        ArgumentError,
        "pad: pad_width must be a number, a pair (before, after) or one pair for each of the 2 axes of x, "
        "not ((1, 2, 3),).",
    ),
    Row(
        lambda: tj.squeeze(M, 0),
        DimsError,
        "squeeze: axis 0 of x (2x3) has size 2; only axes of size 1 can be dropped. Use a reduction or an "
        "index instead.",
    ),
    Row(
        lambda: tj.pad(np.ones((0, 2)), 1, "edge"),
        DimsError,
        "pad: axis 0 of x (0x2) is empty, so mode='edge' has no value to repeat; use mode=\"constant\".",
    ),
    # functions/numpy_function
    Row(
        lambda: tj.numpy_function(M),
        ArgumentError,
        "numpy_function: expected a function, not ndarray; pass the function itself, f, not f(x).",
    ),
    Row(
        lambda: tj.numpy_function(abs, like={"n": np.arange(2)}),
        ArgumentError,
        "numpy_function: like['n'] is 2 int64, expected floating point; keep out of like what is not to vary.",
    ),
    Row(
        tj.numpy_function(abs, like=V),
        ArgumentError,
        "abs: the vector that stands for like is missing; pass it as the first argument.",
    ),
    Row(
        lambda: tj.numpy_function(abs, like={"w": V}).flatten([V]),
        ArgumentError,
        "flatten: parameters are TreeDef(['*']), expected TreeDef({'w': '*'}), as in like.",
    ),
    Row(
        lambda: tj.numpy_function(abs, like={"w": V}).flatten({"w": M}),
        DimsError,
        "flatten: parameters['w'] has shape (2, 3), expected (3,), as in like.",
    ),
    Row(
        lambda: tj.numpy_function(abs, like={"w": V}).unflatten(M),
        DimsError,
        "unflatten: x has shape (2, 3), expected (3,), the numbers of like.",
    ),
    Row(
        lambda: tj.numpy_function(abs).unflatten(V),
        ArgumentError,
        "numpy_function: without like there are no parameters to flatten; pass numpy_function(f, like=params).",
    ),
    # functions/numpy_api/dispatch
    Row(
        lambda: tj.dlfeval(lambda x: np.save("never.npy", x), X),
        TraceError,
        "np.save: 2(B) x 3(C) float64 is traced, and a replay writes no file; return the array from the function and "
        "save it outside.",
    ),
    Row(
        lambda: np.isnat(X),
        ArgumentError,
        "np.isnat: not supported on dlarrays; compose it of functions that tracejit has (dir(tracejit) lists them). "
        "If no gradient is needed, take the value with extractdata(x) first.",
    ),
    Row(
        lambda: np.sort_complex(X),
        ArgumentError,
        "np.sort_complex: not supported on dlarrays; compose it of functions that tracejit has (dir(tracejit) lists "
        "them). If no gradient is needed, take the value with extractdata(x) first.",
    ),
    Row(
        lambda: np.linalg.eig(X),
        ArgumentError,
        "np.linalg.eig: not supported on dlarrays; compose it of functions that tracejit has (dir(tracejit) lists "
        "them). If no gradient is needed, take the value with extractdata(x) first.",
    ),
    Row(
        lambda: traced(lambda x: importlib.import_module("scipy.special").logsumexp(x)),
        TraceError,
        "scipy.special.logsumexp: not supported on traced dlarrays, of which it would drop the derivative (2x3 float64 "
        "at <place>); scipy.special.logsumexp(x) is tj.logsumexp(x).",
    ),
    Row(
        lambda: tj.einsum("ij->i", M, optimize="much"),
        ArgumentError,
        "einsum: optimize must be True, False, 'greedy', 'optimal' or a path of numpy.einsum_path, not 'much'.",
    ),
    Row(
        lambda: tj.arange(None),
        ArgumentError,
        "arange: cannot go from 0 to None by 1: None is no number; give numbers, and a step that is not 0 and leads "
        "there soon.",
    ),
    Row(
        lambda: tj.zeros(3, tj.dlarray(1.0)),
        ArgumentError,
        "zeros: dtype must be a NumPy dtype such as np.float32, not scalar dlarray float64 1.0.",
    ),
    Row(
        lambda: tj.zeros({1, 2}),
        DimsError,
        "zeros: shape must be an integer or a tuple of integers, not {1, 2}.",
    ),
    Row(
        lambda: tj.tree.map(None, X),
        ArgumentError,
        "map: fun must be a function, not None.",
    ),
    Row(
        lambda: tj.tree.map(abs),
        ArgumentError,
        "map: there is no tree; pass map(fun, tree).",
    ),
    Row(
        lambda: tj.tree.unflatten(None, []),
        ArgumentError,
        "unflatten: treedef must be what flatten returned, not None.",
    ),
    Row(
        lambda: tj.tree.unflatten(tj.tree.flatten([1])[1], 3),
        ArgumentError,
        "unflatten: leaves must be a list or a tuple, not 3.",
    ),
    Row(
        lambda: tj.tree.paths(None, "x"),
        ArgumentError,
        "paths: treedef must be what flatten returned, not None.",
    ),
    Row(
        lambda: tj.tree.paths(tj.tree.flatten([1])[1], 3),
        ArgumentError,
        "paths: root must be a string, not 3.",
    ),
    Row(
        lambda: tj.testing.check_gradients(tj.sum, X, order=10**15),
        ArgumentError,
        "check_gradients: order must be at most 20, not 1000000000000000.",
    ),
    Row(
        lambda: tj.testing.check_gradients(tj.sum, X, rtol=-1.0),
        ArgumentError,
        "check_gradients: rtol must be a number >= 0, not -1.0.",
    ),
    Row(
        lambda: arguments.path("load", "path", None),
        ArgumentError,
        "load: path must be a path, not None.",
    ),
    Row(
        lambda: arguments.named("export", "kwargs", [1]),
        ArgumentError,
        "export: kwargs must be a dict from names, not [1].",
    ),
    Row(
        lambda: setattr(X, "flat", 1.0),
        AttributeError,
        "attribute 'flat' of a dlarray cannot be set; write x[...] = values.",
    ),
    Row(
        lambda: X.flat,
        AttributeError,
        "'dlarray' object has no attribute 'flat': np.array(A.flat) is A.ravel().",
    ),
    Row(
        lambda: tj.where(X > 0, X),
        ArgumentError,
        "where: one of x and y is missing; pass both, or neither for the places where the condition holds.",
    ),
    Row(
        lambda: tj.dlfeval(lambda x: np.add(x, x, out=V), V),
        ArgumentError,
        "np.add: out is an ndarray, and the result is traced. Fill an array that holds traced values: one that "
        "np.zeros, np.ones, np.empty, np.full or np.array, called by name, made in the function, or "
        "tj.dlarray(y).copy() of an ndarray y; or join the values with np.stack.",
    ),
    # functions/numpy_api/writes
    Row(
        lambda: np.sum(X, out=3),
        ArgumentError,
        "np.sum: out must be an array, not int.",
    ),
    Row(
        lambda: tj.dlfeval(lambda x: np.copyto(V, x), V),
        ArgumentError,
        "np.copyto: dst is an ndarray, and what is written is traced. Fill an array that holds traced values: "
        "one that np.zeros, np.ones, np.empty, np.full or np.array, called by name, made in the function, or "
        "tj.dlarray(y).copy() of an ndarray y; or join the values with np.stack.",
    ),
    Row(
        lambda: np.put_along_axis(3, tj.dlarray([0]), 1.0, 0),  # type: ignore[arg-type]
        ArgumentError,
        "np.put_along_axis: arr must be an array, not int.",
    ),
    Row(
        lambda: np.copyto(tj.dlarray([1.0]), V[:1], casting="no"),  # type: ignore[arg-type]
        ArgumentError,
        "np.copyto: casting must be 'same_kind' or 'unsafe' for dlarrays, not 'no'.",
    ),
    Row(
        lambda: np.fill_diagonal(tj.dlarray([1.0]), 0),  # type: ignore[arg-type]
        ArgumentError,
        "np.fill_diagonal: a has size (1,), expected a matrix, or more axes of one size; use a[i, i] = val.",
    ),
    Row(
        lambda: np.put_along_axis(X.copy(), np.array([0]), 1.0, 0),  # type: ignore[arg-type]
        ArgumentError,
        "np.put_along_axis: indices have 1 axes, but arr has 2; give one index for each element, with as many axes as "
        "arr.",
    ),
    Row(
        lambda: np.put(X.copy(), [0], 1.0, mode="no"),  # type: ignore[call-overload]
        ArgumentError,
        "np.put: mode must be 'raise', 'wrap' or 'clip', not 'no'.",
    ),
    Row(
        lambda: np.place(X.copy(), X > 0, []),  # type: ignore[arg-type]
        ArgumentError,
        "np.place: vals is empty; pass at least one value.",
    ),
    Row(
        lambda: tj.dlfeval(lambda x: np.array(x, np.float32, copy=False), X),
        ValueError,
        "np.array: copy=False cannot be met, as a copy is needed; leave copy= out.",
    ),
    Row(
        lambda: np.add(X, X, where=M > 0),
        ArgumentError,
        "np.add: where= is not supported on dlarrays; use where(condition, x, y) to select, and "
        "x.astype(dtype) to convert.",
    ),
    Row(
        lambda: np.zeros_like(X, order="F"),
        ArgumentError,
        "np.zeros_like: order= is not supported on dlarrays; transpose before and after; arguments are x, dtype, "
        "shape.",
    ),
    # functions/random
    Row(
        lambda: tj.randperm(3, 4),
        DimsError,
        "randperm: k=4 different integers cannot be chosen from n=3.",
    ),
    Row(
        lambda: tj.rand(2, dtype=int),
        DTypeError,
        "rand: the numbers are of floating point, so the dtype must be float64 or float32, not int64; "
        "randi draws integers.",
    ),
    Row(
        lambda: tj.randi((3, 1)),
        ArgumentError,
        "randi: the limits 3 (included) and 1 (excluded) must have 1 to 2**53 integers between them.",
    ),
    Row(
        lambda: tj.randi((0, 300), dtype=np.int8),
        DTypeError,
        "randi: int8 does not hold all integers from 0 to 299; choose another dtype.",
    ),
    Row(
        lambda: tj.dropout(X, 1.0),
        ArgumentError,
        "dropout: p must be a probability, 0 <= p < 1, not 1.0.",
    ),
    Row(
        lambda: tj.rand(2, generator=3),
        ArgumentError,
        "rand: generator must be a tj.Generator, not int.",
    ),
    Row(
        lambda: tj.randi("x"),
        ArgumentError,
        "randi: limits must be an integer `high` or a tuple (low, high) of integers, not 'x'.",
    ),
    # functions/reductions
    Row(
        lambda: tj.argmax(np.ones((2, 0))),
        DimsError,
        "argmax: an array of 2x0 is empty, so it has no extremum; pass at least one element.",
    ),
    Row(
        lambda: tj.norm(V, 3),
        ArgumentError,
        "norm: ord must be None, 1, 2, inf or 'fro', not 3.",
    ),
    Row(
        lambda: tj.norm(V, "fro"),
        DimsError,
        "norm: ord='fro' applies to matrices, but axis=None of an array of 3 names 1 axes; give axis, or "
        "ord=None for the root of the sum of all squares.",
    ),
    Row(
        lambda: tj.norm(M, 2),
        ArgumentError,
        "norm: ord=2 of a matrix is its largest singular value, which is not supported; use ord='fro' for "
        "the root of the sum of squares, or give one axis for the norms of vectors.",
    ),
    # functions/rng
    Row(
        lambda: tj.rng(-1),
        ArgumentError,
        'rng: a seed is an integer from 0 to 2**64 - 1, "default" (0) or "shuffle" (new each time), not -1.',
    ),
    Row(
        lambda: setattr(tj.Generator(0), "state", 3),
        ArgumentError,
        "state: expected an RngState, as rng() and .state return, not 3.",
    ),
    Row(
        lambda: tj.rng(tj.RngState(0, -1)),
        ArgumentError,
        "state: a position is an integer from 0 to 2**63 - 1, not -1.",
    ),
    # program
    Row(
        replay_out_of_range,
        BoundsError,
        "an index is out of range in a replay of take at <place>; valid indices are -n to n - 1 for an "
        "axis of size n. Call the function with enabled = False to see which.",
    ),
    # accelerate/checks
    Row(
        lambda: tj.dlaccelerate(staticmethod(abs)),
        ArgumentError,
        "dlaccelerate: expected a function, not a staticmethod; put @staticmethod above @dlaccelerate.",
    ),
    Row(
        lambda: tj.dlaccelerate(3),
        ArgumentError,
        "dlaccelerate: expected a function, not int.",
    ),
    Row(
        lambda: tj.dlaccelerate(coroutine),
        ArgumentError,
        "dlaccelerate: coroutine is async; accelerate the functions it awaits.",
    ),
    Row(
        lambda: tj.dlaccelerate(generator),
        ArgumentError,
        "dlaccelerate: generator is a generator; accelerate the function that makes one element.",
    ),
    # accelerate/dispatch
    Row(
        lambda: under_policy("error-on-retrace", lambda: square(X)),
        RetraceError,
        "square: miss. A new trace would be recorded for x: 2(B) x 3(C) float64, because there was none "
        'yet. set_policy("default") allows recordings.',
    ),
    Row(
        uncompiled_under_a_policy,
        RetraceError,
        "counting.<locals>.scale: not accelerated for x: 2(B) x 3(C) float64: two recordings differ: a "
        "constant of cast was 1, is 2 (1 of 1 elements differ): an array that is created in each call has "
        'different contents each time at <place>. The call ran uncompiled. set_policy("default") allows '
        "recordings.",
    ),
    # accelerate/reporter
    Row(
        lambda: under_policy("warn-on-retrace", lambda: square(X)),
        RetraceWarning,
        "square: miss. A new trace would be recorded for x: 2(B) x 3(C) float64, because there was none "
        'yet. set_policy("default") allows recordings.',
    ),
    Row(
        lambda: repeat(counting(), X),
        NotAcceleratedWarning,
        "counting.<locals>.scale runs uncompiled for these arguments: two recordings differ: a constant "
        "of cast was 1, is 2 (1 of 1 elements differ): an array that is created in each call has "
        "different contents each time at <place>. Likely cause: random numbers that NumPy or Python drew, "
        "the time, or a file. Compute it outside and pass it as an argument, or use the random functions "
        "of tracejit with like=, which are recorded.",
    ),
    Row(
        constant_that_changes,
        ChangedTraceWarning,
        "constant_that_changes.<locals>.scale: a trace that was replayed is out of date: a constant of "
        "mul was 1.0, is 5.0 (1 of 1 elements differ): an array that is created in each call has "
        "different contents each time at <place>. It has been recorded again; replays before this call "
        "may have used old values. Likely cause: random numbers that NumPy or Python drew, the time, or a "
        "file. Pass it as an argument.",
    ),
    Row(
        lost_change,
        LostChangeWarning,
        "lost_change.<locals>.step sets p['w'] and does not return what it set. Containers in arguments "
        "are copies, so the change is lost; return the changed value.",
    ),
    Row(
        number_that_is_needed,
        RetraceWarning,
        "number_that_is_needed.<locals>.<lambda> is recorded again for each value of n, because float() "
        "at <place> needs it as a Python number. Pass it as a dlarray, or use tracejit's and NumPy's "
        "functions instead of math's. If a trace for each value is intended, raise max_variants.",
    ),
    Row(
        turnover,
        RetraceWarning,
        "turnover.<locals>.<lambda> is recorded in most calls: traces for 20 different signatures were "
        "evicted, and 0 % of 24 calls were replayed. turnover.<locals>.<lambda>: miss. A new trace was "
        "recorded for x: 24 float64, because, compared with the nearest trace, x was 23 float64, is 24 "
        "float64. If so many are intended, raise cache_size (4).",
    ),
    Row(
        lambda: constant_that_changes(check_mode="sample", check_every=5, audit=False),
        OutputsDifferWarning,
        "Accelerated outputs differ from underlying function outputs. "
        "constant_that_changes.<locals>.scale: output[0] is 1.0, expected 5.0 (3 of 3 elements differ by "
        "more than 0.0001). Values that do not come from array arguments are constants of a trace "
        "(NumPy's random numbers, the time, a counter, a file); pass them as arguments.",
    ),
    # accelerate/function
    Row(
        lambda: tj.dlaccelerate(tj.exp, size=3),
        ArgumentError,
        "dlaccelerate: unknown option 'size'; options are cache_size, check_every, check_mode, "
        "check_tolerance, confirm, audit, max_variants, enabled, write_arguments.",
    ),
    Row(
        lambda: tj.dlaccelerate(CheckMode="tolerance"),
        ArgumentError,
        "dlaccelerate: unknown option 'CheckMode'; the option is check_mode.",
    ),
    Row(
        lambda: tj.clear_cache(abs),
        ArgumentError,
        "clear_cache: expected an accelerated function, not builtin_function_or_method.",
    ),
    Row(
        lambda: tj.dlaccelerate(square),
        ArgumentError,
        "dlaccelerate: the function is accelerated already; pass its attribute function to accelerate it with "
        "different options.",
    ),
    Row(
        lambda: tj.dlaccelerate(tj.exp).source(),
        CacheError,
        "exp: there is no emitted source; call the function first, with arguments for which it is "
        "accelerated (explain() tells).",
    ),
    Row(
        lambda: Slotted().step,
        ArgumentError,
        "Slotted.step: instances of Slotted have no __dict__ to keep the cache of an accelerated method "
        "in; remove __slots__, or accelerate a function that takes the arrays.",
    ),
    # accelerate/options
    Row(
        lambda: tj.dlaccelerate(tj.exp, enabled=1),
        ArgumentError,
        "enabled: expected True or False, not 1.",
    ),
    Row(
        lambda: tj.dlaccelerate(tj.exp, cache_size=0),
        ArgumentError,
        "cache_size: expected a positive integer, not 0.",
    ),
    Row(
        lambda: setattr(tj.dlaccelerate(tj.exp), "cachesize", 3),
        AttributeError,
        "an accelerated function has no attribute 'cachesize'; the option is cache_size.",
    ),
    Row(
        lambda: tj.dlaccelerate(tj.exp).CheckMode,  # type: ignore[attr-defined]
        AttributeError,
        "an accelerated function has no attribute 'CheckMode'; the option is check_mode.",
    ),
    Row(
        lambda: setattr(tj.dlaccelerate(tj.exp), "hit_rate", 1),
        AttributeError,
        "hit_rate: it can only be read; calls change it, and clear_cache() resets it.",
    ),
    Row(
        lambda: setattr(tj.dlaccelerate(tj.exp), "function", tj.log),
        AttributeError,
        "function: it can only be read; dlaccelerate(function) accelerates a different one.",
    ),
    Row(
        lambda: setattr(tj.dlaccelerate(tj.exp), "hitrate", 3),
        AttributeError,
        "an accelerated function has no attribute 'hitrate'; hit_rate is the name, and it can only be read.",
    ),
    Row(
        lambda: setattr(tj.dlaccelerate(tj.exp), "colour", 3),
        AttributeError,
        "an accelerated function has no attribute 'colour'; the options are audit, cache_size, "
        "check_every, check_mode, check_tolerance, confirm, enabled, max_variants, write_arguments. To attach a "
        "value of your own, set it on the function before it is accelerated.",
    ),
    Row(
        lambda: tj.dlaccelerate(tj.exp, check_mode="always"),
        ArgumentError,
        "check_mode: expected one of ('none', 'tolerance', 'sample'), not 'always'.",
    ),
    Row(
        lambda: tj.dlaccelerate(tj.exp, check_tolerance=0),
        ArgumentError,
        "check_tolerance: expected a positive number, not 0.",
    ),
    # accelerate/policy
    Row(
        lambda: tj.set_policy("never"),
        ArgumentError,
        "set_policy: expected one of ('default', 'warn-on-retrace', 'error-on-retrace', 'uncompiled'), "
        "not 'never'.",
    ),
    # call/signature
    Row(
        lambda: square(X, Slotted()),
        ArgumentError,
        "square: y is a Slotted, which is compared by identity: a change of its attributes would go "
        "unnoticed. Pass its arrays and numbers instead, in a dict, a named tuple or a dataclass.",
    ),
    Row(
        lambda: square(X, frozenset(map(float, range(20_001)))),
        ArgumentError,
        "square: y is a frozenset with more attributes and elements than can be compared at each call. Pass its "
        "arrays and numbers instead, in a dict, a named tuple or a dataclass.",
    ),
    Row(
        lambda: square(X, z=3),
        TypeError,
        "square() got an unexpected keyword argument 'z'",
    ),
    Row(
        lambda: square(X, [set()]),
        ArgumentError,
        "square: y[0] is a set, which is neither an array, a container (dict, list, tuple, named tuple, "
        "dataclass) nor hashable, so it cannot select a trace. Pass its arrays and numbers instead.",
    ),
    Row(
        lambda: square(X, [np.array(["text"])]),
        DTypeError,
        "square: y[0]: data of type <U4 is not supported; use float64, float32, bool or an integer type "
        "(for example data.astype(np.float32)).",
    ),
    # traces/record
    Row(
        lambda: tj.dlaccelerate(lambda x: iter([x]))(X),
        ArgumentError,
        "<lambda>.<locals>.<lambda>: the result contains a list_iterator, which can be iterated over only "
        "once, so that a replay cannot return it; return a list.",
    ),
    # traces/refusals and record/recorder: the reasons to run uncompiled
    Row(
        lambda: refused(changes_what_it_reads()),
        NotAcceleratedWarning,
        "changes_what_it_reads.<locals>.count runs uncompiled for these arguments: it changes closure "
        "calls[0], which it also reads at <place>. A replay would not change it. Pass it as an argument "
        "and return its new value, or change it outside.",
    ),
    Row(
        lambda: refused(reads_what_changes()),
        NotAcceleratedWarning,
        "reads_what_changes.<locals>.<lambda> runs uncompiled for these arguments: two recordings differ: "
        "a constant of mul was 1.0, is 2.0 at <place>. Likely cause: a counter. Compute it outside and "
        "pass it as an argument, or use the random functions of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(lambda x: x * 2 if np.random.random() < 2 else x),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: it draws from a "
        "numpy.random.mtrand.RandomState, which a replay would not do, although two recordings agreed at "
        "<place>. Draw outside and pass the numbers as an argument, or use the random functions of "
        "tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(lambda x: next(n for n in range(100) if x.sum() < n)),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: bool() on a traced array had a "
        "different outcome in each of 9 recordings at <place>. Use where(condition, a, b) instead of if, "
        "& and | instead of and and or, or a fixed number of steps instead of while; or raise "
        "max_variants.",
    ),
    Row(
        lambda: refused(lambda x: x * math.sin(x.sum())),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: float() on a traced array gave a "
        "different number in each of 9 recordings at <place>. A number taken out of an array is a "
        "constant of the trace. Keep it an array (the functions of tracejit and NumPy instead of math, "
        "stop_gradient instead of extractdata), or return it and read it outside; or raise max_variants.",
    ),
    Row(
        lambda: refused(lambda x: x[0].item() and sum((x + np.zeros((300, 1))).ravel().tolist())),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: tolist() takes 900 values out of "
        "the trace at <place>. Up to 256 are compared at each call. Keep them arrays (the functions of "
        "tracejit and NumPy; stop_gradient cuts the derivative), or return them and read them outside.",
    ),
    Row(
        lambda: refused(lambda x: in_a_thread(lambda: x * 2)),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: mul uses an array of the trace "
        "in another thread at <place>. What a thread computes is not recorded; compute it in the thread "
        "of the function.",
    ),
    Row(
        lambda: refused(lambda x: caught(lambda: tj.take(x, [9], 0))),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: take met an index out of range "
        "at <place>. Check indices outside.",
    ),
    Row(
        lambda: refused(lambda x: x * tj.rng().seed),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: the state of a generator of "
        "random numbers is read, which a replay would not do, at <place>. Do it outside; for the same "
        "numbers at each call draw from a generator that is made inside: rand(size, "
        "generator=Generator(seed)).",
    ),
    Row(
        lambda: refused(reads_a_large_array()),
        NotAcceleratedWarning,
        "reads_a_large_array.<locals>.<lambda> runs uncompiled for these arguments: it reads closure "
        "weights, which cannot be checked at each call at <place>. Make an array a dlarray where it is made "
        "(x = tj.dlarray(x)), so that its operations are recorded, or pass it as an argument.",
    ),
    Row(
        reads_a_different_number,
        NotAcceleratedWarning,
        "reads_a_different_number.<locals>.<lambda> runs uncompiled for these arguments: closure "
        "settings['rate'], which it reads, changes from call to call at <place>. Pass it as an argument;"
        " a number that is made a dlarray costs one trace for all its values.",
    ),
    # traces/confirm: how two recordings differ
    Row(
        lambda: refused(in_turn(lambda x: x + x, lambda x: x * x)),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: operation"
        " 1 was add, is mul at <place>. Likely cause: a random choice, a counter, or something that the "
        "function reads and changes. Compute it outside and pass it as an argument, or use the random "
        "functions of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(in_turn(lambda x: x + 1, lambda x: (x + 1) * x)),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: only one "
        "of them recorded mul at <place>. Likely cause: a random choice, a counter, or something that "
        "the function reads and changes. Compute it outside and pass it as an argument, or use the "
        "random functions of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(in_turn(lambda x: x.reshape(3, 1), lambda x: x.reshape(1, 3))),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: reshape "
        "was called with {'shape': (3, 1)}, then with {'shape': (1, 3)} at <place>. Likely cause: a "
        "random choice, a counter, or something that the function reads and changes. Compute it outside "
        "and pass it as an argument, or use the random functions of tracejit with like=, which are "
        "recorded.",
    ),
    Row(
        lambda: refused(in_turn(lambda x: x - x.sum(), lambda x: x.sum() - x)),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: sub "
        "received a different operand at <place>. Likely cause: a random choice, a counter, or something"
        " that the function reads and changes. Compute it outside and pass it as an argument, or use the"
        " random functions of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(in_turn(lambda x: x * np.ones(1), lambda x: x * np.ones(3))),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: a "
        "constant of mul was 1 float64, is 3 float64 at <place>. Likely cause: data of a different size "
        "that the function makes or reads. Compute it outside and pass it as an argument, or use the "
        "random functions of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(in_turn(lambda x: (x[0] + 1, x)[1], lambda x: (x[0] + 1) and x)),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: only one "
        "of them took a value by bool() at <place>. Likely cause: a random choice, a counter, or something that the "
        "function reads and changes. Compute it outside and pass it as an argument, or use the random "
        "functions of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(in_turn(lambda x: x, lambda x: [x, x])),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: the "
        "result is a leaf in one and a list in the other. Likely cause: a random choice, a counter, or "
        "something that the function reads and changes. Compute it outside and pass it as an argument, "
        "or use the random functions of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(in_turn(lambda x: {"a": x, "b": x}, lambda x: {"b": x, "a": x})),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: the keys "
        "of a dict of the result have a different order. Likely cause: a random choice, a counter, or "
        "something that the function reads and changes. Compute it outside and pass it as an argument, "
        "or use the random functions of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(in_turn(lambda x: (x, 1), lambda x: (x, 2))),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: result[1]"
        " was 1, is 2. Likely cause: a counter. Compute it outside and pass it as an argument, or use "
        "the random functions of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(in_turn(lambda x: (x, x * 2), lambda x: (x * 2, x))),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: result[0]"
        " is a different array. Likely cause: a random choice, a counter, or something that the function"
        " reads and changes. Compute it outside and pass it as an argument, or use the random functions "
        "of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(in_turn(lambda x: (tj.dlarray(1.0), x), lambda x: (tj.dlarray(4.0), x))),
        NotAcceleratedWarning,
        "in_turn.<locals>.call runs uncompiled for these arguments: two recordings differ: "
        "result[0], a constant, was 1.0, is 4.0. Likely cause: random numbers that NumPy or Python drew,"
        " the time, or a file. Compute it outside and pass it as an argument, or use the random "
        "functions of tracejit with like=, which are recorded.",
    ),
    Row(
        lambda: refused(lambda x: (x, object())),
        NotAcceleratedWarning,
        "<lambda>.<locals>.<lambda> runs uncompiled for these arguments: two recordings differ: "
        "result[1] was <object object at <address>>, is <object object at <address>>. Likely cause: an "
        "object that is created in each call. Compute it outside and pass it as an argument, or use the "
        "random functions of tracejit with like=, which are recorded.",
    ),
    *(Row(*row) for row in messages_convolution.ROWS),
    *(Row(*row) for row in messages_layers.ROWS),
    *(Row(*row) for row in messages_linalg.ROWS),
    *(Row(*row) for row in messages_nn.ROWS),
    *(Row(*row) for row in messages_numpy.ROWS),
    *[Row(*row) for row in messages_sequences.ROWS],
)
