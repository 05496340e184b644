# SPDX-License-Identifier: BSD-3-Clause
"""The rows of the benchmark of single operations: calls as text, their operands, sizes and layouts.

Names in the text of a call, with r rows and c columns of the row's size, float32 unless a dtype is named:

| name | is |
|---|---|
| A, B | (r, c), normal numbers |
| P | (r, c), positive ones |
| D, E | (r, c), float64 |
| Z | (r, c), complex128 |
| N, M | (r, c), int64, -1000 to 1000; positive |
| C | (r, c), bool |
| T | (10, size / 100, 10) |
| S, F | square matrices with about the size's elements, float32; float64 |
| x, d, n | vectors with all elements of the size: float32, float64, int64 |
| q | a vector of a column, (r,); p one of a row, (c,) |
| i, j | indices of rows, (r,); of elements, (size,) |
| G | indices along the rows, (r, c) |
| v | a sorted float32 vector |
| U | (r, c), between 0 and 1 |

Shapes of (r, c): "square", "wide" (10 long rows) and "tall" (many rows of 10).
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

SIZES = (100, 10_000, 1_000_000)
LAYOUTS = ("contiguous", "transposed", "strided")


class Operand(NamedTuple):
    """Random numbers between `low` and `high`."""

    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float


class Row(NamedTuple):
    """A call of NumPy as text; `ours` and `jax` are the text for tracejit and JAX where it differs."""

    name: str
    size: int
    layout: str
    text: str
    operands: dict[str, Operand]
    ours: str = ""
    jax: str = ""

    def written(self) -> str:
        """Return the row as a line."""
        return json.dumps(self._asdict())

    @classmethod
    def read(cls, line: str) -> "Row":
        """Return the row of a line."""
        fields = json.loads(line)
        operands = {name: Operand(tuple(shape), *rest) for name, (shape, *rest) in fields["operands"].items()}
        return cls(**{**fields, "operands": operands})


EVERY_LAYOUT = """
np.sum(A) | np.sum(A, axis=0) | np.sum(A, axis=1) | np.max(A) | np.max(A, axis=0) | np.max(A, axis=1)
np.argmax(A) | np.argmax(A, axis=0) | np.argmax(A, axis=1) | np.argmin(A, axis=1) | np.cumsum(A, axis=0)
np.cumsum(A, axis=1) | np.mean(A, axis=1) | np.var(A, axis=0) | np.var(A, axis=1) | np.sort(A, axis=1)
np.any(C, axis=1) | np.copy(A) | np.add(A, p) | np.where(C, A, B)
"""
"""Calls that are made in every layout and shape."""

EVERY_SHAPE = """
np.prod(A, axis=1) | np.prod(A, axis=0) | np.min(A, axis=1) | np.argmin(A) | np.cumprod(P, axis=1)
np.sum(D, axis=1) | np.sum(D, axis=0) | np.sum(N, axis=1) | np.mean(A) | np.var(A) | np.std(A, axis=1)
(np.max(A, axis=1), np.argmax(A, axis=1)) | (np.max(A, axis=0), np.argmax(A, axis=0))
(np.mean(A, axis=1), np.var(A, axis=1)) | np.sort(A, axis=0) | np.argsort(D, axis=1) | np.median(A, axis=1)
np.median(A, axis=0) | np.count_nonzero(C, axis=1) | np.any(C, axis=0) | np.all(C, axis=1) | np.ptp(A, axis=1)
np.take_along_axis(A, G, axis=0) | np.diff(A, axis=1) | np.diff(A, axis=0) | np.flip(A, axis=1).copy()
np.roll(A, 3, axis=0) | np.roll(A, 3, axis=1) | np.concatenate([A, B], axis=0) | np.concatenate([A, B], axis=1)
np.stack([A, B], axis=-1) | np.repeat(A, 2, axis=1) | np.tile(A, (2, 2)) | np.multiply(A, q[:, None])
A[i] | A[:, ::-1].copy() | A[1:] - A[:-1] | A[:, 1:] - A[:, :-1] | np.pad(A, 1) | np.matmul(A, p) | np.matmul(q, A)
np.matmul(A.T, q) | np.matmul(p[None], A.T) | np.linalg.norm(A, axis=1) | np.cumsum(D, axis=1) | np.cumsum(N, axis=1)
np.maximum.accumulate(A, axis=1) | np.average(A, axis=0) | np.clip(A, -1, 1) | np.outer(q, p) | np.transpose(A).copy()
np.nansum(A, axis=1) | np.nanmax(A, axis=1) | np.quantile(A, 0.3, axis=1) | np.partition(A, 3, axis=1)[:, 3]
np.fft.fft(Z, axis=1) | np.fft.fft(Z, axis=0) | np.fft.rfft(D, axis=1) | np.fft.ifft(Z, axis=1)
"""
"""Calls that are made in every shape."""

ONCE = """
np.sum(x) | np.argmax(x) | np.argmin(x) | np.argmax(d) | np.argmax(n) | np.cumsum(x) | np.cumsum(d) | np.cumprod(x)
np.sort(x) | np.sort(d) | np.sort(n) | np.argsort(d) | np.median(x) | np.quantile(x, 0.3) | np.partition(x, 7)[7]
np.unique(n) | np.searchsorted(v, x) | np.interp(x, v, x) | np.dot(x, x) | np.dot(d, d) | np.roll(x, 7)
np.flip(x).copy() | x[::-1].copy() | x[::2].copy() | x[j] | np.take(x, j) | N % 7 | N // 7 | N % 8 | N // 8 | N % M
N // M | n % 10 | N.astype(np.int32) % 7 | N.astype(np.int32) // 7 | A % 3.0 | A // 3.0 | A ** 2 | A ** 3
A ** 0.5 | A ** 2.5
np.where(A > 0, A, 0) | A * (A > 0) | A > 0 | (A > 0) & (B > 0) | C & (A > 0) | ~C
np.sum(A > 0) | np.sum(C)
np.count_nonzero(A > 0) | (A > 0).any() | A.astype(np.float64) | D.astype(np.float32)
N.astype(np.float32)
C.astype(np.float32) | np.sum(T, axis=1) | np.max(T, axis=1) | np.sum(T, axis=(0, 2))
np.mean(T, axis=1) | np.argmax(T, axis=1) | np.cumsum(T, axis=1) | np.var(T, axis=1) | np.transpose(T, (2, 0, 1)).copy()
np.matmul(S, S) | np.matmul(S, S.T) | np.matmul(S.T, S) | np.matmul(F, F) | np.matmul(F, F.T) | np.matmul(F.T, F)
np.matmul(S[:1], S) | np.matmul(S, S[:, :1]) | np.trace(S) | np.diag(S).copy() | np.tril(S) | np.triu(S)
np.kron(S[:4, :4], S[:8, :8]) | np.einsum("ij,ij->i", A, B) | np.einsum("ij,kj->ik", S, S) | np.tensordot(S, S, 1)
np.inner(S, S) | np.vdot(x, x) | np.cross(A[:, :3], B[:, :3]) | np.histogram(x, 10)[0] | np.bincount(j, minlength=99)
np.digitize(x, v[:20]) | np.convolve(x, v[:9]) | np.correlate(x, v[:9]) | np.gradient(x) | np.trapezoid(x)
np.nan_to_num(A) | np.meshgrid(q, p)[0] + 0 | np.linalg.norm(x) | np.linalg.norm(S) | np.fft.fft(d) | np.fft.rfft(d)
np.fft.fft2(Z) | np.fft.rfft2(D) | np.fft.irfft2(Z) | np.fft.fftshift(Z) | np.exp(Z) | Z * Z | np.abs(Z) | Z @ Z.T
(np.max(x), np.argmax(x)) | (np.mean(x), np.var(x)) | np.sum(A * B) | np.mean((A - B) ** 2) | np.logaddexp(A, B)
np.cov(A[:10]) | np.corrcoef(A[:10]) | np.nonzero(C)[0][:1] | np.select([A > 0, B > 0], [A, B]) | np.isclose(A, B)
"""
"""Calls that are made once for each size."""

PAIRS = (
    ("add.at of rows", "added(A, i, B)", "tj.scatter_add(A, i, B)", "A.at[i].add(B)"),
    ("add.at of elements", "added(x, j, x)", "tj.scatter_add(x, j, x)", "x.at[j].add(x)"),
    ("put of rows", "replaced(A, i[:1], B[:1])", "", "A.at[i[:1]].set(B[:1])"),
    ("softmax", "np.exp(A - A.max(1, keepdims=True)) / np.exp(A - A.max(1, keepdims=True)).sum(1, keepdims=True)",
     "tj.softmax(A, axis=1)", "jax.nn.softmax(A, 1)"),
    ("special.gammaln, float64", "special.gammaln(D * D + 0.5)", "tj.special.gammaln(D * D + 0.5)",
     "jax.scipy.special.gammaln(D * D + 0.5)"),
    *[(f"special.{name}", f"special.{name}({operand})", f"tj.special.{name}({operand})",
       f"jax.scipy.special.{name}({operand})")
      for names, operand in (("gammaln gamma digamma erf erfc ndtr log_ndtr i0 i0e i1 i1e expit entr", "P"),
                             ("erfinv ndtri logit", "U"), ("xlogy", "P, P"))
      for name in names.split()],
)  # fmt: skip
"""Calls with another text for each library: name, NumPy's, ours (the same if empty), JAX's."""

SMALLER = re.compile(r"np\.(matmul|inner|tensordot|einsum)\((\"ij,kj->ik\", )?[SF]\b|Z @ Z")
"""Calls whose work grows faster than their size; the largest size is left out."""


def shapes(size: int) -> dict[str, tuple[int, int]]:
    """Return the shapes of matrices with `size` elements."""
    side = math.isqrt(size)
    return {"square": (side, side), "wide": (10, size // 10), "tall": (size // 10, 10)}


def known(size: int, shape: tuple[int, int]) -> dict[str, Operand]:
    """Return the operands by name."""
    r, c = shape
    side = math.isqrt(size)
    return {
        "A": Operand(shape, "float32", -3, 3), "B": Operand(shape, "float32", -3, 3),
        "P": Operand(shape, "float32", 0.5, 1.5), "D": Operand(shape, "float64", -3, 3),
        "E": Operand(shape, "float64", -3, 3), "Z": Operand(shape, "complex128", -3, 3),
        "N": Operand(shape, "int64", -1000, 1000), "M": Operand(shape, "int64", 1, 1000),
        "C": Operand(shape, "bool", 0, 2), "T": Operand((10, size // 100, 10), "float32", -3, 3),
        "S": Operand((side, side), "float32", -3, 3), "F": Operand((side, side), "float64", -3, 3),
        "x": Operand((size,), "float32", -3, 3), "d": Operand((size,), "float64", -3, 3),
        "n": Operand((size,), "int64", -1000, 1000), "q": Operand((r,), "float32", -3, 3),
        "p": Operand((c,), "float32", -3, 3), "i": Operand((r,), "int64", 0, r),
        "j": Operand((size,), "int64", 0, min(size, 99)), "G": Operand((r, c), "int64", 0, r),
        "v": Operand((size,), "float32", 0, 1), "U": Operand(shape, "float32", 0.01, 0.99),
    }  # fmt: skip


def calls(text: str) -> list[str]:
    """Return the calls of a table."""
    return [call.strip() for line in text.split("\n") for call in line.split(" | ") if call.strip()]


def used(size: int, shape: tuple[int, int], text: str) -> dict[str, Operand]:
    """Return the operands that a text names."""
    words = set(re.findall(r"(?<![.\w\"])[A-Za-z](?![\w\"(=])", text))
    return {name: operand for name, operand in known(size, shape).items() if name in words}


def of_records(size: int, layout: str) -> Iterator[Row]:
    """Give a row for each elementwise op, with operands of the op's domain; under NumPy's name where it has one."""
    from tracejit.ops import OPS, Kind
    from tracejit.ops.op import TITLES

    side = math.isqrt(size)
    for op in OPS.values():
        sample = op.samples[0]
        if op.kind is not Kind.ELEMENTWISE or sample.params or op.name == "stop_gradient" or "." in op.name:
            continue
        low, high = (sample.low, sample.high) if sample.low is not None else op.domain
        if sample.dtypes is not None and "i" in np.dtype(sample.dtypes[-1] or "f").kind:
            high = min(high, sample.integer_high or high)
        given = ("x", "y", "z")[: len(sample.shapes)]
        dtypes = [(sample.dtypes[k] if sample.dtypes else None) or "float32" for k in range(len(given))]
        operands = {name: Operand((side, side), str(np.dtype(dtype)), low, high)
                    for name, dtype in zip(given, dtypes, strict=True)}  # fmt: skip
        title, names = TITLES.get(op.name, op.name), ", ".join(given)
        ours = f"apply({op.name!r}, {names})"
        text = f"np.{title}({names})" if hasattr(np, title) else f"OPS[{op.name!r}].numpy({names})"
        yield Row(f"{title}({names})", size, layout, text, operands, ours, f"np.{title}({names})")


def rows(sizes: Sequence[int] = SIZES, layouts: Sequence[str] = LAYOUTS) -> Iterator[Row]:
    """Give all rows of some sizes and layouts."""
    for size in sizes:
        by_shape = shapes(size)
        square = by_shape["square"]
        for layout in layouts:
            yield from of_records(size, layout)
            for shape_name, shape in by_shape.items():
                tables = EVERY_LAYOUT + (EVERY_SHAPE if layout == "contiguous" else "")
                for text in calls(tables):
                    yield Row(f"{text}, {shape_name}", size, layout, text, used(size, shape, text))
        if "contiguous" in layouts:
            for text in calls(ONCE):
                if size < max(SIZES) or not SMALLER.search(text):
                    yield Row(text, size, "contiguous", text, used(size, square, text))
            for name, text, ours, jax in PAIRS:
                yield Row(name, size, "contiguous", text, used(size, square, text), ours, jax)


def operands(row: Row) -> list[np.ndarray]:
    """Return the arrays of a row, in its layout; vectors lie transposed as they do otherwise."""
    rng = np.random.default_rng(0)
    arrays = []
    for name, (shape, dtype, low, high) in row.operands.items():
        drawn = (*shape[:-1], 2 * shape[-1]) if row.layout == "strided" else shape
        drawn = drawn[::-1] if row.layout == "transposed" else drawn
        if np.dtype(dtype).kind in "biu":
            first, last = math.ceil(low), max(math.floor(high), math.ceil(low) + 1)
            array = rng.integers(first, last, drawn).astype(dtype)
        else:
            array = rng.uniform(low, high, drawn)
            array = (
                array + 1j * rng.uniform(low, high, drawn) if dtype.startswith("complex") else array
            ).astype(dtype)
        if row.layout == "strided":
            array = array[..., ::2]
        elif row.layout == "transposed":
            array = array.T
        arrays.append(np.sort(array) if name == "v" else array)
    return arrays
