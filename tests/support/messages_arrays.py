# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of arrays, trees of values, settings, optimisers and tests."""

import operator
import pickle
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from messages_shared import M, N, V, X, traced

import tracejit as tj
from tracejit import config
from tracejit.containers import _outline as outline_of_pickle
from tracejit.errors import (
    ArgumentError,
    ArgumentValueError,
    DimsError,
    DTypeError,
    GradientError,
    TraceError,
    WriteError,
)
from tracejit.ir import Builder, Graph


class Span:
    """A class that is not registered."""

    def tree_flatten(self) -> tuple[tuple[()], None]:
        return (), None


class Odd:
    """A registered class whose function does not take it apart."""


class Fixed:
    """A registered class."""

    x = 1.0

    def change(self) -> None:
        self.x = 2.0


tj.tree.register(Odd, lambda odd: None, lambda data, children: Odd())
tj.tree.register(Fixed, lambda fixed: ((fixed.x,), None), lambda data, children: Fixed())


def too_many_traces() -> None:
    """Record a function once more than it may be."""
    double = tj.dlaccelerate(lambda x: x * 2)
    with tj.testing.assert_max_traces(double, 0):
        double(X)


GENERATOR = np.random.default_rng(0)
HELD = SimpleNamespace(normal=GENERATOR.normal)  # since before any recording

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    # array
    (
        lambda: len(tj.dlarray(1.0)),
        ArgumentError,
        "len(): a scalar dlarray has no length; its size is 1.",
    ),
    (
        lambda: iter(tj.dlarray(1.0)),
        ArgumentError,
        "iter(): a scalar dlarray cannot be iterated over; use item() for its value.",
    ),
    (
        lambda: hash(X),
        ArgumentError,
        "hash(): 2(B) x 3(C) float64 has none, because its elements can change; bytes(x) has one. Let a function "
        "under functools.lru_cache take numbers or bytes.",
    ),
    (
        lambda: bool(X),
        DimsError,
        "bool(): 2(B) x 3(C) float64 has 6 elements, not one; use any() or all().",
    ),
    (
        lambda: float(X),
        ArgumentError,
        "float(): 2(B) x 3(C) float64 has 6 elements, not one; reduce it or select an element first.",
    ),
    (
        lambda: traced(np.asarray),
        TraceError,
        "conversion of a traced 2x3 float64 to an ndarray at <place> would silently drop its derivative. Fill an "
        "array that holds traced values: one that np.zeros, np.ones, np.empty, np.full or np.array, called by "
        "name, made in the function, tj.dlarray(y).copy() of an ndarray y, "
        "or an attribute that is a dlarray (self.y = tj.dlarray(y)); or join the values with np.stack. "
        "If the value is meant to be a constant, use extractdata.",
    ),
    (
        lambda: tj.dlaccelerate(lambda x: tj.dlgradient(GENERATOR.standard_t(x * x).sum(), x))(V),
        GradientError,
        "standard_t: what a generator draws has no derivative by this parameter. Draw with constant ones, and compute "
        "the rest (m + s * z), or cut the derivative with stop_gradient.",
    ),
    (
        lambda: traced(lambda x: HELD.normal(x, 0.5)),
        TraceError,
        "normal: NumPy's random numbers take no traced dlarray (2x3 float64 at <place>); write "
        "m + s * tj.randn(n, like=m). If the value is meant to be a constant, use extractdata.",
    ),
    (
        lambda: operator.index(X),
        ArgumentError,
        "index: an integer scalar is needed, not 2(B) x 3(C) float64; cast it, for example with int(x).",
    ),
    (
        lambda: X.sum().__setitem__(..., 1),
        ArgumentError,
        "setitem: x is a number that an operation returned (scalar float64), which cannot be written, like NumPy's "
        "scalars; assign a new one (x = 0.0).",
    ),
    (
        lambda: traced(pickle.dumps),
        TraceError,
        "pickle: 2x3 float64 is traced, and a trace cannot be pickled; use extractdata(x) for its value.",
    ),
    (
        lambda: X.__array__(np.float32, copy=False),
        ValueError,
        "dlarray: float64 data cannot be seen as float32 without a copy.",
    ),
    # aval
    (
        lambda: tj.dlarray(M, 5),
        DimsError,
        "dlarray: format must be a string of the labels S, C, B, T, U or None, not int.",
    ),
    (
        lambda: tj.dlarray(M, "BX"),
        DimsError,
        "dlarray: format 'BX' has the label 'X'; labels are S (spatial), C (channel), B (batch), T (time) "
        "and U (unspecified).",
    ),
    (
        lambda: tj.dlarray(M, "BB"),
        DimsError,
        "dlarray: format 'BB' has the label 'B' 2 times; C, B and T may occur once. Use S for further "
        "spatial axes or U for axes without a meaning.",
    ),
    (
        lambda: tj.dlarray(M, "B"),
        DimsError,
        "dlarray: format 'B' labels 1 axes, but the data has 2; give one label for each axis (U where an "
        "axis has no meaning).",
    ),
    (
        lambda: tj.dlarray([1, 2], np.float32),
        DimsError,
        "dlarray: format must be a string of the labels S, C, B, T, U or None, not type; give the dtype to the data, "
        "np.asarray(data, np.float32).",
    ),
    (
        lambda: tj.dlarray([1, 2], dtype=np.float32),
        ArgumentError,
        "dlarray: unknown argument 'dtype'; give the dtype to the data, np.asarray(data, np.float32).",
    ),
    (
        lambda: tj.dlarray([1, 2], labels="C"),
        ArgumentError,
        "dlarray: unknown argument 'labels'; arguments are data, format.",
    ),
    (
        lambda: X.to("cuda"),
        AttributeError,
        "'dlarray' object has no attribute 'to': tj.gpu(x) copies an array to the GPU, tj.gather(x) from it, and "
        "x.astype(np.float64) has another dtype.",
    ),
    (
        lambda: X.dims,
        AttributeError,
        "'dlarray' object has no attribute 'dims': tj.dims(x) are the labels of the axes.",
    ),
    (
        lambda: tj.dlarray("text"),
        DTypeError,
        "dlarray: data of type <U4 is not supported; use float64, float32, float16, bfloat16 (of ml_dtypes), "
        "complex128, complex64, bool or an integer type (for example data.astype(np.float32)).",
    ),
    (
        lambda: tj.add(X, np.ones(4)),
        DimsError,
        "add: operands of sizes 2(B) x 3(C) and 4 do not align: 3 against 4 on axis 1. Sizes must be "
        "equal or 1; formatted arrays align by label, others from the last axis.",
    ),
    # tree
    (
        lambda: tj.tree.unflatten(tj.tree.flatten((1, 2))[1], [1]),
        ArgumentError,
        "unflatten: the tree has 2 leaves, but 1 were given.",
    ),
    (
        lambda: tj.tree.map(max, [1, 2], [1]),
        ArgumentError,
        "map: tree 2 differs from the first: tree has 2 elements in one and 1 in the other. All trees "
        "must have the same containers and keys.",
    ),
    (
        lambda: tj.tree.register(3),
        ArgumentError,
        "register: kind must be a class, not 3.",
    ),
    (
        lambda: tj.tree.register(dict),
        ArgumentError,
        "register: instances of dict are containers already; leave the call out.",
    ),
    (
        lambda: tj.tree.register(Span),
        ArgumentError,
        "register: Span has no method tree_unflatten; pass unflatten=, or write that method.",
    ),
    (
        lambda: tj.tree.leaves(Odd()),
        ArgumentError,
        "register: the flatten function of Odd returned None, expected a tuple (children, data): a tuple of the arrays "
        "and containers in it, and all else, which is hashable.",
    ),
    (
        lambda: tj.dlfeval(Fixed.change, Fixed()),
        WriteError,
        "Fixed.change: the function changes args[0], a Fixed, whose class was registered by tj.tree.register, and "
        "which the caller would not see changed. Return a new one from the function.",
    ),
    (
        lambda: outline_of_pickle(Span, None, 0),
        ArgumentError,
        "unpickling: Span is no class of containers in this process; call tj.tree.register first.",
    ),
    # config
    (
        lambda: config.from_environment({"TRACEJIT_THREADS": "0"}),
        ArgumentError,
        "TRACEJIT_THREADS='0' is not valid; use an integer of at least 1.",
    ),
    (
        lambda: config.from_environment({"TRACEJIT_CACHE_DIR": ""}),
        ArgumentError,
        "TRACEJIT_CACHE_DIR='' is not valid; use the path of a folder.",
    ),
    (
        lambda: config.from_environment({"TRACEJIT_BACKEND": "gpu"}),
        ArgumentError,
        "TRACEJIT_BACKEND='gpu' is not valid; use one of 'cpu', 'python'.",
    ),
    # ir
    (
        lambda: Builder(Graph()).nothing,
        AttributeError,
        "there is no op named 'nothing'",
    ),
    # optim
    (
        lambda: tj.LossScale.of(-1.0),
        ArgumentError,
        "LossScale.of: scale must be positive and finite, not -1.0.",
    ),
    (
        lambda: tj.adamupdate(X, X, None, None, 0),
        ArgumentError,
        "adamupdate: iteration counts from 1, found 0; pass 1 in the first call.",
    ),
    (
        lambda: tj.clipgradients(X, 0),
        ArgumentValueError,
        "clipgradients: threshold must be more than 0, not 0.",
    ),
    (
        lambda: tj.clipgradients(X, 1, "norm"),
        ArgumentError,
        'clipgradients: method must be "l2norm", "global-l2norm" or "absolute-value", not \'norm\'.',
    ),
    (
        lambda: tj.clipgradients({"w": [N]}, 1),
        DTypeError,
        "clipgradients: grads['w'][0] holds int64, expected floating point; leave it out of the containers, or "
        "cast it.",
    ),
    (
        lambda: tj.dlupdate(3, X),
        ArgumentError,
        "dlupdate: fun must be a function, not int.",
    ),
    (
        lambda: tj.dlupdate(abs),
        ArgumentError,
        "dlupdate: there is nothing to update; pass dlupdate(fun, params).",
    ),
    (
        lambda: tj.dlupdate(lambda p: (p, p) if p.ndim else p, [X, tj.dlarray(1.0)]),
        ArgumentError,
        "dlupdate: fun must return the same number of results for each leaf; found a single result and a "
        "tuple of 2.",
    ),
    (
        lambda: tj.sgdmupdate(X, X, None, "high"),
        ArgumentError,
        "sgdmupdate: learn_rate must be a number or a scalar array, not 'high'.",
    ),
    (
        lambda: tj.sgdmupdate(X, X, None, V),
        DimsError,
        "sgdmupdate: learn_rate is of size 3; expected a scalar.",
    ),
    (
        lambda: tj.sgdmupdate([X], X, None),
        ArgumentError,
        "sgdmupdate: grads does not match params: grads is an array, params is a list. They must "
        "have the same containers and keys.",
    ),
    (
        lambda: tj.adamupdate(X, X, None, None, 1, grad_decay=1.0),
        ArgumentError,
        "adamupdate: decay factors must be at least 0 and less than 1, found 1.0.",
    ),
    (
        lambda: tj.sgdmupdate([X, N], [X, X], None),
        DTypeError,
        "sgdmupdate: params[1] holds int64, expected floating point; leave it out of the containers, or "
        "cast it.",
    ),
    (
        lambda: tj.sgdmupdate({"w": X}, {"w": V}, None),
        DimsError,
        "sgdmupdate: grads['w'] is of size 3, but params['w'] is of size 2(B) x 3(C); they must have the "
        "same sizes and labels.",
    ),
    # testing
    (
        lambda: tj.testing.check_gradients(abs, X, order=0),
        ArgumentError,
        "check_gradients: order must be a positive integer, not 0.",
    ),
    (
        lambda: tj.testing.check_gradients(lambda x: 3, X),
        ArgumentError,
        "check_gradients: <lambda>.<locals>.<lambda> returns no traced floating-point dlarray, so it has "
        "no gradient.",
    ),
    (
        lambda: tj.testing.check_gradients(tj.log, -X),
        AssertionError,
        "check_gradients: log gives nan at args; choose args where it is finite.",
    ),
    (
        lambda: tj.testing.check_gradients(abs, N),
        ArgumentError,
        "check_gradients: args of abs hold no floating-point array to differentiate by.",
    ),
    (
        lambda: tj.testing.assert_max_traces(abs, 1).__enter__(),
        ArgumentError,
        "assert_max_traces: expected an accelerated function, not builtin_function_or_method; pass what "
        "dlaccelerate returned.",
    ),
    (
        too_many_traces,
        AssertionError,
        "too_many_traces.<locals>.<lambda> was recorded, or ran uncompiled, 1 times, expected at most 0. "
        "The last call: too_many_traces.<locals>.<lambda>: miss. A new trace was recorded for x: 2(B) x "
        "3(C) float64, because there was none yet.",
    ),
)
