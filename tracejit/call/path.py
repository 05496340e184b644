# SPDX-License-Identifier: BSD-3-Clause
"""The call path of a trace: a generated function from the arguments of a call to its result.

Walking containers and comparing keys in general takes longer than a small program runs. So for each trace
a function is generated that flattens just this structure, has the sizes and dtypes of the arrays checked as they are
read, and assembles just this result. For any other arguments it returns MISS before anything has run, and the general
way decides.

Note [call path]
The function is

    def replay(args):
        try:
            frame = frames.pop()
        except IndexError:
            frame = new_frame()
        result = enter(args, frame)
        if result is frame:
            result = again(frame, args)
        if result is MISS:
            frames.append(frame)
            return MISS
        frames.append(frame)
        return result

where a frame has the results of earlier calls (Note [recycling]), and `enter` is compiled: it flattens the arguments,
runs the program and assembles the result by tables (Note [patterns]). The tables know tuples, lists and dicts with
strings as keys. Anything else is flattened, or assembled, by generated Python. For step(params, x) with params =
Parameters(w) and a result (loss, Parameters(w)) it is

        if type(args) is not tuple or len(args) != 2:
            return MISS
        a0, a1 = args
        if type(a0) is not k0:
            return MISS
        a2 = a0.w
        if type(a2) is dlarray:
            if a2._format is not None or a2._value is not None:
                return MISS
            a2 = a2._data
        elif type(a2) is not ndarray:
            return MISS
        ...
        args = (a2, a1)
        ...
        r0, r1 = result
        frames.append(frame)
        return (r0, k1((r1,)))

Programs whose results are large make new arrays instead:

        o0 = empty((), f0)
        o1 = empty((64, 10), f0)
        if launch((a2, a1), (o0, o1)):
            return MISS
        r0 = new(dlarray)
        r0._data = o0
        r0._format = None
        r0._value = None
        r0._view = None
        ...
"""

from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from itertools import count
from typing import Any

import numpy as np

from tracejit import containers, tree
from tracejit.array import dlarray
from tracejit.aval import NUMPY_NUMBERS
from tracejit.call.path_text import GeneratedPath, PathText, path_function
from tracejit.call.recycle import Recycler
from tracejit.call.result import MISS, NumberLeaf, ResultArray, ResultLayout, is_output
from tracejit.call.signature import ArrayPart, Key, NumberPart, array_part, other_format, packed
from tracejit.call.tables import Tables
from tracejit.record.argument_containers import PassedContainer
from tracejit.record.generator_draws import GeneratorDraws
from tracejit.record.guards import GuardFailed
from tracejit.record.state import NOTHING, State
from tracejit.util.distinct import keys_of
from tracejit.util.named_tuples import NamedTuple

_INDENT = "    "
_NO_TABLES = Tables()


class Stored(NamedTuple):
    """The statements that store.

    lines       the statements
    names       that they use
    returns     whether the second part of the result is a list of the arrays for them, `stored`
    takes       whether they take arguments of the call, by expressions of argument_places()
    containers  the containers among the arguments
    used        the numbers of those that are changed, or put elsewhere; each has to be another one than the others
    """

    lines: Sequence[str]
    names: dict[str, Any]
    returns: bool = True
    takes: bool = False
    containers: Sequence[str] = ()
    used: Sequence[int] = ()


def generate(
    key: Key,
    result: ResultLayout,
    outputs: Sequence[ResultArray],
    launch: Callable[..., int],
    state: State = NOTHING,
    guarded: bool = False,
    recycler: Recycler | None = None,
    tables: Tables = _NO_TABLES,
    written: Container[int] = (),
    stores: Stored | None = None,
    is_certain: bool = False,
) -> GeneratedPath | None:
    """Return the call path of a trace, or None if its arguments cannot be compared fast.

    Args:
        key: the key of the trace; its structure is that of (args, kwargs).
        result: the structure of the result.
        outputs: shape, dtype, format and order of the outputs of the program among its leaves.
        launch: runs the program on tuples of input and output arrays; returns 0 if it has.
        state: what the trace reads besides arguments.
        guarded: whether the program has one more output, which says whether all guards hold.
        recycler: keeps results of earlier calls to fill them again.
        tables: by which the recycler's entry point flattens the arguments and assembles the result.
        written: the numbers of the arrays that the program writes.
        stores: what is done with the second part of the result; only the first part is returned.
        is_certain: whether the trace applies if the arguments and the state that it reads do.
    """
    generator = PathGenerator(launch, state, guarded, written, is_certain)
    generator.keep_arguments(stores)
    by_recipe = recycler is not None and tables.recipe is not None
    if recycler is not None and tables.pattern is not None:
        generator.fill_again(len(outputs), recycler, generator.read(), by_recipe)
    else:
        try:
            arrays = generator.flatten(key)
            if state.generator_draws:  # of which nothing may be touched for the arguments of another trace
                generator.compare(arrays, key)
            arrays = [*arrays, *generator.read()]
        except UncheckableError:
            return None
        if recycler is None:
            generator.fill_new(outputs, arrays)
        else:
            generator.line(f"inputs = {_tuple(arrays)}")
            generator.fill_again(len(outputs), recycler, (), by_recipe, "inputs")
    if not by_recipe:
        generator.assemble(result, stores)
    if stores is not None:
        generator.store(stores)
    return generator.function()


class UncheckableError(Exception):
    """An argument cannot be compared by an expression."""


class PathGenerator:
    def __init__(
        self, launch: Callable[..., int], state: State, guarded: bool, written: Container[int],
        is_certain: bool = False,
    ) -> None:  # fmt: skip
        self.written = written
        self.is_certain = is_certain
        self.state = state
        self.guarded = guarded
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "MISS": MISS, "dlarray": dlarray, "ndarray": np.ndarray, "empty": np.empty, "new": object.__new__,
            "launch": launch, "fetch": state.fetch, "accepted": state.accepted, "rejected": state.rejected,
            "OrderedDict": OrderedDict,
            "truth": np.dtype(bool), "GuardFailed": GuardFailed, "array": np.array,
        }  # fmt: skip
        self.read_lines = range(0)
        self.variables = (f"a{i}" for i in count())
        self.constants = (f"k{i}" for i in count())

    def keep_arguments(self, stores: Stored | None) -> None:
        """Emit a name for the arguments, if what is stored takes them; `args` may become the inputs."""
        if stores is None or not stores.takes:
            return
        self.line("given = args")
        if stores.used and len(stores.containers) > 1:
            idents = [f"id({place})" for place in stores.containers]
            used = ", ".join([idents[number] for number in stores.used])
            others = "".join([f"{ident}, " for n, ident in enumerate(idents) if n not in stores.used])
            self.line("try:")
            self.line(f"{_INDENT}used = {{{used}}}")
            self.line(f"{_INDENT}if len(used) != {len(stores.used)} or not used.isdisjoint(({others})):")
            self.line(f"{_INDENT * 2}return MISS")
            self.line("except (AttributeError, LookupError, TypeError):")
            self.line(f"{_INDENT}return MISS")

    def flatten(self, key: Key) -> list[str]:
        """Emit code that checks and flattens the arguments; return the inputs of the program among them."""
        parts = iter(key.parts)
        inputs: list[str] = []

        def leaf(source: str) -> None:
            if self.leaf(source, next(parts), len(inputs) in self.written):
                inputs.append(source)

        tree.walk(key.structure, key.orders, "args", leaf, self.container)
        return inputs

    def compare(self, arrays: Sequence[str], key: Key) -> None:
        """Emit code that compares the arrays among the arguments."""
        parts = [part for part in key.parts if isinstance(part, (ArrayPart, NumberPart))]
        self.names |= {"part_of": array_part, "packed": packed}
        for variable, part in zip(arrays, parts, strict=True):
            if isinstance(part, ArrayPart):
                expected = self.constant(part._replace(format=None))
                self.miss_if(f"part_of({variable}) != {expected} or packed({variable}) is not {variable}")

    def read(self) -> list[str]:
        """Emit code that checks all that is read besides arguments; return the arrays among it."""
        inlined = self.state.inlined_for_good if self.is_certain else self.state.inlined
        if inlined is not None:
            lines, names, arrays = inlined
            self.names |= names
            self.read_lines = range(len(self.lines), len(self.lines) + len(lines))
            for line in lines:
                self.line(line)
            return arrays
        if self.state.fetches:
            self.line("read = fetch()")
            self.miss_if("read is None")
            return ["*read"]
        return []

    def fill_again(
        self, outputs: int, recycler: Recycler, read: Sequence[str], is_result: bool, given: str = "args"
    ) -> None:
        """Emit the launch on what is given and results of earlier calls; it returns the result, or its arrays."""
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
            f"result = enter({given}, frame{more})",
            "if result is frame:",
            f"{_INDENT}result = again(frame, {given}{more})",
            "if result is MISS:",
            f"{_INDENT}frames.append(frame)",
            *self.dropped(1),
        ):
            self.line(line)
        if outputs and not is_result:
            self.line("".join(f"r{i}, " for i in range(outputs)) + "= result")
        self.line("frames.append(frame)")
        self.accept()
        if is_result:
            self.line("return result")

    def assemble(self, result: ResultLayout, stores: Stored | None) -> None:
        """Emit the expression of the result."""
        containers = () if stores is None else stores.containers
        for i, leaf in enumerate(filter(is_output, result.leaves)):
            if type(leaf) is NumberLeaf:
                self.line(f"r{i} = {self.constant(leaf.kind)}(r{i}._data.item())")
        numbers = count()
        leaves = iter([
            f"r{next(numbers)}" if is_output(leaf)
            else containers[leaf.number] if type(leaf) is PassedContainer
            else self.constant_leaf(leaf)
            for leaf in result.leaves
        ])  # fmt: skip
        treedef = result.treedef
        self.line(
            f"return {tree.fold(treedef.structure, treedef.orders, leaves.__next__, self.container_of)}"
        )

    def store(self, stores: Stored) -> None:
        """Emit stores before the function returns."""
        result = self.lines.pop().removeprefix("return ")
        self.names |= stores.names
        target = "result, stored" if stores.returns else "result"
        for line in (f"{target} = {result}", *stores.lines, "return result"):
            self.line(line)

    def function(self) -> GeneratedPath:
        """Return the function of all that was emitted."""
        text = None
        draws = self.state if isinstance(self.state, GeneratorDraws) else None
        if self.read_lines and (draws is None or (draws.are_first and not self.is_certain)):
            start, end = self.read_lines.start, self.read_lines.stop - (draws is not None)
            text = PathText(self.lines[:start], self.lines[start:end], self.lines[end:], self.names, draws)
        return GeneratedPath(path_function(self.lines, self.names), text)

    def fill_new(self, outputs: Sequence[ResultArray], arrays: Sequence[str]) -> None:
        """Emit the launch on new arrays."""
        for i, (aval, _, order) in enumerate(outputs):
            ordered = "" if order == "C" else f", {order!r}"
            self.line(f"o{i} = empty({aval.shape!r}, {self.constant(aval.dtype)}{ordered})")
        filled = [f"o{i}" for i in range(len(outputs))]
        if self.guarded:
            self.line("holds = empty((), truth)")
            filled.append("holds")
            self.line("try:")
            for line in (
                f"{_INDENT}if launch({_tuple(arrays)}, {_tuple(filled)}):",
                *self.dropped(2),
                "except GuardFailed:",
                *self.dropped(1),
                "if not holds:",
                *self.dropped(1),
            ):
                self.line(line)
        else:
            for line in (f"if launch({_tuple(arrays)}, {_tuple(filled)}):", *self.dropped(1)):
                self.line(line)
        self.accept()
        self.wrap(outputs)

    def wrap(self, outputs: Sequence[ResultArray]) -> None:
        """Emit the dlarrays of new arrays."""
        for i, (_, format, _) in enumerate(outputs):
            self.line(f"r{i} = new(dlarray)")
            self.line(f"r{i}._data = o{i}")
            self.line(f"r{i}._format = {format!r}")
            self.line(f"r{i}._value = None")
            self.line(f"r{i}._view = None")

    def line(self, text: str) -> None:
        self.lines.append(text)

    def constant(self, value: Any) -> str:
        name = next(self.constants)
        self.names[name] = value
        return name

    def constant_leaf(self, leaf: Any) -> str:
        """Return the expression for a constant leaf of the result; an ndarray is copied each time."""
        return f"{self.constant(leaf)}.copy()" if isinstance(leaf, np.ndarray) else self.constant(leaf)

    def dropped(self, depth: int) -> list[str]:
        """Return the statements, indented, that end a replay which does not apply."""
        if self.is_certain:  # and has drawn numbers without a note of the states before
            lines = ['raise AssertionError("a trace that was certain to apply did not")']
        else:
            lines = [*(["rejected()"] if self.state.generator_draws else []), "return MISS"]
        return [f"{_INDENT * depth}{line}" for line in lines]

    def accept(self) -> None:
        """Emit what follows a replay whose results are returned."""
        if self.state.accepts and not self.is_certain:
            self.line("accepted()")

    def miss_if(self, condition: str) -> None:
        self.line(f"if {condition}:")
        self.line(f"{_INDENT}return MISS")

    def unpack(self, variables: Sequence[str], source: str) -> None:
        if variables:
            self.line(f"{', '.join(variables)}, = {source}")

    def container(self, source: str, kind: type, names: Any, length: int) -> Sequence[str]:
        """Emit the check of a container; return the variables that its children are bound to."""
        if kind is type(None):
            self.miss_if(f"{source} is not None")
            return ()
        kind_name = kind.__name__ if kind in (tuple, list, dict, OrderedDict) else self.constant(kind)
        variables = [next(self.variables) for _ in range(length)]
        if isinstance(names, containers.Outline):
            self.miss_if(f"type({source}) is not {kind_name}")
            self.line(f"{source} = {self.constant(names.way.take)}({source})")
            self.miss_if(f"{source} is None or {source}[0] is not {self.constant(names)}")
            self.unpack(variables, f"{source}[1]")
        elif kind is dict or kind is OrderedDict:
            condition = f"type({source}) is not {kind_name} or [*{source}] != {self.constant(list(names))}"
            if names:
                condition += f" or [*map(type, {source})] != {self.constant([*map(type, names)])}"
            if not {*map(type, names)} <= {str, int}:
                self.names["keys_of"] = keys_of
                condition += f" or keys_of((*{source},)) != {self.constant(keys_of(tuple(names)))}"
            self.miss_if(condition)
            self.unpack(variables, f"{source}.values()")
        elif issubclass(kind, tree.TreeNode):
            self.miss_if(
                f"type({source}) is not {kind_name} or {source}._fixed is not {self.constant(names)}"
            )
            self.unpack(variables, f"{source}._leaves")
        elif names is None or issubclass(kind, tuple):
            self.miss_if(f"type({source}) is not {kind_name} or len({source}) != {length}")
            self.unpack(variables, source)
        else:
            self.miss_if(f"type({source}) is not {kind_name}")
            for variable, name in zip(variables, names, strict=True):
                self.line(f"{variable} = {source}.{name}")
        return variables

    def leaf(self, source: str, part: Any, is_written: bool) -> bool:
        """Emit the check of a leaf; return whether it is an input of the program, which may write it.

        Raises:
            UncheckableError: if no expression can check it.
        """
        if isinstance(part, ArrayPart):
            self.line(f"if type({source}) is dlarray:")
            self.line(f"{_INDENT}if {other_format(source, part.format)} or {source}._value is not None:")
            self.line(f"{_INDENT * 2}return MISS")
            if is_written and not part.shape:
                self.line(f"{_INDENT}if {source}._data.base is None:")  # a number
                self.line(f"{_INDENT * 2}return MISS")
            self.line(f"{_INDENT}{source} = {source}._data")
            if part.format is None:
                self.line(f"elif type({source}) is not ndarray:")
            else:
                self.line("else:")
            self.line(f"{_INDENT}return MISS")
            return True
        kind = part.kind
        if isinstance(part, NumberPart):
            fits = f" or not {-(1 << 63)} <= {source} < {1 << 63}" if kind is int else ""
            self.miss_if(f"type({source}) is not {self.number_kind(kind)}{fits}")
            self.line(f"{source} = array({source})")
            return True
        value = part.value
        if kind is float or kind in (np.float64, np.float32):
            value = value[1]
            if not value or value != value:  # noqa: PLR0124 (0.0 equals -0.0, and NaN not even itself)
                raise UncheckableError
        elif kind not in (int, bool, str, bytes) and kind not in NUMPY_NUMBERS:
            # By identity: an equal value that is a different object goes the general way.
            self.miss_if(f"{source} is not {self.constant(part.given)}")
            return False
        self.miss_if(f"type({source}) is not {self.number_kind(kind)} or {source} != {self.constant(value)}")
        return False

    def number_kind(self, kind: type) -> str:
        """Return the name of a type that the emitted code compares types with."""
        return self.constant(kind) if kind in NUMPY_NUMBERS else kind.__name__

    def container_of(self, kind: type, names: Any, children: Sequence[str]) -> str:
        """Return the expression of a container, given those of its children."""
        if kind is type(None):
            return "None"
        if kind is dict or kind is OrderedDict:
            keys = [repr(name) if type(name) in (str, int) else self.constant(name) for name in names]
            items = list(zip(keys, children, strict=True))
            if kind is dict:
                return "{" + ", ".join(f"{key}: {child}" for key, child in items) + "}"
            return "OrderedDict((" + "".join(f"({key}, {child}), " for key, child in items) + "))"
        if kind is list:
            return f"[{', '.join(children)}]"
        if kind is tuple:
            return _tuple(children)
        maker = tree.maker(kind, names)
        return f"{self.constant(maker)}({_tuple(children)})"


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
