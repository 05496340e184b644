# SPDX-License-Identifier: BSD-3-Clause
"""Number arguments that vary, written into ndarrays that NumPy makes in the function: recorded once."""

import warnings
from typing import Any

import numpy as np
import pytest
from effort import by_turns

import tracejit as tj

CALLS = 12

KINDS = {
    "float": lambda i: 0.25 * i,
    "int": lambda i: i,
    "np.float64": lambda i: np.float64(0.25 * i),
    "np.float32": lambda i: np.float32(0.25 * i),
    "np.int64": np.int64,
}
# The function has an argument x; M has four rows of four numbers.
BUFFERS = {
    "a copy": "b = self.M.copy()",
    "a result": "b = self.M * 2",
    "np.array": "b = np.array(self.M)",
    "another shape": "b = np.arange(16.0).reshape(4, 4).copy()",
    "a grid": "b = np.linspace(0, 1, 16).reshape(4, 4)",
    "float32": "b = self.M.astype(np.float32)",
    "in a list": "bs = [self.M + 1, self.M - 1]; b = bs[0]",
    "in another function": "b = made(self.M)",
}
WRITES = {
    "an element": "b[-1, 0] = x",
    "a row": "b[0] = x; b[1] = x + 1",
    "a slice": "b[1:3, :2] = x",
    "all": "b[:] = x",
    "in place": "b += x",
    "all in place": "b[:] *= x",
    "an element in place": "b[0, 1] -= x",
    "places in place": "b[np.diag_indices(4)] += x",
    "places": "b[[0, 2]] = x",
    "a mask": "b[self.M > 5] = x",
    "a view": "row = b[1]; row += x",
    "flat": "b.flat[3] = x",
    "fill": "b.fill(x)",
    "put": "b.put([0, 2], x)",
    "np.put": "np.put(b, [0, 2], x)",
    "np.fill_diagonal": "np.fill_diagonal(b, x)",
    "np.copyto": "np.copyto(b, x)",
    "out=": "np.add(b, x, out=b)",
    "np.add.at": "np.add.at(b, [0, 0, 1], x)",
    "a product with it": "b[0] = x * self.M[1]",
    "a place": "b[int(x) % 4] = 7.5",
    "a slice that moves": "b[int(x) % 3 : int(x) % 3 + 2] = 7.5",
}
ENDS = {
    "returned": "return b",
    "read by NumPy": "return np.sort(b, axis=None)[3] + np.tanh(b).sum()",
    "kept": "self.M = 0.5 * b; return b.sum()",
}


def made(m: Any) -> Any:
    return m + 0.0


def program(*lines: str, accelerated: bool) -> Any:
    text = "def step(self, x):\n    " + "\n    ".join(lines)
    names: dict[str, Any] = {"np": np, "made": made}
    exec(compile(text, f"<{' '.join(lines)}>", "exec"), names)
    step = tj.dlaccelerate(names["step"], audit=False) if accelerated else names["step"]

    class Rod:
        def __init__(self) -> None:
            self.M = np.arange(16.0).reshape(4, 4)

    Rod.step = step
    return Rod()


def outcome(function: Any, x: Any) -> Any:
    try:
        found = function(x)
    except Exception as error:
        return type(error)
    return found if isinstance(found, np.generic) else np.asarray(found)


def check(lines: tuple[str, ...], kind: str, numbers: Any = None) -> Any:
    """Compare each call with plain Python, and return the counts of the accelerated function."""
    plain, fast = (program(*lines, accelerated=accelerated) for accelerated in (False, True))
    for x in [KINDS[kind](i) for i in range(CALLS)] if numbers is None else numbers:
        want, have = outcome(plain.step, x), outcome(fast.step, x)
        if isinstance(want, type):
            assert have is want
            continue
        assert have.dtype == want.dtype
        np.testing.assert_allclose(have, want, rtol=1e-6 if want.dtype == np.float32 else 1e-13)
        np.testing.assert_allclose(np.asarray(fast.M), plain.M, rtol=1e-6)
    return fast.step.stats


@pytest.mark.parametrize(("write", "buffer", "kind"), by_turns([*WRITES], [*BUFFERS], [*KINDS]))
def test_is_recorded_once(write: str, buffer: str, kind: str) -> None:
    stats = check((BUFFERS[buffer], WRITES[write], ENDS["returned"]), kind)
    # Two values, and twice as an input.
    assert (stats.traces, stats.hits, stats.uncompiled) == (4, CALLS - 4, 0)


@pytest.mark.parametrize(("write", "end", "kind"), by_turns([*WRITES], [*ENDS], [*KINDS]))
def test_what_is_made_of_it(write: str, end: str, kind: str) -> None:
    stats = check((BUFFERS["a copy"], WRITES[write], ENDS[end]), kind)
    # An attribute that the function replaces is found first, and looked at in the next call.
    assert stats.traces <= (6 if end == "kept" else 4) and stats.hits >= CALLS - stats.traces
    assert not stats.uncompiled


@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize(
    "values", ["x", "(x,)", "(x, 2 * x)", "((x, 0), (1, x))", "[[x, x], [x, 1]]", "x * np.ones(2)"]
)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_borders(values: str, kind: str, dtype: str) -> None:
    line = f"return np.pad(self.M.astype(np.{dtype}), ((1, 2), (0, 1)), constant_values={values})"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stats = check((line,), kind)
    if dtype != "int64" or values == "x":  # integers of a pair may not fit
        assert (stats.traces, stats.hits, stats.uncompiled) == (4, CALLS - 4, 0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float32"])
@pytest.mark.parametrize("write", ["b[0] = x", "b += x", "b.fill(x)", "b = np.pad(b, 1, constant_values=x)"])
def test_numbers_that_do_not_fit(write: str, dtype: str) -> None:
    numbers = [1, 2, 3, 4, 5, 300, 6, -1, 7, 2.5, 3.5, 4.5, float("nan"), 5.5, 1e30, 6.5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check((f"b = self.M.astype(np.{dtype})", write, "return b"), "int", numbers)


def test_code_that_takes_ndarrays_only_gets_them() -> None:
    line = "b = self.M.copy(); b[0, 0] = x; return memoryview(b)[0, 0] + len(bytes(b.data))"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check((line,), "float")


def test_a_number_whose_value_is_needed_does_not_have_places_tried_without_end() -> None:
    """A value that selects a trace has a key in each call, and each found the place of the array."""
    lines = (
        "b = self.M.copy(); b[: x % 4] = 1.5",
        "self.M = 0.5 * b",
        "return [b[i].sum() for i in range(x % 4)]",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stats = check(lines, "int", [i % 4 for i in range(40)])
    assert stats.hits >= 20 and not stats.uncompiled
