# SPDX-License-Identifier: BSD-3-Clause
"""Program: the result of the compiler, which executors run.

A program is data: rows of a kernel and its arguments. Twenty equal layers are twenty rows that share kernels.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from tracejit.aval import Aval
from tracejit.config import settings
from tracejit.errors import BoundsError
from tracejit.ir import Where
from tracejit.record.guards import GuardFailed
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.uninterrupted import is_of_handler

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


class Place(NamedTuple):
    """Memory: the `number`-th input, output or constant from its first byte on, or `offset` bytes into the arena."""

    kind: str  # "input", "output", "constant" or "arena"
    number: int
    offset: int


class Writes(NamedTuple):
    """The outputs of a graph that are new contents of inputs.

    targets     the number of the input, by the number of the output
    guarded     whether the last output says whether the others count
    """

    targets: Mapping[int, int] = MappingProxyType({})
    guarded: bool = False


NO_WRITES = Writes()


class HostCall(NamedTuple):
    """A function of Python that a row calls, with ndarrays of the given sizes; it returns ndarrays.

    Attributes:
        function: takes the inputs and returns the outputs, in a tuple if there are several.
        inputs: their sizes and dtypes.
        outputs: their sizes and dtypes; where the function returns others, the program does not apply.
        handled: whether the program does not apply either where the function raises an error.
    """

    function: Callable[..., Any]
    inputs: tuple[Aval, ...]
    outputs: tuple[Aval, ...]
    handled: bool = False

    def __call__(self, arrays: Sequence[np.ndarray]) -> Any:
        """Return the results; None where the program does not apply because of an error."""
        if not self.handled:
            return self.function(*arrays)
        try:
            return self.function(*arrays)
        except Exception as error:
            if is_of_handler(error):
                raise
            return None


_ARGUMENT = re.compile(r"\bargs\[(\d+)\]")
_SCRATCH = re.compile(r"\bscratch_[a-z]+(\d+)\((\d+)\)")  # its bits, and how many


class Kernel(NamedTuple):
    """Emitted source of one kernel, a function of one argument array; its name ends in a hash of the text.

    With `host` the row calls this function of Python instead, and the text says so.
    """

    name: str
    text: str
    host: HostCall | None = None

    @property
    def words(self) -> int:
        """The number of words of its argument."""
        return 1 + max((int(number) for number in _ARGUMENT.findall(self.text)), default=-1)

    @property
    def scratch_bytes(self) -> int:
        """The scratch memory that the kernel takes on the stack."""
        return sum([int(bits) * int(count) // 8 for bits, count in _SCRATCH.findall(self.text)])


class Pointer(NamedTuple):
    """The address `offset_bytes` into a place, at which elements of `dtype` lie.

    In a loop it moves on by `steps[d]` bytes after each step of the d-th loop around the row, the outermost first.
    """

    place: Place
    offset_bytes: int
    dtype: np.dtype
    steps: tuple[int, ...] = ()


class ScalarArgument(NamedTuple):
    """A constant of the function, handed to the kernel at run time so that its value is not in the text."""

    value: Any
    dtype: np.dtype


class Symbol(NamedTuple):
    """The address of a routine outside kernels/, such as a BLAS function."""

    name: str


Argument = int | Pointer | ScalarArgument | Symbol


class Grid(NamedTuple):
    """The threads of a device that run a kernel: blocks, and the threads of each."""

    blocks: int
    threads: int


class ProductOperand(NamedTuple):
    """Matrices in memory as BLAS names them, which lie one behind the other.

    slot        the number of the argument that is the address of the first one
    transposed  whether columns, not rows, are neighbours in memory
    leading     the elements from one row (column) to the next
    batch       the elements from one matrix to the next
    """

    slot: int
    transposed: bool
    leading: int
    batch: int


class BlasProduct(NamedTuple):
    """A batch of products of matrices, out (m, n) = x (m, k) y (k, n), or added to what is in out."""

    dtype: str
    batch: int
    m: int
    n: int
    k: int
    x: ProductOperand
    y: ProductOperand
    out: ProductOperand
    adds: bool

    @property
    def is_by_library(self) -> bool:
        """True if the settings say that NVIDIA's library computes it, not the row's kernel."""
        least = settings.cublas_from
        return least is not None and self.batch * self.m * self.n * self.k >= least

    def __str__(self) -> str:
        batch = f"{self.batch} x " if self.batch != 1 else ""
        return f"{batch}({self.m} x {self.k}) @ ({self.k} x {self.n}) of {self.dtype}"


class Row(NamedTuple):
    """One launch: the kernel, its arguments, and the user's lines that it comes from.

    A launch in several parts, which may run at the same time, has `length` rows for each part, one part after the
    other. On a device, `grid` says how many threads run it, and `needs` the numbers of rows that are done before, among
    those that run where the results count or the others. If BLAS can compute the same, `product` says what.
    """

    kernel: Kernel
    arguments: tuple[Argument, ...]
    note: str
    where: tuple[Where, ...]
    part: int = 0
    parts: int = 1
    length: int = 1
    grid: Grid | None = None
    needs: tuple[int, ...] = ()
    product: BlasProduct | None = None


class RowLoop(NamedTuple):
    """A loop in a program: the rows from `first` to before `end` run up to `most` times, one time after the other.

    It ends where the bool at `condition` is false before a step. So a branch is a loop of at most one step.
    """

    first: int
    end: int
    most: int
    condition: Pointer | None = None


class Prepared(NamedTuple):
    """The preparation of a program: the names of kernels that were compiled and of those loaded, and times."""

    compiled: tuple[str, ...]
    loaded: tuple[str, ...]
    compile_ns: int
    load_ns: int


class Program(NamedTuple):
    """Rows in order, and the memory that they work on.

    If `checked` names operations, the program has one more output, an int64 that starts as 0 and is set if one of
    their indices was out of range.

    If it writes into inputs, these are `written`, and the last `commits` rows run only where the guard holds and no
    index was out of range: whoever sees the inputs sees all of a run or nothing.

    `of_other_sizes` are kernels that no row has, and that programs of other sizes of the same function have; they are
    compiled when the others are (Note [other sizes] in codegen/other_sizes.py).

    `loops` are in the order of their first rows, each before the loops inside it.
    """

    rows: list[Row]
    inputs: list[Aval]
    outputs: list[Aval]
    constants: list[np.ndarray]
    arena_bytes: int
    checked: tuple[str, ...] = ()
    guard: int | None = None  # the number of the bool output that says whether the other outputs are valid
    written: tuple[int, ...] = ()
    commits: int = 0
    loops: tuple[RowLoop, ...] = ()
    by_columns: tuple[int, ...] = ()  # the numbers of the outputs that lie by columns, as NumPy's order "F"
    of_other_sizes: tuple[Kernel, ...] = ()

    @property
    def launches(self) -> int:
        """The number of launches; the parts of a launch count as one."""
        return sum(row.part == 0 for row in self.rows)

    @property
    def places(self) -> list[int]:
        """For each row, its number within its part."""
        places: list[int] = []
        while len(places) < len(self.rows):
            row = self.rows[len(places)]
            places += [*range(row.length)] * row.parts
        return places

    @property
    def repeats(self) -> list[int]:
        """For each row, how many times it runs at most; a loop that a value ends counts as one step."""
        times = [1] * len(self.rows)
        for loop in self.loops:
            for number in range(loop.first, loop.end):
                times[number] *= 1 if loop.condition is not None else loop.most
        return times

    @property
    def threads(self) -> list[str]:
        """For each row, the threads of a device and the launches that they wait for, in words; "" on the CPU."""
        last = len(self.rows) - self.commits
        words = []
        for number, row in enumerate(self.rows):
            first = 1 if number < last else last + 1
            after = (
                f", after {' and '.join([str(first + other) for other in row.needs])}" if row.needs else ""
            )
            grid, product = row.grid, row.product
            by_library = product is not None and product.is_by_library
            who = (
                "cuBLASLt"
                if by_library
                else ""
                if grid is None
                else f"{grid.blocks} x {grid.threads} threads"
            )
            words.append(f"{who}{after}" if who else "")
        return words

    @property
    def launch_of_row(self) -> list[int]:
        """For each row, the number of its launch; the parts of a launch count as one."""
        numbers: list[int] = []
        launches = 0
        while len(numbers) < len(self.rows):
            row = self.rows[len(numbers)]
            numbers += [*range(launches, launches + row.length)] * row.parts
            launches += row.length
        return numbers

    @property
    def kernels(self) -> list[Kernel]:
        """The distinct kernels, in the order of first use."""
        return list(dict.fromkeys(row.kernel for row in self.rows))

    @property
    def calls_python(self) -> bool:
        """True if some rows call functions of Python."""
        return any(row.kernel.host is not None for row in self.rows)

    def new_outputs(self) -> tuple[np.ndarray, ...]:
        """Return memory for the outputs."""
        orders = [self.order(number) for number in range(len(self.outputs))]
        return tuple([
            np.empty(aval.shape, aval.dtype, order) for aval, order in zip(self.outputs, orders, strict=True)
        ])  # fmt: skip

    def order(self, number: int) -> Literal["C", "F"]:
        """Return NumPy's word for the order in which the elements of an output lie."""
        return "F" if number in self.by_columns else "C"

    def check(self, fault: np.ndarray, outputs: Sequence[np.ndarray]) -> None:
        """Check the outputs of a run.

        Raises:
            GuardFailed: if the guard says that the program does not apply.
            BoundsError: if `fault`, the further output, says that an index was out of range.
        """
        if self.guard is not None and not outputs[self.guard]:
            raise GuardFailed
        if fault:
            raise BoundsError(
                f"an index is out of range in a replay of {' or '.join(self.checked)}; valid indices are -n to "
                "n - 1 for an axis of size n, and from 0 on for embed, ctc and classes. Call the accelerated function "
                "with enabled = False to see which."
            )
