# SPDX-License-Identifier: BSD-3-Clause
"""Emission of discrete Fourier transforms, with a line of elements in each lane.

Note [lines in lanes]
A vector holds one element of each of several lines, so that no step of a transform moves anything between lanes. A
group of lines is copied to scratch memory that fits the cache, transformed there by Stockham's algorithm (W. T. Cochran
et al., What is the fast Fourier transform?, 1967), which needs no order of bits, and copied to its places. Lines may lie
anywhere: neighbours are loaded as vectors, others are gathered. `work` has real parts, then imaginary parts, twice.
"""

from tracejit.codegen.templates.tile_text import written
from tracejit.ops.fourier import UNIT
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

NUMBERS = (
    "first", "last", "groups", "lines", "n", "in_outer", "in_lane", "in_step", "out_outer", "out_lane", "out_step",
    "steps",
)  # fmt: skip

_TEXT = """
half = n * LANES
base = first * 4 * n * UNIT
for part in range(first * UNIT // LANES, last * UNIT // LANES):
    task = part * LANES // UNIT
    line = task % groups * UNIT + part * LANES % UNIT
    count = min(LANES, lines - line)
    if count <= 0:
        continue
    source = task // groups * in_outer + line * in_lane
    target = task // groups * out_outer + line * out_lane
    for t in range(n):
        store_V(work, base + t * LANES, LOAD_RE)
        store_V(work, base + half + t * LANES, LOAD_IM)
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
            if r == 4:
                FOUR
            elif r == 2:
                TWO
            elif r == 3:
                THREE
            else:
                ANY
        s = s * r
        c = a
        a = b
        b = c
    for t in range(n):
        STORE_RE
        STORE_IM
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
    stores = "y = b + (q + s * R * p) * LANES\nstore_V(work, y, u0)\nstore_V(work, y + half, v0)\n".replace("R", str(r))
    stores += "".join(_STORES.format(k=k) for k in range(1, r))
    lines = (loads + arithmetic + stores).strip("\n").splitlines()
    inner = "\n".join(f"    {line}" for line in lines if line)
    turns = "".join(_TURNS.format(k=k) for k in range(1, r))
    return f"{turns}for q in range(s):\n{inner}"


def kernel(launch: KernelLaunch) -> Kernel:
    """Return the kernel of a launch."""
    numbers = dict(zip(NUMBERS, launch.numbers, strict=True))
    loads, stores = {}, {}
    for part in ("re", "im"):
        place = f"x_{part}, source + t * in_step"
        is_near = numbers["in_lane"] == 1
        loads[f"LOAD_{part.upper()}"] = f"load_first_V({place}, count)" if is_near else f"gather_X({place}, in_lane, count)"
        value = f"load_V(work, a + t * LANES{' + half' if part == 'im' else ''})"
        place = f"y_{part}, target + t * out_step"
        is_near = numbers["out_lane"] == 1
        stores[f"STORE_{part.upper()}"] = (
            f"store_first_X({place}, {value}, count)" if is_near else f"scatter_X({place}, out_lane, {value}, count)"
        )
    text = _TEXT
    for name, expression in loads.items():
        text = text.replace(name, expression)
    snippets = {
        **stores, "TWO": _butterflies(2, _TWO), "THREE": _butterflies(3, _THREE), "FOUR": _butterflies(4, _FOUR),
        "ANY": _ANY,
    }  # fmt: skip
    return written(
        "fft_lines", text, launch.pointers[-1].dtype, NUMBERS, "x_re x_im roots_re roots_im plan:i64", "y_re y_im work",
        {"UNIT": UNIT}, snippets,
    )  # fmt: skip
