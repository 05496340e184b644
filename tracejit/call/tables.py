# SPDX-License-Identifier: BSD-3-Clause
"""What arguments have to be, and how a result is put together, as the tables of kernels/entry.py (Note [patterns])."""

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit.call.signature import ArrayPart, Key, NumberPart
from tracejit.kernels.executor.state import (
    IS_ARRAY,
    IS_DICT,
    IS_FLOAT,
    IS_INT,
    IS_LIST,
    IS_SAME,
    IS_SAME_FLOAT,
    IS_SAME_INT,
    IS_SAME_TEXT,
    IS_TUPLE,
    PUT_DICT,
    PUT_LIST,
    PUT_OBJECT,
    PUT_RESULT,
    PUT_TUPLE,
)
from tracejit.tree import LEAF, TreeDef

_LONGEST = 1 << 63


class Pattern(NamedTuple):
    """What the arguments of a call have to be.

    words       the table
    kept        objects whose addresses are in it
    objects     how many objects it numbers
    inputs      how many inputs of the program it finds
    numbers     which of these are numbers
    """

    words: list[int]
    kept: list[Any]
    objects: int
    inputs: int
    numbers: frozenset[int]


class Recipe(NamedTuple):
    """How a result is put together.

    words       the table
    kept        objects whose addresses are in it
    objects     the most that are on its stack
    """

    words: list[int]
    kept: list[Any]
    objects: int


class _NoWordError(Exception):
    """There is no word for this; Python has to do it."""


def pattern(key: Key) -> Pattern | None:
    """Return what the arguments of calls with a key have to be, or None if a table cannot say it."""
    written = _Pattern(key)
    try:
        written.take_apart(key.structure, 0)
    except _NoWordError:
        return None
    return Pattern(written.words, written.kept, written.objects, written.inputs, frozenset(written.numbers))


def recipe(
    results: Sequence[Any], treedef: TreeDef, kind_of_output: Callable[[Any], type | None], array: type
) -> Recipe | None:
    """Return how a result is put together, or None if a table cannot say it.

    Args:
        results: leaves of the result, output or constant.
        treedef: of the result.
        kind_of_output: what the next output is as a leaf of the result; None for a constant.
        array: the kind of outputs that stay what they are.
    """
    written = _Recipe(results, treedef, kind_of_output, array)
    try:
        written.put_together(treedef.structure)
    except _NoWordError:
        return None
    return Recipe(written.words, written.kept, written.most)


class _Table:
    def __init__(self) -> None:
        self.words: list[int] = []
        self.kept: list[Any] = []

    def known(self, value: Any) -> int:
        """Return the address of an object that is kept."""
        self.kept.append(value)
        return id(value)

    def texts(self, keys: Sequence[Any]) -> list[int]:
        """Return the addresses of the keys of a dict."""
        if not all(type(key) is str for key in keys):
            raise _NoWordError
        return [self.known(key) for key in keys]


class _Pattern(_Table):
    def __init__(self, key: Key) -> None:
        super().__init__()
        self._parts = iter(key.parts)
        self._orders = iter(key.orders)
        self.objects = 1
        self.inputs = 0
        self.numbers: list[int] = []

    def take_apart(self, structure: Any, at: int) -> None:
        """Append what the object of number `at` has to be."""
        if structure is LEAF:
            self.leaf(next(self._parts), at)
            return
        kind, names, children = structure
        if kind is type(None):
            self.words += (IS_SAME, at, self.known(None))
            return
        first = self.objects
        self.objects += len(children)
        places = list(range(first, self.objects))
        if kind is dict:
            order = next(self._orders) or names
            self.words += (IS_DICT, at, len(order), first, *self.texts(order))
            place_of = dict(zip(order, places, strict=True))
            places = [place_of[name] for name in names]
        elif kind is tuple or kind is list:
            self.words += (IS_TUPLE if kind is tuple else IS_LIST, at, len(children), first)
        else:
            raise _NoWordError
        for child, place in zip(children, places, strict=True):
            self.take_apart(child, place)

    def leaf(self, part: Any, at: int) -> None:
        if isinstance(part, ArrayPart):
            self.words += (IS_ARRAY, at, self.inputs, self.known(part.format), part.format is None)
            self.inputs += 1
        elif isinstance(part, NumberPart):
            self.numbers.append(self.inputs)
            if part.kind is float:
                self.words += (IS_FLOAT, at, self.inputs)
            elif part.kind is int:
                self.words += (IS_INT, at, self.inputs, self.objects)
                self.objects += 1
            else:
                raise _NoWordError
            self.inputs += 1
        else:
            self.value(part.kind, part.value, at)

    def value(self, kind: type, value: Any, at: int) -> None:
        if kind is float:
            if value[1] != float(value[0]):  # NaN: several numbers
                raise _NoWordError
            self.words += (IS_SAME_FLOAT, at, *struct.unpack("<q", struct.pack("<d", float(value[0]))))
        elif kind is int and -_LONGEST <= value < _LONGEST:
            self.words += (IS_SAME_INT, at, value)
        elif kind is str:
            self.words += (IS_SAME_TEXT, at, self.known(value))
        elif type(value) is kind and kind not in (int, bytes):
            self.words += (IS_SAME, at, self.known(value))
        else:
            raise _NoWordError


class _Recipe(_Table):
    def __init__(
        self, results: Sequence[Any], treedef: TreeDef, kind_of_output: Callable[[Any], type | None], array: type
    ) -> None:  # fmt: skip
        super().__init__()
        self._results = iter(results)
        self._orders = iter(treedef.orders)
        self._kind_of_output = kind_of_output
        self._array = array
        self._outputs = 0
        self._depth = 0
        self.most = 0

    def put_together(self, structure: Any) -> None:
        if structure is LEAF:
            self.leaf(next(self._results))
            return
        kind, names, children = structure
        if kind is type(None):
            self.put(PUT_OBJECT, self.known(None))
            return
        if kind not in (dict, tuple, list):
            raise _NoWordError
        order = (next(self._orders) or names) if kind is dict else ()
        for child in children:
            self.put_together(child)
        self._depth -= len(children)
        if kind is dict:
            place_of = {name: place for place, name in enumerate(names)}
            places = [place_of[name] for name in order]
            keys = self.texts(order)
            self.put(
                PUT_DICT, len(order), *[word for pair in zip(keys, places, strict=True) for word in pair]
            )
        else:
            self.put(PUT_TUPLE if kind is tuple else PUT_LIST, len(children))

    def leaf(self, leaf: Any) -> None:
        kind = self._kind_of_output(leaf)
        if kind is None:
            if isinstance(leaf, np.ndarray):  # each call returns a copy
                raise _NoWordError
            self.put(PUT_OBJECT, self.known(leaf))
        elif kind is self._array:
            self.put(PUT_RESULT, self._outputs)
            self._outputs += 1
        else:
            raise _NoWordError

    def put(self, kind: int, *words: int) -> None:
        self.words += (kind, *words)
        self._depth += 1
        self.most = max(self.most, self._depth)
