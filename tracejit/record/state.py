# SPDX-License-Identifier: BSD-3-Clause
"""The state that a trace captures besides the arguments of a call: the interface of recorder, capture and replay.

A recording has one State. While the function runs, the recorder asks it about every array that is not traced
(`value`): an array that can be found again at each call becomes an input of the graph, behind those of the
arguments, instead of a constant. What else the function read is a guard: a read of a name or an attribute whose outcome
was compared with what the recording saw. When the recording ends, the State belongs to the trace.

A replay asks `fetch` before anything is launched. It gives the current arrays, one for each input that the State added,
in their order. Where a guard does not hold it gives None; then the trace does not apply to this call, and nothing has
run. After a launch whose results are returned, `accepted` is called once: a generator of random numbers, whose state is
an array that was read, moves on by the numbers that the trace draws. If the trace turns out not to apply, `rejected` is
called.

This class itself stands for a trace that captures nothing; its replays ask nothing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import CodeType, MappingProxyType
from typing import Any

import numpy as np

from tracejit.ir import Builder, Value, Where
from tracejit.ops import Layout
from tracejit.record.side_effects import SideEffect
from tracejit.util.named_tuples import NamedTuple


class CapturedPlace(NamedTuple):
    """A place where code reads a number or an ndarray: an attribute, an item, a name.

    owner   the class, the module or the function that has it; all objects of a class have one place
    kind    of the slot
    name    of the slot
    is_of_array  whether it is that of an ndarray
    """

    owner: Any
    kind: Any
    name: Any
    is_of_array: bool = False


class Keeper(NamedTuple):
    """A container that got elements which no replay puts there.

    container  the list, the deque or the set
    name       as the user's code writes it
    put        the file and line that put something there first; None if no call of a method did
    read       where its elements are read; None if they are not
    """

    container: Any
    name: str
    put: Where
    read: Where


class Exchange(NamedTuple):
    """The choice of what stands in places for what they hold while a function is recorded.

    places       of numbers and ndarrays that vary, which are inputs
    tried        of ndarrays that vary: what functions get them is looked at
    of_arrays    whether ndarrays are exchanged at all
    of_made      whether those are that the function makes
    """

    places: Collection[CapturedPlace] = frozenset()
    tried: frozenset[CapturedPlace] = frozenset()
    of_arrays: bool = True
    of_made: bool = True


NO_EXCHANGE = Exchange(of_arrays=False)
NUMPYS_OWN = Exchange(of_arrays=False, of_made=False)


class OwnChange(NamedTuple):
    """A thing that a function read and changed itself.

    name         how the user's code writes it
    where        the line that reads it, if it is known
    is_ndarray   whether it was an ndarray
    is_made      whether the function did not read it, and assigned an object that no replay can make
    stays        what keeps an ndarray from being a dlarray: it has "fields", or is a "view"; empty if nothing does
    """

    name: str
    where: Where
    is_ndarray: bool
    is_made: bool = False
    stays: str = ""


class State:
    """The arrays and guards of one recording."""

    # Whether a replay has to ask: fetch() before the launch, accepted() after it.
    fetches = False
    accepts = False

    # The layouts of the arrays that fetch() gives; None: contiguous, in C order.
    layouts: tuple[Layout | None, ...] = ()

    # The places that those arrays are read from: two recordings that read from different places differ.
    names: tuple[Any, ...] = ()

    # Arrays of the evaluation around the recording, by the inputs that stand for them.
    of_outer: Mapping[Value, Any] = MappingProxyType({})

    # The same as fetch() for a call path: source that ends with "return MISS" where a guard does not hold, the names
    # that it uses, and the expressions for the arrays after it; None: fetch() is called.
    inlined: tuple[list[str], dict[str, Any], list[str]] | None = None

    # The same with sizes, dtypes and layouts compared too, for a state that draws before the program runs.
    inlined_with_sizes: tuple[list[str], dict[str, Any], list[str]] | None = None

    # The same for a path of a trace that applies if the arguments and this do, which notes no state of a generator.
    inlined_for_good: tuple[list[str], dict[str, Any], list[str]] | None = None

    # The generators of random numbers that a recording has met (capture/generators.py); None if it looks for none.
    generators: Any = None

    # The draws from NumPy's generators that a replay makes, in words.
    generator_draws: tuple[str, ...] = ()

    # How many numbers those draws give.
    drawn_numbers: int = 0

    # The variables of the objects that are stored to, after that source.
    objects: tuple[str, ...] = ()

    # State that the function both read and changed: the recording is right for its own call only.
    changed: OwnChange | None = None

    # The places of numbers that the function both read and changed.
    changed_places: tuple[CapturedPlace, ...] = ()

    # The containers that got elements which no replay puts there, until the recording has ended.
    keepers: Sequence[Keeper] = ()

    # Whether places of ndarrays held something else while the function ran.
    has_exchanged = False

    # Whether places of numbers did.
    has_numbers = False

    # Whether called() is to be told of each call that the user's code makes.
    looks_at_calls = False

    # The places of ndarrays that functions got which may take no dlarray.
    given: frozenset[CapturedPlace] = frozenset()

    # State that cannot be compared at each call, in words, and where it is read.
    unguarded: tuple[str, Where] | None = None

    # An array whose many elements each replay compares, in words, its size in MiB, and where it is read.
    compared: tuple[str, int, Where] | None = None

    # A source of random numbers that no trace can draw from, in words, and where it is read.
    drew: tuple[str, Where] | None = None

    @property
    def has_missed(self) -> bool:
        """True if this thread's last replay did not apply because of elements that it drew."""
        return False

    def take_notes(self, other: "State") -> None:
        """Note what another state did of the recording, whose arrays this one draws numbers beside."""
        self.changed, self.unguarded, self.drew = other.changed, other.unguarded, other.drew
        self.changed_places, self.given, self.compared = other.changed_places, other.given, other.compared
        self.has_exchanged, self.has_numbers, self.of_outer = (
            other.has_exchanged,
            other.has_numbers,
            other.of_outer,
        )

    def open(self) -> None:
        """Begin the recording."""

    def handles_errors(self) -> bool:
        """Return whether the function may handle an error (``try``, ``with``), as long as the recording goes on."""
        return False

    def value(self, builder: Builder, data: np.ndarray) -> Value | None:
        """Return the graph input that stands for an untraced array, made by ``builder.input`` if it is new, or
        None for an array that is a constant of the trace."""
        return None

    def outer(self, builder: Builder, array: Any) -> Value | None:
        """Return the graph input that stands for an array of the evaluation around the recording, or None."""
        return None

    def differentiates(self, target: Value) -> None:
        """Note that a derivative of a value is taken."""

    def differentiates_by(self, value: Value) -> None:
        """Note that a derivative is taken by the captured array that an input stands for."""

    def elements(self, value: Value) -> np.ndarray | None:
        """Return the elements of the captured array that an input of the graph stands for."""
        return None

    def is_left(self, value: Value, noted: Mapping[int, np.ndarray]) -> bool:
        """Return whether nothing but the recorder's notes refers to the array of an input any more."""
        return False

    def has_noted(self, value: Any) -> bool:
        """Return whether an object was met that a replay finds besides the arguments."""
        return False

    def shares_memory(self, memory: Any) -> bool:
        """Return whether an array that a replay finds besides the arguments has elements in some memory."""
        return False

    def noted_arrays(self) -> list[np.ndarray]:
        """Return the ndarrays that are noted because they entered the recording, as often as they are."""
        return []

    def noted_objects(self) -> Mapping[int, int]:
        """Return how often the notes of the recording refer to objects, by the ids of these."""
        return {}

    def holder(self, array: np.ndarray) -> np.ndarray | None:
        """Return the ndarray that a path leads to, and that is an array or has its elements; None if there is none."""
        return None

    def stored(self, array: np.ndarray) -> None:
        """Note that plain NumPy will write elements of an ndarray, by the code that the user is at."""

    def gives(self, array: np.ndarray) -> None:
        """Note that the function returns an ndarray, whose elements are constants of the trace."""

    def is_pool(self, container: Any) -> bool:
        """Return whether a list or a deque is not compared, because the code takes drawn elements of it only."""
        return False

    def is_apart(self, array: np.ndarray) -> bool:
        """Return whether an array in a pool can be written, and shares no memory with what the code reads otherwise."""
        return True

    def read_pool(self, container: Any) -> None:
        """Note that elements of a list or a deque are read otherwise, so that it is compared."""

    def shows(self, array: np.ndarray) -> None:
        """Note that the recording may have views of an ndarray, and write it through them."""

    def writes(self, array: np.ndarray) -> None:
        """Note that the recording writes an ndarray, by the code that the user is at."""

    def number(self, number: Any) -> None:
        """Note that a number of Python's or NumPy's is an operand, and a constant of the trace."""

    def taken(self, data: np.ndarray) -> None:
        """Note that the elements of an untraced dlarray are read outside the operations of the trace."""

    def taken_count(self) -> int:
        """Return the number of untraced arrays whose elements were read by Python or by NumPy."""
        return 0

    def forget_taken(self, count: int) -> None:
        """Forget what was read of such arrays after the first `count`."""

    def selected(self, code: CodeType, at: int) -> None:
        """Note that plain NumPy selects elements of an ndarray, at an instruction of the user's code."""

    def ran(self) -> None:
        """Note that the function has ended: what follows is the package's own code."""

    def repeated(self) -> AbstractContextManager[None]:
        """Return the context of the user's code that replays run too: they repeat what it changes."""
        return nullcontext()

    def changes(self) -> tuple[list[Any], set[int], list[tuple[dict[Any, Any], list[Any]]]]:
        """Return what the function has put into objects that a replay can find, their ids, and the order of keys.

        The last are dicts that got or lost keys, and the keys that each had before.
        """
        return [], set(), []

    def side_effect(self) -> SideEffect | None:
        """Return an effect of the function that a replay does not repeat, as long as the recording goes on."""
        return None

    def called(self, function: Any, arguments: Sequence[Any] | None) -> None:
        """Note a call of the user's code before it happens; `arguments` is None where nobody knows them."""

    def abandon(self) -> None:
        """End a recording whose function raised an error."""

    def close(self) -> None:
        """End the recording."""

    def fetch(self) -> tuple[np.ndarray, ...] | None:
        """Return the arrays to launch with, or None if what was read is not what it was."""
        return ()

    def fetcher(self) -> Callable[[], Any]:
        """Return a function that does what fetch() does."""
        return self.fetch

    def applies(self) -> bool:
        """Return whether fetch() would give arrays, without taking anything."""
        return self.fetch_checked() is not None

    def fetch_checked(self) -> tuple[np.ndarray, ...] | None:
        """Return the arrays of fetch(), or None if the size, dtype or layout of one differs."""
        return self.fetch()

    def fetch_within(self) -> tuple[Any, ...] | None:
        """Return what fetch_checked() does, but dlarrays as they are, which may be on the tape around the call."""
        return self.fetch_checked()

    def fetch_located(self, within: bool = False) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        """Return what fetch_checked() or fetch_within() does, and the objects that the function stores to."""
        read = self.fetch_within() if within else self.fetch_checked()
        return None if read is None else (read, ())

    def looked_at(self, within: bool = False) -> tuple[Any, ...] | None:
        """Return what fetch_checked() or fetch_within() does, without taking anything."""
        read = self.fetch_within() if within else self.fetch_checked()
        if read is not None:
            self.rejected()
        return read

    def loosen(self, is_same: Callable[[], bool]) -> bool:
        """Stop comparing contents that turn out not to matter; return whether it stopped.

        For some arrays it is unknown whether constants of the trace came from them. If only such arrays have changed
        since the recording, and a recording with their present contents is the same, no constant did.

        Args:
            is_same: says whether that recording has the operations and constants of this one; called if it matters.
        """
        return False

    def failed(self) -> Any:
        """Return the first guard that does not hold now, or None."""
        return None

    def accepted(self) -> None:
        """Go on after a replay whose results are returned."""

    def rejected(self) -> None:
        """Give back what fetch() took, because the trace does not apply."""

    def drawing_again(self) -> AbstractContextManager[None]:
        """Return the context of a call in which NumPy's generators give what the last accepted replay has drawn."""
        return nullcontext()

    def drawn(self) -> Mapping[Any, np.ndarray]:
        """Return, by generator of random numbers, the states that this thread's last accepted replay began with."""
        return {}

    def guards(self) -> list[Any]:
        """Return the guards that each call compares, for explain(): objects with `where`, described by ``str()``."""
        return []


NOTHING = State()
