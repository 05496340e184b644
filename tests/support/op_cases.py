# SPDX-License-Identifier: BSD-3-Clause
"""The cases of the op records, operands of every kind for elementwise ops, and the errors allowed in results."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from effort import sweep

from tracejit.aval import Aval
from tracejit.errors import DTypeError
from tracejit.ir import Builder, Graph, Value
from tracejit.ops import OPS, Kind, Op, special
from tracejit.ops.op import KernelCall, Sample, Scalar

OF_SCIPY = special.OPS
"""The functions that SciPy's loops compute, which have a test of their own."""
CASES = [
    (op, sample)
    for op in OPS.values()
    if op.kind is not Kind.HOST and op not in OF_SCIPY
    for sample in op.samples
]
ON_DEVICES = [case for case in CASES if not (isinstance(case[0].emit, KernelCall) and case[0].emit.routine)]
"""Those that need no routine of the CPU."""
OTHER_DTYPES = ("float64", "int32")


def dtypes_of_cases() -> Iterator[tuple[str, Op, Sample, str]]:
    """Give the cases of devices, named, each with a dtype by turns, at night with each.

    The first of each operation has float32 and another dtype, the second the third one.
    """
    for i, (op, sample) in enumerate(ON_DEVICES):
        number = op.samples.index(sample)
        of_one = OTHER_DTYPES[i % 2] if len(op.samples) == 1 else OTHER_DTYPES[0]
        own = ("float32", of_one) if number == 0 else (("float32", *OTHER_DTYPES)[(number + 1) % 3],)
        for dtype in sweep(own, ("float32", *OTHER_DTYPES)):
            yield f"{op.name}-{i}-{dtype}", op, sample, dtype


ELEMENTWISE = [
    op
    for op in OPS.values()
    if isinstance(op.emit, Scalar)
    and op not in OF_SCIPY
    and op.name not in ("cast", "where", "half_value", "brain_value")
]  # the last takes bits only
ROUNDED_RIGHT = (
    "sqrt",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "sign",
    "reciprocal",
    "isinf",
    "isfinite",
    "floordiv",
    "mod",
    "signbit",
    "copysign",
    "nextafter",
    "spacing",
    "frexp_fraction",
    "frexp_exponent",
    "left_shift",
    "right_shift",
)


def draw(op: Op, sample: Sample, dtype: str, seed: int = 0) -> list[np.ndarray]:
    """Return inputs of a sample, within the op's domain."""
    rng = np.random.default_rng(seed)
    low = op.domain[0] if sample.low is None else sample.low
    high = op.domain[1] if sample.high is None else sample.high
    arrays = []
    for i, shape in enumerate(sample.shapes):
        own = None if sample.dtypes is None else sample.dtypes[i]
        kind = np.dtype(own or dtype)
        if kind.kind == "f":
            array = rng.uniform(low, high, shape)
            for kink in op.kinks:
                array += np.where(np.abs(array - kink) < 0.05, 0.1, 0.0)
        elif kind.kind == "c":
            array = rng.uniform(low, high, shape) + 1j * rng.uniform(-1.0, 1.0, shape)
        elif kind.kind == "b":
            array = rng.integers(0, 2, shape)
        elif sample.integer_high is not None:
            array = rng.integers(0, sample.integer_high, shape)
        else:
            first = max(int(np.ceil(low)), 0 if kind.kind == "u" else -(2**30))
            array = rng.integers(first, max(int(np.floor(high)), first) + 1, shape)
        arrays.append(np.asarray(array).astype(kind))
    return arrays


def graph_of(make: Callable[..., list[Value]], arrays: Sequence[np.ndarray]) -> Graph:
    graph = Graph()
    b = Builder(graph)
    graph.outputs = make(b, *[b.input(Aval(a.shape, None, a.dtype)) for a in arrays])
    return graph


def exact(op: Op) -> bool:
    assert isinstance(op.emit, Scalar)
    return op.name in ROUNDED_RIGHT or "_{T}(" not in op.emit.template


def assert_ulps(
    have: np.ndarray, want: np.ndarray, ulps: int, what: str, operands: Sequence[np.ndarray] = ()
) -> None:
    """Check results within units in the last place; the failure shows the first mismatch, with its operands."""
    assert have.dtype == want.dtype, what
    assert have.shape == want.shape, what
    if have.dtype.kind != "f":
        _assert_all((have == want) | (np.isnan(have) & np.isnan(want)), have, want, what, operands)
        return
    info = np.finfo(have.dtype)
    with np.errstate(all="ignore"):
        # Denormal results are flushed to zero while a program runs.
        agree = np.isclose(have, want, rtol=ulps * info.eps, atol=info.tiny, equal_nan=True)
    _assert_all(agree, have, want, what, operands)


def assert_computed(op: Op, have: np.ndarray, want: np.ndarray, operands: Sequence[np.ndarray]) -> None:
    """Check what compiled code makes of an elementwise op, and the signs of its zeros."""
    assert_ulps(have, want, 0 if exact(op) else 8, op.name, operands)
    if have.dtype.kind == "f" and op.name not in ("maximum", "minimum"):
        known = ~np.isnan(want) & ((want == 0) == (have == 0))
        agree = ~known | (np.signbit(have) == np.signbit(want))
        _assert_all(agree, have, want, op.name, operands)


def _assert_all(
    agree: np.ndarray, have: np.ndarray, want: np.ndarray, what: str, operands: Sequence[np.ndarray]
) -> None:
    if agree.all():
        return
    place = tuple(np.argwhere(~agree)[0].tolist())
    given = ", ".join([str(np.broadcast_to(x, have.shape)[place]) for x in operands])
    called = f"{what}({given})" if operands else f"{what} at {list(place)}"
    raise AssertionError(
        f"{called}: {have[place]}, expected {want[place]} ({np.sum(~agree)} of {agree.size} differ, {have.dtype})"
    )


def known_operands(name: str, x: np.ndarray) -> np.ndarray:
    """Return for which operands NumPy's answer depends on nothing else.

    For the reciprocal of an integer 0, the vector loop of NumPy has another answer than the scalar one on some CPUs.
    """
    if name == "reciprocal" and x.dtype.kind in "iu":
        with np.errstate(all="ignore"):
            if len(set(np.reciprocal(np.zeros(65, x.dtype)).tolist())) > 1:
                return x != 0
    return np.full(x.shape, True)


def numbers(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return operands: all pairs of special values, then pairs from ranges in which the functions differ."""
    rng = np.random.default_rng(0)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, False, True, True]), np.array([False, True, False, True])
    if kind.kind == "f":
        info = np.finfo(kind)
        special = np.array(
            [0.0, -0.0, 1, -1, 0.75, -2.5, 3, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny]
        )
        spread = [rng.uniform(-1, 1, 50) * width for width in (1e-4, 1, 3, 30, 800)]
        rest = np.concatenate(spread)
    else:
        info = np.iinfo(kind)
        special = np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1], dtype)
        if info.min < 0:
            special = np.append(special, np.array([-1, -2, -3], dtype))
        rest = rng.integers(info.min, info.max, 100, dtype)
    x, y = (part.ravel() for part in np.meshgrid(special, special))
    x, y = np.append(x, rest), np.append(y, rng.permutation(rest))
    return x.astype(kind), y.astype(kind)


def all_pairs(op: Op, values: np.ndarray) -> list[np.ndarray]:
    """Return operands that broadcast to all pairs of values, to all triples where the op takes three."""
    return list(np.ix_(*[values] * len(op.samples[0].shapes)))


def operands_of(op: Op, pair: Sequence[Any]) -> list[Any]:
    """Return as many operands of a pair as the op takes, the first again where it takes three."""
    return [pair[i % 2] for i in range(len(op.samples[0].shapes))]


def defined(ops: Sequence[Op], arrays: Sequence[np.ndarray]) -> list[Op]:
    found = []
    for op in ops:
        try:
            op.infer(*[Aval(a.shape, None, a.dtype) for a in operands_of(op, arrays)])
            found.append(op)
        except DTypeError:
            pass
    return found
