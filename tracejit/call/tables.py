# SPDX-License-Identifier: BSD-3-Clause
"""Checks of arguments and the assembly of results as tables for kernels/executor/entry.py (Note [patterns])."""

import struct
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from tracejit import containers, tree
from tracejit.aval import NUMBERS, NUMPY_NUMBERS, is_int64
from tracejit.call.result import ArrayLeaf, NumberLeaf, ResultLayout
from tracejit.call.signature import ArrayPart, Key, NumberPart
from tracejit.kernels.executor.state import (
    DICT_KEY_WORDS,
    IS_ARRAY,
    IS_ARRAY_WORDS,
    IS_DICT,
    IS_DICT_WORDS,
    IS_INT,
    IS_INT_WORDS,
    IS_LIST,
    IS_NO_NUMBER,
    IS_NODE,
    IS_NODE_WORDS,
    IS_PLAIN,
    IS_SAME,
    IS_SAME_FLOAT,
    IS_SAME_INT,
    IS_SAME_TEXT,
    IS_SAME_WORDS,
    IS_SCALAR,
    IS_SCALAR_WORDS,
    IS_SEQUENCE_WORDS,
    IS_TUPLE,
    PUT_DICT,
    PUT_DICT_ITEM_WORDS,
    PUT_LIST,
    PUT_NODE,
    PUT_NODE_WORDS,
    PUT_OBJECT,
    PUT_RESULT,
    PUT_TUPLE,
    PUT_WORDS,
)
from tracejit.record.argument_containers import PassedContainer
from tracejit.util.named_tuples import NamedTuple


class Pattern(NamedTuple):
    """The arguments that calls with one key have.

    words       the table
    kept        objects whose addresses are in the table
    objects     number of objects that the table numbers
    inputs      number of inputs of the program among them
    numbers     numbers of the inputs that are numbers of Python or NumPy
    direct      for calls without named arguments, the number of the object that is the first argument, that of the
                arguments, and where the entries for these begin and end; None for other calls
    """

    words: list[int]
    kept: list[Any]
    objects: int
    inputs: int
    numbers: frozenset[int]
    direct: tuple[int, int, int, int] | None


class Recipe(NamedTuple):
    """The assembly of a result.

    words       the table
    kept        objects whose addresses are in the table
    objects     the greatest depth of its stack
    """

    words: list[int]
    kept: list[Any]
    objects: int


class Tables(NamedTuple):
    """The tables of a trace; None where a table cannot describe its arguments or its result."""

    pattern: Pattern | None = None
    recipe: Recipe | None = None


_UNNAMED, _NAMED = (
    1,
    2,
)  # the numbers of the tuple and the dict of arguments, which the arguments of a call consist of


class _NoEntryError(Exception):
    """No table entry describes this; Python has to do it."""


def pattern(key: Key, written: Container[int] = ()) -> Pattern | None:
    """Return the table that checks and flattens the arguments of calls with a key, or None if there can be none.

    `written` are the numbers of the arrays that calls write; each has to be an array, not a number.
    """
    writer = _PatternWriter(key, written)
    try:
        tree.walk(key.structure, key.orders, 0, writer.leaf, writer.container)
    except _NoEntryError:
        return None
    return Pattern(
        writer.words, writer.kept, writer.objects, writer.inputs, frozenset(writer.numbers), writer.direct()
    )


def recipe(result: ResultLayout) -> Recipe | None:
    """Return the table that assembles a result, or None if there can be none."""
    writer = _RecipeWriter(result.leaves)
    try:
        tree.fold(result.treedef.structure, result.treedef.orders, writer.leaf, writer.container)
    except _NoEntryError:
        return None
    return Recipe(writer.words, writer.kept, writer.greatest_depth)


class _TableWriter:
    def __init__(self) -> None:
        self.words: list[int] = []
        self.kept: list[Any] = []

    def add(self, length: int, *entry: int) -> None:
        """Append an entry; the reader of the table goes on by its length."""
        assert len(entry) == length
        self.words += entry

    def address(self, value: Any) -> int:
        """Return the address of an object that is kept."""
        self.kept.append(value)
        return id(value)

    def keys(self, names: Sequence[Any]) -> list[int]:
        """Return the addresses of the keys of a dict."""
        if not all(type(name) is str for name in names):
            raise _NoEntryError
        return [self.address(name) for name in names]


class _PatternWriter(_TableWriter):
    """The writer of an entry for each container and leaf of the arguments; a place is the number of an object."""

    def __init__(self, key: Key, written: Container[int]) -> None:
        super().__init__()
        self._written = written
        self._parts = iter(key.parts)
        self.objects = 1
        self.inputs = 0
        self.numbers: list[int] = []
        self._arguments = (
            0,
            0,
            0,
        )  # the number of the first one, how many there are, and where their entries begin
        self._named = 0
        self._end = 0  # of the entries for arguments

    def direct(self) -> tuple[int, int, int, int] | None:
        """Return what Pattern.direct is."""
        return None if self._named else (*self._arguments, self._end)

    def container(self, at: int, kind: type, names: Any, length: int) -> Sequence[int]:
        if kind is type(None):
            self.add(IS_SAME_WORDS, IS_SAME, at, self.address(None))
            return ()
        first = self.objects
        self.objects += length
        if at == _NAMED:
            self._named, self._end = length, len(self.words)
        if kind is dict:
            keys = self.keys(names)
            self.add(IS_DICT_WORDS + DICT_KEY_WORDS * length, IS_DICT, at, length, first, *keys)
        elif kind is tuple or kind is list:
            self.add(IS_SEQUENCE_WORDS, IS_TUPLE if kind is tuple else IS_LIST, at, length, first)
            if at == _UNNAMED:
                self._arguments = first, length, len(self.words)
        elif issubclass(kind, tree.TreeNode):
            self.add(IS_NODE_WORDS, IS_NODE, at, length, first, self.address(kind), self.address(names))
        else:
            raise _NoEntryError
        return range(first, self.objects)

    def leaf(self, at: int) -> None:
        part = next(self._parts)
        if isinstance(part, ArrayPart):
            kinds = IS_PLAIN if part.format is None else 0
            if not part.shape and self.inputs in self._written:
                kinds |= IS_NO_NUMBER
            self.add(IS_ARRAY_WORDS, IS_ARRAY, at, self.inputs, self.address(part.format), kinds)
            self.inputs += 1
        elif isinstance(part, NumberPart):
            self.number(part.kind, at)
        else:
            self.value(part.kind, part.given, at)

    def number(self, kind: type, at: int) -> None:
        self.numbers.append(self.inputs)
        if kind is int:
            self.add(IS_INT_WORDS, IS_INT, at, self.inputs, self.objects)
            self.objects += 1
        elif kind in NUMBERS:
            self.add(IS_SCALAR_WORDS, IS_SCALAR, at, self.inputs, self.address(kind))
        else:
            raise _NoEntryError
        self.inputs += 1

    def value(self, kind: type, value: Any, at: int) -> None:
        if kind is float:
            if value[1] != float(value[0]):  # NaN: several numbers
                raise _NoEntryError
            bits = struct.unpack("<q", struct.pack("<d", float(value[0])))
            self.add(IS_SAME_WORDS, IS_SAME_FLOAT, at, *bits)
        elif kind is int and is_int64(value):
            self.add(IS_SAME_WORDS, IS_SAME_INT, at, value)
        elif kind is str:
            self.add(IS_SAME_WORDS, IS_SAME_TEXT, at, self.address(value))
        elif type(value) is kind and kind not in (int, bytes) and kind not in NUMPY_NUMBERS:
            self.add(IS_SAME_WORDS, IS_SAME, at, self.address(value))
        else:
            raise _NoEntryError


class _RecipeWriter(_TableWriter):
    """The writer of an entry for each leaf and container of a result; fold() passes places of children on the stack."""

    def __init__(self, leaves: Sequence[Any]) -> None:
        super().__init__()
        self._leaves = iter(leaves)
        self._outputs = 0
        self._depth = 0
        self.greatest_depth = 0

    def leaf(self) -> int:
        leaf = next(self._leaves)
        if type(leaf) is ArrayLeaf:
            self.add(PUT_WORDS, PUT_RESULT, self._outputs)
            self._outputs += 1
        elif type(leaf) in (NumberLeaf, PassedContainer) or isinstance(leaf, np.ndarray):
            raise _NoEntryError  # a number is made of an output, and each call returns a copy of an ndarray
        else:
            self.add(PUT_WORDS, PUT_OBJECT, self.address(leaf))
        return self.put()

    def container(self, kind: type, names: Any, places: Sequence[int]) -> int:
        length = len(places)
        self._depth -= length
        if kind is type(None):
            self.add(PUT_WORDS, PUT_OBJECT, self.address(None))
        elif kind is dict:
            items = zip(self.keys(names), [place - self._depth for place in places], strict=True)
            words = [word for item in items for word in item]
            self.add(PUT_WORDS + PUT_DICT_ITEM_WORDS * length, PUT_DICT, length, *words)
        elif kind is tuple or kind is list:
            self.add(PUT_WORDS, PUT_TUPLE if kind is tuple else PUT_LIST, length)
        elif isinstance(names, containers.Fixed):
            self.add(PUT_NODE_WORDS, PUT_NODE, length, self.address(tree.maker(kind, names)))
        else:
            raise _NoEntryError
        return self.put()

    def put(self) -> int:
        """Note that an object is put on the stack, and return its place."""
        self._depth += 1
        self.greatest_depth = max(self.greatest_depth, self._depth)
        return self._depth - 1
