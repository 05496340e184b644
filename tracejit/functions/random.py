# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: rand, randn, randi, randperm, dropout, and rng, which seeds them."""

import math
import operator
from typing import Any

import numpy as np

from tracejit.array import apply, dlarray
from tracejit.aval import FLOAT32, FLOAT64, check_format
from tracejit.errors import ArgumentError, DimsError, DTypeError, TraceError
from tracejit.functions import rng as generators
from tracejit.functions.creation import dtype_of, with_format
from tracejit.functions.formats import floating, in_dtype
from tracejit.functions.rng import Generator, RngState, seed_of
from tracejit.ops.random import blocks
from tracejit.record import recorder
from tracejit.util.arguments import check_room, is_real, real
from tracejit.util.arguments import sizes as sizes_of
from tracejit.util.text import brief

_RESOLUTION = 2**53  # different numbers that a uniform float64 can be


def rng(seed: Any = None) -> RngState:
    """Seed the random numbers, or restore a state of theirs, and return the state from before.

    Without a call the seed is 0, in each process.

    Args:
        seed: integer from 0 to 2**64 - 1, "default" (0), "shuffle" (one that the operating system gives), or
            a state that rng() returned. None changes nothing.

    Returns:
        The state from before; in a with statement, it is restored at the end of the block. A function that calls
        rng() cannot be accelerated, and runs uncompiled.

    Raises:
        ArgumentError: for any other `seed`.

    Examples:
        >>> import tracejit as tj
        >>> state = tj.rng()
        >>> first = tj.rand(3)
        >>> _ = tj.rng(state)
        >>> bool((tj.rand(3) == first).all())
        True
        >>> with tj.rng(42):
        ...     tj.randi(6, 4).tolist()
        [2, 2, 1, 2]
    """
    before = generators.default.state
    if isinstance(seed, RngState):
        generators.default.state = seed
    elif seed is not None:
        generators.default.state = RngState(seed_of("rng", seed), 0)
    return before


def rand(
    *size: Any,
    dtype: Any = None,
    format: str | None = None,
    like: Any = None,
    generator: Generator | None = None,
) -> dlarray:
    """Return numbers drawn uniformly from [0, 1): multiples of 2**-53, in float32 of 2**-24.

    Args:
        size: sizes, or one tuple of them; without any, one number.
        dtype: float64 or float32; without it that of `like`, or float64.
        format: one label for each axis; without it that of `like` if the sizes are the same.
        like: dlarray to take dtype and format from.
        generator: where to draw from; without it what rng() seeds.

    Returns:
        dlarray; a constant for dlgradient. An accelerated function draws anew at each call.

    Raises:
        DimsError: if `size` holds no sizes or `format` does not fit it.
        DTypeError: for any other dtype.
        ArgumentError: if `generator` is none.

    Examples:
        >>> import tracejit as tj
        >>> with tj.rng(0):
        ...     tj.rand(2, 3)
        2x3 dlarray float64
        [[0.8805202  0.60548185 0.36209112]
         [0.03709408 0.31944577 0.27174699]]
    """
    (x,) = _uniforms("rand", _sizes("rand", size, format), _floating("rand", dtype, like), generator)
    return with_format("rand", x._data, format, like, x._value)


def randn(
    *size: Any,
    dtype: Any = None,
    format: str | None = None,
    like: Any = None,
    generator: Generator | None = None,
) -> dlarray:
    """Return numbers drawn from the standard normal distribution.

    Args:
        size: sizes, or one tuple of them; without any, one number.
        dtype: float64 or float32; without it that of `like`, or float64.
        format: one label for each axis; without it that of `like` if the sizes are the same.
        like: dlarray to take dtype and format from.
        generator: where to draw from; without it what rng() seeds.

    Returns:
        dlarray; a constant for dlgradient. An accelerated function draws anew at each call.

    Raises:
        DimsError: if `size` holds no sizes or `format` does not fit it.
        DTypeError: for any other dtype.
        ArgumentError: if `generator` is none.

    By Box and Muller: sqrt(-2 log(1 - u)) cos(2 pi v) of uniform u and v, at most 8.6 in magnitude, in float32 5.8.

    Examples:
        >>> import tracejit as tj
        >>> with tj.rng(0):
        ...     x = tj.randn(1000)
        >>> abs(x.mean().item()) < 0.1, abs(x.std().item() - 1) < 0.1
        (True, True)
    """
    sizes, wanted = _sizes("randn", size, format), _floating("randn", dtype, like)
    u, v = _uniforms("randn", sizes, wanted, generator, 2)
    radius = apply("sqrt", apply("mul", apply("log", apply("sub", 1.0, u)), -2.0))
    x = apply("mul", radius, apply("cos", apply("mul", v, 2 * math.pi)))
    return with_format("randn", x._data, format, like, x._value)


def randi(
    limits: Any,
    *size: Any,
    dtype: Any = None,
    format: str | None = None,
    like: Any = None,
    generator: Generator | None = None,
) -> dlarray:
    """Return integers drawn uniformly: those of range(high) or range(low, high), so `high` itself is left out.

    Args:
        limits: `high`, or a tuple (low, high); the range has from 1 to 2**53 integers.
        size: sizes, or one tuple of them; without any, one number.
        dtype: any that holds all of them exactly; without it that of `like`, or int64.
        format: one label for each axis; without it that of `like` if the sizes are the same.
        like: dlarray to take dtype and format from.
        generator: where to draw from; without it what rng() seeds.

    Returns:
        dlarray; a constant for dlgradient. An accelerated function draws anew at each call. An integer's probability is
        off by 2**-53 at most.

    Raises:
        ArgumentError: if `limits` is no such range, or `generator` is none.
        DimsError: if `size` holds no sizes or `format` does not fit it.
        DTypeError: for a dtype that cannot hold them.

    Examples:
        >>> import tracejit as tj
        >>> with tj.rng(0):
        ...     tj.randi((1, 7), 10)  # a die
        10 dlarray int64
        [6 4 3 1 2 2 3 3 5 6]
    """
    low, high = _limits(limits)
    wanted = np.dtype(np.int64) if dtype is None and like is None else dtype_of("randi", dtype, like)
    _check_holds(wanted, low, high)
    (u,) = _uniforms("randi", _sizes("randi", size, format), FLOAT64, generator)
    # The product is below `high - low` even after rounding, because u is 1 - 2**-53 at most.
    x = apply("cast", apply("mul", u, float(high - low)), dtype=np.dtype(np.int64))
    if low:
        x = apply("add", x, low)
    x = in_dtype(x, wanted)
    return with_format("randi", x._data, format, like, x._value)


def randperm(n: Any, k: Any = None, *, generator: Generator | None = None) -> dlarray:
    """Return the integers 0 to n - 1 in random order, or the first `k` of them.

    Args:
        n: how many there are.
        k: how many to return; all by default.
        generator: where to draw from; without it what rng() seeds.

    Returns:
        dlarray int64 (k,). An accelerated function draws anew at each call. `take(x, randperm(n), axis=0)` shuffles.

    Raises:
        DimsError: if `n` or `k` is no size, or `k` is more than `n`.
        ArgumentError: if `generator` is none.

    Examples:
        >>> import tracejit as tj
        >>> with tj.rng(0):
        ...     tj.randperm(6)
        6 dlarray int64
        [3 5 1 0 2 4]
    """
    (count,) = sizes_of("randperm", "n", (n,))
    (chosen,) = (count,) if k is None else sizes_of("randperm", "k", (k,))
    if chosen > count:
        raise DimsError(f"randperm: k={chosen} different integers cannot be chosen from n={count}.")
    order = apply("permutation", *_uniforms("randperm", (count,), FLOAT64, generator))
    return order if chosen == count else order[:chosen]


def dropout(x: Any, p: Any = 0.5, *, generator: Generator | None = None) -> dlarray:
    """Return `x` with each element set to 0 with probability `p`, and the others multiplied by 1 / (1 - p).

    Args:
        x: dlarray of any format, ndarray or number.
        p: probability, 0 <= p < 1; a number, or a scalar dlarray, whose value is not checked.
        generator: where to draw from; without it what rng() seeds.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64. An accelerated function draws anew at each
        call. It draws for p = 0, too, so that what is drawn later does not depend on `p`.

    Raises:
        ArgumentError: if `p` is no probability below 1, or `generator` is none.

    The cotangent is dropped and multiplied like `x`.

    Examples:
        >>> import tracejit as tj
        >>> with tj.rng(0):
        ...     tj.dropout(tj.ones((2, 3)), 0.2).tolist()
        [[1.25, 1.25, 1.25], [1.25, 1.25, 1.25]]
    """
    array = floating("dropout", x)
    if recorder.is_array(p) and not p.ndim and p.dtype.kind in "fiu":
        scale: Any = in_dtype(apply("div", 1.0, apply("sub", 1.0, p)), array.dtype)
        p = in_dtype(p, FLOAT32)
    elif is_real(p) and 0 <= p < 1:
        p = real(
            "dropout", "p", p
        )  # not float(p): a probability that keeps changing is an input of the trace
        scale = 1 / (1 - p)
    else:
        raise ArgumentError(f"dropout: p must be a probability, 0 <= p < 1, not {brief(p)}.")
    # Numbers of 24 bits are exact enough, and made in half the time.
    (u,) = _uniforms("dropout", array.shape, FLOAT32, generator)
    return apply("where", apply("greater_equal", u, p), apply("mul", array, scale), 0.0)


def _uniforms(
    where: str, shape: tuple[int, ...], dtype: np.dtype, generator: Generator | None, count: int = 1
) -> list[Any]:
    """Return `count` independent arrays of uniform numbers, for which the generator moves on as for one."""
    if generator is None:
        generator = generators.default
    elif not isinstance(generator, Generator):
        raise ArgumentError(f"{where}: generator must be a tj.Generator, not {type(generator).__name__}.")
    check_room(where, shape, dtype)
    state, offset = generators.draw(generator, blocks(math.prod(shape), dtype))
    op = "uniform32" if dtype == FLOAT32 else "uniform64"
    return [apply(op, state, shape=shape, offset=offset, stream=stream) for stream in range(count)]


def _sizes(where: str, size: tuple[Any, ...], format: str | None) -> tuple[int, ...]:
    """Return sizes given one by one or as one tuple, if `format` fits them."""
    sizes = sizes_of(where, "size", size[0] if len(size) == 1 else size)
    if format is not None:
        check_format(where, format, len(sizes))
    return sizes


def _floating(where: str, dtype: Any, like: Any) -> np.dtype:
    wanted = dtype_of(where, dtype, like)
    if wanted.kind != "f":
        raise DTypeError(
            f"{where}: the numbers are of floating point, so the dtype must be float64 or float32, not {wanted}; "
            "randi draws integers."
        )
    return wanted


def _limits(limits: Any) -> tuple[int, int]:
    given = limits if isinstance(limits, (tuple, list)) else (0, limits)
    try:
        low, high = map(operator.index, given)
    except TraceError:
        raise
    except Exception:
        raise ArgumentError(
            f"randi: limits must be an integer `high` or a tuple (low, high) of integers, not {brief(limits)}."
        ) from None
    if not low < high <= low + _RESOLUTION:
        raise ArgumentError(
            f"randi: the limits {brief(low)} (included) and {brief(high)} (excluded) must have 1 to 2**53 integers "
            "between them."
        )
    return low, high


def _check_holds(dtype: np.dtype, low: int, high: int) -> None:
    """Raise a DTypeError if `dtype` does not hold the integers from `low` to `high` - 1 exactly."""
    if dtype.kind == "f":
        most = 2 ** (np.finfo(dtype).nmant + 1)
        least = -most
    elif dtype.kind == "c":
        raise DTypeError(
            f"randi: the numbers are integers, so that the dtype cannot be {dtype}; choose another dtype."
        )
    elif dtype.kind == "b":
        least, most = 0, 1
    else:
        info = np.iinfo(dtype)
        least, most = int(info.min), int(info.max)
    if low < least or high - 1 > most or (dtype == np.uint64 and high > 2**63):
        raise DTypeError(
            f"randi: {dtype} does not hold all integers from {low} to {high - 1}; choose another dtype."
        )
