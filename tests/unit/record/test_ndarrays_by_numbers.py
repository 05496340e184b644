# SPDX-License-Identifier: BSD-3-Clause
"""Captured ndarrays that meet numbers which vary: read, computed with and written as NumPy does, and replayed."""

import io
import math
import pickle
import threading
import warnings

import numpy as np
import pytest

import tracejit as tj
import tracejit.traces.stats  # before a test pretends to be another Python, which imports nothing
from tracejit.record import subscripts
from tracejit.record.recorder import Recorder

CALLS = (0, 1, 2, 3, 4, 5, 1, 2, 7)
# The bodies of functions of i that read X (10, 4), Y (10,) of integers, L, a list of X, and w, a dlarray (4,).
REPLAYED = [
    "return X[i] @ w", "return (X[i] * w).sum()", "return X[i].dot(w)", "return np.dot(X[i], w)", "return X[i].T @ w",
    "return X[i, 0] * 2", "return w * X[i, 0]", "return X[(i,)] @ w", "return X[i][1:3].sum()", "return X[i - 3] @ w",
    "return X[i : i + 2] @ w", "return X[i : i + 3 : 2] @ w", "return X[i:i+2, 1:].sum()", "return X[..., i % 4].sum()",
    "return X[None, i].shape[0]", "return len(X[i : i + 2])", "return X[i : i + 2].astype(np.float32).sum()",
    "return X[i : i + 2] @ X[i : i + 2].T", "return X[i : i + 2].ravel() @ np.ones(8)", "return X[i].copy().sum()",
    "return X.reshape(5, 8)[i % 5] @ np.ones(8)", "return X.T[i % 4] @ X[:, 0]", "return {1: X}[1][i] @ w",
    "return L[0][i] @ w", "return X[Y[i]] @ w", "return X[Y[i : i + 2]] @ w", "return Y[i] + 1", "return X[i].std()",
    "Z = X[i : i + 2]\nZ = Z - Z.mean(axis=0)\nreturn Z", "a, b, c, d = X[i]\nreturn a + d", "return sum(X[i])",
    "s = 0.0\nfor r in X[i : i + 3]: s = s + r @ w\nreturn s", "out = np.zeros(4)\nout[:] = X[i]\nreturn out",
    "out = np.zeros((3, 4))\nout[1] = X[i] * w\nreturn out", "return (X * i).sum()", "return i * X[0]", "return X + i",
    "return np.where(X > i, X, 0.0).sum()", "return (X[0] @ w) * np.cos(0.1 * i)", "return X * np.cos(0.1 * i) @ w",
    "b = X * i\nb[0] = 1\nreturn b.sum()", "return np.allclose(X[i], X[0])", "return np.maximum(X, i).sum()",
    "return X.astype(np.float32) * i", "return (Y * i).sum()",
    "return Y / (i + 1)", "s = X[i].sum()\nreturn s * 2, s + X[0], np.exp(-s), s > 3, np.array([s, 1.0]), X / (s + 1)",
    "return X[i].max(), X[i] @ X[0], np.linalg.norm(X[i]), np.dot(X[i], X[0]), X[i].mean(), np.sum(X[i])",
    "s = (X.astype(np.float32) * i).sum()\nreturn s.dtype.name, s / 3, -s, np.maximum(s, 1), s.item()",
]  # fmt: skip
OF_NUMPY = [
    "return np.asarray(X[i]) + 1", "return np.linalg.det(X[i : i + 2, :2] + np.eye(2))", "return float(X[i, 0])",
    "return np.linalg.qr(np.eye(4) * i + X.T @ X)[1][0]", "return complex(X[i, 0])", "return f'{X[i, 0]:.3f}'",
    "d = {}\nd[X[i, 0]] = 1\nreturn list(d)[0]", "b = X + i\nb.sort()\nreturn b[0]", "return (X * i).flags.writeable",
    "b = X * i\nv = b[1:]\nv.sort(axis=0)\nreturn b", "return np.interp(X[i, 1], [0.0, 50.0], [0.0, 1.0])",
    "return X[Y == i] @ w", "return X[-i:].sum()", "return X[: i + 1].sum()", "return X[20]", "return X[i, 9]",
    "return X[X > i].sum()", "return X.astype(np.int64)[i].sum()", "return (X.astype(np.int64) >> i).sum()",
    "return X.astype(complex)[i].sum()", "return X.astype(str)[i][0]", "return np.random.default_rng(0).choice(X[i])",
    "s = X[i].sum()\nreturn hash(s), {s: 1}[s], isinstance(s, float), type(s) is np.float64, str(s), round(s, 1)",
    "a, b, c, d = X[i]\nreturn {a: 1}[a], math.sqrt(b), c if c > d else d", "return [{e} == {3.0} for e in X[i]]",
    "return X[i] * 1j", "return X[i] + C", "return X[i].sum(dtype=np.float32)", "return X[i].max(initial=0)",
    "return X[i : i + 2].ravel('F')", "return X[i].astype(complex)", "return X[i].astype(np.float32, copy=False)",
    "return X[i].clip(2, 8, out=np.zeros(4))", "return X[i : i + 2].reshape((4, 2), order='F')", "return X[i] == None",
    "return X[i] == 'a'", "return None in X[i]", "return X[i, True]", "return str(X[i]), repr(X[i]), f'{X[i]}'",
    "return bytes(X[i]), bytes(Y[i : i + 2])", "return pickle.loads(pickle.dumps(X[i]))", "return M[i].filled(-1)",
    "np.savetxt(io.StringIO(), X[i])\nreturn 1", "return X[i].copy('F'), X[i : i + 2].copy(order='K')",
    "return np.zeros(4).sum(dtype=np.float32) + X[i, 0]", "return X[i] ** 1j", "return X[i] @ C", "return C @ X[i]",
    "X2 = X.copy()\nX2[i] = 3\nreturn X2.sum()", "return X[i].tobytes()[:4]",
    "return X.astype(np.float32)[i] * 0.1",
]  # fmt: skip
WRITES = [
    "xb = X[i]\nxb[0] = 7\nreturn X[i].sum()", "xb = X[i]\nxb[0] = 7\nreturn X.sum()",
    "X[i : i + 2] += 1\nreturn X.sum()",
    "xb = X[i : i + 2]\nxb += 1\nreturn X.sum()", "X[i] = 0\nreturn X.sum()", "xb = X[i]\nX[0] += 5\nreturn xb.sum()",
    "a, b = X[i], X[i]\na[1] = 3\nreturn b.sum()", "xb = X[i : i + 2]\nr = xb[1]\nr *= 2\nreturn xb.sum() + X.sum()",
    "xb = X[i]\nxb.sort()\nreturn X.sum()", "xb = X[i]\nxb.fill(2)\nreturn X.sum()", "X[i, 0] += 1\nreturn X[i, 0]",
    "xb = X[i : i + 2]\nnp.multiply(xb, 2, out=xb)\nreturn X.sum()", "np.copyto(X[i], 1.0)\nreturn X.sum()",
    "try: return X[i + 5]\nexcept IndexError: return -1",
    "X[0] -= 0.1 * X[i]\nreturn X[0]", "X[0] = X[i] * 2\nreturn X[0]", "X[0, 0] = X[i].sum()\nreturn X[0]",
    "X[0, 0] += X[i].sum()\nreturn X[0]", "np.add(X[i], 1, out=X[0])\nreturn X[0]",
    "np.copyto(X[0], X[i])\nreturn X[0]",
    "np.putmask(X, X > i, i)\nreturn X[0]", "np.place(X, X > i, [i])\nreturn X[0]", "X[:] *= np.cos(i)\nreturn X[0]",
    "np.put(X, [0], X[i, 1])\nreturn X[0]", "np.fill_diagonal(X, X[i, 0])\nreturn X[0]",
    "X[0] *= X[i] @ X[0]\nreturn X[0]",
    # What is copied has memory of its own.
    "b = X[i]\nc = b.copy()\nb[0] = 9\nreturn b + 0, c", "b = X[i]\nc = b.copy()\nc.sort()\nreturn b + 0, c",
    "t = X[i].copy()\nX[i] = X[0]\nX[0] = t\nreturn X[0]", "b = X[i].copy()\nb[::-1].sort()\nreturn b",
    "b = X * i\nc = np.array(b)\nb.sort()\nb[0] = 3\nreturn b, c", "b = X * i\nv = b[1:].T\nb.view()[:] = 7\nreturn v",
    "b = X[i]\nb.sort()\nb[...] = X[0] * np.cos(i)\nreturn b + 0",
    "np.random.default_rng(0).shuffle(X[i])\nreturn X[0]",
    "b = X[i]\nb.sort()\nX[0] -= 0.1 * X[1] * i\nb.sort()\nreturn b + 0",
    "b = np.ones(4)\nb[i % 4] = 0\nb.sort()\nreturn b",
    "b = X[i]\nc = tj.dlarray(X)[i].copy()\nb[0] = 9\nreturn c",
]  # fmt: skip


def outcomes(body, accelerate):
    """Return what the calls of a function give and leave in X, and the function."""
    x = np.arange(40.0).reshape(10, 4)
    names = {"X": x, "Y": np.arange(10) % 7, "L": [x], "C": np.arange(4) * 1j, "w": tj.dlarray(np.ones(4))}
    names.update(M=np.ma.masked_array(x.copy(), x > 30), np=np, tj=tj, io=io, math=math, pickle=pickle)
    exec("def f(i):\n" + "".join(f"    {line}\n" for line in body.split("\n")), names)
    function = accelerate(names["f"])
    found = []
    for i in CALLS:
        try:
            result = function(i)
        except IndexError:
            result = "IndexError"
        parts = result if isinstance(result, tuple) else (result,)
        found += [np.array(tj.extractdata(x) if isinstance(x, tj.dlarray) else x) for x in parts]
        found.append(x.copy())
    return found, function


def follow(body):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = outcomes(body, lambda f: f)
        found, function = outcomes(body, tj.dlaccelerate)
    for have, want in zip(found, expected, strict=True):
        if want.dtype.kind in "fc":
            assert have.dtype == want.dtype
            np.testing.assert_allclose(have, want, rtol=1e-6 if want.dtype == np.float32 else 1e-12)
        else:
            np.testing.assert_array_equal(have, want)
    return function.stats


@pytest.mark.parametrize("body", REPLAYED)
def test_replays(body):
    assert follow(body).hits >= 4


@pytest.mark.parametrize("body", OF_NUMPY)
def test_what_only_numpy_can_do_is_recorded_for_each_number(body):
    follow(body)


@pytest.mark.parametrize("body", WRITES)
def test_writes_through_a_part_reach_the_ndarray(body):
    follow(body)


def test_a_table_and_traced_indices():
    table = np.arange(50.0).reshape(10, 5)

    @tj.dlaccelerate
    def rows(w, index):
        return tj.dlgradient((table[index] @ w).sum(), w)

    for k in range(6):
        index = np.array([k, 2 * k % 10, 3])
        found = tj.extractdata(rows(tj.dlarray(np.ones(5)), index))
        np.testing.assert_array_equal(found, table[index].sum(axis=0))
    assert (rows.stats.hits, rows.stats.traces) == (4, 2)
    table[:] = 1
    np.testing.assert_array_equal(
        tj.extractdata(rows(tj.dlarray(np.ones(5)), np.array([1, 2, 3]))), 3 * np.ones(5)
    )


def test_a_number_that_is_computed_of_an_ndarray_is_differentiated():
    x = np.arange(12.0).reshape(4, 3)

    @tj.dlaccelerate
    def slope(i):
        return tj.dlfeval(lambda a: tj.dlgradient((a * a).sum(), a), x[i])

    for i in (0, 1, 2, 3, 1, 2):
        np.testing.assert_array_equal(tj.extractdata(slope(i)), 2 * x[i])


def test_what_is_computed_of_ndarrays_and_numbers_is_a_number_in_replays_too():
    x = np.arange(12.0).reshape(4, 3)

    @tj.dlaccelerate
    def mean(i):
        return x[i].mean()

    assert [type(mean(i)) for i in (0, 1, 2, 3, 1, 2)] == 6 * [np.float64]
    assert mean.stats.hits == 1
    assert tj.extractdata(mean(3)) == 10.0


def test_arrays_are_instances_of_the_class_of_ndarrays():
    x = np.arange(12.0).reshape(4, 3)

    @tj.dlaccelerate
    def ask(i, a):
        made = np.zeros(3)
        yes = [isinstance(y, np.ndarray) for y in (x[i], 2 * x[i], x * i, x[i].T, made, made[1:], made + 1)]
        return yes, [isinstance(y, np.ndarray) for y in (a, tj.dlarray(x[i]), 2 * a, x[i] + a, a[a > 0])]

    @tj.dlaccelerate
    def slope(i):
        return tj.dlfeval(lambda a: tj.dlgradient((a * a).sum(), a), 2 * x[i])

    for i in (0, 1, 2, 3, 2):
        assert ask(i, np.ones(3)) == (7 * [True], 5 * [True])
        np.testing.assert_array_equal(tj.extractdata(slope(i)), 4 * x[i])


def test_an_array_of_the_caller_still_has_its_derivative():
    @tj.dlaccelerate
    def fun(w, i):
        return (w * i).__array__()

    with pytest.raises(tj.errors.TraceError, match="would silently drop its derivative"):
        for i in range(4):
            fun(tj.dlarray(np.ones(3)), i)


def test_an_explicit_dlarray_of_an_ndarray_still_has_its_derivative():
    x = np.ones(3)

    @tj.dlaccelerate
    def fun(i):
        return (tj.dlarray(x) * i).__array__()

    with pytest.raises(tj.errors.TraceError, match="would silently drop its derivative"):
        for i in range(4):
            fun(i)


class TestSubscripts:
    def test_numpy_has_its_own_again_after_a_recording(self):
        original = np.ndarray.__getitem__
        slot = subscripts._READS.word.value

        @tj.dlaccelerate
        def fails(i):
            assert np.ndarray.__getitem__ is not original
            raise KeyError(i)

        for i in range(4):
            with pytest.raises(KeyError):
                fails(i)
        assert np.ndarray.__getitem__ is original and subscripts._READS.word.value == slot

    def test_nested_blocks_and_other_threads(self):
        x = np.arange(6.0)
        found = []
        with subscripts.Subscripts(Recorder("f")):
            with subscripts.Subscripts(Recorder("f")):
                thread = threading.Thread(target=lambda: found.extend([x[1], x[1:3].sum(), x[x > 3].size]))
                thread.start()
                thread.join()
            assert type(x[2:]) is np.ndarray and type(x[2]) is np.float64
            assert np.ndarray.__getitem__ is subscripts._getitem
            with pytest.raises(IndexError):
                x[7]
        assert found == [1.0, 3.0, 2]
        assert np.ndarray.__getitem__ is subscripts._READS.original

    def test_subclasses_are_left_alone(self):
        class Own(np.ndarray):
            def __getitem__(self, key):
                return super().__getitem__(key) * 2 if isinstance(key, int) else super().__getitem__(key)

        x, masked = np.arange(4.0).view(Own), np.ma.masked_array([1.0, 2.0], [False, True])
        with subscripts.Subscripts(Recorder("f")):
            assert x[1] == 2 and type(x[1:]) is Own
            assert masked[0] == 1 and masked[1] is np.ma.masked
            made = type("Made", (np.ndarray,), {})  # inherits what is there now
        assert np.arange(3.0).view(made)[1] == 1

    def test_another_python_asks_nobody(self, monkeypatch):
        monkeypatch.setattr(subscripts.sys, "implementation", type("Other", (), {"name": "pypy"}))
        monkeypatch.delitem(vars(subscripts._METHODS), "is_possible", raising=False)
        assert not subscripts.is_possible()
        with subscripts.Subscripts(Recorder("f")):
            assert np.ndarray.__getitem__ is subscripts._READS.original
        assert follow("return X[i] @ w").hits == 0
        monkeypatch.undo()
        vars(subscripts._METHODS).pop("is_possible", None)
        assert subscripts.is_possible()


@pytest.mark.parametrize("inner", [tj.dlaccelerate, lambda f: f])
@pytest.mark.parametrize("wrapped", [tj.dlarray, lambda x: x])
def test_numpy_reads_what_dlarrays_of_its_ndarrays_wrote(inner, wrapped):
    @inner
    def increment(r):
        r += 1.0

    def total(x, i):
        increment(wrapped(x[i]))
        return x.sum() + (x * 2.0)[0, 0]

    x, y = np.arange(12.0).reshape(4, 3), np.arange(12.0).reshape(4, 3)
    accelerated = tj.dlaccelerate(lambda i: total(x, i))
    for k in range(12):
        y[k % 4] += 1.0
        assert float(accelerated(k % 4)) == y.sum() + 2.0 * y[0, 0]
        np.testing.assert_array_equal(x, y)
    assert accelerated.stats.hits and not accelerated.stats.uncompiled
