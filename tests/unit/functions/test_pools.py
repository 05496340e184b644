# SPDX-License-Identifier: BSD-3-Clause
"""Elements that are drawn out of lists and deques which change from call to call: replay buffers."""

import copy
import random
import warnings
from collections import deque, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.record.pools import ElementLayout

Step = namedtuple("Step", "state action reward done")
ELEMENTS: dict[str, Callable[[Any, int, float, bool], Any]] = {
    "tuple": lambda s, a, r, d: (s, a, r, d),
    "named tuple": Step,
    "list": lambda s, a, r, d: [s, a, r, d],
    "dict": lambda s, a, r, d: {"s": s, "a": a, "r": r, "d": d},
    "numpy": lambda s, a, r, d: (s.astype(np.float32), np.int64(a), np.float32(r), np.bool_(d)),
    "matrices": lambda s, a, r, d: (np.outer(s, s), np.full((), a), r, d),
}
CONTAINERS: dict[str, Callable[[], Any]] = {
    "list": list,
    "deque": deque,
    "full deque": lambda: deque(maxlen=14),
}
# What a function does with `b`, a list of elements whose parts are taken by KEYS.
USES = {
    "columns": "[np.array([e[k] for e in b]) for k in K]",
    "stacks": "np.stack([e[K[0]] for e in b]), np.concatenate([np.ravel(e[K[0]]) for e in b])",
    "numbers": "sum([e[K[2]] * (1 - e[K[3]]) + e[K[1]] for e in b])",
    "branches": "[e[K[2]] if e[K[3]] else e[K[1]] for e in b[:1]]",
    "truths": "b[0][K[3]] + b[1][K[3]], -b[0][K[3]], +b[1][K[3]], abs(b[0][K[3]]), b[0][K[3]] * 2.5, float(b[0][K[3]])",
    "an element": "b[1]",
    "arithmetic": "b[0][K[0]] * b[1][K[2]] + b[1][K[0]], b[0][K[1]] + 1, b[0][K[1]] / 2",
    "learning": "self.learn(np.array([e[K[0]] for e in b]), np.array([e[K[2]] for e in b]))",
}  # fmt: skip
DRAWS = {
    "sample": "random.sample(self.memory, 5)",
    "sample by name": "random.sample(k=self.count, population=self.memory)",
    "sample of a generator": "self.rng.sample(self.memory, 5)",
    "choices": "random.choices(self.memory, k=5)",
    "choice": "[self.rng.choice(self.memory), random.choice(self.memory)]",
}


class Agent:
    """What programs read: a memory, weights, and a generator of their own."""

    count = 5

    def __init__(self, memory: Any, element: Callable[..., Any]) -> None:
        self.memory, self.element = memory, element
        self.w = np.ones(3)
        self.rng = random.Random(2)
        self.world = np.random.default_rng(1)
        for _ in range(12):
            self.see()

    def see(self) -> None:
        """Have the memory grow."""
        state, action, reward, done = self.world.normal(size=4).round(3).tolist()
        s = np.array([state, action, 1.0])
        self.memory.append(self.element(s, round(action), reward, done > 0))

    def learn(self, s: Any, r: Any) -> Any:
        """Change the weights."""
        s = s.reshape(len(s), -1)[:, :3]
        error = s @ self.w - r
        self.w -= 0.1 * (error @ s)
        return (error**2).sum()


def agents(
    source: str, container: str = "list", element: str = "tuple", confirm: int | None = None
) -> tuple[Any, Any]:
    """Return two agents with a method ``step``, plain and accelerated."""
    names: dict[str, Any] = {
        "np": np, "random": random, "K": ("s", "a", "r", "d") if element == "dict" else (0, 1, 2, 3),
    }  # fmt: skip
    exec(source, names)  # the code of a user
    options = {} if confirm is None else {"confirm": confirm}
    pair = []
    for method in (names["step"], tj.dlaccelerate(names["step"], **options)):
        kind = type("User", (Agent,), {"step": method, "__module__": "user"})
        pair.append(kind(CONTAINERS[container](), ELEMENTS[element]))
    return pair[0], pair[1]


def program(body: str) -> str:
    return "def step(self):\n" + "".join(f"    {line}\n" for line in body.split("\n"))


def leaves(value: Any) -> list[Any]:
    """Return what containers hold, as ndarrays and None."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, (list, tuple, deque)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value if value is None else np.asarray(value._data if isinstance(value, tj.dlarray) else value)]


def check_same(one: Any, other: Any) -> None:
    """Check that values are the same to the last bits, in dtype too."""
    ours, wanted = leaves(one), leaves(other)
    assert len(ours) == len(wanted)
    for mine, right in zip(ours, wanted, strict=True):
        if right is not None:
            assert mine is not None
            assert (mine.dtype, mine.shape) == (right.dtype, right.shape)
            if mine.dtype == object:
                assert mine == right
                continue
            np.testing.assert_allclose(mine, right, rtol=1e-5 if mine.dtype == np.float32 else 1e-12)


def check_calls(plain: Any, fast: Any, calls: int = 14) -> None:
    """Check results, states and generators of calls, between which the memory grows."""
    for call in range(calls):
        given: list[tuple[Any, Any]] = []
        for agent in (fast, plain):
            random.seed(call)
            given.append((agent.step(), random.getstate()))
        (mine, state), (right, wanted) = given
        check_same(mine, right)
        assert state == wanted
        assert fast.rng.getstate() == plain.rng.getstate()
        check_same(fast.w, plain.w)
        check_same(fast.memory, plain.memory)
        fast.see()
        plain.see()


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("element", ELEMENTS)
def test_elements_are_inputs(use: str, element: str, draw: str) -> None:
    container = [*CONTAINERS][(len(use) + len(draw) + len(element)) % len(CONTAINERS)]
    plain, fast = agents(program(f"b = {DRAWS[draw]}\nreturn {USES[use]}"), container, element)
    with warnings.catch_warnings():
        if use == "truths" and element == "numpy":  # NumPy has no - for truth values
            pytest.skip("an error of NumPy's")
        warnings.simplefilter("ignore")
        check_calls(plain, fast)
    assert fast.step.stats.hits >= 7
    assert fast.step.stats.traces <= 7


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_length_is_a_number_that_varies(container: str) -> None:
    body = (
        "if len(self.memory) < 17:\n    return None\nreturn len(self.memory) * self.w, len(self.memory) - 1"
    )
    plain, fast = agents(program(body), container)
    check_calls(plain, fast, calls=20)
    assert fast.step.stats.hits >= 10


GROWING = "self.memory.append((self.w * n, n, 1.0, False))"


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    "change",
    [
        GROWING, f"{GROWING}; {GROWING}", "self.memory.extend([(self.w, n, 1.0, True)] * 2)",
        "self.memory += [(self.w, 1, 1.0, True)]", "self.memory *= 2", "self.memory.clear()", "self.memory.pop()",
        "del self.memory[0]", f"self.memory.clear(); {GROWING}", "self.memory = [1, 2]",
        "self.memory.insert(0, (self.w, 1, 1.0, True))", "self.memory.append(n) if n > 13 else None",
        "self.memory.extend(self.memory)",
    ],
)  # fmt: skip
def test_the_length_of_a_list_that_the_function_changes(change: str, container: str) -> None:
    plain, fast = agents(
        program(f"n = len(self.memory)\n{change}\nreturn len(self.memory) + 0.5 * n"), container
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(10):
            check_same(fast.step(), plain.step())
            check_same(len(fast.memory), len(plain.memory))
            if len(plain.memory) > 100 or (
                "insert" in change and len(plain.memory) > 12
            ):  # a full deque takes none
                break
            for agent in (plain, fast):
                agent.memory = CONTAINERS[container]() if agent.memory == [1, 2] else agent.memory
                for _ in range(2):
                    agent.see()


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    "test", ["if not self.memory:", "if self.memory and self.w[0] > 5:", "while not self.memory:"]
)
def test_the_truth_of_a_list_is_no_more_than_that(test: str, container: str) -> None:
    plain, fast = agents(
        program(f"{test}\n    return self.w * 3\nreturn random.sample(self.memory, 2)[0][0] * 2"), container
    )
    check_calls(plain, fast)
    assert fast.step.stats.hits >= 8
    for agent in (plain, fast):
        agent.memory.clear()
        agent.see = lambda: None
    check_calls(plain, fast, calls=6) if "not" in test else None
    for agent in (plain, fast):
        del agent.see
        agent.see()
        agent.see()
    check_calls(plain, fast, calls=6)


@pytest.mark.parametrize(
    "change", ["self.memory.append(1)", "self.memory.extend([])", "self.memory.clear()", "self.memory += [2]"]
)
def test_the_truth_of_a_list_that_the_function_changes(change: str) -> None:
    plain, fast = agents(program(f"a = 1 if self.memory else 2\n{change}\nreturn a, 3 if self.memory else 4"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in range(16):
            if call % 5 == 4:
                for agent in (plain, fast):
                    agent.memory.clear()
            check_same(fast.step(), plain.step())
            check_same(fast.memory, plain.memory)


def test_a_list_that_grows_by_its_length_is_replayed() -> None:
    plain, fast = agents(program(f"n = len(self.memory)\n{GROWING}\nreturn len(self.memory) + 0.5 * n"))
    check_calls(plain, fast, calls=16)
    assert fast.step.stats.hits >= 8


def test_the_name_of_len_is_put_back() -> None:
    plain, fast = agents(program("return len(self.memory) + self.w"))
    check_calls(plain, fast)
    scope = fast.step.__wrapped__.__globals__
    assert "len" not in scope
    scope["len"] = len
    check_calls(plain, fast, calls=9)
    assert scope["len"] is len
    scope["len"] = lambda x: x[-1][2]  # the user's own, which reads elements
    check_calls(plain, fast, calls=12)
    del scope["len"]
    with pytest.warns(
        tj.NotAcceleratedWarning, match="global len, which it reads, changes from call to call"
    ):
        check_calls(plain, fast, calls=3)


class Buffer:
    """A buffer as tutorials have it."""

    def __init__(self) -> None:
        self.buffer: deque[Any] = deque(maxlen=20)

    def __len__(self) -> int:
        return len(self.buffer)

    def append(self, step: Any) -> None:
        self.buffer.append(step)

    def sample(self, count: int) -> Any:
        s, _, r, d = zip(*random.sample(self.buffer, count), strict=True)
        return np.array(s), np.array(r, dtype=np.float32), np.array(d, dtype=np.uint8)


def test_a_buffer_of_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTAINERS, "buffer", Buffer)
    body = "if len(self.memory) < 15:\n    return 0.0\ns, r, d = self.memory.sample(4)\n"
    body += "return self.learn(s, r * (1 - d)), s, r, d, len(self.memory)"
    plain, fast = agents(program(body), "buffer")
    for agent in (plain, fast):
        agent.memory.__class__ = type("Mine", (Buffer,), {"__iter__": lambda self: iter(self.buffer)})
    for call in range(16):
        given = []
        for agent in (fast, plain):
            random.seed(call)
            given.append(agent.step())
        check_same(*given)
        check_same(fast.w, plain.w)
        fast.see()
        plain.see()
    assert fast.step.stats.hits >= 8


@pytest.mark.parametrize(
    "element",
    [
        (np.ones(3, np.float32), 1, 1.0, False), (np.ones(4), 1, 1.0, False), (np.ones(3), 1.0, 1.0, False),
        (np.ones(3), True, 1.0, False), (np.ones(3), 1 << 70, 1.0, False), (np.ones(3), 1, 1.0), (np.ones(3), 1, 1, 1),
        [np.ones(3), 1, 1.0, False], (None, 1, 1.0, False), (np.ones((3, 1)), 1, 1.0, False), None,
        (np.ones(3), np.int64(1), 1.0, False), (np.ones(3), np.True_, 1.0, False),
    ],
)  # fmt: skip
def test_an_element_of_another_kind(element: Any) -> None:
    """A replay notices it, gives the generator its state back, and the numbers are those of Python and NumPy."""
    plain, fast = agents(program("b = random.sample(self.memory, 5)\nreturn [e for e in b][0]"))
    check_calls(plain, fast, calls=8)
    hits = fast.step.stats.hits
    for agent in (plain, fast):
        agent.memory[:] = [copy.deepcopy(element) for _ in range(9)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in range(2):  # are recorded
            given: list[Any] = []
            for agent in (fast, plain):
                random.seed(call)
                given += [agent.step(), random.getstate()]
            check_same(given[0], given[2])
            assert given[1] == given[3]
    assert fast.step.stats.hits == hits


def test_too_few_elements_are_an_error_of_python() -> None:
    plain, fast = agents(program("b = random.sample(self.memory, 5)\nreturn np.array([e[0] for e in b])"))
    check_calls(plain, fast, calls=8)
    for agent in (plain, fast):
        random.seed(3)
        state = random.getstate()
        del agent.memory[2:]
        with pytest.raises(ValueError, match=r"[Ss]ample larger than population"):
            agent.step()
        assert random.getstate() == state
    for agent in (plain, fast):
        for _ in range(6):
            agent.see()
    check_calls(plain, fast, calls=3)


def test_what_a_function_asks_before_it_draws_decides() -> None:
    """A replay draws first; where too few elements are there, the function may not come to the draw."""
    body = "if len(self.memory) < 6:\n    return self.w * 2\n"
    body += "return np.array([e[0] for e in random.sample(self.memory, 6)])"
    plain, fast = agents(program(body))
    check_calls(plain, fast, calls=10)
    assert fast.step.stats.hits >= 3
    for agent in (plain, fast):
        del agent.memory[3:]
    check_calls(plain, fast, calls=8)


def test_weights_of_choices_are_no_elements() -> None:
    plain, fast = agents(
        program("return random.choices(self.memory, weights=self.weights, k=2)[0][2] * self.w")
    )
    for agent in (plain, fast):
        agent.weights = [1.0] * 12
        agent.memory = [(float(number), 0, float(number), True) for number in range(12)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in range(12):
            given = []
            for agent in (fast, plain):
                agent.weights[call] = 9.0
                random.seed(call)
                given.append(agent.step())
            check_same(*given)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("b = random.sample(self.memory, 3)\nb[0][0][0] += 1.0\nreturn b[0][0]", "it writes into an element"),
        ("b = random.sample(self.memory, 3)\nself.last = b[0]\nreturn b[0][0] * 2", "it keeps an element"),
        (
            "b = random.sample(self.memory, 3)\nself.last = [e[0][:2] for e in b]\nreturn 0.0",
            "it keeps an element",
        ),
        ("self.memory.append(self.memory[0])\nreturn random.sample(self.memory, 3)[0][0] * 2", "differ"),
        ("b = random.sample(self.memory, 3)\nself.memory.pop()\nreturn b[0][0] * 2", "self.memory"),
    ],
)
def test_what_runs_uncompiled(body: str, message: str) -> None:
    plain, fast = agents(program(body))
    with pytest.warns(tj.NotAcceleratedWarning, match=message):
        check_calls(plain, fast, calls=10)


@pytest.mark.parametrize("element", ["list", "dict"])
@pytest.mark.parametrize(
    "change",
    [
        "e[K[2]] = 5.0",
        "e[K[2]] = e[K[2]] * 2",
        "e[K[0]] = e[K[0]] + 1",
        "e.pop(K[1])",
        "e[K[1]], e[K[2]] = e[K[2]], e[K[1]]",
    ],
)
def test_what_a_function_puts_into_elements_is_there(change: str, element: str) -> None:
    plain, fast = agents(
        program(f"e = random.sample(self.memory, 1)[0]\n{change}\nreturn e[K[0]] * 2"), "list", element
    )
    with pytest.warns(tj.NotAcceleratedWarning, match="it writes into an element"):
        for call in range(4):
            given = []
            for agent in (fast, plain):
                random.seed(call)
                given.append(agent.step())
                agent.see()
            check_same(*given)
            check_same(fast.memory, plain.memory)


def test_copies_are_kept() -> None:
    body = "b = random.sample(self.memory, 3)\nself.last = b[0][0].copy(), b[1][2]\nreturn b[2][0]"
    plain, fast = agents(program(body))
    check_calls(plain, fast)
    check_same(fast.last, plain.last)
    assert fast.step.stats.hits >= 8


def test_an_element_that_the_function_writes_by_another_name() -> None:
    """Elements are read before the program runs; one that lies in an array that it writes has to be recorded."""
    body = "self.w += 1.0\nb = random.sample(self.memory, 9)\nreturn sum([e[0] for e in b])"
    plain, fast = agents(program(body))
    check_calls(plain, fast, calls=10)
    hits = fast.step.stats.hits
    assert hits >= 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for share in (lambda w: w, lambda w: w[:], lambda w: w[::-1]):
            for agent in (plain, fast):
                agent.memory[:] = [(share(agent.w), 0, 0.0, False) for _ in range(9)]
            given = []
            for agent in (fast, plain):
                random.seed(1)
                given.append(agent.step())
            check_same(*given)
    assert fast.step.stats.hits == hits


@pytest.mark.parametrize("draw", ["random.choice(self.memory)", "random.sample(self.memory, 1)[0]"])
def test_of_a_few_arrays_each_has_a_trace(draw: str) -> None:
    """So the function can write the one that it has drawn."""
    plain, fast = agents(program(f"w = {draw}\nw += 1.0\nreturn w * 2"))
    for agent in (plain, fast):
        agent.memory, agent.see = [np.zeros(2) + i for i in range(3)], lambda: None
    check_calls(plain, fast, calls=30)
    assert fast.step.stats.hits >= 15


def test_many_numbers_are_a_pool() -> None:
    plain, fast = agents(program("return random.choice(self.memory) * self.w, random.sample(self.memory, 2)"))
    for agent in (plain, fast):
        agent.memory, agent.see = [i / 7 for i in range(50)], lambda: None
    check_calls(plain, fast, calls=20)
    assert fast.step.stats.hits >= 15


def test_gradients_by_weights() -> None:
    def step(self: Any) -> Any:
        b = random.sample(self.memory, 6)
        s, r = np.array([e[0] for e in b]), np.array([e[2] for e in b])
        loss = ((s @ self.v - r) ** 2).mean()
        return loss, tj.dlgradient(loss, self.v)

    kind = type("User", (Agent,), {"step": tj.dlaccelerate(step), "__module__": "user"})
    agent = kind([], ELEMENTS["tuple"])
    agent.v = tj.dlarray(np.array([0.5, -1.0, 2.0]))
    for call in range(8):
        random.seed(call)
        loss, slope = agent.step()
        random.seed(call)
        b = random.sample(agent.memory, 6)
        s, r = np.array([e[0] for e in b]), np.array([e[2] for e in b])
        error = s @ agent.v._data - r
        check_same([loss, slope], [(error**2).mean(), 2 / 6 * error @ s])
        agent.see()
    assert agent.step.stats.hits >= 4


@pytest.mark.parametrize("confirm", [0, 1, 2])
def test_confirmations(confirm: int) -> None:
    source = program(
        "b = self.rng.sample(self.memory, 4)\nreturn np.array([e[0] for e in b]) * self.rng.random()"
    )
    plain, fast = agents(source, confirm=confirm)
    check_calls(plain, fast)
    assert fast.step.stats.hits >= 8


@pytest.mark.parametrize(
    "element",
    [(), (None,), "text", object(), {"a": "b"}, (np.array(["a"]),), [[1.0]], np.zeros(2, object), 1j],
)
def test_what_has_no_columns(element: Any) -> None:
    assert ElementLayout.of(element) is None


@pytest.mark.parametrize("element", ["list", "dict"])
@pytest.mark.parametrize(
    "keep", ["self.last = e", "self.last = [(e, 1)]", "self.log.append(e)", "self.by['a'] = e"]
)
def test_lists_that_are_kept_run_uncompiled(keep: str, element: str) -> None:
    plain, fast = agents(
        program(f"e = random.choice(self.memory)\n{keep}\nreturn e[K[2]] * self.w"), "list", element
    )
    for agent in (plain, fast):
        agent.log, agent.by = [], {}
    with pytest.warns(tj.NotAcceleratedWarning, match="it keeps an element"):
        check_calls(plain, fast, calls=4)


@pytest.mark.parametrize("sizes", [(4, 9), (9, 4), (9, 4, 9)])
def test_an_error_of_a_draw_that_is_handled(sizes: tuple[int, ...]) -> None:
    body = (
        "try:\n    b = random.sample(self.memory, 6)\nexcept ValueError:\n    return -1.0\nreturn b[0][0] * 2"
    )
    plain, fast = agents(program(body))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in sizes:
            for agent in (plain, fast):
                agent.memory[:] = [(np.ones(3) * i, i, 1.0, False) for i in range(size)]
                agent.see = lambda: None
            check_calls(plain, fast, calls=5)


def shared(how: str, w: np.ndarray) -> np.ndarray:
    """Return an array with the memory of another one."""
    if how == "strided":
        return np.lib.stride_tricks.as_strided(w, w.shape, w.strides)
    return np.asarray(memoryview(w)) if how == "memoryview" else np.frombuffer(w, w.dtype)


@pytest.mark.parametrize("how", ["strided", "memoryview", "buffer"])
def test_memory_that_is_shared_without_a_base(how: str) -> None:
    plain, fast = agents(program("self.w += 1.0\nreturn sum([e[0] for e in random.sample(self.memory, 3)])"))
    check_calls(plain, fast, calls=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for agent in (plain, fast):
            agent.memory[:] = [(shared(how, agent.w), 0, 0.0, False) for _ in range(5)]
            agent.see = lambda: None
        check_calls(plain, fast, calls=3)


def test_an_argument_that_is_an_element_and_is_written() -> None:
    source = (
        "def step(self, a):\n    a += 1.0\n    return sum([e[0] for e in random.sample(self.memory, 3)])\n"
    )
    _, fast = agents(source)
    del fast.memory[3:]
    with pytest.raises(tj.WriteError, match="by another name"):
        fast.step(fast.memory[1][0])


@pytest.mark.parametrize(
    "use",
    [
        "self.w[b[0][3]]", "1.0 if b[0][3] is True else 2.0", "1.0 if b[0][3] is False else 2.0",
        "b[0][0] is b[1][0]", "1.0 if b[0] is self.memory[0] else 2.0", "self.w[[e[3] for e in b[:3]]]",
    ],
)  # fmt: skip
def test_truths_and_identities(use: str) -> None:
    plain, fast = agents(program(f"b = random.choices(self.memory, k=4)\nreturn {use}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_calls(plain, fast, calls=12)


@pytest.mark.parametrize("element", [np.array(1.0), np.ones((3, 3)).T.copy("F"), 1 << 64, np.ones(2, "S1")])
def test_arrays_in_another_layout(element: Any) -> None:
    plain, fast = agents(program("return [e[0] for e in random.sample(self.memory, 3)]"))
    check_calls(plain, fast, calls=8)
    for agent in (plain, fast):
        agent.memory[:] = [(element, 0, 0.0, False) for _ in range(5)]
        random.seed(1)
        agent.last = agent.step()
    assert [np.shape(x) for x in fast.last] == [np.shape(x) for x in plain.last]


def test_read_only_elements() -> None:
    body = "e = random.choice(self.memory)\ntry:\n    e[0][0] = 1.0\nexcept ValueError:\n    return 7.0\nreturn e[0]"
    plain, fast = agents(program(body))
    for agent in (plain, fast):
        for element in agent.memory:
            element[0].flags.writeable = False
        agent.see = lambda: None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_calls(plain, fast, calls=4)


def test_the_length_of_a_class_is_asked_once() -> None:
    asked = []

    class Sized:
        def __len__(self) -> int:
            asked.append(1)
            return 3

    plain, fast = agents(program("return len(self.sized) + len(self.memory) * self.w"))
    for agent in (plain, fast):
        agent.sized = Sized()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_calls(plain, fast, calls=8)
    assert len(asked) >= 16 or fast.step.stats.hits


def test_what_is_no_sequence_is_refused_as_by_python() -> None:
    class Few:
        def __len__(self) -> int:
            return 20

        def __getitem__(self, i: int) -> int:
            return i

    plain, fast = agents(program("return random.sample(self.few, 3)"))
    for agent in (plain, fast):
        agent.few = Few()
        with pytest.raises(TypeError, match="Population must be a sequence"):
            agent.step()


def test_a_trace_that_has_missed_applies_again() -> None:
    plain, fast = agents(program("return [e[0] for e in random.sample(self.memory, 3)]"))
    check_calls(plain, fast, calls=6)
    for agent in (plain, fast):
        agent.kept, agent.memory, agent.see = agent.memory, [(1.5, 0, 0.0, False)] * 6, lambda: None
    check_calls(plain, fast, calls=5)
    for agent in (plain, fast):
        agent.memory = agent.kept
    hits = fast.step.stats.hits
    check_calls(plain, fast, calls=4)
    assert fast.step.stats.hits == hits + 4
