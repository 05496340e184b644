# SPDX-License-Identifier: BSD-3-Clause
"""The text of a step of a recurrent layer on a device: products with weights, and what units do with their sums.

Note [products of a step]
A block of threads has UNITS units of ROWS observations. Neighbouring threads have neighbouring units, and so
neighbouring columns of the weights. A group of threads takes every SHARES-th product, for all rows, so that weights are
read once for all of them. The sums of the groups meet in shared memory. Then each group has one row, and computes the
rest of the step for it.
"""

from collections.abc import Mapping, Sequence

from tracejit.codegen.device.text import indented
from tracejit.ops.recurrent import PANEL
from tracejit.passes.loops.kept_values import GROUP
from tracejit.program import Grid
from tracejit.util.named_tuples import NamedTuple

UNITS, ROWS, SHARES = GROUP, 4, 8
_LOADS = 8  # of weights, about, before they are multiplied


class Products(NamedTuple):
    """Products of an operand and weights, which are summed up.

    x       the text before the number of an element of the operand, as in ``h[row * hidden``
    length  the text of how many there are
    sums    names, with the name of the weights, the column, and how many rows a panel of them has
    """

    x: str
    length: str
    sums: Mapping[str, tuple[str, str, str]]


class StepText(NamedTuple):
    """A launch of a step: products, and the lines of one unit, which find the sums under their names."""

    products: Sequence[Products]
    lines: Sequence[str]


def grid_of(batch: int, hidden: int) -> Grid:
    """Return the threads of a step."""
    return Grid(-(-batch // ROWS) * -(-hidden // UNITS), SHARES * GROUP)


def text_of(step: StepText) -> str:
    """Return the text of a step, which takes the numbers `batch` and `hidden`."""
    names = [*dict.fromkeys(name for products in step.products for name in products.sums)]
    size = len(names) * UNITS
    lines = [
        f"sums = shared_T(0, {SHARES * ROWS * size})",
        f"blocks_of_units = quotient(index(hidden + {UNITS - 1}), {UNITS})",
        f"given_unit = index(remainder(block(), blocks_of_units) * {UNITS} + lane())",
        "unit = index(min(given_unit, hidden - 1))",
        f"first_row = index(quotient(block(), blocks_of_units) * {ROWS})",
        f"share = quotient(thread_of_block(), {GROUP})",
        *[f"row{r} = index(min(first_row + {r}, batch - 1))" for r in range(ROWS)],
        *[f"{name}_of{r} = T(0)" for name in names for r in range(ROWS)],
    ]
    for products in step.products:
        lines += _added(products)
    lines.append(f"at_sums = share * {ROWS * size} + lane()")
    for r in range(ROWS):
        lines += [
            f"sums[at_sums + {r * size + number * UNITS}] = {name}_of{r}" for number, name in enumerate(names)
        ]
    own = [f"at_sums = share * {size} + lane()"]
    for number, name in enumerate(names):
        own.append(f"{name} = sums[at_sums + {number * UNITS}]")
        own += [
            f"{name} = {name} + sums[at_sums + {share * ROWS * size + number * UNITS}]"
            for share in range(1, SHARES)
        ]
    lines += [
        "barrier()",
        "row = index(first_row + share)",
        f"if share < {ROWS} and row < batch and given_unit < hidden:",
        *indented(1, [*own, "element = index(row * hidden + unit)", *step.lines]),
    ]
    return "\n".join(lines)


def _added(products: Products) -> list[str]:
    """Return the lines that add a group's share of products, of all rows."""
    lines = []
    for name, (_, column, rows) in products.sums.items():
        lines += [
            f"column = index({column})",
            f"at_{name} = quotient(column, {PANEL}) * {rows} * {PANEL} + remainder(column, {PANEL})",
        ]

    def several(numbers: range) -> list[str]:
        result = []
        for k in numbers:
            step = k * SHARES
            for name, (w, _, _) in products.sums.items():
                result.append(f"{name}_{k} = {w}[at_{name} + (p + {step}) * {PANEL}]")
            result += [
                f"x{k}_{r} = {products.x.replace('row', f'row{r}')} + p + {step}]" for r in range(ROWS)
            ]
        for k in numbers:
            for name in products.sums:
                result += [f"{name}_of{r} = fma_T(x{k}_{r}, {name}_{k}, {name}_of{r})" for r in range(ROWS)]
        return [*result, f"p = index(p + {len(numbers) * SHARES})"]

    at_once = max(1, _LOADS // 2 // len(products.sums))
    return [
        *lines,
        "p = share",
        f"while p + {(at_once - 1) * SHARES} < {products.length}:",
        *indented(1, several(range(at_once))),
        f"while p < {products.length}:",
        *indented(1, several(range(1))),
    ]
