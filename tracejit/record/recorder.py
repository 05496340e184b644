# SPDX-License-Identifier: BSD-3-Clause
"""apply(): the one door through which every operation on arrays passes, eager or recorded.

The recorder is context, not data: there is one array class, and an array that takes part in a trace
carries the Value that stands for it. Arrays enter and leave here through three attributes, `_data`,
`_format` and `_value`; the class itself is registered by tracejit.array, which stands above this module.

Long because the recorder and the door read each other's state.
"""

import weakref
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from tracejit.aval import Aval, Halves, axes_in, merge_formats
from tracejit.errors import BoundsError, TraceError, TraceJitError
from tracejit.ir import Builder, Graph, Value, Where, weak_array
from tracejit.ops import OPS, Kind, Op
from tracejit.record import block, halves, monitor
from tracejit.record import current as current_recorder
from tracejit.record.attempts import Attempts
from tracejit.record.block import RecordingBlock
from tracejit.record.conversion import COMPARISONS, data_of, impossible, joined, names_of, out_of_range
from tracejit.record.ended import check_open, is_open, refuse_other_thread
from tracejit.record.generator_draws import GeneratorDraw, in_order
from tracejit.record.guards import MOST_VALUES, Decides, ValueGuard, outcome
from tracejit.record.mapping import Mapping, check_same
from tracejit.record.memory import MIXED_WRITES, Change, Memories, is_ndarray, is_private, is_view, root_of
from tracejit.record.places import Refusal, at_location, describe_location, under_settings, user_location
from tracejit.record.plain_numbers import PlainNumber
from tracejit.record.selections import Selections
from tracejit.record.state import NOTHING, State
from tracejit.util.devices import as_data, computed, on_host
from tracejit.util.quiet import call_as_wanted, raising

__all__ = ["Refusal", "at_location", "check_open", "describe_location", "is_open", "user_location"]

thread = current_recorder.thread
unwind = block.unwind
_array_class: Any = None
_number_class: Any = None


def register_array_class(cls: type) -> None:
    """Make results of the door instances of `cls` (called once, by tracejit.array)."""
    global _array_class
    _array_class = cls


def register_number_class(cls: type) -> None:
    """Let instances of `cls` stand for Python numbers (called once, by tracejit.record.number)."""
    global _number_class
    _number_class = cls


def array_class() -> Any:
    """Return the class of arrays."""
    return _array_class


def number_class() -> Any:
    """Return the class of numbers that are inputs of a trace."""
    return _number_class


def is_number(x: object) -> bool:
    """Return whether `x` stands for a Python number that is an input of a trace."""
    return type(x) is _number_class


class _NoCalls:
    """The stand-in for what looks at the calls of a recorded function (crossings.py) where nothing does."""

    @staticmethod
    def begin() -> None:
        """Do nothing."""

    @staticmethod
    def end() -> None:
        """Do nothing."""

    @staticmethod
    def is_for_user(frame: Any) -> bool:
        """Return False: nothing is known of who called a frame."""
        return False

    @staticmethod
    def is_around(frame: Any) -> bool:
        """Return True: nobody looks further."""
        return True

    @staticmethod
    def follows(frame: Any) -> bool:
        """Return False: the next instruction of a frame is not seen."""
        return False


NO_CALLS = _NoCalls()


class Recorder(RecordingBlock):
    """Records the operations of one evaluation of a function as a Graph.

    `accelerating` recorders make graphs that are replayed with other values: what an array's value decides in
    Python code (need_value) is noted as a guard, and what cannot be replayed at all as a refusal.
    """

    def __init__(self, name: str, accelerating: bool = False, state: State = NOTHING) -> None:
        super().__init__(state)
        self.name = name
        self.accelerating = accelerating
        self.closed = False
        self.graph = Graph()
        self.builder = Builder(self.graph, compute=True, owner=self)
        self.guards: list[ValueGuard] = []
        self.refusal: Refusal | None = None
        # Inputs whose values are needed as numbers, by the number of their leaf: the use, and its place.
        self.needed: dict[int, tuple[str, Where]] = {}
        self.varying: list[Any] = []  # objects that stand for such inputs
        self.calls: Any = NO_CALLS
        self.lent: Any = None  # the Number that Python takes for a true one (conversions.py)
        self.finite: set[Value] = set()  # that a guard says are finite
        self.has_values = True  # False: those of the arrays mean nothing (sizes_only.py)
        self.plain_numbers: dict[Value, PlainNumber] = {}  # that other libraries asked for (plain_numbers.py)
        self.sources: dict[Value, frozenset[int]] = {}  # of the inputs that stand for numbers
        # What operations took besides dlarrays, by id; None for what the function has made a dlarray of. A reference
        # would count as one that the function keeps.
        self.ndarrays: dict[int, weakref.ref[np.ndarray] | None] = {}
        self.through: dict[int, str] = {}  # names of ndarrays that are written, by the id of their elements
        self._guarded: set[tuple[Value, Decides]] = set()
        self.attempts = Attempts(self.graph)
        self.numbers: dict[Any, Any] = {}  # Python numbers that were operands, as arrays of this trace
        self.draws: dict[Any, Any] = {}  # draws of random numbers, by generator (tracejit.functions.rng)
        self.generator_draws: list[GeneratorDraw] = []  # Note [draws of generators]
        # By the ids of generators: Note [draws in programs] in functions/numpy_api.
        self.tokens: dict[int, Any] = {}
        self.draws_in_steps = 0  # which keep a step from being the body of a loop or a branch
        self.replayable = True  # False: right for this call only
        self.replaces = True  # ndarrays that the function makes, by arrays of the recording (made_arrays.py)
        self.has_replaced = False
        self.staying: dict[int, weakref.ref[np.ndarray]] = {}  # those that could not be replaced, by id
        self.memories = Memories()
        self.views = self.memories.views
        self._captured: dict[int, tuple[Any, Value]] = {}
        self._replaced: list[tuple[Any, Value]] = []  # of these, those that were changed outside the trace
        self._inputs: dict[int, Value] = {}  # of captured arrays, by the id of their elements
        self.rewritten: set[int] = (
            set()
        )  # ids of the elements of captured arrays that were changed outside the trace
        self.around: Any = None  # a weak reference to the recorder whose tape this recording is appended to
        self.masks: list[Any] = []  # by which arrays were selected from: selections.py
        self.settled: dict[Value, Any] = {}  # selections whose elements were gathered
        self.maps: list[Mapping] = []  # the functions that dlmap is recording, the innermost last
        # Backward functions that are recorded inside one another: functions/backward_bodies.py.
        self.backwards = 0
        self.assumed = 0  # steps and branches, one in the other, that are recorded and not made by this call
        self.keeps_graph = True  # False: it is of no use when the recording has ended

    def close(self) -> None:
        """End the recording: drop the values of all but constants (Note [arrays that are kept] in ended.py)."""
        self.memories.clear(self.around is None)
        self.closed = True
        for node in self.graph.nodes:  # which may be views of arrays that nobody else refers to
            for value in node.outputs:
                value.data = None
        # What finalisers and signal handlers compute from here on is none of this recording.
        with suspended():
            self.state.close()
        self._captured.clear()
        self._replaced.clear()
        self._inputs.clear()
        self._guarded.clear()
        self.finite.clear()
        self.masks.clear()
        self.settled.clear()
        self.numbers.clear()
        for value in self.graph.inputs:
            value.data = None
        if not self.keeps_graph:  # an array that is kept must not keep all others
            for node in self.graph.nodes:
                node.inputs = ()
            self.graph.nodes, self.graph.constants = [], []
            self.plain_numbers.clear()

    def guard(self, value: Value, decides: Decides, what: str) -> None:
        """Note that `what` lets a value, as it is now, decide what is recorded."""
        if (value, decides) not in self._guarded:
            self._guarded.add((value, decides))
            self._note_guard(value, decides, what)
        if self.attempts.is_lasting:
            noted = [guard for guard in self.guards if (guard.value, guard.decides) == (value, decides)]
            again = (
                partial(self._guard_again, noted[0])
                if noted
                else partial(self._note_guard, value, decides, what)
            )
            self.attempts.noted(again)

    def _note_guard(self, value: Value, decides: Decides, what: str) -> None:
        where = user_location()
        if value.data.size > MOST_VALUES:
            self.refuse(
                f"{what} takes {value.data.size} values out of the trace",
                where,
                f"up to {MOST_VALUES} are compared at each call. Keep them arrays (the functions of tracejit and "
                "NumPy; stop_gradient cuts the derivative), or return them and read them outside",
            )
            return
        decided = outcome(decides, on_host(value.data))
        self.guards.append(ValueGuard(value, decides, decided, what, where, len(self.graph.nodes)))

    def _guard_again(self, guard: ValueGuard) -> None:
        """Note a guard that an attempt has forgotten, where it was."""
        if (guard.value, guard.decides) not in self._guarded:
            self._guarded.add((guard.value, guard.decides))
            insort(self.guards, guard, key=attrgetter("at"))

    def need(self, source: int, what: str, where: Where) -> None:
        """Note that `what` needs the number of a leaf; the first one counts."""
        self.needed.setdefault(source, (what, where))
        if self.attempts.is_lasting:
            self.attempts.noted(partial(self.need, source, what, where))

    def refuse(self, reason: str, where: Where, remedy: str) -> None:
        """Note that this recording cannot be replayed; the first reason counts."""
        if self.refusal is None:
            self.refusal = Refusal(reason, where, remedy)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Run a block; if it raises an error, forget what it has noted that replays depend on."""
        guards, kept = (
            len(self.guards),
            (self.refusal, dict(self.needed), set(self._guarded), set(self.finite)),
        )
        taken = self.state.taken_count()

        def forget() -> None:
            del self.guards[guards:]
            self.refusal, self.needed, self._guarded, self.finite = kept
            self.state.forget_taken(taken)

        with self.attempts.attempt(forget):
            yield

    def input(self, array: Any) -> Any:
        """Return a traced array that stands for `array` as an input of the graph."""
        data = array._data
        value = self.builder.input(Aval(data.shape, None, data.dtype), data)
        traced = _array_class._wrap(data, array._format, value)
        self.memories.sources.append((traced, data))
        if not data.ndim and data.base is not None:  # an array, not a number (is_scalar in views.py)
            root, traced = traced, _array_class._wrap(data, array._format, value)
            self.memories.link(traced, root, None, {})
        return traced

    def draw(self, data: np.ndarray) -> Any:
        """Return a traced array that stands for an input of the graph which is nobody's memory."""
        return _array_class._wrap(data, None, self.builder.input(Aval(data.shape, None, data.dtype), data))

    def number_of(self, generator: Any) -> int:
        """Return the number of a generator among those that the recording draws from."""
        known = [*map(id, in_order(self.generator_draws))]
        return known.index(id(generator)) if id(generator) in known else len(known)

    def is_ndarray(self, data: np.ndarray) -> bool:
        """Return whether the function has an ndarray itself, not a dlarray of it."""
        found = self.ndarrays.get(id(data))
        return found is not None and found() is data

    def is_of_ndarrays(self, leaf: Value) -> bool:
        """Return whether a leaf is a constant other than a captured dlarray, by which one may differentiate."""
        if not leaf.is_constant:
            return False
        captured = (*self._captured.values(), *self._replaced)
        return all(self.is_ndarray(data) for data, value in captured if value is leaf)

    def restored(self) -> list[Change]:
        """Give arrays from outside that were written their own elements back, and return what they were to become."""
        for data, _ in [*self.memories.ndarrays.values()]:
            _refresh(self, data)
        self.memories.undo.clear()  # what was written at once stays
        if self.memories.meets:
            self.refuse(MIXED_WRITES[0], user_location(), MIXED_WRITES[1])
        return self.memories.restore(
            lambda array: _array_class._wrap(array._data, array._format, array._value)
        )

    def value(self, array: Any) -> Value:
        """Return the Value of an array; one that is not traced becomes a constant."""
        refresh(array, self)
        value: Value | None = array._value
        if value is not None and value.owner is self:
            return value
        if value is not None and is_open(array):
            outer = self.state.outer(self.builder, array)
            if outer is not None:
                return outer
            raise TraceError(
                f"an array of {describe(array)} that {value.owner.name} is recording is used inside {self.name}, "
                "which has a trace of its own; its value would become a constant there and it would have no "
                "gradient. Pass it as an argument."
            )
        data = array._data
        if is_private(array):
            self.state.number(data)  # whose elements may come from anywhere
            return self.builder.constant(data.copy())
        written = self.written(data)
        if written is not None:
            return self.value(written)
        self.memories.read[id(data)] = data
        captured_input = self.state.value(self.builder, data)
        if captured_input is not None:
            if self._inputs.setdefault(id(data), captured_input) is not captured_input:
                self.rewritten.add(id(data))
            return captured_input
        # A copy: the user may write to an array that the graph holds as a constant.
        captured = self._captured.get(id(data))
        if captured is None or captured[1].data.tobytes() != data.tobytes():
            if captured is not None:
                self.rewritten.add(id(data))
                self._replaced.append(captured)
            captured = self._captured[id(data)] = (data, self.builder.constant(data.copy()))
        return captured[1]

    def written(self, data: np.ndarray) -> Any:
        """Return the array that was written in the place of one from outside, or the part that it shows; or None."""
        if self.memories.ndarrays:
            _refresh(self, data)
        return self.memories.shown(data, self.name)

    def given_back(self, leaf: Any) -> Any:
        """Return a part of a result; the array that was written in the place of an ndarray."""
        if not self.memories.ndarrays or type(leaf) is _array_class or not isinstance(leaf, np.ndarray):
            return leaf
        written = self.written(leaf)
        return leaf if written is None else written

    def noted_arrays(self) -> list[np.ndarray]:
        """Return the ndarrays that are noted because they entered the recording, as often as they are."""
        captured = (*self._captured.values(), *self._replaced)
        return [*self.memories.read.values(), *[data for data, _ in captured], *self.state.noted_arrays()]

    def captured(self, data: np.ndarray, value: Value | None = None) -> Value | None:
        """Return the constant that stands for an untraced array, if there is one; it is `value` from now on if not."""
        if value is not None:
            self._captured.setdefault(id(data), (data, value))
        captured = self._captured.get(id(data))
        return captured[1] if captured and captured[1].data.tobytes() == data.tobytes() else None


def recorder() -> Recorder | None:
    """Return the recorder of this thread, or None outside any evaluation."""
    current: Recorder | None = thread.recorder
    return current


@contextmanager
def suspended() -> Iterator[None]:
    """Leave the recorder of this thread while the block runs."""
    kept, thread.recorder = thread.recorder, None
    try:
        yield
    finally:
        # An exception of a signal handler may leave this generator behind, which then ends when it is collected.
        if kept is not None and kept.is_running and thread.recorder is None:
            thread.recorder = kept


def wrap(data: np.ndarray, format: str | None = None, value: Value | None = None) -> Any:
    """Return an array of the registered class around `data`."""
    return _array_class._wrap(data, format, value)


def is_array(x: object) -> bool:
    """Return whether `x` is an array of the registered class."""
    return isinstance(x, _array_class)


def as_array(x: Any, where: str = "dlarray", argument: str = "x") -> Any:
    """Return `x`, the `argument` of the function `where`, as an array; unformatted unless it is one already."""
    if isinstance(x, _array_class):
        return x
    if type(x) is _number_class:
        return x._array
    if thread.recorder is not None and (array := joined(x)) is not None:
        return array
    array = _array_class._wrap(data_of(x, where, argument, _array_class), None, None)
    if thread.recorder is not None:
        known, ident = thread.recorder.ndarrays, id(array._data)
        if ident not in known or ((other := known[ident]) is not None and other() is not array._data):
            known[ident] = weakref.ref(array._data)
        if thread.recorder.memories.changed and (written := thread.recorder.written(array._data)) is not None:
            return written
    return array


def note_dlarray(given: Any, array: Any) -> None:
    """Note that the function made an array of something else, by which it may differentiate."""
    if array is not given and thread.recorder is not None:
        thread.recorder.ndarrays[id(array._data)] = None


def steers(array: Any) -> bool:
    """Return whether an array is an input of a trace that will be replayed, or was computed from one."""
    return array._value is not None and array._value.owner.accelerating


def is_captured(array: Any) -> bool:
    """Return whether an untraced array is one from outside that replays read again: an operation makes it traced."""
    current = thread.recorder
    return array._value is None and current is not None and current.accelerating and not is_private(array)


def need_value(array: Any, what: str, decides: Decides = Decides.VALUE) -> np.ndarray:
    """Return the data of `array` for `what` ("bool()", ...), which steers Python code outside the trace.

    In a trace that will be replayed, what the data decide becomes a guard.

    Raises:
        TraceError: if the array belongs to a closed trace.
    """
    check_open(array)
    if thread.recorder is not None and thread.recorder.maps and array._value is not None:
        check_same(thread.recorder, array, what)
    if thread.recorder is not None:
        refresh(array, thread.recorder)
    if steers(array):
        array._value.owner.guard(array._value, decides, what)
    elif array._value is None and thread.recorder is not None and not is_private(array):
        thread.recorder.state.taken(array._data)
    return on_host(array._data)  # type: ignore[no-any-return]


def describe(array: Any) -> str:
    """Return sizes with labels and dtype of an array, for messages."""
    return str(Aval(array._data.shape, array._format, array._data.dtype))


_lift: Callable[[Op, Sequence[Any], dict[str, Any]], Any]
_refresh: Callable[[Recorder, np.ndarray], None]


def refresh_with(refresh: Callable[[Recorder, np.ndarray], None]) -> None:
    """Have a function look whether plain NumPy has written memory that the recording writes, too: ndarrays.py."""
    global _refresh
    _refresh = refresh


def _values_of(arrays: Sequence[Any], current: Recorder) -> list[Value]:
    """Return the Values of operands, with what plain NumPy has written into their memory."""
    if current.memories.ndarrays:
        return [*map(current.value, arrays)]
    return [
        a._value if a._value is not None and a._value.owner is current else current.value(a) for a in arrays
    ]


def refresh(array: Any, current: Recorder) -> None:
    """Take over what plain NumPy has written into the memory of an array that the recording has written."""
    if current.memories.ndarrays:
        change = current.memories.written.get(id(root_of(array)))
        if change is not None and id(change.data) in current.memories.ndarrays:
            _refresh(current, change.data)


_check_powers: Callable[[Sequence[Any], Aval], None]


def check_powers_with(check: Callable[[Sequence[Any], Aval], None]) -> None:
    """Have a function look at the operands of powers of integers, which may raise errors: integer_powers.py."""
    global _check_powers
    _check_powers = check


def lift_with(lift: Callable[[Op, Sequence[Any], dict[str, Any]], Any]) -> None:
    """Have a function compute what ops give of selections; it gives None where they have to be settled."""
    global _lift
    _lift = lift


def apply(name: str, *operands: Any, **params: Any) -> Any:
    """Apply the op `name` to arrays (or what as_array takes) and return an array, or a tuple of arrays.

    Formatted operands of an elementwise op are aligned by label first. Outside any recorder the op's
    reference computes; inside one it computes and a node is appended.
    """
    if Selections.met and (lifted := _lift(OPS[name], operands, params)) is not None:
        return lifted
    if monitor.current.profile is None and monitor.current.trace is None:
        return _apply(OPS[name], operands, params)
    # As monitor.paused() does: the profile function would be called about forty times for each operation.
    profile, trace = monitor.pause()
    try:
        return _apply(OPS[name], operands, params)
    finally:
        monitor.go_on(profile, trace)


def _apply(op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    cls = _array_class
    arrays: Sequence[Any] = operands
    for x in operands:
        if type(x) is not cls:
            arrays = _operands(op, operands)
            break
    if op.kind is Kind.ELEMENTWISE:
        format = arrays[0]._format
        for array in arrays:
            if array._format != format:
                arrays = _align(arrays)
                break
    try:
        return halves.apply(op, arrays, params, apply_op) if Halves.met else apply_op(op, arrays, params)
    except TraceJitError:
        raise
    except (MemoryError, ValueError, OverflowError) as error:
        avals = [Aval(array._data.shape, array._format, array._data.dtype) for array in arrays]
        raise impossible(op.title, op.infer(*avals, **params), error) from error


def apply_op(op: Op, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply a record to arrays that are aligned already."""
    current = thread.recorder
    avals: Any = op.infer(
        *[
            a._value.aval
            if a._format is None and a._value is not None
            else Aval(a._data.shape, a._format, a._data.dtype)
            for a in arrays
        ],
        **params,
    )
    if current is None:
        refuse_other_thread(op.name, arrays)
        result = call_as_wanted(computed, (op, [a._data for a in arrays], params))
        if type(avals) is Aval:
            if type(result) is not np.ndarray:
                result = as_data(result)
            elif op.view is not None and not arrays[0]._data.ndim and arrays[0]._data.base is None:
                # From a number NumPy makes an array with an element of its own, or one that is read-only.
                result = result.copy() if result.flags.writeable else result
            return _array_class._wrap(result, avals.format, None)
        return tuple(
            _array_class._wrap(as_data(part), aval.format, None)
            for part, aval in zip(result, avals, strict=True)
        )
    if current.memories.has_private and _are_private(arrays):
        return _private(op, arrays, params, current)
    builder = current.builder
    builder.location = user_location()
    if wanted := raising():
        current.refuse(*under_settings(wanted, builder.location))
    if op is _POWER and avals.dtype.kind in "iu":
        _check_powers(arrays, avals)
    values = _values_of(arrays, current)
    try:
        outputs = builder.append(op, values, params, avals)
    except BoundsError:
        # A caller that catches the error goes on as these indices decide.
        current.refuse(f"{op.name} met an index out of range", builder.location, "check indices outside")
        raise
    if type(avals) is Aval:
        result = _array_class._wrap(outputs.data, avals.format, outputs)
        if op.view is not None and (op is not _RESHAPE or is_view(outputs, values[0], arrays[0], params)):
            base = arrays[0]
            if (
                not base._data.ndim
                and type(base._view) is not tuple
                and id(base) not in current.memories.written
            ):
                if not result._data.ndim:
                    return result  # a part of a number is a number
                base = wrap(base._data, base._format, base._value)  # which no write changes
            result._view = (base, op, params)  # as Memories.link() does, without the call
            current.views.append(result)
            if len(current.views) > current.memories.most_views:
                current.memories.forget()
        return result
    return tuple(
        _array_class._wrap(value.data, aval.format, value) for value, aval in zip(outputs, avals, strict=True)
    )


_RESHAPE = OPS["reshape"]  # NumPy copies for some reshapes
_POWER = OPS["pow"]  # NumPy refuses some powers of integers


def _are_private(arrays: Sequence[Any]) -> bool:
    """Return whether all arrays are private to the recording, or constant numbers."""
    return all(
        (a._value is not None and a._value.is_constant and not a._data.ndim)
        or (a._value is None and is_private(a))
        for a in arrays
    ) and any(a._value is None for a in arrays)  # fmt: skip


def _private(op: Op, arrays: Sequence[Any], params: dict[str, Any], current: Recorder) -> Any:
    """Apply an op to private arrays at once; the results are private too."""
    with suspended():
        results = apply_op(op, [wrap(a._data, a._format) for a in arrays], params)
    for result in results if type(results) is tuple else (results,):
        if op.view is not None and np.may_share_memory(result._data, arrays[0]._data):
            current.memories.link(result, arrays[0], op, params)
        else:
            current.memories.private(result, all(is_ndarray(a) for a in arrays if a._value is None))
    return results


def _operands(op: Op, operands: Sequence[Any]) -> list[Any]:
    cls = _array_class
    arrays = list(operands)
    dtypes: list[np.dtype] | None = None
    current_recorder = thread.recorder
    for i, x in enumerate(operands):
        if type(x) is cls:
            continue
        if type(x) in (float, int, complex, _number_class):
            if dtypes is None:
                dtypes = [y._data.dtype if type(y) is cls else y.dtype
                         for y in operands
                         if type(y) is cls or isinstance(y, (np.ndarray, np.generic))]  # fmt: skip
            try:
                arrays[i] = (
                    x.weak(dtypes, op.name in COMPARISONS) if type(x) is _number_class else _number(x, dtypes)
                )
            except OverflowError:
                number = x if type(x) is int else x.needed("arithmetic with integers")
                data = out_of_range(op, number, dtypes, (i, len(operands)), names_of(op, i))
                arrays[i] = _constant(x, data)
        elif isinstance(x, np.generic) and current_recorder is not None:
            arrays[i] = _constant(x, as_array(x, *names_of(op, i))._data)
        else:
            arrays[i] = as_array(x, *names_of(op, i))
    return arrays


def _constant(x: Any, data: np.ndarray) -> Any:
    """Return a number that a function reads as an array."""
    current = thread.recorder
    if current is None:
        return wrap(data)
    if type(x) is not _number_class:
        current.state.number(x)
    return wrap(data, None, current.builder.constant(data))


def _number(x: float, dtypes: list[np.dtype]) -> Any:
    """Return a Python number as an array; inside a recorder, equal numbers are one constant."""
    current = thread.recorder
    if current is None:
        return _array_class._wrap(weak_array(x, dtypes), None, None)
    key = (repr(x) if type(x) is complex else x, type(x), *dtypes)
    constant = current.numbers.get(key) if x else None  # 0.0 equals -0.0
    if constant is None:
        current.state.number(x)
        value = current.builder.constant(weak_array(x, dtypes))
        constant = current.numbers[key] = _array_class._wrap(value.data, None, value)
    return constant


def align(arrays: Sequence[Any]) -> Sequence[Any]:
    """Return operands of an op that computes element by element, aligned by label if their formats differ."""
    format = arrays[0]._format
    return arrays if all(array._format == format for array in arrays) else _align(arrays)


def _align(arrays: Sequence[Any]) -> list[Any]:
    """Return operands of equal rank and format (Note [label alignment])."""
    formats = [a._format for a in arrays]
    merged = ""
    for format in formats:
        if format is not None:
            merged = merge_formats(merged, format) if merged else format
    ndim = max(a._data.ndim for a in arrays)
    if ndim > len(merged):
        merged = "U" * (ndim - len(merged)) + merged
    aligned = []
    for array, format in zip(arrays, formats, strict=True):
        if format is None or format == merged:
            aligned.append(array)
            continue
        axes = axes_in(format, merged)
        order = tuple(axis for axis in axes if axis is not None)
        if order != tuple(range(len(order))):
            array = apply_op(OPS["transpose"], (array,), {"axes": order})
        shape = tuple(1 if axis is None else array._data.shape[order.index(axis)] for axis in axes)
        if shape != array._data.shape:
            array = apply_op(OPS["reshape"], (array,), {"shape": shape})
        aligned.append(wrap(array._data, merged, array._value))
    return aligned


# Note [label alignment]
# "CB" (4, 8) with "BCT" (8, 4, 5): the operand with more labels leads, so the result is "BCT"; the other
# operand is transposed to (8, 4) and reshaped to (8, 4, 1). An unformatted operand is left as it is and
# broadcasts by position, from the last axis. After this step the op is positional.
