# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's functions and ufuncs called with dlarrays."""

import inspect
import operator
from typing import Any

import numpy as np
import pytest
from numpy_calls import CALLS, INTEGERS, ONE, wrap

import tracejit as tj
from tracejit import ArgumentError, GradientError, dlarray, dlfeval, dlgradient
from tracejit.functions import creation, elementwise, indexing, linear, movement, reductions
from tracejit.functions.numpy_api import dispatch, implementations, table

# What a NumPy function of the name does not do: a list here is a decision.
NOT_BY_PROTOCOL = {"zeros", "ones", "full", "eye", "arange"}


@pytest.mark.whole("a millisecond each")
@pytest.mark.parametrize("ufunc", table.UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_ufunc(ufunc, rng):
    if ufunc is np.matmul:
        operands = [rng.normal(size=(3, 3)), rng.normal(size=(3, 3))]
    elif ufunc.__name__ in INTEGERS:
        operands = [rng.integers(0, 9, 3) for _ in range(ufunc.nin)]
    else:
        low = 1.1 if ufunc is np.arccosh else 0.1
        operands = [rng.uniform(low, low + 0.8, 3) for _ in range(ufunc.nin)]
    expected = ufunc(*operands)
    wrapped = [[dlarray(x) for x in operands], [*operands[:-1], dlarray(operands[-1])]]
    for arguments in wrapped:
        result = ufunc(*arguments)
        pairs = [(result, expected)] if ufunc.nout == 1 else zip(result, expected, strict=True)
        for part, wanted in pairs:
            assert type(part) is dlarray and part.dtype == wanted.dtype
            np.testing.assert_array_equal(np.asarray(part), wanted)


@pytest.mark.parametrize("ufunc", table.REDUCTIONS, ids=lambda ufunc: ufunc.__name__)
def test_reduce(ufunc, rng):
    data = rng.integers(0, 3, (2, 3))
    x = dlarray(data, "BC")
    for options in ({}, {"axis": 1}, {"axis": None}, {"axis": 1, "keepdims": True}):
        np.testing.assert_array_equal(np.asarray(ufunc.reduce(x, **options)), ufunc.reduce(data, **options))
    assert ufunc.reduce(x).format == "C"


ANSWERS = {
    np.split,
    np.array_split,
    np.nonzero,
    np.allclose,
    np.array_equal,
    np.result_type,
    np.ndim,
    np.shape,
    np.size,
}


@pytest.mark.whole("a millisecond each")
@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__name__)
def test_function(function):
    for args, options in CALLS[function]:
        result = function(*map(wrap, args), **options)
        expected = function(*args, **options)
        assert type(result) is dlarray and result.dtype == expected.dtype
        assert result.shape == np.shape(expected)
        np.testing.assert_allclose(np.asarray(result), expected)


def test_every_entry_is_called_here():
    assert set(CALLS) | ANSWERS == set(table.FUNCTIONS)


def test_every_function_of_ours_answers_its_namesake():
    for module in (reductions, linear, movement, indexing, elementwise, creation):
        for name in set(vars(module)) & set(tj.__all__):
            namesake = getattr(np, name, None)
            if namesake is not None and name not in NOT_BY_PROTOCOL:
                assert namesake in table.FUNCTIONS or namesake in table.UFUNCS, f"np.{name} is not answered"


PLACES = np.array([0, 2])
OTHER_CALLS: Any = {
    np.lexsort: [(((ONE[0], ONE[1]), 0), {})],
    np.bincount: [((PLACES,), {"minlength": 5})],
    np.ravel_multi_index: [(((PLACES, PLACES), (3, 4)), {"mode": "clip"})],
    np.unravel_index: [((PLACES, (3, 4)), {})],
    np.packbits: [((PLACES > 0,), {})],
    np.unpackbits: [((PLACES.astype(np.uint8),), {})],
}


@pytest.mark.parametrize("function", dispatch._WRITTEN_IN_C, ids=lambda function: function.__name__)
def test_signatures_of_functions_written_in_c(function, monkeypatch):
    """NumPy tells them from 2.4 on; before that ours count, and asking NumPy is an error."""
    ask = inspect.signature
    ours = ask(dispatch._WRITTEN_IN_C[function])
    try:
        theirs = ask(function)
    except ValueError:
        pass
    else:
        plain = [p.replace(annotation=p.empty) for p in ours.parameters.values()]
        assert plain == list(theirs.parameters.values())

    def of_older_releases(asked):
        if asked is function:
            raise ValueError("no signature found for builtin")
        return ask(asked)

    monkeypatch.setattr(inspect, "signature", of_older_releases)
    dispatch._translation.cache_clear()
    for args, options in CALLS.get(function, OTHER_CALLS.get(function, [((ONE, np.float32), {})])):
        function(*map(wrap, args), **options)


@pytest.mark.whole("signatures")
@pytest.mark.parametrize(
    "function",
    [f for f in (*table.FUNCTIONS, *implementations.FUNCTIONS) if isinstance(f, type(np.where))],
    ids=lambda f: f.__name__,
)
def test_every_function_without_a_python_signature_has_ours(function):
    assert (
        hasattr(getattr(function, "__wrapped__", function), "__code__") or function in dispatch._WRITTEN_IN_C
    )


def test_saving(tmp_path):
    x, labelled = dlarray(ONE), dlarray(ONE.astype(np.float32), "BC")
    np.save(tmp_path / "one.npy", labelled)
    assert np.load(tmp_path / "one.npy").dtype == np.float32
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "many.npz", x, w=labelled, n=ONE)
        kept = np.load(tmp_path / "many.npz")
        assert sorted(kept) == ["arr_0", "n", "w"]
        assert all(np.array_equal(kept[name], ONE) for name in kept)
    np.savetxt(tmp_path / "one.txt", x[0], fmt="%.1f", header="row")
    assert np.loadtxt(tmp_path / "one.txt").tolist() == ONE[0].tolist()


@pytest.mark.parametrize("save", table.SAVES, ids=lambda function: function.__name__)
@pytest.mark.parametrize("evaluate", [tj.dlfeval, lambda f, x: tj.dlaccelerate(f)(x)])
def test_traced_arrays_are_not_saved(save, evaluate, tmp_path):
    with pytest.raises(tj.TraceError, match="is traced, and a replay writes no file"):
        evaluate(lambda x: save(tmp_path / "file", x * 2), np.ones(3))


@pytest.mark.parametrize("function", table.TEXTS, ids=lambda function: function.__name__)
def test_text_of_an_array(function):
    assert function(dlarray(ONE), precision=2) == function(ONE, precision=2)
    for evaluate in (tj.dlfeval, lambda f, x: tj.dlaccelerate(f)(x)):
        with pytest.raises(tj.TraceError, match="is traced, and a replay writes no text"):
            evaluate(lambda x: function(x * 2), np.ones(3))


def test_lists_of_arrays():
    x = dlarray(ONE)
    for function in (np.split, np.array_split):
        parts = function(x, 3, axis=1)
        assert [type(part) for part in parts] == [dlarray] * 3
        assert parts[2].tolist() == [[1.0], [4.0]]
    rows, columns = np.nonzero(x > 3)
    assert (rows.tolist(), columns.tolist()) == ([1], [2])


def test_questions():
    x = dlarray(ONE.astype(np.float32))
    assert np.allclose(x, ONE) is True and np.allclose(ONE + 1, x) is False
    assert np.array_equal(x, x) is True
    assert np.allclose(dlarray(np.nan), np.nan, equal_nan=True)
    assert np.result_type(x, np.float64) == np.float64
    assert (np.ndim(x), np.shape(x), np.size(x), np.size(x, 1)) == (2, (2, 3), 6, 3)


def test_gradients_go_through():
    def fun(x):
        y = np.sum(np.where(x > 0, np.tanh(x), 0.0) * np.ones(3)) + np.add.reduce(x)
        return tj.dlgradient(y, x)

    x = np.array([-1.0, 0.5, 2.0])
    expected = 1 + np.where(x > 0, 1 - np.tanh(x) ** 2, 0)
    np.testing.assert_allclose(np.asarray(tj.dlfeval(fun, x)), expected)


def test_numpy_scalar_on_the_left():
    result = np.float64(2.0) * dlarray(np.array([1.0, 2.0], np.float32), "C")
    assert type(result) is dlarray and result.format == "C" and result.dtype == np.float64


def test_a_ufunc_of_scipy_has_the_name_that_users_write():
    special = pytest.importorskip("scipy.special")
    with pytest.raises(tj.GradientError, match=r"^scipy\.special\.wofz: SciPy's own function runs here"):
        dlfeval(lambda x: tj.dlgradient(abs(special.wofz(x)).sum(), x), dlarray([1.0, 2.0]))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (np.frompyfunc(abs, 1, 1), r"^abs \(vectorized\): not supported on dlarrays"),
        (lambda x: np.add(x, x, where=np.array([True, False])), r"np.add: where= is not supported"),
        (np.isnat, r"np.isnat: not supported"),
        (lambda x: np.reshape(x, 2, order="K"), r"np.reshape: order must be 'C', 'F' or 'A'"),
        (lambda x: np.pad(x, 1, end_values=3), r"np.pad: mode='constant' with end_values= is not supported"),
        (lambda x: np.einsum("i->", x, casting="no"), r"np.einsum: casting= is not supported"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ArgumentError, match=text):
        call(dlarray([1.0, 2.0]))


def test_in_place_on_an_ndarray():
    y = z = np.zeros(2)
    y += dlarray([1.0, 2.0])
    assert y is z and y.tolist() == [1.0, 2.0]
    assert dlfeval(lambda x: operator.iadd(z, x), z).tolist() == [2.0, 4.0] == z.tolist()

    def add(x):
        held = {"y": [z]}
        held["y"][0] += x * 2
        return dlgradient((held["y"][0] * x).sum(), x)

    with pytest.raises(
        GradientError, match=r'^dlgradient: .* x was written into the ndarray held\["y"\]\[0\] at'
    ):
        dlfeval(add, dlarray([1.0, 2.0]))
    assert z.tolist() == [2.0, 4.0]
    compiled = {}
    exec("def add(x, y):\n    y += x\n    return y", compiled)  # without source
    with pytest.raises(GradientError, match=r"^dlgradient: .* x was written into an ndarray at"):
        dlfeval(lambda x: dlgradient((compiled["add"](x, z) * x).sum(), x), dlarray([1.0, 2.0]))


def test_default_arguments_may_be_given():
    x = dlarray(ONE)
    assert np.sum(x, out=None, where=np._NoValue).item() == ONE.sum()
    assert np.reshape(x, (6,), order="C").shape == (6,)


def test_signatures_are_as_the_translation_expects():
    # A new NumPy may rename an argument; then the call would fail for users only.
    for function, ours in table.FUNCTIONS.items():
        names, theirs = dispatch._translation(function, ours)
        required = [p.name for p in inspect.signature(ours).parameters.values() if p.default is p.empty]
        if theirs is not None:
            assert set(required) <= set(names.values()), function.__name__


class TestNewcomers:
    """What users of NumPy write that is one function more here."""

    def test_where_of_a_condition_alone(self):
        data = np.array([[0.0, 2.0], [3.0, 0.0]])
        for condition in (dlarray(data), dlarray(data) > 1, dlarray(data, "CB")):
            for places, wanted in zip(np.where(condition), np.where(np.asarray(condition)), strict=True):
                assert places.tolist() == wanted.tolist()
        x = dlarray([1.0, 5.0, 2.0])
        assert x[np.where(x > 1.5)].tolist() == [5.0, 2.0]
        assert [part.tolist() for part in tj.where([0, 1, 1])] == [[1, 2]]

    @pytest.mark.parametrize("pair", [(7.5, 2.0), (-7, 3), (7, -3), (-7.5, np.array([2.0, -0.5]))])
    def test_divmod(self, pair):
        x, y = pair
        for given in ((dlarray(x), y), (x, dlarray(y)), (dlarray(x), dlarray(y))):
            for part, wanted in zip(divmod(*given), divmod(np.asarray(x), np.asarray(y)), strict=True):
                np.testing.assert_array_equal(np.asarray(part), wanted)

    def test_divmod_has_the_derivative_of_the_remainder(self):
        slope = tj.dlfeval(lambda x: tj.dlgradient(divmod(x, 2.0)[1].sum(), x), np.array([7.5, -3.0]))
        assert slope.tolist() == [1.0, 1.0]

    def test_fill_nonzero_and_trace(self):
        data = np.array([[0.0, 2.0], [3.0, 4.0]])
        x = dlarray(data.copy())
        assert [places.tolist() for places in x.nonzero()] == [[0, 1, 1], [1, 0, 1]]
        assert x.trace().item() == data.trace() and x.trace(offset=1).item() == data.trace(1)
        assert x[0].fill(7) is None
        assert x.tolist() == [[7.0, 7.0], [3.0, 4.0]]

    def test_a_recorded_fill(self):
        def step(x):
            y = x * 2
            y[0].fill(5.0)
            return tj.dlgradient((y * y).sum(), x)

        assert tj.dlfeval(step, np.ones((2, 2))).tolist() == [[0.0, 0.0], [8.0, 8.0]]
