# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that a function makes in each call: which are constants, and which are not."""

import collections
import functools
import gc
import itertools
import queue
import warnings

import numpy as np
import pytest
from effort import sweep
from namespaces import Namespace, follow

import tracejit as tj
from tracejit import NotAcceleratedWarning, dlaccelerate, dlarray, dlfeval

X = np.array([1.0, 2.0, 3.0])


def mul(h, x):
    return h * x


MAKERS = {
    "np.zeros": lambda x: np.zeros(3),
    "np.linspace": lambda x: np.linspace(0, 1, 3),
    "np.tril": lambda x: np.tril(np.ones((3, 3))),
    "a view": lambda x: np.arange(6.0).reshape(2, 3)[1],
    "a view of a view": lambda x: np.arange(12.0).reshape(2, 6)[1:, ::2].T[:, 0],
    "np.array": lambda x: np.array([1.0, 2.0, 3.0]),
    "0-d": lambda x: np.array(2.0),
    "tj.zeros": lambda x: tj.zeros(3),
    "tj.zeros_like": lambda x: tj.zeros_like(x),
    "tj.arange": lambda x: tj.arange(3),
    "tj.dlarray": lambda x: dlarray(np.full(3, 2.0)),
    "a view in a dlarray": lambda x: dlarray(np.arange(6.0).reshape(2, 3)[0]),
}


class Cell:
    def __init__(self, h):
        self.h = h
        self.parts = [h, {"h": h}]

    def __call__(self, x):
        return self.h * x + self.parts[1]["h"]

    def step(self, h, x):
        self.h = h
        return self(x)


def through_generator(h, x):
    for _ in range(2):
        yield h * x


def in_place(h, x):
    y = h * x
    h[...] = 5.0
    return y + h * x


def deep(h, x, n=3):
    return deep(h, x, n - 1) if n else h * x


def nested(h, x):
    def inner(k):
        return h * x + k * x

    return inner(h)


def called(function, *args, **kwargs):
    return function(*args, **kwargs)


def reversed_as_well(h, x):
    return h * x + h[::-1] * x


def reshaped_as_well(h, x):
    return h * x + (h.reshape(-1, 1) + h.reshape(1, -1)) @ x + h[1:].sum() * h[:2].max()


def transposed_as_well(h, x):
    f = np.outer(h, h) + np.arange(9.0).reshape(3, 3)
    return f @ np.outer(x, x) @ f.T @ x + f[0] * x + f.T[0] * x


def grown(h, x):
    """Append what is computed of the last part, as loops over time steps do."""
    parts = [h]
    for _ in range(2):
        parts.append(0.5 * parts[-1] * x)
    return sum(parts)


def as_one_array(h, x):
    parts = [h, h + 1.0]
    return np.array([*parts, x.sum() * h]).sum(axis=0) * x + np.block([parts[0], h]).sum()


class Node:
    """A part of a tree, which refers to the part above."""

    def __init__(self, h, above=None):
        self.h = h
        self.above = above
        self.parts = []

    def add(self, h):
        self.parts.append(Node(h, self))
        return self

    def total(self):
        return self.h + sum(part.total() for part in self.parts)


def kept_error(h, x):
    try:
        raise ValueError(h)
    except ValueError as error:
        kept = error  # it refers to the frame, and the frame to it
    return h * x * len(kept.args)


def remembered(h, x):
    @functools.cache
    def power(n):
        return x * power(n - 1) if n else h

    return power(2)


WAYS = {
    "a function": mul,
    "a recursive function that remembers": remembered,
    "a list that grows": grown,
    "a dict that is filled": lambda h, x: called(lambda d: d.setdefault("x", x) * d["h"], {"h": h}),
    "an array of a list": as_one_array,
    "objects that refer to each other": lambda h, x: Node(h).add(h * x).add(h).total(),
    "an error that is kept": kept_error,
    "by keyword": lambda h, x: mul(x=x, h=h),
    "a lambda": lambda h, x: called(lambda k: k * x, h),
    "stars": lambda h, x: called(lambda *a, **k: mul(*a, **k), h, x=x),
    "a nested function": nested,
    "a recursive function": deep,
    "a new object": lambda h, x: Cell(h)(x),
    "a method": lambda h, x: Cell(np.ones(3)).step(h, x),
    "a generator": lambda h, x: sum(through_generator(h, x)),
    "a generator that stays open": lambda h, x: next(through_generator(h, x)),
    "a list": lambda h, x: called(lambda parts: sum(part * x for part in parts), [h, h]),
    "a dict": lambda h, x: called(lambda d: mul(d["h"], x), {"h": h}),
    "a partial": lambda h, x: functools.partial(mul, h)(x),
    "twice": lambda h, x: mul(h, x) + mul(h, x) + h,
    "mutated afterwards": lambda h, x: in_place(h, x) + h,
    "reversed as well": lambda h, x: reversed_as_well(np.arange(3.0), x),
    "reshaped as well": lambda h, x: reshaped_as_well(np.arange(3.0), x),
    "transposed as well": lambda h, x: transposed_as_well(np.arange(3.0), x),
    "given back": lambda h, x: called(lambda k: k, h),
}


def queued(store, items):
    for item in items:
        store.put(item)
    return store


TAKEN = {
    "queue": (lambda arrays: queued(queue.Queue(), arrays), lambda store: store.get()),
    "simple queue": (lambda arrays: queued(queue.SimpleQueue(), arrays), lambda store: store.get()),
    "queue of tuples": (
        lambda arrays: queued(queue.PriorityQueue(), enumerate(arrays)), lambda store: store.get()[1]
    ),
    "queue of dicts": (
        lambda arrays: queued(queue.Queue(), [{"a": a} for a in arrays]), lambda store: store.get()["a"]
    ),
    "iterator": (lambda arrays: iter([*arrays]), next),
    "generator": (lambda arrays: (a for a in [*arrays]), next),
    "list": (lambda arrays: [*arrays], lambda store: store.pop(0)),
    "deque": (collections.deque, lambda store: store.popleft()),
    "dict": (lambda arrays: dict(enumerate(arrays)), lambda store: store.pop(next(iter(store)))),
}  # fmt: skip


EACH_ONCE = (
    [*zip(itertools.cycle(MAKERS), WAYS)]
    if len(WAYS) > len(MAKERS)
    else [*zip(MAKERS, itertools.cycle(WAYS))]
)


class TestFreshArrays:
    """An array that is made while the function runs is a constant, whoever it is passed to."""

    @pytest.mark.sampled
    @pytest.mark.parametrize(("make", "way"), sweep(EACH_ONCE, [*itertools.product(MAKERS, WAYS)]))
    def test_is_a_constant(self, make, way):
        accelerated = follow(lambda x: WAYS[way](MAKERS[make](x), x), traces=2)
        assert not accelerated._cache.last_trace.state.names

    @pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
    def test_that_is_returned_as_well_is_a_constant(self, make):
        def program(x):
            h = make(x)
            return {"h": h, "parts": [h, mul(h, x)]}

        accelerated, expected = dlaccelerate(program), program(X)
        for n in range(5):
            result = accelerated(n * X)
            for h in (result["h"], result["parts"][0]):
                assert np.asarray(h).tolist() == np.asarray(expected["h"]).tolist()
                h[...] = 7.0  # of this call alone
            assert result["parts"][1].tolist() == (n * np.asarray(expected["parts"][1])).tolist()
        assert accelerated.stats.hits == 3

    def test_of_random_numbers_is_refused(self):
        noise = iter(np.random.default_rng(0).normal(size=(9, 3)))
        accelerated = dlaccelerate(lambda x: mul(np.array(next(noise)), x))
        accelerated(X)
        with pytest.warns(
            NotAcceleratedWarning,
            match=r"a constant of mul was .* \(3 of 3 elements differ\): an array that is created in each call has "
            r"different contents each time at .*test_fresh_arrays\.py:\d+\. Likely cause: random numbers",
        ):
            accelerated(X)
        assert len({tuple(accelerated(X).tolist()) for _ in range(5)}) == 5

    def test_that_changes_later_is_found_by_the_audit(self):
        times = iter(range(100))
        accelerated = dlaccelerate(lambda x: mul(np.full(3, float(next(times) > 3)), x))
        with pytest.warns(
            tj.ChangedTraceWarning, match="an array that is created in each call has different contents"
        ):
            for _ in range(16):
                next(times)
                accelerated(X)

    def test_kept_in_a_cache_by_the_first_call(self):
        cache = {}

        def grid(n):
            if n not in cache:
                cache[n] = np.linspace(0, 1, n)
            return cache[n]

        follow(lambda x: mul(grid(3), x), lambda: cache[3].fill(7.0), lambda: cache.update({3: np.ones(3)}))

    def test_kept_by_lru_cache(self):
        @functools.lru_cache
        def grid(n):
            return np.linspace(0, 1, n)

        follow(lambda x: mul(grid(3), x), lambda: grid(3).fill(7.0), traces=2)

    @pytest.mark.parametrize("view", [lambda a: a[0], lambda a: a.T[:, 0], lambda a: a.reshape(6)[:3]])
    def test_a_view_of_what_stays_is_no_constant(self, view):
        table = itertools.repeat(np.ones((2, 3)))
        accelerated = dlaccelerate(lambda x: mul(view(next(table)), x))
        accelerated(X)
        with pytest.warns(
            NotAcceleratedWarning,
            match="mul received a different array in each call at .*Likely cause: "
            "it is kept where no name leads to it, or is a view of an array that is",
        ):
            accelerated(X)
        next(table).fill(5.0)
        assert accelerated(X).tolist() == (5 * X).tolist()

    @pytest.mark.parametrize("view", [lambda a: a[0], lambda a: a.T[:, 0], lambda a: a.reshape(6)[:3]])
    def test_a_view_of_what_lru_cache_remembers(self, view):
        table = functools.lru_cache(lambda: np.ones((2, 3)))
        follow(lambda x: mul(view(table()), x), lambda: table().fill(5.0), traces=2)

    @pytest.mark.parametrize("read", [np.frombuffer, lambda b: np.array(np.frombuffer(b))])
    def test_the_memory_of_something_else_is_no_constant(self, read):
        buffer = bytearray(np.ones(3).tobytes())
        fives = np.full(3, 5.0).tobytes()
        follow(lambda x: mul(read(buffer), x), lambda: buffer.__setitem__(slice(None), fives))

    @pytest.mark.parametrize(("fill", "take"), TAKEN.values(), ids=TAKEN)
    def test_what_was_there_before_and_is_taken_away(self, fill, take):
        """The first arrays hold the same, as constants would; those that follow do not."""
        store = fill(np.full(3, float(max(0, n - 4))) for n in range(20))
        gc.collect()  # after which Python no longer tracks tuples and dicts of arrays
        accelerated = dlaccelerate(lambda x: mul(take(store), x), audit=False)
        with pytest.warns(NotAcceleratedWarning):
            got = [accelerated(np.ones(3)).tolist()[0] for _ in range(20)]
        assert got == [max(0.0, n - 4.0) for n in range(20)]

    def test_left_in_a_global_and_read_by_the_next_call(self):
        module = Namespace("""
last = np.zeros(3)
def helper(h, x): return h * x
def f(x):
    global last
    before = last
    last = np.full(3, before[0] + 1)
    return helper(last, x) + before
""")
        accelerated = dlaccelerate(module["f"])
        found = [accelerated(np.ones(1)).tolist()[0] for _ in range(12)]
        assert found == [2.0 * n + 1 for n in range(12)]
        assert accelerated.stats.hits

    def test_left_in_a_global_that_another_function_reads(self):
        module = Namespace("""
last = None
def helper(h, x): return h * x
def f(x):
    global last
    last = np.full(3, 2.0)
    return helper(last, x)
def g(x): return last * x
""")
        f, g = dlaccelerate(module["f"]), dlaccelerate(module["g"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotAcceleratedWarning)
            for n in range(12):
                assert f(X).tolist() == (2 * X).tolist()
                module["last"][:] = n
                assert g(X).tolist() == (n * X).tolist()

    @pytest.mark.sampled
    @pytest.mark.parametrize("fill", [
        "h[:] = w", "h[:2] = w[:2]", "h[...] = w.T", "h += w", "np.copyto(h, w)", "put(h, w)", "h = np.array([*w])",
        "h = np.array([a for a in w])", "a, b, c = w; h = np.array([a, b, c])", "h = box(w).w.copy()",
        "h[:] = (w, 1)[0]", "h = np.array(list(map(float, w)))", "h = (lambda: w)() * 1.0", "h[:] = kept[0]",
        "for k in kept: h += k", "h = w[:] * 1.0", "h = tj.dlarray(w) if False else np.add(w[:], 0)",
        "h = tj.dlarray(np.array(w[:]))", "h = tj.dlarray(w) * 1", "h = w.T * 1.0", "h = same(w) * 1.0",
        "rebind(put, h, w)", "h = partial(np.add, w)(0)", "h = Box.make(w)", "h = stars(*[w])", "h = default()",
        "h = np.stack([w])[0]",
        "h[1:] = same(w)[1:]", "h = tj.dlarray(w); h = h + 0", "h = w if False else w.reshape(3) + 0",
        "h = np.array([*zip(w, w)])[:, 0]", "h.flat = w", "h.put([0, 1, 2], w)", "h = np.where(h == 0, w, h)",
    ])  # fmt: skip
    def test_filled_from_state_that_the_trace_reads_too(self, fill):
        """What NumPy writes into a new array is compared, however it gets there."""
        module = Namespace(f"""
from functools import partial
w = np.ones(3)
kept = [w]
class box:
    def __init__(self, w): self.w = w
def put(h, w): h[:] = w
def same(w): return w
def rebind(f, h, w):
    if h.size: f = np.copyto
    f(h, w)
def stars(*args): return np.array(args[0])
def default(w=w): return w * 1.0
class Box:
    @staticmethod
    def make(w): return w.copy()
def helper(h, x, w): return h * x + w
def f(x):
    h = np.zeros(3)
    {fill}
    return helper(h, x, w)
""")
        follow(module["f"], lambda: module["w"].fill(5.0), lambda: module["w"].fill(2.0))

    def test_beside_weights_that_change(self):
        """What is only an operand of the trace, or of helpers that are watched, stays an input."""
        module = Namespace("""
w = np.ones((3, 3))
class Model:
    def __init__(self): self.w = np.ones((3, 3))
    def cell(self, h, x, w): return tj.tanh(h @ self.w + x @ w)
model = Model()
def cell(h, x, w): return h @ w + x
def f(x):
    h = tj.zeros(3)
    return cell(cell(h, x, w), x, model.w) + model.cell(h, x, w)
""")
        changes = [lambda n=n: module["w"].fill(n) for n in range(2, 6)]
        follow(module["f"], *changes, lambda: setattr(module["model"], "w", np.eye(3)), traces=2)

    def test_beside_a_large_array_that_is_sliced(self):
        w = np.ones(10_000)

        def f(x):
            h = np.zeros(3)
            h[:] = w[:3]
            return mul(h, x) + w.sum() * 0 + (x * w[:3])

        accelerated = dlaccelerate(f)
        for n in range(4):
            w[:3] = n
            assert accelerated(X).tolist() == (2 * n * X).tolist()

    def test_many_programs(self):
        """Functions put together at random give what the plain function gives, whatever changes between calls."""
        rng = np.random.default_rng(0)
        makers, ways = [*MAKERS.values()], [*WAYS.values()]
        for _ in range(sweep(8, 60, sample=2)):
            state = {"w": np.ones(3), "kept": [np.ones(3)]}
            chosen = [(makers[rng.integers(len(makers))], ways[rng.integers(len(ways))]) for _ in range(3)]
            hows = rng.integers(0, 4, 3)

            def f(x, state=state, chosen=chosen, hows=hows):
                for (make, way), how in zip(chosen, hows, strict=True):
                    h = make(x)
                    if how == 1 and type(h) is np.ndarray:
                        h[...] = state["w"][0] * 1.5
                    if how == 2 and type(h) is np.ndarray and h.shape == (3,):
                        h[:] = state["kept"][0]
                    x = way(h, x) + (mul(state["w"], x) if how == 3 else state["kept"][0])
                return x

            accelerated = dlaccelerate(f, audit=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotAcceleratedWarning)
                for _ in range(14):
                    change = rng.integers(0, 8)
                    if change == 0:
                        state["w"][rng.integers(3)] = rng.normal()
                    elif change == 1:
                        state["kept"][0] = rng.normal(size=3)
                    elif change == 2:
                        state["kept"][0][1] += 1
                    got, wanted = np.asarray(accelerated(X)), np.asarray(dlfeval(f, X))
                    np.testing.assert_allclose(got, wanted, rtol=1e-12)


VIEWS = {
    "tj.reshape": lambda x: (x * 2, tj.reshape(np.arange(4.0), (2, 2))),
    "a row": lambda x: (x * 2, tj.reshape(np.arange(4.0), (2, 2))[0]),
    "np.broadcast_arrays": lambda x: np.broadcast_arrays(x, [[1], [2]]),
    "np.atleast_2d": lambda x: np.atleast_2d(x, [1, 2]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_result_that_is_a_view_of_a_fresh_array(name):
    """Nobody has the array besides the result, which gets memory of its own."""
    f = dlaccelerate(VIEWS[name])
    results = [f(X + i) for i in range(4)]
    assert f.stats.hits == 2
    for i, (first, second) in enumerate(results):
        for found, expected in zip((first, second), VIEWS[name](X + i), strict=True):
            assert np.array_equal(np.asarray(found), np.asarray(expected))


class Finalised:
    """Holds itself, so that it ends where garbage is collected: when a recording asks who has its array."""

    def __init__(self, function, array):
        self.itself, self.function, self.array = self, function, array

    def __del__(self):
        self.function(X)


def test_a_finaliser_that_computes_while_a_recording_ends():
    w = np.array([2.0, 3.0, 4.0])
    ended = []
    other = dlaccelerate(lambda x: ended.append((x * w).sum().item()))

    @dlaccelerate
    def fun(x):
        return x * Finalised(other, np.linspace(1, 2, 3)).array

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)  # the finaliser keeps numbers that vary
        for n in range(5):
            assert fun(n * X).tolist() == (n * X * np.linspace(1, 2, 3)).tolist()
    assert ended[0] == 20.0
    assert fun.stats.hits == 3
