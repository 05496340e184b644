# SPDX-License-Identifier: BSD-3-Clause
"""Random graphs, strided inputs and comparisons, shared by the tests of the compiler."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.autodiff import gradient
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value
from tracejit.ops.op import Layout

FLOATS = ("float64", "float32")
INTEGERS = ("int64", "int32", "int8", "uint8")
CONTINUOUS = ("tanh", "sin", "cos", "arctan", "expm1", "exp", "erf", "arcsinh")
EXACT = ("neg", "abs", "square", "sign")
PAIRS = ("add", "sub", "mul", "maximum", "minimum")
COMPARISONS = ("less", "less_equal", "greater", "equal", "not_equal")


class Maker:
    """Makes a random graph, with choices by `rnd`.

    Inputs hold small integers, so that arithmetic is exact and may be compared exactly. `exact` has the
    values for which this holds; ops with jumps (comparisons, casts to integers) are only applied to those,
    because a difference in rounding could change their results.
    """

    def __init__(self, rnd: random.Random, dtypes: Sequence[str] = FLOATS) -> None:
        self.rnd = rnd
        self.dtypes = dtypes
        self.graph = Graph()
        self.b = Builder(self.graph)
        self.values: list[Value] = []
        self.exact: set[Value] = set()
        self.arrays: list[np.ndarray] = []
        self.steps: list[Callable[[], Value | None]] = [
            self.unary, self.unary, self.pair, self.pair, self.pair, self.pair, self.reduce, self.reduce,
            self.normalise, self.transpose, self.reshape, self.broadcast, self.slice, self.setslice,
            self.concatenate, self.pad, self.matmul, self.take, self.where, self.compare, self.cast,
            self.constant, self.scatter, self.weigh, self.sum_of_products,
            self.sum_of_slices,
        ]  # fmt: skip

    def shape(self) -> tuple[int, ...]:
        return tuple(self.rnd.choice((1, 2, 2, 3, 3, 4)) for _ in range(self.rnd.choice((0, 1, 2, 2, 3))))

    def numbers(self, shape: tuple[int, ...], dtype: Any, low: int = -3, high: int = 3) -> np.ndarray:
        size = int(np.prod(shape))
        drawn = [self.rnd.randint(low, high) for _ in range(size)]
        return np.array(drawn, np.int64).astype(dtype).reshape(shape)

    def input(self, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Value:
        shape = self.shape() if shape is None else shape
        data = self.numbers(shape, np.dtype(dtype or self.rnd.choice(self.dtypes)))
        self.arrays.append(data)
        return self.keep(self.b.input(Aval(shape, None, data.dtype)), True)

    def keep(self, value: Value, exact: bool) -> Value:
        self.values.append(value)
        if exact:
            self.exact.add(value)
        return value

    def derived(self, value: Value, *sources: Value) -> Value:
        return self.keep(value, all(v in self.exact for v in sources))

    def pick(self, accept: Callable[[Value], bool] = lambda v: True) -> Value | None:
        # Mostly one of the newest values, so that chains grow.
        candidates = [v for v in self.values if accept(v)]
        if not candidates:
            return None
        return self.rnd.choice(candidates[-4:]) if self.rnd.random() < 0.6 else self.rnd.choice(candidates)

    def partner(self, x: Value) -> Value:
        """Return a value that broadcasts with x."""

        def fits(v: Value) -> bool:
            try:
                np.broadcast_shapes(v.shape, x.shape)
            except ValueError:
                return False
            return v.dtype.kind == x.dtype.kind

        y = self.pick(fits)
        if y is None or self.rnd.random() < 0.15:
            drop = self.rnd.randint(0, x.ndim)
            return self.input(tuple(self.rnd.choice((1, n, n)) for n in x.shape[drop:]))
        return y

    def unary(self) -> Value | None:
        x = self.pick(lambda v: v.dtype.kind == "f")
        if x is None:
            return None
        if self.rnd.random() < 0.5:
            return self.keep(getattr(self.b, self.rnd.choice(CONTINUOUS))(self.b.tanh(x)), False)
        name = self.rnd.choice(EXACT)
        return None if name == "sign" and x not in self.exact else self.derived(getattr(self.b, name)(x), x)

    def pair(self) -> Value | None:
        x = self.pick(lambda v: v.dtype.kind != "b")
        if x is None:
            return None
        if self.rnd.random() < 0.2:
            return self.derived(
                getattr(self.b, self.rnd.choice(PAIRS))(x, self.rnd.choice((0.0, 1.0, 2.0, -0.5))), x
            )
        y = self.partner(x)
        if x.dtype.kind == "f" and self.rnd.random() < 0.1:
            return self.keep(self.b.div(x, self.b.add(self.b.square(y), 1.0)), False)
        return self.derived(getattr(self.b, self.rnd.choice(PAIRS))(x, y), x, y)

    def reduce(self) -> Value | None:
        x = self.pick()
        assert x is not None
        axes = tuple(a for a in range(x.ndim) if self.rnd.random() < 0.5)
        names = ["sum", "sum", "max", "min"] + ([] if x.dtype.kind == "f" else ["any", "all"])
        if 0 in x.shape:
            names = ["sum"]
        y = getattr(self.b, self.rnd.choice(names))(x, axes=axes, keepdims=self.rnd.random() < 0.5)
        return self.derived(y, x)

    def normalise(self) -> Value | None:
        x = self.pick(lambda v: v.dtype.kind == "f" and v.ndim > 0 and 0 not in v.shape)
        if x is None:
            return None
        axis = x.ndim - 1 if self.rnd.random() < 0.7 else self.rnd.randrange(x.ndim)
        b, fold = self.b, {"axes": (axis,), "keepdims": True}
        if self.rnd.random() < 0.5:
            e = b.exp(b.sub(x, b.max(x, **fold)))
            return self.keep(b.div(e, b.sum(e, **fold)), False)
        centred = b.sub(x, b.div(b.sum(x, **fold), float(x.shape[axis])))
        return self.keep(b.div(centred, b.sqrt(b.add(b.sum(b.square(centred), **fold), 1.0))), False)

    def transpose(self) -> Value | None:
        x = self.pick(lambda v: v.ndim > 1)
        if x is None:
            return None
        axes = list(range(x.ndim))
        self.rnd.shuffle(axes)
        return self.derived(self.b.transpose(x, axes=tuple(axes)), x)

    def reshape(self) -> Value | None:
        x = self.pick()
        assert x is not None
        extents = [n for n in x.shape if n != 1 or self.rnd.random() < 0.5]
        how = self.rnd.randrange(3)
        if how == 0 and len(extents) > 1:
            at = self.rnd.randrange(len(extents) - 1)
            extents[at : at + 2] = [extents[at] * extents[at + 1]]
        elif how == 1:
            extents.insert(self.rnd.randint(0, len(extents)), 1)
        elif extents and 0 not in extents:
            at = self.rnd.randrange(len(extents))
            n = extents[at]
            m = self.rnd.choice([k for k in range(1, n + 1) if n % k == 0])
            extents[at : at + 1] = [m, n // m]
        if len(extents) > 4:
            return None
        return self.derived(self.b.reshape(x, shape=tuple(extents)), x)

    def broadcast(self) -> Value | None:
        x = self.pick(lambda v: v.ndim < 4)
        if x is None:
            return None
        shape = tuple(self.rnd.choice((2, 3)) if n == 1 and self.rnd.random() < 0.7 else n for n in x.shape)
        if x.ndim < 3:
            shape = tuple(self.rnd.choice((1, 2, 3)) for _ in range(self.rnd.randint(0, 1))) + shape
        return self.derived(self.b.broadcast_to(x, shape=shape), x)

    def places(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        starts, stops, steps = [], [], []
        for n in shape:
            step = self.rnd.choice((1, 1, 1, 2, -1, -2))
            first, last = sorted((self.rnd.randint(0, n), self.rnd.randint(0, n)))
            if self.rnd.random() < 0.4:
                first, last = 0, n
            if step < 0:
                first, last = last - 1, first - 1
                if first < 0:
                    first, last, step = 0, 0, 1
            starts.append(first)
            stops.append(last)
            steps.append(step)
        return {"starts": tuple(starts), "stops": tuple(stops), "steps": tuple(steps)}

    def slice(self) -> Value | None:
        x = self.pick(lambda v: v.ndim > 0)
        return None if x is None else self.derived(self.b.slice(x, **self.places(x.shape)), x)

    def setslice(self) -> Value | None:
        x = self.pick(lambda v: v.ndim > 0)
        if x is None:
            return None
        places = self.places(x.shape)
        part = self.b.slice(x, **places)
        y = self.pick(
            lambda v: v.dtype == x.dtype and v.ndim <= x.ndim and v.shape == part.shape[x.ndim - v.ndim :]
        )
        y = part if y is None else y
        return self.derived(self.b.setslice(x, y, **places), x, y)

    def concatenate(self) -> Value | None:
        x = self.pick(lambda v: v.ndim > 0)
        if x is None:
            return None
        axis = self.rnd.randrange(x.ndim)

        def fits(v: Value) -> bool:
            return v.ndim == x.ndim and all(
                n == m for a, (n, m) in enumerate(zip(v.shape, x.shape, strict=True)) if a != axis
            )

        parts = [x] + [self.pick(fits) or x for _ in range(self.rnd.randint(0, 2))]
        return self.derived(self.b.concatenate(*parts, axis=axis), *parts)

    def pad(self) -> Value | None:
        x = self.pick(lambda v: v.ndim > 0 and v.aval.size <= 30)
        if x is None:
            return None
        widths = tuple((self.rnd.randint(0, 1), self.rnd.randint(0, 2)) for _ in x.shape)
        return self.derived(self.b.pad(x, widths=widths, value=self.rnd.choice((0.0, 1.0, 2.0))), x)

    def matmul(self) -> Value | None:
        x = self.pick(lambda v: v.ndim > 1 and v.dtype.kind != "b")
        if x is None:
            return None
        k = x.shape[-1]
        y = self.pick(lambda v: v.ndim == 2 and v.shape[0] == k and v.dtype.kind == x.dtype.kind)
        if y is None:
            y = self.pick(lambda v: v.ndim == 2 and v.shape[1] == k and v.dtype.kind == x.dtype.kind)
            y = self.input((k, self.rnd.randint(1, 3))) if y is None else self.b.transpose(y, axes=(1, 0))
            if y in self.values or all(v in self.exact for v in (y.node.inputs if y.node else ())):
                self.exact.add(y)
        return self.derived(self.b.matmul(x, y), x, y)

    def sum_of_products(self) -> Value | None:
        x = self.pick(lambda v: v.ndim == 2 and v.dtype.kind == "f")
        if x is None:
            return None
        b, dtype = self.b, str(x.dtype)
        rows, columns = x.shape[0], self.rnd.randint(1, 4)
        terms = [b.matmul(x, self.input((x.shape[1], columns), dtype))]
        for _ in range(self.rnd.randint(1, 3)):
            k = self.rnd.randint(1, 3)
            terms.append(b.matmul(self.input((rows, k), dtype), self.input((k, columns), dtype)))
        if self.rnd.random() < 0.5:
            terms.append(self.input((rows, columns), dtype))
        if self.rnd.random() < 0.3:
            self.derived(self.rnd.choice(terms), x)
        while len(terms) > 1:
            self.rnd.shuffle(terms)
            terms.append(b.add(terms.pop(), terms.pop()))
        return self.derived(terms[0], x)

    def sum_of_slices(self) -> Value | None:
        x = self.pick(lambda v: v.ndim > 0 and v.dtype.kind == "f")
        if x is None:
            return None
        b = self.b
        terms = [x] if self.rnd.random() < 0.5 else []
        zeros = b.broadcast_to(b.constant(np.zeros((), x.dtype)), shape=x.shape)
        for _ in range(self.rnd.randint(1, 4)):
            places = self.places(x.shape)
            part = b.slice(x, **places)
            if self.rnd.random() < 0.2:  # a value that broadcasts
                part = b.sum(part, axes=(0,), keepdims=self.rnd.random() < 0.5)
            terms.append(b.setslice(zeros, part, **places))
        if self.rnd.random() < 0.3:
            self.derived(b.add(terms[-1], self.rnd.choice(terms)), x)
        while len(terms) > 1:
            self.rnd.shuffle(terms)
            terms.append(b.add(terms.pop(), terms.pop()))
        return self.derived(terms[0], x)

    def index(self, n: int, shape: tuple[int, ...]) -> Value:
        data = self.numbers(shape, np.int64, -n, n - 1)
        if self.rnd.random() < 0.5:
            return self.b.constant(data)
        self.arrays.append(data)
        return self.b.input(Aval(shape, None, data.dtype))

    def take(self) -> Value | None:
        x = self.pick(lambda v: v.ndim > 0 and 0 not in v.shape)
        if x is None:
            return None
        axis = self.rnd.randrange(x.ndim)
        shape = self.rnd.choice(((), (2,), (3,), (2, 2)))
        return self.derived(self.b.take(x, self.index(x.shape[axis], shape), axis=axis), x)

    def scatter(self) -> Value | None:
        x = self.pick(lambda v: v.ndim > 0 and 0 not in v.shape and v.dtype.kind == "f")
        if x is None:
            return None
        axis = self.rnd.randrange(x.ndim)
        index = self.index(x.shape[axis], (self.rnd.randint(1, 4),))
        v = self.b.take(x, index, axis=axis)
        return self.derived(
            getattr(self.b, self.rnd.choice(("scatter_add", "put")))(x, index, v, axis=axis), x
        )

    def where(self) -> Value | None:
        x = self.pick()
        assert x is not None
        y = self.partner(x) if x.dtype.kind != "b" else x
        shape = np.broadcast_shapes(x.shape, y.shape)
        condition = self.pick(lambda v: v.dtype.kind == "b" and v.shape == shape[len(shape) - v.ndim :])
        if condition is None:
            condition = self.b.greater(self.input(shape), 0.0)
        return self.derived(self.b.where(condition, x, y), x, y)

    def compare(self) -> Value | None:
        x = self.pick(lambda v: v in self.exact)
        if x is None:
            return None
        y = self.partner(x) if x.dtype.kind != "b" else x
        if y not in self.exact:
            return None
        return self.keep(getattr(self.b, self.rnd.choice(COMPARISONS))(x, y), True)

    def cast(self) -> Value | None:
        x = self.pick()
        assert x is not None
        targets = FLOATS
        if x.dtype.kind != "f":
            targets = (*FLOATS, *INTEGERS, "bool")
        elif x in self.exact:
            targets = (*FLOATS, "int64", "bool")  # the other integer types do not hold all values
        return self.derived(self.b.cast(x, dtype=np.dtype(self.rnd.choice(targets))), x)

    def constant(self) -> Value | None:
        shape = self.shape()
        if self.rnd.random() < 0.2:
            shape = (10, 7)  # too large to be folded
        return self.keep(self.b.constant(self.numbers(shape, self.rnd.choice(self.dtypes))), True)

    def weigh(self) -> Value | None:
        """A broadcast that is reduced again, along new axes, old axes, or both."""
        x = self.pick(lambda v: v.ndim < 3 and v.dtype.kind == "f")
        if x is None:
            return None
        wide = self.b.broadcast_to(x, shape=(self.rnd.choice((2, 3)), *x.shape))
        axes = tuple(a for a in range(wide.ndim) if self.rnd.random() < 0.5)
        return self.derived(self.b.sum(wide, axes=axes, keepdims=self.rnd.random() < 0.3), x)

    def stop(self) -> Value | None:
        x = self.pick(lambda v: v.dtype.kind == "f")
        return None if x is None else self.derived(self.b.stop_gradient(x), x)

    def run(self, steps: int, differentiate: float = 0.3) -> "Maker":
        for _ in range(self.rnd.randint(1, 3)):
            self.input()
        while len(self.values) < steps:
            value = self.rnd.choice(self.steps)()
            if value is not None and (value.ndim > 4 or value.aval.size > 200):
                self.values.remove(value)
        pool = self.values
        outputs = [self.pick() for _ in range(self.rnd.randint(1, 4))]
        if self.rnd.random() < 0.3:
            outputs.append(self.rnd.choice(outputs))
        if self.rnd.random() < differentiate:
            self.differentiate(pool)
        extra = [v for v in self.values if v not in self.exact][-2:]
        self.graph.outputs = [v for v in (*outputs, *extra) if v is not None]
        return self

    def differentiate(self, pool: Sequence[Value]) -> None:
        target = self.pick(lambda v: v.dtype.kind == "f" and v.node is not None)
        wrt = [v for v in self.graph.inputs if v.dtype.kind == "f"]
        if target is None:
            return
        ones = self.b.broadcast_to(self.b.constant(np.ones((), target.dtype)), shape=target.shape)
        for value in gradient(self.b, [target], [ones], wrt):
            if value is not None:
                self.values.append(value)


def evaluate_all(graph: Graph, arrays: Sequence[np.ndarray]) -> dict[Value, np.ndarray]:
    """Return every value of a graph by the references."""
    data: dict[Value, Any] = dict(zip(graph.inputs, arrays, strict=True))
    data.update((value, value.data) for value in graph.constants)
    for node in graph.nodes:
        data[node.output] = np.asarray(node.op.numpy(*[data[v] for v in node.inputs], **node.params))
    return data


def strided(rnd: random.Random, array: np.ndarray) -> tuple[np.ndarray, Layout]:
    """Return an equal array with axes permuted in memory, gaps and negative strides, and its layout."""
    order = list(range(array.ndim))
    rnd.shuffle(order)
    steps = [rnd.choice((1, 1, 2, -1, -2)) for _ in order]
    memory = np.empty([array.shape[a] * abs(s) + 1 for a, s in zip(order, steps, strict=True)], array.dtype)
    memory.reshape(-1).view(np.uint8)[...] = 0x7F  # gaps between elements hold values that no test expects
    spans = [slice(None, n * s, s) if s > 0 else slice(-1, -n * -s - 1, s)
             for n, s in ((array.shape[a], s) for a, s in zip(order, steps, strict=True))]  # fmt: skip
    view = memory[tuple(spans)].transpose(np.argsort(order)) if array.ndim else memory
    view[...] = array
    itemsize = array.dtype.itemsize
    return view, Layout(0, array.shape, tuple(s // itemsize for s in view.strides))


def random_case(
    rnd: random.Random, steps: int = 12, dtypes: Sequence[str] = FLOATS, stops: bool = False
) -> Maker | None:
    """Return a graph whose values stay in a range where rounding can be judged, or None."""
    maker = Maker(rnd, dtypes)
    if stops:
        maker.steps.append(maker.stop)
    maker.run(steps)
    data = evaluate_all(maker.graph, maker.arrays)
    for value in maker.graph.nodes:
        out = data[value.output]
        if out.dtype.kind == "f" and out.size and not np.abs(out).max() < 1e5:
            return None
    return maker


def max_of(graph: Graph, arrays: Sequence[np.ndarray]) -> float:
    """Return the largest magnitude of all floating-point values, 1 at least."""
    data = evaluate_all(graph, arrays).values()
    return max([1.0, *[float(np.abs(a).max()) for a in data if a.dtype.kind == "f" and a.size]])


def assert_same(maker: Maker, results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    """Compare outputs: exactly where the arithmetic is exact, otherwise relative to the largest value."""
    scale = max_of(maker.graph, maker.arrays)
    values = (v for node in maker.graph.nodes for v in node.outputs)
    single = any(v.dtype == np.float32 for v in (*maker.graph.inputs, *values))
    assert len(results) == len(expected) == len(maker.graph.outputs)
    for number, (value, have, want) in enumerate(zip(maker.graph.outputs, results, expected, strict=True)):
        what = f"output {number} of\n{maker.graph}"
        assert have.shape == want.shape == value.shape, what
        assert have.dtype == want.dtype == value.dtype, what
        if value in maker.exact or value.dtype.kind != "f":
            np.testing.assert_array_equal(have, want, err_msg=what)
        else:
            eps = 1e-4 if single else 1e-11
            np.testing.assert_allclose(have, want, rtol=0, atol=eps * scale, err_msg=what)
