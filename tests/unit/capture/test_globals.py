# SPDX-License-Identifier: BSD-3-Clause
"""Global names that a function reads: each change is seen, and what does not change costs no trace."""

import enum

import numpy as np
import pytest
from namespaces import Namespace, follow
from peers import pytorch

from tracejit import NotAcceleratedWarning, dlaccelerate, dlarray
from tracejit.capture import array_guards

X = np.array([1.0, 2.0, 3.0])


class TestGlobals:
    def test_a_number(self):
        module = Namespace("rate = 2.0\ndef f(x): return x * rate")
        follow(module["f"], module.set(rate=3.0), module.set(rate=4), module.set(rate=True), traces=9)

    @pytest.mark.parametrize("new", [0.0, -0.0, np.nan, np.inf, np.float32(2), np.float64(2), 2, True])
    def test_kinds_of_numbers(self, new):
        module = Namespace("rate = 2.0\ndef f(x): return 1 / (x * rate)")
        follow(module["f"], module.set(rate=new), module.set(rate=1.5))

    def test_zeros_of_two_signs(self):
        module = Namespace("rate = 0.0\ndef f(x): return 1 / (x * rate)")
        follow(module["f"], module.set(rate=-0.0), traces=4)

    def test_nan_is_equal_to_nan(self):
        module = Namespace("rate = 2.0\ndef f(x): return x * rate", rate=np.nan)
        follow(module["f"], module.set(rate=float("nan")), module.set(rate=float("nan")), traces=4)

    def test_an_array_in_place(self):
        weights = np.array([1.0, 2.0, 3.0])
        module = Namespace("def f(x): return x * w", w=weights)
        follow(module["f"], lambda: weights.__setitem__(0, 7.0), lambda: weights.fill(2.0), traces=2)

    def test_another_array_of_the_same_kind(self):
        module = Namespace("def f(x): return x * w", w=np.ones(3))
        follow(module["f"], module.set(w=np.array([4.0, 5.0, 6.0])), traces=2)

    @pytest.mark.parametrize(
        "new",
        [np.ones(3, np.float32), np.ones((2, 3)), np.ones(1), np.array(2.0), np.arange(3), dlarray(np.ones(3)),
         dlarray(np.ones(3), "C"), np.ones(6)[::2], np.ones(3)[::-1], np.ones(3, ">f8"), 2.0, np.float64(2)],
    )  # fmt: skip
    def test_an_array_of_another_kind(self, new):
        module = Namespace("def f(x): return x * w", w=np.array([1.0, 2.0, 3.0]))
        follow(module["f"], module.set(w=new), module.set(w=np.ones(3)))

    def test_a_name_that_is_deleted_and_comes_back(self):
        module = Namespace("rate = 2.0\ndef f(x): return x * rate")
        accelerated = follow(module["f"])
        del module.names["rate"]
        with pytest.raises(NameError, match="rate"):
            accelerated(X)
        module.names["rate"] = 2.0
        follow(accelerated, module.set(rate=5.0))

    def test_a_name_that_hides_one_of_python(self):
        module = Namespace("def f(x): return abs(x) * len('ab')")
        follow(module["f"], module.set(abs=lambda x: x * 2), module.set(len=lambda x: 7))

    def test_a_flag(self):
        module = Namespace("flag = False\ndef f(x):\n    if flag:\n        return x + 1\n    return x - 1")
        follow(module["f"], module.set(flag=True), module.set(flag=False), traces=4)

    def test_text_that_selects(self):
        module = Namespace("mode = 'sum'\ndef f(x): return getattr(x, mode)()")
        follow(module["f"], module.set(mode="max"), module.set(mode="mean"))

    def test_a_size(self):
        module = Namespace("n = 1\ndef f(x):\n    for _ in range(n):\n        x = x * 2\n    return x")
        follow(module["f"], module.set(n=3), module.set(n=2))

    def test_what_nothing_reads_costs_no_trace(self):
        module = Namespace("rate = 2.0\nother = 1\ndef f(x): return x * rate")
        follow(module["f"], module.set(other=2), module.set(new=3), traces=2)

    def test_a_dtype(self):
        module = Namespace("kind = np.float32\ndef f(x): return x.astype(kind)")
        follow(module["f"], module.set(kind=np.float64), module.set(kind=np.dtype("f4")))

    def test_a_member_of_an_enumeration(self):
        color = enum.Enum("color", ["RED", "BLUE"])
        module = Namespace("def f(x): return x * (2 if c is red else 3)", c=color.RED, red=color.RED)
        follow(module["f"], module.set(c=color.BLUE), module.set(c=color.RED))

    def test_an_array_that_only_numpy_reads(self):
        weights = np.ones(4)
        module = Namespace("def f(x): return x * float(np.sum(w))", w=weights)
        follow(module["f"], lambda: weights.fill(2.0), module.set(w=np.ones(4)))

    def test_an_array_that_decides(self):
        flags = np.array([True, False])
        module = Namespace("def f(x): return x * 2 if flags[0] else x", flags=flags)
        follow(module["f"], lambda: flags.__setitem__(0, False))

    def test_the_size_of_an_array(self):
        module = Namespace("def f(x): return x * w.shape[0] + w.ndim", w=np.ones(4))
        follow(module["f"], module.set(w=np.ones(5)), traces=4)
        module["w"][:] = 3.0
        follow(module["f"], lambda: module["w"].fill(4.0), traces=2)

    @pytest.mark.parametrize(
        "body",
        [
            "x = x * w\n    return x * float(np.sum(w))",
            "return x * float(np.sum(w)) + w",
            "return x * w + w[int(w.ndim)]",
            "return x * w + [w[i] for i in range(3)][1]",
            "return x * np.tanh(w) + (w * w) * x * w",
            "x = x * w\n    return x + w[0]",
            "x = x * w\n    return x + np.outer(w, w)[0]",
            "x = x * w\n    return x * sum(w * 2)",
            "x = x * w\n    return x * w.max()",
            "x = x * w\n    return x if abs(w[1]) > 4 else x + 1",
            "s = (np.tanh(w) ** 2).sum()\n    return x * w + s",
        ],
    )
    def test_an_array_that_the_trace_and_numpy_read(self, body):
        module = Namespace(f"def f(x):\n    {body}", w=np.ones(3))
        follow(module["f"], module.set(w=np.full(3, 5.0)), lambda: module["w"].fill(2.0))

    @pytest.mark.parametrize(
        "index", ["[0, 1]", "[0][1]", "[w.ndim - 1][1]", "[w.ndim - 1, 1]", "[1:, w.ndim - 1].max()"]
    )
    def test_a_matrix_that_the_trace_and_numpy_read(self, index):
        module = Namespace(f"def f(x): return x @ w + w{index}", w=np.ones((3, 3)))
        follow(module["f"], module.set(w=np.full((3, 3), 5.0)), lambda: module["w"].fill(2.0))

    def test_rows_that_only_the_trace_reads(self):
        module = Namespace(
            "def f(x):\n    for i in range(2):\n        x = x * w[i]\n    return x", w=np.ones((3, 3))
        )
        follow(module["f"], module.set(w=np.full((3, 3), 5.0)), lambda: module["w"].fill(2.0), traces=2)

    def test_slices_that_only_the_trace_reads(self):
        module = Namespace("def f(x):\n    k = w.ndim\n    return x[:k] * w[:k]", w=np.ones(3))
        follow(module["f"], module.set(w=np.full(3, 5.0)), lambda: module["w"].fill(2.0), traces=2)

    def test_an_array_of_a_closure_that_the_trace_and_numpy_read(self):
        w = np.ones(3)

        def fun(x):
            y = x * w
            return y * float(np.sum(w))

        def change():
            nonlocal w
            w = np.full(3, 5.0)

        follow(fun, change, traces=4)

    @pytest.mark.parametrize(
        "body",
        [
            "return x * w + len(w) + w.ndim + np.size(w)",
            "return np.maximum(x, w) + tj.tanh(w) + tj.dlarray(w) + np.asarray(w) * x",
            "v = w\n    return helper(x, v) + helper(w, x) + x @ w.reshape(3, 1)",
            "return (\n        x\n        * w\n        + np.maximum(\n            x,\n            w,\n        )\n    )",
        ],
    )
    def test_an_array_that_only_the_trace_reads(self, body):
        module = Namespace(f"def helper(a, b): return a * b\ndef f(x):\n    {body}", w=np.ones(3))
        follow(module["f"], module.set(w=np.full(3, 5.0)), lambda: module["w"].fill(2.0), traces=2)

    def test_a_view_that_cannot_be_made_again(self):
        weights = np.arange(6.0)[::2]
        module = Namespace("def f(x): return x * w + x * w[::-1]", w=weights)
        follow(module["f"], lambda: weights.fill(2.0), module.set(w=np.ones(3)))

    def test_a_view_of_an_array(self):
        weights = np.arange(6.0).reshape(2, 3)
        module = Namespace("def f(x): return x * w[1] + w.T[0, 1] * 0 + w.reshape(3, 2)[:, 1]", w=weights)
        follow(module["f"], lambda: weights.fill(2.0), module.set(w=np.ones((2, 3))))

    def test_a_view_costs_no_trace(self):
        weights = np.arange(6.0).reshape(2, 3)
        module = Namespace("def f(x): return x @ w.T", w=weights)
        follow(module["f"], lambda: weights.fill(2.0), module.set(w=np.ones((2, 3))), traces=2)

    def test_values_of_a_dlarray_that_leave_it(self):
        weights = np.ones(3)
        module = Namespace("def f(x): return x * float(w[0]) + w", w=dlarray(weights))
        follow(module["f"], lambda: weights.__setitem__(0, 4.0))
        module = Namespace("def f(x): return x[mask]", mask=np.array([True, False, True]))
        follow(module["f"], lambda: module["mask"].__setitem__(1, True))

    def test_an_array_as_a_result(self):
        weights = np.ones(3)
        module = Namespace("def f(x): return x, w, d", w=weights, d=dlarray(np.ones(2), "C"))
        follow(module["f"], lambda: weights.fill(2.0), module.set(d=dlarray(np.zeros(2), "C")))

    def test_one_array_under_two_names(self):
        weights = np.ones(3)
        module = Namespace("def f(x): return x * a + b", a=weights, b=weights)
        follow(
            module["f"], lambda: weights.fill(3.0), module.set(a=np.zeros(3)), module.set(b=np.full(3, 9.0))
        )

    def test_an_array_of_another_library(self):
        torch = pytorch()
        tensor = torch.ones(3, dtype=torch.float64)
        module = Namespace("def f(x): return x * t", t=tensor)
        follow(module["f"], lambda: tensor.fill_(5.0), traces=2)

    def test_too_large_for_numpy_alone(self, monkeypatch):
        monkeypatch.setattr(array_guards, "_MOST_LOOSE_BYTES", 1 << 18)
        module = Namespace("def f(x): return x * float(np.sum(w))", w=np.ones(100_000))
        accelerated = dlaccelerate(module["f"])
        with pytest.warns(
            NotAcceleratedWarning, match="it reads global w, which cannot be checked at each call"
        ) as caught:
            assert accelerated(X).tolist() == (X * 1e5).tolist()
        assert len(caught) == 1 and caught[0].filename == "<test>" and caught[0].lineno == 1
        module["w"][0] = 2.0
        assert accelerated(X).tolist() == (X * 100_001).tolist()

    @pytest.mark.slow
    def test_a_large_array_that_numpy_alone_reads(self):
        weights = np.ones(100_000)
        module = Namespace("def f(x): return x * np.max(w)", w=weights)
        largest = [lambda n=n: weights.__setitem__(-n, 1.0 + n // 2) for n in (1, 2, 3, 4)]
        follow(module["f"], *largest)

    @pytest.mark.slow
    def test_a_large_array_that_is_recorded(self):
        weights = np.ones(100_000)
        module = Namespace("def f(x): return (x[0] * w).sum()", w=weights)
        follow(module["f"], lambda: weights.fill(2.0), traces=2)
