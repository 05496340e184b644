# SPDX-License-Identifier: BSD-3-Clause
"""dlfeval and dlgradient."""

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages_record import private

import tracejit as tj
from tracejit import ArgumentError, GradientError, TraceError, dlarray, dlfeval, dlgradient
from tracejit.record.recorder import Recorder


def gradient_of(fun, *args):
    return dlfeval(lambda *xs: dlgradient(fun(*xs), *xs), *args)


class TestAsDocumentedForMatlab:
    def test_rosenbrock(self):
        def rosenbrock(x):
            y = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
            return y, dlgradient(y, x)

        y, grad = dlfeval(rosenbrock, dlarray([-1.0, 2.0]))
        assert y.item() == 104.0
        assert grad.tolist() == [396.0, 200.0]

    def test_extractdata_cuts_the_trace(self):
        assert gradient_of(lambda x: x + np.arctan(tj.extractdata(x)), dlarray(2.5)).item() == 1.0

    def test_relu_is_flat_at_0(self):
        relu = lambda x: tj.where(x > 0, x, 0.0)
        assert gradient_of(relu, dlarray(0.0)).item() == 0.0
        assert gradient_of(relu, dlarray(np.finfo(float).eps)).item() == 1.0


class TestDlfeval:
    def test_results_are_untraced(self):
        result = dlfeval(lambda x: {"a": [x * 2, x], "b": (x, 3, "text"), "c": None}, dlarray([1.0], "C"))
        assert result["b"][1:] == (3, "text") and result["c"] is None
        for x in (*result["a"], result["b"][0]):
            assert x._value is None and x.format == "C"
            (x + 1).tolist()

    def test_ndarrays_are_arrays_inside(self):
        def fun(x, n, mask, names, flag):
            assert type(x) is type(n) is type(mask) is dlarray and x.format is None
            assert type(names) is np.ndarray and flag is True
            return dlgradient(tj.sum(tj.where(mask, x * n, 0.0)), x)

        grad = dlfeval(
            fun, np.array([1.0, 2.0]), np.array([3, 4]), np.array([True, False]), np.array(["a"]), flag=True
        )
        assert grad.tolist() == [3.0, 0.0]

    def test_keywords_and_containers(self):
        @dataclasses.dataclass
        class Params:
            w: dlarray
            name: str

        def fun(params, *, scale):
            loss = (params.w * scale["k"]).sum()
            return dlgradient(loss, [params.w, scale])

        grads = dlfeval(fun, Params(dlarray([1.0, 2.0]), "layer"), scale={"k": dlarray(3.0)})
        assert grads[0].tolist() == [3.0, 3.0] and grads[1]["k"].item() == 3.0

    def test_arguments_are_written(self):
        x = dlarray([1.0, 2.0])
        data = np.array([1.0, 2.0])

        def fun(x, y):
            x[0] = 5.0
            y[0] = 5.0
            x += y
            return x

        assert dlfeval(fun, x, data).tolist() == [10.0, 4.0]
        assert (x.tolist(), data.tolist()) == ([10.0, 4.0], [5.0, 2.0])

    def test_an_error_ends_the_recording(self):
        with pytest.raises(ZeroDivisionError):
            dlfeval(lambda x: 1 // 0, dlarray(1.0))
        with pytest.raises(GradientError, match="nothing is being recorded"):
            dlgradient(dlarray(1.0), dlarray(1.0))

    def test_callables_without_a_name(self):
        assert dlfeval(functools.partial(tj.add, 1.0), dlarray(1.0)).item() == 2.0

    def test_not_a_function(self):
        with pytest.raises(ArgumentError, match="dlfeval: fun must be a function, not dlarray"):
            dlfeval(dlarray(1.0))

    def test_results_of_an_earlier_evaluation_may_be_arguments(self):
        x = dlfeval(lambda x: x * 2, dlarray(1.0))
        assert gradient_of(lambda x: x * x, x).item() == 4.0


class TestNested:
    def test_results_stay_on_the_outer_trace(self):
        def outer(x):
            y = dlfeval(lambda x: x**2, x)
            return dlgradient(y * x, x)

        assert dlfeval(outer, dlarray(3.0)).item() == 27.0

    def test_gradient_by_an_untraced_argument(self):
        w = dlarray([1.0, 2.0], "C")

        def outer(x):
            grad = dlfeval(lambda w: dlgradient((w**2 * x).sum(), w), w)
            assert grad.format == "C"
            return grad, dlgradient(grad.sum(), x)

        grad, by_x = dlfeval(outer, dlarray(3.0))
        assert grad.tolist() == [6.0, 12.0] and by_x.item() == 6.0

    def test_arguments_are_variables_of_their_own(self):
        def outer(x):
            same = x * 1.0
            first = dlfeval(lambda a, b: dlgradient(a * b, a), same, same)
            return first, dlfeval(lambda a: dlgradient(a * same, a), same)

        x = dlarray(3.0)
        twice = dlfeval(lambda a, b: dlgradient(a * b, a), x, x)
        by_closure = dlfeval(lambda a: dlgradient(a * x, a), x)
        assert [g.item() for g in dlfeval(outer, x)] == [twice.item(), by_closure.item()] == [3.0, 3.0]

    def test_by_both(self):
        def outer(x):
            y = dlfeval(lambda a: dlgradient(a**3, a), x)  # 3 x^2
            return dlgradient(y, x)

        assert dlfeval(outer, dlarray(2.0)).item() == 12.0

    def test_integers_and_others_pass(self):
        def outer(x):
            return dlfeval(lambda n, s: (n, s), dlarray([1, 2]), "text")

        n, text = dlfeval(outer, dlarray(1.0))
        assert n.tolist() == [1, 2] and text == "text"

    def test_in_a_recording_for_acceleration(self, accelerating):
        x = accelerating.input(dlarray(3.0))
        result = dlfeval(lambda a: dlgradient(a**2, a), x)
        assert result._value.owner is accelerating


class TestDlgradient:
    def test_containers_formats_and_dtypes(self):
        params = {
            "w": dlarray(np.ones((2, 3), np.float32), "CB"),
            "parts": (dlarray(2.0), [dlarray([1.0], "T")]),
        }

        def fun(params):
            loss = params["w"].sum() * 2 + params["parts"][0] ** 2 + params["parts"][1][0].sum()
            return dlgradient(loss, params)

        grads = dlfeval(fun, params)
        assert list(grads) == ["w", "parts"]
        w, (a, [b]) = grads["w"], grads["parts"]
        assert (w.format, w.dtype, w.shape) == ("CB", np.float32, (2, 3)) and w.tolist() == [[2.0] * 3] * 2
        assert a.item() == 4.0 and b.tolist() == [1.0] and b.format == "T"

    def test_one_or_several(self):
        x, y = dlarray(2.0), dlarray(5.0)
        assert type(gradient_of(lambda x: x * x, x)) is dlarray
        several = gradient_of(lambda x, y: x * y, x, y)
        assert type(several) is tuple and [g.item() for g in several] == [5.0, 2.0]

    def test_zeros_where_independent(self):
        x = dlarray(np.ones((2, 3), np.float32), "BC")
        grad = dlfeval(lambda x, y: dlgradient(y * 2, x), x, dlarray(1.0))
        assert grad.tolist() == [[0.0] * 3] * 2 and grad.format == "BC" and grad.dtype == np.float32
        # zeros are on the trace as well
        again = dlfeval(lambda x, y: dlgradient((dlgradient(y, x) * y).sum(), y), x, dlarray(1.0))
        assert again.item() == 0.0

    def test_of_one_element_of_any_rank(self):
        assert gradient_of(lambda x: x.reshape(1, 1) ** 2, dlarray(3.0)).item() == 6.0

    def test_by_something_computed(self):
        assert dlfeval(lambda x: dlgradient((x * 3) ** 2, x), dlarray(1.0)).item() == 18.0

        def fun(x):
            z = x * 3
            return dlgradient(z**2, z), dlgradient(x + 0.0, x)

        assert [g.item() for g in dlfeval(fun, dlarray(1.0))] == [6.0, 1.0]

    def test_y_is_x(self):
        assert gradient_of(lambda x: x, dlarray(1.0)).item() == 1.0

    @given(st.floats(0.5, 2.0), st.integers(1, 5))
    def test_higher_derivatives(self, x, order):
        def fun(x):
            y = tj.exp(2 * x)
            for _ in range(order):
                y = dlgradient(y, x, enable_higher_derivatives=True)
            return y

        assert dlfeval(fun, dlarray(x)).item() == pytest.approx(2**order * np.exp(2 * x), rel=1e-12)

    def test_several_gradients_of_one_trace(self):
        def fun(x):
            y = tj.sin(x)
            return dlgradient(y, x, retain_data=True), dlgradient(y * y, x)

        first, second = dlfeval(fun, dlarray(0.3))
        assert first.item() == pytest.approx(np.cos(0.3))
        assert second.item() == pytest.approx(2 * np.sin(0.3) * np.cos(0.3))

    def test_stop_gradient(self):
        assert gradient_of(lambda x: x * tj.stop_gradient(x), dlarray(3.0)).item() == 3.0

    @pytest.mark.parametrize(
        ("fun", "error", "text"),
        [
            (lambda x: dlgradient(x["w"] * 2, x), GradientError,
             r"dlgradient: y is 2\(B\) x 3\(C\) dlarray float32, expected a traced scalar; reduce it"),
            (lambda x: dlgradient(dlarray(1.0), x), GradientError, "y is an untraced scalar dlarray float64"),
            (lambda x: dlgradient(3.0, x), GradientError, "y is a float, expected a traced scalar dlarray"),
            (lambda x: dlgradient(x["n"].sum(), x["w"]), GradientError, "y is scalar dlarray int64"),
            (lambda x: dlgradient(x["w"].sum()), ArgumentError, "no x to differentiate by"),
            (lambda x: dlgradient(x["w"].sum(), x), GradientError,
             r"dlgradient: x\['n'\] is 2 dlarray int64, expected floating point"),
            (lambda x: dlgradient(x["w"].sum(), x["w"], [private(tj.zeros(3))]), GradientError,
             r"dlgradient: xs\[1\]\[0\] is an untraced 3 dlarray float64 that the function copied or comp"),
            (lambda x: dlgradient(x["w"].sum(), {"a": x["w"], "b": 2.0}), ArgumentError,
             r"dlgradient: x\['b'\] is a Python number, which has no gradient\. Pass tj\.dlarray\(x\)"),
        ],
    )  # fmt: skip
    def test_errors(self, fun, error, text):
        with pytest.raises(error, match=text):
            dlfeval(fun, {"w": dlarray(np.ones((2, 3), np.float32), "BC"), "n": np.array([1, 2])})

    def test_outside(self):
        with pytest.raises(GradientError, match="dlgradient: nothing is being recorded; call it inside"):
            dlgradient(dlarray(1.0), dlarray(1.0))

    def test_left_over_arrays(self):
        kept = []
        dlfeval(lambda x: kept.append(x * 2), dlarray(1.0))
        with pytest.raises(GradientError, match="y is an untraced scalar dlarray float64"):
            dlfeval(lambda x: dlgradient(kept[0], x), dlarray(1.0))
        assert dlfeval(lambda x: dlgradient(x * kept[0], kept[0]), dlarray(1.5)).item() == 1.5

    def test_of_another_open_recording(self):
        with Recorder("outer") as outer:
            x = outer.input(dlarray(1.0))
            with Recorder("inner") as inner:
                y = inner.input(dlarray(1.0))
                with pytest.raises(GradientError, match="y was recorded in outer, not in inner"):
                    dlgradient(x, y)
                with pytest.raises(TraceError, match="that outer is recording is used inside inner"):
                    dlgradient(y * 1, x)


def test_threads_record_apart():
    import threading

    results = {}

    def work(k):
        for _ in range(20):
            results[k] = gradient_of(lambda x: x**k, dlarray(2.0)).item()

    threads = [threading.Thread(target=work, args=(k,)) for k in (2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {2: 4.0, 3: 12.0, 4: 32.0}
