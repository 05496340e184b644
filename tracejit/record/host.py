# SPDX-License-Identifier: BSD-3-Clause
"""Ops of kind HOST in a recording: functions of Python on ndarrays, which a program calls between its kernels.

Note [errors that are handled]
An error that such a function raises ends the run of the program, and the call raises it. But if the user's code around
the call of the function may handle errors (``try``, ``with``), that code has to see the error, and no program runs it.
So the recording notes whether there is such code. If there is, then at an error the program says that it does not
apply, and the call runs uncompiled. The same happens where values have decided what is recorded. Their guards are
looked at only when the program has run, and where they do not hold, the function has received arguments that it would
not get uncompiled.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.aval import Aval, is_half
from tracejit.errors import DTypeError
from tracejit.ops import Op
from tracejit.ops.op import HANDLED
from tracejit.record import monitor, recorder
from tracejit.record.ended import refuse_other_thread
from tracejit.record.places import user_location
from tracejit.record.state import NOTHING
from tracejit.util.devices import beside, on_host
from tracejit.util.frames import user_frame
from tracejit.util.quiet import call_quietly


def run(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> Any:
    """Return the result of the user's function on ndarrays; it is not recorded, and NumPy gives no warnings."""
    current = recorder.thread.recorder
    if current is None and monitor.current.started is None:
        return call_quietly(function, arrays)
    state = NOTHING if current is None else current.state
    with recorder.suspended(), monitor.unwatched(), state.repeated():
        return call_quietly(function, arrays)


def copies(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose results are copies, which share no memory: the reference of a HOST op."""

    def call(*arrays: np.ndarray, handled: bool = False, **params: Any) -> Any:
        results = function(*map(read_only, arrays), **params)
        if type(results) is tuple:
            return tuple([np.array(result, order="C") for result in results])
        return np.array(results, order="C")

    return call


def params_here() -> dict[str, Any]:
    """Return the params of an op that is recorded now: HANDLED if an error may be none of the call (Note above)."""
    current = recorder.thread.recorder
    if current is None or not current.accelerating:
        return {}
    if current.guards:
        return {HANDLED: True}
    frame = user_frame()
    while frame is not None and id(frame) != current.frame:
        code = frame.f_code
        if code.co_exceptiontable and not monitor.is_library(code.co_filename):
            return {HANDLED: True}
        frame = frame.f_back
    return {}


def read_only(array: Any) -> np.ndarray:
    """Return a view of an array, or of a copy of one on a device, that cannot be written."""
    view: np.ndarray = on_host(array).view()
    view.flags.writeable = False
    return view


def conjugate(b: Any, value: Any) -> Any:
    """Return a cotangent of dlgradient for one inside, or the other way round (Note [complex cotangents])."""
    return b.conj(value) if value.dtype.kind == "c" else value


def append(
    op: Op, arrays: Sequence[Any], params: dict[str, Any], avals: Any, results: Sequence[np.ndarray]
) -> tuple[Any, ...]:
    """Return results that an op has computed as arrays, and record the op if something is recorded.

    Args:
        op: the op, of kind HOST.
        arrays: its inputs.
        params: of the op.
        avals: of the results, as its infer gives them.
        results: the results, which nobody else has.
    """
    current = recorder.thread.recorder
    single = type(avals) is Aval
    parts: Sequence[Aval] = (avals,) if single else avals
    results = beside([array._data for array in arrays], results)
    if current is None:
        refuse_other_thread(op.name, arrays)
        return tuple([recorder.wrap(data, aval.format) for data, aval in zip(results, parts, strict=True)])
    if any(is_half(array._data.dtype) for array in (*arrays, *map(recorder.wrap, results))):
        raise DTypeError(
            f"{op.name}: a function of Python that a program calls does not take or give numbers of 16 bits; cast them "
            "first (x.astype(np.float32))."
        )
    builder = current.builder
    builder.location = user_location()
    values = tuple([current.value(array) for array in arrays])
    outputs = builder.node(op, values, params, avals, results[0] if single else results)
    return tuple([
        recorder.wrap(value.data, aval.format, value)
        for value, aval in zip((outputs,) if single else outputs, parts, strict=True)
    ])  # fmt: skip
