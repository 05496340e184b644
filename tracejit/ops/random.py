# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers as functions of the state of a generator: uniform numbers, and permutations made from them.

A state is an int64 array (key, position). A draw takes whole blocks of four words of 32 bits from position + offset on;
the caller moves the position on. Draws of different `stream` are independent. All other random numbers are computed
from these by other ops.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from tracejit.aval import INT64, Aval
from tracejit.errors import DimsError
from tracejit.ops import batch
from tracejit.ops.op import Cut, KernelCall, Kind, Op, Sample

_WORD = 0xFFFFFFFF
_LONG = 0xFFFFFFFFFFFFFFFF
_ROUNDS = 10
_FACTORS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
_KEY_STEPS = np.array([[[0x9E3779B9], [0xBB67AE85]]], np.uint64)
_CHUNK = 4096  # blocks at a time, which stay in the cache


def blocks(size: int, dtype: np.dtype) -> int:
    """Return how many blocks a draw of `size` numbers takes."""
    return -(-size * dtype.itemsize // 16)


@lru_cache(maxsize=64)
def _round_keys(key: int) -> tuple[np.ndarray, ...]:
    """Return the keys of the rounds, each a column of two words."""
    halves = np.array([[key & _WORD], [(key & _LONG) >> 32]], np.uint64)
    return tuple(
        (halves + np.arange(_ROUNDS, dtype=np.uint64)[:, None, None] * _KEY_STEPS) & np.uint64(_WORD)
    )


def philox(key: int, position: int, stream: int, count: int) -> np.ndarray:
    """Return `count` blocks from a position on: (count, 4) words of 32 bits.

    Philox 4x32-10 of J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
    SC 2011, with the counter (position, stream). Integers of any sign stand for their low 64 bits.
    """
    words = np.empty((count, 4), "<u4")
    shift, mask = np.uint64(32), np.uint64(_WORD)
    for first in range(0, count, _CHUNK):
        chunk = words[first : first + _CHUNK]
        at = np.uint64((position + first) & _LONG) + np.arange(len(chunk), dtype=np.uint64)
        # Words 0 and 2, words 1 and 3, and what a round multiplies the former by a constant to.
        even, odd, product = np.empty((3, 2, len(chunk)), np.uint64)
        swapped = product[::-1]
        even[0], even[1] = at & mask, stream & _WORD
        odd[0], odd[1] = at >> shift, (stream & _LONG) >> 32
        for round_key in _round_keys(key):
            np.multiply(even, _FACTORS, product)
            np.right_shift(swapped, shift, even)
            np.bitwise_xor(even, odd, even)
            np.bitwise_xor(even, round_key, even)
            np.bitwise_and(swapped, mask, odd)
        chunk[:, 0::2] = even.T
        chunk[:, 1::2] = odd.T
    return words


def _uniform(
    state: np.ndarray, shape: tuple[int, ...], dtype: np.dtype, offset: int, stream: int
) -> np.ndarray:
    size = prod(shape)
    key, position = state.tolist()
    words = philox(key, position + offset, stream, blocks(size, dtype))
    if dtype == np.float32:
        numbers = (words.reshape(-1)[:size] >> 8).astype(dtype)
        numbers *= dtype.type(2.0**-24)
    else:
        numbers = (words.view("<u8").reshape(-1)[:size] >> 11).astype(dtype)
        numbers *= 2.0**-53
    return numbers.reshape(shape)


def _uniform_op(name: str, dtype: np.dtype, ns: float, doc: str) -> Op:
    per_block = 16 // dtype.itemsize

    def infer(state: Aval, *, shape: tuple[int, ...], offset: int, stream: int) -> Aval:
        if state.shape != (2,) or state.dtype != INT64:
            raise DimsError(f"{name}: the state of a generator is (key, position) in int64, not {state}.")
        return Aval(shape, None, dtype)

    def numpy(state: np.ndarray, *, shape: tuple[int, ...], offset: int, stream: int) -> np.ndarray:
        return _uniform(state, shape, dtype, offset, stream)

    def numbers(
        out: Aval, state: Aval, *, shape: tuple[int, ...], offset: int, stream: int
    ) -> tuple[int, ...]:
        return (out.size, offset, stream)

    def part(numbers: Sequence[int], start: int, stop: int) -> tuple[int, ...]:
        _, offset, stream = numbers
        return (stop - start, offset + start // per_block, stream)

    def sample(*shape: int, offset: int = 0, stream: int = 0) -> Sample:
        return Sample(((2,),), {"shape": shape, "offset": offset, "stream": stream}, dtypes=("int64",))

    return Op(
        name=name, doc=doc, kind=Kind.KERNEL, infer=infer, numpy=numpy, vjp=None,
        batch=batch.drawn, emit=KernelCall(name, numbers, cut=Cut(ns, 64, part)), analytic=False,
        samples=(sample(2, 4), sample(5, offset=2**33), sample(stream=1), sample(3, 0), sample(3, 1, stream=2**40)),
    )  # fmt: skip


def _infer_permutation(u: Aval) -> Aval:
    if u.ndim != 1 or u.dtype != np.float64:
        raise DimsError(f"permutation: expected a vector of float64 numbers, not {u}.")
    return Aval(u.shape, None, INT64)


def _numpy_permutation(u: np.ndarray) -> np.ndarray:
    order: list[int] = []
    for i, j in enumerate((u * np.arange(1, len(u) + 1)).astype(np.int64).tolist()):
        order.append(i)
        order[i], order[j] = order[j], i
    return np.array(order, np.int64)


def _permutation_numbers(out: Aval, u: Aval) -> tuple[int, ...]:
    return (out.size,)


OPS = (
    _uniform_op("uniform32", np.dtype(np.float32), 0.7,
                "float32 numbers in [0, 1), each from the top 24 bits of a word; no derivative"),
    _uniform_op("uniform64", np.dtype(np.float64), 1.5,
                "float64 numbers in [0, 1), each from the top 53 bits of two words; no derivative"),
    Op(name="permutation", doc="0 to n - 1 in the order that n numbers in [0, 1) give by the shuffle of Fisher and "
       "Yates; no derivative",
       kind=Kind.KERNEL, infer=_infer_permutation, numpy=_numpy_permutation, vjp=None,
       emit=KernelCall("permutation", _permutation_numbers), analytic=False,
       samples=tuple(Sample(((n,),), low=0.0, high=1.0, dtypes=("float64",)) for n in (7, 1, 0))),
)  # fmt: skip
