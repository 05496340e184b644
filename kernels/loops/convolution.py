# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions as plain loops, which fit any sizes.

Arrays have three spatial axes, some of size 1, and lie at strides: x (batch, i0, i1, i2, groups times channels),
w (groups times filters, k0, k1, k2, channels) and y (batch, o0, o1, o2, groups times filters). Along axis n, tap k of
window o is element o s + k d - p; elements outside of x are 0.
"""

from typing import Any


def convolution(
    batch: int, groups: int, channels: int, filters: int, i0: int, i1: int, i2: int, k0: int, k1: int,
    k2: int, o0: int, o1: int, o2: int, s0: int, s1: int, s2: int, p0: int, p1: int, p2: int, d0: int,
    d1: int, d2: int, xb: int, x0: int, x1: int, x2: int, xc: int, wu: int, w0: int, w1: int, w2: int,
    wc: int, yb: int, y0: int, y1: int, y2: int, yu: int, x: Any, w: Any, y: Any,
) -> None:  # fmt: skip
    """Write to y the sums of x times w over the taps of each window and the channels."""
    for b in range(batch):
        for t0 in range(o0):
            for t1 in range(o1):
                for t2 in range(o2):
                    for u in range(groups * filters):
                        total = 0.0
                        for r0 in range(k0):
                            j0 = t0 * s0 + r0 * d0 - p0
                            for r1 in range(k1):
                                j1 = t1 * s1 + r1 * d1 - p1
                                for r2 in range(k2):
                                    j2 = t2 * s2 + r2 * d2 - p2
                                    if 0 <= j0 < i0 and 0 <= j1 < i1 and 0 <= j2 < i2:
                                        at = (
                                            b * xb
                                            + j0 * x0
                                            + j1 * x1
                                            + j2 * x2
                                            + u // filters * channels * xc
                                        )
                                        place = u * wu + r0 * w0 + r1 * w1 + r2 * w2
                                        for c in range(channels):
                                            total += x[at + c * xc] * w[place + c * wc]
                        y[b * yb + t0 * y0 + t1 * y1 + t2 * y2 + u * yu] = total


def convolution_bias(
    batch: int, groups: int, channels: int, filters: int, i0: int, i1: int, i2: int, k0: int, k1: int,
    k2: int, o0: int, o1: int, o2: int, s0: int, s1: int, s2: int, p0: int, p1: int, p2: int, d0: int,
    d1: int, d2: int, xb: int, x0: int, x1: int, x2: int, xc: int, wu: int, w0: int, w1: int, w2: int,
    wc: int, yb: int, y0: int, y1: int, y2: int, yu: int, x: Any, w: Any, bias: Any, y: Any,
) -> None:  # fmt: skip
    """Write to y the sums of x times w over the taps of each window and the channels, plus a bias for each filter."""
    for b in range(batch):
        for t0 in range(o0):
            for t1 in range(o1):
                for t2 in range(o2):
                    for u in range(groups * filters):
                        total = bias[u] + 0.0
                        for r0 in range(k0):
                            j0 = t0 * s0 + r0 * d0 - p0
                            for r1 in range(k1):
                                j1 = t1 * s1 + r1 * d1 - p1
                                for r2 in range(k2):
                                    j2 = t2 * s2 + r2 * d2 - p2
                                    if 0 <= j0 < i0 and 0 <= j1 < i1 and 0 <= j2 < i2:
                                        at = (
                                            b * xb
                                            + j0 * x0
                                            + j1 * x1
                                            + j2 * x2
                                            + u // filters * channels * xc
                                        )
                                        place = u * wu + r0 * w0 + r1 * w1 + r2 * w2
                                        for c in range(channels):
                                            total += x[at + c * xc] * w[place + c * wc]
                        y[b * yb + t0 * y0 + t1 * y1 + t2 * y2 + u * yu] = total


def convolution_input(
    batch: int, groups: int, channels: int, filters: int, i0: int, i1: int, i2: int, k0: int, k1: int,
    k2: int, o0: int, o1: int, o2: int, s0: int, s1: int, s2: int, p0: int, p1: int, p2: int, d0: int,
    d1: int, d2: int, xb: int, x0: int, x1: int, x2: int, xc: int, wu: int, w0: int, w1: int, w2: int,
    wc: int, yb: int, y0: int, y1: int, y2: int, yu: int, y: Any, w: Any, x: Any,
) -> None:  # fmt: skip
    """Write to x, at each tap of each window, the sums of y times w over the filters."""
    for i in range(batch * i0 * i1 * i2 * groups * channels):
        x[i] = 0
    for b in range(batch):
        for t0 in range(o0):
            for t1 in range(o1):
                for t2 in range(o2):
                    for u in range(groups * filters):
                        factor = y[b * yb + t0 * y0 + t1 * y1 + t2 * y2 + u * yu]
                        for r0 in range(k0):
                            j0 = t0 * s0 + r0 * d0 - p0
                            for r1 in range(k1):
                                j1 = t1 * s1 + r1 * d1 - p1
                                for r2 in range(k2):
                                    j2 = t2 * s2 + r2 * d2 - p2
                                    if 0 <= j0 < i0 and 0 <= j1 < i1 and 0 <= j2 < i2:
                                        at = (
                                            b * xb
                                            + j0 * x0
                                            + j1 * x1
                                            + j2 * x2
                                            + u // filters * channels * xc
                                        )
                                        place = u * wu + r0 * w0 + r1 * w1 + r2 * w2
                                        for c in range(channels):
                                            x[at + c * xc] += factor * w[place + c * wc]


def convolution_weights(
    batch: int, groups: int, channels: int, filters: int, i0: int, i1: int, i2: int, k0: int, k1: int,
    k2: int, o0: int, o1: int, o2: int, s0: int, s1: int, s2: int, p0: int, p1: int, p2: int, d0: int,
    d1: int, d2: int, xb: int, x0: int, x1: int, x2: int, xc: int, wu: int, w0: int, w1: int, w2: int,
    wc: int, yb: int, y0: int, y1: int, y2: int, yu: int, x: Any, y: Any, w: Any,
) -> None:  # fmt: skip
    """Write to w, for each tap, the sums of y times x over images and windows."""
    for u in range(groups * filters):
        for r0 in range(k0):
            for r1 in range(k1):
                for r2 in range(k2):
                    for c in range(channels):
                        channel = u // filters * channels + c
                        total = 0.0
                        for b in range(batch):
                            for t0 in range(o0):
                                j0 = t0 * s0 + r0 * d0 - p0
                                for t1 in range(o1):
                                    j1 = t1 * s1 + r1 * d1 - p1
                                    if 0 <= j0 < i0 and 0 <= j1 < i1:
                                        at = b * xb + j0 * x0 + j1 * x1 + channel * xc
                                        place = b * yb + t0 * y0 + t1 * y1 + u * yu
                                        for t2 in range(o2):
                                            j2 = t2 * s2 + r2 * d2 - p2
                                            if 0 <= j2 < i2:
                                                total += x[at + j2 * x2] * y[place + t2 * y2]
                        w[u * wu + r0 * w0 + r1 * w1 + r2 * w2 + c * wc] = total
