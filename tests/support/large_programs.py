# SPDX-License-Identifier: BSD-3-Clause
"""Random programs of NumPy's functions over arrays that are so large that launches run in parts and in sections."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tracejit as tj

DTYPES = (
    "float32", "float64", "int64", "int32", "int16", "int8", "uint8", "uint32", "bool", "complex128",
)  # fmt: skip
COLUMNS = (1, 2, 3, 7, 10, 16, 33, 64, 100, 256, 1000, 3000)

# {a} and {b} are arrays with two axes, {axis} one of these.
VALUES = (
    "np.tanh({a})", "np.abs({a})", "-{a} * 2", "{a} * {a}", "{a}[::-1]", "{a}[:, ::2]", "{a}[1:]", "{a}.T.copy()",
    "np.cumsum({a}, axis={axis})", "np.sort({a}, axis={axis})", "np.roll({a}, 3, axis={axis})",
    "np.diff({a}, axis={axis})", "{a} - {a}.mean(axis={axis}, keepdims=True)", "np.where({a} > 0, {a}, 0)",
    "{a}.astype(np.float32)", "{a}.astype(bool)", "np.clip({a}, -1, 1)", "{a} // 2", "{a} % 3", "{a} > 0",
    "np.repeat({a}, 2, axis={axis})", "np.pad({a}, 1)", "{a} / (np.abs({a}).max() + 1)", "{a}.reshape(-1)[:, None]",
    "np.argsort({a}, axis={axis}, kind='stable')", "{a} + {b}", "{a} * {b}", "np.maximum({a}, {b})", "{a} > {b}",
    "np.where({a} > {b}, {a}, {b})", "np.concatenate([{a}, {b}], axis={axis})", "np.hypot({a}, {b})", "{a} & {b}",
    "({a} == {b})", "np.stack([{a}, {b}], axis=-1).sum(axis=-1)", "np.logaddexp({a}, {b})",
)  # fmt: skip
RESULTS = (
    "{a}.sum()", "{a}.sum(axis={axis})", "{a}.mean(axis={axis})", "{a}.max(axis={axis})", "{a}.min()",
    "np.prod({a} > 0, axis={axis})", "{a}.any(axis={axis})", "{a}.all()", "np.argmax({a}, axis={axis})",
    "np.argmin({a})", "{a}.var(axis={axis})", "np.count_nonzero({a}, axis={axis})", "np.count_nonzero({a})",
    "np.sum({a}, axis={axis}, dtype=np.int32)", "np.sum({a} > 0, dtype=np.int16)", "np.median({a}, axis={axis})",
    "np.linalg.norm({a}, axis={axis})", "np.unique({a})", "np.flatnonzero({a})", "{a}[{a} > 0]",
    "np.bincount(np.abs({a}).reshape(-1).astype(np.int64) % 7)", "np.quantile({a}, 0.3, axis={axis})",
    "np.nanmax({a}, axis={axis})", "np.ptp({a}, axis={axis})", "np.trapezoid({a}, axis={axis})",
)  # fmt: skip
WRITES = (
    "t[1:] += t[:-1]", "t[t > 0] = 0", "t[::2] *= 2", "t[:-1] = {a}[1:]", "t[:, 0] = {a}.sum(axis=1)",
    "t.sort(axis={axis})", "np.add.at(t, np.arange(len(t)) // 2, {a})",
)  # fmt: skip


def drawn(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Return an array of small numbers."""
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    numbers = rng.integers(0 if dtype[0] == "u" else -4, 5, shape)
    return (
        (numbers > 0)
        if dtype == "bool"
        else (numbers + 1j * numbers[::-1] if dtype[0] == "c" else numbers).astype(dtype)
    )


def text_of(rnd: random.Random) -> str:
    """Return the text of a function of two arrays, A and B, that returns a tuple."""
    lines, names, returned = [], ["A", "B"], []
    for number in range(rnd.randint(2, 6)):
        name, kind = f"v{number}", rnd.choice((VALUES, VALUES, VALUES, RESULTS, WRITES))
        chosen = rnd.choice(kind).format(
            a=rnd.choice(names[-3:]), b=rnd.choice(names), axis=rnd.choice((0, 1, -1))
        )
        if kind is WRITES:
            lines += [f"t = {rnd.choice(names)}.copy()", chosen, f"{name} = t"]
        else:
            lines.append(f"{name} = {chosen}")
        if kind is not RESULTS:
            names.append(name)
        if kind is RESULTS or rnd.random() < 0.5:
            returned.append(name)
    return "\n    ".join(["def function(A, B):", *lines, f"return {', '.join(returned or [name])},"])


def check(seed: int) -> bool:
    """Compare replays of a program with NumPy; return whether NumPy computes it."""
    rnd, rng = random.Random(seed), np.random.default_rng(seed)
    columns = rnd.choice(COLUMNS)
    shape = (max(2, int(rnd.choice((3e4, 1e5, 3e5, 1e6)) / columns)), columns)
    shape = shape[::-1] if rnd.random() < 0.3 else shape
    first = rnd.choice(DTYPES)
    arrays = [drawn(rng, shape, dtype) for dtype in (first, rnd.choice((first, rnd.choice(DTYPES))))]
    text = text_of(rnd)
    namespace: dict[str, Any] = {"np": np}
    exec(text, namespace)
    function: Callable[..., Any] = namespace["function"]
    try:
        with np.errstate(all="ignore"):
            wanted = function(*[array.copy() for array in arrays])
    except Exception:  # such as a shape that does not fit
        return False
    accelerated = tj.dlaccelerate(function)
    try:
        for _ in range(4):
            found = accelerated(*arrays)
    except tj.ArgumentError as error:  # fractions that are added to so many integers
        assert "recorded one by one" in str(error), text
        return False
    assert accelerated.stats.hits == 2, (seed, text)
    for have, want in zip(found, wanted, strict=True):
        _compare(
            np.asarray(have),
            np.asarray(want),
            "float32" in f"{[array.dtype for array in arrays]}{text}",
            f"{seed} {shape}\n{text}",
        )
    return True


def _compare(have: np.ndarray, want: np.ndarray, is_single: bool, message: str) -> None:
    assert (have.dtype, have.shape) == (want.dtype, want.shape), message
    if want.dtype.kind not in "fc":
        # Where an element is compared with one that it is nearly equal to, a rounding decides.
        assert np.count_nonzero(have != want) <= 1e-3 * want.size, message
        return
    tolerance = 1e-3 if is_single or want.dtype.itemsize <= 4 else 1e-9
    size = np.abs(want[np.isfinite(want)]).max(initial=10.0)
    np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance * size, err_msg=message)


def checked(seeds: Iterator[int] | range) -> int:
    """Return how many programs NumPy computes; all of them are checked."""
    return sum(map(check, seeds))
