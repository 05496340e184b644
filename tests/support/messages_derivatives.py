# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of derivatives beside dlgradient: a call, the error, its text."""

import math
from collections.abc import Callable

import numpy as np
from scipy.integrate import quad
from scipy.optimize import bisect

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError, GradientError, LostChangeWarning, TraceError, WriteError

X, V = tj.dlarray(np.ones((2, 3))), tj.dlarray(np.ones(3))
HELD = (math.erf,)  # not replaced in recordings, as the name in the module is
OUTSIDE = np.zeros(2)
SEQUENCE = tj.dlarray(np.ones((2, 3, 4)), "CBT")
LONG = tj.dlarray(np.ones((2, 3, 12)), "CBT")
STATES = [tj.dlarray(np.ones((2, 3)), "CB") for _ in range(2)]
WEIGHTS = [np.ones(shape) for shape in ((8, 2), (8, 2), (8,))]


def kept() -> object:
    """Use what a mapped function has kept of an observation."""
    found = []
    tj.dlmap(lambda x: found.append(x * 2) or x, over=0)(X)
    return found[0] + 1


def put_outside(x: tj.dlarray) -> object:
    """Put a number that has a derivative into an ndarray that the function has not made."""
    OUTSIDE[0] = math.exp(x)
    return tj.dlgradient(OUTSIDE.sum() * x, x)


def fills(p: dict[str, tj.dlarray], q: dict[str, tj.dlarray]) -> None:
    """Put something into a dict."""
    q["w"] = p["w"] * 2


def twice(function: Callable[..., object]) -> object:
    """Call a function with a dict as two of its arguments."""
    given = {"w": tj.dlarray(2.0)}
    return function(given, q=given)


SHARED = {"w": tj.dlarray(2.0)}
SHARED_ARRAY = np.ones(3)


def fills_what_it_reads(p: dict[str, tj.dlarray]) -> object:
    """Put something into a dict that is a global, too."""
    p["w"] = p["w"] * 2
    return SHARED["w"] * 1


def writes_what_it_reads(x: tj.dlarray) -> object:
    """Write into an array that is a global, too."""
    x += 1
    return np.sin(SHARED_ARRAY)


def changes_by_another_name(p: dict[str, tj.dlarray]) -> object:
    """Change a dict that is an argument, too, by its global name."""
    SHARED["w"] = SHARED["w"] * 1.5
    return p["w"] * 2


def written(x: tj.dlarray) -> tj.dlarray:
    """Write into an argument."""
    x += 1
    return x


OUT = np.ones(3)

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: tj.dlmap(lambda x: math.sqrt(x[0]), over=0)(np.array([[1.0], [-1.0]])),
        ValueError,
        "math domain error",
    ),
    (
        lambda: tj.dlmap(lambda x: math.exp(x[0]), over=0)(np.array([[1.0], [1e3]])),
        OverflowError,
        "math range error",
    ),
    (
        lambda: tj.dlmap(lambda x: math.exp(x[0]) ** 3, over=0)(np.array([[1.0], [500.0]])),
        OverflowError,
        "(34, 'Numerical result out of range')",
    ),
    (
        lambda: tj.dlaccelerate(fills_what_it_reads)(SHARED),
        WriteError,
        "fills_what_it_reads: it puts something into p, a dict that it also reads by another name than that of the "
        "argument, which does not show this before the call has ended. Use one of the two names.",
    ),
    (
        lambda: tj.dlaccelerate(writes_what_it_reads)(SHARED_ARRAY),
        WriteError,
        "writes_what_it_reads: it writes x, whose memory it also reads by another name than that of the argument, "
        "which does not show the write before the call has ended. Use one of the two names.",
    ),
    (
        lambda: tj.dlaccelerate(changes_by_another_name)(SHARED),
        LostChangeWarning,
        "changes_by_another_name changes what it was given as p by another name. Inside the function p is a copy, "
        "which does not show the change. Use one of the two names.",
    ),
    (
        lambda: twice(tj.dlaccelerate(fills)),
        WriteError,
        "fills: p and q are the same dict, and the function puts something into one of them, which the other one would "
        "not show. Pass a copy of it as q, or pass it once.",
    ),
    (
        lambda: twice(lambda *args, **kwargs: tj.dlfeval(fills, *args, **kwargs)),
        WriteError,
        "fills: args[0] and kwargs['q'] are the same dict, and the function puts something into one of them, which the "
        "other one would not show. Pass a copy of it as kwargs['q'], or pass it once.",
    ),
    (
        lambda: tj.dlfeval(put_outside, tj.dlarray(2.0)),
        GradientError,
        "dlgradient: ndarray.__setitem__ at <place> made a plain number of a value that depends on x, and dropped its "
        "derivative. Use an array that the function makes, or pass tj.stop_gradient(x) to ndarray.__setitem__ where "
        "the value x is meant to be a constant.",
    ),
    (
        lambda: tj.dlfeval(lambda x: tj.dlgradient(HELD[0](x) * x, x), tj.dlarray(2.0)),
        GradientError,
        "dlgradient: math.erf at <place> made a plain number of a value that depends on x, and dropped its "
        "derivative. Use scipy.special.erf, or pass tj.stop_gradient(x) to math.erf where the value x is meant to be a "
        "constant.",
    ),
    (
        lambda: tj.dlfeval(lambda x: tj.dlgradient(max(map(float, x)) * x[0], x), V),
        GradientError,
        "dlgradient: float at <place> made a plain number of a value that depends on x, and dropped its derivative. "
        "Use [float(v) for v in x], or pass tj.stop_gradient(x) to float where the value x is meant to be a constant.",
    ),
    (
        lambda: tj.dlfeval(lambda x: tj.dlgradient(tj.tile(x, 99).tolist()[0] * x[0], x), V),
        GradientError,
        "dlgradient: tolist at <place> made a plain number of a value that depends on x, and dropped its derivative. "
        "Use the array, or lists of up to 100 elements, or pass tj.stop_gradient(x) to tolist where the value x is "
        "meant to be a constant.",
    ),
    (
        lambda: tj.dlfeval(lambda x: tj.dlgradient(complex(x[0]).real * x[0], x), V),
        GradientError,
        "dlgradient: complex at <place> made a plain number of a value that depends on x, and dropped its derivative. "
        "Use x + 1j * y, or x + 0j, or pass tj.stop_gradient(x) to complex where the value x is meant to be a "
        "constant.",
    ),
    (
        lambda: tj.dlfeval(
            lambda x: tj.dlgradient((np.square(x, out=OUT) * x).sum(), x), tj.dlarray(np.ones(3))
        ),
        GradientError,
        "dlgradient: a value that depends on x was written into an ndarray at <place>; what NumPy reads there has no "
        "derivative. Take the gradient before the write, or make the ndarray a dlarray before the "
        "first call (self.y = tj.dlarray(self.y)).",
    ),
    (
        lambda: tj.dlfeval(
            lambda x: tj.dlgradient(bisect(lambda r: r - x, 0.0, 3.0) * x, x), tj.dlarray(2.0)
        ),
        GradientError,
        "dlgradient: scipy.optimize.bisect at <place> made a plain number of a value that depends on x, and dropped "
        "its derivative. Use tj.stop_gradient(x) in the solver, and one step from its result: r - f(r) / s has the "
        "derivative of a root r, with the slope s of f, or pass tj.stop_gradient(x) to scipy.optimize.bisect where "
        "the value x is meant to be a constant.",
    ),
    (
        lambda: tj.dlfeval(
            lambda x: tj.dlgradient(quad(lambda t: t * x, 0.0, 1.0)[0] * x, x), tj.dlarray(2.0)
        ),
        GradientError,
        "dlgradient: scipy.integrate.quad at <place> made a plain number of a value that depends on x, and dropped its "
        "derivative. Use scipy.integrate.fixed_quad, or pass tj.stop_gradient(x) to scipy.integrate.quad where the "
        "value x is meant to be a constant.",
    ),
    (
        lambda: tj.jvp(np.sin, X, (X,)),
        ArgumentError,
        "jvp: primals must be a tuple with one entry for each argument of fun, not a dlarray; write (primals,) for a "
        "function of one argument.",
    ),
    (
        lambda: tj.jvp(np.sin, ([1.0],), ({"v": 1.0},)),
        ArgumentError,
        "dljvp: v must have an array for each of x, in the same containers; v[0] is a dict, x[0] is an array.",
    ),
    (
        lambda: tj.jvp(np.sin, (X,), (1.0,)),
        DimsError,
        "dljvp: v[0] has size scalar, but x[0] has 2x3; the sizes must be equal.",
    ),
    (
        lambda: tj.jvp(lambda x: tj.lstm(x, *STATES, *WEIGHTS), (SEQUENCE,), (SEQUENCE,)),
        GradientError,
        "lstm: there are no derivatives in forward mode (jvp, hvp, hessian); use dlgradient once, or write the steps "
        "as a loop of matrix products and activations, which can be differentiated in any way.",
    ),
    (
        lambda: tj.hvp(lambda x: tj.lstm(x, *STATES, *WEIGHTS)[0].sum(), SEQUENCE, SEQUENCE),
        GradientError,
        "lstm: there are no derivatives in forward mode (jvp, hvp, hessian); use dlgradient once, or write the steps "
        "as a loop of matrix products and activations, which can be differentiated in any way.",
    ),
    (
        lambda: tj.jacobian(lambda x: tj.lstm(x, *STATES, *WEIGHTS)[0], LONG, mode="reverse"),
        TraceError,
        "jacobian: lstm_backward works on one observation at a time, and is repeated for up to 64, but there are 72. "
        "Call the function in a loop, or write this step for all observations outside of it.",
    ),
    (
        lambda: tj.hessian(lambda x: (x**2).sum(), np.ones((1,) * 40)),
        DimsError,
        "dlhessian: the result would have 80 axes; flatten x first (x.reshape(-1)).",
    ),
    (
        lambda: tj.jacobian(np.sin, X, mode="both"),
        ArgumentError,
        'jacobian: mode must be "auto", "forward" or "reverse", not \'both\'.',
    ),
    (
        lambda: tj.dlfeval(lambda x: tj.dljacobian(x, [x], 0), X),
        ArgumentError,
        "dljacobian: x is a list, expected one traced dlarray; join several arrays before they are used "
        "(np.concatenate), or call dlgradient, which takes containers.",
    ),
    (
        lambda: tj.dlfeval(lambda x: tj.dldivergence(x[:1], x, 0), X),
        DimsError,
        "dldivergence: u has size 1x3 and x 2x3; the sizes must be equal, with vectors along axis 0.",
    ),
    (
        lambda: tj.dlfeval(lambda x: tj.dllaplacian(x[0], x, 0), X),
        DimsError,
        "dllaplacian: u has size 3 and x 2x3; all sizes but that along axis 0 must be equal. Keep the axis of channels "
        "(u[:1] for u[0]).",
    ),
    (
        lambda: tj.dlmap(np.sin, over="BC"),
        ArgumentError,
        'dlmap: over must be a label such as "B", an axis number, or a tuple of these and None with an entry for each '
        "argument, not 'BC'.",
    ),
    (
        lambda: tj.dlmap(np.sin, over=(0, 1))(X),
        ArgumentError,
        "dlmap: over has 2 entries, but the call has 1 positional argument; give one entry for each.",
    ),
    (
        lambda: tj.dlmap(np.sin)(X),
        DimsError,
        'dlmap: no argument has an axis of observations; label it (dlarray(x, "CB")), or give its number (over=0).',
    ),
    (
        lambda: tj.dlmap(np.add, over=(0, 1))(X, X),
        DimsError,
        "dlmap: arrays of 2x3 along axis 0 and 2x3 along axis 1 have 2 and 3 observations; the numbers must be equal, "
        "and at least 1.",
    ),
    (
        lambda: tj.dlmap(lambda x: "text", over=0)(X),
        ArgumentError,
        "dlmap: the function returns a str, expected arrays and numbers, or containers of them.",
    ),
    (
        lambda: tj.dlmap(lambda x: x if x[0] > 0 else -x, over=0)(X),
        TraceError,
        "dlmap: bool() needs the value of an array that differs between observations at <place>; "
        "<lambda>.<locals>.<lambda> is recorded once for all of them. Choose with where(condition, a, b), or call the "
        "function in a loop.",
    ),
    (
        lambda: tj.dlmap(written, over=0)(X),
        WriteError,
        "dlmap: written writes into an array that it did not make at <place>; which observation is to be in it is not "
        "defined. Write into a copy (x.copy()), and return it.",
    ),
    (
        kept,
        TraceError,
        "an array that was made at <place> while kept.<locals>.<lambda> was evaluated is used after that evaluation "
        "ended, inside the function around dlmap, where it has no derivative. Return it from the function.",
    ),
)
