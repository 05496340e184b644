# SPDX-License-Identifier: BSD-3-Clause
"""Functions of Python that rows of a program call.

Note [arrays of a row]
A function gets arrays of its own, which hold copies of the row's inputs, and its results are copied to where the
program wants them. So it may keep its arguments and its results, as in an uncompiled call. An array that only the row
still refers to is filled again in the next call. The arrays are read-only.
"""

import ctypes
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.program import HostCall
from tracejit.util.named_tuples import NamedTuple

_MOST_STATES = 16  # whose memory a row remembers
_MOST_FREE = 4  # sets of arrays that a row keeps: one for each thread that is in the function

Pair = tuple[np.ndarray, np.ndarray]  # an array that owns its memory, and a read-only view of it


class _Seen(NamedTuple):
    """The arguments of a row in a state of the program: their words, what these were, and arrays in their place."""

    words: Any
    addresses: list[int]
    inputs: list[np.ndarray]
    outputs: list[np.ndarray]


class _Window(NamedTuple):
    """The shape, the dtype and the memory, as a class of ctypes, of an array that lies at some address."""

    shape: tuple[int, ...]
    dtype: np.dtype
    memory: Any


def row_function(call: HostCall) -> Callable[[int], bool | None]:
    """Return what a row calls with the address of its arguments, which are the addresses of inputs and of outputs.

    It returns None, or False where the program does not apply; the program then ends.
    """
    outputs = call.outputs
    function = call if call.handled else lambda arrays, inner=call.function: inner(*arrays)
    single = outputs[0] if len(outputs) == 1 else None
    windows = [_window(aval) for aval in (*call.inputs, *outputs)]
    known: dict[int, _Seen] = {}
    free: list[list[Pair]] = []

    def run(at: int) -> bool | None:
        seen = known.get(at)
        if seen is None:
            if len(known) >= _MOST_STATES:
                known.clear()
            seen = known[at] = _see(at, windows, len(call.inputs))
        elif seen.words[:] != seen.addresses:
            _see_again(seen, windows)
        try:
            pairs = free.pop()
        except IndexError:
            pairs = [_owned(aval) for aval in call.inputs]
        for pair, view in zip(pairs, seen.inputs, strict=True):
            pair[0][...] = view
        results = function([pair[1] for pair in pairs])
        if single is not None:
            if not _fits(results, single):
                return False
            seen.outputs[0][...] = results
        else:
            if not fits(results, outputs):
                return False
            for view, result in zip(seen.outputs, results, strict=True):
                view[...] = result
        del results
        if len(free) < _MOST_FREE:
            for pair in pairs:
                if _references(pair) != _UNUSED:
                    break
            else:
                free.append(pairs)
        return None

    return run


def fits(results: Any, outputs: tuple[Aval, ...]) -> bool:
    """Return whether the results of a function have the expected sizes and dtypes."""
    parts = results if type(results) is tuple else (results,)
    return len(parts) == len(outputs) and all(map(_fits, parts, outputs))


def _fits(result: Any, aval: Aval) -> bool:
    return type(result) is np.ndarray and result.shape == aval.shape and result.dtype == aval.dtype


def _see(at: int, windows: Sequence[_Window], inputs: int) -> _Seen:
    """Return the arguments at an address."""
    words = (ctypes.c_ssize_t * len(windows)).from_address(at)
    addresses = words[:]
    views = [_view(address, window) for address, window in zip(addresses, windows, strict=True)]
    return _Seen(words, addresses, views[:inputs], views[inputs:])


def _see_again(seen: _Seen, windows: Sequence[_Window]) -> None:
    """Renew the arrays whose addresses have changed."""
    addresses, inputs = seen.words[:], len(seen.inputs)
    for number, address in enumerate(addresses):
        if address != seen.addresses[number]:
            view = _view(address, windows[number])
            if number < inputs:
                seen.inputs[number] = view
            else:
                seen.outputs[number - inputs] = view
    seen.addresses[:] = addresses


def _owned(aval: Aval) -> Pair:
    own = np.empty(aval.shape, aval.dtype)
    view = own.view()
    view.flags.writeable = False
    return own, view


def _window(aval: Aval) -> _Window:
    """Return what _view() makes arrays of an aval from."""
    return _Window(aval.shape, aval.dtype, ctypes.c_char * (aval.size * aval.dtype.itemsize))


def _view(address: int, window: _Window) -> np.ndarray:
    """Return an array that lies at an address."""
    shape, dtype, memory = window
    if not ctypes.sizeof(memory):
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, memory.from_address(address))


def _references(pair: Pair) -> tuple[int, int, int]:
    """Return how many references there are to an array, to a view of it, and weak ones to the view."""
    own, view = pair
    return sys.getrefcount(own), sys.getrefcount(view), weakref.getweakrefcount(view)


_UNUSED = next(_references(pair) for pair in [_owned(Aval((1,), None, np.dtype(np.float32)))])
