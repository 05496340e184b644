# SPDX-License-Identifier: BSD-3-Clause
"""NestMemory: the pointers of a kernel, and the expressions that load and store through them."""

from collections.abc import Mapping, Sequence

from tracejit.codegen import lanes
from tracejit.codegen.loop_order import LoopOrder
from tracejit.codegen.names import INDENT, SUFFIXES
from tracejit.ir import Value
from tracejit.passes.loops.nest import Access, Nest, is_of_part, read_in_place
from tracejit.passes.loops.strided_reads import NEAR
from tracejit.util.named_tuples import NamedTuple


class PointerArgument(NamedTuple):
    """A pointer of a kernel: its name, the template of the line that binds it, its memory, its strides by loop."""

    name: str
    template: str
    access: Access
    strides: tuple[int, ...]


class NestMemory:
    """The memory of a nest as its kernel sees it.

    With rows in lanes, scratch memory holds rows by columns: what a nest writes for one row only (`kept`), and what is
    gathered once for several passes (`scratch`, by pointer).

    `computed` gives the expressions of reads that are not in memory, by pointer.

    Note [neighbouring parts]
    Parts of complex numbers lie at every second place. LLVM loads and stores those of neighbouring numbers as vectors
    where it sees that: the text says that the stride is 2, and both parts are reached by one pointer. In `beside`, a
    pointer is given as another pointer that is moved by some elements.
    """

    def __init__(self, nest: Nest, order: LoopOrder, computed: Mapping[str, str]) -> None:
        self.nest = nest
        self.order = order
        self.computed = computed
        self.width = f"x{order.lanes}" if order.lanes else ""
        self.kept = lanes.kept(nest) if order.lanes else set()
        self.scratch: dict[str, str] = {}
        self.read_strides = [order.strides(access) for access in nest.reads]
        self.write_strides = [order.strides(access) for access in nest.writes]
        # What a nest overwrites it also reads through the pointer that it writes by (Note [written inputs]).
        self.in_place = {f"p{k}": f"o{written}" for k, written in read_in_place(nest).items()}
        self.beside: dict[str, tuple[str, int]] = {}
        for stem, accesses in (("p", nest.reads), ("o", nest.writes)):
            self._find_neighbours(stem, accesses)

    def _find_neighbours(self, stem: str, accesses: Sequence[Access]) -> None:
        first: dict[tuple[Value, int, tuple[int, ...]], int] = {}
        for k, access in enumerate(accesses):
            if is_of_part(access) and f"{stem}{k}" not in self.in_place:
                # The real and the imaginary part of one number begin at an even place and the next one.
                key = access.root, access.offset // 2, access.strides
                other = first.setdefault(key, k)
                if other != k:
                    self.beside[f"{stem}{k}"] = f"{stem}{other}", access.offset - accesses[other].offset

    def pointers(self) -> list[PointerArgument]:
        """Return the pointers that are arguments of the kernel."""
        reads = [
            PointerArgument(f"p{k}", f"read_{SUFFIXES[a.dtype]}(args[{{}}])", a, self.read_strides[k])
            for k, a in enumerate(self.nest.reads)
        ]
        writes = [
            PointerArgument(f"o{k}", f"write_{SUFFIXES[a.dtype]}(args[{{}}], {k})", a, self.write_strides[k])
            for k, a in enumerate(self.nest.writes)
            if k not in self.kept
        ]
        left_out = (*self.computed, *self.in_place, *self.beside)
        return [pointer for pointer in (*reads, *writes) if pointer.name not in left_out]

    def index(self, pointer: str, strides: tuple[int, ...]) -> str:
        """Return the index of the current element at a pointer."""
        own, moved = self.beside.get(pointer, (pointer, 0))
        terms = []
        for axis, stride in enumerate(strides):
            if stride == 0:
                continue
            fixed = self.known_stride(own, axis, stride)
            counter = self.counter(axis)
            terms.append(f"{counter} * {fixed or f'{own}_{axis}'}" if fixed != 1 else counter)
        return " + ".join(terms + [str(moved)] * (moved != 0)).replace("+ -", "- ") or "0"

    def counter(self, axis: int) -> str:
        """Return the name of the number that a loop counts."""
        return f"i{axis}"

    def known_stride(self, pointer: str, axis: int, stride: int) -> int | None:
        """Return the stride along an axis if the text says what it is, otherwise None."""
        if not self.order.is_unit(axis):
            return None
        number = int(pointer[1:])
        access = self.nest.reads[number] if pointer[0] == "p" else self.nest.writes[number]
        return stride if stride in ((2,) if is_of_part(access) else NEAR) else None

    def at(self, pointer: str, strides: tuple[int, ...]) -> tuple[str, str]:
        """Return the pointer by which the text reaches the current element of another, and the index."""
        return self.beside.get(pointer, (pointer, 0))[0], self.index(pointer, strides)

    def differs(self, strides: tuple[int, ...]) -> bool:
        """Return whether an element differs between lanes."""
        return self.order.lanes > 0 and strides[0] != 0

    def load(self, pointer: str, strides: tuple[int, ...]) -> str:
        """Return the expression of the element at a pointer: of a number, or of lanes if they differ."""
        if pointer in self.computed:
            return self.computed[pointer]
        pointer, at = self.at(self.in_place.get(pointer, pointer), strides)
        if not self.differs(strides):
            return f"{pointer}[{at}]"
        if strides[0] == 1:
            return f"load_first_{self.width}({pointer}, {at}, count)"
        step = self.known_stride(pointer, 0, strides[0]) or f"{pointer}_0"
        return f"gather_{self.width}({pointer}, {at}, {step}, count)"

    def store(self, pointer: str, strides: tuple[int, ...], value: str) -> str:
        """Return the line that stores a number or lanes at a pointer."""
        pointer, at = self.at(pointer, strides)
        if not self.differs(strides):
            return f"{pointer}[{at}] = {value}"
        if strides[0] == 1:
            return f"store_first_{self.width}({pointer}, {at}, {value}, count)"
        step = self.known_stride(pointer, 0, strides[0]) or f"{pointer}_0"
        return f"scatter_{self.width}({pointer}, {at}, {step}, {value}, count)"

    def scratch_of(self, pointer: str) -> str:
        """Return the name of the scratch memory for what lies at a pointer."""
        return self.scratch.setdefault(pointer, f"s{len(self.scratch)}")

    def scratch_of_write(self, write: int) -> str:
        """Return the name of the scratch memory in which later passes find a write."""
        pointer = f"o{write}"
        return pointer if write in self.kept else self.scratch_of(pointer)

    def load_scratch(self, name: str) -> str:
        return f"load_{self.width}({name}, {self._slot()})"

    def store_scratch(self, name: str, value: str) -> str:
        return f"store_{self.width}({name}, {self._slot()}, {value})"

    def _slot(self) -> str:
        """Return the index of the lanes of the current element of a row in scratch memory."""
        split = self.order.split or 0
        text = f"i{split}"
        for axis in range(split + 1, self.order.depth):
            text = f"({text} * n{axis} + i{axis})"
        return f"{text} * {self.order.lanes}"

    def scratch_lines(self) -> list[str]:
        """Return the lines that allocate the scratch memory of a row in lanes."""
        accesses = {f"p{k}": access for k, access in enumerate(self.nest.reads)}
        accesses |= {f"o{k}": access for k, access in enumerate(self.nest.writes)}
        names = {f"o{k}": f"o{k}" for k in sorted(self.kept)} | self.scratch
        count = lanes.SHORT * self.order.lanes
        return [
            f"{INDENT}{name} = scratch_{SUFFIXES[accesses[pointer].dtype]}({count})"
            for pointer, name in names.items()
        ]
