# SPDX-License-Identifier: BSD-3-Clause
"""Draws from NumPy's and Python's generators in accelerated functions: the plain function's numbers and states."""

import copy
import functools
import random
import threading
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.functions.numpy_api import random_numbers, random_of_python

X = np.array([0.5, -1.25, 2.0])

# Calls with plain arguments, by method; G is a generator of NumPy's, new or old, or np.random.
OF_BOTH = {
    "beta": "G.beta(1.5, 2.0, size=2)", "binomial": "G.binomial(5, 0.3, 4)", "chisquare": "G.chisquare(2.0)",
    "choice": "G.choice(5), G.choice([1.5, 2.5], 3), G.choice(4, 2, replace=False), G.choice(3, p=[0.2, 0.3, 0.5])",
    "dirichlet": "G.dirichlet([1.0, 2.0], size=2)", "exponential": "G.exponential(), G.exponential(2.0, (2, 1))",
    "f": "G.f(2.0, 3.0)", "gamma": "G.gamma(2.0, 3.0, 2)", "geometric": "G.geometric(0.3)", "gumbel": "G.gumbel()",
    "hypergeometric": "G.hypergeometric(5, 4, 3)", "laplace": "G.laplace(1.0, 2.0, size=3)", "logistic": "G.logistic()",
    "lognormal": "G.lognormal(0.1, 0.2)", "logseries": "G.logseries(0.5, 2)",
    "multinomial": "G.multinomial(6, [0.2, 0.3, 0.5])", "negative_binomial": "G.negative_binomial(3, 0.5)",
    "multivariate_normal": "G.multivariate_normal([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]])",
    "noncentral_chisquare": "G.noncentral_chisquare(2.0, 1.0)", "noncentral_f": "G.noncentral_f(2.0, 3.0, 1.0)",
    "normal": "G.normal(), G.normal(1.0, 2.0), G.normal(size=3), G.normal([0.0, 1.0], 2.0)", "pareto": "G.pareto(3.0)",
    "permutation": "G.permutation(4), G.permutation([3.0, 1.0, 2.0])", "poisson": "G.poisson(), G.poisson(3.0, 2)",
    "power": "G.power(2.0)", "random": "G.random(), G.random(3), G.random((2, 2))", "rayleigh": "G.rayleigh(2.0)",
    "standard_cauchy": "G.standard_cauchy(2)", "standard_exponential": "G.standard_exponential()",
    "standard_gamma": "G.standard_gamma(2.0)", "standard_normal": "G.standard_normal(), G.standard_normal((2, 3))",
    "standard_t": "G.standard_t(3.0)", "triangular": "G.triangular(0.0, 1.0, 2.0)",
    "uniform": "G.uniform(), G.uniform(-1.0, 1.0, 2)", "vonmises": "G.vonmises(0.0, 1.0)", "wald": "G.wald(1.0, 2.0)",
    "weibull": "G.weibull(2.0)", "zipf": "G.zipf(2.0)",
}  # fmt: skip
OF_NEW = {
    "integers": "G.integers(5), G.integers(1, 7, 3), G.integers(0, 2, 4, dtype=bool), G.integers(3, endpoint=True)",
    "multivariate_hypergeometric": "G.multivariate_hypergeometric([3, 4], 5)",
    "permuted": "G.permuted([1.0, 2.0, 3.0])",
    "single precision": "G.random(3, dtype=np.float32), G.standard_normal(dtype=np.float32)",
}
OF_OLD = {
    "rand": "G.rand(), G.rand(2, 3)", "randint": "G.randint(5), G.randint(1, 7, 3)", "randn": "G.randn(), G.randn(2)",
    "random_integers": "G.random_integers(5)", "random_sample": "G.random_sample(), G.random_sample(3)",
    "tomaxint": "G.tomaxint(2)",
}  # fmt: skip
OF_PYTHON = {
    "betavariate": "G.betavariate(1.0, 2.0)", "choice": "x[G.choice([0, 2])], G.choice(range(3, 30, 4)), G.choice(x)",
    "choices": "x * G.choices([1.0, 2.0], k=2)[0]", "expovariate": "G.expovariate(2.0)",
    "gammavariate": "G.gammavariate(2.0, 1.0)", "gauss": "G.gauss(0.0, 1.0), G.gauss(1.0, 2.0)",
    "getrandbits": "G.getrandbits(10)", "lognormvariate": "G.lognormvariate(0.0, 1.0)",
    "normalvariate": "G.normalvariate(0.0, 1.0)", "paretovariate": "G.paretovariate(3.0)",
    "randint": "G.randint(1, 6), x[G.randint(0, 2)]", "random": "G.random(), x * G.random()",
    "randrange": "G.randrange(10), G.randrange(2, 20, 3)", "sample": "x[G.sample(range(3), 2)]",
    "shuffle": "i = [0, 1, 2]; G.shuffle(i); x[i] * i[0]",
    "triangular": "G.triangular(0.0, 1.0, 0.5)", "uniform": "G.uniform(1.0, 2.0)",
    "vonmisesvariate": "G.vonmisesvariate(0.0, 1.0)", "weibullvariate": "G.weibullvariate(1.0, 2.0)",
}  # fmt: skip
# With traced parameters.
TRACED_OF_BOTH = (
    "G.normal(x, 2.0)", "G.normal(x.sum(), 1.0)", "G.normal(x[0], np.abs(x))", "G.normal(scale=np.abs(x))",
    "G.normal(float(x[0]), 1.0, size=2)", "G.normal([x[0], 1.0], 0.5)", "G.uniform(x, x + 2.0)",
    "G.uniform(-99.0, 3 + x)",
    "G.uniform(high=x[0] + 2.0)", "G.exponential(np.abs(x))", "G.laplace(x, 2.0)", "G.gumbel(x, 2.0)", "G.logistic(x)",
    "G.rayleigh(np.abs(x))", "G.lognormal(x, 0.5)", "G.gamma(2.0, np.abs(x))", "G.normal(x, 2.0, None)",
    "G.choice(3, p=np.abs(x) / np.abs(x).sum())",
    "G.choice(3, size=4, p=np.abs(x) / np.abs(x).sum())", "G.choice(x)", "G.choice(x, 2, replace=False)",
    "G.choice(x, 2, p=np.abs(x) / np.abs(x).sum())",
    "G.choice([10.0, 20.0, 30.0], p=np.abs(x) / np.abs(x).sum())",
    "G.choice((1, 2, 4), 3, p=np.abs(x) / np.abs(x).sum())",
    "G.choice(range(1, 7, 2), p=np.abs(x) / np.abs(x).sum())",
    "G.choice(np.arange(3.0), 3, p=np.abs(x) / np.abs(x).sum())",
    "G.permutation(x)", "G.permutation(x[:, None] * x)",
    "G.multivariate_normal(x[:2], [[2.0, 0.5], [0.5, 1.0]])", "G.normal(x[:2] + 1, [1.0, 2.0], (2, 2))",
    "G.multivariate_normal(x[:2], [[2.0, 0.5], [0.5, 1.0]], check_valid='raise')",
    "(lambda y: (G.shuffle(y), y)[1])(x * 2)",
    "G.normal(size=int(len(x)))",
)  # fmt: skip
# With arrays that the function makes of constants, or that are written.
MADE = (
    "G.poisson(np.array([1.0, 2.0, 3.0]))", "G.dirichlet(np.ones(3))", "G.choice(3, p=np.array([0.2, 0.3, 0.5]))",
    "G.choice(np.array([1.0, 5.0]), 2)", "G.multivariate_normal(np.zeros(2), np.eye(2))", "G.permutation(np.arange(4))",
    "z = x[:, None] * np.ones(2); G.shuffle(z); z",
    "G.binomial(np.array([2, 5]), np.full(2, 0.5))", "i = np.arange(3); G.shuffle(i); x[i]",
    "i = np.arange(3); j = i[1:]; G.shuffle(i); (x[j], i * 2)", "i = np.linspace(0.0, 1.0, 3); G.shuffle(x=i); x * i",
    "i = np.arange(3); G.shuffle(i); G.shuffle(i[1:]); x[i]",
)  # fmt: skip
FILLED = (
    "z = np.empty(3); G.random(out=z); z * x", "z = np.empty((2, 2)); G.standard_normal(out=z)",
    "z = np.empty(2); G.standard_gamma(2.0, out=z); z", "G.permuted(x, out=x)",
    "z = np.zeros((3, 2)); G.permuted(x[:, None] * np.ones(2), axis=0, out=z); z",
    "z = np.empty((2, 2)); G.permuted([[1.0, 2.0], [3.0, 4.0]], axis=1, out=z); z * x[0]",
    "z = x[:, None] * np.ones(2); G.shuffle(z, axis=1); z",
)  # fmt: skip
TRACED_OF_PYTHON = (
    "G.uniform(x[0], 3.0)",
    "G.gauss(x[0], 2.0)",
    "G.gauss(float(x[0]), abs(x[1]))",
    "G.normalvariate(x[0], x[1])",
    "G.expovariate(abs(x[0]))",
    "G.lognormvariate(x[0], 1.0)",
    "G.lognormvariate(float(x[0]), 0.5)",
)
SOURCES: dict[str, Callable[[], Any]] = {
    "new": lambda: np.random.default_rng(3),
    "old": lambda: np.random.RandomState(3),
    "of Python": lambda: random.Random(3),
}
PLAIN = [
    *[("new", call) for call in (*OF_BOTH.values(), *OF_NEW.values())],
    *[("old", call) for call in (*OF_BOTH.values(), *OF_OLD.values())],
    *[("of Python", call) for call in OF_PYTHON.values()],
]
TRACED = [
    *[(source, call) for source in ("new", "old") for call in (*TRACED_OF_BOTH, *MADE)],
    *[("new", call) for call in FILLED],
    *[("of Python", call) for call in TRACED_OF_PYTHON],
]


def state(generator: Any) -> str:
    if isinstance(generator, random.Random):
        return str(generator.getstate())
    old = generator.get_state(legacy=False) if hasattr(generator, "get_state") else None
    return str(
        generator.bit_generator.state if old is None else {**old, "state": old["state"]["key"].tolist()}
    )


def flat(value: Any) -> list[Any]:
    """Return numbers, with the types of those that are Python's."""
    if isinstance(value, (tuple, list)):
        return [each for part in value for each in flat(part)]
    if type(value) in (int, float, bool):
        return [type(value).__name__, float(value)]
    return np.asarray(value).ravel().tolist()


def same(got: Any, want: Any) -> bool:
    have, expected = flat(got), flat(want)
    return len(have) == len(expected) and all(
        a == b or (type(a) is not str and np.isclose(a, b, rtol=1e-12))
        for a, b in zip(have, expected, strict=True)
    )


def function_of(call: str, generator: Any) -> Any:
    names = {"G": generator, "np": np}
    *statements, result = call.split("; ")
    exec("\n    ".join(["def function(x):", *statements, f"return ({result})"]), names)
    return names["function"]


def follow(call: str, source: str, accelerated: Callable[[Any], Any], calls: int = 8) -> Any:
    """Compare an accelerated function with the plain one, call by call, and return it."""
    plain, ours = SOURCES[source](), SOURCES[source]()
    function, fast = function_of(call, plain), accelerated(function_of(call, ours))
    for n in range(calls):
        x = X * (1 + n) + 0.125 * n
        want = function(x)
        got = fast(x)
        assert same(got, want), (n, got, want)
        assert state(ours) == state(plain)
    return fast


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of random_integers
@pytest.mark.parametrize(("source", "call"), PLAIN)
def test_draws_with_plain_parameters(source: str, call: str) -> None:
    fast = follow(call, source, tj.dlaccelerate(audit=False, max_variants=20))
    assert not fast.stats.uncompiled
    assert fast.stats.hits >= (4 if "choice([" in call or "choices" in call else 6)


@pytest.mark.sampled
@pytest.mark.parametrize(("source", "call"), TRACED)
def test_draws_with_traced_parameters(source: str, call: str) -> None:
    fast = follow(call, source, tj.dlaccelerate(audit=False))
    assert fast.stats.hits == 6
    follow(call, source, lambda fun: lambda x: tj.dlfeval(fun, x), calls=3)


def test_each_method_has_a_call() -> None:
    methods = {*OF_BOTH, *OF_NEW, *OF_OLD} - {"single precision"} | {"shuffle"}
    assert methods == {*random_numbers._PARAMETERS}
    own = {
        name for kind in (np.random.Generator, np.random.RandomState) for name in vars(kind) if name[0] != "_"
    }
    assert own - methods == {"bit_generator", "bytes", "get_state", "seed", "set_state", "spawn"}
    assert {*OF_PYTHON} == {*random_of_python._PARAMETERS} - {"binomialvariate"}
    assert {name for name in vars(random.Random) if name[0] != "_"} - {*random_of_python._PARAMETERS} <= {
        "VERSION", "getstate", "setstate", "seed", "randbytes",
    }  # fmt: skip


OUTPUTS = (
    lambda rng, x: rng.random(out=x, dtype=np.float32),
    lambda rng, x: rng.random((2,), out=x),
    lambda rng, x: rng.permuted(x[:2], out=x),
    lambda rng, x: rng.permuted(x * 1j, out=x),
)


@pytest.mark.parametrize("call", OUTPUTS)
def test_an_array_that_numpy_does_not_fill(call: Callable[[Any, Any], Any]) -> None:
    rng = np.random.default_rng(3)
    with pytest.raises((TypeError, ValueError)) as numpys:
        call(rng, X.copy())
    for run in (tj.dlaccelerate(lambda x: call(rng, x)), lambda x: tj.dlfeval(lambda x: call(rng, x), x)):
        with pytest.raises(numpys.type) as ours:
            run(X.copy())
        assert str(ours.value) == str(numpys.value)
    assert state(rng) == state(np.random.default_rng(3))


@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
def test_a_choice_of_texts_runs_uncompiled() -> None:
    for what in (["a", "b", "c"], ("a", "b", "c"), np.array(["a", "b", "c"])):
        plain, ours = np.random.default_rng(1), np.random.default_rng(1)
        choice = tj.dlaccelerate(lambda p, what=what, ours=ours: ours.choice(what, 4, p=p))
        for _ in range(5):
            assert (
                choice(np.array([0.2, 0.3, 0.5])).tolist()
                == plain.choice(what, 4, p=[0.2, 0.3, 0.5]).tolist()
            )


FUNCTIONS = (
    "np.random.choice(range(3), p=np.abs(x) / np.abs(x).sum())",
    "np.random.normal(size=3) * x", "np.random.rand(2)", "x[np.random.randint(3)]", "np.random.uniform(x)",
    "np.random.permutation(x)", "np.random.choice(3, p=[0.5, 0.25, 0.25])", "np.random.sample(2)",
    "(lambda i: (np.random.shuffle(i), x[i])[1])(np.arange(3))", "random.random() * x",
    "(lambda i: (random.shuffle(i), x[i])[1])([0, 1, 2])", "(lambda t: (random.shuffle(t), x * t[1])[1])([0.5, 1.5])",
    "random.gauss(0.0, 1.0)", "random.uniform(x[0], 9.0)", "random.randint(0, 9)", "random.choice(x)",
)  # fmt: skip


@pytest.mark.parametrize("call", FUNCTIONS)
def test_functions_of_the_modules(call: str) -> None:
    found = []
    for accelerated in (lambda fun: fun, tj.dlaccelerate(audit=False)):
        np.random.seed(5)
        random.seed(5)
        names: dict[str, Any] = {"np": np, "random": random}
        exec(f"def function(x):\n    return ({call})\n", names)
        function = accelerated(names["function"])
        found.append([flat(function(X + n)) for n in range(8)] + [np.random.random(), random.random()])
    want, got = found
    assert same(got, want)
    assert function.stats.hits == 6


KEPT = {
    "gen = (k for k in [i])": "next(gen)",
    "part = functools.partial(np.asarray, i)": "part()",
    "method = i.tolist": "np.array(method())",
    "turns = iter([i, i])": "next(turns)",
    "held = [i]": "held[0]",
    "view = memoryview(i)": "np.asarray(view)",
    "none = 0": "i",
}


@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
@pytest.mark.parametrize("keep", KEPT)
@pytest.mark.parametrize(
    "shuffle", ["np.random.shuffle(i)", "np.random.shuffle(x=i)", "np.random.shuffle(*[i])", "rng.shuffle(i)"]
)
def test_an_array_that_something_holds_is_shuffled(keep: str, shuffle: str) -> None:
    names: dict[str, Any] = {"np": np, "functools": functools, "rng": np.random.default_rng(0)}
    exec(
        f"def function(x):\n    i = np.arange(3)\n    {keep}\n    {shuffle}\n    return x[i], x[{KEPT[keep]}]\n",
        names,
    )
    function = tj.dlaccelerate(names["function"])
    for n in range(6):
        one, other = function(X + n)
        assert one.tolist() == other.tolist()


# Where generators are, and what happens to them.


class Walk:
    """A walk whose steps depend on what was drawn."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.spare = {"rng": np.random.default_rng(seed + 1), "list": [random.Random(seed)]}
        self.at = np.zeros(3)
        self.path: list[float] = []
        self.mode = "walk"
        self.g: Any = None
        self.h: Any = None


BODIES = (
    "o.at = o.at + o.rng.normal(size=3)", "o.at += o.rng.uniform(-1.0, 1.0, 3)", "o.path.append(o.rng.random())",
    "if o.rng.random() < 0.5: o.at = o.at * 0.5", "y = y + o.spare['rng'].normal(x, 0.5)",
    "if o.spare['list'][0].random() < 0.3: y = -y", "y = y * o.spare['list'][0].uniform(1.0, 2.0)",
    "y[o.rng.integers(3)] = 7.0", "y = y[o.rng.permutation(3)]",
    "o.mode = 'rest' if o.rng.random() < 0.4 else 'walk'",
    "y = y + (1.0 if o.mode == 'rest' else 0.0)", "n = o.rng.standard_normal(3); n *= 2.0; y = y + n",
    "y = np.where(o.rng.random(3) < 0.5, y, x)", "for _ in range(2): y = y + o.rng.normal()",
    "y = y + o.rng.choice(3, p=np.exp(x) / np.exp(x).sum())", "y = y + float(rng.normal())",
    "o.path.append(float(y[0]))",
    "if y[0] > 0.0: y = y + rng.integers(5)", "y = y + helper(o.rng)", "k = o.rng.integers(2); y = y + k * x",
    "o.spare['rng'], o.rng = o.rng, o.spare['rng']", "rng.shuffle(y)", "y = y * o.rng.exponential(np.abs(x) + 0.5)",
)  # fmt: skip
OUTSIDE = (
    "o.rng = np.random.default_rng(n)", "o.spare['rng'] = np.random.default_rng(n)", "o.rng.normal()", "rng.random(3)",
    "o.rng = np.random.Generator(np.random.MT19937(n))", "o.spare['list'][0] = random.Random(n)",
    "o.spare['list'][0].seed(n)", "o.mode = 'rest'", "o.at = np.ones(3)", "o.path.clear()",
)  # fmt: skip


def helper(rng: Any) -> Any:
    return rng.normal() * 2


def walked(body: list[str], calls: list[tuple[float, str | None]], accelerated: Callable[[Any], Any]) -> Any:
    o, rng = Walk(1), np.random.default_rng(9)
    names = {"o": o, "rng": rng, "np": np, "random": random, "helper": helper}
    text = "def function(x):\n    y = x * 1.5\n" + "".join(f"    {line}\n" for line in body)
    exec(f"{text}    return y\n", names)
    function = accelerated(names["function"])
    found = []
    for n, (shift, outside) in enumerate(calls):
        if outside is not None:
            exec(outside, {**names, "n": n})
        result = function(X + shift)
        states = [state(each) for each in (o.rng, o.spare["rng"], o.spare["list"][0], rng)]
        found.append((flat(result), flat(o.at), flat(o.path), o.mode, states))
    return found


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
@pytest.mark.parametrize("seed", range(40))
def test_drawn_programs_draw_what_the_plain_function_draws(seed: int) -> None:
    draw = random.Random(seed)
    body = [part for line in draw.sample(BODIES, draw.randint(1, 5)) for part in line.split("; ")]
    calls = [(draw.random(), draw.choice(OUTSIDE) if draw.random() < 0.2 else None) for _ in range(12)]
    want = walked(body, calls, lambda fun: fun)
    options: dict[str, Any] = {"confirm": draw.choice([0, 1]), "max_variants": 12}
    options["check_mode"] = draw.choice(["none", "none", "tolerance", "sample"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", tj.OutputsDifferWarning)
        got = walked(body, calls, tj.dlaccelerate(check_every=3, **options))
    for (result, *others, states), (expected, *wanted, known) in zip(got, want, strict=True):
        assert same([result, *others[:2]], [expected, *wanted[:2]]), body
        assert others[2:] == wanted[2:] and states == known, body


def test_a_generator_is_an_argument() -> None:
    step = tj.dlaccelerate(lambda x, rng: x + rng.normal(size=3))
    plain, ours = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(6):
        np.testing.assert_array_equal(step(X, ours), X + plain.normal(size=3))
    assert step.stats.hits == 4
    old, same_old = np.random.RandomState(1), np.random.RandomState(1)
    for _ in range(3):
        np.testing.assert_array_equal(step(X, old), X + same_old.normal(size=3))


def test_another_generator_at_the_place_needs_no_other_trace() -> None:
    o = SimpleNamespace(rng=np.random.default_rng(0))
    step = tj.dlaccelerate(lambda x: x + o.rng.normal(size=3), audit=False)
    for n in range(12):
        o.rng = np.random.default_rng(n)
        np.testing.assert_array_equal(step(X), X + np.random.default_rng(n).normal(size=3))
    assert step.stats.traces == 2
    o.rng = np.random.RandomState(3)  # it has another class
    np.testing.assert_array_equal(step(X), X + np.random.RandomState(3).normal(size=3))
    assert step.stats.traces == 3


def test_a_generator_that_the_call_makes_is_a_constant() -> None:
    step = tj.dlaccelerate(lambda x: x + np.random.default_rng(4).normal(size=3), audit=False)
    want = X + np.random.default_rng(4).normal(size=3)
    assert [step(X).tolist() for _ in range(5)] == [want.tolist()] * 5
    assert step.stats.hits == 3


@pytest.mark.parametrize("kind", ["np", "python"])
def test_a_seed_inside_is_set_by_replays(kind: str) -> None:
    module: Any = np.random if kind == "np" else random

    def function(x: Any) -> Any:
        module.seed(4)
        return x * module.random()

    step = tj.dlaccelerate(function, audit=False)
    for _ in range(6):
        module.seed(9)
        want = function(X)
        after = module.random()
        module.seed(9)
        assert step(X).tolist() == want.tolist()
        assert module.random() == after
    assert step.stats.hits == 4


def test_states_that_code_looks_at_or_sets_are_no_draws() -> None:
    rng = np.random.default_rng(0)

    def function(x: Any) -> Any:
        rng.bit_generator.state = STATE
        return x * rng.random()

    step = tj.dlaccelerate(function)
    assert len({step(X)[0].item() for _ in range(5)}) == 1


STATE = np.random.default_rng(8).bit_generator.state


def test_errors_of_numpy_come_from_replays_too() -> None:
    rng = np.random.default_rng(0)
    step = tj.dlaccelerate(lambda x, s: rng.normal(x, s), audit=False)
    for _ in range(4):
        step(X, np.ones(3))
    before = state(rng)
    with pytest.raises(ValueError, match="scale < 0"):
        step(X, -np.ones(3))
    assert state(rng) == before
    pick = tj.dlaccelerate(lambda p: rng.choice(3, p=p))
    for _ in range(4):
        pick(np.full(3, 1 / 3))
    with pytest.raises(ValueError, match="do not sum to 1"):
        pick(np.full(3, 0.5))
    with pytest.raises(ValueError, match="not non-negative"):
        pick(np.array([1.5, -0.5, 0.0]))
    with pytest.raises(ValueError, match="NaN"):
        pick(np.array([np.nan, 0.5, 0.5]))
    assert pick.stats.hits >= 1


IN_PROGRAMS = (
    "G.poisson(np.abs(x) * 3)", "G.binomial(10, np.abs(x) / 99)", "G.beta(np.abs(x), 2.0)", "G.gamma(np.abs(x))",
    "G.poisson(float(abs(x[0])) * 5)", "n = G.normal(size=3); k = G.poisson(np.abs(x)); n + k * G.normal(size=3)",
    "k = G.poisson(abs(x[0])); x * k if k > 1 else -x", "G.multinomial(10, np.abs(x) / np.abs(x).sum())",
    "G.dirichlet(np.abs(x))", "G.choice(3, 2, replace=False, p=np.abs(x) / np.abs(x).sum())",
    "G.poisson(np.abs(x)); x",
    "G.standard_t(abs(x[0])) + G.vonmises(x[1], 2.0)", "k = G.poisson(np.abs(x)); x[G.choice(3)] + k.sum()",
    "G.negative_binomial(3, np.abs(x) / 99)", "sum([G.poisson(abs(v)) for v in x])",
    "G.chisquare(np.abs(x), size=(2, 3))",
    "G.choice(int(abs(x[0])) + 1, 2)", "G.choice(int(abs(x[0])) + 4, 2, replace=False)",
    "x[G.choice(1 + int(x[2]) % 3)]",
    "(lambda n: G.integers(n, n + 2) if hasattr(G, 'integers') else G.randint(-n, n))(int(x[2]) // 2)",
    "(getattr(G, 'integers', None) or G.randint)(0, (np.abs(x) + 1).astype(int))", "G.choice(int(abs(x[0])) + 1)",
    "G.standard_gamma(np.abs(x), dtype=np.float64) if hasattr(G, 'integers') else G.standard_gamma(np.abs(x))",
    "(getattr(G, 'integers', None) or G.randint)(int(abs(x[0])), 99, size=(2, 2), dtype=np.int64)",
    "G.poisson([abs(x[0]), 2.0])", "k = G.poisson(np.abs(x)); G.seed(int(k[0])) if hasattr(G, 'seed') else 0; k",
)  # fmt: skip
IN_PROGRAMS_OF_PYTHON = (
    "G.betavariate(abs(x[0]), 2.0)", "a = G.gammavariate(float(abs(x[0])), 1.0); a + G.random() + G.gauss(0.0, 1.0)",
    "G.triangular(0.0, 1.0, float(abs(x[0])) / 99)", "G.randint(-int(x[2]), int(x[2])) * x",
    "k = G.randrange(int(x[2])); G.randrange(0, 3 * k + 3, 3)", "x[G.randrange(1 + int(x[2]) % 3)]",
)  # fmt: skip


@pytest.mark.sampled
@pytest.mark.filterwarnings(
    "ignore::tracejit.NotAcceleratedWarning"
)  # where a program would have to set a seed
@pytest.mark.parametrize(
    ("source", "call"),
    [
        *[(source, call) for source in ("new", "old") for call in IN_PROGRAMS],
        *[("of Python", call) for call in IN_PROGRAMS_OF_PYTHON],
    ],
)
def test_programs_draw_with_parameters_that_they_compute(source: str, call: str) -> None:
    fast = follow(call, source, tj.dlaccelerate(audit=False), calls=12)
    assert fast.stats.hits >= 8 or "seed" in call
    follow(call, source, tj.dlaccelerate(check_mode="tolerance", confirm=0), calls=5)
    follow(call, source, lambda fun: lambda x: tj.dlfeval(fun, x), calls=3)


@pytest.mark.parametrize("call", ["g.choice(n, 3)", "g.choice(n, 2, replace=False)", "g.integers(0, n, 3)"])
def test_bounds_are_arguments(call: str) -> None:
    ours, plain = np.random.default_rng(1), np.random.default_rng(1)
    drawn = tj.dlaccelerate(lambda n, x: eval(call, {"g": ours, "n": n}).sum() + x, audit=False)
    for n in range(3, 30):
        assert drawn(n, X).tolist() == (eval(call, {"g": plain, "n": n}).sum() + X).tolist()
    assert drawn.stats.hits >= 20


def test_draws_of_programs_have_no_derivative_by_parameters_that_are_no_rates() -> None:
    rng = np.random.default_rng(0)
    counted = tj.dlaccelerate(lambda x: tj.dlgradient((rng.poisson(x) * x).sum(), x))
    plain = np.random.default_rng(0)
    x = tj.dlarray(np.abs(X))
    for _ in range(5):
        assert counted(x).tolist() == plain.poisson(np.abs(X)).tolist()
    assert counted.stats.hits == 3
    with pytest.raises(
        tj.GradientError, match="standard_t: what a generator draws has no derivative by this param"
    ):
        tj.dlaccelerate(lambda x: tj.dlgradient(rng.standard_t(x).sum(), x))(x)


def test_derivatives_go_through_the_parameters() -> None:
    rng = np.random.default_rng(1)

    @tj.dlaccelerate
    def slopes(m: Any, s: Any) -> Any:
        return tj.dlgradient(rng.normal(m, s).sum() + rng.uniform(m, 2 * s + 9).sum(), (m, s))

    plain = np.random.default_rng(1)
    for _ in range(5):
        of_m, of_s = slopes(tj.dlarray(X), tj.dlarray(np.abs(X)))
        normal, uniform = plain.standard_normal(3), plain.random(3)
        np.testing.assert_allclose(of_m, 1 + 1 - uniform, rtol=1e-12)
        np.testing.assert_allclose(of_s, normal + 2 * uniform, rtol=1e-12)
    assert slopes.stats.hits == 3

    shape = tj.dlarray(np.abs(X))
    with pytest.raises(tj.GradientError, match=r"standard_gamma at .* dropped its derivative"):
        tj.dlfeval(lambda a: tj.dlgradient((rng.standard_gamma(a) * a).sum(), a), shape)


def test_a_captured_table_of_probabilities_is_compared() -> None:
    p = np.array([1.0, 0.0, 0.0])
    rng = np.random.default_rng(1)
    step = tj.dlaccelerate(lambda x: x * rng.choice(3, p=p))
    for _ in range(4):
        assert step(X).tolist() == (0 * X).tolist()
    p[:] = [0.0, 0.0, 1.0]
    for _ in range(4):
        assert step(X).tolist() == (2 * X).tolist()


def test_a_captured_parameter_beside_one_that_varies_is_read_again() -> None:
    o = SimpleNamespace(b=np.ones(3), c=np.full(3, 2.0), k=1.0)
    plain, ours = np.random.default_rng(1), np.random.default_rng(1)
    step = tj.dlaccelerate(lambda x: ours.beta(np.abs(x) + o.c, o.b) + ours.poisson([1.0, o.k, abs(x[0])]))
    for n in range(16):
        if n % 4 == 3:
            o.b, o.k = np.full(3, 1.0 + n), o.k + 0.5
        if n % 5 == 4:
            o.c[0] += 1.0
        want = plain.beta(np.abs(X) + o.c, o.b) + plain.poisson([1.0, o.k, abs(X[0])])
        np.testing.assert_allclose(step(X), want, rtol=1e-12)


BRANCHES = (
    "tj.dlcond(x[0] > 1, lambda: x * g.normal(), lambda: x * h.normal())",
    "tj.dlcond(x[0] > 1, lambda: x, lambda: x * h.normal())",
    "tj.dlcond(x[0] > 1, lambda: x * g.poisson(abs(x[0])), lambda: -x)",
    "tj.dlscan(lambda c, _: (c + g.normal(), c), x, None, length=3)[0]",
    "tj.dlwhile(lambda c: c[0] < 6, lambda c: c + 1 + g.random(), x)",
    "tj.dlmap(lambda v: v * 2, over=0)(x) + g.normal()",
    "tj.dlcond(x[0] > 1, lambda: tj.dlcond(x[1] > -3, lambda: x * g.normal(), lambda: x), lambda: x * h.random())",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
@pytest.mark.parametrize("call", BRANCHES)
def test_branches_and_loops_draw_what_they_take(call: str) -> None:
    found = []
    for accelerated in (lambda fun: lambda x: tj.dlfeval(fun, x), tj.dlaccelerate(max_variants=20)):
        g, h = np.random.default_rng(0), np.random.default_rng(1)
        names: dict[str, Any] = {"g": g, "h": h, "np": np, "tj": tj}
        exec(f"def function(x):\n    return {call}\n", names)
        function = accelerated(names["function"])
        found.append([])
        for n in range(16):
            result = function(tj.dlarray(X + 0.25 * (n * 5 % 7)))
            found[-1].append((np.asarray(result).round(9).tolist(), state(g), state(h)))
    assert found[0] == found[1]


def test_code_of_libraries_gets_plain_numbers() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    step = tj.dlaccelerate(lambda x: x + stats.norm.rvs(size=3, random_state=rng))
    with pytest.warns(tj.NotAcceleratedWarning):
        found = [step(X).tolist() for _ in range(4)]
    plain = np.random.default_rng(1)
    assert found == [(X + stats.norm.rvs(size=3, random_state=plain)).tolist() for _ in range(4)]


def test_generators_are_themselves_outside_of_recordings() -> None:
    before = dict(vars(np.random.Generator)), dict(vars(random.Random)), np.random.normal, random.random
    rng = np.random.default_rng(0)
    tj.dlaccelerate(lambda x: x * rng.normal() * random.random() * np.random.normal())(X)
    with pytest.raises(ZeroDivisionError):
        tj.dlaccelerate(lambda x: x * rng.normal() / (1 // 0))(X)
    assert (dict(vars(np.random.Generator)), dict(vars(random.Random))) == before[:2]
    assert np.random.normal == before[2] and random.random == before[3]
    assert copy.deepcopy(rng).normal() == rng.normal()


def test_loops_and_maps_draw_by_themselves() -> None:
    rng = np.random.default_rng(0)
    scan = tj.dlaccelerate(lambda x: tj.dlscan(lambda c, _: (c + rng.normal(), c), x, None, length=3)[0])
    plain = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            want = X + plain.normal() + plain.normal() + plain.normal()
            np.testing.assert_allclose(scan(tj.dlarray(X)), want, rtol=1e-14)


CAUGHT = {
    "an index that is drawn": "    try: y = x[g.integers(5)]\n    except IndexError: y = h.normal()",
    "an index that is given": "    y = h.normal()\n    try: y = x[i] * y\n    except IndexError: y = x[0] * g.normal()",
}


@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
@pytest.mark.parametrize("body", CAUGHT.values(), ids=CAUGHT)
def test_an_error_that_the_function_handles_gives_states_back(body: str) -> None:
    found = []
    for accelerated in (lambda fun: fun, tj.dlaccelerate):
        names: dict[str, Any] = {"g": np.random.default_rng(0), "h": np.random.default_rng(1)}
        exec(f"def function(x, i):\n{body}\n    return y * 1.0\n", names)
        function = accelerated(names["function"])
        found.append([float(function(X, n * 7 % 5)) for n in range(30)])
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_an_error_leaves_the_states_of_the_plain_function() -> None:
    found = []
    for accelerated in (lambda fun: fun, tj.dlaccelerate):
        g = np.random.default_rng(0)
        function = accelerated(lambda x, i, g=g: x[i] + g.random())
        results: list[Any] = []
        for n in range(20):
            try:
                results.append(float(function(X, 5 if n % 4 == 3 else n % 3)))
            except IndexError:
                results.append("IndexError")
        found.append(results)
    assert found[0] == found[1]


def test_threads_with_objects_of_their_own() -> None:
    def function(x: Any, s: Any) -> Any:
        a = s.g.normal(size=3)
        if s.h.random() < 0.3:
            a = a * 2
        return a + x

    def drawn(step: Any, seed: int) -> list[Any]:
        s = Walk(seed)
        s.g, s.h = np.random.default_rng(seed), random.Random(seed)
        return [np.asarray(step(X * (n % 4), s)).tolist() for n in range(40)]

    step = tj.dlaccelerate(function)
    found: dict[int, Any] = {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: drawn(step, k)})) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k] for k in range(4)] == [drawn(function, k) for k in range(4)]


@pytest.mark.filterwarnings(
    "ignore::tracejit.NotAcceleratedWarning"
)  # a recording may meet what another thread draws
def test_threads_that_share_a_generator_draw_no_number_twice() -> None:
    g = np.random.default_rng(0)

    @tj.dlaccelerate
    def step(x: Any) -> Any:
        a = g.random(3)
        if x[0] > 1:
            return x * a
        return a + 0 * x if a[0] < 0.5 else a - 0 * x

    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.extend(step(np.zeros(3)).tolist() for _ in range(100)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({str(numbers) for numbers in found}) == 400


SMALL = {
    "small integers": "G.uniform(np.array([-100, -90], np.int8) + k, np.array([100, 90], np.int8) + k)",
    "single precision": "G.uniform(-1, np.array([0.1, 0.7], np.float32) + k)",
    "other numbers": "G.normal(np.array([1, 2], np.int8) + k, 2)",
}


@pytest.mark.parametrize("call", SMALL.values(), ids=SMALL)
def test_parameters_are_computed_with_in_double_precision(call: str) -> None:
    plain, ours = np.random.default_rng(1), np.random.default_rng(1)
    functions = []
    for generator in (plain, ours):
        names = {"G": generator, "np": np}
        exec(f"def function(k):\n    return {call}\n", names)
        functions.append(names["function"])
    fast = tj.dlaccelerate(functions[1])
    kind = np.float32 if "float32" in call else np.int8
    for n in range(6):
        k = np.array([n, n], kind)
        np.testing.assert_allclose(fast(k), functions[0](k), rtol=1e-15)


REFUSED = (
    ("old", "G.choice(x[:, None] * x, 2)", ValueError), ("old", "G.choice(x, 2, axis=0)", TypeError),
    ("new", "G.normal(0.0, x * 0.0)", ValueError), ("old", "G.rayleigh(-0.0 * np.abs(x))", ValueError),
    ("new", "G.normal(x[None], 1.0, size=3)", ValueError), ("new", "G.normal(x * 1j)", TypeError),
    ("new", "G.normal(x, 1.0, size=2)", ValueError), ("new", "G.poisson(x)", ValueError),
)  # fmt: skip


@pytest.mark.parametrize(("source", "call", "error"), REFUSED)
def test_numpy_refuses_what_it_refuses(source: str, call: str, error: type[Exception]) -> None:
    plain, ours = SOURCES[source](), SOURCES[source]()
    function, fast = function_of(call, plain), tj.dlaccelerate(function_of(call, ours))
    for _ in range(4):
        with pytest.raises(error) as wanted:
            function(X)
        with pytest.raises(error) as found:
            fast(X)
        assert str(found.value).partition("\n")[0] == str(wanted.value)
        assert state(ours) == state(plain)


def test_subclasses_draw_as_they_do() -> None:
    class Fixed(np.random.RandomState):
        def standard_normal(self, *args: Any, **kwargs: Any) -> Any:
            return 7.0

    generator = Fixed(3)
    step = tj.dlaccelerate(lambda x: generator.normal(x))
    plain = np.random.RandomState(3)
    for _ in range(4):
        np.testing.assert_array_equal(step(X), plain.normal(X))


OF_SEQUENCES = (
    "x * G.choices([1, 2.5], k=2)[0]", "(G.choices([(1, 2), (3, 4)], k=2), x * 1.0)", "G.choices('ab', k=3), x * 1.0",
    "x * 1.0, G.getrandbits(64)", "x * 1.0, G.randrange(2**64)", "x * G.choices([True, 5], k=1)[0]",
    "G.sample(['a', 'b', 'c'], 2), x * 1.0",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
@pytest.mark.parametrize("call", OF_SEQUENCES)
def test_elements_of_any_kind(call: str) -> None:
    plain, ours = random.Random(3), random.Random(3)
    function, fast = function_of(call, plain), tj.dlaccelerate(function_of(call, ours), max_variants=4)
    for _ in range(20):
        assert str(tj.tree.map(np.asarray, fast(X))) == str(tj.tree.map(np.asarray, function(X)))
        assert state(ours) == state(plain)


def test_what_is_drawn_by_something_else_is_not_replayed_at_once() -> None:
    step = tj.dlaccelerate(lambda x: (random.shuffle(["a", "b"]), x * 2)[1], confirm=0, audit=False)
    with pytest.warns(tj.NotAcceleratedWarning, match="it draws from a random.Random"):
        step(X)
