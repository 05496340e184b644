# SPDX-License-Identifier: BSD-3-Clause
"""Masks that select nothing in some calls: a trace of their own only where that matters."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

CALLS = 24

# What is computed of an array x, of which half of the calls select nothing by b.
SAME_TRACE = """
y[b] = x[b] | y[b] = 0 | y[b] += 1 | y[b] -= x[b] | y[b] *= 2 | y[b] = -x[b] | y[b] = np.sqrt(x[b] - 0.8) | y[b] /= x[b]
y[b] = x[b] * 2 + 1 | y[b] = np.maximum(x[b], y[b]) | y[b] += x[b] ** 2 | y[b] = np.exp(x[b]); y[~b] = x[~b]
np.copyto(y, x, where=b) | y = np.where(b, x, y) | y[b] = x[b]; y[b] += y[b] | v = x[b]; v *= 2; y[b] = v | y[b[:, 0]] = x[b[:, 0]]
y[b[:, 0]] += 1 | y[b[:, 0], 1] = x[b[:, 0], 2] | np.putmask(y, b, x) | y[np.where(b)] = x[np.where(b)] | y[b] = True
y = x[b].sum() | y = x[b].prod() | y = (x[b] > 1).any() | y = (x[b] > 1).all() | y = x[b] @ x[b] | y = np.sqrt(x[b]).sum()
y = x[b[:, 0]].sum(axis=0) | y = x[b].sum() / (1 + b.sum()) | y = x[np.where(b)].sum() | y = (x[b] > 1).sum() + np.log(x[b]).sum()
y = x[b] + x[0, 0]; y = y.sum() | v = x[b]; y = v[v > 0.95].sum() | y[b] = x[b] - x[0, 0] | y[b] = x.astype(np.float32)[b]
y[b[:, 0]] = x[b[:, 0]] @ np.ones((3, 3)) | y[b[:, 0]] = x[b[:, 0], 1, None] | y = (np.log(x[b[:, 0]]) @ np.ones(3)).sum()
"""  # noqa: E501
OWN_TRACE = """
y = x[b].mean() | y = x[b].std() | y = x[b].var() | y[b] *= x[0, 0] | y[b] = np.hypot(x[b], x[0, 0]) | y[b] = (x[b] + x[0, 0]) ** 2
y = x[b[:, 0]].mean(axis=0) | y[b] = x[b] - x[b].mean() | y = np.sqrt(x[b] + x[0, 0]).sum() | y = np.linalg.norm(x[b] / x[0, 0])
y[b[:, 0]] = x[b[:, 0]] @ x[:3] | k = np.where(b[:, 0], 1, 7); y = x[b[:, 0], k[b[:, 0]]].sum() | y = (x[b[:, 0]] @ x[0]).mean()
"""  # noqa: E501
ERRORS = ["y = x[b].max()", "y = x[b].min()", "y = x[b][0]", "y = np.ptp(x[b])"]


def cases(text: str) -> list[str]:
    return [case.strip() for case in text.replace("\n", "|").split("|") if case.strip()]


def of(case: str) -> Callable[..., Any]:
    lines = "\n ".join(["def function(x):", "b = x > 0.9", "y = x * 2", *case.split("; "), "return y"])
    names: dict[str, Any] = {"np": np}
    exec(lines, names)
    return names["function"]  # type: ignore[no-any-return]


def draws() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(0.2, 0.85, (4, 3)) for _ in range(CALLS)]
    for x in arrays[::2]:
        x[1, 2], x[3] = 0.95, 0.92
    return arrays


def outcome(function: Any, x: Any) -> Any:
    try:
        return np.asarray(function(x))
    except Exception as error:
        return type(error)


def check(case: str) -> Any:
    plain, fast = of(case), tj.dlaccelerate(of(case), audit=False)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for x in draws():
            want, have = outcome(plain, x.copy()), outcome(fast, x.copy())
            if isinstance(want, type):
                assert issubclass(have, want)
            else:
                assert have.dtype == want.dtype
                np.testing.assert_allclose(have, want, rtol=1e-12)
    return fast.stats


@pytest.mark.parametrize("case", cases(SAME_TRACE))
def test_one_trace(case: str) -> None:
    stats = check(case)
    assert (stats.traces, stats.hits, stats.uncompiled) == (2, CALLS - 2, 0)


@pytest.mark.parametrize("case", cases(OWN_TRACE))
def test_two_traces(case: str) -> None:
    stats = check(case)
    assert (stats.traces, stats.hits, stats.uncompiled) == (4, CALLS - 4, 0)


@pytest.mark.parametrize("case", ERRORS)
def test_errors_of_numpy(case: str) -> None:
    assert check(case).hits


def test_shortest_paths_have_one_trace() -> None:
    """Each of ten masks had two traces: a thousand in all."""

    def paths(lengths: Any) -> Any:
        lengths = lengths.copy()
        for k in range(10):
            through = lengths[:, k, None] + lengths[None, k]
            shorter = through < lengths
            lengths[shorter] = through[shorter]
        return lengths

    fast, rng = tj.dlaccelerate(paths, audit=False), np.random.default_rng(0)
    for _ in range(60):
        lengths = rng.random((10, 10))
        lengths[lengths > 0.4] = np.inf
        np.fill_diagonal(lengths, 0)
        np.testing.assert_array_equal(np.asarray(fast(lengths)), paths(lengths))
    assert (fast.stats.traces, fast.stats.hits) == (2, 58)


# Losses of an array x and a parameter w. Where nothing is selected, what stands in its place is outside of the domain.
LOSSES = {
    "a root": "v = x[x > 0]; loss = np.sqrt(v).sum()",
    "a root of a sum": "v = x[x > 0]; loss = np.sqrt(v + w).sum()",
    "a root of two sums": "v = x[x > 0]; loss = np.sqrt((v + w) - v / 2 - w / 2).sum()",
    "a logarithm of a product": "v = x[x > 0]; loss = np.log(v * w).sum()",
    "a power": "loss = (x[x > 0] ** w).sum()",
    "an assignment": "y = x * 2; y[x > 0] = np.sqrt(x[x > 0]) + 1 / x[x > 0]; loss = y.sum()",
    "an assignment with a parameter": "y = x * 2; y[x > 0] = np.sqrt(x[x > 0] - w); loss = y.sum()",
    "a sum that is assigned": "y = x * w; y[x > 0] += x[x > 0]; loss = np.sqrt(y * y + 1).sum()",
    "an element of a selection": "v = x[x > 0]; v[v > 1] = w; loss = np.sqrt(v).sum()",
    "a copy": "v = (x[x > 0] + w).copy(); loss = np.sqrt(v).sum()",
    "rows": "r = np.stack([x, x + 1]).T; loss = np.sqrt(r[x > 0] + w).prod(axis=1).sum()",
    "products": "loss = (x[x > 0] + w).prod() + x[x > 0] @ np.sqrt(x[x > 0])",
}


@pytest.mark.parametrize("name", [*LOSSES])
def test_gradients_of_what_is_not_selected_are_zero(name: str) -> None:
    lines = "\n ".join(
        ["def function(x, w):", *LOSSES[name].split("; "), "return loss, *tj.dlgradient(loss, x, w)"]
    )
    names: dict[str, Any] = {"np": np, "tj": tj}
    exec(lines, names)
    fast, rng = tj.dlaccelerate(names["function"], audit=False), np.random.default_rng(2)
    arrays = [rng.standard_normal(5), rng.standard_normal(5), -abs(rng.standard_normal(5)), np.zeros(5)]
    arrays += [np.array([-np.inf, -1.0, np.nan, 0.0, -2.0]), np.full(5, -0.5), rng.standard_normal(5)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for x in [*arrays, *arrays]:
            x, w = tj.dlarray(x), tj.dlarray(np.array(0.5))
            for have, want in zip(fast(x, w), tj.dlfeval(names["function"], x, w), strict=True):
                np.testing.assert_allclose(tj.extractdata(have), tj.extractdata(want), rtol=1e-12)
    assert fast.stats.hits and not fast.stats.uncompiled


class Parameters:
    def __init__(self) -> None:
        self.scale, self.matrix = tj.dlarray(2.0), tj.dlarray(np.arange(6.0).reshape(3, 2))


@pytest.mark.parametrize("name", ["scale", "matrix"])
@pytest.mark.filterwarnings("error")
def test_parameters_of_self_have_no_part_of_what_is_not_selected(name: str) -> None:
    """Where a mask selects nothing, functions of all elements may be NaN, and 0 times NaN is NaN."""
    own = Parameters()

    @tj.dlaccelerate
    def gradient(x: Any) -> Any:
        found = np.log(x[x[:, 0] > 0])
        return tj.dlgradient(
            (found * own.scale if name == "scale" else found @ own.matrix).sum(), getattr(own, name)
        )

    for x in draws()[:6]:
        for sign in (1, -1):
            with np.errstate(all="ignore"):
                want = tj.dlfeval(gradient.function, sign * x)
            assert not np.isnan(want).any()
            np.testing.assert_allclose(gradient(sign * x), want, rtol=1e-12)
