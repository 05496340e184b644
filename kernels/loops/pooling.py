# SPDX-License-Identifier: BSD-3-Clause
"""Pooling: the largest element, or the mean, of windows over up to three axes.

An array is seen as (outer, d, h, w, inner), its result as (outer, od, oh, ow, inner): windows of kd x kh x kw elements
begin sd, sh and sw elements apart, and pd, ph and pw before the first element. Every window has an element of the
array. Work is shared by rows: the rows of the result, (outer, od, oh), or (outer, d, h) where the result is as large as
the array was. Adjoints go through the rows of their result too, and collect from all windows of an element. So nothing
is written by two threads, and sums have one order.

`inner` is the number of channels where they lie last. Where it is 1, loops run along w instead. Windows of 2 x 2 that
do not overlap and need no padding (`is_pairs` in ops/pooling.py) have kernels of their own, in which LLVM loads and
stores both columns at once.

Numbers have the dtype of the array: a quotient of integers is one of float64, and so is a choice between a float and an
integer, in which a GPU is slow. What is stored and loaded again has the dtype of its memory, which LLVM leaves out.
"""

from typing import Any


def maxpool(
    first: int, last: int, d: int, h: int, w: int, inner: int, od: int, oh: int, ow: int,
    kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, pd: int, ph: int, pw: int, x: Any, y: Any, place: Any,
) -> None:  # fmt: skip
    """y = the largest element of each window, place = where it is in the window; NaN counts as the largest."""
    oz, oy, plane = first // oh % od, first % oh - 1, first // oh // od * d
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
        za, zb, ya, yb = max(0, -z0), min(kd, d - z0), max(0, -y0), min(kh, h - y0)
        for ox in range(ow):
            x0 = ox * sw - pw
            xa, xb = max(0, -x0), min(kw, w - x0)
            corner = ((plane + z0) * h + y0) * w + x0
            out = (row * ow + ox) * inner
            source = corner + (za * h + ya) * w + xa
            code = (za * kh + ya) * kw + xa
            if inner == 1:
                best = x[source]
                for kz in range(za, zb):
                    for ky in range(ya, yb):
                        for kx in range(xa, xb):
                            value = x[corner + (kz * h + ky) * w + kx]
                            larger = (value > best) | (value != value)  # noqa: PLR0124 (NaN)
                            best = value if larger else best
                            code = (kz * kh + ky) * kw + kx if larger else code
                y[out] = best
                place[out] = code
                continue
            for c in range(inner):
                y[out + c] = x[source * inner + c]
                place[out + c] = code
            for kz in range(za, zb):
                for ky in range(ya, yb):
                    for kx in range(xa, xb):
                        source = (corner + (kz * h + ky) * w + kx) * inner
                        code = (kz * kh + ky) * kw + kx
                        for c in range(inner):
                            value = x[source + c]
                            best = y[out + c]
                            larger = (value > best) | (value != value)  # noqa: PLR0124 (NaN)
                            y[out + c] = value if larger else best
                            place[out + c] = code if larger else place[out + c]


def maxpool_pairs(
    first: int, last: int, d: int, h: int, w: int, inner: int, od: int, oh: int, ow: int,
    kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, pd: int, ph: int, pw: int, x: Any, y: Any, place: Any,
) -> None:  # fmt: skip
    """maxpool() where `is_pairs`."""
    oz, oy, plane = first // oh % od, first % oh - 1, first // oh // od * d
    for row in range(first, last):
        oy += 1
        if oy == oh:
            oy = 0
            oz += 1
            if oz == od:
                oz = 0
                plane += d
        top = ((plane + oz * sd) * h + oy * 2) * w * inner
        below = top + w * inner
        start = row * ow * inner
        if inner == 1:
            for ox in range(ow):
                value = x[top + 2 * ox]
                code = 0
                other = x[top + 2 * ox + 1]
                if other > value or other != other:  # noqa: PLR0124 (NaN)
                    value = other
                    code = 1
                other = x[below + 2 * ox]
                if other > value or other != other:  # noqa: PLR0124 (NaN)
                    value = other
                    code = 2
                other = x[below + 2 * ox + 1]
                if other > value or other != other:  # noqa: PLR0124 (NaN)
                    value = other
                    code = 3
                y[start + ox] = value
                place[start + ox] = code
            continue
        for ox in range(ow):
            left = top + 2 * ox * inner
            under = below + 2 * ox * inner
            out = start + ox * inner
            for c in range(inner):
                value = x[left + c]
                code = 0
                other = x[left + inner + c]
                if other > value or other != other:  # noqa: PLR0124 (NaN)
                    value = other
                    code = 1
                other = x[under + c]
                if other > value or other != other:  # noqa: PLR0124 (NaN)
                    value = other
                    code = 2
                other = x[under + inner + c]
                if other > value or other != other:  # noqa: PLR0124 (NaN)
                    value = other
                    code = 3
                y[out + c] = value
                place[out + c] = code


def maxpool_adjoint(
    first: int, last: int, d: int, h: int, w: int, inner: int, od: int, oh: int, ow: int,
    kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, pd: int, ph: int, pw: int, ct: Any, place: Any, out: Any,
) -> None:  # fmt: skip
    """out = for each element the sum of ct of the windows whose largest element it is."""
    z, y, plane = first // h % d, first % h - 1, first // h // d * od
    for row in range(first, last):
        y += 1
        if y == h:
            y = 0
            z += 1
            if z == d:
                z = 0
                plane += od
        base = row * w * inner
        for i in range(w * inner):
            out[base + i] = 0
        zero = out[base]
        for kz in range(kd):
            for ky in range(kh):
                tz = z + pd - kz
                ty = y + ph - ky
                if tz < 0 or ty < 0 or tz % sd or ty % sh or tz // sd >= od or ty // sh >= oh:
                    continue
                start = ((plane + tz // sd) * oh + ty // sh) * ow
                for kx in range(kw):
                    code = (kz * kh + ky) * kw + kx
                    lowest = max(0, -((kx - pw) // sw))
                    highest = min(ow, (w - 1 + pw - kx) // sw + 1)
                    if inner == 1:
                        for ox in range(lowest, highest):
                            at = base + ox * sw - pw + kx
                            out[at] = out[at] + (ct[start + ox] if place[start + ox] == code else zero)
                        continue
                    for ox in range(lowest, highest):
                        at = base + (ox * sw - pw + kx) * inner
                        source = (start + ox) * inner
                        for c in range(inner):
                            out[at + c] = out[at + c] + (
                                ct[source + c] if place[source + c] == code else zero
                            )


def maxpool_adjoint_pairs(
    first: int, last: int, d: int, h: int, w: int, inner: int, od: int, oh: int, ow: int,
    kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, pd: int, ph: int, pw: int, ct: Any, place: Any, out: Any,
) -> None:  # fmt: skip
    """maxpool_adjoint() where `is_pairs`: an element is in one window at most."""
    z, y, plane = first // h % d, first % h - 1, first // h // d * od
    oz, rest = z // sd, z % sd  # counted, because a division would take as long as a short row
    for row in range(first, last):
        y += 1
        if y == h:
            y = 0
            z += 1
            rest += 1
            if rest == sd:
                rest = 0
                oz += 1
            if z == d:
                z = oz = rest = 0
                plane += od
        base = row * w * inner
        oy = y >> 1
        if rest or oz >= od or oy >= oh:
            for i in range(w * inner):
                out[base + i] = 0
            continue
        for i in range(2 * ow * inner, w * inner):
            out[base + i] = 0
        start = ((plane + oz) * oh + oy) * ow * inner
        # Constants, with which LLVM compares 8 bits; with a variable it would compare 64.
        if inner == 1 and y % 2 == 0:
            for ox in range(ow):
                value = ct[start + ox]
                at = place[start + ox]
                out[base + 2 * ox] = value if at == 0 else 0
                out[base + 2 * ox + 1] = value if at == 1 else 0
            continue
        if inner == 1:
            for ox in range(ow):
                value = ct[start + ox]
                at = place[start + ox]
                out[base + 2 * ox] = value if at == 2 else 0
                out[base + 2 * ox + 1] = value if at == 3 else 0
            continue
        code = y % 2 * 2
        for ox in range(ow):
            source = start + ox * inner
            left = base + 2 * ox * inner
            for c in range(inner):
                value = ct[source + c]
                at = place[source + c]
                out[left + c] = value if at == code else 0
                out[left + inner + c] = value if at == code + 1 else 0


def maxpool_adjoint_planes(
    first: int, last: int, d: int, h: int, w: int, inner: int, od: int, oh: int, ow: int,
    kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, pd: int, ph: int, pw: int, ct: Any, place: Any, out: Any,
) -> None:  # fmt: skip
    """maxpool_adjoint() where `inner` is 1; rows of outer. Each ct is added at its place."""
    # (i * factor) >> 32 is i // divisor for i up to 2**16, without a division.
    by_plane = (1 << 32) // (kh * kw) + 1
    by_row = (1 << 32) // kw + 1
    for plane in range(first, last):
        base = plane * d * h * w
        for i in range(d * h * w):
            out[base + i] = 0
        at = plane * od * oh * ow
        for oz in range(od):
            for oy in range(oh):
                for ox in range(ow):
                    code = int(place[at])
                    kz = (code * by_plane) >> 32
                    rest = code - kz * kh * kw
                    ky = (rest * by_row) >> 32
                    tz = oz * sd - pd + kz
                    ty = oy * sh - ph + ky
                    tx = ox * sw - pw + rest - ky * kw
                    # A place that no maxpool() has found may be in the padding.
                    if 0 <= tz < d and 0 <= ty < h and 0 <= tx < w:
                        to = base + (tz * h + ty) * w + tx
                        out[to] = out[to] + ct[at]
                    at += 1


def maxpool_pick(
    first: int, last: int, d: int, h: int, w: int, inner: int, od: int, oh: int, ow: int,
    kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, pd: int, ph: int, pw: int, x: Any, place: Any, y: Any,
) -> None:  # fmt: skip
    """y = the element of each window that is at its place."""
    oz, oy, plane = first // oh % od, first % oh - 1, first // oh // od * d
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
        for ox in range(ow):
            for c in range(inner):
                at = (row * ow + ox) * inner + c
                code = int(place[at])
                kz = code // (kh * kw)
                ky = code // kw % kh
                kx = code % kw
                x0 = ox * sw - pw + kx
                # A place that no maxpool() has found may be in the padding.
                if 0 <= z0 + kz < d and 0 <= y0 + ky < h and 0 <= x0 < w:
                    y[at] = x[(((plane + z0 + kz) * h + y0 + ky) * w + x0) * inner + c]
                else:
                    y[at] = 0


def avgpool(
    first: int, last: int, d: int, h: int, w: int, inner: int, od: int, oh: int, ow: int,
    kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, pd: int, ph: int, pw: int, counted: int, x: Any, y: Any,
) -> None:  # fmt: skip
    """y = the mean of each window, in which padding counts as elements of value 0 if `counted`."""
    oz, oy, plane = first // oh % od, first % oh - 1, first // oh // od * d
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
        za, zb, ya, yb = max(0, -z0), min(kd, d - z0), max(0, -y0), min(kh, h - y0)
        start = row * ow
        y[start * inner] = 1
        one = y[start * inner]
        for i in range(ow * inner):
            y[start * inner + i] = 0
        for kz in range(za, zb):
            for ky in range(ya, yb):
                line = ((plane + z0 + kz) * h + y0 + ky) * w
                for kx in range(kw):
                    lowest = max(0, -((kx - pw) // sw))
                    highest = min(ow, (w - 1 + pw - kx) // sw + 1)
                    if inner == 1:
                        for ox in range(lowest, highest):
                            y[start + ox] = y[start + ox] + x[line + ox * sw - pw + kx]
                        continue
                    for ox in range(lowest, highest):
                        source = (line + ox * sw - pw + kx) * inner
                        out = (start + ox) * inner
                        for c in range(inner):
                            y[out + c] = y[out + c] + x[source + c]
        rows = (zb - za) * (yb - ya)
        for ox in range(ow):
            columns = min(kw, w - ox * sw + pw) - max(0, pw - ox * sw)
            out = (start + ox) * inner
            total = y[out]
            y[out] = kd * kh * kw if counted else rows * columns
            scale = one / y[out]
            y[out] = total
            for c in range(inner):
                y[out + c] = y[out + c] * scale


def avgpool_pairs(
    first: int, last: int, d: int, h: int, w: int, inner: int, od: int, oh: int, ow: int,
    kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, pd: int, ph: int, pw: int, counted: int, x: Any, y: Any,
) -> None:  # fmt: skip
    """avgpool() where `is_pairs`."""
    oz, oy, plane = first // oh % od, first % oh - 1, first // oh // od * d
    for row in range(first, last):
        oy += 1
        if oy == oh:
            oy = 0
            oz += 1
            if oz == od:
                oz = 0
                plane += d
        top = ((plane + oz * sd) * h + oy * 2) * w * inner
        below = top + w * inner
        start = row * ow * inner
        if inner == 1:
            for ox in range(ow):
                total = (x[top + 2 * ox] + x[top + 2 * ox + 1]) + (x[below + 2 * ox] + x[below + 2 * ox + 1])
                y[start + ox] = total * 0.25
            continue
        for ox in range(ow):
            left = top + 2 * ox * inner
            under = below + 2 * ox * inner
            for c in range(inner):
                total = (x[left + c] + x[left + inner + c]) + (x[under + c] + x[under + inner + c])
                y[start + ox * inner + c] = total * 0.25


def avgpool_adjoint(
    first: int, last: int, d: int, h: int, w: int, inner: int, od: int, oh: int, ow: int,
    kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, pd: int, ph: int, pw: int, counted: int, ct: Any, out: Any,
) -> None:  # fmt: skip
    """out = for each element the sum of ct of its windows, each over the number of the window's elements."""
    z, y, plane = first // h % d, first % h - 1, first // h // d * od
    for row in range(first, last):
        y += 1
        if y == h:
            y = 0
            z += 1
            if z == d:
                z = 0
                plane += od
        base = row * w * inner
        out[base] = 1
        one = out[base]
        out[base] = kd * kh * kw
        share = one / out[base]  # where padding counts
        for i in range(w * inner):
            out[base + i] = 0
        for kz in range(kd):
            for ky in range(kh):
                tz = z + pd - kz
                ty = y + ph - ky
                if tz < 0 or ty < 0 or tz % sd or ty % sh or tz // sd >= od or ty // sh >= oh:
                    continue
                start = ((plane + tz // sd) * oh + ty // sh) * ow
                rows = min(kd, d - tz + pd) - max(0, pd - tz)
                rows *= min(kh, h - ty + ph) - max(0, ph - ty)
                for kx in range(kw):
                    lowest = max(0, -((kx - pw) // sw))
                    highest = min(ow, (w - 1 + pw - kx) // sw + 1)
                    if inner == 1 and counted:
                        for ox in range(lowest, highest):
                            at = base + ox * sw - pw + kx
                            out[at] = out[at] + ct[start + ox] * share
                        continue
                    for ox in range(lowest, highest):
                        columns = min(kw, w - ox * sw + pw) - max(0, pw - ox * sw)
                        at = base + (ox * sw - pw + kx) * inner
                        total = out[at]
                        out[at] = rows * columns
                        scale = share if counted else one / out[at]
                        out[at] = total
                        source = (start + ox) * inner
                        for c in range(inner):
                            out[at + c] = out[at + c] + ct[source + c] * scale


def avgpool_adjoint_pairs(
    first: int, last: int, d: int, h: int, w: int, inner: int, od: int, oh: int, ow: int,
    kd: int, kh: int, kw: int, sd: int, sh: int, sw: int, pd: int, ph: int, pw: int, counted: int, ct: Any, out: Any,
) -> None:  # fmt: skip
    """avgpool_adjoint() where `is_pairs`: an element is in one window at most."""
    z, y, plane = first // h % d, first % h - 1, first // h // d * od
    oz, rest = z // sd, z % sd  # counted, because a division would take as long as a short row
    for row in range(first, last):
        y += 1
        if y == h:
            y = 0
            z += 1
            rest += 1
            if rest == sd:
                rest = 0
                oz += 1
            if z == d:
                z = oz = rest = 0
                plane += od
        base = row * w * inner
        oy = y >> 1
        if rest or oz >= od or oy >= oh:
            for i in range(w * inner):
                out[base + i] = 0
            continue
        for i in range(2 * ow * inner, w * inner):
            out[base + i] = 0
        start = ((plane + oz) * oh + oy) * ow * inner
        if inner == 1:
            for ox in range(ow):
                value = ct[start + ox] * 0.25
                out[base + 2 * ox] = value
                out[base + 2 * ox + 1] = value
            continue
        for ox in range(ow):
            source = start + ox * inner
            left = base + 2 * ox * inner
            for c in range(inner):
                value = ct[source + c] * 0.25
                out[left + c] = value
                out[left + inner + c] = value
