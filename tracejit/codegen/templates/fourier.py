# SPDX-License-Identifier: BSD-3-Clause
"""Emission of discrete Fourier transforms, with a line of elements in each lane.

Note [lines in lanes]
A vector holds one element of each of several lines, so that no step of a transform moves anything between lanes. A
group of lines is copied to scratch memory that fits the cache, transformed there by Stockham's algorithm (W. T.
Cochran et al., What is the fast Fourier transform?, 1967), which needs no order of bits, and copied to its places.
Lines may lie anywhere; where the elements of a line lie side by side, squares of them are transposed in registers.
`work` has real parts, then imaginary parts, twice. An inverse transform exchanges real and imaginary parts before and
after a forward one. A kernel has the steps of its own size only.
"""

from collections.abc import Mapping
from math import cos, pi, sin

from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.ops.fourier import BESIDE, UNIT, radices
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

NUMBERS = (
    "first", "last", "groups", "lines", "n", "in_outer", "in_lane", "in_step", "in_re", "in_im", "out_outer",
    "out_lane", "out_step", "out_re", "out_im", "steps", "wrapped",
)  # fmt: skip

_TEXT = """
half = (n + BESIDE) * LANES
scale = roots_re[n]
base = first * 4 * (n + BESIDE) * UNIT
for part in range(first * UNIT // LANES, last * UNIT // LANES):
    task = part * LANES // UNIT
    line = task % groups * UNIT + part * LANES % UNIT
    count = min(LANES, lines - line)
    if count <= 0:
        continue
    source = task // groups * in_outer + line * in_lane
    target = task // groups * out_outer + line * out_lane
    LOAD
    a = base
    b = base + 2 * half
    s = 1
    m = n
    for step in range(steps):
        r = plan[step]
        m = m // r
        far = s * m * LANES
        next = s * LANES
        for p in range(m):
            RADICES
        s = s * r
        c = a
        a = b
        b = c
    STORE
"""

_LOADS = """
x{k} = x{l} + far
r{k} = load_V(work, x{k})
i{k} = load_V(work, x{k} + half)
"""

_FIRST = """
x0 = a + (q + s * p) * LANES
r0 = load_V(work, x0)
i0 = load_V(work, x0 + half)
"""

_STORES = """
y = y + next
store_V(work, y, u{k} * c{k} - v{k} * d{k})
store_V(work, y + half, u{k} * d{k} + v{k} * c{k})
"""

_TURNS = """
c{k} = roots_re[{k} * p * s]
d{k} = roots_im[{k} * p * s]
"""

_TWO = """
u0 = r0 + r1
v0 = i0 + i1
u1 = r0 - r1
v1 = i0 - i1
"""

_THREE = """
tr = r1 + r2
ti = i1 + i2
u0 = r0 + tr
v0 = i0 + ti
mr = r0 - tr * T(0.5)
mi = i0 - ti * T(0.5)
er = (r1 - r2) * T(0.8660254037844386)
ei = (i1 - i2) * T(0.8660254037844386)
u1 = mr + ei
v1 = mi - er
u2 = mr - ei
v2 = mi + er
"""

_FOUR = """
ar = r0 + r2
ai = i0 + i2
br = r0 - r2
bi = i0 - i2
cr = r1 + r3
ci = i1 + i3
er = r1 - r3
ei = i1 - i3
u0 = ar + cr
v0 = ai + ci
u1 = br + ei
v1 = bi - er
u2 = ar - cr
v2 = ai - ci
u3 = br - ei
v3 = bi + er
"""

_FIVE = """
ar = r1 + r4
ai = i1 + i4
br = r2 + r3
bi = i2 + i3
cr = r1 - r4
ci = i1 - i4
dr = r2 - r3
di = i2 - i3
u0 = r0 + ar + br
v0 = i0 + ai + bi
mr = r0 + ar * T(0.30901699437494745) - br * T(0.8090169943749475)
mi = i0 + ai * T(0.30901699437494745) - bi * T(0.8090169943749475)
er = cr * T(0.9510565162951535) + dr * T(0.5877852522924731)
ei = ci * T(0.9510565162951535) + di * T(0.5877852522924731)
u1 = mr + ei
v1 = mi - er
u4 = mr - ei
v4 = mi + er
mr = r0 - ar * T(0.8090169943749475) + br * T(0.30901699437494745)
mi = i0 - ai * T(0.8090169943749475) + bi * T(0.30901699437494745)
er = cr * T(0.5877852522924731) - dr * T(0.9510565162951535)
ei = ci * T(0.5877852522924731) - di * T(0.9510565162951535)
u2 = mr + ei
v2 = mi - er
u3 = mr - ei
v3 = mi + er
"""

# Transforms of even and of odd elements by fours; the latter are turned by eighths.
_EIGHT = """
ar = r0 + r4
ai = i0 + i4
br = r0 - r4
bi = i0 - i4
cr = r2 + r6
ci = i2 + i6
er = r2 - r6
ei = i2 - i6
u0 = ar + cr
v0 = ai + ci
u1 = br + ei
v1 = bi - er
u2 = ar - cr
v2 = ai - ci
u3 = br - ei
v3 = bi + er
ar = r1 + r5
ai = i1 + i5
br = r1 - r5
bi = i1 - i5
cr = r3 + r7
ci = i3 + i7
er = r3 - r7
ei = i3 - i7
r0 = ar + cr
i0 = ai + ci
r2 = ai - ci
i2 = cr - ar
r5 = br + ei
i5 = bi - er
r7 = br - ei
i7 = bi + er
r1 = (r5 + i5) * T(0.7071067811865476)
i1 = (i5 - r5) * T(0.7071067811865476)
r3 = (i7 - r7) * T(0.7071067811865476)
i3 = (r7 + i7) * T(-0.7071067811865476)
u4 = u0 - r0
v4 = v0 - i0
u0 = u0 + r0
v0 = v0 + i0
u5 = u1 - r1
v5 = v1 - i1
u1 = u1 + r1
v1 = v1 + i1
u6 = u2 - r2
v6 = v2 - i2
u2 = u2 + r2
v2 = v2 + i2
u7 = u3 - r3
v7 = v3 - i3
u3 = u3 + r3
v3 = v3 + i3
"""


def _odd(r: int) -> str:
    """Return the lines of an odd factor: sums and differences of the elements at equal distances from both ends."""
    half = range(1, r // 2 + 1)
    lines = []
    for k in half:
        lines += [f"a{k} = r{k} + r{r - k}", f"b{k} = i{k} + i{r - k}"]
        lines += [f"e{k} = r{k} - r{r - k}", f"f{k} = i{k} - i{r - k}"]
    lines.append(" + ".join(["u0 = r0", *[f"a{k}" for k in half]]))
    lines.append(" + ".join(["v0 = i0", *[f"b{k}" for k in half]]))
    for j in half:
        turns = [2 * pi * (j * k % r) / r for k in half]
        for name, first, parts, part in (
            ("mr", ["r0"], "a", cos), ("mi", ["i0"], "b", cos), ("er", [], "e", sin), ("ei", [], "f", sin)
        ):  # fmt: skip
            terms = [f"{parts}{k} * T({part(turn)!r})" for k, turn in zip(half, turns, strict=True)]
            lines.append(f"{name} = " + " + ".join([*first, *terms]))
        lines += [f"u{j} = mr + ei", f"v{j} = mi - er", f"u{r - j} = mr - ei", f"v{r - j} = mi + er"]
    return "\n" + "\n".join(lines) + "\n"


ARITHMETIC = {2: _TWO, 3: _THREE, 4: _FOUR, 5: _FIVE, 7: _odd(7), 8: _EIGHT, 11: _odd(11), 13: _odd(13)}

_ANY = """
for q in range(s):
    x0 = a + (q + s * p) * LANES
    y = b + (q + s * r * p) * LANES
    for j in range(r):
        u0 = load_V(work, x0)
        v0 = load_V(work, x0 + half)
        for k in range(1, r):
            e = j * k % r * (n // r)
            r0 = load_V(work, x0 + k * far)
            i0 = load_V(work, x0 + k * far + half)
            u0 = u0 + r0 * roots_re[e] - i0 * roots_im[e]
            v0 = v0 + r0 * roots_im[e] + i0 * roots_re[e]
        c0 = roots_re[p * j * s]
        d0 = roots_im[p * j * s]
        store_V(work, y + j * next, u0 * c0 - v0 * d0)
        store_V(work, y + j * next + half, u0 * d0 + v0 * c0)
"""


def _butterflies(r: int, arithmetic: str) -> str:
    """Return the lines of one p: r elements that lie `far` apart become r neighbours, `next` apart, and are turned."""
    loads = _FIRST + "".join(_LOADS.format(k=k, l=k - 1) for k in range(1, r))
    stores = "y = b + (q + s * R * p) * LANES\nstore_V(work, y, u0)\nstore_V(work, y + half, v0)\n".replace(
        "R", str(r)
    )
    stores += "".join(_STORES.format(k=k) for k in range(1, r))
    lines = (loads + arithmetic + stores).strip("\n").splitlines()
    inner = "\n".join(_indented("\n".join(lines)))
    turns = "".join(_TURNS.format(k=k) for k in range(1, r))
    return f"{turns}for q in range(s):\n{inner}"


def _steps(n: int) -> str:
    """Return the lines of one p of each step that a transform of n elements has."""
    lines, word = [], "if"
    for r in dict.fromkeys(radices(n)):
        if r in ARITHMETIC:
            lines += [f"{word} r == {r}:", *_indented(_butterflies(r, ARITHMETIC[r]))]
            word = "elif"
    if any(r not in ARITHMETIC for r in radices(n)):
        lines += ["else:" if lines else "if r > 0:", *_indented(_ANY.strip("\n"))]
    return "\n".join(lines or ["pass"])


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines() if line]


def _load(numbers: Mapping[str, int], lanes: int) -> str:
    """Return the lines that copy lines to scratch memory."""
    first, second = ("x_im", "x_re") if numbers["out_re"] else ("x_re", "x_im")  # of an inverse transform
    if numbers["in_lane"] == 1:
        return f"""
for t in range(n):
    store_V(work, base + t * LANES, load_first_V({first}, source + t * in_step, count))
    store_V(work, base + half + t * LANES, load_first_V({second}, source + t * in_step, count))
"""
    # The text says what lies side by side, so that LLVM makes vectors of it.
    is_whole = numbers["in_re"] != numbers["in_im"]
    if is_whole:
        first = second = "x_re"
    if is_whole and numbers["in_step"] == 2:
        stores = "\n".join(
            f"    store_V(work, base + (t + {k}) * LANES, square[{2 * k + numbers['in_re']}])\n"
            f"    store_V(work, base + half + (t + {k}) * LANES, square[{2 * k + numbers['in_im']}])"
            for k in range(lanes // 2)
        )
        return f"""
for t in range(0, n - {lanes // 2 - 1}, {lanes // 2}):
    square = transpose_V(load_tile_V(x_re, source + 2 * t, rows_LANES(0, count), in_lane, 0, LANES))
{stores}
for t in range(n - n % {lanes // 2}, n):
    for lane in range(count):
        work[base + t * LANES + lane] = x_re[source + lane * in_lane + t * 2 + {numbers["in_re"]}]
        work[base + half + t * LANES + lane] = x_re[source + lane * in_lane + t * 2 + {numbers["in_im"]}]
"""
    if is_whole and numbers["in_lane"] == 2:
        return """
for t in range(n):
    v = load_first_V(x_re, source + t * in_step, min(2 * count, LANES))
    w = load_first_V(x_re, source + t * in_step + LANES, max(2 * count - LANES, 0))
    store_V(work, base + (in_re * (n + BESIDE) + t) * LANES, even_X(v, w))
    store_V(work, base + (in_im * (n + BESIDE) + t) * LANES, odd_X(v, w))
"""
    at = "source + " + _place("in", numbers)
    return f"""
{_loops(numbers["in_lane"])}
        work[base + t * LANES + lane] = {first}[{at} + {numbers["in_re"]}]
        work[base + half + t * LANES + lane] = {second}[{at} + {numbers["in_im"]}]
"""


def _store(numbers: Mapping[str, int], lanes: int) -> str:
    """Return the lines that copy lines to their places."""
    if numbers["out_step"] == 2:
        parts = ["a + half", "a"] if numbers["out_re"] else ["a", "a + half"]
        vectors = ", ".join(
            f"load_V(work, {part} + (t + {k}) * LANES) * scale" for k in range(lanes // 2) for part in parts
        )
        return f"""
for t in range(0, n - {lanes // 2 - 1}, {lanes // 2}):
    square = transpose_V(({vectors}))
    store_tile_V(z, target + 2 * t, rows_LANES(0, count), out_lane, square, 0, LANES)
for t in range(n - n % {lanes // 2}, n):
    for lane in range(count):
        z[target + lane * out_lane + t * 2 + {numbers["out_re"]}] = work[a + t * LANES + lane] * scale
        z[target + lane * out_lane + t * 2 + {numbers["out_im"]}] = work[a + half + t * LANES + lane] * scale
"""
    if numbers["out_lane"] == 2:
        first, second = ("a + half", "a") if numbers["out_re"] else ("a", "a + half")
        return f"""
for t in range(n):
    v = load_V(work, {first} + t * LANES) * scale
    w = load_V(work, {second} + t * LANES) * scale
    store_first_X(z, target + t * out_step, zipped_low_X(v, w), min(2 * count, LANES))
    store_first_X(z, target + t * out_step + LANES, zipped_high_X(v, w), max(2 * count - LANES, 0))
"""
    at = "target + " + _place("out", numbers)
    return f"""
{_loops(numbers["out_lane"])}
        z[{at} + {numbers["out_re"]}] = work[a + t * LANES + lane] * scale
        z[{at} + {numbers["out_im"]}] = work[a + half + t * LANES + lane] * scale
"""


_FIRST_AGAIN = """
for lane in range(count):
    z[target + lane * out_lane + n * out_step + out_re] = work[a + lane] * scale
    z[target + lane * out_lane + n * out_step + out_im] = work[a + half + lane] * scale
"""


def _loops(lane: int) -> str:
    """Return two loops, the inner one over what lies side by side."""
    lanes, steps = "for lane in range(count):", "for t in range(n):"
    outer, inner = (steps, lanes) if lane == 2 else (lanes, steps)
    return f"{outer}\n    {inner}"


def _place(stem: str, numbers: Mapping[str, int]) -> str:
    lane, step = (
        f"{name} * {2 if numbers[f'{stem}_{kind}'] == 2 else f'{stem}_{kind}'}"
        for name, kind in (("lane", "lane"), ("t", "step"))
    )
    return f"{lane} + {step}"


def kernel(launch: KernelLaunch) -> Kernel:
    """Return the kernel of a launch."""
    numbers = dict(zip(NUMBERS, launch.numbers, strict=True))
    lanes = lanes_of(launch.pointers[-1].dtype)
    snippets = {
        "LOAD": _load(numbers, lanes),
        "STORE": _store(numbers, lanes) + (_FIRST_AGAIN if numbers["wrapped"] else ""),
        "RADICES": _steps(numbers["n"]),
    }
    return written(
        "fft_lines", _TEXT, launch.pointers[-1].dtype, NUMBERS, "x_re x_im roots_re roots_im plan:i64", "z work",
        {"UNIT": UNIT, "BESIDE": BESIDE}, snippets,
    )  # fmt: skip
