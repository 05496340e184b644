# SPDX-License-Identifier: BSD-3-Clause
"""check_mode: replays that are compared with the uncompiled function."""

import warnings

import numpy as np
import pytest
from accelerated import dlaccelerate, hidden, vector

from tracejit import (
    OutputsDifferWarning,
    dlarray,
    dlfeval,
    dlgradient,
)


class TestCheckMode:
    def warned(self, fun, *arguments):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = fun(*arguments)
        assert all(w.category is OutputsDifferWarning and w.filename == __file__ for w in caught)
        messages = [str(w.message) for w in caught]
        assert all(
            m.startswith("Accelerated outputs differ from underlying function outputs") for m in messages
        )
        return result, messages

    def test_what_no_guard_sees(self):
        factor = hidden(2.0)
        fun = dlaccelerate(lambda x: {"y": x * factor.get()}, check_mode="tolerance")
        assert self.warned(fun, vector(1, 0))[1] == self.warned(fun, vector(1, 0))[1] == []
        factor.set(5.0)
        result, messages = self.warned(fun, vector(1, 0))
        assert result["y"].tolist() == [2.0, 0.0] and len(messages) == 1
        assert (
            "output['y'][0] is 2.0, expected 5.0 (1 of 2 elements differ by more than 0.0001)" in messages[0]
        )
        fun.check_mode = "none"
        assert self.warned(fun, vector(1, 0))[1] == []

    def test_noise(self):
        noise = iter(np.random.default_rng(0).normal(size=(9, 3)))
        fun = dlaccelerate(lambda x: x + next(noise), check_mode="tolerance")
        first = fun(vector(0, 0, 0)).tolist()
        for _ in range(2):
            result, messages = self.warned(fun, vector(0, 0, 0))
            assert result.tolist() == first and len(messages) == 1

    def test_inside_dlfeval(self):
        factor = hidden(2.0)
        fun = dlaccelerate(lambda x: x * factor.get(), check_mode="tolerance")
        grad = lambda x: dlfeval(lambda x: dlgradient(fun(x).sum(), x), x)
        assert self.warned(grad, vector(1))[1] == self.warned(grad, vector(1))[1] == []
        factor.set(5.0)
        result, messages = self.warned(grad, vector(1))
        assert result.item() == 2.0 and len(messages) == 1

    @pytest.mark.parametrize(
        ("before", "after", "text"),
        [
            (float("nan"), float("nan"), None),
            (1.0, float("nan"), "is 1.0, expected nan"),
            (1.0, float("inf"), "is 1.0, expected inf"),
            (float("inf"), float("-inf"), "is inf, expected -inf"),
            (float("inf"), float("inf"), None),
            (1.0, 1.0 + 5e-5, None),
            (1e6, 1e6 + 50, None),
            (1e6, 1e6 + 200, "is 1000000.0, expected 1000200.0"),
            (3, 4, "is 3, expected 4"),
            (0.0, -0.0, None),
            (True, False, "is True, expected False"),
            (np.float32(1), np.float32(2), "is 1.0, expected 2.0"),
        ],
    )
    def test_arrays_and_numbers(self, before, after, text):
        value = hidden(before)
        functions = [
            lambda x: value.get(),
            lambda x: x * 0 + value.get(),
            lambda x: np.array([value.get(), value.get()]),
            lambda x: [{"k": value.get()}],
        ]
        accelerated = [dlaccelerate(fun, check_mode="tolerance") for fun in functions]
        for fun in accelerated:
            fun(vector(0))
        value.set(after)
        for fun in accelerated:
            messages = self.warned(fun, vector(0))[1]
            assert len(messages) == (text is not None)
        assert text is None or f"output[0]['k'] {text}" in messages[0]

    @pytest.mark.parametrize(
        ("before", "after", "text"),
        [
            ("a", "b", "output is 'a', expected 'b'"),
            ("a", "a", None),
            (None, None, None),
            (None, 1, "output is None in one and a single value in the other"),
            ([1], [1, 2], "output has 1 elements in one and 2 in the other"),
            (vector(1), vector(1, 2), "output is 1 float64, expected 2 float64"),
            (vector(1), dlarray([1.0], "C"), r"output is 1 float64, expected 1(C) float64"),
            (
                vector(1),
                np.array([1.0]),
                None,
            ),  # what numbers that vary compute is a dlarray, otherwise an ndarray
            (vector(1), np.array([2.0]), "output"),
            (np.array([1.0]), np.array([1.0, 2.0]), "output is array([1.]), expected array([1., 2.])"),
        ],
    )
    def test_kinds_of_outputs(self, before, after, text):
        value = hidden(before)
        fun = dlaccelerate(lambda x: value.get(), check_mode="tolerance")
        fun(vector(0))
        value.set(after)
        messages = self.warned(fun, vector(0))[1]
        assert len(messages) == (text is not None)
        assert text is None or text in messages[0]
