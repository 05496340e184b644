# SPDX-License-Identifier: BSD-3-Clause
"""dlarray: construction, printing, operators, methods, and values that leave it."""

import ast
import copy
import importlib
import inspect
import operator
import pickle
import pkgutil
import re
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import parsed

import tracejit as tj
from tracejit import ArgumentError, DimsError, DTypeError, TraceError, dlarray
from tracejit.functions.numpy_api import methods
from tracejit.ir import evaluate
from tracejit.record.guards import conjunction

if TYPE_CHECKING:
    from typing import assert_type

    # mypy over this file holds that operators give dlarrays.
    assert_type(dlarray(1.0) + 1, dlarray)
    assert_type(1 - dlarray(1.0) @ dlarray(2.0), dlarray)
    assert_type(dlarray(1.0).sum(), dlarray)
    assert_type(tj.exp(dlarray(1.0)), dlarray)


def escaped() -> dlarray:
    """Return an array whose trace has ended."""
    kept = []
    tj.dlfeval(lambda x: kept.append(x * 2), dlarray([1.0, 2.0]))
    return kept[0]


class TestConstructor:
    @pytest.mark.parametrize(
        ("data", "dtype"),
        [
            (1.0, "float64"),
            ([1, 2], "int64"),
            (True, "bool"),
            ([[1.0], [2.0]], "float64"),
            (np.float32(1), "float32"),
        ],
    )
    def test_dtype_of_python_numbers(self, data, dtype):
        assert dlarray(data).dtype == dtype

    def test_big_endian_becomes_native(self):
        x = dlarray(np.array([1.0, 2.0], ">f8"))
        assert x.dtype == np.float64 and x.dtype.isnative
        assert x.tolist() == [1.0, 2.0]

    def test_attributes(self):
        x = dlarray(np.zeros((2, 3), np.float32), "bc")
        assert (x.format, x.shape, x.ndim, x.size, x.dtype) == ("BC", (2, 3), 2, 6, np.float32)
        assert (x.itemsize, x.nbytes) == (4, 24)
        assert (x.T.shape, x.T.format) == ((3, 2), "CB")

    def test_shares_an_ndarray_and_writes_it(self):
        data = np.zeros(3)
        x = dlarray(data)
        assert np.shares_memory(np.asarray(x), data)
        x[0] = 5.0
        x += 1
        assert data.tolist() == x.tolist() == [6.0, 1.0, 1.0]

    def test_of_a_dlarray_relabels(self):
        x = dlarray(np.zeros((2, 3)), "BC")
        assert dlarray(x, "CB").format == "CB"
        assert dlarray(x).format == "BC"
        assert tj.dlfeval(
            lambda x: tj.dlgradient((dlarray(x, "B") ** 2).sum(), x), dlarray([3.0])
        ).tolist() == [6.0]

    def test_takes_dlpack(self):
        class Exporter:
            def __init__(self, data):
                self.data = data

            def __dlpack__(self, **options):
                return self.data.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.data.__dlpack_device__()

        assert dlarray(Exporter(np.arange(3.0))).tolist() == [0.0, 1.0, 2.0]

    @pytest.mark.parametrize(
        ("data", "format", "error", "text"),
        [
            (np.zeros(2, "m8[s]"), None, DTypeError, "dlarray: data of type timedelta64"),
            (np.zeros(2, np.longdouble), None, DTypeError, "float128"),
            ("text", None, DTypeError, "not supported"),
            (object(), None, ArgumentError, "expected an array, a number or a"),
            ([[1], [1, 2]], None, ArgumentError, "cannot make an array of list"),
            (np.zeros((2, 3)), "C", DimsError, "labels 1 axes, but the data has 2"),
            (np.zeros((2, 3)), "CX", DimsError, "label 'X'"),
            (np.zeros((2, 3)), "CC", DimsError, "2 times"),
            (1.0, 3, DimsError, "must be a string"),
        ],
    )
    def test_errors(self, data, format, error, text):
        with pytest.raises(error, match=text):
            dlarray(data, format)

    def test_list_of_traced_arrays(self):
        with pytest.raises(ArgumentError, match="would lose their trace; join them with stack"):
            tj.dlfeval(lambda x: dlarray([[x[0], None]]), dlarray([1.0, 2.0]))
        slope = tj.dlfeval(
            lambda x: tj.dlgradient((dlarray([[x[0], 3.0], [x[1], 1]]) ** 2).sum(), x), dlarray([1.0, 2.0])
        )
        assert slope.tolist() == [2.0, 4.0]
        assert dlarray([dlarray(1.0), dlarray(2.0)]).tolist() == [1.0, 2.0]


class TestPrinting:
    def test_formatted(self):
        x = dlarray(np.arange(6, dtype=np.float32).reshape(2, 3), "BC")
        assert repr(x) == "2(B) x 3(C) dlarray float32\n[[0. 1. 2.]\n [3. 4. 5.]]"
        assert str(x) == repr(x) == f"{x}"

    def test_unformatted_and_scalar(self):
        assert repr(dlarray(np.ones((1, 2), bool))) == "1x2 dlarray bool\n[[ True  True]]"
        assert repr(dlarray(2.0)) == "scalar dlarray float64\n2.0"

    def test_a_number_is_printed_as_numpy_prints_it(self):
        for value in (2.0, np.float32(0.1), 3, True, 1 + 2j, np.nan):
            assert str(dlarray(value)) == f"{dlarray(value)}" == str(value)
        texts = []
        tj.dlfeval(lambda x: texts.append(f"{x[0]}"), np.array([0.5]))
        assert texts == ["0.5"] and str(dlarray([2.0])) == repr(dlarray([2.0]))

    def test_format_spec(self):
        assert f"{dlarray([1.23456]):.2f}" == "1.23"
        with pytest.raises(ArgumentError, match=r"format\(\): 2 float64 has 2 elements"):
            f"{dlarray([1.0, 2.0]):.2f}"

    def test_traced_shows_values_only_where_they_are_not_replayed(self, accelerating):
        x = accelerating.input(dlarray([1.0, 2.0], "B"))
        assert repr(x) == f"{x}" == "2(B) dlarray float64 traced"
        assert f"{x[0]:.1f}" == "1.0"
        assert [guard.what for guard in accelerating.guards] == ["format()"]

    def test_traced_in_dlfeval_and_after(self):
        seen = []
        tj.dlfeval(lambda x: seen.append(repr(x)), dlarray([1.0]))
        assert seen == ["1 dlarray float64\n[1.]"]
        assert repr(escaped()) == "2 dlarray float64\n[2. 4.]"


ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
BITWISE = [operator.and_, operator.or_, operator.xor]


class TestOperators:
    @pytest.mark.parametrize("op", ARITHMETIC)
    def test_arithmetic_as_numpy(self, op):
        a, b = np.array([1.0, 2.5, 3.0], np.float32), np.array([2.0, 2.5, 0.5], np.float32)
        operands = [(a, b), (a, 2), (2, a), (a, 1.5), (1.5, a), (a, np.float64(2)), (np.float64(2), a)]
        # Before 2.3 NumPy's operator squares where the exponent is 2, whatever its dtype; its function never did.
        numpy = np.power if op is operator.pow else op
        for x, y in operands:
            expected = numpy(x, y)
            wrapped = [
                (
                    dlarray(x) if isinstance(x, np.ndarray) else x,
                    dlarray(y) if isinstance(y, np.ndarray) else y,
                ),
                (x, dlarray(y)) if isinstance(y, np.ndarray) else (dlarray(x), y),
            ]
            for u, v in wrapped:
                result = op(u, v)
                assert type(result) is dlarray
                assert result.dtype == expected.dtype
                np.testing.assert_array_equal(np.asarray(result), expected)

    @pytest.mark.parametrize("op", BITWISE)
    def test_bitwise_as_numpy(self, op):
        a, b = np.array([1, 6, 3]), np.array([3, 5, 0])
        assert op(dlarray(a), b).tolist() == op(a, dlarray(b)).tolist() == op(a, b).tolist()
        assert op(6, dlarray(a)).tolist() == op(6, a).tolist()

    def test_unary(self):
        x = dlarray([1.5, -2.0])
        assert (-x).tolist() == [-1.5, 2.0]
        assert (+x).tolist() == x.tolist() and not np.shares_memory((+x)._data, x._data)
        assert abs(x).tolist() == [1.5, 2.0]
        assert round(x).tolist() == [2.0, -2.0]
        for number in (2.5, -3.5, 7.2):
            assert type(round(dlarray(number))) is int and round(dlarray(number)) == round(number)
        assert type(round(dlarray(2.5), 0)) is dlarray
        assert (~dlarray([True, False])).tolist() == [False, True]

    def test_matmul(self, rng):
        a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
        for result in (dlarray(a) @ b, a @ dlarray(b)):
            assert type(result) is dlarray
            np.testing.assert_allclose(np.asarray(result), a @ b)

    def test_square_is_its_own_op(self):
        recorded = []

        def fun(x):
            y = x**2 + x**3
            recorded.extend(node.op.name for node in y._value.owner.graph.nodes)

        tj.dlfeval(fun, dlarray(3.0))
        assert recorded == ["square", "pow", "add"]
        assert (dlarray([2]) ** 2).dtype == np.int64

    @given(
        a=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4),
        scalar=st.one_of(st.integers(-5, 5), st.floats(-1e3, 1e3), st.booleans()),
        dtype=st.sampled_from(["float32", "float64", "int32", "uint8", "bool"]),
    )
    def test_promotion_as_numpy(self, a, scalar, dtype):
        with np.errstate(all="ignore"):
            data = np.array(a).astype(dtype)
            try:
                expected = data * scalar
            except OverflowError:
                return
        result = dlarray(data) * scalar
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(result), expected)

    def test_labels_align(self):
        x, y = dlarray(np.ones((2, 3)), "BC"), dlarray(np.arange(3.0), "C")
        assert (x + y).format == (y + x).format == "BC"
        with pytest.raises(DimsError, match="do not align"):
            x + dlarray(np.ones(4), "C")

    def test_in_place_operators_keep_the_array(self):
        x = y = dlarray([1.0])
        x += 1
        assert x is y and y.tolist() == [2.0]

    def test_not_hashable(self):
        with pytest.raises(TypeError, match="its elements can change"):
            hash(dlarray([1.0]))

    def test_numbers_have_the_hash_of_numpys(self):
        assert {dlarray(1.0), dlarray(1.0).item(), np.float64(1.0)} == {1.0}
        labels = tj.dlaccelerate(lambda x: x * {1: 2.0, 2: 3.0}[x[0]] * (x[1] in {4, 5}))
        for _ in range(4):
            assert [labels(np.array([n, 3 + n])).tolist() for n in (1, 2)] == [[2.0, 8.0], [6.0, 15.0]]
        assert labels.stats.hits >= 2

    def test_contains(self):
        assert 2.0 in dlarray([1.0, 2.0])
        assert 3.0 not in dlarray([1.0, 2.0])

    @pytest.mark.parametrize("other", ["text", None, object()])
    def test_foreign_operands(self, other):
        with pytest.raises(TypeError, match=r"add: "):
            dlarray(1.0) + other


class TestIndexing:
    def test_get_and_labels(self):
        x = dlarray(np.arange(6.0).reshape(2, 3), "BC")
        assert x[0].format == "C" and x[:, 1:].format == "BC"
        assert x[1, 2].item() == 5.0
        assert [row.tolist() for row in x] == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        assert len(x) == 2

    def test_set_writes(self):
        x = dlarray(np.zeros((2, 2)), "BC")
        alias, copied = dlarray(x, "CB"), x.copy()
        x[0] = 1.0
        assert x.tolist() == alias.tolist() == [[1.0, 1.0], [0.0, 0.0]] and x.format == "BC"
        assert copied.tolist() == [[0.0, 0.0], [0.0, 0.0]]

    def test_set_is_traced(self):
        def fun(x, v):
            x[1] = v * 3
            return tj.dlgradient((x * x).sum(), x, v)

        x = dlarray([1.0, 2.0])
        _, by_v = tj.dlfeval(fun, x, dlarray(2.0))
        assert by_v.item() == 36.0
        assert x.tolist() == [1.0, 6.0]

    def test_scalars_have_no_length(self):
        with pytest.raises(ArgumentError, match=r"len\(\)"):
            len(dlarray(1.0))
        with pytest.raises(ArgumentError, match=r"iter\(\)"):
            iter(dlarray(1.0))


class TestMethods:
    @pytest.mark.parametrize(
        "name", ["sum", "prod", "mean", "max", "min", "any", "all", "var", "std", "argmax", "argmin"]
    )
    def test_reductions(self, name, rng):
        data = rng.normal(size=(2, 3))
        x = dlarray(data, "BC")
        np.testing.assert_allclose(np.asarray(getattr(x, name)()), getattr(data, name)())
        by_axis = getattr(x, name)(axis=1)
        np.testing.assert_allclose(np.asarray(by_axis), getattr(data, name)(axis=1))
        assert by_axis.format == "B"
        assert getattr(x, name)(axis=1, keepdims=True).format == "BC"

    def test_ddof(self):
        assert dlarray([1.0, 3.0]).var(ddof=1).item() == 2.0
        assert dlarray([1.0, 3.0]).std(ddof=1).item() == pytest.approx(np.sqrt(2.0))

    def test_movement(self):
        x = dlarray(np.arange(6.0).reshape(2, 3), "BC")
        assert x.reshape(3, 2).shape == x.reshape((3, 2)).shape == x.reshape(-1, 2).shape == (3, 2)
        assert x.ravel().shape == x.flatten().shape == (6,)
        assert x.transpose().format == x.transpose(1, 0).format == x.transpose((1, 0)).format == "CB"
        assert x.swapaxes(0, 1).format == "CB"
        assert x.reshape(1, 6).squeeze().shape == (6,)
        assert x.repeat(2, axis=1).shape == (2, 6)
        assert x.take([0, 2], axis=1).tolist() == [[0.0, 2.0], [3.0, 5.0]]
        assert x.cumsum(axis=1).tolist() == [[0.0, 1.0, 3.0], [3.0, 7.0, 12.0]]
        with pytest.raises(ArgumentError, match="order must be 'C', 'F' or 'A'"):
            x.reshape(3, 2, order="B")

    def test_elementwise(self):
        x = dlarray([1.26, -3.0])
        assert x.astype(np.int32).dtype == np.int32
        assert x.astype(np.float64) is not x and x.astype(np.float64).tolist() == x.tolist()
        assert x.clip(-1, 1).tolist() == [1.0, -1.0]
        assert x.round(1).tolist() == [1.3, -3.0]
        assert x.dot([1.0, 1.0]).item() == pytest.approx(-1.74)

    def test_copy(self):
        data = np.zeros(2)
        x = dlarray(data, "B")
        y = x.copy()
        data[0] = 1.0
        assert y.tolist() == [0.0, 0.0] and y.format == "B"
        assert tj.dlfeval(lambda x: tj.dlgradient(x.copy() ** 2, x), dlarray(3.0)).item() == 6.0


class TestValues:
    def test_numbers(self):
        x = dlarray([[2.5]])
        assert (float(x), int(x), complex(x), bool(x), x.item()) == (2.5, 2, 2.5 + 0j, True, 2.5)
        assert not dlarray(0)
        assert [10, 20, 30][dlarray(1)] == 20
        assert dlarray([[1, 2], [3, 4]]).item(1, 0) == 3

    def test_size_one_only(self):
        x = dlarray(np.zeros((2, 3)), "BC")
        with pytest.raises(
            DimsError,
            match=r"bool\(\): 2\(B\) x 3\(C\) float64 has 6 elements, not one; use any\(\) or all\(\)",
        ):
            bool(x)
        for function, error in (
            (float, TypeError),
            (int, TypeError),
            (dlarray.item, ValueError),
        ):  # as NumPy's
            with pytest.raises(error, match="reduce it or select an element") as caught:
                function(x)
            assert isinstance(caught.value, ValueError) is (error is ValueError)

    @pytest.mark.parametrize("data", [1.0, [1], True])
    def test_index_is_an_integer_scalar(self, data):
        with pytest.raises(ArgumentError, match="index: an integer scalar is needed"):
            operator.index(dlarray(data))

    def test_asarray_is_read_only(self):
        x = dlarray([1.0, 2.0])
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(x)[0] = 5.0
        mine = np.array(x)
        mine[0] = 5.0
        assert x.tolist() == [1.0, 2.0]
        assert np.asarray(x, np.float32).dtype == np.float32
        with pytest.raises(ValueError, match="without a copy"):
            np.asarray(x, np.float32, copy=False)

    def test_dlpack_out(self):
        x = dlarray(np.arange(3.0))
        assert np.from_dlpack(x).tolist() == [0.0, 1.0, 2.0]

    @pytest.mark.parametrize(
        ("what", "function"),
        [
            (r"bool\(\)", bool),
            (r"float\(\)", float),
            (r"complex\(\)", complex),
            (r"int\(\)", int),
            (r"item\(\)", dlarray.item),
            (r"item\(\)", lambda x: x.item(0)),
            (r"tolist\(\)", dlarray.tolist),
            (r"__dlpack__\(\)", np.from_dlpack),
            ("in", lambda x: 1.0 in x),
            ("extractdata", tj.extractdata),
            ("np.allclose", lambda x: np.allclose(x, 1.0)),
            ("np.array_equal", lambda x: np.array_equal([2.0], x)),
        ],
    )
    def test_a_value_of_an_array_that_is_replayed_is_a_guard(self, what, function, accelerating):
        x = accelerating.input(dlarray([2.0]))
        decided = repr(function(x))
        (guard,) = accelerating.guards
        assert re.search(rf"^{what} at .*test_array.py:\d+ is ", str(guard))
        accelerating.graph.outputs = [conjunction(accelerating.builder, accelerating.guards)]
        for elements in map(np.array, ([2.0], [2.5], [1.0], [0.0])):
            number = elements.item()
            (holds,) = evaluate(accelerating.graph, [elements])
            assert holds == (repr(function(dlarray([number]))) == decided)

    def test_an_index_of_an_array_that_is_replayed_is_a_guard(self, accelerating):
        assert operator.index(accelerating.input(dlarray(2))) == 2
        assert [guard.what for guard in accelerating.guards] == ["index"]

    @pytest.mark.parametrize("use", [
        lambda x: x, np.asarray, lambda x: tj.dlfeval(lambda y: y, x), tj.extractdata, copy.copy, copy.deepcopy,
        lambda x: dlarray(x), lambda x: np.stack(list(x)), lambda x: dlarray([x[0], x[1]]), lambda x: x.reshape(2),
        lambda x: pickle.loads(pickle.dumps(x)), np.from_dlpack,
    ])  # fmt: skip
    def test_an_array_that_is_kept_has_its_value_after_the_trace(self, use):
        assert (use(escaped()) + 0).tolist() == [2.0, 4.0]

    def test_writing_into_an_array_that_is_kept(self):
        x = escaped()
        row = x[:1]
        row += 1
        x *= 2
        assert x.tolist() == [6.0, 8.0] and row.tolist() == [6.0]

    def test_what_is_kept_shares_memory_as_in_numpy(self):
        kept = {}

        def fun(x):
            made = x * 2
            kept.update(x=x, row=x[0], made=made, part=made[1:], copied=made.copy(), of_x=x.copy())

        x = dlarray(np.arange(6.0).reshape(3, 2))
        tj.dlfeval(fun, x)
        for name, base, shares in (
            ("x", x, True), ("row", x, True), ("made", x, False), ("part", kept["made"], True), ("of_x", x, False),
            ("copied", kept["made"], False),
        ):  # fmt: skip
            assert np.shares_memory(np.asarray(kept[name]), np.asarray(base)) is shares, name
        kept["row"] += 1
        assert x[0].tolist() == [1.0, 2.0] and kept["of_x"][0].tolist() == [0.0, 1.0]

    def test_copies_of_untraced(self):
        x = dlarray(np.arange(3.0), "B")
        for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert type(y) is dlarray and y.format == "B" and y.tolist() == x.tolist()

    @pytest.mark.parametrize("function", [copy.copy, copy.deepcopy])
    def test_copies_of_traced_have_elements_of_their_own(self, function):
        def change(x):
            y = function(x)
            y += x
            return x, y, tj.dlgradient(y.sum(), x)

        found = tj.dlfeval(change, dlarray([1.0, 2.0]))
        assert [each.tolist() for each in found] == [[1.0, 2.0], [2.0, 4.0], [2.0, 2.0]]

    def test_no_pickles_of_traced(self):
        with pytest.raises(TraceError, match=r"pickle: 2 float64 is traced"):
            tj.dlfeval(pickle.dumps, dlarray([1.0, 2.0]))


class TestLabels:
    def test_questions(self):
        x = dlarray(np.zeros((2, 3, 4)), "SCS")
        assert tj.dims(x) == "SCS" and tj.dims(dlarray(1.0)) == ""
        assert tj.finddim(x, "s") == (0, 2) and tj.finddim(x, "B") == ()
        assert tj.isdlarray(x) and not tj.isdlarray(np.zeros(2))

    def test_stripdims(self):
        x = dlarray(np.arange(6.0).reshape(2, 3), "BC")
        assert tj.stripdims(x).format is None and tj.stripdims(x).shape == (2, 3)
        assert tj.stripdims(x, "CB").shape == (3, 2)
        assert tj.stripdims(x, "CBT").shape == (3, 2, 1)
        assert tj.stripdims(tj.stripdims(x), "CB").shape == (2, 3)

    def test_stripdims_is_the_same_variable(self):
        grad = tj.dlfeval(lambda x: tj.dlgradient((x**2).sum(), tj.stripdims(x)), dlarray([1.0, 2.0], "C"))
        assert grad.tolist() == [2.0, 4.0] and grad.format is None

    def test_extractdata_is_a_copy(self):
        x = dlarray([1.0, 2.0])
        data = tj.extractdata(x)
        data[0] = 9.0
        assert type(data) is np.ndarray and x.tolist() == [1.0, 2.0]

    def test_errors(self):
        with pytest.raises(DimsError, match="stripdims: format 'CT' has no place for every axis of 2"):
            tj.stripdims(dlarray(np.zeros((2, 3)), "BC"), "CT")
        with pytest.raises(DimsError, match="finddim: label must be one of"):
            tj.finddim(dlarray(1.0), "SS")
        for function in (tj.dims, tj.stripdims, tj.extractdata, lambda x: tj.finddim(x, "S")):
            with pytest.raises(ArgumentError, match="x must be a dlarray, not ndarray"):
                function(np.zeros(2))


class TestCreation:
    def test_values(self):
        assert tj.zeros(2).tolist() == [0.0, 0.0]
        assert tj.ones((1, 2), "float32").dtype == np.float32
        assert tj.full((2,), 3).tolist() == [3, 3]
        assert tj.eye(2, 3, 1).tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        assert tj.arange(3).tolist() == [0, 1, 2]
        assert tj.arange(0, 1, 0.5, np.float32).dtype == np.float32

    def test_like(self):
        x = dlarray(np.zeros((2, 3), np.float32), "BC")
        for y in (tj.zeros((2, 3), like=x), tj.ones_like(x), tj.zeros_like(x), tj.full_like(x, 2)):
            assert (y.dtype, y.format) == (np.float32, "BC")
        assert tj.zeros(4, like=x).format is None and tj.zeros(4, like=x).dtype == np.float32
        assert tj.zeros_like(x, np.int8, (5,)).shape == (5,)
        assert tj.eye(2, 3, like=x).format == "BC"
        assert tj.arange(2, like=dlarray([1.0, 2.0], "T")).format == "T"

    def test_full_of_a_traced_value(self):
        grad = tj.dlfeval(lambda a: tj.dlgradient(tj.full((2, 3), a).sum(), a), dlarray(1.0))
        assert grad.item() == 6.0
        grad = tj.dlfeval(lambda a: tj.dlgradient(tj.full(2, a, np.float64).sum(), a), dlarray(np.float32(1)))
        assert (grad.item(), grad.dtype) == (2.0, np.float32)

    def test_errors(self, accelerating):
        with pytest.raises(DimsError, match="zeros: shape must be an integer"):
            tj.zeros("ab")
        with pytest.raises(DimsError, match="ones: sizes must not be negative"):
            tj.ones((2, -1))
        with pytest.raises(DimsError, match="zeros: format 'B' labels 1 axes"):
            tj.zeros((2, 2), format="B")
        with pytest.raises(ArgumentError, match="eye: dtype must be a NumPy dtype"):
            tj.eye(2, dtype="nothing")
        with pytest.raises(DTypeError, match="zeros: data of type timedelta64"):
            tj.zeros(2, "m8[s]")
        with pytest.raises(ArgumentError, match="arange: cannot go from 0 to 3 by 0"):
            tj.arange(0, 3, 0)

    def test_the_length_of_a_range_is_a_guard(self, accelerating):
        assert tj.arange(accelerating.input(dlarray(3))).tolist() == [0, 1, 2]
        assert accelerating.guards[0].what == "arange, whose length stop decides,"


class TestElementwise:
    def test_where_of_numbers_takes_the_dtype_of_the_arrays(self):
        x = dlarray(np.array([1.0, -1.0], np.float32))
        assert tj.where(x > 0, x, 0.0).dtype == np.float32
        assert tj.where(np.array([1.0, 0.0]), x, 0).tolist() == [1.0, 0.0]
        assert tj.where(np.array([1, 0]), np.int8(3), 1).dtype == np.int8
        assert tj.where([True, False], 1, 2.0).tolist() == [1.0, 2.0]

    def test_clip_and_round(self):
        x = dlarray([-1.5, 0.25, 149.0])
        assert tj.clip(x, 0).tolist() == [0.0, 0.25, 149.0]
        assert tj.clip(x, max=[0.0, 0.0, 1.0]).tolist() == [-1.5, 0.0, 1.0]
        assert tj.round(x, -2).tolist() == [0.0, 0.0, 100.0]
        assert tj.round([15, 25], -1).tolist() == [20, 20]
        assert tj.round([15, 25], 1).dtype == np.int64
        assert tj.round(dlarray([1, 2])).dtype == np.int64
        with pytest.raises(ArgumentError, match="round: decimals must be an integer"):
            tj.round(x, 1.5)

    def test_cast_errors(self):
        with pytest.raises(DTypeError, match="cast: data of type timedelta64"):
            tj.cast(1.0, "m8[s]")
        with pytest.raises(ArgumentError, match="cast: dtype must be a NumPy dtype"):
            tj.cast(1.0, "number")

    def test_documentation_comes_from_the_records(self):
        assert tj.exp.__name__ == "exp" and "e**x; ct y" in tj.exp.__doc__
        assert tj.subtract.__name__ == "subtract" and "ct, -ct" in tj.subtract.__doc__
        assert all(getattr(tj, name).__doc__ for name in tj.__all__)


def declared_methods() -> dict[str, ast.FunctionDef]:
    body = parsed(Path(inspect.getfile(dlarray))).body
    array = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == "dlarray")
    (block,) = [node for node in array.body if isinstance(node, ast.If)]
    return {node.name: node for node in block.body if isinstance(node, ast.FunctionDef)}


def installed_methods() -> dict[str, ast.FunctionDef]:
    bodies = [
        parsed(Path(module.__file__)).body
        for module in (methods, methods.exchange, methods.reducing, methods.seen)
    ]
    defined = {node.name: node for body in bodies for node in body if isinstance(node, ast.FunctionDef)}
    return {name: defined[function.__code__.co_name] for name, function in methods.METHODS.items()}


def test_declared_methods_are_those_that_are_installed():
    assert declared_methods().keys() == installed_methods().keys()


@pytest.mark.whole("structure")
@pytest.mark.parametrize("name", declared_methods())
def test_a_method_is_declared_as_it_is_installed(name):
    declared, installed = declared_methods()[name], installed_methods()[name]
    decorators = ["property"] if name in methods.PROPERTIES else []
    assert [ast.unparse(decorator) for decorator in declared.decorator_list] == decorators
    assert ast.unparse(installed.args).removeprefix("self: dlarray") == ast.unparse(declared.args)[4:]
    assert ast.unparse(installed.returns) == ast.unparse(declared.returns).strip("'")


@pytest.mark.whole("structure")
@pytest.mark.parametrize("name", [*methods.METHODS, "__add__", "__radd__", "__neg__", "__eq__"])
def test_methods_look_as_if_the_body_of_the_class_defined_them(name):
    method = vars(dlarray)[name]
    function = method.fget if name in methods.PROPERTIES else method
    assert (function.__module__, function.__qualname__) == ("tracejit.array", f"dlarray.{name}")
    assert next(iter(inspect.signature(function).parameters.values())).annotation is inspect.Parameter.empty
    assert name in methods.PROPERTIES or pickle.loads(pickle.dumps(function)) is function
    assert name.startswith("__") or function.__doc__


def test_public_names_shadow_no_module():
    assert len(set(tj.__all__)) == len(tj.__all__)
    modules = {module.name for module in pkgutil.iter_modules(tj.__path__)}
    for name in modules & set(vars(tj)):
        assert type(getattr(tj, name)) is type(pkgutil), f"tracejit.{name} is not the module"
    for name in tj.__all__:
        assert not name.startswith("_") and hasattr(tj, name)


class Meters(np.ndarray):
    """Numbers with a unit, as those of packages for units."""

    def __array_ufunc__(self, *args, **kwargs):
        return NotImplemented


class Doubled(np.ndarray):
    def __mul__(self, other):
        return 2 * np.asarray(self) * other


class Named(np.ndarray):
    """An array with an attribute."""

    name = "x"

    def __array_finalize__(self, other):
        self.name = getattr(other, "name", "x")


@pytest.mark.parametrize(
    "data",
    [
        np.ma.array([1.0, 2.0], mask=[0, 1]),
        np.array([[1.0]]).view(np.matrix),
        np.ones(2).view(Meters),
        np.ones(2).view(Doubled),
    ],
)
def test_arrays_with_rules_of_their_own_are_refused(data):
    with pytest.raises(
        tj.ArgumentError, match=f"dlarray: a {type(data).__name__} has .* which would be lost"
    ):
        tj.dlarray(data)
    with pytest.raises(tj.ArgumentError, match=f"a {type(data).__name__} has .* which would be lost"):
        tj.dlaccelerate(lambda x: x * 2)(data)


@pytest.mark.parametrize("kind", [Named, np.memmap])
def test_arrays_of_derived_classes_without_rules_are_taken(kind):
    assert tj.dlarray(np.ones(2).view(kind)).tolist() == [1.0, 1.0]


def test_filling_an_ndarray_does_not_lose_the_derivative():
    def filled(x):
        buffer = np.random.default_rng(1).normal(size=3)
        for i in range(3):
            buffer[i] = x[i] ** 2
        return tj.dlgradient((x * buffer).sum(), x)

    assert tj.dlfeval(filled, tj.dlarray([1.0, 2.0, 3.0])).tolist() == [3.0, 12.0, 27.0]


def test_the_last_line_of_a_traceback_says_that_an_ndarray_was_filled():
    buffer = np.random.default_rng(1).normal(size=2)

    def filled(x):
        buffer[0] = x.sum()
        return x

    with pytest.raises(ValueError, match="setting an array element with a sequence") as caught:
        tj.dlfeval(tj.dlmap(filled, over=0), tj.dlarray([[1.0, 2.0]]))
    (note,) = caught.value.__notes__
    assert (
        "would silently drop its derivative. Fill an array that holds traced values: one that np.zeros"
        in note
    )
    assert traceback.format_exception(caught.value)[-1].rstrip() == note


def test_conversion_of_a_traced_array_says_what_to_do():
    with pytest.raises(tj.TraceError, match=r"would silently drop its derivative\. Fill an array"):
        tj.dlfeval(np.asarray, tj.dlarray([1.0]))
    assert tj.dlfeval(lambda x: np.asarray(x > 0).tolist(), tj.dlarray([1.0])) == [True]


W = np.arange(6.0).reshape(2, 3) - 2

METHODS = {
    "dot": lambda x: W.dot(x),
    "dot of a call": lambda x: W.copy().dot(x).max(),
    "dot of a sum": lambda x: W.dot(x + 1),
    "dot of dot": lambda x: W.dot(W.T).dot(x[:2]),
    "searchsorted": lambda x: W[0].searchsorted(x, side="right"),
    "take": lambda x: W.take(np.argsort(x), axis=1),
    "clip": lambda x: W.clip(x, 2.5),
    "clip by names": lambda x: W.clip(min=x[0] - 2),
    "repeat": lambda x: W.repeat((x > 1.5) + 1, axis=1),
    "compress": lambda x: W.compress(x > 1.5, axis=1),
    "choose": lambda x: (W[0] > 0).astype(int).choose([x, -x]),
}


@pytest.mark.parametrize("name", [*METHODS])
def test_methods_of_ndarrays_take_traced_arrays(name):
    function, x = METHODS[name], np.array([1.0, 2.0, 3.0])
    accelerated = tj.dlaccelerate(function)
    for run in (lambda x: tj.dlfeval(function, tj.dlarray(x)), *[accelerated] * 4):
        found, expected = np.asarray(run(x)), np.asarray(function(x))
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        assert found.dtype == expected.dtype
    assert accelerated.stats.hits == 2
    assert np.asarray(tj.dlfeval(lambda x: tj.dlgradient(W.dot(x).sum(), x), tj.dlarray(x))).tolist() == [
        -1,
        1,
        3,
    ]


RNG = np.random.default_rng(0)
# Methods that something holds since before a recording.
HELD = SimpleNamespace(**{name: getattr(RNG, name) for name in dir(RNG) if name[0] != "_"})
DRAWS = {
    "choice": (
        lambda x: HELD.choice(3, p=x),
        lambda p: np.searchsorted(np.cumsum(p), tj.rand(4, like=p)),
    ),
    "multinomial": (
        lambda x: HELD.multinomial(3, x),
        lambda p: np.searchsorted(np.cumsum(p), tj.rand(4, like=p)),
    ),
    "binomial": (lambda x: HELD.binomial(1, x), lambda p: tj.rand(3, like=p) < p),
    "normal": (lambda x: HELD.normal(x, 1.0), lambda m: m + 2.0 * tj.randn(3, like=m)),
    "multivariate_normal": (
        lambda x: HELD.multivariate_normal(x, np.eye(3)),
        lambda m: m + tj.randn(5, 3, like=m) @ np.linalg.cholesky(np.eye(3)).T,
    ),
    "uniform": (lambda x: HELD.uniform(x, 2.0), lambda a: a + (2.0 - a) * tj.rand(3, like=a)),
    "exponential": (lambda x: HELD.exponential(x), lambda s: -s * np.log1p(-tj.rand(3, like=s))),
    "permutation": (lambda x: HELD.permutation(x), lambda x: tj.take(x, tj.randperm(3), axis=0)),
}


@pytest.mark.parametrize("name", [*DRAWS])
def test_draws_with_a_traced_parameter_say_what_is_recorded(name):
    refused, instead = DRAWS[name]
    x = tj.dlarray([0.2, 0.3, 0.5])
    with pytest.raises(
        tj.TraceError, match=f"{name}: NumPy's random numbers take no traced dlarray .* write .*tj"
    ):
        tj.dlfeval(refused, x)
    assert len(tj.dlfeval(instead, x)) >= 3


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the conversion is recorded there")
def test_an_array_that_is_converted_beside_a_method_is_not_its_argument():
    with pytest.raises(tj.TraceError, match="would silently drop its derivative"):
        tj.dlfeval(lambda x: (W.dot(W.T), np.asarray.__call__(x)), tj.dlarray([1.0, 2.0]))


def test_a_reload_of_the_package_changes_nothing() -> None:
    before = dict(vars(tj.dlarray))
    importlib.reload(tj)
    assert vars(tj.dlarray).keys() == before.keys()
    assert tj.dlarray([1.0, 2.0]).sum().item() == 3.0


def test_the_name_of_a_property_is_in_its_error() -> None:
    with pytest.raises(AttributeError, match=r"^property 'T' of 'dlarray' object has no setter$"):
        tj.dlarray([1.0]).T = 3


TEXTS = {
    "str": lambda x: str(x[0]),
    "f-string": lambda x: f"{x.sum()}",
    "a format": lambda x: f"{x.sum():.2f}",
    "%": lambda x: "%s" % x.max(),  # noqa: UP031
    "format": lambda x: "{} {}".format(x[0], x[1]),  # noqa: UP032
    "map": lambda x: list(map(str, x)),
    "a key": lambda x: {str(x[0]): 1},
    "its length": lambda x: x * len(str(x[0])),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_traced_numbers_are_those_of_numpys(name):
    function = TEXTS[name]
    accelerated = tj.dlaccelerate(function)
    for values in ([1.5, 2.5], [1.5, 2.5], [1.5, 2.5], [10.25, 2.5], [1.5, 2.5], [10.25, 0.0]):
        x = np.array(values)
        want = function(x)
        for found in (accelerated(x), tj.dlfeval(function, x)):
            assert found.tolist() == want.tolist() if isinstance(want, np.ndarray) else found == want
    assert accelerated.stats.hits >= 2


def test_print_in_a_recording_takes_no_value(capsys):
    accelerated = tj.dlaccelerate(lambda x: (print(x[0]), x * 2)[1])
    with pytest.warns(tj.LostChangeWarning, match="calls print"):
        assert [accelerated(np.array([n])).tolist() for n in (1.0, 2.0, 3.0)] == [[2.0], [4.0], [6.0]]
    assert accelerated.stats.hits == 1 and "traced" in capsys.readouterr().out
