# SPDX-License-Identifier: BSD-3-Clause
"""Emission of max pooling, and of its adjoint, where the elements of a line, or the channels, are neighbours in memory.

Note [windows side by side]
Where channels come first, lanes are neighbouring windows of a line. If windows begin two elements apart, at a tap they
see the even or the odd elements of two vectors. Lanes outside of the line are loaded as minus infinity, which is never
larger. The adjoint collects: an element gets the cotangents of the windows whose largest element it is, those of lower
taps first. Lanes are groups of s elements, where windows begin s elements apart. With padding p, tap k of the window g
+ (r + p - k) / s is the element r of group g, where s divides r + p - k. The groups of a line are then stored element
by element in turn. The text depends on the taps and the padding of a line only.

Where channels come last, lanes are channels, of up to four vectors at a time, and largest elements and their places
stay in registers; the adjoint collects for one element after another. Windows of 2 x 2 that do not overlap have loops,
which LLVM puts into vectors.
"""

from collections.abc import Iterator

from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.templates.tile_text import lanes_of, written
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

NUMBERS = (
    "first", "last", "d", "h", "w", "inner", "od", "oh", "ow", "kd", "kh", "kw", "sd", "sh", "sw", "pd", "ph", "pw",
)  # fmt: skip

_MOST_TAPS = 8  # of a line, which are written out
_MOST_STEPS = 2  # elements between windows
_MOST_VECTORS = 4  # of channels at a time

# The rows of the result: plane, z0 and y0 are where the windows of a row begin, and the taps za to zb and ya to yb of
# them lie in the array.
_ROWS = """
oz = first // oh % od
oy = first % oh - 1
plane = first // oh // od * d
for row in range(first, last):
    oy += 1
    if oy == oh:
        oy = 0
        oz += 1
        if oz == od:
            oz = 0
            plane += d
    z0 = oz * sd - pd
    y0 = oy * sh - ph
    za = max(0, -z0)
    zb = min(kd, d - z0)
    ya = max(0, -y0)
    yb = min(kh, h - y0)
"""

_LARGEST = f"""{_ROWS}\
    for ox in range(0, ow, LANES):
        begin = ox * STEP - pw
        few = min(LANES, ow - ox)
        # The first place of each window, for one that has minus infinity only.
        code = Px((za * kh + ya) * WIDTH)
        FIRST_PLACES
        best = Tx(NOTHING)
        for kz in range(za, zb):
            for ky in range(ya, yb):
                at = ((plane + z0 + kz) * h + y0 + ky) * w + begin
                tap = Px((kz * kh + ky) * WIDTH)
                COMPARE
        store_first_X(y, row * ow + ox, best, few)
        store_first_X(place, row * ow + ox, code, few)
"""

_LARGEST_CHANNELS = f"""{_ROWS}\
    for ox in range(ow):
        x0 = ox * sw - pw
        xa = max(0, -x0)
        xb = min(kw, w - x0)
        for c in range(0, inner, SEVERAL):
            few = FEW
            # Codes have 32 bits, like most elements: then masks have the same form.
            code = i32Y((za * kh + ya) * kw + xa)
            best = Ty(NOTHING)
            for kz in range(za, zb):
                for ky in range(ya, yb):
                    at = (((plane + z0 + kz) * h + y0 + ky) * w + x0) * inner + c
                    for kx in range(xa, xb):
                        value = load_first_Y(x, at + kx * inner, few)
                        larger = (value > best) | (value != value)
                        best = where(larger, value, best)
                        code = where(larger, i32Y((kz * kh + ky) * kw + kx), code)
            at = (row * ow + ox) * inner + c
            store_first_Y(y, at, best, few)
            store_first_Y(place, at, Py(code), few)
"""

_FIRST_PLACE = """
before = (STEP - 1 - begin - TAP) // STEP
code = where(inside_X(before), Px((za * kh + ya) * WIDTH + TAP + 1), code)
"""

_COMPARE = """
value = VALUE
larger = (value > best) | (value != value)
best = where(larger, value, best)
code = where(larger, tap + TAP, code)
"""

# Of element z, tap rest_z is that of window next_z, tap rest_z + sd that of the window before, and so on. They are
# counted, because a division would take as long as a vector.
_COLLECT = """
for plane in range(first, last):
    rest_z = pd % sd
    next_z = pd // sd
    for z in range(d):
        rest_y = ph % sh
        next_y = ph // sh
        for y in range(h):
            base = ((plane * d + z) * h + y) * w
            for g in range(0, (w + STEP - 1) // STEP, LANES):
                ZERO
                kz = rest_z
                oz = next_z
                while kz < kd and oz >= 0:
                    ky = rest_y
                    oy = next_y
                    while ky < kh and oy >= 0:
                        if oz < od and oy < oh:
                            tap = Px((kz * kh + ky) * WIDTH)
                            start = ((plane * od + oz) * oh + oy) * ow + g
                            ADD
                        ky += sh
                        oy -= 1
                    kz += sd
                    oz -= 1
                STORE
            rest_y += 1
            if rest_y == sh:
                rest_y = 0
                next_y += 1
        rest_z += 1
        if rest_z == sd:
            rest_z = 0
            next_z += 1
"""

_COLLECT_CHANNELS = """
z = first // h % d
y = first % h
plane = first // h // d * od
for row in range(first, last):
    rest_z = (z + pd) % sd
    next_z = (z + pd) // sd
    rest_y = (y + ph) % sh
    next_y = (y + ph) // sh
    rest_x = pw % sw
    next_x = pw // sw
    for x in range(w):
        for c in range(0, inner, SEVERAL):
            few = FEW
            total = Ty(0)
            kz = rest_z
            oz = next_z
            while kz < kd and oz >= 0:
                ky = rest_y
                oy = next_y
                while ky < kh and oy >= 0:
                    kx = rest_x
                    ox = next_x
                    while kx < kw and ox >= 0:
                        if oz < od and oy < oh and ox < ow:
                            start = (((plane + oz) * oh + oy) * ow + ox) * inner + c
                            found = load_first_Y(place, start, few) == (kz * kh + ky) * kw + kx
                            total = total + where(found, load_first_Y(ct, start, few), T(0))
                        kx += sw
                        ox -= 1
                    ky += sh
                    oy -= 1
                kz += sd
                oz -= 1
            store_first_Y(out, (row * w + x) * inner + c, total, few)
        rest_x += 1
        if rest_x == sw:
            rest_x = 0
            next_x += 1
    y += 1
    if y == h:
        y = 0
        z += 1
        if z == d:
            z = 0
            plane += od
"""

_WINDOWS = """
ct_NAME = load_between_X(ct, start + SHIFT, -SHIFT - g, ow - SHIFT - g, T(0))
place_NAME = load_between_X(place, start + SHIFT, -SHIFT - g, ow - SHIFT - g, P(0))
"""

_STORE = {
    1: "store_between_X(out, base + g, total_0, 0, w - g)",
    2: """
store_between_X(out, base + 2 * g, zipped_low_X(total_0, total_1), 0, w - 2 * g)
store_between_X(out, base + 2 * g + LANES, zipped_high_X(total_0, total_1), 0, w - 2 * g - LANES)
""",
}


def _compared(step: int, taps: int) -> Iterator[str]:
    """Give the lines that compare each tap of a line with the largest."""
    load = "load_between_X(x, at + AT, -begin - (AT), w - begin - (AT), T(NOTHING))"
    for tap in range(taps):
        value = load.replace("AT", str(tap))
        if step == 2:
            value = f"{'odd' if tap % 2 else 'even'}_X(one, two)"
            if tap % 2 == 0:
                yield f"one = {load.replace('AT', str(tap))}"
                yield f"two = {load.replace('AT', f'{tap} + LANES')}"
        yield _COMPARE.replace("VALUE", value).replace("TAP", str(tap)).strip("\n")


def _collected(step: int, taps: int, before: int) -> Iterator[str]:
    """Give the lines that add the cotangents of the windows of a line (Note [windows side by side])."""
    known: set[int] = set()
    for element in range(step):
        for tap in range(taps):
            shift, rest = divmod(element + before - tap, step)
            if rest:
                continue
            name = f"before_{-shift}" if shift < 0 else f"after_{shift}"
            if shift not in known:
                known.add(shift)
                yield _WINDOWS.replace("NAME", name).replace("SHIFT", f"({shift})").strip("\n")
            total = f"total_{element}"
            yield f"{total} = {total} + where(place_{name} == tap + {tap}, ct_{name}, T(0))"


def kernel(launch: KernelLaunch) -> Kernel | None:
    """Return the kernel of a launch, None for windows that loops go through (kernels/loops/pooling.py)."""
    given = dict(zip(NUMBERS, launch.numbers, strict=True))
    step, taps = given["sw"], given["kw"]
    dtype = launch.pointers[0].dtype
    if dtype.kind != "f":
        return None
    adjoint = launch.name.startswith("maxpool_adjoint")
    places = launch.pointers[1 if adjoint else 2].dtype
    suffix, place = SUFFIXES[dtype], SUFFIXES[places]
    if given["inner"] > 1:
        several = lanes_of(dtype) * min(
            _MOST_VECTORS, 1 << (-(-given["inner"] // lanes_of(dtype)) - 1).bit_length()
        )
        few = f"min({several}, inner - c)" if given["inner"] % several else several
        wide: dict[str, int | str] = {
            "SEVERAL": several, "Y": f"x{several}", "Ty": f"{suffix}x{several}", "Py": f"{place}x{several}",
            "i32Y": f"i32x{several}", "NOTHING": "-1e999", "FEW": few,
        }  # fmt: skip
        if adjoint:
            return written(launch.name, _COLLECT_CHANNELS, dtype, NUMBERS, f"ct place:{place}", "out", wide)
        return written(launch.name, _LARGEST_CHANNELS, dtype, NUMBERS, "x", f"y place:{place}", wide)
    if step > _MOST_STEPS or taps > _MOST_TAPS:
        return None
    lanes = f"x{lanes_of(dtype)}"
    sizes: dict[str, int | str] = {
        "STEP": step,
        "WIDTH": taps,
        "Px": place + lanes,
        "P": place,
        "Tx": suffix + lanes,
    }
    if adjoint:
        lines = {
            "ZERO": "\n".join(f"total_{element} = Tx(0)" for element in range(step)),
            "ADD": "\n".join(_collected(step, taps, given["pw"])),
            "STORE": _STORE[step],
        }
        return written(launch.name, _COLLECT, dtype, NUMBERS, f"ct place:{place}", "out", sizes, lines)
    lines = {
        "FIRST_PLACES": "\n".join(
            _FIRST_PLACE.replace("TAP", str(tap)).strip("\n") for tap in range(taps - 1)
        ),
        "COMPARE": "\n".join(_compared(step, taps)),
    }
    sizes["NOTHING"] = "-1e999"
    return written(launch.name, _LARGEST, dtype, NUMBERS, "x", f"y place:{place}", sizes, lines)
