# SPDX-License-Identifier: BSD-3-Clause
"""Draws whose parameters a program computes: the program itself calls the generator.

Note [draws in programs]
``rng.poisson(rate)`` with a traced rate cannot be drawn before the program runs. So it is an op that calls Python,
with one more output, which is True. The next draw from the same generator takes that as an input, and must be such an
op, too: so they run in the order of the code. The last one is a guard, so that none is dropped. The generator is the
one that the fetch before the program has found, by its number among those of the trace.
"""

from collections.abc import Sequence
from functools import partial
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
from tracejit.record.generator_draws import GeneratorDraw, found_generator, put_generator

_TOKEN = Aval((), None, BOOL)


def in_program(draw: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Return the result of a draw that the program makes, and the array for it, or None if no program gives that.

    Args:
        draw: the call, as a DrawCall. A replay can make it once the program has computed the parameters.
        args, kwargs: the arguments.
    """
    current = recorder.recorder()
    assert current is not None
    arguments, arrays = _taken_apart(args, kwargs)
    token = current.tokens.get(id(draw.generator))
    method = draw.method
    result = _called(current, draw.name, partial(method, draw.generator), arguments, arrays)
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


def made_in_program(
    name: str, make: Any, args: tuple[Any, ...], kwargs: dict[str, Any], make_first: Any = None
) -> Any:
    """Return a generator that each replay makes, because the seed is a number that varies.

    Args:
        name: of the function or the class.
        make: the function that makes it.
        args, kwargs: the arguments.
        make_first: makes that of the recording; by default make.
    """
    current = recorder.recorder()
    assert current is not None
    arguments, arrays = _taken_apart(args, kwargs)
    generator = _called(current, name, make_first or make, arguments, arrays)
    current.state.generators.note_computed(generator, recorder.user_location())
    params = {"arguments": arguments, "generator": current.number_of(generator), HANDLED: True}
    key = type(generator), name
    op = _ops.get(key) or _ops.setdefault(key, _new_maker(name, make))
    (token,) = host.append(op, arrays, params, _TOKEN, [np.array(True)])
    current.tokens[id(generator)] = token
    draw = GeneratorDraw(generator, name, make, (), {}, None, in_program=True, is_of_made=True)
    current.generator_draws.append(draw)
    current.has_replaced = True
    return generator


def _called(
    current: recorder.Recorder, name: str, function: Any, arguments: Arguments, arrays: Sequence[dlarray]
) -> Any:
    """Return the result of a function; an error that the user's code may handle keeps the recording from replays."""
    try:
        return host.run(
            lambda *data: called_with(function, data, arguments),
            [host.read_only(np.asarray(array._data)) for array in arrays],
        )
    except Exception as error:
        where = recorder.user_location()
        current.refuse(f"{name} raised {type(error).__name__}", where, "check its arguments outside")
        raise


def _taken_apart(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Arguments, list[dlarray]]:
    """Return arguments with the places of arrays, and the arrays."""
    leaves, structure = tree.flatten((args, kwargs))
    arrays: list[dlarray] = []
    kept: list[Any] = []
    for leaf in leaves:
        form, array = _form_of(leaf)
        kept.append(leaf if array is None else ArgumentPlace(len(arrays), form))
        if array is not None:
            recorder.check_open(array)
            arrays.append(array)
    return Arguments(structure, tuple(kept)), arrays


def _form_of(leaf: Any) -> tuple[str | None, Any]:
    """Return the form in which the method gets an argument, and the array of it; None for a plain one."""
    if recorder.is_number(leaf):
        return {int: "int", float: "float"}.get(type(leaf._number), "number"), leaf._array
    if isinstance(leaf, dlarray):
        return ("number" if views.is_scalar(leaf) else None), leaf
    if type(leaf) is np.ndarray and leaf.dtype in SUPPORTED_DTYPES:  # it may be another one in the next call
        return None, as_array(leaf)
    return None, None


_ops: dict[tuple[type, str], Op] = {}


def _op_of(draw: Any) -> Op:
    key = type(draw.generator), draw.name
    return _ops.get(key) or _ops.setdefault(key, _new_op(draw.name, draw.method, draw.is_discrete))


def _new_maker(name: str, make: Any) -> Op:
    def run(*data: np.ndarray, arguments: Any, generator: int) -> Any:
        put_generator(generator, host.run(lambda *given: called_with(make, given, arguments), data))
        return np.array(True)

    def gradient(b: Any, node: Any, ct: Any) -> Any:
        return [None] * len(node.inputs)

    def infer(*inputs: Aval, arguments: Any, generator: int, handled: bool = False) -> Any:
        return _TOKEN

    return Op(
        name=f"make_{name}", doc=f"a generator that {name} makes of a seed", kind=Kind.HOST, infer=infer,
        numpy=host.copies(run), vjp=gradient, emit=PythonCall(run), samples=(), analytic=False,
    )  # fmt: skip


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
