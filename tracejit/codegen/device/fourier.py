# SPDX-License-Identifier: BSD-3-Clause
"""Emission of discrete Fourier transforms for a device.

Note [steps of a transform]
Each step of Stockham's algorithm (codegen/templates/fourier.py) is a launch, in which a thread computes r elements from
r elements. The first step reads the operand, wherever its lines lie, and the last one writes the result; between them,
steps use the two halves of `work`. There the elements of a line are neighbours, or the lines are, if they are
neighbours in the operand. The kernel of a step has the radix in its text, and all sizes and places as arguments. For a
radix without a text of its own, a step has a thread for each element.
"""

from functools import cache

from tracejit.codegen.device.text import emitted, indented, taken_apart
from tracejit.codegen.nest import Emitted
from tracejit.codegen.templates.fourier import ARITHMETIC, NUMBERS
from tracejit.ops.fourier import radices
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.spread import BLOCK, blocks_of
from tracejit.program import Grid
from tracejit.util.named_tuples import NamedTuple


class _Lines(NamedTuple):
    """Lines in memory: their parts, and how many elements lie between groups of lines, lines, and elements."""

    re: Access
    im: Access
    outer: int
    line: int
    step: int


def emit_fourier(launch: KernelLaunch) -> list[tuple[Emitted, Grid]]:
    """Return the kernels of transforms of lines, with their arguments and threads."""
    n = dict(zip(NUMBERS, launch.numbers, strict=True))
    x_re, x_im, roots_re, roots_im, _, z, work = launch.pointers
    size, lines = n["n"], n["lines"]
    outer = n["last"] // max(1, n["groups"])
    if not outer * lines * size:
        return []
    parts = (x_re, x_im)
    if n["in_re"] != n["in_im"]:
        parts = (x_re.moved(n["in_re"]), x_re.moved(n["in_im"]))
    elif n["out_re"]:  # an inverse transform is one of exchanged parts, whose parts are exchanged again
        parts = (x_im, x_re)
    source = _Lines(*parts, n["in_outer"], n["in_lane"], n["in_step"])
    target = _Lines(z.moved(n["out_re"]), z.moved(n["out_im"]), n["out_outer"], n["out_lane"], n["out_step"])
    is_line_last = lines > 1 and source.line < source.step
    whole = outer * lines * size
    halves = [
        _Lines(
            work.moved(2 * half * whole), work.moved((2 * half + 1) * whole), lines * size,
            *((1, lines) if is_line_last else (size, 1)),
        )
        for half in range(2)
    ]  # fmt: skip
    steps = radices(size) or [1]
    launches, s = [], 1
    for number, r in enumerate(steps):
        made = halves[number % 2] if number + 1 < len(steps) else target
        count = whole // r if r in ARITHMETIC else whole
        numbers = {
            "count": count, "lines": lines, "n": size, "far": size // r, "s": s, "r": r,
            # Behind the roots is what the last step multiplies by; the first of them is 1.
            "scale_at": size if number + 1 == len(steps) else 0,
            "x_outer": source.outer, "x_line": source.line, "x_step": source.step,
            "z_outer": made.outer, "z_line": made.line, "z_step": made.step,
        }  # fmt: skip
        reads = {"x_re": source.re, "x_im": source.im, "roots_re": roots_re, "roots_im": roots_im}
        writes = {"z_re": made.re, "z_im": made.im}
        kernel = emitted(
            "fft_step", _text(r if r in ARITHMETIC else 0, is_line_last), z.dtype, numbers, reads, writes
        )
        launches.append((kernel, Grid(blocks_of(count), BLOCK)))
        source, s = made, s * r
    if n["wrapped"]:
        launches.append(_first_again(target, outer, lines, size))
    return launches


def _first_again(target: _Lines, outer: int, lines: int, size: int) -> tuple[Emitted, Grid]:
    """Return the kernel that stores the first element of each line once more behind the last one."""
    count = outer * lines
    numbers = {"count": count, "lines": lines, "outer": target.outer, "line": target.line}
    far = size * target.step
    text = "\n".join([
        "number = thread()",
        "while number < count:",
        "    at = quotient(number, lines) * outer + remainder(number, lines) * line",
        "    z_re[at] = x_re[at]",
        "    z_im[at] = x_im[at]",
        "    number = index(number + threads())",
    ])  # fmt: skip
    reads = {"x_re": target.re, "x_im": target.im}
    writes = {"z_re": target.re.moved(far), "z_im": target.im.moved(far)}
    return emitted("fft_first_again", text, target.re.dtype, numbers, reads, writes), Grid(
        blocks_of(count), BLOCK
    )


@cache
def _text(radix: int, is_line_last: bool) -> str:
    """Return the text of a step; a radix of 0 stands for any."""
    inner = [("i", "far")] if radix else [("i", "far"), ("j", "r")]
    axes = [("group_of_lines", ""), *inner, ("line", "lines")] if is_line_last else [
        ("group_of_lines", ""), ("line", "lines"), *inner
    ]  # fmt: skip
    lines = [
        *taken_apart("number", axes),
        "p = quotient(i, s)",
        "q = remainder(i, s)",
        "at_x = group_of_lines * x_outer + line * x_line + i * x_step",
        "at_z = group_of_lines * z_outer + line * z_line + (q + s * r * p) * z_step",
        "f = roots_re[scale_at]",
        *(_fixed(radix) if radix else _any()),
        "number = index(number + threads())",
    ]
    return "\n".join(["number = thread()", "while number < count:", *indented(1, lines)])


def _fixed(radix: int) -> list[str]:
    lines = []
    for k in range(radix):
        lines += [f"r{k} = x_re[at_x + {k} * far * x_step]", f"i{k} = x_im[at_x + {k} * far * x_step]"]
    lines += ARITHMETIC[radix].strip("\n").splitlines()
    lines += ["z_re[at_z] = u0 * f", "z_im[at_z] = v0 * f"]
    for k in range(1, radix):
        lines += [f"c{k} = roots_re[{k} * p * s]", f"d{k} = roots_im[{k} * p * s]"]
        lines += _turned(f"at_z + {k} * s * z_step", str(k))
    return lines


def _any() -> list[str]:
    return [
        "u0 = x_re[at_x]",
        "v0 = x_im[at_x]",
        "e = index(0)",
        "k = index(1)",
        "while k < r:",
        "    e = index(e + j)",
        "    if e >= r:",
        "        e = index(e - r)",
        "    r0 = x_re[at_x + k * far * x_step]",
        "    i0 = x_im[at_x + k * far * x_step]",
        "    c0 = roots_re[e * far]",
        "    d0 = roots_im[e * far]",
        "    u0 = u0 + r0 * c0 - i0 * d0",
        "    v0 = v0 + r0 * d0 + i0 * c0",
        "    k = index(k + 1)",
        "c0 = roots_re[p * j * s]",
        "d0 = roots_im[p * j * s]",
        *_turned("at_z + j * s * z_step", "0"),
    ]


def _turned(place: str, k: str) -> list[str]:
    """Return the lines that store an element, turned by c and d, times f."""
    return [
        f"z_re[{place}] = (u{k} * c{k} - v{k} * d{k}) * f",
        f"z_im[{place}] = (u{k} * d{k} + v{k} * c{k}) * f",
    ]
