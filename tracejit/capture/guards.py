# SPDX-License-Identifier: BSD-3-Clause
"""The guards of captured state: what a replay compares, as records.

Note [loose arrays]
What NumPy computes is a constant of the trace, and what it is computed from must be known. Where a name leads to an
ndarray, byte code tells whether anything besides the operations of the trace reads it; if so, its contents are
compared. An ndarray is loose if it is read in a way that is not followed: h[:] = w, the arrays of a list, unpacking, an
alias. It is an input of the trace, yet some constant may have been computed from its contents. So its contents are
compared too, if there are constants at all, until they have changed and a recording gave the same operations and
constants all the same: then nothing was computed from them, and they are compared no longer (State.loosen). In training
that is the second recording. Weights that never change are compared at each call: 2 MiB take 0.05 ms, where their
product with 32 rows takes 0.36 ms. A guess from sums, means and norms whether a constant came from an array would save
that, and did, but took 37 ms for such an array in each recording, and missed what is computed in any other way.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from tracejit.ir import Where
from tracejit.record.state import CapturedPlace, OwnChange
from tracejit.util.named_tuples import NamedTuple

CONTENTS_OF = "what is in "
"""The beginning of the names of guards that compare the elements of an array."""
UNNAMED = "that no name leads to"
_SMALL_BYTES = 1 << 12  # of an array whose bytes are compared without a call

_HARMLESS_CHANGES = 8  # changes that prove nothing: after so many, the contents are taken not to matter
_CHANGED_SHARE = 0.9  # of the elements must have changed for one change to tell


class NameGuard(NamedTuple):
    """Something that a replay compares.

    name        how the user's code writes it
    value       what it was, in words
    where       the line that reads it
    is_told     whether explain() lists it; False for what is only on the way to something
    places      of a number, or of an ndarray whose elements are compared, that can become inputs
    """

    name: str
    value: str
    where: Where
    is_told: bool
    places: Sequence[CapturedPlace] = ()

    @property
    def is_of_elements(self) -> bool:
        """True if the elements of an array are compared."""
        return self.name.startswith(CONTENTS_OF)

    def __str__(self) -> str:
        return f"{self.name} is {self.value}"

    def no_longer(self) -> str:
        """Return in words that the guard does not hold."""
        return f"{self.name or 'the function'} is no longer {self.value}"


class GuardTest(NamedTuple):
    """The test of one guard in the generated functions (tracejit.capture.emit).

    guard       its number
    condition   an expression that is true where the guard does not hold
    before      a statement that binds the variable of the condition
    after       a statement that binds the variables of later lines
    dlarray     a variable that holds a dlarray; the guard does not hold either if that is on a tape it must not be on
    content     the name of a ContentGuard, which says whether its condition counts at all
    data        the variable of the array that it compares
    """

    guard: int
    condition: str
    before: str = ""
    after: str = ""
    dlarray: str = ""
    content: str = ""
    data: str = ""


class ContentGuard:
    """The contents of a loose array, and whether they still matter (Note [loose arrays]).

    Attributes:
        content: the bytes of a small array.
        is_compared: whether replays compare it.
        is_asked: whether the search for a failed guard compares it.
    """

    __slots__ = (
        "_branches",
        "_changed",
        "_expected",
        "_is_written",
        "_latest",
        "_times",
        "content",
        "is_asked",
        "is_compared",
    )

    def __init__(self, array: np.ndarray, branches: bool, is_written: bool = False) -> None:
        self._branches = branches
        self._is_written = is_written
        self._expected = self._latest = array.copy()
        self._changed = np.zeros(array.shape, bool)  # elements that have changed without effect
        self._times = 0
        self.content = array.tobytes() if array.nbytes <= _SMALL_BYTES else None
        self.is_compared = self.is_asked = True

    def differs(self, array: np.ndarray) -> bool:
        """Return whether an array has other bytes than expected."""
        expected = self._expected
        if self.content is not None or not (array.flags.c_contiguous and expected.flags.c_contiguous):
            return array.tobytes() != expected.tobytes()
        kind = np.uint64 if array.nbytes % 8 == 0 else np.uint8
        return not bool((array.reshape(-1).view(kind) == expected.reshape(-1).view(kind)).all())

    def has_changed(self, array: np.ndarray) -> bool:
        """Return whether the bytes of an array differ from the expected ones, and keep them if they differ."""
        if not self.differs(array):
            return False
        self._latest = array.copy()
        return True

    @property
    def before(self) -> bytes:
        """The expected bytes."""
        return self._expected.tobytes()

    @property
    def after(self) -> bytes:
        """The bytes at the last has_changed()."""
        return self._latest.tobytes()

    def note_harmless_change(self, moved: bool) -> None:
        """Note that the change which has_changed() saw last made no difference to a recording.

        A change of few elements does not tell, nor does any where values decide: the new contents are then compared. No
        number of changes tells of an array that plain NumPy writes: those elements may have been what it writes.

        Args:
            moved: whether arrays have only changed places, which does not tell either.
        """
        self._times += 1
        self._changed |= self._expected != self._latest
        tells = int(self._changed.sum()) >= _CHANGED_SHARE * self._changed.size
        is_compared = self._times < _HARMLESS_CHANGES and (self._branches or moved or not tells)
        self.is_compared = self.is_asked = is_compared or self._is_written
        self._expected = self._latest
        if self.content is not None:
            self.content = self._latest.tobytes()


class Site(NamedTuple):
    """A variable of the generated function, the statement that binds it, its name in words and where it is read."""

    variable: str
    before: str
    name: str
    where: tuple[str, int]


class GuardList:
    """The guards of a recording, with the tests that generated functions make of them.

    Attributes:
        guards: what is compared.
        tests: of the guards.
        checks: tests of sizes, dtypes and layouts, which an executor makes too.
        contents: the guards of loose arrays, by their numbers.
        names: what the tests refer to.
        changed: what the function read and changed itself.
        changed_places: the places where the function put another number or ndarray.
        changed_arrays: the ndarrays among that which have other elements.
        unguarded: what cannot be compared, in words, and where it is read.
    """

    def __init__(self, names: dict[str, Any], unguarded: tuple[str, Where] | None) -> None:
        self.guards: list[NameGuard] = []
        self.tests: list[GuardTest] = []
        self.checks: list[GuardTest] = []
        self.contents: dict[int, ContentGuard] = {}
        self.names = names
        self.changed: OwnChange | None = None
        self.changed_places: list[CapturedPlace] = []
        self.changed_arrays: list[np.ndarray] = []
        self.unguarded = unguarded
        self._new_constants = (f"g{i}" for i in count())
        self._constants: dict[int, str] = {}

    def constant(self, value: Any) -> str:
        """Return the name of a value in the generated functions."""
        name = self._constants.get(id(value))
        if name is None:
            name = self._constants[id(value)] = next(self._new_constants)
            self.names[name] = value
        return name

    def literal(self, value: Any) -> str:
        """Return the text of a short literal, or the name of any other value."""
        is_short = type(value) is int and value.bit_length() <= 64
        is_literal = is_short or type(value) in (str, bool, bytes, type(None))
        return repr(value) if is_literal else self.constant(value)

    def add(
        self, site: Site, value: str, condition: str, *, is_told: bool = False, after: str = "", dlarray: str = "",
        places: Sequence[CapturedPlace] = (),
    ) -> int:  # fmt: skip
        """Add a guard that fails under a condition; return its number."""
        number = len(self.guards)
        self.guards.append(
            NameGuard(site.name, value, site.where if site.where[0] else None, is_told, places)
        )
        self.tests.append(GuardTest(number, condition, site.before, after, dlarray))
        return number

    def add_content(self, site: Site, content: ContentGuard, places: Sequence[CapturedPlace]) -> None:
        """Add the guard of a loose array, which lies at some places."""
        name, data = self.constant(content), site.variable
        condition = f"{data}.tobytes() != {name}.content" if content.content else f"{name}.differs({data})"
        number = self.add(site, "as it was", condition, is_told=True, places=places)
        self.tests[-1] = self.tests[-1]._replace(content=name, data=data)
        self.contents[number] = content

    def note_change(self, name: str, where: tuple[str, int], value: Any = None) -> None:
        """Note that the function changed what it read, which was `value`; the first change is told."""
        if type(value) is np.ndarray:
            self.changed_arrays.append(value)
        if self.changed is None:
            is_ndarray = isinstance(value, np.ndarray)
            stays = _staying(value) if is_ndarray else ""
            self.changed = OwnChange(name, where if where[0] else None, is_ndarray, stays=stays)

    def refuse(self, name: str, where: Where) -> None:
        """Note that something cannot be compared; the first refusal counts."""
        self.unguarded = self.unguarded or (name, where)


def _staying(array: np.ndarray) -> str:
    """Return what keeps an ndarray from being a dlarray, as OwnChange has it."""
    if array.dtype.names is not None:
        return "fields"
    return "" if array.base is None else "view"
