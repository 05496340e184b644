# SPDX-License-Identifier: BSD-3-Clause
"""dlmap: a function written for one observation, applied to all observations at once."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.aval import LABELS, describe_shape
from tracejit.batching import batch
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import reductions
from tracejit.functions.axes import normalize_axis
from tracejit.functions.evaluate import dlfeval
from tracejit.functions.loop_carry import apart
from tracejit.functions.variables import is_array, recording, value_of
from tracejit.ir import Builder, Value
from tracejit.record import monitor
from tracejit.record import recorder as recorders
from tracejit.record.demands import demand
from tracejit.record.mapping import Mapping
from tracejit.util.arguments import callable_, is_real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief, count, name_of


def dlmap(fun: Callable[..., Any], over: Any = "B") -> Callable[..., Any]:
    """Return a function that applies `fun`, which is written for one observation, to all observations at once.

    `fun` is called once and recorded; what it computes is then computed for all observations by the same operations
    with one axis more, not by a loop. Derivatives may be taken in `fun` (of an observation), and of the result.

    Args:
        fun: function of arrays without the axis of observations.
        over: the axis of observations. A label: arrays that have it are taken apart along it, others are the same for
            all observations, such as parameters. An axis number: all arrays among the positional arguments are taken
            apart along it. Or a tuple with a label, a number or None (the same for all) for each positional argument.

    Returns:
        function of arrays with the axis, which returns what `fun` returns with that axis in each array: first if it is
        first in the first array that has it, otherwise where it is there, or last. Numbers become arrays.

    Raises:
        ArgumentError: if `fun` is no function or `over` no axis; when called, if `over` has no entry for an argument,
            or `fun` returns anything but arrays and numbers.
        DimsError: when called, if no array has the axis, or the numbers of observations differ or are 0.
        TraceError: when called, if `fun` needs a value of an observation, as in ``if x > 0``, or an operation can only
            be repeated, and there are more than 64 observations.
        WriteError: when called, if `fun` writes into an array that it did not make.

    Random numbers are drawn anew for each observation. What else `fun` does, such as printing, it does once.

    Examples:
        >>> import tracejit as tj
        >>> def distance(x, center):
        ...     return ((x - center) ** 2).sum()
        >>> x = tj.dlarray([[0.0, 3.0, 1.0], [1.0, 5.0, 1.0]], "CB")
        >>> tj.dlmap(distance)(x, tj.dlarray([0.0, 1.0], "C"))
        3(B) dlarray float64
        [ 0. 25.  1.]
        >>> slope = tj.dlmap(lambda x: tj.dlgradient(distance(x, 0.0), x), over=0)
        >>> slope([[1.0, 2.0], [3.0, 4.0]]).tolist()
        [[2.0, 4.0], [6.0, 8.0]]
    """
    callable_("dlmap", "fun", fun)
    _check_over(over)

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return apart("dlmap", dlfeval(_mapped, fun, over, _arrays(args, over), kwargs))

    return mapped


class _Operand(NamedTuple):
    """An array that is taken apart: its axis of observations, and its Value with that axis in front."""

    axis: int
    array: dlarray
    value: Value


def _check_over(over: Any) -> None:
    entries = over if isinstance(over, (tuple, list)) else (over,)
    for entry in entries:
        is_label = isinstance(entry, str) and len(entry) == 1 and entry.upper() in LABELS
        is_axis = isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)
        if not (is_label or is_axis or (entry is None and entries is over)):
            raise ArgumentError(
                f'dlmap: over must be a label such as "B", an axis number, or a tuple of these and None with an entry '
                f"for each argument, not {brief(over)}."
            )


def _arrays(args: tuple[Any, ...], over: Any) -> tuple[Any, ...]:
    """Return arguments that are numbers, or lists of numbers, as arrays where they are to be taken apart."""
    if isinstance(over, str):
        return args
    return tuple([as_array(x, "dlmap") if type(x) is list else x for x in args])


def _mapped(fun: Callable[..., Any], over: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    recorder = recording("dlmap")
    b = recorder.builder
    b.location = recorders.user_location()
    leaves, treedef = tree.flatten((args, kwargs), function="dlmap")
    with monitor.paused():
        operands = _operands(b, leaves, _overs(over, args, kwargs))
        count = _count(operands)
        place = b.constant(np.zeros(1, np.int64))  # of the observation; a derivative inside may go through it
        firsts = {number: _first(b, operand, place) for number, operand in operands.items()}
    inputs = [value_of(array) for array in firsts.values()]
    mapping = Mapping(name_of(fun), recorder, [*inputs, place], count)
    args, kwargs = tree.unflatten(treedef, [firsts.get(number, leaf) for number, leaf in enumerate(leaves)])
    recorder.maps.append(mapping)
    try:
        results, result_treedef = tree.flatten(fun(*args, **kwargs), function="dlmap")
        results = [_result(result) for result in results]
        values = [value_of(result) for result in results]
    finally:
        recorder.maps.pop()
    nodes = mapping.nodes()
    demands = [value_of(demanded.condition) for demanded in mapping.demands]
    known = dict(zip(inputs, [operand.value for operand in operands.values()], strict=True))
    known[place] = b.constant(np.arange(count).reshape(count, 1))
    b.location = recorders.user_location()
    with monitor.paused():
        found = batch(b, nodes, [*values, *demands], known, count, "dlmap")
    mapping.end(nodes)
    for demanded, value in zip(mapping.demands, found[len(values) :], strict=True):
        assert value is not None
        demand(reductions.all(dlarray._wrap(value.data, None, value)), demanded.what, demanded.fail)
    first = next(iter(operands.values()))
    label = first.array.format[first.axis] if first.array.format else None
    with monitor.paused():
        joined = [
            _joined(b, own, value, result.format, count, first.axis, label)
            for own, value, result in zip(found, values, results, strict=False)
        ]
    return tree.unflatten(result_treedef, joined)


def _overs(over: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the entry of `over` for each leaf of the arguments."""
    entries = over if isinstance(over, (tuple, list)) else (over,) * len(args)
    if len(entries) != len(args):
        raise ArgumentError(
            f"dlmap: over has {count(len(entries), 'entry')}, but the call has "
            f"{count(len(args), 'positional argument')}; give one entry for each."
        )
    pairs = [*zip(entries, args, strict=True), (over if isinstance(over, str) else None, kwargs)]
    return [entry for entry, given in pairs for _ in tree.flatten(given, function="dlmap")[0]]


def _operands(b: Builder, leaves: Sequence[Any], overs: Sequence[Any]) -> dict[int, _Operand]:
    """Return the arrays that are taken apart, by the numbers of their leaves."""
    found: dict[int, _Operand] = {}
    for number, (leaf, entry) in enumerate(zip(leaves, overs, strict=True)):
        if entry is None or not recorders.is_array(leaf):
            continue
        if isinstance(entry, str) and entry.upper() not in (leaf.format or ""):
            continue
        axis = normalize_axis("dlmap", leaf, entry)
        value = value_of(leaf)
        if axis:
            order = (axis, *[i for i in range(value.ndim) if i != axis])
            value = b.transpose(value, axes=order)
        found[number] = _Operand(axis, leaf, value)
    if not found:
        raise DimsError(
            'dlmap: no argument has an axis of observations; label it (dlarray(x, "CB")), or give its number (over=0).'
        )
    return found


def _count(operands: dict[int, _Operand]) -> int:
    """Return the number of observations."""
    first = next(iter(operands.values()))
    count = first.value.shape[0]
    for operand in operands.values():
        if operand.value.shape[0] != count or not count:
            described = [
                f"{describe_shape(each.array.shape, each.array.format)} along axis {each.axis}"
                for each in (first, operand)
            ]
            raise DimsError(
                f"dlmap: arrays of {described[0]} and {described[1]} have {count} and {operand.value.shape[0]} "
                "observations; the numbers must be equal, and at least 1."
            )
    return count


def _first(b: Builder, operand: _Operand, place: Value) -> dlarray:
    """Return the first observation, as the one at a place."""
    value, format = operand.value, operand.array.format
    part = b.take(value, place, axis=0)
    first = b.reshape(part, shape=value.shape[1:])
    label = None if format is None else format[: operand.axis] + format[operand.axis + 1 :]
    return dlarray._wrap(first.data, label or None, first)


def _result(result: Any) -> dlarray:
    if not (is_array(result) or is_real(result) or recorders.is_number(result)):
        raise ArgumentError(
            f"dlmap: the function returns a {type(result).__name__}, expected arrays and numbers, or containers of "
            "them."
        )
    return as_array(result, "dlmap")


def _joined(
    b: Builder, own: Value | None, value: Value, format: str | None, count: int, axis: int, label: str | None
) -> dlarray:
    """Return a result for all observations, with their axis where it belongs."""
    if own is None:
        own = b.broadcast_to(value, shape=(count, *value.shape))
    axis = min(axis, value.ndim)
    if axis:
        own = b.transpose(own, axes=(*range(1, axis + 1), 0, *range(axis + 1, own.ndim)))
    if format is not None:
        format = format[:axis] + (label or "U") + format[axis:]
    elif not value.ndim:
        format = label
    return dlarray._wrap(own.data, format, own)
