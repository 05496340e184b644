# SPDX-License-Identifier: BSD-3-Clause
"""export() and load(): a loaded function returns what the accelerated function returned; other traces are refused."""

import copy
import gc
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracejit as tj
from tracejit import ArgumentError, ExportError, RetraceError, TraceError, config, tree
from tracejit.capture.state import CapturedState
from tracejit.codegen import target
from tracejit.codegen.templates import gemm
from tracejit.compile import ahead, objects
from tracejit.compile.ahead import LEVELS, runs_here
from tracejit.compile.lower import lower
from tracejit.exports import machine
from tracejit.passes.loops import multiplier

HERE = [level for level in LEVELS if runs_here(level)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "function.tj")


def exported(function: Any, path: str, *calls: Any, **options: Any) -> tj.LoadedFunction:
    """Return a function that was exported after each of some calls was replayed, and loaded."""
    for args in calls:
        for _ in range(3):
            function(*args)
    tj.export(function, path, **options)
    return tj.load(path)


def same(found: Any, expected: Any) -> bool:
    """Return whether two results are the same to the bit, with labels, classes and the order of keys."""
    mine, theirs = tree.flatten(found), tree.flatten(expected)
    if mine[1] != theirs[1] or mine[1].orders != theirs[1].orders:
        return False
    return all(
        type(a) is type(b)
        and (type(a) is not tj.dlarray or a.format == b.format)
        and np.asarray(a).dtype == np.asarray(b).dtype
        and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(mine[0], theirs[0], strict=True)
    )


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class State:
    weights: Any
    steps: int


def containers(tensors: dict, state: Pair, rest: list) -> Any:
    x = tensors["x"] * 2 + tensors["a"]["y"]
    more = OrderedDict([("z", x.sum()), ("a", None), (3, "text")])
    return Pair(x, [more, State(rest[0] + state.first, 7)]), (True, 2.5, b"\0", np.arange(3), np.float32(0.1))


CALLS: list[tuple[Any, tuple[Any, ...]]] = [
    (lambda x: x * 2, (np.arange(6.0),)),
    (lambda x: x.sum(), (tj.dlarray(np.ones((2, 3), np.float32), "BC"),)),
    (lambda x: tj.dlgradient((x**3).sum(), x), (tj.dlarray(np.arange(4.0), "C"),)),
    (lambda x, y: x @ y, (np.ones((5, 4)), np.ones((4, 3)))),
    (lambda x: (x.T + 1, x[::2]), (np.asfortranarray(np.arange(12.0).reshape(3, 4))[:, ::2],)),
    (lambda x: x[::-1] * 2, (np.arange(10.0)[::-3],)),
    (lambda x: x + 1, (np.zeros((0, 3)),)),
    (lambda x: (x, x), (np.ones(2, bool),)),
    (lambda x, i: x[i], (np.arange(5), np.array([1, -1]))),
    (lambda: tj.zeros(3), ()),
    (lambda x: ("nothing computed", 1), (np.ones(1),)),
    (lambda x, power: x**power, (np.arange(3.0), 2)),
    (lambda x, **options: x * options["scale"], (np.arange(3.0),)),
    (
        containers,
        ({"x": np.ones(2), "a": {"y": np.arange(2.0)}}, Pair(np.ones(3), None), [tj.dlarray(np.arange(3.0))]),
    ),
    (
        lambda a, b, c, d, e, f, g: a * b * np.float32(c) if d and e is None else a,
        (np.ones(2), -0.0, np.float32(3), True, None, "text", (1, b"x", np.int8(3), 1j, np.dtype(">f4"))),
    ),
    (lambda x, kind, nan: tj.cast(x, kind), (np.ones(2), np.float32, float("nan"))),
    (
        lambda x, *kinds: (x, np.bool_(True), kinds),
        (np.ones(2), np.bool_(False), bool, np.bool_, np.int64(3), 3j),
    ),
    (
        lambda p: p[np.int64(1)] + p[1.5] + p[(1, "a")],
        ({np.int64(1): np.ones(1), 1.5: np.ones(1), (1, "a"): np.ones(1)},),
    ),
]


@pytest.mark.parametrize(("function", "args"), CALLS)
def test_a_loaded_function_returns_the_same(function: Any, args: Any, path: str) -> None:
    step = tj.dlaccelerate(function)
    kwargs = {"scale": 3.0} if "options" in inspect.signature(function).parameters else {}
    made = tj.export(step, path, args=args, kwargs=kwargs)
    loaded = tj.load(path)
    assert (made.path, made.sha256, made.traces, made.cpus) == (path, loaded.sha256, 1, ("host",))
    expected = step(*args, **kwargs)
    for _ in range(4):  # the general way, then call paths
        assert same(loaded(*args, **kwargs), expected)


def test_arguments_by_name(path: str) -> None:
    @tj.dlaccelerate
    def power(x: Any, /, exponent: Any, *rest: Any, scale: float = 1.0) -> Any:
        return x**exponent * scale

    x = np.arange(3.0)
    for _ in range(3):
        power(x, 2, scale=3.0)
    tj.export(power, path)
    loaded = tj.load(path)
    for _ in range(3):
        assert loaded(x, exponent=2, scale=3.0).tolist() == [0.0, 3.0, 12.0]
    assert str(inspect.signature(loaded)) == "(x, /, exponent, *rest, scale=1.0)"
    with pytest.raises(TypeError, match=r"[(][)] missing a required argument: 'exponent'$"):
        loaded(x, scale=3.0)


def test_numbers_that_vary_are_inputs(path: str) -> None:
    @tj.dlaccelerate
    def decayed(x: Any, rate: float, n: int) -> Any:
        return x * rate / n, n + 1, rate * 2

    x = np.ones(2)
    calls = [(x, 0.5, n) for n in range(1, 4)] + [(x, 0.5 + n, 9) for n in range(4)]
    loaded = exported(decayed, path, *calls)
    for rate, n in ((0.5, 77), (3.25, 10**9), (0.5, 1), (float("inf"), 9)):
        for _ in range(2):
            y, after, twice = loaded(x, rate, n)
            assert (y.tolist(), after, twice) == ([rate / n] * 2, n + 1, rate * 2)
            assert (type(after), type(twice)) == (int, float)
    for wrong in ((x, 1, 9), (x, 0.5, 9.0)):
        with pytest.raises(
            ArgumentError, match=r"decayed: (rate|n) is (1|9\.0), expected an? (float|int) \(any value\)\. "
        ):
            loaded(*wrong)
    with pytest.raises(ArgumentError, match=r"n is 9223372036854775808, expected an int \(any value\)"):
        loaded(x, 0.5, 1 << 63)


@pytest.mark.parametrize("kind", [float, int, np.float64, np.float32, np.int64, np.int8])
def test_a_number_in_args_after_it_became_an_input(path: str, kind: type) -> None:
    @tj.dlaccelerate
    def scaled(x: Any, rate: Any) -> Any:
        return x * rate, rate * 2

    for n in range(1, 7):
        scaled(np.ones(2), kind(n))
    for number in (1, 3, 9):  # recorded by its value, and with an input, and new
        tj.export(scaled, path, args=(np.ones(2), kind(number)), replace=True)
        loaded = tj.load(path)
        for given in (1, 7, number, 11):
            y, twice = loaded(np.ones(2), kind(given))
            assert (y.tolist(), twice, type(twice)) == ([given] * 2, 2 * given, kind)


def test_a_number_of_numpy_that_does_not_vary(path: str) -> None:
    fun = tj.dlaccelerate(lambda x, rate: x * rate)
    for rate in (np.float64(0.5), np.float32(0.1), np.float64("nan"), np.int8(3)):
        tj.export(fun, path, args=(np.ones(2, np.float32), rate), replace=True)
        loaded = tj.load(path)
        for _ in range(2):
            found = loaded(np.ones(2, np.float32), rate)
            np.testing.assert_array_equal(tj.extractdata(found), np.ones(2, np.float32) * rate)
        with pytest.raises(ArgumentError, match=r"rate is .*, expected "):
            loaded(np.ones(2, np.float32), type(rate)(4))


def test_a_loop_exports_the_trace_for_all_iterations(path: str) -> None:
    @tj.dlaccelerate
    def step(x: Any, iteration: int) -> Any:
        return x / iteration

    x = np.ones(2)
    for iteration in range(1, 8):  # of which the first two have a trace each that nothing confirms
        step(x, iteration)
    assert tj.export(step, path).traces == 1
    loaded = tj.load(path)
    for iteration in (1, 2, 5, 1000):
        assert loaded(x, iteration).tolist() == [1 / iteration] * 2


@tj.dlaccelerate
def magnitude(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def test_guards_choose_among_traces(path: str) -> None:
    a = np.ones(2)
    tj.clear_cache(magnitude)
    loaded = exported(magnitude, path, (a,), (-a,))
    for sign in (1, -1, -1, 1, -1):
        assert loaded(sign * a).tolist() == [1.0, 1.0]
    assert [len(each.guards) for each in loaded.signature] == [1, 1]
    assert str(loaded.signature[0]).startswith("(x: 2 float64) -> 2 float64, if bool() at ")


def test_a_branch_without_a_trace_is_an_error(path: str) -> None:
    tj.clear_cache(magnitude)
    loaded = exported(magnitude, path, (np.ones(2),))
    assert loaded(np.ones(2)).tolist() == [1.0, 1.0]
    for _ in range(2):
        with pytest.raises(
            RetraceError,
            match=r"^magnitude: the values of the arguments lead to a branch that no exported trace has; the exported "
            r"traces hold where bool\(\) at .*test_export.py:\d+ is True\. A loaded function records nothing, and this "
            r"one has 1 exported trace \(\.signature\)\. Call the original function with these arguments, and export "
            r"it again\.$",
        ):
            loaded(-np.ones(2))
    assert loaded(np.ones(2)).tolist() == [1.0, 1.0]


def test_random_numbers_come_from_the_default_generator(path: str) -> None:
    @tj.dlaccelerate
    def noisy(x: Any) -> Any:
        return x + tj.rand(3)

    loaded = exported(noisy, path, (np.zeros(3),))
    with tj.rng(5):
        expected = [noisy(np.zeros(3)).tolist() for _ in range(4)]
    with tj.rng(5):
        assert [loaded(np.zeros(3)).tolist() for _ in range(4)] == expected
    assert loaded.signature[0].draws


def test_an_index_out_of_range_is_noticed(path: str) -> None:
    loaded = exported(tj.dlaccelerate(lambda x, i: x[i]), path, (np.arange(3), np.array([1])))
    for _ in range(2):
        assert loaded(np.arange(3), np.array([-1])).tolist() == [2]
        with pytest.raises(tj.BoundsError, match="an index is out of range in a replay of take"):
            loaded(np.arange(3), np.array([3]))


class Model:
    def __init__(self) -> None:
        self.weights = np.arange(24.0).reshape(4, 6)
        self.rate = 0.5

    @tj.dlaccelerate
    def forward(self, x: Any) -> Any:
        """Compute the model."""
        return x @ self.weights[:, ::2] * self.rate + self.weights[1:, 0]


def test_captured_arrays_are_constants_on_request(path: str) -> None:
    model, x = Model(), np.ones(4)
    model.forward(x)
    with pytest.raises(
        ExportError,
        match=r"^export: Model.forward, for x: 4 float64: it captures arrays: (a view of "
        r")?self.weights.*\. "
        r"Pass them as arguments, or export their current contents as constants: export\(\.\.\., "
        r"captured=\"constants\"\)\.$",
    ):
        tj.export(model.forward, path, args=(x,))
    assert not os.path.exists(path)
    expected = model.forward(x)
    made = tj.export(model.forward, path, args=(x,), captured="constants")
    assert ("self.rate", "0.5") in made.constants
    loaded = tj.load(path)
    model.weights[:] = 0
    model.rate = 3.0
    for _ in range(3):
        assert same(loaded(x), expected)
    assert loaded.__doc__ == "Compute the model."
    assert ("self.rate", "0.5") in loaded.signature[0].constants
    assert str(inspect.signature(loaded)) == "(x)"


def test_arrays_that_numpy_reads_are_captured_too(path: str) -> None:
    weights = np.ones(3)
    scaled = tj.dlaccelerate(lambda x: x * float(np.sum(weights)))
    with pytest.raises(ExportError, match="it captures arrays: closure weights"):
        tj.export(scaled, path, args=(np.ones(2),))
    tj.export(scaled, path, args=(np.ones(2),), captured="constants")
    assert tj.load(path)(np.ones(2)).tolist() == [3.0, 3.0]


def test_captured_arrays_beside_random_numbers(path: str) -> None:
    weights = np.arange(3.0)
    noisy = tj.dlaccelerate(lambda x: x * weights + tj.rand(3))
    tj.export(noisy, path, args=(np.ones(3),), captured="constants")
    loaded = tj.load(path)
    with tj.rng(1):
        expected = [noisy(np.ones(3)).tolist() for _ in range(3)]
    weights[:] = 0
    with tj.rng(1):
        assert [loaded(np.ones(3)).tolist() for _ in range(3)] == expected


def test_captured_state_that_changes_during_the_export(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    double = tj.dlaccelerate(lambda x: 2 * x)
    monkeypatch.setattr(CapturedState, "applies", lambda self: True)
    for _ in range(3):
        double(np.ones(3))
    monkeypatch.setattr(CapturedState, "fetch_checked", lambda self: None)
    with pytest.raises(ExportError, match=r"captured state changed during the export\. Export it again\.$"):
        tj.export(double, path)


class Unsigned:
    """Doubles."""

    __signature__ = "none that Python knows"

    def __call__(self, x: Any) -> Any:
        return 2 * x


def test_a_function_without_a_signature(path: str) -> None:
    loaded = exported(tj.dlaccelerate(Unsigned()), path, (np.ones(2),))
    assert loaded(np.ones(2)).tolist() == [2.0, 2.0]
    assert loaded.signature[0].inputs == "argument 1: 2 float64"
    with pytest.raises(ArgumentError, match=r"Missing: argument 1\. Not expected: x\."):
        loaded(x=np.ones(2))


def test_levels_that_this_machine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "host", lambda: ("x86_64-linux", "old", "+sse2,+sse3,-avx"))
    assert [level for level in LEVELS if runs_here(level)] == ["x86-64"]
    monkeypatch.setattr(ahead, "host", lambda: ("x86_64-linux", "unknown", ""))
    assert not any(map(runs_here, LEVELS))
    monkeypatch.setattr(ahead, "host", lambda: ("aarch64-linux", "m1", "+sse2"))
    assert not any(map(runs_here, LEVELS))


def test_a_folder_depends_on_the_sources_of_the_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    before = machine.executor_hash()
    assert before is not None
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b" " * (path.name == "state.py"))
    assert machine.executor_hash() not in (before, None)
    monkeypatch.setattr(machine.kernels, "__path__", ["/nowhere"])
    assert machine.executor_hash() is None


@pytest.mark.parametrize("fails", [1, 2])
def test_a_folder_that_cannot_be_moved_into_place(
    fails: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = tj.dlaccelerate(lambda x: 2 * x)
    sha256 = tj.export(double, path, args=(np.ones(3),)).sha256
    rename, calls = os.rename, []

    def failing(*args: Any, **folders: Any) -> None:
        if not folders:  # as the cache gives them
            calls.append(args)
            if len(calls) == fails:
                raise OSError(28, "No space left on device")
        rename(*args, **folders)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(ExportError, match=r"function.tj cannot be written \(No space left on device\)\.$"):
        tj.export(double, path, args=(np.ones(4),), replace=True)
    monkeypatch.undo()
    assert os.listdir(os.path.dirname(path)) == ["function.tj"]
    assert tj.load(path, sha256=sha256)(np.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize("cpu", HERE)
def test_code_for_a_level_of_cpus(cpu: str, path: str) -> None:
    rng = np.random.default_rng(0)
    args = (
        rng.standard_normal((33, 20)).astype(np.float32),
        rng.standard_normal((20, 17)).astype(np.float32),
    )

    @tj.dlaccelerate
    def step(x: Any, w: Any) -> Any:
        y = tj.softmax(tj.tanh(x @ w), axis=1)
        return y, tj.dlgradient((y * y).sum(), w) if False else y.sum(axis=0)

    made = tj.export(step, path, args=args, cpus=cpu)
    assert made.cpus == (cpu,)
    loaded = tj.load(path)
    assert loaded.cpu == cpu
    for found, expected in zip(loaded(*args), step(*args), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-5)


@pytest.mark.parametrize(
    ("level", "without"),
    [
        ("x86-64", ["ymm", "zmm", "vfmadd", "popcnt"]),
        ("x86-64-v2", ["ymm", "zmm", "vfmadd"]),
        ("x86-64-v3", ["zmm"]),
    ],
)
def test_code_for_a_level_uses_its_features_only(level: str, without: list[str]) -> None:
    """Here it would run all the same."""
    vector_bytes = LEVELS[level].vector_bytes
    with target.written_for(vector_bytes):
        kernels = [gemm.product(np.dtype(np.float32), 64, 64), gemm.panels(np.dtype(np.float64))]
    texts = [lower(kernel).assembly(objects.Cpu(level, "")) for kernel in kernels]
    texts += [lower(name).assembly(objects.Cpu(level, "")) for name in ahead.FUNCTIONS]
    assert not [name for name in without for text in texts if name in text]
    assert "ymm" in texts[0] or vector_bytes < 32


def test_the_best_code_is_used(path: str) -> None:
    double = tj.dlaccelerate(lambda x: x * 2)
    cpus = ("x86-64", *HERE[-1:], "host")
    tj.export(double, path, args=(np.ones(3),), cpus=cpus)
    assert tj.load(path).cpu == "host"
    assert tj.load(path, cpu="x86-64").cpu == "x86-64"
    with pytest.raises(
        ExportError,
        match=rf"^load: {path} has no object code 'x86-64-v2' for this machine \(x86_64 linux, \w+\); it has code for "
        r"x86_64 linux: x86-64, x86-64-v\d, host \(\w+\)\. Export the function on this "
        r"machine, or with cpus= that include it\.$",
    ):
        tj.load(path, cpu="x86-64-v2")


def test_attributes_of_a_loaded_function(path: str) -> None:
    def doubled(x: Any) -> Any:
        """Twice x."""
        return 2 * x

    loaded = exported(tj.dlaccelerate(doubled), path, (np.ones((2, 3), np.float32),))
    assert repr(loaded) == (
        "LoadedFunction with properties:\n\n"
        f"   function: {__name__}.test_attributes_of_a_loaded_function.<locals>.doubled\n"
        f"       path: {path}\n"
        "        cpu: host\n"
        "  signature: (x: 2x3 float32) -> 2x3 float32\n"
        f"     sha256: {loaded.sha256}"
    )
    assert (loaded.__doc__, loaded.__module__) == ("Twice x.", __name__)
    assert loaded.__name__.endswith("doubled")
    (signature,) = loaded.signature
    assert (signature.inputs, signature.outputs) == ("x: 2x3 float32", ("2x3 float32",))
    assert (signature.guards, signature.constants, signature.draws) == ((), (), False)
    text = Path(path, "programs", f"vectors-{_vectors(path)}", "trace-0.py").read_text()
    assert loaded.source() == text
    assert "def forward(memory):" in text
    assert "test_export.py" in text


def _vectors(path: str) -> int:
    return int(json.loads(Path(path, "manifest.json").read_text())["cpus"][0]["vector_bytes"])


def test_copies_and_pickles(path: str) -> None:
    loaded = exported(tj.dlaccelerate(lambda x: 2 * x), path, (np.ones(3),))
    assert copy.copy(loaded) is copy.deepcopy(loaded) is loaded
    again = pickle.loads(pickle.dumps(loaded))
    assert again.sha256 == loaded.sha256
    assert again(np.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((np.ones((5, 3)), {"w": np.ones(3)}, "a"), "x is 5x3 float64, expected 4x3 float64."),
        ((np.ones((4, 3), np.float32), {"w": np.ones(3)}, "a"), "x is 4x3 float32, expected 4x3 float64."),
        (
            (tj.dlarray(np.ones((4, 3)), "BC"), {"w": np.ones(3)}, "a"),
            "x is 4(B) x 3(C) float64, expected 4x3 float64.",
        ),
        (
            (np.ones((3, 4)).T, {"w": np.ones(3)}, "b"),
            "x is 4x3 float64 with strides (1, 4), expected 4x3 float64; kind is 'b', expected 'a'.",
        ),
        ((np.ones((4, 3)), {"w": 3}, "a"), "params['w'] is 3, expected 3 float64."),
        (
            (np.ones((4, 3)), {}, "a"),
            "the arguments have a different structure from the exported ones. Missing: params['w'].",
        ),
        (
            (np.ones((4, 3)), {"w": np.ones(3)}),
            "the arguments have a different structure from the exported ones. Missing: kind.",
        ),
        (
            (np.ones((4, 3)), {"v": np.ones(3)}, "a"),
            "the arguments have a different structure from the exported ones. Missing: params['w']. "
            "Not expected: params['v'].",
        ),
        (
            (np.ones((4, 3)), {"w": np.ones(3), "b": 1}, "a", 4),
            "the arguments have a different structure from the exported ones. Not expected: argument 4, params['b'].",
        ),
        (
            (np.ones((4, 3)), OrderedDict(w=np.ones(3)), "a"),
            "the arguments have a different structure from the exported ones: "
            "(args, kwargs)[0][1] is a dict in what was exported and a "
            "OrderedDict in this call.",
        ),
    ],
)
def test_arguments_without_a_trace_are_refused(args: Any, text: str, path: str) -> None:
    @tj.dlaccelerate
    def step(x: Any, params: Any, kind: str, *rest: Any) -> Any:
        return x * params["w"]

    loaded = exported(step, path, (np.ones((4, 3)), {"w": np.ones(3)}, "a"))
    name = "test_arguments_without_a_trace_are_refused.<locals>.step"
    for _ in range(2):
        with pytest.raises(ArgumentError) as caught:
            loaded(*args)
        assert str(caught.value) == (
            f"{name}: {text} A loaded function records nothing, and this one has 1 exported trace (.signature). Call "
            "the original function with these arguments, and export it again."
        )
        loaded(np.ones((4, 3)), {"w": np.ones(3)}, "a")


def test_the_order_of_keys_counts(path: str) -> None:
    loaded = exported(tj.dlaccelerate(lambda p: p["a"] + p["b"]), path, ({"b": np.ones(2), "a": np.ones(2)},))
    assert loaded({"b": np.ones(2), "a": np.ones(2)}).tolist() == [2.0, 2.0]
    with pytest.raises(
        ArgumentError, match=r": p has the keys in the order \['a', 'b'\], expected \['b', 'a'\]\. A loaded"
    ):
        loaded({"a": np.ones(2), "b": np.ones(2)})


def test_a_loaded_function_cannot_be_traced(path: str) -> None:
    loaded = exported(tj.dlaccelerate(lambda x: x * 2), path, (np.ones(2),))
    with pytest.raises(
        TraceError, match=r"is a loaded function, which has no derivative, and x is traced by dlfeval"
    ):
        tj.dlfeval(loaded, np.ones(2))
    with pytest.raises(
        TraceError, match="is a loaded function, which cannot be recorded inside an accelerated function"
    ):
        tj.dlaccelerate(lambda x: loaded(np.ones(2)))(np.ones(2))
    # Beside a trace it is as any function of arrays.
    x = tj.dlarray(np.ones(2))
    assert tj.dlfeval(lambda y: y * loaded(x), np.full(2, 3.0)).tolist() == [6.0, 6.0]


def test_threads_call_at_once(path: str) -> None:
    def step(x: Any) -> Any:
        return tj.tanh(x) @ x.T, x.sum(axis=0)

    x = np.random.default_rng(0).standard_normal((300, 300))
    accelerated = tj.dlaccelerate(step)
    loaded = exported(accelerated, path, (x,))
    expected = accelerated(x)
    wrong: list[Any] = []

    def run() -> None:
        wrong.extend(1 for _ in range(20) if not same(loaded(x), expected))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_many_threads_and_many_signatures(path: str) -> None:
    step = tj.dlaccelerate(lambda x, n: (x * n).sum())
    sizes = range(1, 9)
    loaded = exported(step, path, *[(np.ones(size), 2) for size in sizes])
    wrong: list[Any] = []

    def run(first: int) -> None:
        for i in range(400):
            size = (first + i) % 8 + 1
            if loaded(np.ones(size), 2).item() != 2.0 * size:
                wrong.append(size)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_is_freed_with_the_function(path: str) -> None:
    step = tj.dlaccelerate(lambda x: (x * 2, x.sum()))
    tj.export(step, path, args=(np.ones(3),))
    for _ in range(2):
        loaded = tj.load(path)
        results = [loaded(np.ones(3)) for _ in range(4)]
        gone = weakref.ref(loaded)
        del loaded
        gc.collect()
        assert gone() is None
        assert [(y.tolist(), total.item()) for y, total in results] == [([2.0] * 3, 3.0)] * 4


def test_results_belong_to_the_caller(path: str) -> None:
    loaded = exported(tj.dlaccelerate(lambda x: x * 2), path, (np.ones(3),))
    kept = [loaded(np.full(3, float(i))) for i in range(10)]
    kept[3][0] = 77.0
    del kept[5]
    kept += [loaded(np.full(3, float(i))) for i in range(10, 20)]
    assert [y.tolist()[1] for y in kept] == [2.0 * i for i in range(20) if i != 5]


def test_products_of_blas(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplier, "kernel_for", lambda *_: "gemm")
    x, y = np.arange(12.0).reshape(4, 3), np.ones((3, 5))
    step = tj.dlaccelerate(lambda x, y: x @ y)
    tj.export(step, path, args=(x, y))
    assert "symbol('dgemm')" in step.source()
    assert same(tj.load(path)(x, y), step(x, y))


FORKED = """
import os, sys
import numpy as np
import tracejit as tj
step = tj.load(sys.argv[1])
x = np.random.default_rng(0).standard_normal((300, 300))
want = [np.asarray(each).tobytes() for each in step(x)]
child = os.fork()
same = all([np.asarray(each).tobytes() for each in step(x)] == want for _ in range(5))
if child == 0:
    os._exit(not same)
_, status = os.waitpid(child, 0)
del step
again = tj.load(sys.argv[1])
same = same and [np.asarray(each).tobytes() for each in again(x)] == want
print(same, status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_and_a_second_function(path: str) -> None:
    x = np.random.default_rng(0).standard_normal((300, 300))
    tj.export(tj.dlaccelerate(lambda x: (tj.tanh(x) @ x.T, x.sum(axis=0))), path, args=(x,))
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, path],
        env=os.environ | {"TRACEJIT_THREADS": "3"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "True 0\n"


def test_the_log(path: str, caplog: pytest.LogCaptureFixture) -> None:
    tj.export(tj.dlaccelerate(lambda x: 2 * x), path, args=(np.ones(3),))
    with caplog.at_level("INFO", "tracejit"):
        tj.load(path)
    (line,) = [record.getMessage() for record in caplog.records if "loaded from" in record.getMessage()]
    assert re.fullmatch(rf".*<lambda>: loaded from {path}, 1 trace, code for host, in \d+\.\d ms\.", line)


# What cannot be exported.


def generator() -> Any:
    own = tj.Generator(1)
    return lambda x: x + tj.rand(3, generator=own)


class Known:
    """An object that is equal to itself only."""


class Plain:
    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain)


def local_class() -> Any:
    class Local(NamedTuple):
        x: Any

    return Local


REFUSED = [
    (generator(), (np.ones(3),), "it draws random numbers from <Generator with seed 1>, which a loaded "
                                 "function does not have"),
    (lambda x, f: f(x), (np.ones(3), tj.exp), "f is a builtins.function, which cannot be written to a file"),
    (lambda x, f: x, (np.ones(3), Plain()), f"f is a {__name__}.Plain, which cannot be written to a file"),
    (lambda x, f: x, (np.ones(3), Known()), f"f is a {__name__}.Known, which cannot be written to a file"),
    (lambda x: (x, tj.exp), (np.ones(3),), r"result\[1\] is a builtins.function, which cannot be written"),
    (lambda x: (local_class()(x),)[0], (np.ones(3),), "the result holds a local_class.<locals>.Local, a class that "
                                                "is defined in a"),
    (lambda p: p.x, (local_class()(np.ones(3)),), "the arguments hold a local_class.<locals>.Local, a class "
                                                  "that is defined"),
    (lambda p: p[Plain()], ({Plain(): np.ones(3)},), f"the arguments hold a {__name__}.Plain, which cannot "
                                                     "be written to a file"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args", "text"), REFUSED)
def test_objects_known_by_identity_are_refused(function: Any, args: Any, text: str, path: str) -> None:
    step = tj.dlaccelerate(function, confirm=0)
    with pytest.raises(ExportError, match=text):
        tj.export(step, path, args=args)
    assert not os.path.exists(path)


def test_functions_without_traces_are_refused(path: str) -> None:
    double = tj.dlaccelerate(lambda x: 2 * x)
    none = (
        r"<lambda> has no traces\. Call it 2 times with the arguments to export it for, or give "
        r"them: export\("
    )
    with pytest.raises(ExportError, match=none):
        tj.export(double, path)
    double(np.ones(3))
    with pytest.raises(
        ExportError,
        match=r"for x: 3 float64: no second recording has confirmed a trace\. Call the function with the "
        r"same values again, or set confirm = 0\. Or export the traces for other arguments only: "
        r"export\(function, path, args=\(\.\.\.\)\)\.$",
    ):
        tj.export(double, path)
    tj.export(double, path, args=(np.ones(4),))  # that one only
    assert [each.inputs for each in tj.load(path).signature] == ["x: 4 float64"]
    double.confirm = 0
    tj.export(double, path, replace=True)
    assert [each.inputs for each in tj.load(path).signature] == ["x: 3 float64", "x: 4 float64"]


def test_functions_that_run_uncompiled_are_refused(path: str) -> None:
    noise = iter(np.random.default_rng(0).normal(size=20).tolist())
    noisy = tj.dlaccelerate(lambda x: x + next(noise))
    text = (
        r"for x: 1 float64: it runs uncompiled, because two recordings differ: .* at "
        r".*test_export.py:\d+\. Or export the traces for other"
    )
    with pytest.warns(tj.NotAcceleratedWarning), pytest.raises(ExportError, match=text):
        tj.export(noisy, path, args=(np.ones(1),))


def test_a_trace_that_no_longer_applies_is_refused(path: str) -> None:
    rate = 0.5
    scaled = tj.dlaccelerate(lambda x: x * rate)
    for _ in range(2):
        scaled(np.ones(1))
    rate = 2.0
    text = r"its trace no longer applies, because closure rate is no longer 0\.5\. Call the function again\. Or export"
    with pytest.raises(ExportError, match=text):
        tj.export(scaled, path)
    made = tj.export(scaled, path, args=(np.ones(1),))
    assert made.constants == (("closure rate", "2.0"),)
    assert tj.load(path)(np.ones(1)).tolist() == [2.0]


def test_calls_that_are_never_replayed_are_refused(path: str) -> None:
    rates = iter(range(100))
    state = Model()

    @tj.dlaccelerate
    def step(x: Any) -> Any:
        return x * state.rate

    class Moving:
        def __call__(self) -> None: ...

    def moving(x: Any) -> Any:
        return step(x)

    original = step.__class__.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        state.rate = float(next(rates))
        return original(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tj.AcceleratedFunction, "__call__", call)
        with pytest.raises(
            ExportError, match=r"^export: calls with these arguments are not replayed\. .*step: miss\."
        ):
            tj.export(step, path, args=(np.ones(1),))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cpus": "x86-64-v9"}, r"export: cpus: expected one of 'host', 'x86-64-v4', .*, not 'x86-64-v9'\."),
        ({"cpus": ()}, r"export: cpus: expected one or more names, each once, not \(\)\."),
        ({"cpus": ("host", "host")}, r"export: cpus: expected one or more names, each once"),
        ({"captured": "yes"}, r"export: captured: expected one of \('refuse', 'constants'\), not 'yes'\."),
    ],
)
def test_wrong_options(options: Any, text: str, path: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        tj.export(magnitude, path, **options)


def test_paths_that_cannot_be_written(path: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"^export: expected an accelerated function, not function; pass"):
        tj.export(generator, path)  # type: ignore[arg-type]
    double = tj.dlaccelerate(lambda x: 2 * x)
    with pytest.raises(
        ExportError,
        match=r"^export: a function cannot be exported while dlfeval or an accelerated function runs; call",
    ):
        tj.dlfeval(lambda x: tj.export(double, path, args=(np.ones(3),)), np.ones(3))
    tj.export(double, path, args=(np.ones(3),))
    with pytest.raises(
        ExportError, match=r"function.tj exists already; give a different path, or replace=True\.$"
    ):
        tj.export(double, path)
    with pytest.raises(
        ExportError,
        match=r"exists and is not an exported folder, so it is not replaced; give a different path\.$",
    ):
        tj.export(double, str(tmp_path), replace=True)
    os.symlink(path, tmp_path / "link")
    with pytest.raises(ExportError, match=r"exists and is not an exported folder, so it is not replaced"):
        tj.export(double, str(tmp_path / "link"), replace=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"file/x.tj cannot be written \(File exists\)\.$"):
        tj.export(double, str(tmp_path / "file" / "x.tj"))
    assert sorted(os.listdir(tmp_path)) == ["file", "function.tj", "link"]
    before = tj.load(path).sha256
    tj.export(double, path, args=(np.ones(4),), replace=True)
    assert tj.load(path).sha256 != before
    assert sorted(os.listdir(tmp_path)) == ["file", "function.tj", "link"]


def test_the_same_export_has_the_same_bytes(tmp_path: Path) -> None:
    double = tj.dlaccelerate(lambda x: 2 * x)
    one, two = (tj.export(double, tmp_path / name, args=(np.ones(3),)) for name in ("one", "two"))
    assert one.sha256 == two.sha256


def test_levels_of_a_different_architecture(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "system", lambda: "aarch64 linux")
    with pytest.raises(
        ExportError,
        match=r'object code for x86-64-v3 cannot be compiled on aarch64 linux; use cpus="host"\.$',
    ):
        tj.export(magnitude, path, cpus="x86-64-v3")


def test_an_export_needs_the_sources_of_the_kernels(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "executor_hash", lambda: None)
    with pytest.raises(
        ExportError,
        match=r"^export: the source files of tracejit's kernels are missing, .* Install tracejit with",
    ):
        tj.export(tj.dlaccelerate(lambda x: 2 * x), path, args=(np.ones(3),))


def test_without_a_cache(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.settings, "cache", "off")
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    loaded = exported(tj.dlaccelerate(lambda x: x * 2 - 1), path, (np.ones(3),))
    assert loaded(np.ones(3)).tolist() == [1.0] * 3
    assert not (tmp_path / "cache").exists()


def test_exported_without_compiled_replays(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.settings, "backend", "python")
    loaded = exported(tj.dlaccelerate(lambda x: x * 2 - 1), path, (np.ones(3),))
    assert loaded(np.ones(3)).tolist() == [1.0] * 3


# A new process.

COLD = """
import json, sys
sys.modules["numba"] = None  # importing it fails
import numpy as np
import tracejit as tj
step = tj.load(sys.argv[1])
x = np.random.default_rng(0).standard_normal((300, 300))
results = [step(x) for _ in range(3)]
print(json.dumps({
    "imported": [name for name in ("numba.core", "scipy") if name in sys.modules],
    "results": [[np.asarray(each).tobytes().hex() for each in result] for result in results],
    "threads": sum(thread.name.startswith("tracejit worker") for thread in __import__("threading").enumerate()),
}))
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_a_process_without_numba(threads: int, path: str, tmp_path: Path) -> None:
    @tj.dlaccelerate
    def step(x: Any) -> Any:
        return tj.tanh(x) @ x.T, x.sum(axis=0), tj.exp(x)

    x = np.random.default_rng(0).standard_normal((300, 300))
    tj.export(step, path, args=(x,))
    environment = os.environ | {
        "TRACEJIT_THREADS": str(threads), "TRACEJIT_CACHE_DIR": str(tmp_path / "cache"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", COLD, path],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = [np.asarray(each).tobytes().hex() for each in step(x)]
    assert found == {"imported": [], "results": [expected] * 3, "threads": threads - 1}
    assert not (tmp_path / "cache").exists()


def test_denormals_follow_the_setting_of_the_process(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = exported(tj.dlaccelerate(lambda x: x * 0.5), path, (np.ones(8),))
    tiny = np.full(8, np.finfo(np.float64).smallest_normal)
    assert loaded(tiny).tolist() == [0.0] * 8
    monkeypatch.setattr(config.settings, "flush_denormals", False)
    assert tj.load(path)(tiny).tolist() == (tiny / 2).tolist()


def test_classes_are_imported_or_given(path: str) -> None:
    step = tj.dlaccelerate(lambda pair: Pair(pair.second, State(pair.first, 3)))
    args = (Pair(np.ones(2), np.zeros(2)),)
    tj.export(step, path, args=args)
    module = sys.modules.pop(__name__)
    try:
        assert same(tj.load(path, classes={"Pair": Pair, f"{__name__}:State": State})(*args), step(*args))
    finally:
        sys.modules[__name__] = module
    assert same(tj.load(path)(*args), step(*args))

    class Other(NamedTuple):
        first: Any

    with pytest.raises(
        ExportError,
        match=r"^load: Pair had the fields first, second when it was exported, and now has first\. Export the "
        r"function again\.$",
    ):
        tj.load(path, classes={"Pair": Other})
    with pytest.raises(
        ExportError, match="first, second when it was exported, and now is not a named tuple or dataclass"
    ):
        tj.load(path, classes={"Pair": int})


def test_a_class_that_cannot_be_imported(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pair, "__module__", "no_such_module")
    step = tj.dlaccelerate(lambda pair: pair.first * 2)
    tj.export(step, path, args=(Pair(np.ones(2), None),))
    with pytest.raises(
        ExportError,
        match=r"^load: the arguments or results have instances of Pair of the module no_such_module, which "
        r"cannot be imported\. "
        r'Make it importable, or give the class: load\(path, classes=\{"Pair": \.\.\.\}\)\.$',
    ):
        tj.load(path)


def test_bands_without_rows(path: str, rng: np.random.Generator) -> None:
    @tj.dlaccelerate
    def step(weights: list[tj.dlarray], x: tj.dlarray) -> Any:
        h = x
        for w in weights:
            h = tj.tanh(h @ w)
        loss = (h**2).mean()
        # Each gradient is multiplied in one band as a whole, and so the others have no rows of what follows.
        return loss, [w - 0.1 * g for w, g in zip(weights, tj.dlgradient(loss, weights), strict=True)]

    weights = [tj.dlarray(rng.standard_normal((64, 64)).astype(np.float32) / 8) for _ in range(8)]
    x = tj.dlarray(rng.standard_normal((128, 64)).astype(np.float32))
    loaded = exported(step, path, (weights, x))
    assert same(loaded(weights, x), step(weights, x))
