# SPDX-License-Identifier: BSD-3-Clause
"""What functions put into containers among their arguments is in the caller's, as in Python."""

import copy
import random
import warnings
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracejit as tj


@dataclass
class State:
    step: int
    rate: float
    w: Any


def arguments() -> dict[str, Any]:
    """Return arguments with containers of each kind."""
    return {
        "p": {"w": np.array([1.0, 2.0]), "b": 0.5, "sub": {"m": np.zeros(2), "n": 3}},
        "h": [np.ones(2), 1.5, 2],
        "o": OrderedDict(first=1.0, second=np.array([3.0])),
        "s": State(0, 0.1, np.array([0.5, 0.25])),
        "t": ({"v": np.full(2, 2.0)}, [1.0]),
    }


STEPS = (
    'p["w"] = p["w"] - 0.1 * x', 'p["w"] = x * 2', 'p["new"] = x.sum()', 'p["b"] += 1', 'p["sub"]["m"] = x - p["w"]',
    'p["sub"]["n"] += 1', 'p["old"] = p["w"]', 'p["w"] -= x', 'del p["b"]', 'p.pop("w")', 'p.update(b=x[0], c=2.5)',
    'p["sub"] = {"m": x}', 'p["b"] = p.pop("b")', "p.clear()", 'p["text"] = "a"', 'p["sub"].clear()', 'p["h"] = h',
    'p["sub"], p["other"] = {"z": x}, p["sub"]', 'p.setdefault("q", []).append(x[1])', 'p["none"] = None',
    "h.append(x.mean())", "h[0] = h[0] + x", "h[1] = 7.5", "h.pop()", "h.insert(0, x)", "h.reverse()", "del h[:2]",
    "h[0], h[1] = h[1], h[0]", "h.extend([x, 1])", "h += [x[0]]", "h.clear()", "h.append(list(h))",
    'h.append(p["sub"])',
    'o["first"] = o["first"] * 2', 'o.move_to_end("first")', 'o["third"] = x', 'o.popitem()', 's.step += 1',
    "s.rate *= 0.5", "s.w = s.w - s.rate * x", "s.w[0] = 5.0", 's.w = p.get("w", x)', 't[0]["v"] = t[0]["v"] + x',
    "t[1].append(x[0])", 't[0]["deep"] = {"list": [x, {"y": 1.0}]}', "h[0] = p", 'p["w"] = x; p["w"] = p["w"] * 2',
    'for k in list(p): p[k] = p[k]', 'p["w"][0] = x[1]', "h.append(float(x[0]))", 'p["i"] = int(p["sub"].get("n", 1))',
)  # fmt: skip


RESULTS = (
    "x.sum()",
    "p",
    "(x.sum(), p, s)",
    '{"h": h, "again": h}',
    "t",
    "[o, x * 2]",
    "None",
    'p.get("sub")',
)


def function_of(body: str, result: str = "x.sum()") -> Any:
    names: dict[str, Any] = {"np": np}
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    exec(f"def function(x, p, h, o, s, t):\n{lines}    return {result}\n", names)
    return names["function"]


def frozen(value: Any) -> Any:
    """Return a container as something to compare, with the types of containers and of numbers of Python."""
    if isinstance(value, dict):
        return [type(value).__name__, [(key, frozen(part)) for key, part in value.items()]]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [frozen(part) for part in value]]
    if isinstance(value, State):
        return ["State", frozen(vars(value))]
    if isinstance(value, (tj.dlarray, np.ndarray, np.generic)):
        return [str(value.dtype), np.asarray(value).round(9).tolist()]
    return type(value).__name__, value


def ran(function: Any, calls: int, vary: bool) -> list[Any]:
    """Call a function with arguments that stay, or are new in each call; return what they hold after each."""
    found: list[Any] = []
    given = arguments()
    for call in range(calls):
        given = arguments() if vary else given
        x = np.array([0.5 + call, -1.0])
        try:
            found.append(frozen(function(x, **given)))
        except tj.WriteError:  # a container is there twice by now, and changes
            assert not vary
            break
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            found.append("error")
            if not vary:
                break
        else:
            found.append(frozen(given))
    return found


WAYS = {
    "accelerated": lambda function: tj.dlaccelerate(function, audit=False),
    "confirmed at once": lambda function: tj.dlaccelerate(function, confirm=0),
    "uncompiled": lambda function: tj.dlaccelerate(function, enabled=False),
    "dlfeval": lambda function: lambda *args, **kwargs: tj.dlfeval(function, *args, **kwargs),
    "in dlfeval": lambda function: in_an_evaluation(tj.dlaccelerate(function, audit=False)),
    "in a recording": lambda function: in_a_recording(function),
}


def in_an_evaluation(accelerated: Any) -> Any:
    return lambda *args, **kwargs: tj.dlfeval(lambda: accelerated(*args, **kwargs))


def in_a_recording(function: Any) -> Any:
    inner = tj.dlaccelerate(function)

    def outer(x: Any, p: Any, h: Any, o: Any, s: Any, t: Any) -> Any:
        return inner(x, p, h, o, s, t)

    return tj.dlaccelerate(outer, audit=False)


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["accelerated", "uncompiled", "in a recording"])
@pytest.mark.parametrize("body", STEPS)
def test_a_step(body: str, way: str) -> None:
    function = function_of(body)
    for vary in (True, False):
        have, want = ran(WAYS[way](function), 5, vary), ran(function, 5, vary)
        assert have == want[: len(have)] and (len(have) == len(want) or 'p["sub"]' in body)


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(80))
def test_random_programs(seed: int) -> None:
    draw = random.Random(seed)
    body = "; ".join(draw.sample(STEPS, draw.choice([2, 3, 4])))
    if 'p["h"] = h' in body or ('h.append(p["sub"])' in body and '= {"' in body):
        body = draw.choice(STEPS)  # a container in itself, or a new one at two places, which are two
    result, way = draw.choice(RESULTS), draw.choice([*WAYS])
    result = "p" if way == "in a recording" and result == "None" else result
    function = function_of(body, result)
    for vary in (True, False):
        have, want = ran(WAYS[way](function), 5, vary), ran(function, 5, vary)
        assert have == want[: len(have)], (body, result, way)
        assert len(have) == len(want) or not vary, (body, way)


@pytest.mark.parametrize(
    "body",
    [
        'p["w"] = p["w"] - 0.1 * x', 's.w = s.w - s.rate * x', 'p["new"] = x.sum()', 'p["sub"]["m"] = x',
        "h[0] = h[0] + x", 't[0]["v"] = x', "h.append(x.mean())", 'del p["b"]; p["c"] = x', 'p["old"] = p["w"]',
        'p["sub"], p["other"] = {"z": x}, p["sub"]', 'p["b"] += 1', "s.step += 1",
    ],
)  # fmt: skip
def test_containers_are_filled_by_replays(body: str) -> None:
    accelerated = tj.dlaccelerate(function_of(body), audit=False)
    ran(accelerated, 8, vary=True)
    assert accelerated.stats.hits == 6


def test_what_stays_is_the_callers() -> None:
    @tj.dlaccelerate
    def step(x: Any, p: Any) -> Any:
        p["w"] = p["w"] + x
        p["sub"]["n"] = x.sum()

    kept, sub = np.zeros(2), {"n": 0.0, "other": [1]}
    p = {"w": np.ones(2), "kept": kept, "sub": sub}
    for _ in range(5):
        step(np.ones(2), p)
    assert p["kept"] is kept and p["sub"] is sub and type(kept) is np.ndarray
    np.testing.assert_allclose(p["w"], [6.0, 6.0])
    assert sub["n"].item() == 2.0


@pytest.mark.parametrize("way", [way for way in WAYS if way != "in dlfeval"])  # whose own result is new
def test_a_container_that_is_changed_and_returned_is_the_callers(way: str) -> None:
    function = WAYS[way](function_of('p["sub"]["m"] = x; s.step += 1', '(x.sum(), p, {"s": s, "h": h})'))
    for _ in range(5):
        given = arguments()
        _, p, rest = function(np.ones(2), **given)
        assert p is given["p"] and rest["s"] is given["s"] and p["sub"] is given["p"]["sub"]
        assert p["sub"]["m"].tolist() == [1.0, 1.0] and given["s"].step == 1
        assert frozen(rest["h"]) == frozen(given["h"])


def test_results_that_are_the_callers_are_computed_once() -> None:
    @tj.dlaccelerate
    def step(x: Any, p: Any) -> Any:
        p["w"] = p["w"] * 2 + x
        return p

    p = {"w": np.ones(2)}
    for _ in range(4):
        p = step(np.ones(2), p)
    (trace,) = step.variants()[0].traces
    assert len(trace.graph.outputs) == 1


def test_a_training_step_with_gradients() -> None:
    def loss(p: Any, x: Any) -> Any:
        return ((x @ p["w"] + p["b"] - 1.0) ** 2).mean()

    def step(p: Any, v: Any, history: Any, x: Any) -> None:
        value = loss(p, x)
        gradient = tj.dlgradient(value, p)
        for name in p:
            v[name] = 0.9 * v[name] + gradient[name]
            p[name] = p[name] - 0.1 * v[name]
        history["last"] = value

    x = np.linspace(-1, 1, 12).reshape(4, 3)
    found = []
    for run in (tj.dlaccelerate(step), lambda *args: tj.dlfeval(step, *args)):
        p: Any = {"w": tj.dlarray(np.ones(3)), "b": tj.dlarray(0.5)}
        v: Any = {"w": tj.dlarray(np.zeros(3)), "b": tj.dlarray(0.0)}
        history: Any = {"last": 0.0}
        for _ in range(20):
            run(p, v, history, x)
        found.append([*p["w"].tolist(), p["b"].item(), history["last"].item()])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
    assert found[0][-1] < 0.6


@pytest.mark.parametrize("way", [way for way in WAYS if way != "in a recording"])
def test_a_container_that_is_there_twice(way: str) -> None:
    def reads(x: Any, p: Any, q: Any) -> Any:
        return p["w"] * x + q["w"]

    def writes(x: Any, p: Any, q: Any) -> Any:
        p["w"] = p["w"] + x
        return q["w"] * 1

    reading, writing = WAYS[way](reads), WAYS[way](writes)
    for call in range(6):
        shared, p, q = {"w": np.full(2, 3.0)}, {"w": np.ones(2)}, {"w": np.zeros(2)}
        x = np.full(2, float(call))
        assert reading(x, shared, shared).tolist() == [3.0 * call + 3.0] * 2
        assert writing(x, p, q).tolist() == [0.0, 0.0] and np.asarray(p["w"]).tolist() == [call + 1.0] * 2
        with pytest.raises(
            tj.WriteError, match="are the same dict, and the function puts something into one"
        ):
            writing(x, shared, shared)
        assert shared["w"].tolist() == [3.0, 3.0]


def test_an_error_leaves_containers_as_they_were() -> None:
    @tj.dlaccelerate
    def step(x: Any, p: Any) -> Any:
        p["w"] = p["w"] + x
        if x.sum() > 10:
            raise ValueError("large")

    p = {"w": np.ones(2)}
    for _ in range(3):
        step(np.ones(2), p)
    with pytest.raises(ValueError, match="large"):
        step(np.full(2, 9.0), p)
    assert np.asarray(p["w"]).tolist() == [4.0, 4.0]


def test_arguments_that_are_not_to_be_written() -> None:
    @tj.dlaccelerate(write_arguments=False)
    def step(x: Any, p: Any) -> Any:
        p["w"] = p["w"] + x
        return p

    p = {"w": np.ones(2)}
    for _ in range(5):
        assert step(np.ones(2), p)["w"].tolist() == [2.0, 2.0]
    assert p["w"].tolist() == [1.0, 1.0]


def test_checks_compare_what_is_put_into_containers() -> None:
    scale = [1.0, 1.0, 1.0, 3.0]
    values = iter(scale)

    def step(x: Any, p: Any) -> Any:
        p["w"] = x * np.array([next(values)])

    accelerated = tj.dlaccelerate(step, check_mode="tolerance", audit=False)
    p = {"w": np.ones(1)}
    for _ in range(3):
        accelerated(np.ones(1), p)
    with pytest.warns(tj.OutputsDifferWarning, match=r"p\['w'\]"):
        accelerated(np.ones(1), p)


def test_views_of_the_arguments_in_containers() -> None:
    @tj.dlaccelerate
    def step(x: Any, p: Any) -> None:
        p["head"] = x[:2]

    x, p = np.arange(3.0), {}
    for call in range(5):
        step(x, p)
        x[0] += 1.0
        assert p["head"].tolist() == [call + 1.0, 1.0] or not call


def test_deep_copies_of_what_was_passed_compare_equal() -> None:
    given = arguments()
    before = copy.deepcopy(given)
    accelerated = tj.dlaccelerate(function_of("y = p['w'] * h[1]"))
    for _ in range(4):
        accelerated(np.ones(2), **given)
    assert frozen(given) == frozen(before)


@pytest.mark.parametrize("way", ["accelerated", "uncompiled", "dlfeval"])
def test_arrays_without_axes_in_containers_can_be_written(way: str) -> None:
    def step(x: Any, s: Any) -> Any:
        v = s.setdefault("v", np.zeros(()))
        v *= 0.5
        v += x.mean()
        return v * 1

    run, kept, want = WAYS[way](step), {}, 0.0
    for call in range(6):
        want = want * 0.5 + call
        assert float(run(np.full(2, float(call)), kept)) == want == float(kept["v"])


def test_arrays_without_axes_in_attributes_can_be_written() -> None:
    class Filter:
        def __init__(self) -> None:
            self.v: Any = None

        @tj.dlaccelerate
        def step(self, x: Any) -> Any:
            if self.v is None:
                self.v = np.zeros(())
            v = self.v
            v *= 0.5
            v += x.mean()
            return v * 1

    kept, want = Filter(), 0.0
    for call in range(7):
        want = want * 0.5 + call
        assert float(kept.step(np.full(2, float(call)))) == want


class Optimizer:
    """An object that has the parameters."""

    def __init__(self, params: Any) -> None:
        self.params = params

    def step(self, gradients: Any) -> None:
        for name in self.params:
            self.params[name] = self.params[name] - 0.1 * gradients[name]


def test_an_optimizer_that_has_the_parameters() -> None:
    @tj.dlaccelerate
    def train(params: Any, optimizer: Any, x: Any) -> Any:
        loss = ((params["w"] * x) ** 2).sum()
        optimizer.step(tj.dlgradient(loss, params))
        return loss

    params = {"w": np.ones(2)}
    optimizer = Optimizer(params)
    with pytest.warns(tj.LostChangeWarning, match="changes what it was given as params by another name"):
        losses = [train(params, optimizer, np.ones(2)).item() for _ in range(8)]
    np.testing.assert_allclose(losses, [2 * 0.8 ** (2 * n) for n in range(8)])
    np.testing.assert_allclose(params["w"], [0.8**8] * 2)


def test_an_argument_that_is_written_and_read_by_another_name() -> None:
    class Model:
        def __init__(self) -> None:
            self.w, self.state = np.zeros(2), State(0, 0.1, np.zeros(2))

        @tj.dlaccelerate
        def update(self, w: Any, g: Any) -> Any:
            w -= 0.1 * g
            return np.abs(self.w).sum()

        @tj.dlaccelerate
        def advance(self, state: Any) -> Any:
            state.step += 1
            return self.state.step

        @tj.dlaccelerate
        def read(self, w: Any, state: Any) -> Any:
            return np.abs(self.w).sum() + w.sum() + self.state.step + state.step

    model = Model()
    for _ in range(4):
        with pytest.raises(tj.WriteError, match="it writes w, whose memory it also reads"):
            model.update(model.w, np.ones(2))
        with pytest.raises(tj.WriteError, match="it puts something into state, a State that"):
            model.advance(model.state)
        assert model.read(model.w, model.state) == 0.0
    assert model.w.tolist() == [0.0, 0.0] and model.state.step == 0


@dataclass
class Layer:
    w: Any
    b: Any = 0.0

    def __post_init__(self) -> None:
        self.scale = 2.0


@dataclass(frozen=True)
class Fixed:
    w: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", 2.0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["accelerated", "uncompiled", "dlfeval"])
@pytest.mark.parametrize(
    "body",
    [
        "s.w = s.w + x * s.scale", "s.scale += 1; s.w = s.w * s.scale", "s.cache = x.sum()", "del s.b; s.w = x",
        "s.extra = [x]; s.extra.append(s.w)", "s.b = getattr(s, 'seen', 0.0); s.seen = x.sum()", "del s.scale",
    ],
)  # fmt: skip
def test_attributes_of_dataclasses(body: str, way: str) -> None:
    def run(way_of: Any) -> Any:
        names: dict[str, Any] = {}
        lines = "".join(f"    {line}\n" for line in body.split("; "))
        exec(f"def function(x, s):\n{lines}    return x.sum()\n", names)
        function, found, layer = way_of(names["function"]), [], Layer(np.ones(2))
        for call in range(6):
            try:
                function(np.array([1.0 + call, 2.0]), layer)
            except AttributeError:
                found.append("AttributeError")
                break
            found.append(frozen(dict(vars(layer))))
        return found

    assert run(WAYS[way]) == run(lambda function: function)


def test_attributes_of_frozen_dataclasses() -> None:
    accelerated = tj.dlaccelerate(lambda x, s: x * s.scale + s.w)
    with pytest.warns(tj.NotAcceleratedWarning, match="an attribute that is no field, Fixed.scale"):
        for _ in range(4):
            assert accelerated(np.ones(2), Fixed(np.ones(2))).tolist() == [3.0, 3.0]


def test_what_is_there_twice_and_stays_is_replayed() -> None:
    @tj.dlaccelerate(audit=False)
    def step(p: Any, first: Any, second: Any, x: Any) -> Any:
        p["w"] = first["a"] * x + second["a"]
        return p["w"] * 1

    data = {"a": np.ones(2)}
    for call in range(8):
        p: dict[str, Any] = {}
        assert step(p, data, data, np.full(2, float(call))).tolist() == [call + 1.0] * 2
        assert p["w"].tolist() == [call + 1.0] * 2
    assert step.stats.hits == 6
    with pytest.raises(tj.WriteError, match="p and second are the same dict"):
        step(data, {"a": 1.0}, data, np.ones(2))


def test_a_captured_dict_is_exchanged_with_one_of_an_argument() -> None:
    model, p = Optimizer({"z": 1}), {"a": {"z": 2}}

    @tj.dlaccelerate
    def swap(x: Any, p: Any) -> Any:
        model.params, p["a"] = p["a"], model.params
        return x * 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in range(8):
            assert swap(np.ones(2), p).tolist() == [1.0, 1.0]
            assert (model.params["z"], p["a"]["z"]) == ((2, 1) if call % 2 == 0 else (1, 2))
            assert model.params is not p["a"]
