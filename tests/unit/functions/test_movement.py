# SPDX-License-Identifier: BSD-3-Clause
"""Ops and functions that rearrange elements: layouts and parts against NumPy, labels, adjoints, messages."""

import numpy as np
import pytest
from accelerated import dlaccelerate
from effort import sweep
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tracejit.aval import Aval
from tracejit.errors import ArgumentError, DimsError, WriteError
from tracejit.functions import joining, movement, padding, rolling
from tracejit.functions.movement import bounds
from tracejit.ir import Builder, Graph, evaluate, verify
from tracejit.ops import OPS, Layout
from tracejit.ops.op import Pieces, Strided
from tracejit.testing import check_gradients

FLOAT = np.dtype(np.float64)
_NO_DICTS = np.lib.NumpyVersion(np.__version__) < "2.4.0"
EXTENTS = st.lists(st.sampled_from([1, 1, 2, 3, 4, 6]), max_size=4).map(tuple)


def numbers(*shape, format=None):
    """Return a dlarray with a different number in each place."""
    return tj.dlarray(np.arange(float(np.prod(shape, dtype=int))).reshape(shape), format)


def layout_of(view, base):
    """Return the Layout of a view of the contiguous array `base`."""
    offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Layout(offset // base.itemsize, view.shape, tuple(s // base.itemsize for s in view.strides))


def apply_layout(layout, base):
    """Return what a Layout shows of `base`, element by element, so that no stride is trusted unread."""
    flat = base.ravel()
    result = np.empty(layout.shape, base.dtype)
    for place in np.ndindex(layout.shape):
        result[place] = flat[layout.offset + sum(i * s for i, s in zip(place, layout.strides, strict=True))]
    return result


def apply_pieces(op, params, arrays, out):
    """Write an output by the parts that an op names, and check that they cover it."""
    avals = [Aval(a.shape, None, a.dtype) for a in arrays]
    result, covered = np.zeros(out.shape, out.dtype), np.zeros(out.shape, bool)
    for piece in op.emit.pieces(Aval(out.shape, None, out.dtype), *avals, **params):
        assert all(extent >= 0 for extent in piece.shape)
        axes = [
            np.arange(extent) * step + start
            for start, extent, step in zip(piece.start, piece.shape, piece.step, strict=True)
        ]
        assert all((places >= 0).all() for places in axes)
        source = piece.source if piece.fill else arrays[piece.source]
        result[np.ix_(*axes)] = np.broadcast_to(source, piece.shape)
        covered[np.ix_(*axes)] = True
    assert covered.all()
    return result


def operands(sample, dtype=FLOAT):
    draw = np.random.default_rng(0)
    return [np.asarray(draw.normal(size=shape) * 3).astype(dtype) for shape in sample.shapes]


MOVES = [
    pytest.param(op, sample, id=f"{op.name}-{i}")
    for op in OPS.values()
    if op.name
    in ("reshape", "transpose", "broadcast_to", "slice", "setslice", "concatenate", "assemble", "pad")
    for i, sample in enumerate(op.samples)
]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
@pytest.mark.parametrize(("op", "sample"), MOVES)
def test_emission_agrees_with_reference(op, sample, dtype):
    arrays = operands(sample, np.dtype(dtype))
    expected = op.numpy(*arrays, **sample.params)
    aval = op.infer(*[Aval(a.shape, None, a.dtype) for a in arrays], **sample.params)
    assert (aval.shape, aval.dtype) == (expected.shape, expected.dtype)
    if isinstance(op.emit, Pieces):
        result = apply_pieces(op, sample.params, arrays, expected)
    else:
        base = arrays[0]
        result = apply_layout(op.emit.layout(layout_of(base, base), **sample.params), base)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "sample"), MOVES)
def test_axes_say_where_each_axis_went(op, sample):
    if not isinstance(op.emit, Strided) or op.emit.axes is None:
        assert op.name in ("slice", "setslice", "concatenate", "assemble", "pad")
        return
    x = operands(sample)[0]
    axes = op.emit.axes(x.ndim, x.shape, **sample.params)
    result = op.numpy(x, **sample.params)
    if axes is None:
        assert [n for n in x.shape if n != 1] != [n for n in result.shape if n != 1]
        return
    for place in np.ndindex(result.shape):
        source = tuple(
            0 if to is None or extent == 1 else place[to] for to, extent in zip(axes, x.shape, strict=True)
        )
        assert result[place] == x[source]


@given(shape=EXTENTS, data=st.data())
@settings(derandomize=True, max_examples=sweep(30, 200, sample=8), deadline=None)
def test_reshape_is_a_view_exactly_where_numpy_makes_one(shape, data):
    base = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    view = base.transpose(data.draw(st.permutations(range(len(shape)))))
    steps = data.draw(st.lists(st.sampled_from([1, 1, 2, -1]), min_size=len(shape), max_size=len(shape)))
    view = view[(..., *(slice(None, None, step) for step in steps))]
    if data.draw(st.booleans()):
        view = np.broadcast_to(view, (2, *view.shape))
    left, wanted = view.size, []
    while left > 1:
        wanted.append(data.draw(st.sampled_from([d for d in range(2, left + 1) if left % d == 0])))
        left //= wanted[-1]
    wanted = tuple(data.draw(st.permutations([*wanted, 1])))
    try:
        expected = np.reshape(view, wanted, copy=False)
    except ValueError:
        expected = None
    layout = OPS["reshape"].emit.layout(layout_of(view, base), shape=wanted)
    assert (layout is None) == (expected is None)
    if layout is not None:
        np.testing.assert_array_equal(apply_layout(layout, base), expected)


def test_reshape_of_nothing_is_always_a_view():
    layout = OPS["reshape"].emit.layout(Layout(5, (3, 0), (7, 2)), shape=(0, 2, 2))
    assert layout.shape == (0, 2, 2)


@pytest.mark.parametrize(
    ("shape", "to", "axes"),
    [
        ((2, 3), (2, 1, 3), (0, 2)),
        ((1, 2, 1, 3), (2, 3), (None, 0, None, 1)),
        ((1, 3), (3, 1), (None, 0)),
        ((3, 1), (1, 3), (1, None)),
        ((2, 3), (3, 2), None),
        ((2, 3), (6,), None),
        ((0, 3), (3, 0), None),
        ((), (1, 1), ()),
    ],
)
def test_axes_of_reshape(shape, to, axes):
    assert OPS["reshape"].emit.axes(len(shape), shape, shape=to) == axes


@given(
    extent=st.integers(0, 6),
    start=st.integers(-9, 9),
    stop=st.integers(-9, 9),
    step=st.sampled_from([-3, -1, 1, 2]),
)
@settings(derandomize=True, max_examples=sweep(30, 200, sample=8), deadline=None)
def test_slices_of_either_direction(extent, start, stop, step):
    x = np.arange(extent)
    key = slice(start, stop, step)
    params = dict(zip(("starts", "stops", "steps"), [(n,) for n in bounds(key, extent)], strict=True))
    np.testing.assert_array_equal(OPS["slice"].numpy(x, **params), x[key])
    OPS["slice"].infer(Aval(x.shape, None, x.dtype), **params)
    layout = OPS["slice"].emit.layout(Layout(0, x.shape, (1,)), **params)
    np.testing.assert_array_equal(apply_layout(layout, x), x[key])


def test_parts_of_a_border_are_written_once():
    op, params = OPS["pad"], {"widths": ((1, 2), (0, 3), (2, 0)), "value": 7.0}
    x = np.ones((2, 3, 2))
    out = op.numpy(x, **params)
    pieces = op.emit.pieces(Aval(out.shape, None, out.dtype), Aval(x.shape, None, x.dtype), **params)
    assert sum(np.prod(piece.shape) for piece in pieces) == out.size
    np.testing.assert_array_equal(
        apply_pieces(op, params, [x], out), np.pad(x, params["widths"], constant_values=7)
    )


def test_setslice_casts_to_the_type_of_x():
    graph = Graph()
    b = Builder(graph)
    x = b.input(Aval((3,), None, np.dtype(np.int32)))
    graph.outputs = [b.setslice(x, 2.9, starts=(0,), stops=(1,), steps=(1,))]
    verify(graph)
    (result,) = evaluate(graph, [np.zeros(3, np.int32)])
    assert result.dtype == np.int32
    assert result.tolist() == [2, 0, 0]


CALLS = [
    ("reshape", (2, 3, 4), ((4, -1),)),
    ("reshape", (2, 3), (6,)),
    ("reshape", (0, 3), ((3, 0),)),
    ("ravel", (2, 3), ()),
    ("ravel", (0, 3), ()),
    ("transpose", (2, 3, 4), ()),
    ("transpose", (2, 3, 4), ((-1, 0, 1),)),
    ("swapaxes", (2, 3, 4), (0, -1)),
    ("moveaxis", (2, 3, 4, 5), (0, -1)),
    ("moveaxis", (2, 3, 4, 5), ([0, 3], [2, 0])),
    ("broadcast_to", (3, 1), ((2, 3, 4),)),
    ("broadcast_to", (3,), (3,)),
    ("squeeze", (1, 3, 1), ()),
    ("squeeze", (1, 3, 1), (-1,)),
    ("expand_dims", (2, 3), (0,)),
    ("expand_dims", (2, 3), ((1, -1),)),
    ("flip", (2, 3), ()),
    ("flip", (2, 3), (1,)),
    ("flip", (2, 0), ()),
    ("roll", (2, 3), (1,)),
    ("roll", (2, 3), (-4, 1)),
    ("roll", (2, 3), ((1, 2), (0, 1))),
    ("roll", (2, 3), (1, (0, 1))),
    ("roll", (0, 3), (1, 0)),
    ("pad", (2, 3), (1,)),
    ("pad", (2, 3), ((1, 2),)),
    ("pad", (2, 3), (((1, 0), (0, 2)),)),
    ("pad", (2, 3), (2, "edge")),
    ("pad", (4, 3), (2, "reflect")),
    ("pad", (2, 3), (((3, 1), (0, 4)), "symmetric")),
    ("pad", (2, 3), (4, "wrap")),
    pytest.param("pad", (2, 3), ({-1: (1, 2)},), marks=pytest.mark.skipif(_NO_DICTS, reason="NumPy from 2.4 on")),
    ("repeat", (2, 3), (2,)),
    ("repeat", (2, 3), (3, 0)),
    ("repeat", (2, 3), ([1, 0, 2], 1)),
    ("repeat", (2, 3), (0, 1)),
    ("tile", (2, 3), (2,)),
    ("tile", (2, 3), ((2, 1, 3),)),
    ("tile", (2, 3), ((1, 1, 1),)),
    ("tile", (3,), ((2, 2),)),
    ("tile", (2, 3), (0,)),
    ("atleast_1d", (), ()),
    ("atleast_1d", (2,), ()),
    ("atleast_2d", (), ()),
    ("atleast_2d", (3,), ()),
    ("atleast_2d", (2, 3), ()),
    ("atleast_3d", (), ()),
    ("atleast_3d", (3,), ()),
    ("atleast_3d", (2, 3), ()),
    ("atleast_3d", (2, 3, 4), ()),
]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "shape", "args"), CALLS)
def test_function_does_what_numpy_does(name, shape, args):
    x = numbers(*shape)._data
    result = getattr(tj, name)(tj.dlarray(x), *args)
    expected = getattr(np, name)(x, *args)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result._data, expected)
    # the same while a graph is recorded, where the result is that of the recorded nodes
    traced = tj.dlfeval(lambda a: getattr(tj, name)(a, *args), tj.dlarray(x))
    np.testing.assert_array_equal(traced._data, expected)
    if x.size:
        check_gradients(lambda a: getattr(tj, name)(a * a, *args), tj.dlarray(x + 1.0), order=2)


@pytest.mark.parametrize("values", [2.5, (1, 2), ((1, 2), (3, 4)), ((1, 1), (3, 1)), np.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_constant_borders(values, dtype):
    x = numbers(2, 3)._data.astype(dtype)
    result = padding.pad(x, ((1, 2), (2, 0)), constant_values=values)
    expected = np.pad(x, ((1, 2), (2, 0)), constant_values=values)
    assert result._data.dtype == dtype
    np.testing.assert_array_equal(result._data, expected)


JOINS = [
    ("concatenate", [(2, 3), (1, 3)], {}),
    ("concatenate", [(2, 3), (2, 0), (2, 1)], {"axis": -1}),
    ("concatenate", [(2, 3), (4,)], {"axis": None}),
    ("concatenate", [(2, 3)], {}),
    ("stack", [(2, 3), (2, 3)], {}),
    ("stack", [(2, 3), (2, 3)], {"axis": -1}),
    ("stack", [(), (), ()], {}),
    ("vstack", [(3,), (2, 3)], {}),
    ("hstack", [(3,), (2,)], {}),
    ("hstack", [(2, 3), (2, 1)], {}),
]


@pytest.mark.parametrize(("name", "shapes", "options"), JOINS)
def test_joins_do_what_numpy_does(name, shapes, options):
    xs = [numbers(*shape)._data + i for i, shape in enumerate(shapes)]
    expected = getattr(np, name)(xs, **options)
    np.testing.assert_array_equal(getattr(tj, name)(xs, **options)._data, expected)
    check_gradients(
        lambda *a: getattr(tj, name)([b * b for b in a], **options), *map(tj.dlarray, xs), order=2
    )


def test_joins_promote():
    result = joining.concatenate([np.zeros(2, np.float32), np.zeros(1, np.int64)])
    assert result._data.dtype == np.concatenate([np.zeros(2, np.float32), np.zeros(1, np.int64)]).dtype
    traced = tj.dlfeval(
        lambda a: joining.concatenate([a, np.zeros(1, np.int64)]), tj.dlarray(np.zeros(2, np.float32))
    )
    assert traced._data.dtype == result._data.dtype


SPLITS = [("split", 3), ("split", [1, 4]), ("split", [2, 1, 9]),
          ("array_split", 4), ("array_split", 7), ("array_split", [-1])]  # fmt: skip


@pytest.mark.parametrize(("name", "how"), SPLITS)
def test_splits_do_what_numpy_does(name, how):
    x = numbers(2, 6)
    parts = getattr(tj, name)(x, how, 1)
    expected = getattr(np, name)(x._data, how, 1)
    assert len(parts) == len(expected)
    for part, wanted in zip(parts, expected, strict=True):
        np.testing.assert_array_equal(part._data, wanted)


@pytest.mark.parametrize(
    ("result", "shape", "format"),
    [
        (movement.transpose, (4, 3, 1), "BCS"),
        (lambda x: movement.transpose(x, "bsc"), (4, 1, 3), "BSC"),
        (lambda x: movement.permute(x, (1, 0, 2)), (3, 1, 4), "CSB"),
        (lambda x: movement.swapaxes(x, "S", "B"), (4, 3, 1), "BCS"),
        (lambda x: movement.moveaxis(x, "B", 0), (4, 1, 3), "BSC"),
        (lambda x: movement.reshape(x, (3, 4)), (3, 4), None),
        (lambda x: movement.reshape(x, (1, 3, 4)), (1, 3, 4), None),
        (movement.squeeze, (3, 4), "CB"),
        (lambda x: movement.squeeze(x, "S"), (3, 4), "CB"),
        (lambda x: movement.expand_dims(x, 1), (1, 1, 3, 4), "SUCB"),
        (lambda x: movement.expand_dims(x, 1, "T"), (1, 1, 3, 4), "STCB"),
        (lambda x: movement.expand_dims(x, (0, -1), "TS"), (1, 1, 3, 4, 1), "TSCBS"),
        (lambda x: movement.expand_dims([1.0, 2.0], 0, "B"), (1, 2), "BU"),
        (lambda x: movement.broadcast_to(x, (2, 5, 3, 4)), (2, 5, 3, 4), "USCB"),
        (lambda x: movement.flip(x, "C"), (1, 3, 4), "SCB"),
        (lambda x: rolling.roll(x, 1, "B"), (1, 3, 4), "SCB"),
        (lambda x: rolling.roll(x, 1), (1, 3, 4), "SCB"),
        (lambda x: padding.pad(x, {"S": 1}), (3, 3, 4), "SCB"),
        (lambda x: padding.pad(x, 1, "edge"), (3, 5, 6), "SCB"),
        (lambda x: padding.repeat(x, 2, "C"), (1, 6, 4), "SCB"),
        (lambda x: padding.repeat(x, [2, 1, 1], "C"), (1, 4, 4), "SCB"),
        (lambda x: padding.repeat(x, 2), (24,), None),
        (lambda x: padding.tile(x, 2), (1, 3, 8), "SCB"),
        (lambda x: padding.tile(x, (2, 1, 1, 1)), (2, 1, 3, 4), "USCB"),
        (lambda x: joining.concatenate([x, np.zeros((1, 3, 1))], "B"), (1, 3, 5), "SCB"),
        (lambda x: joining.concatenate([np.zeros((1, 3, 1)), x], "B"), (1, 3, 5), "SCB"),
        (lambda x: joining.stack([x, x], 1), (1, 2, 3, 4), "SUCB"),
        (lambda x: joining.split(x, 2, "B")[0], (1, 3, 2), "SCB"),
    ],
)
def test_labels(result, shape, format):
    array = result(numbers(1, 3, 4, format="SCB"))
    assert (array.shape, array._format) == (shape, format)
    assert tj.dlfeval(result, numbers(1, 3, 4, format="SCB"))._format == format


X = numbers(2, 3, format="CB")
Y = numbers(2, 3, format="BC")


@pytest.mark.whole("messages")
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: movement.reshape(X, (4, 2)), DimsError, r"x has 6 elements \(2\(C\) x 3\(B\)\), but shape"),
        (lambda: movement.reshape(X, (-1, -1)), DimsError, "one size may be -1"),
        (lambda: movement.reshape(X, (-1, 4)), DimsError, "must divide"),
        (lambda: movement.reshape(X, (-2, -3)), DimsError, "same product"),
        (lambda: movement.reshape(X, "CB"), ArgumentError, "reshape: shape must be an integer or a tuple"),
        (lambda: movement.reshape(X, (2.0, 3)), ArgumentError, "tuple of integers"),
        (lambda: movement.transpose(X, (0, 0)), DimsError, "not an order of the 2 axes"),
        (lambda: movement.transpose(X, "CS"), DimsError, "not an order of the labels"),
        (lambda: movement.moveaxis(X, [0, 0], [0, 1]), DimsError, "moveaxis: .* each once"),
        (lambda: movement.broadcast_to(X, (3, 3)), DimsError, r"2\(C\) x 3\(B\) does not broadcast"),
        (lambda: movement.broadcast_to(X, (3,)), DimsError, "does not broadcast"),
        (lambda: movement.squeeze(X, "C"), DimsError, "squeeze: axis 0 .* has size 2"),
        (lambda: movement.expand_dims(X, 5), DimsError, "from -3 to 2"),
        (lambda: movement.expand_dims(X, (0, 0)), DimsError, "each once"),
        (lambda: movement.expand_dims(X, 0, "TS"), DimsError, "one for each of the 1 new axes"),
        (lambda: movement.expand_dims(X, 0, "B"), DimsError, "'B' 2 times"),
        (lambda: joining.concatenate([]), ArgumentError, "concatenate: arrays must be a list"),
        (lambda: joining.concatenate(3), ArgumentError, "at least one array"),
        (lambda: joining.concatenate([X, np.zeros((2, 4))]), DimsError, "all sizes except along axis 0"),
        (lambda: joining.concatenate([X, Y]), DimsError, "'CB' and 'BC'"),
        (lambda: joining.concatenate([1.0, 2.0]), DimsError, "a scalar has no axes"),
        (lambda: joining.stack([X, np.zeros((3, 2))]), DimsError, "all must have the same sizes"),
        (lambda: joining.stack([X, X], 4), DimsError, "stack: axis=4 must name places"),
        (lambda: joining.split(X, 2, 1), DimsError, "split: axis 1 .* does not divide into 2 equal parts"),
        (lambda: joining.array_split(X, 0), DimsError, "at least 1, not 0"),
        (lambda: rolling.roll(X, (1, 2, 3), (0, 1)), DimsError, "have different lengths"),
        (lambda: padding.pad(X, 1, "mean"), ArgumentError, "constant, edge, reflect, symmetric, wrap"),
        (lambda: padding.pad(X, -1), DimsError, "integers >= 0"),
        (lambda: padding.pad(X, 1.5), DimsError, "integers >= 0"),
        (lambda: padding.pad(X, (1, 2, 3)), ArgumentError, "pad: pad_width must be a number, a pair"),
        (lambda: padding.pad(X, 1, constant_values="a"), ArgumentError, "constant_values must be"),
        (lambda: padding.pad(X, 1, constant_values=X), ArgumentError, "constant_values must be"),
        (lambda: padding.pad(np.zeros((0, 2)), 1, "edge"), DimsError, "axis 0 .* is empty"),
        (lambda: padding.repeat(X, [1, 2, 3], 0), DimsError, "one for each of the 2 places"),
        (lambda: padding.repeat(X, -1, 0), DimsError, "one number >= 0"),
        (lambda: padding.tile(X, -1), DimsError, "tile: reps=-1"),
    ],
)  # fmt: skip
def test_messages(call, error, words):
    with pytest.raises(error, match=words):
        call()


A = Aval((2, 3), None, FLOAT)
STEPS = {"starts": (0, 0), "stops": (2, 3), "steps": (1, 1)}


@pytest.mark.parametrize(
    ("op", "avals", "params", "words"),
    [
        ("slice", [A], STEPS | {"starts": (0,)}, "one entry for each of the 2 axes"),
        ("slice", [A], STEPS | {"stops": (3, 3)}, r"range\(0, 3, 1\) leaves axis 0"),
        ("slice", [A], STEPS | {"steps": (0, 1)}, "step is not 0"),
        ("setslice", [A, Aval((4,), None, FLOAT)], STEPS, "value of size 4 does not broadcast to the 2x3"),
        ("assemble", [A], {"shape": (4, 3), "places": (((0, 0), (3, 3), (1, 1)),)}, "size 2x3 is to fill 3x3 places"),
        ("assemble", [A], {"shape": (1, 3), "places": (((0, 0), (2, 3), (1, 1)),)}, r"range\(0, 2, 1\) leaves axis 0"),
        ("pad", [A], {"widths": ((0, 0),), "value": 0.0}, "one pair"),
        ("pad", [A], {"widths": ((0, -1), (0, 0)), "value": 0.0}, "sizes >= 0"),
        ("concatenate", [A, Aval((2,), None, FLOAT)], {"axis": 0}, "array 1"),
    ],
)  # fmt: skip
def test_messages_of_ops(op, avals, params, words):
    with pytest.raises(DimsError, match=words):
        OPS[op].infer(*avals, **params)


def test_nothing_is_recorded_for_a_view_of_all_elements():
    def unchanged(x):
        y = movement.transpose(x, (0,))
        return movement.squeeze(movement.reshape(y, (3,)), ())

    x = tj.dlarray(np.ones(3))
    assert tj.dlfeval(lambda x: unchanged(x)._value is x._value, x)


def test_a_copy_of_all_elements_costs_nothing():
    def copied(x):
        return padding.tile(padding.pad(rolling.roll(x, 3), 0), 1).copy() * 2

    def direct(x):
        return x * 2

    x = tj.dlarray(np.ones(3))
    sources = [dlaccelerate(fun) for fun in (copied, direct)]
    for fun in sources:
        fun(x)
        fun(x)
    kernels = [
        [line.partition("#")[0] for line in fun.source().splitlines() if line.startswith("  ")]
        for fun in sources
    ]
    assert kernels[0] == kernels[1]
    assert [fun.stats.launches for fun in sources] == [1, 1]


@pytest.mark.parametrize("call", [lambda f, x: f(x), tj.dlfeval, lambda f, x: dlaccelerate(f)(x)])
def test_a_broadcast_array_is_read_only_also_where_it_repeats_nothing(call):
    def write(x):
        y = np.broadcast_to(x, x.shape)
        y[0] = 2.0
        return y

    with pytest.raises(WriteError, match="is read-only"):
        call(write, tj.dlarray(np.ones(3)))
    assert not np.broadcast_to(np.ones(3), 3).flags.writeable  # as in NumPy
