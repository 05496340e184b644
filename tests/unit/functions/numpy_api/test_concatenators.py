# SPDX-License-Identifier: BSD-3-Clause
"""np.r_, np.c_ and np.vectorize of traced arrays; NumPy on ndarrays is the oracle."""

import math
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate
from numpy import c_

import tracejit as tj

X, M = np.array([0.5, -1.0, 2.0]), np.arange(6.0).reshape(2, 3)
KEYS = """
np.r_[x, 1.5, x[::-1]] | np.r_[0, x] | np.r_[x, 1:4] | np.r_[-1:1:5j, x] | np.r_[x] | np.r_[x[0], x[1] * 2] | np.c_[x]
np.r_[[1, 2], x] | np.r_[[x[0], 2], x] | np.r_[x.astype(np.float32), 1] | np.r_[x.astype(np.float32), np.float64(1)]
np.r_[m, m + 1] | np.r_["0", m, m] | np.r_["1", m, 2 * m] | np.r_["-1", m, m] | np.r_["0,2", x, 2 * x] | np.c_[x, x * x]
np.r_["0,2,0", x, x] | np.r_["1,2,0", x, x] | np.r_["0,3,1", m, m] | np.r_["0,3,-1", m, m] | np.c_[m, [7, 8]] | c_[x, x]
np.c_[m, m * 2, np.ones((2, 1))] | np.r_[x > 0, x < 0] | np.r_[1j * x, x] | np.r_[x[:0], 1] | np.c_[x, 1:4]
np.c_[np.r_[x, 0], np.r_[0, x]] | np.r_["1,3,0", x, x] | np.r_[True, x > 0] | np.c_[x[:1], 2] | np.r_[(x > 0).sum(), 2]
"""
CASES = [key.strip() for key in KEYS.replace("|", "\n").splitlines() if key.strip()]


def computed(text: str, x: Any, m: Any) -> Any:
    return eval(text, {"np": np, "c_": c_, "x": x, "m": m})


@pytest.mark.parametrize("text", CASES)
def test_keys(text: str) -> None:
    want = computed(text, X, M)
    step = dlaccelerate(lambda x, m: computed(text, x, m) * 1)
    for _ in range(3):
        found = step(X, M)
        assert found.dtype == (want * 1).dtype
        np.testing.assert_array_equal(tj.extractdata(found), want)
    assert step.stats.hits > 0
    if want.dtype.kind == "f":
        tj.testing.check_gradients(lambda x, m: np.sin(computed(text, x, m)) * 2, X, M)


def test_numpys_own_objects_are_back_after_a_recording() -> None:
    before = type(np.r_).__getitem__, np.vectorize.__call__
    during: list[Any] = []

    def fun(x: Any) -> Any:
        during.append(type(np.r_).__getitem__)
        plain = np.r_[np.zeros(2), 1:3], np.vectorize(lambda i: i + 1)(np.arange(3))
        assert [type(part) for part in plain] == [np.ndarray, np.ndarray]
        return np.r_[x, 1]

    tj.dlfeval(fun, X)
    assert before == (type(np.r_).__getitem__, np.vectorize.__call__) and during[0] is not before[0]


def test_labels_are_dropped() -> None:
    assert tj.dlfeval(lambda x: np.r_[x, x], tj.dlarray(X, "C")).format is None


def step_of(x: Any, y: Any) -> Any:
    return np.where(x > y, x * y, np.sin(x) + 1)


def both(x: Any, y: Any = 2.0) -> Any:
    return x + y, x * y


SCALARS = """
v(step_of)(x, 0.5) | v(step_of)(m, x) | v(step_of)(x[:, None], x) | v(both)(x)[1] | v(both)(m, y=x)[0]
v(step_of)(x[0], 1.0) | v(step_of, otypes=[np.float32])(x, x[::-1]) | v(both, otypes="fd")(x, 1)[0]
v(lambda x, p: x * p[0], excluded=[1])(x, [3, 4]) | v(lambda x, p: x * p.sum(), excluded={"p"})(x, p=x)
v(np.dot, signature="(n),(n)->()")(m, x) | v(step_of)(x, [1, 2, 3])
v(lambda a: (a - a.mean()) / a.std(), signature="(n)->(n)")(m) | v(both, signature="(),()->(),()")(m, x)[1]
v(lambda a: a[:2] * a[-1], signature="(n)->(k)")(m[None]) | v(lambda x: 1.0)(x)
v(lambda x: x * 2, otypes=[float])(x[:0]) | v(np.outer, signature="(n),(m)->(n,m)")(m, x)
v(step_of)(x.astype(np.float32), 1) | v(lambda x: x > 0)(x)
"""
CALLS = [row.strip() for row in SCALARS.replace("|", "\n").splitlines() if row.strip()]


@pytest.mark.parametrize("text", CALLS)
def test_vectorized_functions(text: str) -> None:
    def fun(x: Any, m: Any) -> Any:
        return eval(text, {"np": np, "v": np.vectorize, "step_of": step_of, "both": both, "x": x, "m": m})

    want = fun(X, M)
    step = dlaccelerate(fun)
    for _ in range(3):
        found = step(X, M)
        assert found.dtype == want.dtype
        np.testing.assert_allclose(
            tj.extractdata(found), want, rtol=1e-6 if "float32" in text or "fd" in text else 1e-14
        )
    assert step.stats.hits > 0
    if want.dtype == np.float64 and want.size and "1.0)(x)" not in text:
        tj.testing.check_gradients(fun, X, M)


@np.vectorize
def made_before(x: Any, y: Any) -> Any:
    return x * y + FACTOR


FACTOR = 3.0


def test_a_function_that_was_made_before_sees_what_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    step = dlaccelerate(lambda x: made_before(x, 2))
    for factor in (3.0, 5.0, 5.0, 3.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        np.testing.assert_array_equal(tj.extractdata(step(X)), X * 2 + factor)
    assert step.stats.hits > 0


def test_one_element_may_decide() -> None:
    root = np.vectorize(lambda x: math.sqrt(x) if x > 0 else 0.0)
    step = dlaccelerate(lambda x: root(x) + x)
    for x in (4.0, 9.0, -1.0):
        assert float(step(np.array(x))) == (math.sqrt(x) if x > 0 else 0.0) + x
