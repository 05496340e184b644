# SPDX-License-Identifier: BSD-3-Clause
"""The call path of a replay, generated for one trace: from the arguments of a call to its result.

Walking containers and comparing keys in general takes longer than a small program runs. So for each trace
a function is generated that takes just this structure apart, has the sizes and dtypes of the arrays checked
as they are read, and puts just this result together. It gives MISS for arguments of another kind; nothing has run then,
and the general way decides.

Note [call path]
The function is

    def replay(args):
        try:
            frame = frames.pop()
        except IndexError:
            frame = new_frame()
        found = enter(args, frame)
        if found is frame:
            found = again(frame, args)
            if found is frame:
                frames.append(frame)
                return MISS
        frames.append(frame)
        return found

where a frame has the results of earlier calls (Note [recycling]), and `enter` is compiled: it takes arguments apart,
runs the program and puts the result together by tables (Note [patterns]). These know tuples, lists and dicts with
strings as keys. Anything else is taken apart, or put together, by generated Python. For step(params, x) with
params = Parameters(w) and a result (loss, Parameters(w)) it is

        if type(args) is not tuple or len(args) != 2:
            return MISS
        a0, a1 = args
        if type(a0) is not k0:
            return MISS
        a2 = a0.w
        if type(a2) is dlarray:
            if a2._format != None or a2._value is not None:
                return MISS
            a2 = a2._data
        elif type(a2) is not ndarray:
            return MISS
        ...
        args = (a2, a1)
        ...
        r0, r1 = found
        frames.append(frame)
        return (r0, k1((r1,)))

Programs that check indices, or whose results are large, make new arrays instead:

        o0 = empty((), f0)
        o1 = empty((64, 10), f0)
        if launch((a2, a1), (o0, o1)):
            return MISS
        r0 = new(dlarray)
        r0._data = o0
        r0._format = None
        r0._value = None
        ...
"""

import linecache
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import Aval
from tracejit.call.recycle import Recycler
from tracejit.call.signature import ArrayPart, Key, NumberPart
from tracejit.call.tables import Pattern, Recipe
from tracejit.record.guards import GuardFailed
from tracejit.record.state import NOTHING, State
from tracejit.tree import LEAF, TreeDef

MISS = object()

_INDENT = "    "
_numbers = count()  # of call paths


def generate(
    key: Key,
    outputs: Sequence[tuple[Aval, str | None]],
    results: Sequence[Any],
    treedef: TreeDef,
    kind_of_output: Callable[[Any], type | None],
    launch: Callable[..., int],
    state: State = NOTHING,
    guarded: bool = False,
    recycler: Recycler | None = None,
    pattern: Pattern | None = None,
    recipe: Recipe | None = None,
) -> Callable[[Any], Any] | None:
    """Return the call path of a trace, or None if its arguments cannot be compared fast.

    Args:
        key: the key of the trace; its structure is that of (args, kwargs).
        outputs: shape, dtype and format of the arrays of the result.
        results: leaves of the result, array or constant.
        treedef: of the result.
        kind_of_output: what the next output is as a leaf of the result, an array or a number; None for a constant.
        launch: runs the program on tuples of input and output arrays; gives 0 if it has.
        state: what the trace reads besides arguments.
        guarded: whether the program has one more output, which says whether the others count.
        recycler: keeps results of earlier calls to fill them again.
        pattern: by which its entry takes arguments apart, if it does.
        recipe: by which its entry puts the result together, if it does.
    """
    generator = _Generator(launch, state, guarded)
    if pattern is None or recycler is None:
        arrays = generator.all_arrays(key)
        if arrays is None:
            return None
        if recycler is None:
            generator.fill_new(outputs, arrays)
        else:
            generator.line(f"args = {_tuple(arrays)}")
            generator.fill_again(len(outputs), recycler, (), recipe is not None)
    else:
        generator.fill_again(len(outputs), recycler, generator.read(), recipe is not None)
    if recycler is None or recipe is None:
        generator.assemble(results, treedef, kind_of_output)
    return generator.function()


class _Generator:
    def __init__(self, launch: Callable[..., int], state: State, guarded: bool) -> None:
        self.state = state
        self.guarded = guarded
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "MISS": MISS, "dlarray": dlarray, "ndarray": np.ndarray, "empty": np.empty, "new": object.__new__,
            "launch": launch, "fetch": state.fetch, "accepted": state.accepted, "OrderedDict": OrderedDict,
            "truth": np.dtype(bool), "GuardFailed": GuardFailed, "array": np.array,
        }  # fmt: skip
        self.variables = (f"a{i}" for i in count())
        self.constants = (f"k{i}" for i in count())
        self.orders: Iterator[Any] = iter(())

    def all_arrays(self, key: Key) -> list[str] | None:
        """Emit what takes the arguments apart; return the inputs of the program, or None if that cannot be."""
        arrays: list[str] = []
        self.orders = iter(key.orders)
        if not self.take_apart(key.structure, "args", iter(key.parts), arrays):
            return None
        return [*arrays, *self.read()]

    def read(self) -> list[str]:
        """Emit what compares all that is read besides arguments; return the arrays among it."""
        if self.state.inlined is not None:
            lines, names, found = self.state.inlined
            self.names |= names
            for line in lines:
                self.line(line)
            return found
        if self.state.fetches:
            self.line("read = fetch()")
            self.miss_if("read is None")
            return ["*read"]
        return []

    def fill_again(self, made: int, recycler: Recycler, read: Sequence[str], is_result: bool) -> None:
        """Emit the launch on results of earlier calls; what it gives is the result, or the arrays for it."""
        self.names |= {"frames": recycler.frames, "new_frame": recycler.new_frame, "again": recycler.again}
        self.names["enter"] = recycler.enter
        more = ""
        if read:
            self.line(f"more = {_tuple(read)}")
            more = ", more"
        for line in (
            "try:",
            f"{_INDENT}frame = frames.pop()",
            "except IndexError:",
            f"{_INDENT}frame = new_frame()",
            f"found = enter(args, frame{more})",
            "if found is frame:",
            f"{_INDENT}found = again(frame, args{more})",
            f"{_INDENT}if found is frame:",
            f"{_INDENT * 2}frames.append(frame)",
            f"{_INDENT * 2}return MISS",
        ):
            self.line(line)
        if made and not is_result:
            self.line("".join(f"r{i}, " for i in range(made)) + "= found")
        self.line("frames.append(frame)")
        if self.state.accepts:
            self.line("accepted()")
        if is_result:
            self.line("return found")

    def assemble(
        self, results: Sequence[Any], treedef: TreeDef, kind_of_output: Callable[[Any], type | None]
    ) -> None:
        """Emit what puts the result together."""
        kinds = [kind for kind in map(kind_of_output, results) if kind is not None]
        for i, kind in enumerate(kinds):
            if kind is not dlarray:
                self.line(f"r{i} = {self.constant(kind)}(r{i}._data.item())")
        number = count()
        leaves = iter([
            self.given(leaf) if kind_of_output(leaf) is None else f"r{next(number)}" for leaf in results
        ])  # fmt: skip
        self.line(f"return {self.put_together(treedef.structure, leaves, iter(treedef.orders))}")

    def function(self) -> Callable[[Any], Any]:
        """Return the function of all that was emitted."""
        text = "def replay(args):\n" + "".join(f"    {line}\n" for line in self.lines)
        file = f"<tracejit call path {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), self.names)
        replay: Callable[[Any], Any] = self.names.pop("replay")
        # The text goes with the function.
        weakref.finalize(replay, linecache.cache.pop, file, None).atexit = False
        return replay

    def fill_new(self, outputs: Sequence[tuple[Aval, str | None]], arrays: Sequence[str]) -> None:
        """Emit the launch on new arrays."""
        for i, (aval, _) in enumerate(outputs):
            self.line(f"o{i} = empty({aval.shape!r}, {self.constant(aval.dtype)})")
        made = [f"o{i}" for i in range(len(outputs))]
        if self.guarded:
            self.line("holds = empty((), truth)")
            made.append("holds")
            self.line("try:")
            self.line(f"{_INDENT}if launch({_tuple(arrays)}, {_tuple(made)}):")
            self.line(f"{_INDENT * 2}return MISS")
            self.line("except GuardFailed:")
            self.line(f"{_INDENT}return MISS")
            self.miss_if("not holds")
        else:
            self.miss_if(f"launch({_tuple(arrays)}, {_tuple(made)})")
        if self.state.accepts:
            self.line("accepted()")
        for i, (_, format) in enumerate(outputs):
            self.line(f"r{i} = new(dlarray)")
            self.line(f"r{i}._data = o{i}")
            self.line(f"r{i}._format = {format!r}")
            self.line(f"r{i}._value = None")

    def line(self, text: str) -> None:
        self.lines.append(text)

    def constant(self, value: Any) -> str:
        name = next(self.constants)
        self.names[name] = value
        return name

    def given(self, leaf: Any) -> str:
        """Return the expression for a leaf of the result that is no array; an ndarray is copied each time."""
        return f"{self.constant(leaf)}.copy()" if isinstance(leaf, np.ndarray) else self.constant(leaf)

    def miss_if(self, condition: str) -> None:
        self.line(f"if {condition}:")
        self.line(f"{_INDENT}return MISS")

    def take_apart(self, structure: Any, source: str, parts: Iterator[Any], arrays: list[str]) -> bool:
        """Emit what binds and checks the leaves below `source`; return whether all can be checked."""
        if structure is LEAF:
            return self.leaf(source, next(parts), arrays)
        kind, names, children = structure
        if kind is type(None):
            self.miss_if(f"{source} is not None")
            return True
        kind_name = kind.__name__ if kind in (tuple, list, dict, OrderedDict) else self.constant(kind)
        variables = [next(self.variables) for _ in children]
        if kind is dict or kind is OrderedDict:
            order = next(self.orders) or names
            self.miss_if(f"type({source}) is not {kind_name} or [*{source}] != {self.constant(list(order))}")
            if order:
                places = dict(zip(names, variables, strict=True))
                self.line(f"{', '.join(places[name] for name in order)}, = {source}.values()")
        elif names is None or issubclass(kind, tuple):
            self.miss_if(f"type({source}) is not {kind_name} or len({source}) != {len(children)}")
            if variables:
                self.line(f"{', '.join(variables)}, = {source}")
        else:
            self.miss_if(f"type({source}) is not {kind_name}")
            for variable, name in zip(variables, names, strict=True):
                self.line(f"{variable} = {source}.{name}")
        return all(
            self.take_apart(child, variable, parts, arrays)
            for child, variable in zip(children, variables, strict=True)
        )

    def leaf(self, source: str, part: Any, arrays: list[str]) -> bool:
        if isinstance(part, ArrayPart):
            self.line(f"if type({source}) is dlarray:")
            self.line(f"{_INDENT}if {source}._format != {part.format!r} or {source}._value is not None:")
            self.line(f"{_INDENT * 2}return MISS")
            self.line(f"{_INDENT}{source} = {source}._data")
            if part.format is None:
                self.line(f"elif type({source}) is not ndarray:")
            else:
                self.line("else:")
            self.line(f"{_INDENT}return MISS")
            arrays.append(source)
            return True
        kind = part.kind
        if isinstance(part, NumberPart):
            fits = "" if kind is float else f" or not {-(1 << 63)} <= {source} < {1 << 63}"
            self.miss_if(f"type({source}) is not {kind.__name__}{fits}")
            self.line(f"{source} = array({source})")
            arrays.append(source)
            return True
        value = part.value
        if kind is float:
            value = value[1]
            if not value or value != value:  # noqa: PLR0124 (0.0 equals -0.0, and NaN not even itself)
                return False
        elif kind not in (int, bool, str, bytes):
            # By identity: an equal value that is another object goes the general way.
            self.miss_if(f"{source} is not {self.constant(value)}")
            return True
        self.miss_if(f"type({source}) is not {kind.__name__} or {source} != {self.constant(value)}")
        return True

    def put_together(self, structure: Any, leaves: Iterator[str], orders: Iterator[Any]) -> str:
        """Return the expression that makes a container of the names in `leaves`."""
        if structure is LEAF:
            return next(leaves)
        kind, names, children = structure
        if kind is type(None):
            return "None"
        if kind is dict or kind is OrderedDict:
            order = next(orders) or names
            parts = dict(zip(names, [self.put_together(c, leaves, orders) for c in children], strict=True))
            items = [(repr(k) if type(k) in (str, int) else self.constant(k), parts[k]) for k in order]
            if kind is dict:
                return "{" + ", ".join(f"{k}: {part}" for k, part in items) + "}"
            return "OrderedDict((" + "".join(f"({k}, {part}), " for k, part in items) + "))"
        given = [self.put_together(child, leaves, orders) for child in children]
        if kind is list:
            return f"[{', '.join(given)}]"
        if kind is tuple:
            return _tuple(given)
        if issubclass(kind, tuple):
            return f"{self.constant(kind._make)}({_tuple(given)})"
        return f"{self.constant(_dataclass_maker(kind, names))}({_tuple(given)})"


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _dataclass_maker(kind: type, names: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    def make(parts: Sequence[Any]) -> Any:
        instance: Any = object.__new__(kind)
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(instance, name, part)
        return instance

    return make
