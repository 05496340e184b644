# SPDX-License-Identifier: BSD-3-Clause
"""The layout of elements that are drawn out of a pool, such as the transitions in a replay buffer.

Note [pools]
``random.sample(self.memory, 32)`` takes elements out of a list or a deque that changes from call to call, and may have
many thousand of them. None of it is compared. A replay draws from the list that is there by then, before the program
runs (Note [draws of generators]), and puts what it took into columns: one array for each array or number of an element,
with a row for each element. The columns are inputs of the trace. In the recording, an element consists of rows of
them, so that ``np.array([state for state, *_ in batch])`` is a column again. A replay whose elements have another
layout does not apply.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from tracejit.aval import NUMBERS, SUPPORTED_DTYPES, is_int64
from tracejit.ir import Where
from tracejit.util.memory import owner_of
from tracejit.util.named_tuples import NamedTuple

_base_of = attrgetter("base")


class Column(NamedTuple):
    """The arrays, or the numbers, that stand at one place of all elements.

    kind    the type of each
    shape   of each, () of numbers
    dtype   of each
    """

    kind: type
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def is_number(self) -> bool:
        """True if a Number stands for each, not an array."""
        return self.kind in NUMBERS or self.kind is bool

    @classmethod
    def of(cls, leaf: Any) -> "Column | None":
        """Return the column that an array or a number fits into; None for anything else."""
        kind = type(leaf)
        if kind is np.ndarray:
            return cls(kind, leaf.shape, leaf.dtype) if leaf.dtype in SUPPORTED_DTYPES else None
        is_known = (kind in NUMBERS and (kind is not int or is_int64(leaf))) or kind in (
            bool,
            np.bool_,
        )
        return cls(kind, (), np.asarray(leaf).dtype) if is_known else None

    def array(self, leaves: Sequence[Any]) -> np.ndarray | None:
        """Return leaves as rows of an array; None if one of them does not fit."""
        if {*map(type, leaves)} != {self.kind}:
            return None
        if self.kind is not np.ndarray:
            try:
                return np.array(leaves, self.dtype)
            except OverflowError:  # of an integer of more than 64 bits
                return None
        if not self.shape:
            is_alike = {(leaf.shape, leaf.dtype) for leaf in leaves} == {((), self.dtype)}
            return np.array(leaves) if is_alike else None
        if len(self.shape) > 1 and not all(leaf.flags.c_contiguous for leaf in leaves):
            return None  # functions may go by the order of its memory
        rows = np.empty((len(leaves), *self.shape), self.dtype)
        try:
            if {*map(len, leaves)} != {self.shape[0]}:
                return None
            np.concatenate(leaves, out=rows.reshape(-1, *self.shape[1:]), casting="no")
        except (TypeError, ValueError):  # of another dtype, another shape, or none
            return None
        return rows


class ElementLayout(NamedTuple):
    """The kind of the elements of a pool, and of their parts.

    kind      their type: a tuple, a named tuple, a list or a dict; None if each is an array or a number
    keys      of a dict
    columns   of their parts
    """

    kind: Any
    keys: tuple[Any, ...]
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, element: Any) -> "ElementLayout | None":
        """Return the layout of an element; None if it has other parts than arrays and numbers."""
        kind: Any = type(element)
        is_named = issubclass(kind, tuple) and hasattr(kind, "_fields") and not hasattr(element, "__dict__")
        if kind is dict:
            parts, keys = [*element.values()], (*element,)
        elif kind in (tuple, list) or is_named:
            parts, keys = [*element], ()
        else:
            kind, parts, keys = None, [element], ()
        columns = [Column.of(part) for part in parts]
        known = [column for column in columns if column is not None]
        return cls(kind, keys, tuple(known)) if parts and len(known) == len(parts) else None

    def arrays(self, elements: Sequence[Any], written: Sequence[Any] = ()) -> list[np.ndarray] | None:
        """Return the columns of elements; None if one of them has another layout, or lies in an array of `written`."""
        targets = [getattr(array, "_data", array) for array in written]
        arrays = []
        for column, leaves in zip(self.columns, self._places(elements), strict=False):
            array = column.array(leaves)
            if array is None or (targets and column.kind is np.ndarray and _are_parts(leaves, targets)):
                return None
            arrays.append(array)
        return arrays if len(arrays) == len(self.columns) else None

    def arrays_in(self, elements: Sequence[Any]) -> list[np.ndarray]:
        """Return the arrays of elements."""
        return [part for element in elements for part in self.parts(element) if type(part) is np.ndarray]

    def parts(self, element: Any) -> tuple[Any, ...]:
        """Return the parts of an element."""
        return (element,) if self.kind is None else tuple(element.values() if self.kind is dict else element)

    def _places(self, elements: Sequence[Any]) -> Iterable[Sequence[Any]]:
        """Return what stands at each place of the elements; nothing if one of them is of another kind."""
        if self.kind is None:
            return (elements,)
        if {*map(type, elements)} != {self.kind}:
            return ()
        if self.kind is not dict:
            return zip(*elements, strict=False) if {*map(len, elements)} == {len(self.columns)} else ()
        is_alike = all((*element,) == self.keys for element in elements)
        return zip(*[element.values() for element in elements], strict=False) if is_alike else ()

    def elements(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """Return elements whose parts are given, place by place."""
        if self.kind is None:
            return [*rows[0]]
        if self.kind is dict:
            return [dict(zip(self.keys, parts, strict=True)) for parts in zip(*rows, strict=True)]
        make = list if self.kind is list else lambda parts: tuple.__new__(self.kind, parts)
        return [make(parts) for parts in zip(*rows, strict=True)]


def _are_parts(arrays: Sequence[np.ndarray], written: Sequence[np.ndarray]) -> bool:
    """Return whether some arrays may share memory with others."""
    owners = [owner_of(array) for array in written]
    bases = [*map(_base_of, arrays)]
    if {*map(type, bases)} == {type(None)} and all(owner.flags.owndata for owner in owners):
        return not {*map(id, owners)}.isdisjoint(map(id, arrays))
    return any(np.may_share_memory(array, other) for array in arrays for other in written)


class Taking(NamedTuple):
    """A draw of elements out of a pool, as replays repeat it.

    layout    of the elements
    size      how many there are; None if the method gives one itself, not a list
    """

    layout: ElementLayout
    size: int | None

    def columns(
        self,
        method: Callable[..., Any],
        generator: Any,
        pool: Any,
        named: Mapping[str, Any],
        written: Sequence[Any],
    ) -> list[np.ndarray] | None:
        """Return the columns of what a method draws out of a pool; None if it has another layout.

        The method raises an error where the pool has too few elements. The function may not come to that: it may have
        asked for the length. Elements that are parts of arrays which the trace writes have to be read when it does.
        """
        try:
            taken = method(generator, pool, **named)
        except (ValueError, IndexError):
            return None
        elements = [taken] if self.size is None else taken
        return self.layout.arrays(elements, written) if len(elements) == (self.size or 1) else None


class Taken(NamedTuple):
    """Elements that a recording has drawn out of a pool.

    pool      the list or the deque
    taking    the draw
    elements  what it gave
    given     what stands for these in the recording, and their parts; until the recording ends
    arrays    the traced columns
    values    the inputs that these are
    where     the place in the user's code
    """

    pool: Any
    taking: Taking
    elements: Sequence[Any]
    given: list[tuple[Any, tuple[Any, ...]]]
    arrays: tuple[Any, ...]
    values: tuple[Any, ...]
    where: Where
