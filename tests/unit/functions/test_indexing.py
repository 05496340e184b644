# SPDX-License-Identifier: BSD-3-Clause
"""Indexing and assignment against NumPy over many keys; the op records, their kernels, adjoints, messages."""

import itertools
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate
from effort import sweep
from hypothesis import given, settings
from hypothesis import strategies as st
from tracejit.kernels.loops import gather

import tracejit as tj
from tracejit.autodiff import gradient
from tracejit.aval import Aval
from tracejit.errors import ArgumentError, BoundsError, DimsError, DTypeError
from tracejit.functions import taking
from tracejit.functions.indexing import getitem, setitem
from tracejit.ir import Builder, Graph, evaluate, verify
from tracejit.ops import OPS
from tracejit.record.recorder import Recorder, as_array
from tracejit.testing import check_gradients

RECORDS = ("take", "scatter_add", "put", "take_along_axis", "add_along_axis")
CASES = [
    pytest.param(OPS[name], s, id=f"{name}-{i}") for name in RECORDS for i, s in enumerate(OPS[name].samples)
]


def operands(op, sample, dtype="float64"):
    """Return arrays for a sample: indices of either sign, and repeated."""
    draw = np.random.default_rng(1)
    arrays = [np.asarray(draw.integers(0, 9, shape)).astype(dtype) for shape in sample.shapes]
    high = sample.integer_high
    arrays[1] = np.asarray(draw.integers(-high, high, sample.shapes[1]))
    return arrays


def run_kernel(op, params, arrays, out):
    """Run the kernel of an op as Python and return its output."""
    avals = [Aval(a.shape, None, a.dtype) for a in arrays]
    numbers = op.emit.numbers(Aval(out.shape, None, out.dtype), *avals, **params)
    operands = [np.ascontiguousarray(a).ravel() for a in arrays]
    result = operands.pop(0).copy() if op.emit.onto else np.zeros(out.size, out.dtype)
    fault = np.zeros(1, np.int64)
    getattr(gather, op.emit.name)(*numbers, *operands, result, fault)
    return result.reshape(out.shape)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
@pytest.mark.parametrize(("op", "sample"), CASES)
def test_kernel_agrees_with_reference(op, sample, dtype):
    arrays = operands(op, sample, dtype)
    expected = op.numpy(*arrays, **sample.params)
    aval = op.infer(*[Aval(a.shape, None, a.dtype) for a in arrays], **sample.params)
    assert (aval.shape, aval.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(run_kernel(op, sample.params, arrays, expected), expected)


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_adjoint_by_complex_step(op, sample):
    arrays = operands(op, sample)
    graph = Graph()
    b = Builder(graph)
    inputs = [b.input(Aval(a.shape, None, a.dtype)) for a in arrays]
    out = b.apply(op, inputs, dict(sample.params))
    weights = np.random.default_rng(2).normal(size=out.shape)
    floats = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    cts = gradient(b, [out], [b.constant(weights)], [inputs[i] for i in floats])
    graph.outputs = cts
    verify(graph)
    for i, ct in zip(floats, evaluate(graph, arrays), strict=True):
        expected = np.zeros_like(arrays[i])
        for place in np.ndindex(expected.shape):
            moved = [a.astype(complex) if a.dtype.kind == "f" else a for a in arrays]
            moved[i][place] += 1e-30j
            expected[place] = (weights * op.numpy(*moved, **sample.params).imag).sum() / 1e-30
        np.testing.assert_allclose(ct, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("dtype", "missing"), [("float32", np.nan), ("int64", -(2**63)), ("int8", -128),
                                                ("uint8", 0), ("bool", False)])  # fmt: skip
@pytest.mark.parametrize("name", ["take", "take_along_axis"])
def test_compiled_reads_out_of_range_are_missing(name, dtype, missing):
    arrays = [np.ones(3, dtype), np.array([0, -3, 3, -4, 2**62])]
    result = run_kernel(OPS[name], {"axis": 0}, arrays, np.empty(5, dtype))
    np.testing.assert_array_equal(result, np.array([1, 1, missing, missing, missing], dtype))


@pytest.mark.parametrize("name", ["scatter_add", "put", "add_along_axis"])
def test_compiled_writes_out_of_range_do_nothing(name):
    arrays = [np.ones(3), np.array([0, 3, -4, 2**62]), np.full(4, 5.0)]
    result = run_kernel(OPS[name], {"axis": 0}, arrays, np.empty(3))
    assert result.tolist() == [5.0 if name == "put" else 6.0, 1.0, 1.0]


@pytest.mark.parametrize("name", RECORDS)
def test_reference_raises_out_of_range(name):
    arrays = [np.ones(3), np.array([0, 3]), np.ones(2)][: 3 if len(OPS[name].samples[0].shapes) == 3 else 2]
    with pytest.raises(
        BoundsError, match=rf"{name}: index 3 is out of range for an axis of size 3; valid indices are -3"
    ):
        OPS[name].numpy(*arrays, axis=0)


def test_of_repeated_places_only_the_last_write_has_a_cotangent():
    x, v = tj.dlarray([1.0, 2.0, 3.0]), tj.dlarray([10.0, 20.0, 30.0])

    def loss(x, v):
        y = setitem(x, np.array([0, 2, -3]), v)
        return tj.dlgradient((y * np.array([1.0, 2.0, 3.0])).sum(), (x, v))

    by_x, by_v = tj.dlfeval(loss, x, v)
    assert by_x._data.tolist() == [0.0, 2.0, 0.0]
    assert by_v._data.tolist() == [0.0, 3.0, 1.0]


@st.composite
def keys(draw):
    """Return a shape and a key for it: integers, slices, None, ..., index arrays and masks in any order."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4]), max_size=4)))
    common = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 3), (0,)]))
    key, axis, ellipsis = [], 0, False
    while axis < len(shape) and draw(st.integers(0, 9)):
        extent = shape[axis]
        places = st.integers(-extent, extent - 1)
        kind = draw(st.sampled_from(["int", "slice", "array", "array", "list", "mask", "new", "ellipsis"]))
        if kind == "int":
            key.append(draw(st.one_of(places, places.map(np.int32), places.map(np.array))))
        elif kind == "slice":
            end = st.one_of(st.none(), st.integers(-extent - 2, extent + 2))
            key.append(slice(draw(end), draw(end), draw(st.sampled_from([None, 1, 2, -1, -2]))))
        elif kind in ("array", "list"):
            size = tuple(1 if draw(st.integers(0, 9)) == 0 else n for n in common[draw(st.integers(0, 1)) :])
            count = int(np.prod(size, dtype=int))
            index = np.array(draw(st.lists(places, min_size=count, max_size=count)), np.int64).reshape(size)
            index = index.astype(draw(st.sampled_from(["int8", "int64"])))
            key.append(index.tolist() if kind == "list" and size else index)
        elif kind == "mask":
            part = shape[axis : axis + draw(st.integers(1, 2))]
            count = int(np.prod(part))
            key.append(np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count))).reshape(part))
            axis += len(part) - 1
        elif kind == "new":
            key.append(None)
        elif not ellipsis:
            key.append(...)
            ellipsis, axis = True, draw(st.integers(axis, len(shape)))
        axis += kind not in ("new", "ellipsis")
    key = key[0] if len(key) == 1 and draw(st.booleans()) else tuple(key)
    return shape, key


def trace_arrays(key):
    """Return the key with every index array or mask as a dlarray."""
    parts = key if isinstance(key, tuple) else (key,)
    return tuple(tj.dlarray(p) if isinstance(p, (np.ndarray, list)) and np.size(p) else p for p in parts)


@given(case=keys(), data=st.data())
@settings(derandomize=True, max_examples=sweep(50, 300, sample=6), deadline=None)
def test_any_key_does_what_numpy_does(case, data):
    shape, key = case
    x = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    try:
        expected = x[key]
    except IndexError:  # index arrays that do not broadcast
        with pytest.raises(DimsError):
            getitem(x, key)
        return
    result = getitem(x, key)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result._data, expected)

    size = data.draw(st.sampled_from([(), expected.shape, expected.shape[1:],
                                      tuple(n if n == 0 else 1 for n in expected.shape)]))  # fmt: skip
    value = -1.0 - np.arange(float(np.prod(size, dtype=int))).reshape(size)
    assigned = x.copy()
    try:
        assigned[key] = value
    except (TypeError, ValueError):  # NumPy takes a scalar or 1-D value only where a mask is the whole key
        return
    before = x.copy()
    np.testing.assert_array_equal(setitem(x, key, value)._data, assigned)
    np.testing.assert_array_equal(x, before)

    def traced(a, parts, v):
        return getitem(a, parts), setitem(a, parts, v)

    got, made = tj.dlfeval(traced, tj.dlarray(x), trace_arrays(key), tj.dlarray(value))
    np.testing.assert_array_equal(got._data, expected)
    np.testing.assert_array_equal(made._data, assigned)


I, J = np.array([[0], [2]]), np.array([1, 1, -1])  # noqa: E741
KEYS = [
    (1, slice(None, None, -2)),
    (..., None, 0),
    (slice(1, 3), slice(None), [0, 0]),
    (I, J),
    (I, slice(None), J),
    (J, I, 0),
    (0, slice(None), J),
    (slice(None), np.array([True, False, True, True])),
    np.arange(24).reshape(3, 4, 2) % 5 == 0,
]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_gradients(key):
    x = np.random.default_rng(0).normal(size=(3, 4, 2))
    value = np.random.default_rng(1).normal(size=x[key].shape)
    check_gradients(lambda a: getitem(a * a, key), tj.dlarray(x), order=2)
    check_gradients(lambda a, v: setitem(a * a, key, v * v), tj.dlarray(x), tj.dlarray(value), order=2)
    check_gradients(lambda a, v: setitem(a, key, v * v), tj.dlarray(x), tj.dlarray(2.0), order=2)


def test_graph_with_traced_indices_serves_other_indices():
    recorder = Recorder("f", accelerating=True)
    x = np.arange(12.0).reshape(3, 4)
    with recorder:
        args = [recorder.input(as_array(a)) for a in (x, np.array([0, 1]), np.array([-1, 2]))]
        result = getitem(args[0], (args[1], args[2]))
        recorder.graph.outputs = [result._value]
    verify(recorder.graph)
    i, j = np.array([2, -3]), np.array([3, -4])
    np.testing.assert_array_equal(evaluate(recorder.graph, [x, i, j])[0], x[i, j])
    with pytest.raises(BoundsError, match="index 12 is out of range"):  # and not the next row
        evaluate(recorder.graph, [x, np.array([0, 1]), np.array([4, 0])])


def test_traced_masks():
    x = tj.dlarray(np.arange(6.0).reshape(2, 3), "CB")
    recorder = Recorder("f", accelerating=True)
    with recorder:
        traced = recorder.input(x)
        for value in (0, np.array([7.0, 8.0, 9.0])):
            key = (traced > 2) if np.ndim(value) == 0 else (np.array([True, False]), ...)
            result = setitem(traced, key, value)
            expected = x._data.copy()
            expected[expected > 2 if np.ndim(value) == 0 else [True, False]] = value
            np.testing.assert_array_equal(result._data, expected)
            assert result._format == "CB"
        np.testing.assert_array_equal(getitem(traced, traced > 2)._data, [3, 4, 5])
        np.testing.assert_array_equal(setitem(traced, traced > 2, np.ones(3))._data, [[0, 1, 2], [1, 1, 1]])
        for places, wanted in zip(taking.nonzero(traced), np.nonzero(x._data), strict=True):
            np.testing.assert_array_equal(places._data, wanted)
    whats = ["the size of a selection by a mask"] * 2 + ["the number of places of nonzero"]
    assert [guard.what for guard in recorder.guards] == whats


@pytest.mark.parametrize(
    ("key", "shape", "format"),
    [
        (0, (3, 4), "CB"),
        ((slice(None), 0), (2, 4), "SB"),
        ((0, 0, 0), (), None),
        ((..., slice(1, 3)), (2, 3, 2), "SCB"),
        ((None, ...), (1, 2, 3, 4), "USCB"),
        ((..., [0, 0]), (2, 3, 2), "SCB"),
        ((..., np.array([[0, 0]])), (2, 3, 1, 2), "SCUU"),
        ((..., np.array([True, False, True, False])), (2, 3, 2), "SCB"),
        (([0, 1], slice(None), [0, 1]), (2, 3), "UC"),
        ((slice(None), [0, 1], [0, 1]), (2, 2), "SU"),
        ((0, slice(None), [0, 1, 1]), (3, 3), "BC"),
        (np.ones((2, 3, 4), bool), (24,), "U"),
    ],
)
def test_labels(key, shape, format):
    x = tj.dlarray(np.arange(24.0).reshape(2, 3, 4), "SCB")
    result = getitem(x, key)
    assert (result.shape, result._format) == (shape, format)
    assert setitem(x, key, 1.0)._format == "SCB"
    assert getitem(x._data, key)._format is None


def test_assignment_keeps_the_type_and_the_array():
    x = tj.dlarray(np.zeros(3, np.float32))
    alias = x
    y = setitem(x, 0, np.float64(2.5))
    assert (y._data.dtype, y._data[0], alias._data[0]) == (np.float32, 2.5, 0.0)
    counts = np.zeros(3, np.int32)
    assert setitem(counts, [0, 1], 2.9)._data.tolist() == [2, 2, 0]
    assert setitem(counts, counts == 0, 2.9)._data.dtype == np.int32


TAKES = [
    ((3, 4), [0, -1, 0], 0),
    ((3, 4), [[0, 2]], 1),
    ((3, 4), 2, -1),
    ((3, 4), [11, 0], None),
    ((3, 4), [], 0),
]


@pytest.mark.parametrize(("shape", "indices", "axis"), TAKES)
def test_take_does_what_numpy_does(shape, indices, axis):
    x = np.arange(float(np.prod(shape))).reshape(shape)
    expected = np.take(x, np.array(indices, int), axis)
    np.testing.assert_array_equal(taking.take(x, indices, axis)._data, expected)


def test_take_accepts_labels_and_keeps_them():
    x = tj.dlarray(np.zeros((3, 4)), "CB")
    assert taking.take(x, tj.dlarray([0, 1], "T"), "B")._format == "CB"
    assert taking.take(x, 1, "B")._format == "C"
    assert taking.take(x, [[0, 1]], "C")._format == "UUB"


@pytest.mark.parametrize(("size", "axis"), [((3, 1), 1), ((3, 6), 1), ((2, 4), 0), ((1, 1), 1), ((5,), None)])
def test_take_along_axis_does_what_numpy_does(size, axis):
    x = np.arange(12.0).reshape(3, 4)
    index = np.random.default_rng(0).integers(-3, 3, size)
    expected = np.take_along_axis(x, index, axis)
    np.testing.assert_array_equal(taking.take_along_axis(x, index, axis)._data, expected)
    check_gradients(lambda a: taking.take_along_axis(a * a, index, axis), tj.dlarray(x), order=2)


def test_nonzero():
    x = np.array([[0.0, 2.0], [3.0, 0.0]])
    for places, expected in zip(taking.nonzero(x), np.nonzero(x), strict=True):
        assert places._data.tolist() == expected.tolist()


ENTRIES = [True, np.False_, np.array(True), 0, slice(None), None, ..., np.array([0, 1]), slice(1, 2)]
KEYS_WITH_BOOLEANS = [
    key
    for length in (1, 2, 3)
    for key in itertools.product(ENTRIES, repeat=length)
    if any(np.asarray(entry).dtype == bool for entry in key) and sum(entry is ... for entry in key) < 2
]


def _outcome(call: Any) -> Any:
    try:
        return call()
    except (IndexError, DimsError):
        return IndexError


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 2)])
def test_single_booleans_are_masks_without_axes(shape: tuple[int, ...]) -> None:
    x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    for key in KEYS_WITH_BOOLEANS:
        want = _outcome(lambda key=key: x[key])
        have = _outcome(lambda key=key: tj.dlarray(x)[key])
        if want is IndexError:
            assert have is IndexError, key
            continue
        np.testing.assert_array_equal(tj.extractdata(have), want, strict=True, err_msg=str(key))
        for value in (7.0, np.arange(want.size).reshape(want.shape)):
            changed, expected = tj.dlarray(x.copy()), x.copy()
            changed[key] = value
            expected[key] = value
            np.testing.assert_array_equal(tj.extractdata(changed), expected, err_msg=str(key))


def test_a_boolean_that_varies_is_guarded() -> None:
    step = dlaccelerate(lambda x, flag: x[flag, 1:])
    x = np.arange(3.0)
    for flag in (True, False, True, True):
        found = step(tj.dlarray(x), tj.dlarray(np.array(flag)))
        np.testing.assert_array_equal(tj.extractdata(found), x[flag, 1:], strict=True)
    assert step.hit_rate == 50


def test_masks_with_sizes_of_zero_select_nothing() -> None:
    for shape, size in (((0, 1), (0, 0)), ((2, 1), (0,)), ((2, 3), (2, 0)), ((2, 3), (0, 3))):
        x, mask = np.ones(shape), np.zeros(size, bool)
        np.testing.assert_array_equal(tj.extractdata(tj.dlarray(x)[mask]), x[mask], strict=True)
        changed = tj.dlarray(x.copy())
        changed[mask] = 5.0
        np.testing.assert_array_equal(tj.extractdata(changed), x)


X = tj.dlarray(np.arange(6.0).reshape(2, 3), "CB")


@pytest.mark.whole("messages")
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: getitem(X, 2), BoundsError, r"getitem: index 2 is out .* of x \(2\(C\) x 3\(B\)\)"),
        (lambda: getitem(np.zeros(0), 0), BoundsError, "the axis is empty"),
        (lambda: getitem(X, (0, 0, 0)), BoundsError, "indexes 3 axes, but x .* has 2"),
        (lambda: getitem(X, (..., ...)), BoundsError, "two ellipses"),
        (lambda: getitem(X, "C"), ArgumentError, "'C' is not an index"),
        (lambda: getitem(X, 1.5), ArgumentError, "1.5 is not an index"),
        (lambda: getitem(X, [0.5]), DTypeError, "an index array has dtype float64"),
        (lambda: getitem(X, slice(0.5)), ArgumentError, r"getitem: slice\(None, 0.5, None\) is not an index"),
        (lambda: getitem(X, slice(None, None, 0)), ArgumentError, "cannot be zero"),
        (lambda: getitem(X, np.ones(3, bool)), BoundsError, "a mask of 3 does not fit x .* from axis 0 on"),
        (lambda: getitem(X, ([0, 1], [0, 1, 2])), DimsError, "sizes 2 and 3 do not broadcast"),
        (lambda: getitem(X, ([0, 1], [0, 3])), BoundsError, "index 3 is out of range for an axis"),
        (lambda: getitem(X, [2]), BoundsError, "take: index 2 is out of range"),
        (lambda: getitem(X, np.array([2**64 - 1], "uint64")), BoundsError, "18446744073709551615 is out"),
        (lambda: setitem(X, 0, np.zeros(4)), DimsError, r"size 4 does not broadcast to the 3\(B\) places"),
        (lambda: setitem(X, [0], np.zeros((2, 3))), DimsError, "2x3 does not broadcast"),
        (lambda: setitem(X, 0, tj.dlarray(np.zeros(3), "T")), DimsError, r"is 3\(T\), but .* 3\(B\)"),
        (lambda: setitem(X, np.ones((2, 2), bool), 0), BoundsError, "setitem: a mask of 2x2"),
        (lambda: setitem(np.zeros(2, np.uint8), 0, 300), ArgumentError, r"300 does not fit x of .* \(0 to"),
        (lambda: taking.take(X, [0.5], 0), DTypeError, "take: index has dtype float64"),
        (lambda: taking.take_along_axis(X, [0], 0), DimsError, "all sizes except along axis 0"),
    ],
)  # fmt: skip
def test_messages(call, error, words):
    with pytest.raises(error, match=words):
        call()


def floats(*shape):
    return Aval(shape, None, np.dtype(np.float64))


def places(*shape):
    return Aval(shape, None, np.dtype(np.int64))


def flags(*shape):
    return Aval(shape, None, np.dtype(bool))


@pytest.mark.parametrize(
    ("op", "avals", "axis", "error", "words"),
    [
        ("take", [floats(), places(2)], 0, DimsError, "a scalar has none"),
        ("put", [floats(3), places(2), floats(3)], 0, DimsError, "v has size 3"),
        ("scatter_add", [floats(3), places(2), floats()], 0, DimsError, "v has size sc"),
        ("scatter_add", [flags(3), places(2), flags(2)], 0, DTypeError, "bool"),
        ("add_along_axis", [flags(3), places(2), flags(2)], 0, DTypeError, "bool"),
        ("add_along_axis", [floats(3), places(2), floats(3)], 0, DimsError, "v has si"),
        ("take_along_axis", [floats(3), places(2, 1)], 0, DimsError, "index has size 2x1"),
    ],
)  # fmt: skip
def test_messages_of_ops(op, avals, axis, error, words):
    with pytest.raises(error, match=words):
        OPS[op].infer(*avals, axis=axis)


def test_iteration_ends():
    assert issubclass(BoundsError, IndexError)
    rows = []
    for number in range(9):
        try:
            rows.append(getitem(X, number))
        except IndexError:
            break
    assert len(rows) == 2


def test_scatter_add_sums_equal_places():
    x = np.arange(6.0).reshape(3, 2)
    index = np.array([[0, 2], [2, -1]])
    values = np.ones((2, 2, 2))
    expected = x.copy()
    np.add.at(expected, index, values)
    got = tj.scatter_add(tj.dlarray(x, "BC"), index, values, "B")
    assert got.format == "BC"
    np.testing.assert_array_equal(tj.extractdata(got), expected)
    check_gradients(lambda x, v: tj.scatter_add(x, index, v), x, values)


def test_scatter_add_broadcasts_values_and_names_sizes_that_do_not():
    np.testing.assert_array_equal(tj.scatter_add(np.zeros(3), [0, 0], 1.5).tolist(), [3.0, 0.0, 0.0])
    with pytest.raises(
        tj.DimsError, match=r"scatter_add: v has size 3, but the indexed elements have size 2"
    ):
        tj.scatter_add(np.zeros(4), [0, 1], np.ones(3))
    with pytest.raises(tj.BoundsError):
        tj.scatter_add(np.zeros(4), [4], 1.0)
