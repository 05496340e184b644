# SPDX-License-Identifier: BSD-3-Clause
"""Emission of reads and writes at computed indices for a device: a thread for each element of the result.

Note [places by threads]
What is read at an index is one element of the result. What is written at one may be an element that others are written
to as well, in an order that counts: sums have one order, and of elements that are put the last stays. So each thread
has an element of the result, and goes through all indices in order, to find those of its element. That takes as many
steps as there are indices, but all elements take them side by side, and no element has two writers. The threads of a
group read the same index at a time.
"""

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


class _Form(NamedTuple):
    """A kernel as text.

    numbers     the names of its integers
    reads       those of what it reads
    axes        of the result, and their sizes
    text        of one element
    """

    numbers: str
    reads: str
    axes: tuple[tuple[str, str], ...]
    text: str


def _taken(at: str) -> _Form:
    axes = ("o", "outer"), ("j", "m"), ("i", "inner")
    return _Form("outer n inner m lowest", "x places", axes, _TAKE.replace("AT", at))


def _written(numbers: str, at: str, new: str) -> _Form:
    axes = ("o", "outer"), ("k", "n"), ("i", "inner")
    return _Form(numbers, "x places v", axes, _WRITE.replace("AT", at).replace("NEW", new))


_OF_EACH = "(o * m + j) * inner + i"
_FORMS = {
    "take": _taken("j"),
    "take_along_axis": _taken(_OF_EACH),
    "scatter_add": _written("outer n inner m", "j", f"T(value + v[{_OF_EACH}])"),
    "add_along_axis": _written("outer n inner m", _OF_EACH, f"T(value + v[{_OF_EACH}])"),
    "put": _written("outer n inner m stride", "j", f"v[({_OF_EACH}) * stride]"),
}


def emit_gather(launch: KernelLaunch) -> list[tuple[Emitted, Grid]] | None:
    """Return the kernel of reads or writes at computed indices, its arguments, and its threads.

    None for other kernels, and where no element is left to look at the indices, which may still be out of range.
    """
    form = _FORMS.get(launch.name)
    if form is None:
        return None
    *read, y, fault = launch.pointers
    elements = y.root.aval.size
    if not elements:
        return None
    numbers = dict(zip(form.numbers.split(), launch.numbers, strict=True))
    values = {}
    if "lowest" in numbers:
        lowest = numbers.pop("lowest")
        values["missing"] = ScalarArgument(np.nan if y.dtype.kind == "f" else lowest, y.dtype)
    lines = [
        "element = thread()",
        "while element < elements:",
        *indented(1, [*taken_apart("element", form.axes), *form.text.strip("\n").splitlines()]),
        "    element = index(element + threads())",
    ]
    kernel = emitted(
        launch.name, "\n".join(lines), y.dtype, {**numbers, "elements": elements},
        dict(zip(form.reads.split(), read, strict=True)), {"y": y, "fault": fault}, values,
    )  # fmt: skip
    return [(kernel, Grid(min(-(-elements // BLOCK), MOST_TURNS), BLOCK))]
