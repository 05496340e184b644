# SPDX-License-Identifier: BSD-3-Clause
"""Functions of dlarrays as functions of ndarrays."""

import pickle
from typing import NamedTuple

import numpy as np
import pytest

import tracejit as tj

X = np.array([1.0, -2.0, 3.0])


class Params(NamedTuple):
    w: object
    b: object


START = Params({"u": np.ones((2, 3), np.float32), "v": tj.dlarray(np.arange(2.0), "C")}, np.array(0.5))


def with_gradient(x):
    y = (x**3).sum()
    return y, tj.dlgradient(y, x)


def loss(params, scale=1.0):
    y = scale * ((params.w["u"] ** 2).sum() + (params.w["v"] * params.b).sum())
    return y, tj.dlgradient(y, params)


@pytest.mark.parametrize("function", [with_gradient, tj.dlaccelerate(with_gradient)])
def test_results_are_numbers_and_arrays_of_ones_own(function):
    fun = tj.numpy_function(function)
    for _ in range(4):
        y, slope = fun(X)
        assert type(y) is float and type(slope) is np.ndarray and slope.dtype == np.float64
        assert y == 20.0 and slope.tolist() == [3.0, 12.0, 27.0]
        slope += 1  # as solvers do


def test_other_results_stay():
    results = tj.numpy_function(lambda x, n: {"n": n, "none": None, "is": x.sum() > 0, "count": x.argmax()})(
        X, "text"
    )
    assert results == {"n": "text", "none": None, "is": True, "count": 2}
    assert type(results["is"]) is bool and type(results["count"]) is int


def test_numbers_as_arguments():
    assert tj.numpy_function(lambda x: x * x)(3.0) == 9.0
    assert (
        tj.numpy_function(tj.dlaccelerate(lambda t, y: y * t))(np.float64(2.0), X).tolist()
        == (2 * X).tolist()
    )


class TestParameters:
    def test_a_vector_there_and_back(self):
        fun = tj.numpy_function(loss, like=START)
        vector = fun.flatten(START)
        assert vector.dtype == np.float64 and vector.tolist() == [1.0] * 6 + [0.0, 1.0, 0.5]
        back = fun.unflatten(vector)
        assert type(back) is Params and back.w["v"].format == "C"
        assert back.w["u"].dtype == np.float32 and back.w["u"].shape == (2, 3) and back.b.item() == 0.5

    @pytest.mark.parametrize("wrap", [lambda f: f, tj.dlaccelerate])
    def test_gradients_become_vectors(self, wrap):
        fun = tj.numpy_function(wrap(loss), like=START)
        for scale in (1.0, 2.0, 1.0):
            y, slope = fun(fun.flatten(START), scale)
            assert y == scale * 6.5 and type(slope) is np.ndarray
            np.testing.assert_allclose(slope, scale * np.array([2.0] * 6 + [0.5, 0.5, 1.0]))

    def test_one_array(self):
        fun = tj.numpy_function(with_gradient, like=np.ones((2, 2)))
        y, slope = fun(np.arange(4.0))
        assert y == 36.0 and slope.tolist() == [0.0, 3.0, 12.0, 27.0]

    def test_the_vector_stays_as_it_is(self):
        def writes(params):
            params["w"][:] = 0.0
            return params["w"].sum()

        vector = np.ones(3)
        assert tj.numpy_function(writes, like={"w": X})(vector) == 0.0
        assert vector.tolist() == [1.0] * 3

    def test_no_parameters(self):
        fun = tj.numpy_function(lambda params: 1.0, like={})
        assert fun.flatten({}).shape == (0,) and fun(np.empty(0)) == 1.0


def test_pickles_and_names():
    fun = tj.numpy_function(with_gradient, like=X)
    copied = pickle.loads(pickle.dumps(fun))
    assert copied(X)[1].tolist() == fun(X)[1].tolist()
    assert repr(fun) == "numpy_function(with_gradient)"


def test_traced_arrays_are_refused():
    with pytest.raises(tj.TraceError, match="derivative"):
        tj.dlfeval(lambda x: tj.numpy_function(lambda y: y * 2)(x), X)
