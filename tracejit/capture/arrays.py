# SPDX-License-Identifier: BSD-3-Clause
"""The arrays that entered a recording from outside, and the expressions that fetch them again.

Note [fresh arrays]
An array that no path leads to is taken by reference if something still refers to it when the call is over. If nothing
does, it was made in the call: it is a constant of the trace, and its contents are compared when the trace is confirmed.
The snapshot keeps whatever was looked at, such as the arguments of a helper function, so all of it that no path leads
to is released before references are counted. The memory of such an array must be gone with it: each call may make a new
view of an array that stays, or of memory that does not belong to NumPy.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.call import signature
from tracejit.ir import Value
from tracejit.util.memory import owner_of


class SeenArray:
    """An array that entered a recording from outside, as it was then.

    Attributes:
        value: the graph input that stands for it, which may turn out to be a constant.
        copy: its elements when it entered.
        is_number: whether it is the number of a place (captured_numbers.py).
        is_replaced: whether the function has put something else at that place, which may be an equal number.
        array: the dlarray on the tape of the evaluation around the recording, if it is one.
        places: of the expressions through which it entered.
        name: how the user's code writes it.
    """

    __slots__ = ("array", "copy", "data", "is_input", "is_number", "is_replaced", "name", "places", "value")

    def __init__(
        self, data: np.ndarray, value: Any, copy: np.ndarray, array: Any = None, is_number: bool = False
    ) -> None:
        self.is_number = is_number
        self.is_replaced = False
        self.array = array
        self.data = data
        self.value: Value = value
        self.copy = copy
        self.is_input = True
        self.places: set[Any] = set()
        self.name = ""

    def lies_between(self, array: np.ndarray) -> bool:
        """Return whether the memory lies between the ends of another array of the same owner."""
        return bool(self.data is not array and self.data.size and array.size) and is_within(self.data, array)

    def is_view_of(self, array: np.ndarray) -> bool:
        """Return whether the elements are elements of another array of the same owner, in each array laid out like it.

        Between the ends of an array with gaps lie elements of others: big[:, 3] lies between those of big[:, :5:2].
        """
        if not self.lies_between(array):
            return False
        return bool(array.flags.c_contiguous) or _holds(array, self.data)

    @property
    def is_same(self) -> bool:
        """True if the array holds what it held when it entered."""
        return self.copy is self.data or self.copy.tobytes() == self.data.tobytes()

    def is_left(self, noted: Mapping[int, np.ndarray]) -> bool:
        """Return whether nothing but the recorder's notes refers to the array or its memory any more."""
        data, base = self.data, self.data.base
        if _references(self) > _ALONE + 1 + (id(data) in noted):  # one is the variable
            return False
        is_owned = (
            type(base) is np.ndarray and base.flags.owndata and _references_to_owner(self) <= _ONE_VIEW + 1
        )
        return data.flags.owndata or is_owned


def _references(seen: SeenArray) -> int:
    return sys.getrefcount(seen.data)


_ALONE = _references(SeenArray(np.empty(0), None, np.empty(0)))  # to an array that nobody else has


def _references_to_owner(seen: SeenArray) -> int:
    return sys.getrefcount(seen.data.base)


_ONE_VIEW = _references_to_owner(SeenArray(np.empty(1)[:], None, np.empty(0)))  # to an array with one view


class Inputs:
    """The expressions by which a replay fetches the arrays of a recording.

    Args:
        seen: the arrays that entered the recording, in order.
        taken: contents of dlarrays whose values were read outside the trace, by id of their data.

    Attributes:
        by_data: the seen arrays by the id of their data.
        by_value: those on the tape of the evaluation around the recording, by the id of their Value there.
    """

    def __init__(self, seen: Sequence[SeenArray], taken: Mapping[int, tuple[np.ndarray, bytes]]) -> None:
        self._seen = seen
        self._taken = taken
        self._expressions: dict[int, tuple[str, str]] = {}  # outside and inside an evaluation that goes on
        self._as_views: set[int] = set()  # those that are fetched as views of other arrays
        self._by_owner: dict[int, list[SeenArray]] = {}
        arrays = {id(entry.data): entry.data for entry in seen}
        arrays.update((ident, data) for ident, (data, _) in taken.items())
        # How many of them are views of an array, by its id.
        self._views = Counter(id(data.base) for data in arrays.values() if data.base is not None)
        self.by_data: dict[int, list[SeenArray]] = {}
        self.by_value: dict[int, SeenArray] = {}
        for entry in seen:
            if entry.array is not None:
                self.by_value[id(entry.array._value)] = entry
                continue
            self.by_data.setdefault(id(entry.data), []).append(entry)
            if entry.data.base is not None:
                self._by_owner.setdefault(id(owner_of(entry.data)), []).append(entry)

    def fetch(
        self, entry: SeenArray, name: str, source: str, within: str | None = None, is_view: bool = False
    ) -> None:
        """Fetch an array by an expression, unless another one does already.

        An array that has a name of its own is not fetched as a view of another: either name may get a new array.
        """
        if id(entry) not in self._expressions or (id(entry) in self._as_views and not is_view):
            (self._as_views.add if is_view else self._as_views.discard)(id(entry))
            entry.name = name
            if not signature.is_packed(entry.data):
                source = f"packed({source})"
            self._expressions[id(entry)] = (source, within or source)

    def is_fetched(self, entry: SeenArray) -> bool:
        """Return whether an expression for the array is known."""
        return id(entry) in self._expressions

    def expressions(self, within: bool = False) -> list[str]:
        """Return the expressions of all inputs.

        Args:
            within: whether dlarrays may be on the tape of an evaluation that goes on.
        """
        return [self._expressions[id(entry)][within] for entry in self._seen if entry.is_input]

    def of_memory(self, array: np.ndarray) -> list[SeenArray]:
        """Return the arrays that are not fetched yet and lie in the memory of this one."""
        if not array.flags.c_contiguous:
            return []
        return [entry for entry in self._seen if not self.is_fetched(entry) and entry.is_view_of(array)]

    def views_of(self, array: np.ndarray) -> list[SeenArray]:
        """Return the arrays that entered the recording as views of this one and are not fetched yet."""
        views = self._by_owner.get(id(owner_of(array)), ())
        return [entry for entry in views if not self.is_fetched(entry) and entry.is_view_of(array)]

    def has_other_view(self, array: np.ndarray, views: Sequence[SeenArray]) -> bool:
        """Return whether a view of an array entered the recording that is not among `views`."""
        others = self._by_owner.get(id(owner_of(array)), ())
        return any(entry.lies_between(array) for entry in others if entry not in views)

    def is_held(self, entry: SeenArray) -> bool:
        """Return whether anything but the recording refers to an array that no path leads to."""
        ident = id(entry.data)
        mine = len(self.by_data[ident]) - 1 + (ident in self._taken) + self._views[ident]
        return _references(entry) > _ALONE + mine

    def shares_memory(self, entry: SeenArray) -> bool:
        """Return whether the memory of an array that nothing else refers to belongs to something that stays."""
        base = entry.data.base
        if base is None:
            return not entry.data.flags.owndata
        if type(base) is not np.ndarray or not base.flags.owndata:
            return True
        arrays = {id(seen.data): seen.data for seen in self._seen}
        arrays.update((ident, data) for ident, (data, _) in self._taken.items())
        views = sum(data.base is base for data in arrays.values())
        itself = len(self.by_data.get(id(base), ())) + (id(base) in self._taken)
        del arrays
        # One of the views is counted in _ONE_VIEW; the variable `base` makes up for it.
        return _references_to_owner(entry) > _ONE_VIEW + views + itself


def _holds(array: np.ndarray, view: np.ndarray) -> bool:
    """Return whether the bytes of a view are bytes of an array with gaps: along its axes, as slices and reshape() go.

    A diagonal goes along two axes at once, and is not told.
    """
    axes: list[tuple[int, int]] = []  # stride and size of each, from the innermost: the bytes of an element
    for stride, size in sorted(
        [(1, array.itemsize), *zip(map(abs, array.strides), array.shape, strict=True)]
    ):
        if size == 1:
            continue
        inner, length = axes[-1] if axes else (1, 1)
        if stride < inner * length:
            return False  # elements lie in one another
        if axes and stride == inner * length:
            axes[-1] = inner, length * size
        else:
            axes.append((stride, size))
    bounds = np.lib.array_utils.byte_bounds
    rest = bounds(view)[0] - bounds(array)[0]
    steps = [(1, view.itemsize), *zip(map(abs, view.strides), view.shape, strict=True)]
    steps = [(stride, size) for stride, size in steps if size > 1 and stride]
    for stride, size in reversed(axes):
        first, rest = divmod(rest, stride)
        mine = [step for step in steps if step[0] % stride == 0]
        steps = [step for step in steps if step[0] % stride]
        if first + sum(step // stride * (count - 1) for step, count in mine) >= size:
            return False
    return not steps and not rest


def is_within(view: np.ndarray, array: np.ndarray) -> bool:
    """Return whether the memory of an array lies between the ends of another one."""
    bounds = np.lib.array_utils.byte_bounds
    (low, high), (first, last) = bounds(view), bounds(array)
    return bool(first <= low and high <= last)
