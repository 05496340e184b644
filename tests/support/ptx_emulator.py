# SPDX-License-Identifier: BSD-3-Clause
"""An emulator of a GPU: runs PTX on NumPy, every thread a lane of an axis.

Threads that stand at the same instruction take it together; of all, those furthest back go first, so that threads which
parted meet again. The emulator refuses what a correct kernel never does: accesses outside of memory, or to memory that
was never written, addresses that are not aligned, exchanges with threads that are not there, calls of functions that
are nowhere, and instructions that it does not know. Two threads that write the same element in one instruction with
different bits are refused too, and so are accesses to the memory that threads of a block share where another thread
wrote or read since the last barrier. In all other memory, an element that one thread writes and another one reads or
writes in the same launch is refused, unless a barrier of their block or group is between: the emulator takes threads in
one order, and a GPU takes blocks and groups in any.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

_TYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16,
    "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    **{f"{kind}{bits}": f"u{bits // 8}" for kind in "ub" for bits in (8, 16, 32, 64)},
}  # fmt: skip
_TYPES = {name: np.dtype(kind) for name, kind in _TYPES.items()}
_WORDS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_PARTS = frozenset(("bra", "ret", "exit", "bar", "barrier", "shfl"))  # after which threads may stand apart
_GROUP = 32
_LABEL = re.compile(r"^(\$?[\w$]+):$")
_ENTRY = re.compile(r"\.visible \.entry (\w+)\((.*?)\)\s*(?:\.\w+[^\n{]*\n)*\{(.*?)\n\}", re.DOTALL)
_LOCAL = re.compile(r"\.local \.align \d+ \.b8\s+(\w+)\[(\d+)\];")
_SHARED = re.compile(r"\.shared \.align \d+ \.b8\s+(\w+)\[(\d+)\];")
_TABLE = re.compile(r"\.global \.align \d+ \.b8\s+([\w$]+)\[\d+\] = \{([\d, ]+)\};")
_FIRST = 1 << 40  # addresses of local memory begin here
_FIRST_SHARED = 1 << 20  # those of shared memory, which have 32 bits


class PtxError(Exception):
    """A kernel does what no correct kernel does, or an instruction is not known."""


class Instruction(NamedTuple):
    """An instruction: its guard, name, modifiers and operands."""

    guard: str | None
    name: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    text: str


class Memory:
    """Arrays at addresses; bytes that nobody wrote are marked, and may not be read unless `reads_unwritten`."""

    def __init__(self, reads_unwritten: bool = False) -> None:
        self._reads_unwritten = reads_unwritten
        self._end = 4096
        self._starts = np.zeros(0, np.uint64)
        self._blocks: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, data: np.ndarray, is_written: bool = True) -> int:
        """Return the address of an array's bytes, which are shared with it."""
        block = data.reshape(-1).view(np.uint8)
        address = self._end
        self._starts = np.append(self._starts, np.uint64(address))
        self._blocks.append((block, np.full(block.size, is_written)))
        self._end = (address + block.size + 4096) // 256 * 256
        return address

    def remove(self, address: int) -> None:
        """Forget the array at an address, which is an access outside of memory from now on."""
        number = int(np.flatnonzero(self._starts == address)[0])
        self._starts = np.delete(self._starts, number)
        del self._blocks[number]

    def copy(self, address: int, size: int) -> np.ndarray:
        """Return a copy of bytes, written or not."""
        block, _, at = self._find(np.arange(address, address + size, dtype=np.uint64), 1)
        return block[at[:, 0]]

    def arrays(self, addresses: np.ndarray) -> list[tuple[int, int, Any, np.ndarray]]:
        """Return for each array at addresses its own, its bytes, which of them are in it, and where in it they are."""
        found = self._starts.searchsorted(addresses, side="right") - 1
        is_one = bool((found == found[0]).all())
        result = []
        for number in [int(found[0])] if is_one else np.unique(found).tolist():
            mask = slice(None) if is_one else found == number
            start = int(self._starts[number])
            at = addresses[mask].astype(np.int64) - start
            result.append((start, self._blocks[number][0].size, mask, at))
        return result

    def _find(self, addresses: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if (addresses % size).any():
            raise PtxError("an address is not aligned")
        number = int(self._starts.searchsorted(addresses[0], side="right")) - 1
        if number < 0:
            raise PtxError("an access outside of memory")
        block, written = self._blocks[number]
        at = addresses.astype(np.int64) - int(self._starts[number])
        if (at < 0).any() or (at + size > block.size).any():
            found = self._starts.searchsorted(addresses, side="right") - 1
            if (found == number).all():
                raise PtxError("an access outside of memory")
            raise _SeveralError(found)
        return block, written, at[:, None] + np.arange(size)

    def load(self, addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
        try:
            block, written, at = self._find(addresses, dtype.itemsize)
        except _SeveralError as several:
            result = np.empty(addresses.size, dtype)
            for mask in several.masks():
                result[mask] = self.load(addresses[mask], dtype)
            return result
        if not self._reads_unwritten and not written[at].all():
            raise PtxError("a load of memory that was never written")
        return np.ascontiguousarray(block[at]).view(dtype)[:, 0]

    def store(self, addresses: np.ndarray, values: np.ndarray) -> None:
        try:
            block, written, at = self._find(addresses, values.dtype.itemsize)
        except _SeveralError as several:
            for mask in several.masks():
                self.store(addresses[mask], values[mask])
            return
        data = np.ascontiguousarray(values)[:, None].view(np.uint8)
        block[at] = data
        if (block[at] != data).any():
            raise PtxError("threads write different values to the same element")
        written[at] = True


class _SeveralError(Exception):
    """Addresses lie in several arrays."""

    def __init__(self, found: np.ndarray) -> None:
        self.found = found

    def masks(self) -> list[np.ndarray]:
        return [self.found == number for number in np.unique(self.found)]


class Kernel:
    """A kernel of PTX, to be run."""

    def __init__(self, ptx: str) -> None:
        entry = _ENTRY.search(ptx)
        if entry is None or ptx.count("{") - ptx.count("{ ") < 1:
            raise PtxError("there is no entry")
        if ".extern" in ptx:
            raise PtxError("a function is called that is nowhere")
        self.name = entry[1]
        self.parameter = re.findall(r"(\w+)\[\d+\]", entry[2])[0]
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.local = {name: int(size) for name, size in _LOCAL.findall(entry[3])}
        self.shared = {name: int(size) for name, size in _SHARED.findall(ptx)}
        self.tables = {
            name: np.array([*map(int, numbers.split(","))], np.uint8) for name, numbers in _TABLE.findall(ptx)
        }
        for line in entry[3].replace("{\n", "\n").splitlines():
            line = line.partition("//")[0].strip()
            label = _LABEL.match(line)
            if label:
                self.labels[label[1]] = len(self.instructions)
            elif line and line[0] not in ".{}":
                self.instructions.append(_parsed(line))

    def run(
        self, words: Sequence[int], memory: Memory, blocks: int, threads: int, most: int = 2_000_000
    ) -> int:
        """Run the kernel to its end; return how many steps its threads took together."""
        if blocks < 1:  # the driver's error: CUDA_ERROR_INVALID_VALUE
            raise PtxError("a launch of no blocks")
        if blocks >= 1 << 31 or not 1 <= threads <= 1024:
            raise PtxError("a launch of more blocks or threads than a device takes")
        if 8 * len(words) > 4096:
            raise PtxError("more arguments than a kernel takes")
        if sum(-(-size // 16) * 16 for size in self.shared.values()) > 48 << 10:
            raise PtxError("more shared memory than a kernel takes that asks for none")
        run = _Run(self, words, memory, blocks, threads)
        with np.errstate(all="ignore"):
            for step in range(most):
                if not run.step():
                    return step
        raise PtxError("the kernel does not end")


def _parsed(line: str) -> Instruction:
    text = line.rstrip(";").strip()
    guard = None
    if text.startswith("@"):
        guard, text = text[1:].split(None, 1)
    name, _, rest = text.partition("\t") if "\t" in text else text.partition(" ")
    first, *modifiers = name.strip().split(".")
    operands = [part.strip() for part in re.findall(r"\s*(\{[^}]*\}|\[[^\]]*\]|[^,]+)", rest)]
    return Instruction(guard, first, tuple(modifiers), tuple(part for part in operands if part), line)


class _Shared:
    """The memory that the threads of each block share, with who wrote and read each byte since the last barrier."""

    def __init__(self, sizes: dict[str, int], blocks: int, threads: int) -> None:
        self.places: dict[str, int] = {}
        end = 0
        for name, size in sizes.items():
            self.places[name] = _FIRST_SHARED + end
            end += -(-size // 16) * 16
        self.threads = threads
        self.data = np.zeros((blocks, end), np.uint8)
        self.written = np.zeros((blocks, end), bool)
        self.writer = np.full((blocks, end), -1, np.int64)
        self.reader = np.full((blocks, end), -1, np.int64)  # -2: several

    def at(self, lanes: np.ndarray, addresses: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        at = addresses.astype(np.int64) - _FIRST_SHARED
        if (at < 0).any() or (at + size > self.data.shape[1]).any():
            raise PtxError("an access outside of shared memory")
        return (lanes // self.threads)[:, None], at[:, None] + np.arange(size)

    def load(self, lanes: np.ndarray, addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
        where = self.at(lanes, addresses, dtype.itemsize)
        if not self.written[where].all():
            raise PtxError("a load of memory that was never written")
        writer, me = self.writer[where], lanes[:, None]
        if ((writer >= 0) & (writer != me)).any():
            raise PtxError("a load of what another thread wrote since the last barrier")
        before = self.reader[where]
        self.reader[where] = np.where((before == -1) | (before == me), me, -2)
        self.reader[where] = np.where(self.reader[where] == me, self.reader[where], -2)
        return np.ascontiguousarray(self.data[where]).view(dtype)[:, 0]

    def store(self, lanes: np.ndarray, addresses: np.ndarray, values: np.ndarray) -> None:
        where = self.at(lanes, addresses, values.dtype.itemsize)
        me = lanes[:, None]
        for others in (self.writer[where], self.reader[where]):
            if ((others != -1) & (others != me)).any():
                raise PtxError("a store where another thread read or wrote since the last barrier")
        self.data[where] = np.ascontiguousarray(values)[:, None].view(np.uint8)
        self.written[where] = True
        self.writer[where] = me
        if (self.writer[where] != me).any():
            raise PtxError("threads write to the same element")

    def met(self, blocks: np.ndarray) -> None:
        self.writer[blocks] = self.reader[blocks] = -1


class _Order:
    """Which threads of a launch wrote and read each element, and when those of blocks and groups last met.

    An element is known by its first byte. Of several readers the numbers of the first and last are kept, which tell
    whether all are of one block or group.
    """

    def __init__(self, memory: Memory, blocks: int, threads: int) -> None:
        self.memory, self.threads, self.now, self.behind = memory, threads, 0, blocks * threads
        self.met = np.zeros(blocks, np.int64)
        self.met_groups = np.zeros(-(-blocks * threads // _GROUP), np.int64)
        self._known: dict[int, np.ndarray] = {}

    def each(
        self, lanes: np.ndarray, addresses: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return what is known of each array at addresses, the threads there, and where in it they are."""
        result = []
        for start, size, mask, at in self.memory.arrays(addresses):
            known = self._known.get(start)
            if known is None:  # writer, when; first reader, last reader, when
                known = self._known[start] = np.full((5, size), -1, np.int32)
            result.append((known, lanes[mask], at))
        return result

    def is_before(self, first: np.ndarray, last: np.ndarray, when: np.ndarray, me: np.ndarray) -> np.ndarray:
        """Return whether accesses of threads from `first` to `last` are over for the threads `me`."""
        result = first < 0
        if result.all():  # as at most places, which take most of the time
            return result
        result |= (first == me) & (last == me)
        for size, met in ((self.threads, self.met), (_GROUP, self.met_groups)):
            mine = me // size
            result |= (first // size == mine) & (last // size == mine) & (when < met[mine])
        return result

    def load(self, lanes: np.ndarray, addresses: np.ndarray) -> None:
        for known, me, at in self.each(lanes, addresses):
            writer, written, first, last, read = known
            if not self.is_before(writer[at], writer[at], written[at], me).all():
                raise PtxError("a load of what another thread writes in the same launch")
            old = at[self.is_before(first[at], last[at], read[at], me)]
            first[old], last[old] = self.behind, -1
            np.minimum.at(first, at, me)
            np.maximum.at(last, at, me)
            read[at] = self.now

    def store(self, lanes: np.ndarray, addresses: np.ndarray) -> None:
        for known, me, at in self.each(lanes, addresses):
            writer, written, first, last, read = known
            if not self.is_before(first[at], last[at], read[at], me).all():
                raise PtxError("a store where another thread reads in the same launch")
            if not self.is_before(writer[at], writer[at], written[at], me).all():
                raise PtxError("a store where another thread writes in the same launch")
            writer[at], written[at] = me, self.now


class _Run:
    """The state of a launch."""

    def __init__(
        self, kernel: Kernel, words: Sequence[int], memory: Memory, blocks: int, threads: int
    ) -> None:
        self.kernel, self.memory = kernel, memory
        self.count = count = blocks * threads
        self.parameters = np.array([int(word) & (2**64 - 1) for word in words], np.uint64).view(np.uint8)
        lanes = np.arange(count, dtype=np.uint64)
        self.special = {
            "%tid.x": lanes % np.uint64(threads), "%ctaid.x": lanes // np.uint64(threads),
            "%ntid.x": np.full(count, threads, np.uint64), "%nctaid.x": np.full(count, blocks, np.uint64),
        }  # fmt: skip
        self.registers: dict[str, np.ndarray] = {}
        self.everyone = np.arange(count)
        self.at = np.zeros(count, np.int64)  # where threads stand
        self.group = self.everyone  # those that ran last, which stand at `next`; if that is -1, `at` says it
        self.next = 0
        self.others = len(kernel.instructions) + 1  # where the nearest of the others stand
        self.alive = np.ones(count, bool)
        self.waits = np.zeros(count, bool)  # for the other threads of its group
        self.addresses: dict[str, int] = {kernel.parameter: 0}
        for name, table in kernel.tables.items():
            self.addresses[name] = memory.add(table)
        self.threads = threads
        self.order = _Order(memory, blocks, threads)
        self.shared = _Shared(kernel.shared, blocks, threads)
        self.addresses |= self.shared.places
        place = _FIRST
        for name, size in kernel.local.items():
            self.addresses[name] = place
            place += -(-size // 16) * 16
        self.local = np.zeros((count, place - _FIRST), np.uint8)

    def step(self) -> bool:
        at = self.come()
        if at is None:
            return False
        self.order.now += 1
        if at >= len(self.kernel.instructions):
            raise PtxError("the kernel runs over its end")
        instruction = self.kernel.instructions[at]
        self.next = at + 1
        if instruction.name in _PARTS:
            self.part()
        if instruction.guard is not None:
            negated = instruction.guard.startswith("!")
            holds = self.bits(instruction.guard.lstrip("!")) != 0
            self.lanes = self.lanes[holds != negated]
        if self.lanes.size:
            try:
                self.execute(instruction)
            except PtxError as error:
                raise PtxError(f"{error}: {instruction.text}") from None
        return True

    def come(self) -> int | None:
        """Let the threads run that are furthest back, and return where they stand; None if all have ended."""
        if 0 <= self.next < self.others:
            self.lanes = self.group
            return self.next
        self.part()
        runs = self.alive & ~self.waits
        if not runs.any():
            if self.alive.any():
                raise PtxError("a thread waits for another one of its group that is not there")
            return None
        at = int(self.at[runs].min())
        is_here = self.at == at
        lanes = np.flatnonzero(runs & is_here)
        self.lanes = self.group = self.everyone if lanes.size == self.count else lanes
        self.others = int(self.at.min(where=runs & ~is_here, initial=len(self.kernel.instructions) + 1))
        return at

    def part(self) -> None:
        """Note where the threads stand that ran last; from now on they may stand apart."""
        if self.next >= 0:
            self.at[self.group] = self.next
            self.next = -1

    def bits(self, operand: str) -> np.ndarray:
        """Return the bits of an operand in each lane that runs."""
        count = self.lanes.size
        register = self.special.get(operand)
        if register is None:
            register = self.registers.get(operand)
        if register is not None:
            return register if self.lanes is self.everyone else register[self.lanes]
        if operand.startswith("%"):
            raise PtxError(f"register {operand} was never written")
        if operand.startswith("0f"):
            return np.full(count, int(operand[2:], 16), np.uint64)
        if operand.startswith("0d"):
            return np.full(count, int(operand[2:], 16), np.uint64)
        if operand in self.addresses:
            return np.full(count, self.addresses[operand], np.uint64)
        return np.full(count, int(operand.removesuffix("U"), 0) & (2**64 - 1), np.uint64)

    def value(self, operand: str, kind: str) -> np.ndarray:
        """Return the numbers of an operand in each lane that runs; of two halves as a row, the lower one first."""
        if kind == "f16x2":
            return self.bits(operand).astype(np.uint32).view(np.float16).reshape(-1, 2)
        dtype = _TYPES[kind]
        return self.bits(operand).astype(_WORDS[dtype.itemsize]).view(dtype)

    def set(self, operand: str, value: np.ndarray) -> None:
        """Write a result; lanes that do not run keep theirs."""
        if value.ndim == 2:  # two halves
            value = np.ascontiguousarray(value).view(np.uint32)[:, 0]
        if value.dtype == bool:
            bits = value.astype(np.uint64)
        else:
            bits = np.ascontiguousarray(value).view(_WORDS[value.dtype.itemsize]).astype(np.uint64)
        if operand == "_":
            return
        if self.lanes is self.everyone:
            self.registers[operand] = bits
            return
        register = self.registers.get(operand)
        if register is None:
            register = self.registers[operand] = np.zeros(self.count, np.uint64)
        register[self.lanes] = bits

    def execute(self, instruction: Instruction) -> None:
        method: Callable[[Instruction], None] | None = getattr(self, f"do_{instruction.name}", None)
        if method is None:
            self.compute(instruction)
        else:
            method(instruction)

    # Control.

    def do_bra(self, instruction: Instruction) -> None:
        self.at[self.lanes] = self.kernel.labels[instruction.operands[0]]

    def do_ret(self, instruction: Instruction) -> None:
        self.alive[self.lanes] = False

    do_exit = do_ret

    def meet(self, size: int = _GROUP) -> bool:
        """Let threads wait for those of their group; return whether some groups are complete, whose lanes then run."""
        here = int(self.at[self.lanes[0]])
        self.waits[self.lanes] = True
        arrived = np.flatnonzero(self.alive & self.waits & (self.at == here))
        groups = arrived // size
        present, counts = np.unique(groups, return_counts=True)
        self.lanes = arrived[np.isin(groups, present[counts == size])]
        self.waits[self.lanes] = False
        return self.lanes.size > 0

    def do_bar(self, instruction: Instruction) -> None:
        if instruction.modifiers == ("warp", "sync"):
            if self.meet():
                self.order.met_groups[np.unique(self.lanes // _GROUP)] = self.order.now
        elif instruction.modifiers == ("sync",) and instruction.operands == ("0",):
            if self.meet(self.threads):
                blocks = np.unique(self.lanes // self.threads)
                self.shared.met(blocks)
                self.order.met[blocks] = self.order.now
        else:
            raise PtxError("not known")

    do_barrier = do_bar

    def do_shfl(self, instruction: Instruction) -> None:
        _, mode, _ = instruction.modifiers
        target, source, step, last, mask = instruction.operands
        if mode != "bfly" or last != "31" or mask != "-1":
            raise PtxError("not known")
        if not self.meet():
            return
        steps = self.bits(step).astype(np.int64)
        partner = np.arange(self.lanes.size) ^ steps
        self.set(target, self.value(source, "b32")[partner])

    # Memory.

    def place(self, operand: str) -> np.ndarray:
        inside = operand.strip("[]")
        base, _, offset = inside.partition("+")
        return self.bits(base) + np.uint64(int(offset or 0) & (2**64 - 1))

    def do_ld(self, instruction: Instruction) -> None:
        *modifiers, kind = instruction.modifiers
        target, source = instruction.operands
        dtype = _TYPES[kind]
        targets = [part.strip() for part in target.strip("{}").split(",")]
        addresses = self.place(source)
        if (addresses % np.uint64(dtype.itemsize * len(targets))).any():
            raise PtxError("an address is not aligned")
        for number, register in enumerate(targets):
            at = addresses + np.uint64(number * dtype.itemsize)
            if "param" in modifiers:
                bytes_at = at.astype(np.int64)[:, None] + np.arange(dtype.itemsize)
                loaded = np.ascontiguousarray(self.parameters[bytes_at]).view(dtype)[:, 0]
            elif "shared" in modifiers:
                loaded = self.shared.load(self.lanes, at, dtype)
            elif at[0] >= _FIRST:
                loaded = np.ascontiguousarray(self.local[self.lanes[:, None], self.local_at(at, dtype)]).view(
                    dtype
                )[:, 0]
            else:
                loaded = self.memory.load(at, dtype)
                self.order.load(self.lanes, at)
            wide = loaded.astype(np.int64) if dtype.kind == "i" else loaded
            self.set(register, wide)

    def do_st(self, instruction: Instruction) -> None:
        kind = instruction.modifiers[-1]
        target, source = instruction.operands
        dtype = _TYPES[kind]
        sources = [part.strip() for part in source.strip("{}").split(",")]
        addresses = self.place(target)
        if (addresses % np.uint64(dtype.itemsize * len(sources))).any():
            raise PtxError("an address is not aligned")
        for number, register in enumerate(sources):
            at = addresses + np.uint64(number * dtype.itemsize)
            values = self.value(register, kind)
            if "shared" in instruction.modifiers:
                self.shared.store(self.lanes, at, values)
            elif at[0] >= _FIRST:
                data = np.ascontiguousarray(values)[:, None].view(np.uint8)
                self.local[self.lanes[:, None], self.local_at(at, dtype)] = data
            else:
                self.memory.store(at, values)
                self.order.store(self.lanes, at)

    def local_at(self, addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
        at = addresses.astype(np.int64) - _FIRST
        if (at < 0).any() or (at + dtype.itemsize > self.local.shape[1]).any():
            raise PtxError("an access outside of local memory")
        return at[:, None] + np.arange(dtype.itemsize)

    # Arithmetic.

    def do_mov(self, instruction: Instruction) -> None:
        target, source = instruction.operands
        kind = instruction.modifiers[-1]
        if kind == "pred":
            self.set(target, self.bits(source) != 0)
        elif target.startswith("{"):
            bits = self.bits(source)
            parts = [part.strip() for part in target.strip("{}").split(",")]
            width = {"b32": 16, "b64": 32}[kind] if len(parts) == 2 else int(kind[1:]) // len(parts)
            for number, part in enumerate(parts):
                self.set(part, (bits >> np.uint64(width * number)) & np.uint64(2**width - 1))
        elif source.startswith("{"):
            parts = [part.strip() for part in source.strip("{}").split(",")]
            width = int(kind[1:]) // len(parts)
            total = np.zeros(self.lanes.size, np.uint64)
            for number, part in enumerate(parts):
                total |= (self.bits(part) & np.uint64(2**width - 1)) << np.uint64(width * number)
            self.set(target, total)
        else:
            self.set(target, self.value(source, kind))

    def do_cvta(self, instruction: Instruction) -> None:
        target, source = instruction.operands
        self.set(target, self.bits(source))

    def do_setp(self, instruction: Instruction) -> None:
        comparison, *_, kind = instruction.modifiers
        target, *operands = instruction.operands
        x, y = (self.value(operand, kind) for operand in operands[:2])
        unordered = comparison in ("equ", "neu", "ltu", "leu", "gtu", "geu", "nan")
        names = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
        base = names.get(comparison, comparison[:2])
        is_nan = np.isnan(x) | np.isnan(y) if x.dtype.kind == "f" else np.zeros(x.size, bool)
        if comparison in ("nan", "num"):
            result = is_nan if comparison == "nan" else ~is_nan
        else:
            compare = {
                "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                "ge": np.greater_equal,
            }[base]  # fmt: skip
            result = (compare(x, y) | is_nan) if unordered else (compare(x, y) & ~is_nan)
        if len(operands) > 2:
            other = self.bits(operands[2].lstrip("!")) != 0
            other = ~other if operands[2].startswith("!") else other
            join = next(part for part in instruction.modifiers[1:-1] if part in ("and", "or", "xor"))
            result = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[join](result, other)
        self.set(target, result)

    def do_selp(self, instruction: Instruction) -> None:
        target, yes, no, condition = instruction.operands
        kind = instruction.modifiers[-1]
        self.set(target, np.where(self.bits(condition) != 0, self.value(yes, kind), self.value(no, kind)))

    def do_cvt(self, instruction: Instruction) -> None:
        *modifiers, to, source = instruction.modifiers
        if to == "f16x2":
            target, high, low = instruction.operands
            halves = [self.value(x, source).astype(np.float16).view(np.uint16) for x in (high, low)]
            self.set(target, (halves[0].astype(np.uint32) << np.uint32(16)) | halves[1])
            return
        target, operand = instruction.operands
        x, dtype = self.value(operand, source), _TYPES[to]
        if x.dtype.kind == "f":
            rounded = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
            name = next((name for name in modifiers if name in rounded), None)
            if name is not None:
                x = rounded[name](x)
            if (
                dtype.kind != "f"
            ):  # integers that do not fit become the nearest; NaN becomes 0, of 64 bits the lowest
                limits = np.iinfo(dtype)
                inside = np.clip(np.nan_to_num(x, nan=0.0).astype(np.float64), limits.min, float(limits.max))
                exact = np.where(inside >= float(limits.max), limits.max, 0)
                fits = inside < float(limits.max)
                x = np.where(fits, np.where(fits, inside, 0).astype(dtype), exact.astype(dtype))
        result = x.astype(dtype)
        # A register that is wider than the result takes its sign as well, as that of a load.
        self.set(target, result.astype(np.int64) if dtype.kind == "i" else result)

    def do_mul(self, instruction: Instruction) -> None:
        target, *operands = instruction.operands
        kind = instruction.modifiers[-1]
        if kind[0] == "f":
            x, y = (self.value(operand, kind) for operand in operands)
            self.set(target, x * y)
            return
        self.set(target, self.product(instruction.modifiers[0], kind, *operands))

    def product(self, part: str, kind: str, left: str, right: str) -> np.ndarray:
        x, y = self.value(left, kind), self.value(right, kind)
        if part == "lo":
            return x * y
        double = (
            np.dtype(f"{kind[0].replace('s', 'i')}{x.dtype.itemsize * 2}") if x.dtype.itemsize < 8 else None
        )
        if double is not None:
            wide = x.astype(double) * y.astype(double)
            return wide if part == "wide" else (wide >> (8 * x.dtype.itemsize)).astype(x.dtype)
        high = [(int(a) * int(b) >> 64) & (2**64 - 1) for a, b in zip(x, y, strict=True)]
        return np.array(high, np.uint64)

    def do_mad(self, instruction: Instruction) -> None:
        target, x, y, z = instruction.operands
        part, kind = instruction.modifiers[0], instruction.modifiers[-1]
        product = self.product(part, kind, x, y)
        wide = f"{kind[0]}{product.dtype.itemsize * 8}"
        self.set(target, product + self.value(z, wide))

    def do_fma(self, instruction: Instruction) -> None:
        target, *operands = instruction.operands
        kind = instruction.modifiers[-1]
        x, y, z = (self.value(operand, kind).astype(np.longdouble) for operand in operands)
        self.set(target, (x * y + z).astype(_TYPES[kind.removesuffix("x2")]))

    def do_rcp(self, instruction: Instruction) -> None:
        if instruction.modifiers[0] == "rn":
            self.compute(instruction)
            return
        self.approximate(instruction, lambda x: 1 / x)

    def do_rsqrt(self, instruction: Instruction) -> None:
        self.approximate(instruction, lambda x: 1 / np.sqrt(x))

    def approximate(self, instruction: Instruction, function: Callable[[np.ndarray], np.ndarray]) -> None:
        """Run an instruction whose result is not exact, as that of a GPU: every other one is the number above.

        Of numbers of 64 bits it reads and writes the upper half.
        """
        *modifiers, kind = instruction.modifiers
        if modifiers != ["approx", "ftz"]:
            raise PtxError("not known")
        target, source = instruction.operands
        x = self.value(source, kind)
        word, unit = (np.uint32, 1) if kind == "f32" else (np.uint64, 1 << 32)
        mask = word(~(unit - 1) & np.iinfo(word).max)
        x = (x.view(word) & mask).view(x.dtype)
        x = np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)
        exact = (function(x).view(word) & mask).view(x.dtype)
        is_odd = (x.view(word) & word(unit)).astype(bool) & np.isfinite(exact) & (exact != 0)
        self.set(target, np.where(is_odd, (exact.view(word) + word(unit)).view(x.dtype), exact))

    def do_shf(self, instruction: Instruction) -> None:
        side, mode, _ = instruction.modifiers
        target, low, high, shift = instruction.operands
        both = self.bits(low) & np.uint64(0xFFFFFFFF) | (self.bits(high) << np.uint64(32))
        amount = (
            self.bits(shift) & np.uint64(31)
            if mode == "wrap"
            else np.minimum(self.bits(shift), np.uint64(32))
        )
        result = both >> amount if side == "r" else (both << amount) >> np.uint64(32)
        self.set(target, result.astype(np.uint32))

    def do_prmt(self, instruction: Instruction) -> None:
        target, low, high, chosen = instruction.operands
        both = self.bits(low) & np.uint64(0xFFFFFFFF) | (self.bits(high) << np.uint64(32))
        chosen_bits, result = self.bits(chosen), np.zeros(self.lanes.size, np.uint64)
        for number in range(4):
            which = (chosen_bits >> np.uint64(4 * number)) & np.uint64(15)
            byte = (both >> ((which & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
            byte = np.where(
                which & np.uint64(8), np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0)), byte
            )
            result |= byte << np.uint64(8 * number)
        self.set(target, result.astype(np.uint32))

    def do_bfe(self, instruction: Instruction) -> None:
        target, source, start, length = instruction.operands
        kind = instruction.modifiers[-1]
        x = self.value(source, kind)
        width = 8 * x.dtype.itemsize
        first, count = self.bits(start).astype(np.int64), self.bits(length).astype(np.int64)
        left = width - first - count
        self.set(target, (x << left.astype(x.dtype)) >> (left + first).astype(x.dtype))

    def do_neg(self, instruction: Instruction) -> None:
        kind = instruction.modifiers[-1]
        self.set(instruction.operands[0], -self.value(instruction.operands[1], kind))

    def do_not(self, instruction: Instruction) -> None:
        kind = instruction.modifiers[-1]
        target, source = instruction.operands
        if kind == "pred":
            self.set(target, self.bits(source) == 0)
        else:
            self.set(target, ~self.value(source, kind))

    def compute(self, instruction: Instruction) -> None:
        kind = instruction.modifiers[-1]
        if kind == "pred":
            join = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[instruction.name]
            target, x, y = instruction.operands
            self.set(target, join(self.bits(x) != 0, self.bits(y) != 0))
            return
        function = _FUNCTIONS.get(instruction.name)
        if function is None:
            raise PtxError("not known")
        target, *operands = instruction.operands
        values = [
            self.value(operand, "u32" if instruction.name in ("shl", "shr") and number else kind)
            for number, operand in enumerate(operands)
        ]
        result = function(instruction.modifiers, *values)
        self.set(target, result)


def _extremum(
    modifiers: tuple[str, ...], x: np.ndarray, y: np.ndarray, with_nan: Any, without: Any
) -> np.ndarray:
    result: np.ndarray = (with_nan if "NaN" in modifiers or x.dtype.kind != "f" else without)(x, y)
    return result


def _divided(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return x / y
    if (y == 0).any():
        raise PtxError("a division by zero")
    quotient: np.ndarray = np.trunc(x.astype(np.longdouble) / y.astype(np.longdouble)).astype(x.dtype)
    return quotient


def _shifted(x: np.ndarray, y: np.ndarray, to_left: bool) -> np.ndarray:
    width = 8 * x.dtype.itemsize
    inside = np.minimum(y, width - 1).astype(x.dtype)
    if to_left:
        return np.where(y >= width, np.zeros_like(x), x << inside)
    fill = np.where(x < 0, -1, 0).astype(x.dtype) if x.dtype.kind == "i" else np.zeros_like(x)
    return np.where(y >= width, fill, x >> inside)


_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "add": lambda m, x, y: x + y, "sub": lambda m, x, y: x - y, "abs": lambda m, x: np.abs(x),
    "div": lambda m, x, y: _divided(x, y), "rem": lambda m, x, y: x - _divided(x, y) * y,
    "min": lambda m, x, y: _extremum(m, x, y, np.minimum, np.fmin),
    "max": lambda m, x, y: _extremum(m, x, y, np.maximum, np.fmax),
    "and": lambda m, x, y: x & y, "or": lambda m, x, y: x | y, "xor": lambda m, x, y: x ^ y,
    "shl": lambda m, x, y: _shifted(x, y, True), "shr": lambda m, x, y: _shifted(x, y, False),
    "rcp": lambda m, x: (1 / x.astype(np.longdouble)).astype(x.dtype), "sqrt": lambda m, x: np.sqrt(x),
    "copysign": lambda m, x, y: np.copysign(y, x),
    "popc": lambda m, x: np.bitwise_count(x).astype(np.uint32),
    "clz": lambda m, x: np.array([8 * x.dtype.itemsize - int(n).bit_length() for n in x], np.uint32),
}  # fmt: skip
