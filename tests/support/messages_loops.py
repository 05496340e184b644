# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages for loops."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj
from tracejit.aval import Aval
from tracejit.errors import ArgumentError, DimsError, DTypeError, GradientError, TraceError
from tracejit.ir import Builder, Graph
from tracejit.passes.fusion.fuse import fuse
from tracejit.passes.graph.bodies import Body
from tracejit.passes.graph.branches import COND, WHILE
from tracejit.passes.graph.scan import SCAN
from tracejit.passes.loops.select import Selection, select

FLOAT = Aval((), None, np.dtype(np.float64))
X = np.ones((3, 2))
ROWS_LABELLED = tj.dlarray(X, "BC")
STEPS = tj.dlarray(X, "TC")


def returning(*results: Any) -> Callable[[], object]:
    """Return a call of a loop whose step returns one result after the other."""
    left = list(results)
    return lambda: tj.dlscan(lambda carry, x: (left or list(results)).pop(0), {"h": tj.dlarray(X[0])}, X)


def scanned_with(backward: Callable[..., Any], gradient: bool = True) -> object:
    """Call an accelerated function with a loop whose step has a backward function of its own."""

    @tj.custom_gradient
    def twice(x: Any) -> Any:
        return x * 2.0, x

    twice.backward(backward)
    loss = lambda x: tj.dlscan(lambda c, part: (twice(c) + part, None), x[0], x)[0].sum()
    return tj.dlaccelerate((lambda x: tj.dlgradient(loss(x), x)) if gradient else loss)(tj.dlarray(X))


KEPT = tj.dlarray(np.zeros(2))


def writes(x: Any, dy: Any) -> Any:
    KEPT[:] = dy
    return dy


def unfinished(x: Any) -> Any:
    """Return a loop whose step, which is not made, writes."""
    seen = x.reshape(1) * 1.0

    def step(carry: Any) -> Any:
        seen[0] = carry
        return carry + 1.0

    return tj.dlwhile(lambda carry: carry < 1.0, step, x)


def choosing(true_fun: Any, false_fun: Any) -> Callable[[], object]:
    """Return an accelerated call of a choice, which is false."""
    return lambda: tj.dlaccelerate(lambda x: tj.dlcond(x.sum() < 0, true_fun, false_fun, x * 1.0))(
        tj.dlarray(X)
    )


def body() -> Body:
    b = Builder(Graph())
    b.graph.outputs = [b.exp(b.input(FLOAT))]
    return Body(b.graph, 1, 0)


def narrowing() -> Body:
    """Return a step that changes the dtype of its carry."""
    b = Builder(Graph())
    b.graph.outputs = [b.cast(b.input(Aval((), None, np.dtype(np.float64))), dtype=np.dtype(np.float32))]
    return Body(b.graph, 1, 0)


def selected_without_bodies() -> Selection:
    """Select the launches of a graph with a loop, without a function that builds its body."""
    b = Builder(Graph())
    params = {"body": body(), "length": 2, "reverse": False, "save": False}
    b.graph.outputs = [b.apply(SCAN, [b.input(FLOAT)], params)[0]]
    return select(b.graph, fuse(b.graph))


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: scanned_with(lambda x, dy: dy if x.sum() > 0 else -dy),
        GradientError,
        "scanned_with.<locals>.twice: its backward cannot be part of a loop that a program keeps: bool() lets a value "
        "of the step decide what Python does. Make it of operations on arrays, or write the loop in Python.",
    ),
    (
        lambda: scanned_with(lambda x, dy: dy.sum()),
        DimsError,
        "scanned_with.<locals>.twice: the gradient by argument 1 is scalar float64, but the argument is 2 "
        "float64; a gradient has the size of its argument.",
    ),
    (
        lambda: scanned_with(writes, gradient=False),
        TraceError,
        "scanned_with.<locals>.twice: backward writes into an array that was made outside it. In a loop it is recorded "
        "also where no gradient is taken, and the write cannot be undone. Return the array as a gradient, or write "
        "into a copy.",
    ),
    (lambda: tj.dlscan(3, 0.0, X), ArgumentError, "dlscan: fun must be a function, not 3."),  # type: ignore[arg-type]
    (
        lambda: tj.dlscan(lambda c, x: (c, None), 0.0, {"a": 2.0}),
        DimsError,
        "dlscan: xs['a'] is scalar float64, expected an array with an axis of steps; a value that all steps read need "
        "not be passed: fun can use it as it is.",
    ),
    (
        lambda: tj.dlscan(lambda c, x: (c, None), 0.0, ROWS_LABELLED),
        DimsError,
        "dlscan: xs is 3(B) x 2(C) float64, without a label T; label the axis of the steps T, or take the labels off "
        "(stripdims) to scan along the first axis.",
    ),
    (
        lambda: tj.dlscan(lambda c, x: (c, None), 0.0),
        ArgumentError,
        "dlscan: neither xs nor length is given; pass length= for the number of steps.",
    ),
    (
        lambda: tj.dlscan(lambda c, x: (c, None), 0.0, length=2.5),  # type: ignore[arg-type]
        ArgumentError,
        "dlscan: length must be an integer, not 2.5.",
    ),
    (
        lambda: tj.dlscan(lambda c, x: (c, None), 0.0, [X, X[:2]]),
        DimsError,
        "dlscan: xs[1] has 2 steps, xs[0] 3; all must have the same.",
    ),
    (
        lambda: tj.dlscan(lambda c, x: (c, None), 0.0, X, length=4),
        DimsError,
        "dlscan: xs has 3 steps, length 4; all must have the same.",
    ),
    (
        lambda: tj.dlscan(lambda c, x: (c, None), 0.0, X[:0]),
        ArgumentError,
        "dlscan: there are 0 steps, expected at least 1; skip the loop in that case.",
    ),
    (
        returning(5.0),
        ArgumentError,
        "dlscan: fun returned 5.0, expected a pair (carry, y); return carry, None where a step has no result.",
    ),
    (
        returning(([X[0]], None)),
        ArgumentError,
        "dlscan: carry is a dict in the first carry and a list in what fun returned; a step returns the carry in the "
        "containers that it gets.",
    ),
    (
        returning(({"h": X}, None)),
        DimsError,
        "dlscan: after a step carry['h'] is 3x2 float64, expected 2 float64 as before it; a carry keeps its size, "
        "format and dtype. Reshape or relabel it in fun.",
    ),
    (
        returning(({"h": X[0].astype(np.float32)}, None)),
        DTypeError,
        "dlscan: after a step carry['h'] is 2 float32, expected 2 float64 as before it; a carry keeps its size, "
        "format and dtype. Cast it in fun (x.astype(np.float64)).",
    ),
    (
        returning(({"h": X[0]}, STEPS)),
        DimsError,
        "dlscan: y is 3(T) x 2(C) float64; results get a new axis T, so a step must not return one. Label its axis S "
        "or U.",
    ),
    (
        returning(({"h": X[0]}, X), ({"h": X[0]}, [X])),
        ArgumentError,
        "dlscan: y is a single value in the first step and a list in a later one; each step returns a y of the same "
        "containers.",
    ),
    (
        returning(({"h": X[0]}, X), ({"h": X[0]}, X[0])),
        DimsError,
        "dlscan: after a step y is 2 float64, expected 3x2 float64 as before it; results of all steps have the same "
        "size, format and dtype. Reshape or relabel it in fun.",
    ),
    (lambda: tj.dlwhile(3, abs, 1.0), ArgumentError, "dlwhile: cond must be a function, not 3."),  # type: ignore[arg-type]
    (lambda: tj.dlwhile(abs, 3, 1.0), ArgumentError, "dlwhile: fun must be a function, not 3."),  # type: ignore[arg-type]
    (
        lambda: tj.dlwhile(lambda x: x > 0, abs, X),
        ArgumentError,
        "dlwhile: cond returned 3x2 bool, expected one number or bool; reduce it (all, any).",
    ),
    (
        lambda: tj.dlwhile(lambda x: x < 2, lambda x: [x], 1.0),
        ArgumentError,
        "dlwhile: carry is a single value in the first carry and a list in what fun returned; a step returns the "
        "carry in the containers that it gets.",
    ),
    (
        lambda: tj.dlaccelerate(unfinished)(tj.dlarray(3.0)),
        TraceError,
        "dlwhile: fun writes into an array that was made outside it. It is recorded also where it is not called, and "
        "the write cannot be undone. Return the array in the carry.",
    ),
    (
        lambda: tj.dlaccelerate(lambda x: tj.dlgradient(tj.dlwhile(lambda c: c < 9, lambda c: c * x, x), x))(
            tj.dlarray(2.0)
        ),
        tj.GradientError,
        "dlwhile: a loop whose length a value decides has no gradient in an accelerated function; pass max_steps=, the "
        "greatest number of steps, for which its gradient reserves memory.",
    ),
    (
        lambda: tj.dlwhile(lambda c: c < 9, lambda c: c + 1, 0, max_steps=3),
        ArgumentError,
        "dlwhile: the loop has not ended after max_steps=3 steps; raise max_steps, or change cond so that it becomes "
        "false.",
    ),
    (
        lambda: tj.dlwhile(lambda c: c < 9, lambda c: c + 1, 0, max_steps=0),
        ArgumentError,
        "dlwhile: max_steps must be at least 1, not 0.",
    ),
    (lambda: tj.dlcond(True, 3, abs), ArgumentError, "dlcond: true_fun must be a function, not 3."),  # type: ignore[arg-type]
    (lambda: tj.dlcond(True, abs, 3), ArgumentError, "dlcond: false_fun must be a function, not 3."),  # type: ignore[arg-type]
    (
        lambda: tj.dlcond(X, abs, abs, 1.0),
        ArgumentError,
        "dlcond: pred is 3x2 float64, expected one number or bool; reduce it (all, any).",
    ),
    (
        choosing(lambda x: [x], lambda x: x),
        ArgumentError,
        "dlcond: the result is a list in true_fun and a single value in false_fun; both return the same containers.",
    ),
    (
        choosing(lambda x: {"a": x}, lambda x: {"a": x[0]}),
        DimsError,
        "dlcond: the result['a'] is 3x2 float64 from true_fun and 2 float64 from false_fun; both give the same kind of "
        "array. Reshape, broadcast or relabel one of them.",
    ),
    (
        choosing(lambda x: x, lambda x: x.astype(np.float32)),
        DTypeError,
        "dlcond: the result is 3x2 float64 from true_fun and 3x2 float32 from false_fun; both give the same kind of "
        "array. Cast one of them (x.astype(np.float64)).",
    ),
    (
        choosing(lambda x: x.__setitem__(0, 1.0) or x, lambda x: x),
        TraceError,
        "dlcond: true_fun writes into an array that was made outside it. It is recorded also where it is not chosen, "
        "and the write cannot be undone. Return the array.",
    ),
    (
        lambda: Builder(Graph()).apply(WHILE, [np.ones(2)], {"body": body()}),
        ValueError,
        "while: the body does not fit the operands ['2 float64']",
    ),
    (
        lambda: Builder(Graph()).apply(
            COND, [np.True_, np.False_, np.ones(2)], {"then": body(), "other": body()}
        ),
        ValueError,
        "cond: the bodies do not fit the operands ['scalar bool', 'scalar bool', '2 float64'], or each other",
    ),
    (lambda: tj.dlcheckpoint(3), ArgumentError, "dlcheckpoint: fun must be a function, not 3."),  # type: ignore[arg-type]
    (
        lambda: Builder(Graph()).apply(
            SCAN, [np.ones(2)], {"body": body(), "length": 2, "reverse": False, "save": True}
        ),
        ValueError,
        "scan: the operands are ['2 float64'], expected ['scalar float64']",
    ),
    (
        lambda: Builder(Graph()).apply(
            SCAN, [np.float64(1)], {"body": narrowing(), "length": 2, "reverse": False, "save": True}
        ),
        ValueError,
        "scan: a step makes the carry ['scalar float32'] of ['scalar float64']",
    ),
    (
        selected_without_bodies,
        tj.CodegenError,
        "a graph with a loop is selected without a function that builds its body.",
    ),
)
