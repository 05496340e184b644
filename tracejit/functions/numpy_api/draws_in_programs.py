# SPDX-License-Identifier: BSD-3-Clause
"""Draws whose parameters a program computes: the program itself calls the generator.

Note [draws in programs]
``rng.poisson(rate)`` with a traced rate cannot be drawn before the program runs. So it is an op that calls Python,
with one more output, which is True. The next draw from the same generator takes that as an input, and must be such an
op, too: so they run in the order of the code. The last one is a guard, so that none is dropped. The generator is the
one that the fetch before the program has found, by its number among those of the trace.
"""

from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.aval import BOOL, SUPPORTED_DTYPES, Aval
from tracejit.errors import GradientError
from tracejit.functions.numpy_api.in_python import ArgumentPlace, Arguments, called_with
from tracejit.ops import Kind, Op
from tracejit.ops.op import HANDLED, PythonCall
from tracejit.record import host, recorder, views
from tracejit.record.generator_draws import found_generator

_TOKEN = Aval((), None, BOOL)


def in_program(draw: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Return the result of a draw that the program makes, and the array for it, or None if no program gives that.

    Args:
        draw: the call, as a DrawCall. A replay can make it once the program has computed the parameters.
        args, kwargs: the arguments.
    """
    current = recorder.recorder()
    assert current is not None
    leaves, structure = tree.flatten((args, kwargs))
    arrays: list[dlarray] = []
    kept: list[Any] = []
    for leaf in leaves:
        form, array = _form_of(leaf)
        kept.append(leaf if array is None else ArgumentPlace(len(arrays), form))
        if array is not None:
            recorder.check_open(array)
            arrays.append(array)
    token = current.tokens.get(id(draw.generator))
    arguments = Arguments(structure, tuple(kept))
    method = draw.method
    result = host.run(
        lambda *data: called_with(lambda *a, **k: method(draw.generator, *a, **k), data, arguments),
        [host.read_only(np.asarray(array._data)) for array in arrays],
    )
    data = np.array(result, order="C")
    if data.dtype not in SUPPORTED_DTYPES or type(result) not in (int, float, np.ndarray, data.dtype.type):
        return result, None
    drawn = Aval(data.shape, None, data.dtype)
    params = {
        "arguments": arguments,
        "drawn": drawn,
        "generator": current.number_of(draw.generator),
        HANDLED: True,
    }
    inputs = arrays if token is None else [*arrays, token]
    array, token = host.append(_op_of(draw), inputs, params, (drawn, _TOKEN), [data, np.array(True)])
    current.tokens[id(draw.generator)] = token
    return result, views.without_axes(array) if type(result) is np.ndarray and not data.ndim else array


def _form_of(leaf: Any) -> tuple[str | None, Any]:
    """Return the form in which the method gets an argument, and the array of it; None for a plain one."""
    if recorder.is_number(leaf):
        return ("int" if isinstance(leaf, int) else "float"), leaf._array
    if isinstance(leaf, dlarray):
        return ("number" if views.is_scalar(leaf) else None), leaf
    if type(leaf) is np.ndarray and leaf.dtype in SUPPORTED_DTYPES:  # it may be another one in the next call
        return None, as_array(leaf)
    return None, None


_ops: dict[tuple[type, str], Op] = {}


def _op_of(draw: Any) -> Op:
    key = type(draw.generator), draw.name
    return _ops.get(key) or _ops.setdefault(key, _new_op(draw.name, draw.method, draw.is_discrete))


def _new_op(name: str, method: Any, is_discrete: bool) -> Op:
    def run(*data: np.ndarray, arguments: Any, drawn: Aval, generator: int) -> Any:
        found = found_generator(generator)
        result = host.run(
            lambda *given: called_with(lambda *a, **k: method(found, *a, **k), given, arguments), data
        )
        return np.asarray(result), np.array(True)

    def gradient(b: Any, node: Any, ct: Any) -> Any:
        if is_discrete:
            return [None] * len(node.inputs)
        raise GradientError(
            f"{name}: what a generator draws has no derivative by this parameter. Draw with constant ones, and compute "
            "the rest (m + s * z), or cut the derivative with stop_gradient."
        )

    def infer(*inputs: Aval, arguments: Any, drawn: Aval, generator: int, handled: bool = False) -> Any:
        return drawn, _TOKEN

    return Op(
        name=f"draw_{name}", doc=f"a draw by the method {name} of a generator", kind=Kind.HOST, infer=infer,
        numpy=host.copies(run), vjp=gradient, emit=PythonCall(run), samples=(), analytic=False,
    )  # fmt: skip
