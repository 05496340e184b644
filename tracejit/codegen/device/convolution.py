# SPDX-License-Identifier: BSD-3-Clause
"""Emission of convolutions and their gradients for a device.

Note [elements of a convolution]
A convolution and its gradient by the input are one kernel: each element of the result is a sum over taps, and over the
channels of the operand that windows go over (`x` below, which is the cotangent in the gradient). A thread takes a tile:
up to MOST_FILTERS filters of a group, which share reads of x, at up to POSITIONS positions, which share reads of w.
Both numbers are smaller where there would be too few threads to hide the latency of reads. Filters and positions of a
tile lie apart by the number of tiles, so that neighbouring threads have neighbouring elements of the result.

Where windows of the gradient move by s, the elements r, r + s, r + 2 s, ... of the result, a phase, are sums of the
same taps: the first that fits, and every s-th or fewer from there on (Note [phases] in passes/loops/convolve.py).
Threads with one phase are neighbours. Along each axis, position i of phase r is element i s + r of the result, and its
window begins at the element i step + shift of x, where shift follows from the first tap of the phase; the next tap lies
`move` elements further. A convolution has one phase.

Note [weights of a convolution]
An element of the gradient by weights is a sum over images and windows. A group of threads takes a tile of a tap: some
filters and channels. Its threads take positions in turn and add up what they have at the end. A thread's next position
is found by adding digits, without divisions. A launch may have parts, each with some of the positions and with sums of
its own (passes/loops/convolution_parts.py).
"""

from collections.abc import Mapping
from functools import cache
from math import gcd, prod

from tracejit.codegen.device.convolution_tiles import emit_element_tiles, emit_weight_tiles
from tracejit.codegen.device.text import emitted, indented, sum_over_lanes, taken_apart
from tracejit.codegen.nest import Emitted
from tracejit.passes.loops.convolution_parts import fills_tiles, tile_of, tiles_of
from tracejit.passes.loops.kept_values import GROUP
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.spread import BLOCK, blocks_of
from tracejit.program import Grid

POSITIONS = 4  # that a thread takes at once
FILTERS, MOST_FILTERS = 4, 8  # the same
MANY_FILTERS = 32  # of which a thread takes the most
BUSY_THREADS = 1 << 15  # two blocks for each processor of a large device
_WORD = 4  # bytes of a register
_REGISTERS = (
    168  # of a thread, so that three blocks run on a processor side by side; with 128, some lay in memory
)
_NUMBERS = (
    "batch", "groups", "channels", "filters", "i0", "i1", "i2", "k0", "k1", "k2", "o0", "o1", "o2", "s0", "s1", "s2",
    "p0", "p1", "p2", "d0", "d1", "d2", "xb", "x0", "x1", "x2", "xc", "wu", "w0", "w1", "w2", "wc", "yb", "y0", "y1",
    "y2", "yu",
)  # fmt: skip
_AXES = range(3)


def emit_convolution(launch: KernelLaunch) -> list[tuple[Emitted, Grid]]:
    """Return the kernel of a convolution or one of its gradients, its arguments, and its threads."""
    n = dict(zip(_NUMBERS, launch.numbers, strict=True))
    if not launch.pointers[-1].root.aval.size:
        return []
    if launch.name == "convolution_weights":
        return [_emit_weights(n, launch.pointers)]
    return [_emit_elements(n, launch.pointers, launch.name == "convolution_input")]


def _emit_elements(
    n: Mapping[str, int], pointers: tuple[Access, ...], is_gradient: bool
) -> tuple[Emitted, Grid]:
    """Return the kernel of Note [elements of a convolution]."""
    x, w, *bias, out = pointers
    source, result = ("y", "x") if is_gradient else ("x", "y")
    own, inner = n["channels" if is_gradient else "filters"], n["filters" if is_gradient else "channels"]
    numbers = {"own_count": own, "teams": n["groups"], "batch": n["batch"]}
    phases, positions = 1, n["batch"]
    for a in _AXES:
        stride, dilation, before = n[f"s{a}"], n[f"d{a}"], n[f"p{a}"]
        size = n[f"i{a}" if is_gradient else f"o{a}"]
        phase = min(stride, size) if is_gradient else 1
        apart = stride if is_gradient else 1
        near = before if is_gradient else -before
        lifted = max(0, -(-(n[f"k{a}"] * dilation - near) // apart))
        along = {
            "size": size, "count": -(-size // apart), "phases": phase, "apart": apart, "lifted": lifted,
            "raised": near + lifted * apart, "dilation": dilation, "every": apart // gcd(apart, dilation),
            "move": -dilation // gcd(apart, dilation) if is_gradient else dilation,
            "step": 1 if is_gradient else stride, "taps": n[f"k{a}"],
            "extent": n[f"o{a}" if is_gradient else f"i{a}"], "x": n[f"{source}{a}"], "w": n[f"w{a}"],
            "out": n[f"{result}{a}"],
        }  # fmt: skip
        numbers |= {f"{name}{a}": number for name, number in along.items()}
        phases *= phase
        positions *= along["count"]
    tile, windows = _tile(own, positions, n["groups"] * phases, out.dtype.itemsize)
    places, owns = -(-positions // windows), -(-own // tile)
    elements = owns * n["groups"] * places * phases
    x_inner, own_step = n["yu" if is_gradient else "xc"], n["wc" if is_gradient else "wu"]
    out_own = n["xc" if is_gradient else "yu"]
    numbers |= {
        "elements": elements, "places": places, "owns": owns, "positions": positions,
        "inner": inner if x.root.aval.size and w.root.aval.size else 0,
        "x_image": n[f"{source}b"], "x_inner": x_inner, "w_group": n["filters"] * n["wu"], "w_own": own_step,
        "w_inner": n["wu" if is_gradient else "wc"], "out_image": n[f"{result}b"], "out_own": out_own,
    }  # fmt: skip
    steps = _steps(n, result, "i" if is_gradient else "o")
    reads = {"x": x, "w": w} | ({"bias": bias[0]} if bias else {})
    stem = "convolution_input" if is_gradient else "convolution"
    terms = inner * prod(-(-n[f"k{a}"] // numbers[f"every{a}"]) for a in _AXES)
    roots = [access.root for access in (*reads.values(), out)]
    if numbers["inner"] and fills_tiles(own, positions, terms, out.dtype, *roots):
        strides = [n[f"{source}{a}"] for a in _AXES if numbers[f"count{a}"] > 1]
        channels_along, images_last = x_inner < min(strides, default=x_inner), _is_batch_last(steps)
        return emit_element_tiles(numbers, stem, reads, out, channels_along, _checked(n), images_last)
    is_own_last = own * n["groups"] > 1 and all(out_own < step for step in steps.values())
    text = _elements_text(tile, windows, _is_batch_last(steps), is_own_last, bool(bias))
    return emitted(stem, text, out.dtype, numbers, reads, {"out": out}), Grid(blocks_of(elements), BLOCK)


def _tile(own: int, positions: int, others: int, itemsize: int) -> tuple[int, int]:
    """Return how many filters and positions a thread takes: as many as leave enough threads.

    Args:
        own: how many filters there are.
        positions: how many positions there are.
        others: how many times as many tiles there are.
        itemsize: bytes of an element.
    """
    is_many = own >= MANY_FILTERS and itemsize <= _WORD
    filters = min(own, FILTERS)
    tiles = [
        *([(MOST_FILTERS, POSITIONS)] if is_many else []),
        (filters, POSITIONS),
        (filters, POSITIONS // 2),
    ]
    for tile, windows in tiles:
        if -(-own // tile) * -(-positions // windows) * others >= BUSY_THREADS:
            return tile, windows
    return tiles[-1]


def _positions(n: Mapping[str, int]) -> int:
    """Return how many windows all images have."""
    return n["batch"] * n["o0"] * n["o1"] * n["o2"]


def _checked(n: Mapping[str, int]) -> tuple[int, ...]:
    """Return the axes along which a window may begin before an image, or end behind it; at least one of the three."""
    plain = [n[f"k{a}"] == n[f"s{a}"] == 1 and n[f"p{a}"] == 0 and n[f"i{a}"] == n[f"o{a}"] for a in _AXES]
    return tuple([a for a in _AXES if not plain[a]]) or (2,)


def _steps(n: Mapping[str, int], operand: str, size: str) -> dict[str, int]:
    """Return the elements of an operand between images, and along axes, that have more than one."""
    axes = {"b": n["batch"], **{str(a): n[f"{size}{a}"] for a in _AXES}}
    return {axis: n[f"{operand}{axis}"] for axis, count in axes.items() if count > 1}


def _is_batch_last(steps: Mapping[str, int]) -> bool:
    """Return whether images are neighbours in memory."""
    return "b" in steps and steps["b"] == min(steps.values())


@cache
def _elements_text(tile: int, positions: int, is_batch_last: bool, is_own_last: bool, is_biased: bool) -> str:
    owns = [("team", "teams"), ("own", "owns")]
    places = [("place", "places")]
    axes = [(f"phase{a}", f"phases{a}") for a in _AXES] + (places + owns if is_own_last else owns + places)
    images, along = [("image", "batch")], [(f"at{a}", f"count{a}") for a in _AXES]
    position = along + images if is_batch_last else images + along
    filters, windows = range(tile), range(positions)
    lines = taken_apart("number", axes)
    for a in _AXES:
        lines += [
            f"first{a} = index(0)",
            f"while first{a} < taps{a} and remainder(index(phase{a} + raised{a} - first{a} * dilation{a}), "
            f"apart{a}) != 0:",
            f"    first{a} = index(first{a} + 1)",
            f"shift{a} = index(quotient(index(phase{a} + raised{a} - first{a} * dilation{a}), apart{a}) - lifted{a})",
        ]
    for u in filters:
        lines += [
            f"own{u} = index(own + {u} * owns)",
            f"chosen = index(min(own{u}, own_count - 1))",
            f"at_w{u} = team * w_group + chosen * w_own",
            f"start{u} = bias[team * own_count + chosen]" if is_biased else f"start{u} = T(0)",
        ]
    for p in windows:
        lines += [
            f"position = index(place + {p} * places)",
            f"kept{p} = position < positions",
            "position = index(min(position, positions - 1))",
            *taken_apart("position", position),
            f"at_x{p} = image * x_image + team * inner * x_inner",
            f"at_out{p} = image * out_image + team * own_count * out_own",
        ]
        for a in _AXES:
            lines += [
                f"begin{a}_{p} = index(at{a} * step{a} + shift{a})",
                f"at_x{p} = at_x{p} + begin{a}_{p} * x{a}",
                f"at{a} = index(at{a} * apart{a} + phase{a})",
                f"kept{p} = kept{p} & (at{a} < size{a})",
                f"at_out{p} = at_out{p} + at{a} * out{a}",
            ]
        lines += [f"total{u}_{p} = start{u}" for u in filters]
    lines += _taps(tile, positions)
    for u in filters:
        for p in windows:
            lines += [
                f"if kept{p} and own{u} < own_count:",
                f"    out[at_out{p} + own{u} * out_own] = total{u}_{p}",
            ]
    lines.append("number = index(number + threads())")
    return "\n".join([
        f"registers({_REGISTERS})",
        "number = thread()",
        "while number < elements:",
        *indented(1, lines),
    ])  # fmt: skip


def _taps(tile: int, positions: int) -> list[str]:
    """Return the loops over taps and channels."""
    filters, windows = range(tile), range(positions)
    multiply = [f"w{u}_c = w[at_w{u} + along_w]" for u in filters]
    multiply += [f"x{p}_c = x[at_x{p} + along_x] if inside{p} else T(0)" for p in windows]
    for p in windows:
        multiply += [f"total{u}_{p} = fma_T(x{p}_c, w{u}_c, total{u}_{p})" for u in filters]
    body = [
        *[f"inside{p} = " + " & ".join(f"inside{a}_{p}" for a in _AXES) for p in windows],
        f"along_x = {' + '.join(f'moved{a} * x{a}' for a in _AXES)}",
        f"along_w = {' + '.join(f'tap{a} * w{a}' for a in _AXES)}",
        "c = index(0)",
        "while c < inner:",
        *indented(1, multiply),
        "    along_x = along_x + x_inner",
        "    along_w = along_w + w_inner",
        "    c = index(c + 1)",
    ]
    for a in reversed(_AXES):
        before = []
        for p in windows:
            before += [
                f"element = index(begin{a}_{p} + moved{a})",
                f"inside{a}_{p} = (element >= 0) & (element < extent{a})",
            ]
        after = [f"tap{a} = index(tap{a} + every{a})", f"moved{a} = index(moved{a} + move{a})"]
        body = [
            f"tap{a} = first{a}", f"moved{a} = index(0)", f"while tap{a} < taps{a}:",
            *indented(1, [*before, *body, *after]),
        ]  # fmt: skip
    return body


def _emit_weights(n: Mapping[str, int], pointers: tuple[Access, ...]) -> tuple[Emitted, Grid]:
    """Return the kernel of Note [weights of a convolution]."""
    x, y, out = pointers
    sizes = n["groups"], n["channels"], n["filters"], n["k0"] * n["k1"] * n["k2"]
    tile = tile_of(n["channels"], n["filters"], out.dtype)
    size = sizes[0] * prod(sizes[1:])
    parts = out.root.aval.size // size
    steps = _steps(n, "y", "o")
    is_batch_last = _is_batch_last(steps)
    if fills_tiles(
        n["filters"],
        n["channels"] * prod(n[f"k{a}"] for a in _AXES),
        _positions(n),
        out.dtype,
        x.root,
        y.root,
    ):
        positions = _positions(n)
        length = -(-positions // parts)
        further = {"parts": parts, "size": size, "length": length, "positions": positions}
        along = n["xc"] >= max(min(n["x2"], n["xb"]), 1), n["yu"] >= max(min(n["y2"], n["yb"]), 1)
        extents = {f"extent{a}": n[f"i{a}"] for a in _AXES}
        return emit_weight_tiles({**n, **further, **extents}, x, y, out, along, _checked(n), is_batch_last)
    counts = [n["o0"], n["o1"], n["o2"]]
    counts = [*counts, n["batch"]] if is_batch_last else [n["batch"], *counts]
    positions = prod(counts) if x.root.aval.size else 0
    digits, rest = [], GROUP
    for count in reversed(counts[1:]):
        digits.append(rest % max(1, count))
        rest //= max(1, count)
    tiles = parts * tiles_of(*sizes, tile)
    length = -(-positions // (parts * GROUP)) * GROUP
    numbers = {
        **{name: n[name] for name in _NUMBERS if name not in ("batch", "groups")},
        "teams": n["groups"], "size": size, "tiles": tiles,
        "own_tiles": -(-n["filters"] // tile[0]), "inner_tiles": -(-n["channels"] // tile[1]),
        "positions": positions, "length": length,
        **{f"n{axis}": max(1, count) for axis, count in enumerate(counts)},
        **{f"digit{axis}": digit for axis, digit in enumerate([rest, *reversed(digits)])},
    }  # fmt: skip
    text = _weights_text(tile, is_batch_last)
    kernel = emitted("convolution_weights", text, out.dtype, numbers, {"x": x, "y": y}, {"out": out})
    return kernel, Grid(blocks_of(tiles * GROUP), BLOCK)


@cache
def _weights_text(tile: tuple[int, int], is_batch_last: bool) -> str:
    filters, channels = map(range, tile)
    totals = [f"total{u}_{c}" for u in filters for c in channels]
    axes = [("part", ""), ("team", "teams"), ("own", "own_tiles"), *[(f"tap{a}", f"k{a}") for a in _AXES]]
    lines = taken_apart("tile", [*axes, ("inner", "inner_tiles")])
    lines += [f"{total} = T(0)" for total in totals]
    lines += [f"shift{a} = index(tap{a} * d{a} - p{a})" for a in _AXES]
    for u in filters:
        lines += [
            f"own{u} = index(own * {tile[0]} + {u})",
            f"at_y{u} = (team * filters + min(own{u}, filters - 1)) * yu",
        ]
    for c in channels:
        lines += [
            f"inner{c} = index(inner * {tile[1]} + {c})",
            f"at_x{c} = (team * channels + min(inner{c}, channels - 1)) * xc",
        ]
    digits = [f"place{axis}" for axis in range(4)]
    lines += [
        "number = index(part * length + lane())",
        "stop = index(min(positions, part * length + length))",
        *taken_apart("number", [(digit, f"n{axis}") for axis, digit in enumerate(digits)]),
        "while number < stop:",
        *indented(1, _position(tile, ["place3", *digits[:3]] if is_batch_last else digits)),
        *[f"    {line}" for line in _next_position()],
        f"    number = index(number + {GROUP})",
        *sum_over_lanes(totals, "across_T"),
        "at_out = part * size + tap0 * w0 + tap1 * w1 + tap2 * w2",
        "if lane() == 0:",
    ]
    for u in filters:
        for c in channels:
            lines += [
                f"    if own{u} < filters and inner{c} < channels:",
                f"        out[at_out + (team * filters + own{u}) * wu + inner{c} * wc] = total{u}_{c}",
            ]
    lines.append("tile = index(tile + groups())")
    return "\n".join([
        f"registers({_REGISTERS})",
        "tile = group()",
        "while tile < tiles:",
        *indented(1, lines),
    ])  # fmt: skip


def _position(tile: tuple[int, int], digits: list[str]) -> list[str]:
    """Return the lines that add what one position gives.

    Args:
        tile: filters and channels.
        digits: the names of the indices of images and of windows along the axes.
    """
    filters, channels = map(range, tile)
    image, *windows = digits
    lines, inside, x, y = [], [], [f"{image} * xb"], [f"{image} * yb"]
    for a, window in enumerate(windows):
        lines.append(f"element{a} = index({window} * s{a} + shift{a})")
        inside.append(f"(element{a} >= 0) & (element{a} < i{a})")
        x.append(f"element{a} * x{a}")
        y.append(f"{window} * y{a}")
    lines += [
        f"inside = {' & '.join(inside)}",
        f"from_x = {' + '.join(x)}",
        f"from_y = {' + '.join(y)}",
        *[f"y{u}_b = y[from_y + at_y{u}]" for u in filters],
        *[f"x{c}_b = x[from_x + at_x{c}] if inside else T(0)" for c in channels],
    ]
    for c in channels:
        lines += [f"total{u}_{c} = fma_T(x{c}_b, y{u}_b, total{u}_{c})" for u in filters]
    return lines


def _next_position() -> list[str]:
    """Return the lines that go on by as many positions as a group has threads."""
    lines = ["place3 = index(place3 + digit3)"]
    for axis in (3, 2, 1):
        lines += [
            f"over = place{axis} >= n{axis}",
            f"place{axis} = index(place{axis} - n{axis}) if over else place{axis}",
            f"place{axis - 1} = index(place{axis - 1} + digit{axis - 1} + (1 if over else 0))",
        ]
    return lines
