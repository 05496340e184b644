# SPDX-License-Identifier: BSD-3-Clause
"""Keys of traces: every difference that matters makes a different key, and no other difference does."""

import dataclasses
import enum
import inspect
import itertools
import math
import pickle
from collections import OrderedDict, UserDict, namedtuple
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tracejit as tj
from tracejit import ArgumentError, DTypeError, TraceJitError, dlaccelerate, dlarray
from tracejit.call.signature import ArrayPart, bind_arguments, key_call, layouts


def key(*args, **kwargs):
    return key_call("fun", (args, kwargs), lambda number, treedef: f"argument {number}").key


def same(first, second):
    a, b = key(first), key(second)
    assert (a == b) == (b == a) and (a != b or hash(a) == hash(b))
    return a == b


Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Layer:
    w: object
    name: object = "layer"


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: object


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Number(enum.IntEnum):
    ONE = 1


NAN = float("nan")
BASE = np.arange(24.0).reshape(4, 6)
ARRAYS = {
    "c": np.zeros((2, 3)),
    "size": np.zeros((3, 2)),
    "rank": np.zeros((1, 2, 3)),
    "dtype": np.zeros((2, 3), np.float32),
    "int": np.zeros((2, 3), int),
    "bool": np.zeros((2, 3), bool),
    "fortran": np.zeros((2, 3), order="F"),
    "strided": BASE[::2, ::2],
    "steps": BASE[1:3, :3],
    "reversed": BASE[1::-1, 2::-1],
    "broadcast": np.broadcast_to(np.float64(1), (2, 3)),
    "CB": dlarray(np.zeros((2, 3)), "CB"),
    "BC": dlarray(np.zeros((2, 3)), "BC"),
}
VALUES = [
    0, 1, 2, -1, True, False, 0.0, -0.0, 1.0, 0.1, NAN, math.inf, 1j, complex(0, 0.0), complex(0, -0.0),
    complex(NAN, 0), "1", "", b"1", np.float64(1), np.float32(1), np.float32(NAN), np.float32(-0.0), np.float32(0),
    np.int64(1), np.int32(1), np.bool_(True), np.str_("1"), np.complex64(1), np.dtype("float32"), np.dtype("float64"),
    float, np.float32, len, np.sin, math.sin, Color.RED, Color.BLUE, Number.ONE, None, (), [], {}, (1,), [1], (1.0,),
    (True,), {"a": 1}, {"b": 1}, OrderedDict(a=1), Pair(1, 2), Pair(1, 3), (1, 2), [[1], 2], [1, [2]], Frozen(1),
    Layer(1), Layer(1, "other"), Ellipsis, frozenset({1}), frozenset({2}), range(3), 10**30, NotImplemented,
]  # fmt: skip


class TestArrays:
    def test_every_pair_differs(self):
        for a, first in ARRAYS.items():
            for b, second in ARRAYS.items():
                assert same(first, second) == (a == b), (a, b)

    def test_values_make_no_difference(self):
        for array in ARRAYS.values():
            again = (
                array + 1
                if isinstance(array, dlarray)
                else np.add(array, 1, dtype=array.dtype, casting="unsafe")
            )
            if key(again).parts[0].strides == key(array).parts[0].strides:
                assert same(array, again)

    def test_ndarrays_and_dlarrays_are_one_kind(self):
        assert same(np.zeros(3), dlarray(np.zeros(3))) and not same(np.zeros(3), dlarray(np.zeros(3), "C"))

    def test_numbers_are_not_arrays(self):
        assert not same(np.array(1.0), 1.0) and not same(np.array(1.0), np.float64(1.0))

    def test_layouts_that_are_the_same_for_a_program(self):
        plain = np.zeros((2, 3))
        for other in (plain[:, :], np.zeros((4, 3))[:2], np.zeros((2, 1, 3))[:, 0], plain.view()):
            assert same(plain, other)
        assert same(np.zeros((2, 1)), np.zeros((2, 5))[:, :1].copy()) and same(
            np.zeros((1, 3)), np.zeros((1, 3)).T.T
        )
        assert same(np.zeros((3, 0)), np.zeros((6, 0))[::2])  # nothing to be walked
        assert same(np.zeros((1, 3)), np.zeros((5, 3))[::5])  # an axis of 1 is never stepped along

    def test_unaligned_and_foreign_data_are_copied(self):
        aligned = np.arange(3.0)
        raw = np.zeros(25, np.uint8)
        unaligned = raw[1:].view(np.float64)
        unaligned[...] = aligned
        assert not unaligned.flags.aligned
        fields = np.zeros(3, [("flag", "u1"), ("x", "f8")])["x"]
        assert not fields.flags.aligned and fields.strides == (9,)
        for odd in (unaligned, fields, aligned.astype(">f8"), aligned.astype("=f8")):
            assert same(aligned, odd)
            accelerated = dlaccelerate(lambda x: x * 2)
            for _ in range(4):
                assert accelerated(odd).tolist() == (odd * 2).tolist()
            assert accelerated.hit_rate == 50.0

    def test_readonly_data(self):
        array = np.zeros(3)
        array.flags.writeable = False
        assert same(array, np.zeros(3))

    def test_layouts(self):
        assert layouts(key(np.zeros(3), 1.0, BASE[:, 1]))[0] is None
        plain, column = layouts(key(np.zeros(3), 1.0, BASE[:, 1]))
        assert plain is None and (column.offset, column.shape, column.strides) == (0, (4,), (6,))

    @given(hnp.arrays(np.int8, hnp.array_shapes(max_dims=3, max_side=3)), st.data())
    def test_any_view_is_walked_right(self, array, data):
        view = array[data.draw(hnp.basic_indices(array.shape))]
        view = np.asarray(view).T if data.draw(st.booleans()) else np.asarray(view)
        accelerated = dlaccelerate(lambda x: (x + 1, x.sum(), x))
        for _ in range(2):
            plus, total, given_back = accelerated(view)
            assert plus.tolist() == (view + 1).tolist() and total.item() == view.sum()
            assert given_back.tolist() == view.tolist() and given_back.shape == view.shape

    def test_arrays_of_other_libraries(self):
        class Foreign:
            def __init__(self, data):
                self.data = data

            def __dlpack__(self, **options):
                return self.data.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.data.__dlpack_device__()

        assert same(Foreign(np.zeros(3)), np.ones(3))
        assert dlaccelerate(lambda x: x + 1)(Foreign(np.zeros(3))).tolist() == [1.0] * 3


class TestValues:
    def test_every_pair_differs(self):
        for i, a in enumerate(VALUES):
            for j, b in enumerate(VALUES):
                assert same(a, b) == (i == j), (a, b)

    def test_equal_values_are_one_key(self):
        for value in VALUES:
            assert same(value, pickle.loads(pickle.dumps(value))), value
        assert same(float("nan"), float("nan")) and same(np.float32("nan"), np.float32("nan"))
        assert same(complex("nan"), complex("nan")) and same(int("1" * 30), int("1" * 30))
        assert same(Pair(1, [2]), Pair(1, [2])) and same(Layer(1), Layer(1)) and same(None, None)

    def test_functions_count_by_identity(self):
        make = lambda: lambda x: x
        fun = make()
        assert same(fun, fun) and not same(fun, make())

    def test_the_order_of_keys_counts(self):
        x = np.zeros(3)
        assert same({"a": x, "b": 1}, {"a": x, "b": 1}) and not same({"a": x, "b": 1}, {"b": 1, "a": x})
        assert not same({"a": x, "b": 1}, {"a": 1, "b": x})

    def test_objects_that_compare_by_value(self):
        class Config:
            def __init__(self, rate):
                self.rate = rate

            def __eq__(self, other):
                return isinstance(other, Config) and self.rate == other.rate

            def __hash__(self):
                return hash(self.rate)

        assert same(Config(1), Config(1)) and not same(Config(1), Config(2))
        accelerated = dlaccelerate(lambda x, config: x * config.rate)
        config = Config(2.0)
        assert accelerated(np.ones(1), config).item() == accelerated(np.ones(1), Config(2.0)).item() == 2.0
        config.rate = 3.0
        assert (
            accelerated(np.ones(1), config).item() == 3.0
            and accelerated(np.ones(1), Config(2.0)).item() == 2.0
        )


class TestCalls:
    def accelerated(self):
        fun = lambda x, y=2.0, *rest, scale=1.0, **more: x * y * scale + len(rest) + len(more)
        return dlaccelerate(fun, confirm=0)

    def test_positions_and_keywords(self):
        fun, x = self.accelerated(), np.ones(1)
        results = [fun(x, 3.0), fun(x, y=3.0), fun(y=3.0, x=x)]
        assert [r.item() for r in results] == [3.0] * 3 and fun.occupancy == 2.0
        assert fun(x).item() == 2.0 and fun(x, 3.0, 4.0).item() == 4.0 and fun(x, scale=4.0).item() == 8.0
        assert fun(x, other=1).item() == 3.0 and fun(x, another=1).item() == 3.0 and fun.stats.traces == 6

    def test_the_order_of_keywords(self):
        fun, x = self.accelerated(), np.ones(1)
        fun(x, scale=1.0, other=x)
        fun(x, other=x, scale=1.0)
        assert fun.hit_rate == 50.0

    def test_wrong_arguments(self):
        fun = dlaccelerate(lambda x, y: x)
        for call in (fun, lambda: fun(1, 2, 3), lambda: fun(1, z=2), lambda: fun(1, 2, y=3)):
            with pytest.raises(TypeError):
                call()
        assert fun.occupancy == 0.0


class TestErrors:
    @pytest.mark.whole("messages")
    @pytest.mark.parametrize("value", [{1, 2}, UserDict(), bytearray(b"x"), memoryview(bytearray(b"x"))])
    @pytest.mark.parametrize(
        ("call", "place"),
        [
            (lambda f, v: f(v), "params"),
            (lambda f, v: f(0, v), "argument 2"),
            (lambda f, v: f({"w": [0, v]}), r"params\['w'\]\[1\]"),
            (lambda f, v: f(Pair(0, Layer(v))), r"params\.b\.w"),
            (lambda f, v: f(0, key=v), "key"),
            (lambda f, v: f(0, key={"a": (v,)}), r"key\['a'\]\[0\]"),
        ],
    )
    def test_unhashable(self, call, place, value):
        fun = dlaccelerate(lambda params, *rest, key=None: params)
        name = type(value).__name__
        with pytest.raises(
            ArgumentError, match=rf"lambda>: {place} is a {name}, which is neither an array, a conta"
        ):
            call(fun, value)
        assert fun.occupancy == fun.hit_rate == 0.0 and fun.stats.calls == 0

    def test_a_sparse_matrix(self):
        sparse = pytest.importorskip("scipy.sparse")
        for matrix in (sparse.csr_array(np.eye(2)), sparse.coo_matrix(np.eye(2))):
            with pytest.raises(
                ArgumentError, match=r"Pass A\.data, A\.indices and A\.indptr of it as A\.tocsr\(\)"
            ):
                dlaccelerate(lambda x: x)(matrix)

    @pytest.mark.parametrize(
        "array",
        [
            np.array(["a"]),
            np.array([None]),
            np.zeros(2, "m8[s]"),
            np.zeros(2, "M8[s]"),
            np.zeros(2, [("x", "f4")]),
        ],
    )
    def test_dtypes(self, array):
        with pytest.raises(DTypeError, match=r"<lambda>: d\['x'\]: data of type .* is not supported"):
            dlaccelerate(lambda d: d)({"x": array})

    def test_all_are_of_the_tree(self):
        with pytest.raises(TraceJitError):
            dlaccelerate(lambda d: d)(set())


def test_parts_as_text():
    assert [str(part) for part in key(dlarray(np.zeros((2, 3)), "CB"), BASE.T, 1.0, NAN, "a", np.float32(1)).parts] == [
        "2(C) x 3(B) float64", "6x4 float64 with strides (1, 6)", "1.0", "nan", "'a'", "np.float32(1.0)",
    ]  # fmt: skip
    assert type(key(np.zeros(1)).parts[0]) is ArrayPart


class Network:
    """An object whose arrays may change; equal to itself only."""

    def __init__(self):
        self.w = tj.dlarray(1.0)


@pytest.mark.parametrize("function", [np.tanh, len, Network, math, partial(pow, 2), ...])
def test_functions_classes_and_modules_are_values(function):
    same_ = tj.dlaccelerate(lambda thing, x: x * 2.0)
    for _ in range(3):
        same_(function, tj.dlarray([1.0]))
    assert same_.stats.hits == 1


FUNCTIONS = [
    lambda x, y=1, *, z=2, w=3: None,
    lambda x, y, *, z: None,
    lambda x=1, /, y=2, z=3: None,
    lambda x, /, y: None,
    lambda *args, y=2: None,
    lambda x=1, **options: None,
    lambda: None,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_arguments_are_bound_as_inspect_binds_them(function):
    signature = inspect.signature(function)
    for count in range(4):
        for names in itertools.chain.from_iterable(itertools.permutations("xyzwu", n) for n in range(4)):
            args, kwargs = tuple(range(count)), {name: name.upper() for name in names}
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                with pytest.raises(TypeError) as found:
                    bind_arguments("f", signature, args, kwargs)
                assert str(found.value).endswith(str(error))
                continue
            found_args, found_kwargs = bind_arguments("f", signature, args, kwargs)
            assert (found_args, [*found_kwargs.items()]) == (bound.args, [*bound.kwargs.items()])
