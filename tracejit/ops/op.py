# SPDX-License-Identifier: BSD-3-Clause
"""The record of one operation, and what its fields may hold.

One op is one record. To add an op, add a record to a family's table: the array
functions, the adjoint, the emitted code and the generated tests read the record.
"""

import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.errors import DTypeError, GradientError
from tracejit.util.named_tuples import NamedTuple

TITLES = {
    "attention_forward": "attention",
    "ctc_forward": "ctc",
    "div": "divide",
    "floordiv": "floor_divide",
    "gru_forward": "gru",
    "lstm_forward": "lstm",
    "mod": "remainder",
    "mul": "multiply",
    "neg": "negative",
    "pow": "power",
    "rnn_forward": "rnn",
    "sub": "subtract",
}
"""The functions of ops that have another name."""

_CHOICE = re.compile(r"\b(if|and|or|not)\b")  # Python's choices, which take single numbers only


class Kind(Enum):
    """The kind of an op, which decides what it may be fused with."""

    ELEMENTWISE = "elementwise"  # one output element from one element of each (broadcast) input
    REDUCE = "reduce"  # folds axes of one input
    MOVE = "move"  # no arithmetic: another arrangement of the same elements
    CONTRACT = "contract"  # matrix products
    KERNEL = "kernel"  # a hand-written kernel in kernels/
    LOOP = "loop"  # runs a body, which is a graph of its own
    HOST = "host"  # runs in Python, called by the program


class Scalar(NamedTuple):
    """Emission of an ELEMENTWISE op: a scalar expression.

    `template` holds {0}, {1}, ... for the operands and may name functions and conversions by the
    suffix of a dtype: {T} of the first operand, {R} of the result (f32, f64, i64, u8, b1, ...), as in
    ``tanh_{T}({0})``. `cost` is about the number of additions that take as long; it decides whether a
    value is computed again or stored. `for_bool` replaces the template where the first operand is bool.
    """

    template: str
    cost: int = 1
    for_bool: str | None = None


class Fold(NamedTuple):
    """Emission of a REDUCE op over params["axes"]: ``accumulator = combine(accumulator, element)``.

    `init` gives the start value for the result's dtype; `combine` holds {0} for the accumulator, {1} for
    the element and the suffixes {T} (element) and {R} (accumulator). The element is converted to the
    result's dtype before it is combined.
    """

    init: Callable[[np.dtype], Any]
    combine: str


class Layout(NamedTuple):
    """The layout of an array in a buffer; offset and strides count elements, not bytes."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@lru_cache(maxsize=4096)
def contiguous(shape: tuple[int, ...]) -> Layout:
    """Return the layout of a contiguous array in C order."""
    strides = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return Layout(0, shape, tuple(reversed(strides)))


def in_parts(layout: Layout) -> Layout:
    """Return a layout of complex numbers as one of their parts, along one more axis."""
    strides = tuple([2 * stride for stride in layout.strides])
    return Layout(2 * layout.offset, (*layout.shape, 2), (*strides, 1))


class Strided(NamedTuple):
    """Emission of a MOVE op that needs no copy: the layout of the result within the operand's memory.

    `layout(layout, **params)` returns None where that memory cannot be seen in the wanted way (a reshape
    of a transposed array); the operand is then copied to contiguous memory first.
    `axes(ndim_in, shape_in, **params)` returns, when the op only permutes, adds, drops or broadcasts
    axes, the output axis of each input axis (None for an input axis of size 1 that goes away), which lets loops
    fuse through the op; None where it does more than that.
    """

    layout: Callable[..., Layout | None]
    axes: Callable[..., tuple[int | None, ...] | None] | None = None


class Piece(NamedTuple):
    """One rectangular part of an output: all of `source` (an input's number, or a number to fill with
    when `fill`) is written to the part of the output that begins at `start` and has `shape` with `step`."""

    source: int | float
    start: tuple[int, ...]
    shape: tuple[int, ...]
    step: tuple[int, ...]
    fill: bool = False


class Pieces(NamedTuple):
    """Emission of a MOVE op that writes its output in parts (concatenate, pad, setitem), in order.

    `pieces(out_aval, *in_avals, **params)` returns the parts; later parts overwrite earlier ones, and
    together they cover the output.
    """

    pieces: Callable[..., Sequence[Piece]]


class Cut(NamedTuple):
    """The division of a kernel's work into calls on consecutive parts of its output.

    An element takes about `ns`. A part begins at a multiple of `unit` elements; `numbers(numbers, start, stop)` returns
    the integers of the call that makes the elements from `start` to `stop`.
    """

    ns: float
    unit: int
    numbers: Callable[[Sequence[int], int, int], Sequence[int]]


class RangeCut(NamedTuple):
    """The division of a kernel's work into calls on ranges of its rows, whose pointers stay where they are.

    The first two integers of the kernel are the rows where a call starts and stops. There are `rows(numbers)` of them,
    which take about `ns(numbers)` together. A call writes nothing outside its rows. If `images` is given, all operands
    and results of a node consist of `images(node)` equal parts, and a part of the results needs the rows of this part
    and the same part of the operands only.
    """

    ns: Callable[[Sequence[int]], float]
    rows: Callable[[Sequence[int]], int]
    images: Callable[[Any], int] | None = None


class KernelCall(NamedTuple):
    """Emission of a CONTRACT or KERNEL op: the name of a function in kernels/.

    The function is called as ``name(*numbers, *inputs, *outputs)``: integers from
    `numbers(out_aval(s), *in_avals, **params)`, then a pointer to the contiguous memory of each input and
    each output. It writes every element of its outputs. `variant`, called as `numbers` is, returns the name of another
    function to call instead, or `name`. If `checked`, it takes one more pointer, to an integer that it
    sets to 1 where an index is out of range; the program then raises a BoundsError. With `cut` several threads may
    share the work. `routine`, called with the operands' avals and the params, returns the name of a routine outside
    kernels/ whose address is the first argument. If `is_aligned`, operands are single elements or have the result's
    shape: others are expanded first. With `tells_saved` the last integer is 1, or 0 if nothing reads the outputs that
    the op saves: then the kernel need not write them. With `onto` the output is a copy of the first input before the
    call, whose pointer is left out. On a device such a kernel has that pointer, and writes every element.
    """

    name: str
    numbers: Callable[..., Sequence[int]]
    checked: bool = False
    cut: Cut | RangeCut | None = None
    variant: Callable[..., str] | None = None
    routine: Callable[..., str] | None = None
    is_aligned: bool = False
    tells_saved: bool = False
    onto: bool = False


HANDLED = "handled"
"""The parameter of a HOST op at whose errors a program does not apply (Note [errors that are handled])."""


class PythonCall(NamedTuple):
    """Emission of a HOST op: a function that the program calls with read-only ndarrays of the inputs.

    It returns one ndarray, or a tuple of them for several outputs. They may share memory with the inputs; those of the
    reference may not. Where they have other sizes or dtypes than the op's results, the program does not apply.
    Without this emission the program calls the reference.
    """

    function: Callable[..., Any]


class UserLoop(NamedTuple):
    """Emission of a KERNEL op: loops that a user has written, as the text of a kernel.

    Its arguments are `sizes`, the addresses of the inputs and outputs, and that of an integer that it sets to 1 where
    an index is out of range.
    """

    text: str
    sizes: tuple[int, ...]


class Passed(NamedTuple):
    """Emission of a HOST op whose results are some of its inputs, and that only its adjoint tells from nothing.

    Its parameters `first` and `count` say which. Programs do not have it.
    """


class Sample(NamedTuple):
    """A case for the generated tests: input shapes, params, and input ranges or dtypes where they matter."""

    shapes: tuple[tuple[int, ...], ...]
    params: Mapping[str, Any] = {}
    low: float | None = None
    high: float | None = None
    dtypes: tuple[str | None, ...] | None = None  # None: the dtype under test
    integer_high: int | None = None  # integer inputs are drawn from [0, integer_high)


class OnlyOnce:
    """The adjoint of an op that is itself an adjoint, of a function that has no second derivatives here."""

    def __init__(self, function: str) -> None:
        self.function = function

    def __call__(self, b: Any, node: Any, ct: Any) -> Sequence[Any]:
        raise GradientError(
            f"{self.function}: there are no second derivatives; differentiate once, or write the steps as a loop of "
            "matrix products and activations, which can be differentiated to any order."
        )


Emit = Scalar | Fold | Strided | Pieces | KernelCall | PythonCall | Passed | UserLoop
Infer = Callable[..., Aval | tuple[Aval, ...]]
Vjp = Callable[[Any, Any, Any], Sequence[Any]]
Rule = Callable[[Any, Any, Any, int], Any]


# Not frozen: that takes 4.5 million instructions more at each import.
@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Op:
    """One operation.

    name, doc       identity; formula, adjoint and conventions in a line or two
    kind            what it may fuse with
    infer           (*avals, **params) -> Aval: shape, format and dtype of the result; the only place that
                    raises a size or label error for the op. In a Graph formats are None.
    numpy           (*arrays, **params) -> ndarray: the reference, which is also eager mode; callers turn
                    NumPy's floating-point warnings off around it
    vjp             (b, node, ct) -> one cotangent for each input: a Value, None (no dependence), or a
                    function without arguments that builds it, called only if that input needs one.
                    Builds IR through b: ``b.mul(ct, 2.0)``. The result may have any shape that
                    broadcasts with the input: autodiff sums it to the input's shape and casts it to the
                    input's dtype. vjp=None: the derivative is zero or does not exist. Forward mode is derived from
                    it (autodiff/forward.py). The rule of an ELEMENTWISE op multiplies ct element by element.
    linear          groups of inputs; the op is linear in those of a group together, so that its tangent is the op of
                    theirs. Named where that takes fewer ops than what is derived from vjp.
    batch           the rule for many observations at once (ops/batch.py): the op of operands with one more axis in
                    front. It may return None where it has no answer. Elementwise ops and reductions need none; an op
                    of another kind without a rule is repeated for each observation
    emit            how it becomes code, by kind
    promote         (*dtypes) -> dtypes that the inputs are cast to first; None: no casts
    samples         cases for the generated tests
    view            (apply, x, v, **params) -> x in which what the result shows is v, for an op whose result is a view
                    of its first input where NumPy's is; None: the result has memory of its own
    domain          (low, high) of valid, smooth inputs for the generated tests
    kinks           points where the op is defined but not smooth
    analytic        the reference accepts complex input, so that the complex step applies
    saved           the number of results, at the end, that only the adjoint reads; they have no cotangent
    takes_complex   whether a KERNEL or ELEMENTWISE op allows complex operands, as far as infer does; all others do
    """

    name: str
    doc: str
    kind: Kind
    infer: Infer
    numpy: Callable[..., Any]
    vjp: Vjp | None
    emit: Emit | None
    samples: tuple[Sample, ...]
    linear: tuple[tuple[int, ...], ...] = ()
    batch: Rule | None = None
    promote: Callable[..., tuple[np.dtype, ...]] | None = None
    view: Callable[..., Any] | None = None
    domain: tuple[float, float] = (-2.0, 2.0)
    kinks: tuple[float, ...] = ()
    analytic: bool = True
    saved: int = 0
    takes_complex: bool = False

    @property
    def title(self) -> str:
        """The name of the function that users call, for messages."""
        return TITLES.get(self.name, self.name)

    def __post_init__(self) -> None:
        emits: Any = {
            Kind.ELEMENTWISE: Scalar,
            Kind.REDUCE: Fold,
            Kind.MOVE: (Strided, Pieces),
            Kind.CONTRACT: KernelCall,
            Kind.KERNEL: (KernelCall, UserLoop),
            Kind.LOOP: type(None),
            Kind.HOST: (PythonCall, Passed, type(None)),
        }[self.kind]
        if not isinstance(self.emit, emits):
            raise TypeError(f"op {self.name!r} of kind {self.kind.name} has emit={self.emit!r}")
        if isinstance(self.emit, Scalar) and _CHOICE.search(self.emit.template):
            raise TypeError(
                f"op {self.name!r}: its template chooses with if, and, or or; choose with where(condition, a, b), "
                "because operands may be vectors"
            )
        if self.kind in (Kind.ELEMENTWISE, Kind.KERNEL) and not self.takes_complex:
            self.infer = _of_real_numbers(self.title, self.infer)
        if not self.doc or not (self.samples or self.kind in (Kind.LOOP, Kind.HOST)):
            raise TypeError(f"op {self.name!r} lacks its doc or its samples")

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def _of_real_numbers(title: str, infer: Infer) -> Infer:
    """Return a rule that refuses complex operands first."""

    def checked(*avals: Aval, **params: Any) -> Any:
        for aval in avals:
            if aval.dtype.kind == "c":
                raise DTypeError(
                    f"{title}: not defined for {aval.dtype}; compute with x.real and x.imag, or with abs(x)."
                )
        return infer(*avals, **params)

    return checked


class Table(dict[str, Op]):
    """Ops by name.

    Families that many programs do without are imported when an op is asked for that the others lack.

    Args:
        families: the ops of families.
        late: modules of tracejit.ops whose families are imported late.

    Raises:
        ValueError: if a name occurs twice.
    """

    def __init__(self, families: Sequence[Sequence[Op]], late: Sequence[str] = ()) -> None:
        super().__init__()
        self._late = list(late)
        for family in families:
            self._add(family)

    def _add(self, family: Sequence[Op]) -> None:
        for op in family:
            if dict.get(self, op.name, op) is not op:
                raise ValueError(f"two ops are named {op.name!r}")
            self[op.name] = op

    def whole(self) -> "Table":
        """Return the table with all families."""
        for name in [*self._late]:
            self._add(importlib.import_module(f"tracejit.ops.{name}").OPS)
            with suppress(ValueError):  # another thread did the same
                self._late.remove(name)  # not before: other threads look for its ops
        return self

    def __missing__(self, name: str) -> Op:
        if not self._late:
            raise KeyError(name)
        return self.whole()[name]

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self.whole(), name)

    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self.whole())

    def __len__(self) -> int:
        return dict.__len__(self.whole())

    def get(self, name: str, default: Any = None) -> Any:
        """Return an op, or `default` if there is none of this name."""
        try:
            return self[name]
        except KeyError:
            return default

    def keys(self) -> Any:
        """Return all names."""
        return dict.keys(self.whole())

    def values(self) -> Any:
        """Return all ops."""
        return dict.values(self.whole())

    def items(self) -> Any:
        """Return all names with their ops."""
        return dict.items(self.whole())
