# SPDX-License-Identifier: BSD-3-Clause
"""Emission of kernels of which a thread makes each element, or each column, of the result, for a device.

Note [places by threads]
What is read at a computed index is one element of the result. What is written at one may be an element that others are
written to as well, in an order that counts: sums have one order, and of elements that are put the last stays. So each
thread has an element of the result, and goes through all indices in order, to find those of its element. That takes as
many steps as there are indices, but all elements take them side by side, and no element has two writers. The threads of
a group read the same index at a time.

Note [ranks by threads]
An element is sorted by its rank: how many elements of its row are smaller, or equal and before it. A thread counts them
for each element. That is n^2 comparisons for a row of n elements, where merging takes n log n on one thread.
"""

import math

import numpy as np

from tracejit.codegen.device.text import emitted, indented, taken_apart
from tracejit.codegen.nest import Emitted
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.spread import BLOCK, MOST_TURNS
from tracejit.program import Grid, ScalarArgument
from tracejit.util.named_tuples import NamedTuple

_TAKE = """
place = places[AT]
place = place + n if place < 0 else place
if 0 <= place and place < n:
    y[element] = x[(o * n + index(place)) * inner + i]
else:
    fault[0] = 1
    y[element] = missing
"""

_WRITE = """
value = x[element]
j = index(0)
while j < m:
    place = places[AT]
    place = place + n if place < 0 else place
    if place == k:
        value = NEW
    if place < 0 or place >= n:
        fault[0] = 1
    j = index(j + 1)
y[element] = value
"""

_RANK = """
value = x[element]
is_nan = value != value
rank = index(0)
j = index(0)
while j < n:
    other = x[(o * n + j) * inner + i]
    is_other_nan = other != other
    if other < value or (is_nan and not is_other_nan):
        rank = index(rank + 1)
    elif j < k and (other == value or (is_nan and is_other_nan)):
        rank = index(rank + 1)
    j = index(j + 1)
"""

_SORT = _RANK + "y[(o * n + rank) * inner + i] = value\n"

_ORDER = (
    _RANK
    + """
y[(o * n + rank) * inner + i] = k
y[elements + element] = rank
"""
)

_SCAN = """
at = (o * n + FIRST) * inner + i
total = START
y[at] = total
k = index(1)
while k < n:
    at = at + STEP
    total = NEXT
    y[at] = total
    k = index(k + 1)
"""


class _Form(NamedTuple):
    """A kernel as text.

    numbers     the names of its integers
    operands    those of what it reads, then, after a bar, of what it writes; the rest is scratch memory
    axes        of which a thread takes each place, and their sizes
    text        of one place
    """

    numbers: str
    operands: str
    axes: tuple[tuple[str, str], ...]
    text: str


_O, _I, _K = ("o", "outer"), ("i", "inner"), ("k", "n")
_OF_EACH = "(o * m + j) * inner + i"


def _taken(at: str) -> _Form:
    axes = _O, ("j", "m"), _I
    return _Form("outer n inner m lowest", "x places | y fault", axes, _TAKE.replace("AT", at))


def _written(numbers: str, at: str, new: str) -> _Form:
    text = _WRITE.replace("AT", at).replace("NEW", new)
    return _Form(numbers, "x places v | y fault", (_O, _K, _I), text)


def _scanned(numbers: str, reads: str, start: str, following: str) -> _Form:
    is_reversible = "reverse" in numbers
    first = "(n - 1) * reverse" if is_reversible else "0"
    step = "inner * (1 - 2 * reverse)" if is_reversible else "inner"
    text = _SCAN.replace("FIRST", first).replace("STEP", step).replace("START", start)
    return _Form(numbers, f"{reads} | y", (_O, _I), text.replace("NEXT", following))


_FORMS = {
    "take": _taken("j"),
    "take_along_axis": _taken(_OF_EACH),
    "scatter_add": _written("outer n inner m", "j", f"T(value + v[{_OF_EACH}])"),
    "add_along_axis": _written("outer n inner m", _OF_EACH, f"T(value + v[{_OF_EACH}])"),
    "put": _written("outer n inner m stride", "j", f"v[({_OF_EACH}) * stride]"),
    "partition": _Form("outer n inner least most", "x | y", (_O, _K, _I), _SORT),
    "order": _Form("outer n inner", "x | y", (_O, _K, _I), _ORDER),
    "cumsum": _scanned("outer n inner reverse", "x", "x[at]", "T(total + x[at])"),
    "cumprod": _scanned("outer n inner", "x", "x[at]", "T(total * x[at])"),
    "recurrence": _scanned("outer n inner reverse", "a b", "b[at]", "T(b[at] + a[at] * total)"),
}


def emit_elements(launch: KernelLaunch) -> list[tuple[Emitted, Grid]] | None:
    """Return a kernel of which threads take elements or columns, its arguments, and its threads.

    None for other kernels, and where there are no elements, or none to take: indices may be out of range all the same.
    """
    form = _FORMS.get(launch.name)
    if form is None:
        return None
    numbers = dict(zip(form.numbers.split(), launch.numbers, strict=True))
    elements = math.prod([numbers[size] for _, size in form.axes]) * min(1, numbers["n"])
    if not elements:
        return None
    reads, writes = (part.split() for part in form.operands.split("|"))
    places = dict(zip([*reads, *writes], launch.pointers, strict=False))
    y = places["y"]
    values = {}
    if "lowest" in numbers:
        lowest = numbers.pop("lowest")
        missing = y.dtype.type(np.nan if y.dtype.kind == "f" else lowest)
        values["missing"] = ScalarArgument(missing, y.dtype)
    lines = [
        "element = thread()",
        "while element < elements:",
        *indented(1, [*taken_apart("element", form.axes), *form.text.strip("\n").splitlines()]),
        "    element = index(element + threads())",
    ]
    kernel = emitted(
        launch.name, "\n".join(lines), y.dtype, {**numbers, "elements": elements},
        {name: places[name] for name in reads}, {name: places[name] for name in writes}, values,
    )  # fmt: skip
    return [(kernel, Grid(min(-(-elements // BLOCK), MOST_TURNS), BLOCK))]
