# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of L-BFGS: a call, the error, its text."""

from collections.abc import Callable

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, ArgumentValueError, DimsError, DTypeError, TraceError

X = tj.dlarray([1.0, 2.0])


def step(
    loss: object = lambda x: (1.0, x), params: object = X, state: object = None, **options: object
) -> object:
    """Make one iteration."""
    return tj.lbfgsupdate(params, loss, state, **options)  # type: ignore[arg-type]


def square(x: tj.dlarray) -> object:
    """Return a loss and its gradient."""
    loss = (x * x).sum()
    return loss, tj.dlgradient(loss, x)


def of_two() -> object:
    """Return a state of two parameters."""
    return tj.lbfgsupdate(X, lambda x: tj.dlfeval(square, x))[1]


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: tj.lbfgsstate(0),
        ArgumentValueError,
        "lbfgsstate: history_size must be at least 1, not 0.",
    ),
    (
        lambda: tj.lbfgsstate(initial_inverse_hessian_factor=-1.0),
        ArgumentValueError,
        "lbfgsstate: initial_inverse_hessian_factor must be positive and finite, not -1.0.",
    ),
    (
        lambda: step(state=3),
        ArgumentError,
        "lbfgsupdate: solver_state must be what lbfgsstate() or the last call returned, not 3.",
    ),
    (
        lambda: step(line_search_method="newton"),
        ArgumentError,
        'lbfgsupdate: line_search_method must be "weak-wolfe", "strong-wolfe" or "backtracking", not \'newton\'.',
    ),
    (
        lambda: step(max_num_line_search_iterations=0),
        ArgumentValueError,
        "lbfgsupdate: max_num_line_search_iterations must be at least 1, not 0.",
    ),
    (
        lambda: step(initial_step_size="small"),
        ArgumentError,
        "lbfgsupdate: initial_step_size must be a number, \"auto\" or None, not 'small'.",
    ),
    (
        lambda: step(initial_step_size=0.0),
        ArgumentValueError,
        "lbfgsupdate: initial_step_size must be positive and finite, not 0.0.",
    ),
    (lambda: step(3), ArgumentError, "lbfgsupdate: loss_fcn must be a function, not 3."),
    (
        lambda: tj.dlfeval(lambda x: step(square, x), X),
        TraceError,
        "lbfgsupdate: it calls loss_fcn as often as the losses demand, so it cannot be recorded; call it outside of "
        "dlaccelerate and dlfeval, and accelerate loss_fcn.",
    ),
    (
        lambda: step(lambda x: 1.0),
        ArgumentError,
        "lbfgsupdate: loss_fcn must return a loss and its gradients, as in `return loss, dlgradient(loss, params)`, "
        "not 1.0.",
    ),
    (
        lambda: step(lambda x: (x, x)),
        ArgumentError,
        "lbfgsupdate: loss_fcn must return one real number as its loss, not float64 of size 2; reduce it, as mean() "
        "does.",
    ),
    (
        lambda: step(lambda x: (1.0, [x])),
        ArgumentError,
        "lbfgsupdate: gradients does not match params: gradients is a list, params is "
        "an array. They must have the same containers and keys.",
    ),
    (
        lambda: step(lambda x: (1.0, x[:1])),
        DimsError,
        "lbfgsupdate: gradients is of size 1, but params is of size 2; they must have the same sizes "
        "and labels.",
    ),
    (
        lambda: step(params=tj.dlarray(np.arange(3))),
        DTypeError,
        "lbfgsupdate: params holds int64, expected floating point; leave it out of the containers, or cast it.",
    ),
    (
        lambda: step(params=tj.dlarray([1.0]), state=of_two()),
        ArgumentError,
        "lbfgsupdate: solver_state is of 2 numbers, but params have 1; begin with lbfgsstate().",
    ),
)
