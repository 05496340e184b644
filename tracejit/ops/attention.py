# SPDX-License-Identifier: BSD-3-Clause
"""Attention: sums of values weighted by how well their keys fit a query.

Arrays lie as (batch, length, heads, width). The mask, a number added to each score, is (batch, heads, queries, keys);
all sizes but the last may be 1. Without a mask (masked=False) it is (1, 1, 1, 1) and not read. `group` consecutive
query heads share a head of keys and values. `scale`, (1,), multiplies queries.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.ops import batch
from tracejit.ops.floats import cast_to_one_float, one_float
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample

_BLOCK = 64  # numbers of the narrowest room, and queries in a block of most kernels
_BLOCKS = ((64, 128), (64, 64), (32, 64), (32, 32))  # queries and keys
_MOST_BYTES = 400_000  # of blocks; there may be 512 KiB for the stack of a thread
_FEWEST_SHARES = 4  # of the adjoint: with fewer heads than that, the queries are cut into bands
_ELEMENTS = 1 << 21  # of scores that the reference holds at a time
_MULTIPLIED_PER_NS = 60.0  # by one core, roughly: it only decides into how many parts a launch is cut


def _infer_forward(
    q: Aval, k: Aval, v: Aval, mask: Aval, scale: Aval, *, causal: bool, masked: bool
) -> tuple[Aval, Aval]:
    dtype = one_float(q.dtype, k.dtype, v.dtype, mask.dtype, scale.dtype)[0]
    return Aval((*q.shape[:3], v.shape[3]), None, dtype), Aval(q.shape[:3], None, dtype)


def _blocks(x: np.ndarray, key_heads: int) -> np.ndarray:
    """Return (batch, length, heads, width) as (batch, key heads, group, length, width)."""
    batch, length, heads, width = x.shape
    return x.reshape(batch, length, key_heads, heads // key_heads, width).transpose(0, 2, 3, 1, 4)


def _rows(x: np.ndarray) -> np.ndarray:
    """Return what _blocks() returned as it was before."""
    batch, key_heads, group, length, width = x.shape
    return x.transpose(0, 3, 1, 2, 4).reshape(batch, length, key_heads * group, width)


def _scores(
    q: np.ndarray, k: np.ndarray, mask: np.ndarray, start: int, *, causal: bool, masked: bool
) -> np.ndarray:
    """Return (batch, key heads, group, queries, keys) scores of some queries, beginning with number `start`."""
    key_heads, count = k.shape[2], q.shape[1]
    scores: np.ndarray = _blocks(q, key_heads) @ k.transpose(0, 2, 3, 1)[:, :, None]
    if masked:
        part = mask if mask.shape[2] == 1 else mask[:, :, start : start + count]
        heads = (1, 1) if mask.shape[1] == 1 else (key_heads, q.shape[2] // key_heads)
        scores = scores + part.reshape(mask.shape[0], *heads, *part.shape[2:])
    if causal:
        seen = np.arange(k.shape[1]) <= np.arange(start, start + count)[:, None]
        scores = np.where(seen, scores, scores.dtype.type(-np.inf))
    return scores


def _steps(q: np.ndarray, k: np.ndarray) -> range:
    """Return the first queries of blocks whose scores are few."""
    per_query = max(1, q.shape[0] * q.shape[2] * k.shape[1])
    return range(0, q.shape[1], max(1, _ELEMENTS // per_query))


def _forward(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray,
    scale: np.ndarray,
    *,
    causal: bool,
    masked: bool,
) -> tuple[np.ndarray, np.ndarray]:
    q, k, v, mask, scale = cast_to_one_float((q, k, v, mask, scale))
    q = q * scale
    out = np.empty((*q.shape[:3], v.shape[3]), q.dtype)
    lse = np.empty(q.shape[:3], q.dtype)
    steps = _steps(q, k)
    for start in steps:
        at = slice(start, start + steps.step)
        scores = _scores(q[:, at], k, mask, start, causal=causal, masked=masked)
        top = scores.max(-1, keepdims=True, initial=-np.inf)
        shift = np.where(top == -np.inf, q.dtype.type(0), top)
        powers = np.exp(scores - shift)
        total = powers.sum(-1, keepdims=True)
        none = total == 0
        weighted = powers @ v.transpose(0, 2, 1, 3)[:, :, None]
        out[:, at] = _rows(np.where(none, 0, weighted / np.where(none, 1, total)))
        lse[:, at] = _rows(np.where(none, np.inf, shift + np.log(total)))[..., 0]
    return out, lse


def _edges(q: Aval, k: Aval, v: Aval) -> list[int]:
    """Return the queries where the bands begin that the adjoint sums up apart, and the end: a function of sizes."""
    block = _block(q, v)
    blocks = -(-q.shape[1] // block)
    bands = max(1, min(-(-_FEWEST_SHARES // max(1, k.shape[0] * k.shape[2])), blocks))
    return [min(q.shape[1], blocks * band // bands * block) for band in range(bands + 1)]


def room_of(width: int) -> int:
    """Return the numbers that a query, key or value has room for: a power of two, so that there are few kernels."""
    return max(_BLOCK, 1 << (width - 1).bit_length())


def blocks_of(room: int, itemsize: int) -> tuple[int, int]:
    """Return how many queries and keys are in a block of a kernel: fewer for wide heads, as blocks lie on the stack."""
    for queries, keys in _BLOCKS:
        if itemsize * (room * (5 * queries + 2 * keys) + 2 * queries * keys) <= _MOST_BYTES:
            break
    return queries, keys


def _block(q: Aval, v: Aval) -> int:
    """Return the queries in a block of the kernel."""
    return blocks_of(room_of(max(q.shape[3], v.shape[3])), q.dtype.itemsize)[0]


def _infer_backward(
    q: Aval,
    k: Aval,
    v: Aval,
    mask: Aval,
    scale: Aval,
    lse: Aval,
    delta: Aval,
    ct: Aval,
    *,
    causal: bool,
    masked: bool,
) -> tuple[Aval, Aval, Aval]:
    dtype = one_float(q.dtype, k.dtype, v.dtype, mask.dtype, scale.dtype, lse.dtype, delta.dtype, ct.dtype)[0]
    bands = len(_edges(q, k, v)) - 1
    return (
        Aval(q.shape, None, dtype),
        Aval((bands, *k.shape), None, dtype),
        Aval((bands, *v.shape), None, dtype),
    )


def _backward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray, scale: np.ndarray, lse: np.ndarray,
    delta: np.ndarray, ct: np.ndarray, *, causal: bool, masked: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    q, k, v, mask, scale, lse, delta, ct = cast_to_one_float((q, k, v, mask, scale, lse, delta, ct))
    q = q * scale
    key_heads = k.shape[2]
    edges = _edges(*[Aval(x.shape, None, x.dtype) for x in (q, k, v)])
    dq = np.empty_like(q)
    dk, dv = (np.zeros((len(edges) - 1, *x.shape), x.dtype) for x in (k, v))
    length = _steps(q, k).step
    for band, (first, last) in enumerate(pairwise(edges)):
        for start in range(first, last, length):
            at = slice(start, min(last, start + length))
            scores = _scores(q[:, at], k, mask, start, causal=causal, masked=masked)
            powers = np.exp(scores - _blocks(lse[:, at, :, None], key_heads))
            cts = _blocks(ct[:, at], key_heads)
            slopes = cts @ v.transpose(0, 2, 3, 1)[:, :, None] - _blocks(delta[:, at, :, None], key_heads)
            slopes *= powers
            dq[:, at] = _rows(slopes @ k.transpose(0, 2, 1, 3)[:, :, None]) * scale
            dv[band] += (powers.swapaxes(-1, -2) @ cts).sum(2).transpose(0, 2, 1, 3)
            dk[band] += (slopes.swapaxes(-1, -2) @ _blocks(q[:, at], key_heads)).sum(2).transpose(0, 2, 1, 3)
    return dq, dk, dv


def _numbers(q: Aval, k: Aval, v: Aval, mask: Aval, causal: bool, masked: bool) -> tuple[int, ...]:
    steps = []
    stride = mask.shape[-1]
    for extent in reversed(mask.shape[:-1]):
        steps.append(stride if extent > 1 else 0)
        stride *= extent
    heads = q.shape[2]
    return (
        heads, heads // max(1, k.shape[2]), q.shape[1], k.shape[1], q.shape[3], v.shape[3], int(causal), int(masked),
        *reversed(steps),
    )  # fmt: skip


def _forward_numbers(
    outs: Any, q: Aval, k: Aval, v: Aval, mask: Aval, scale: Aval, *, causal: bool, masked: bool
) -> tuple[int, ...]:
    blocks = -(-q.shape[1] // _block(q, v))
    return (0, q.shape[0] * q.shape[2] * blocks, *_numbers(q, k, v, mask, causal, masked))


def _backward_numbers(
    outs: Any, q: Aval, k: Aval, v: Aval, mask: Aval, *others: Aval, causal: bool, masked: bool
) -> tuple[int, ...]:
    bands = len(_edges(q, k, v)) - 1
    units = bands * k.shape[0] * k.shape[2]
    return (0, units, q.shape[0], bands, *_numbers(q, k, v, mask, causal, masked))


def _units(numbers: Sequence[int]) -> int:
    return numbers[1]


def _forward_ns(numbers: Sequence[int]) -> float:
    _, units, _, _, _, keys, width, value_width, causal, *_ = numbers
    return units * keys * _BLOCK * (width + value_width) / (1 + causal) / _MULTIPLIED_PER_NS


def _backward_ns(numbers: Sequence[int]) -> float:
    _, units, _, bands, _, group, queries, keys, width, value_width, causal, *_ = numbers
    pairs = units / bands * group * queries * keys
    return pairs * (3 * width + 2 * value_width) / (1 + causal) / _MULTIPLIED_PER_NS


def _vjp_forward(b: Any, node: Any, cts: Any) -> Any:
    q, k, v, mask, scale = node.inputs
    ct, ct_lse = cts
    out, lse = node.outputs
    if ct is None:
        ct = b.mul(out, 0.0)
    delta = b.sum(b.mul(out, ct), axes=(3,), keepdims=False)
    if ct_lse is not None:
        delta = b.sub(delta, ct_lse)
    dq, dk, dv = b.attention_backward(q, k, v, mask, scale, lse, delta, ct, **node.params)

    def of_mask() -> Any:
        parts = _Composition(b, b.mul(q, scale), k, mask, lse, node.params)
        return parts.of_mask(parts.slopes(v, delta, ct)) if node.params["masked"] else None

    return (
        dq,
        lambda: b.sum(dk, axes=(0,), keepdims=False),
        lambda: b.sum(dv, axes=(0,), keepdims=False),
        of_mask,
        lambda: b.div(_inner(b, q, dq), scale),
    )


def _inner(b: Any, x: Any, y: Any) -> Any:
    """Return the sum of all products, (1,)."""
    return b.reshape(b.sum(b.mul(x, y), axes=tuple(range(x.ndim)), keepdims=False), shape=(1,))


class _Composition:
    """The weights and what follows from them, composed of products: in memory quadratic in the length."""

    def __init__(self, b: Any, q: Any, k: Any, mask: Any, lse: Any, params: Any) -> None:
        self.b = b
        self.key_heads = k.shape[2]
        self.group = q.shape[2] // self.key_heads
        self.q, self.k = self.of_queries(q), self.of_keys(k)
        scores = self.product(self.q, self.k)
        if params["masked"]:
            heads = (1, 1) if mask.shape[1] == 1 else (self.key_heads, self.group)
            scores = b.add(scores, b.reshape(mask, shape=(mask.shape[0], *heads, *mask.shape[2:])))
        if params["causal"]:
            seen = np.tri(q.shape[1], k.shape[1], dtype=bool)
            scores = b.where(b.constant(seen), scores, -math.inf)
        self.weights = b.exp(b.sub(scores, self.of_numbers(lse)))

    def of_queries(self, x: Any) -> Any:
        """Return (batch, length, heads, width) as (batch, key heads, group, length, width)."""
        batch, length, _, width = x.shape
        parts = self.b.reshape(x, shape=(batch, length, self.key_heads, self.group, width))
        return self.b.transpose(parts, axes=(0, 2, 3, 1, 4))

    def of_keys(self, x: Any) -> Any:
        """Return (batch, length, key heads, width) as (batch, key heads, 1, length, width)."""
        batch, length, heads, width = x.shape
        turned = self.b.transpose(x, axes=(0, 2, 1, 3))
        return self.b.reshape(turned, shape=(batch, heads, 1, length, width))

    def of_numbers(self, x: Any) -> Any:
        """Return (batch, length, heads) as (batch, key heads, group, length, 1)."""
        return self.of_queries(self.b.reshape(x, shape=(*x.shape, 1)))

    def back_to_queries(self, x: Any) -> Any:
        batch, heads, group, length, width = x.shape
        return self.b.reshape(
            self.b.transpose(x, axes=(0, 3, 1, 2, 4)), shape=(batch, length, heads * group, width)
        )

    def back_to_keys(self, x: Any) -> Any:
        """Return what belongs to each query head, summed over the group, as (batch, length, key heads, width)."""
        return self.b.transpose(self.b.sum(x, axes=(2,), keepdims=False), axes=(0, 2, 1, 3))

    def of_mask(self, x: Any) -> Any:
        """Return what belongs to scores as the mask's shape, before the sum over axes of 1."""
        batch, heads, group, queries, keys = x.shape
        return self.b.reshape(x, shape=(batch, heads * group, queries, keys))

    def turned(self, x: Any) -> Any:
        return self.b.transpose(x, axes=(0, 1, 2, 4, 3))

    def product(self, x: Any, y: Any) -> Any:
        """Return x y'."""
        return self.b.matmul(x, self.turned(y))

    def less_rows(self, x: Any) -> Any:
        """Return minus the sums over the keys as (batch, length, heads)."""
        batch, heads, group, queries, _ = x.shape
        total = self.back_to_queries(self.b.sum(x, axes=(4,), keepdims=True))
        return self.b.neg(self.b.reshape(total, shape=(batch, queries, heads * group)))

    def slopes(self, v: Any, delta: Any, ct: Any) -> Any:
        """Return the cotangent of the scores."""
        b = self.b
        direct = self.product(self.of_queries(ct), self.of_keys(v))
        return b.mul(self.weights, b.sub(direct, self.of_numbers(delta)))


def _vjp_backward(b: Any, node: Any, cts: Any) -> Any:
    """Return the cotangents of dq = F k, dk = F' q and dv = P' ct, with F and P as in the doc of the op."""
    q, k, v, mask, scale, lse, delta, ct = node.inputs
    c = _Composition(b, b.mul(q, scale), k, mask, lse, node.params)
    by_dq, by_dk, by_dv = (
        b.constant(np.zeros(value.shape, value.dtype)) if given is None else given
        for given, value in zip(cts, node.outputs, strict=True)
    )
    by_scaled = by_dq = c.of_queries(by_dq)
    by_dq = b.mul(by_dq, scale)
    keys_in_bands = _Bands(c, by_dk, _edges(q.aval, k.aval, v.aval))
    values_in_bands = _Bands(c, by_dv, keys_in_bands.edges)
    p, g, value = c.weights, c.of_queries(ct), c.of_keys(v)
    direct = b.sub(c.product(g, value), c.of_numbers(delta))
    slopes = b.mul(p, direct)
    of_slopes = b.add(c.product(by_dq, c.k), keys_in_bands.products(c.q, turned=True))
    of_direct = b.mul(p, of_slopes)
    of_weights = b.add(b.mul(of_slopes, direct), values_in_bands.products(g, turned=True))
    of_scores = b.mul(p, of_weights)

    def of_queries() -> Any:
        return c.back_to_queries(b.add(keys_in_bands.products(slopes), b.matmul(of_scores, c.k)))

    def of_scale() -> Any:
        return b.add(_inner(b, q, of_queries()), _inner(b, by_scaled, b.matmul(slopes, c.k)))

    return (
        lambda: b.mul(of_queries(), scale),
        lambda: c.back_to_keys(b.add(b.matmul(c.turned(slopes), by_dq), b.matmul(c.turned(of_scores), c.q))),
        lambda: c.back_to_keys(b.matmul(c.turned(of_direct), g)),
        lambda: c.of_mask(of_scores) if node.params["masked"] else None,
        of_scale,
        lambda: c.less_rows(of_scores),
        lambda: c.less_rows(of_direct),
        lambda: c.back_to_queries(b.add(b.matmul(of_direct, value), values_in_bands.products(p))),
    )


class _Bands:
    """Cotangents of sums in bands of queries, each for the queries of its band."""

    def __init__(self, c: _Composition, of_bands: Any, edges: list[int]) -> None:
        self.c = c
        self.edges = edges
        b = c.b
        count, *shape = of_bands.shape
        self.parts = []
        for band in range(count):
            starts, stops = (band, *(0 for _ in shape)), (band + 1, *shape)
            part = b.slice(of_bands, starts=starts, stops=stops, steps=(1,) * of_bands.ndim)
            self.parts.append(c.of_keys(b.reshape(part, shape=tuple(shape))))

    def products(self, x: Any, *, turned: bool = False) -> Any:
        """Return the rows of x, which are queries, times the cotangent of their band, or times it turned."""
        b = self.c.b
        total = None
        for part, (first, last) in zip(self.parts, pairwise(self.edges), strict=True):
            rows = x
            if len(self.parts) > 1:
                inside = np.zeros((x.shape[-2], 1), x.dtype)
                inside[first:last] = 1
                rows = b.mul(x, b.constant(inside))
            product = self.c.product(rows, part) if turned else b.matmul(rows, part)
            total = product if total is None else b.add(total, product)
        return total


def _sample(
    q: tuple[int, ...], k: tuple[int, ...], mask: tuple[int, ...] = (), causal: bool = False
) -> Sample:
    shapes = (q, k, k, mask or (1, 1, 1, 1), (1,))
    return Sample(shapes, {"causal": causal, "masked": bool(mask)}, low=-0.5, high=0.5)


_SAMPLES = (
    _sample((2, 3, 2, 2), (2, 4, 1, 2)),
    _sample((1, 5, 1, 3), (1, 5, 1, 3), (1, 1, 5, 5), causal=True),
)


def _adjoint_sample(sample: Sample) -> Sample:
    q = sample.shapes[0]
    return sample._replace(shapes=(*sample.shapes, q[:3], q[:3], q))


OPS = (
    Op(name="attention_forward", doc="exp(scale q k' + mask - lse) v and lse, the logarithm of the sum of exp(...) "
       "over keys, infinity for none; its adjoint is attention_backward", kind=Kind.KERNEL, infer=_infer_forward,
       numpy=_forward, promote=one_float, vjp=_vjp_forward, batch=batch.attention, analytic=False, samples=_SAMPLES,
       emit=KernelCall("attention_forward", _forward_numbers,
                       cut=RangeCut(_forward_ns, _units))),
    Op(name="attention_backward", doc="with P = exp(scale q k' + mask - lse) and F = P (ct v' - delta): scale F k, and "
       "scale F' q and P' ct in bands whose sum counts; composed of products for derivatives of its own",
       kind=Kind.KERNEL, infer=_infer_backward, numpy=_backward, promote=one_float, vjp=_vjp_backward, analytic=False,
       samples=tuple(map(_adjoint_sample, _SAMPLES)),
       emit=KernelCall("attention_backward", _backward_numbers,
                       cut=RangeCut(_backward_ns, _units))),
)  # fmt: skip
