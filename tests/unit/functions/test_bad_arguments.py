# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of every kind in every place of every public function: an error of ours that says what to do, or a result.

Generated: tests/support/public_calls.py has calls that work, tests/support/bad_arguments.py what is put into them.
"""

import inspect
import re
import signal
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import effort
import numpy as np
import pytest
from bad_arguments import KINDS
from numpy_calls import CALLS as NUMPY_CALLS
from numpy_calls import INTEGERS, wrap
from public_calls import CALLS, METHODS, Call, V, X

import tracejit as tj
from tracejit import ArgumentError, DimsError, TraceJitError, dlarray
from tracejit.functions.numpy_api import table
from tracejit.record.recorder import Recorder

pytestmark = pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")

LIMIT_S = 5.0  # hundred times what the slowest takes
ROOM = 2 << 30  # bytes that one argument may take

# Functions that are composed of others, in whose name some errors are raised.
COMPOSED_OF = {
    "adamupdate": ("sgdmupdate",),
    "atleast_1d": ("reshape",),
    "atleast_2d": ("reshape",),
    "atleast_3d": ("reshape",),
    "check_tolerance": ("dlaccelerate",),
    "clip": ("maximum", "minimum"),
    "dlarray.__getitem__": ("take",),
    "dlarray.__setitem__": ("put",),
    "divmod": ("floor_divide",),
    "dlfeval": ("bool()", "float()"),
    "hessian": ("dlfeval", "dlhessian", "multiply", "sum"),
    "hvp": ("dlfeval", "dlgradient", "dljvp", "multiply", "sum"),
    "jacobian": ("dlfeval", "multiply"),
    "jvp": ("dljvp", "multiply"),
    "trainnet": ("bool()", "dlgradient", "float()", "forward", "minibatchqueue", "mse"),
    "vjp": ("dlfeval", "multiply"),
    "dlupdate": ("bool()", "float()", "add", "dlarray"),
    "dlarray.__contains__": ("equal",),
    "expand_dims": ("reshape",),
    "flatten": ("ravel",),
    "full": ("broadcast_to", "cast"),
    "full_like": ("broadcast_to", "cast"),
    "hstack": ("concatenate",),
    "huber": ("greater",),
    "item": ("index",),
    "leakyrelu": ("multiply",),
    "norm": ("max",),
    "permute": ("transpose",),
    "permute_dims": ("transpose",),
    "ptp": ("max", "subtract"),
    "repeat": ("broadcast_to", "reshape"),
    "rng": ("state",),
    "stack": ("concatenate", "reshape"),
    "std": ("divide",),
    "tile": ("broadcast_to", "reshape"),
    "var": ("divide",),
    "vstack": ("concatenate",),
}
# Arguments that are functions: what they raise is theirs.
CALLED = {
    ("dlfeval", 0),
    *((name, 0) for name in ("dlode45", "dlrk4", "dleuler")),
    *(("dlcond", 1), ("dlcond", 2), ("dlscan", 0), ("dlwhile", 0), ("dlwhile", 1)),
    *((name, 0) for name in ("dlmap", "hessian", "hvp", "jacobian", "jvp", "vjp")),
    ("dlupdate", 0),
    ("lbfgsupdate", 1),
    ("check_gradients", 0),
    ("check_gradients", 1),
    ("flatten", 1),
    ("map", 0),
}
TAKE_NEARLY_ANYTHING = ("isdlarray", "gather")
INSIDE = ("dldivergence", "dlgradient", "dlhessian", "dljacobian", "dljvp", "dllaplacian")  # of an evaluation
CALLABLES = ("class", "class of dlarrays", "function", "lambda", "partial", "ufunc")


def places(call: Call) -> Iterator[int | str]:
    """Return the arguments of a call, by position and by name."""
    yield from range(len(call.args))
    yield from call.options


def put(call: Call, place: int | str, value: Any) -> Call:
    """Return a call with another argument at a place."""
    if isinstance(place, str):
        return Call(call.args, {**call.options, place: value})
    return Call((*call.args[:place], value, *call.args[place + 1 :]), call.options)


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    """End the test where an argument takes much time or memory, on the system on which that is looked for."""
    if sys.platform != "linux":
        yield
        return
    import resource

    def stop(*args: Any) -> None:
        pytest.fail(f"an argument takes more than {LIMIT_S} seconds")

    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    handler = signal.signal(signal.SIGPROF, stop)  # of its time on the CPU: the machine may be busy
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, handler)


def sweep(name: str, function: Callable[..., Any], calls: list[Call], first: int = 0) -> int:
    """Put every kind of argument into every place of calls of a function; return how many were refused."""
    refused = 0
    for call in calls:
        for place in places(call):
            if isinstance(place, int) and place < first:
                continue
            for kind, make in kinds(f"{name} {place}"):
                if (name, place) in CALLED and (kind in CALLABLES or (name, place) == ("check_gradients", 1)):
                    continue
                changed = put(call, place, make())
                try:
                    function(*changed.args, **changed.options)
                except AssertionError:  # of check_gradients, about values
                    assert name in ("check_gradients", "assert_max_traces")
                except (TraceJitError, np.linalg.LinAlgError) as error:
                    check_text(name, place, kind, str(error))
                    refused += 1
    return refused


def kinds(of: str) -> list[tuple[str, Callable[[], Any]]]:
    """Return the kinds of arguments that are tried in a place."""
    return [(kind, KINDS[kind]) for kind in effort.sample(KINDS, of)]


def check_text(name: str, place: int | str, kind: str, text: str) -> None:
    """Check that a message names its function, has what was found and what to do, and can be read."""
    short = name.rpartition(".")[2].strip("_")
    if "complex" in kind and re.search("not defined for complex|lose their imaginary parts", text):
        return  # in the name of the op that refuses them
    named = (name, short, str(place), *COMPOSED_OF.get(short, ()), *COMPOSED_OF.get(name, ()))
    head, _, rest = text.partition(": ")
    ours = head.removeprefix("np.").removeprefix("linalg.") in named or head in OPERATORS.get(short, ())
    ours = ours or (name == "<lambda>" and head.endswith(name))
    trace = kind == "array of a trace that ended" and text.startswith("an array that was made at ")
    assert ours or trace, f"{name}, argument {place}, {kind}: {text}"
    assert len(rest or head) > 20 and text[-1] in ".?" and len(text) < 900, text


OPERATORS = {
    name: (function, "getitem", "setitem")
    for method, function in {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
        "mod": "remainder", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
        "xor": "bitwise_xor", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
        "ge": "greater_equal", "contains": "equal", "astype": "cast",
    }.items()
    for name in (method, f"r{method}")
}  # fmt: skip


def public_functions() -> set[str]:
    """Return the names of everything in tracejit that is called with arguments."""
    return {
        name for name in tj.__all__ if callable(getattr(tj, name)) and not inspect.isclass(getattr(tj, name))
    } | {"dlarray", "Generator", "minibatchqueue"}


def test_every_public_function_has_a_call() -> None:
    elsewhere = {"export", "load", "gpu"}  # files, and a device: tests/compiled/device/test_runtime.py
    assert public_functions() == set(CALLS) | elsewhere


def test_there_are_kinds_enough() -> None:
    assert len(KINDS) >= 100
    for make in KINDS.values():
        make()


@pytest.mark.whole("a share of the arguments is tried in each")
@pytest.mark.parametrize("name", CALLS)
def test_a_public_function(name: str) -> None:
    function = getattr(tj, name)
    if name not in INSIDE:
        for call in CALLS[name]:
            function(*call.args, **call.options)
    assert sweep(name, function, CALLS[name]) or name in TAKE_NEARLY_ANYTHING


@pytest.mark.sampled(share=3)
@pytest.mark.parametrize("name", METHODS)
def test_a_method(name: str) -> None:
    method = getattr(dlarray, name)
    for call in METHODS[name]:
        method(*call.args, **call.options)
    assert sweep(f"dlarray.{name}", method, METHODS[name], first=1)


def some_of(names: list[str], share: int) -> list[str]:
    """Return one of `share` names, chosen by their hashes, so that a new name changes no other choice."""
    return [name for name in names if zlib.crc32(name.encode()) % share == 0]


@pytest.mark.sampled
@pytest.mark.parametrize("name", some_of([*CALLS, *METHODS], effort.sweep(14, 1)))
def test_a_function_while_it_is_recorded(name: str) -> None:
    is_method = name in METHODS and name not in CALLS
    function = getattr(dlarray if is_method else tj, name)

    def recorded(*args: Any, **options: Any) -> Any:
        with Recorder("step", accelerating=True):
            return function(*args, **options)

    shown = f"dlarray.{name}" if is_method else name
    sweep(shown, recorded, (METHODS | CALLS)[name], first=int(function in vars(dlarray).values()))


@pytest.mark.sampled(share=3)
@pytest.mark.parametrize("function", NUMPY_CALLS, ids=lambda function: function.__name__)
def test_a_function_of_numpy(function: Callable[..., Any]) -> None:
    calls = [Call(tuple(map(wrap, args)), options) for args, options in NUMPY_CALLS[function]]
    sweep(f"np.{function.__name__}", function, calls, first=1)


@pytest.mark.sampled(share=3)
@pytest.mark.parametrize("ufunc", table.UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_a_ufunc(ufunc: np.ufunc) -> None:
    data = np.ones((3, 3), int if ufunc.__name__ in INTEGERS else float)
    if ufunc.nin == 2:
        assert sweep(f"np.{ufunc.__name__}", ufunc, [Call((dlarray(data), data), {})], first=1)


def tools() -> dict[str, tuple[Callable[..., Any], Call]]:
    """Return the other functions of public modules, each with a call that works."""
    accelerated = tj.dlaccelerate(lambda x: 1)
    leaves, treedef = tj.tree.flatten({"a": [1, 2]})
    generator = tj.Generator(1)
    return {
        "flatten": (tj.tree.flatten, Call(({"a": 1}, lambda x: False), {})),
        "map": (tj.tree.map, Call((lambda p, q: p, {"a": 1}, {"a": 2}), {})),
        "paths": (tj.tree.paths, Call((treedef, "x"), {})),
        "unflatten": (tj.tree.unflatten, Call((treedef, leaves), {})),
        "check_gradients": (
            tj.testing.check_gradients,
            Call((square, V), {"order": 1, "rtol": 1e-3, "atol": 1e-3}),
        ),
        "assert_max_traces": (enter, Call((accelerated, 2), {})),
        "state": (lambda value: setattr(generator, "state", value), Call((generator.state,), {})),
        "rng": (lambda seed, position: tj.rng(tj.RngState(seed, position)), Call((1, 2), {})),
        "<lambda>": (accelerated, Call((V,), {})),
    }


def square(x: Any) -> Any:
    """Return the sum of squares."""
    return (x * x).sum()


def enter(fun: Any, n: Any) -> None:
    """Enter and leave the block of assert_max_traces."""
    with tj.testing.assert_max_traces(fun, n):
        pass


@pytest.mark.parametrize("name", tools())
def test_a_tool(name: str) -> None:
    function, call = tools()[name]
    function(*call.args, **call.options)
    with tj.rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.TraceJitWarning)
        sweep(name, function, [call])


@pytest.mark.parametrize("option", CALLS["dlaccelerate"][0].options)
def test_an_option_of_an_accelerated_function(option: str) -> None:
    accelerated = tj.dlaccelerate(lambda x: x)
    assert sweep(option, lambda value: setattr(accelerated, option, value), [Call((1,), {})])


def test_questions_of_numpy() -> None:
    for function in (np.allclose, np.array_equal):
        assert sweep(f"np.{function.__name__}", function, [Call((X, X), {"equal_nan": False})], first=1)
    assert sweep("np.size", np.size, [Call((X, 1), {})], first=1)


@pytest.mark.sampled(share=3)
@pytest.mark.parametrize(
    "name", [name for name in CALLS if hasattr(np, name) and name not in ("load", "save")]
)
def test_results_are_those_of_numpy(name: str) -> None:
    """Where NumPy's function of the name takes the argument too, both give the same numbers."""
    compared = 0
    for call in CALLS[name]:
        for place in places(call):
            for kind, make in kinds(f"{name} {place}") if place != "like" else ():
                if "like" in call.options and "complex" in kind:
                    continue  # NumPy's dtype is that of the number, which is cast here
                ours, theirs = put(call, place, make()), put(call, place, make())
                try:
                    result = getattr(tj, name)(*ours.args, **ours.options)
                except (TraceJitError, np.linalg.LinAlgError):
                    continue
                expected = of_numpy(getattr(np, name), theirs)
                if not isinstance(expected, Exception):
                    check_equal(result, expected, f"{name}, argument {place}, {kind}")
                    compared += 1
    assert (
        compared
        or effort.EFFORT <= effort.Effort.SAMPLE
        or len(CALLS[name][0].args) > 1
        or CALLS[name][0].options
    )


def of_numpy(function: Callable[..., Any], call: Call) -> Any:
    """Return what NumPy makes of a call, with ndarrays in place of dlarrays, or the error that it raises."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*map(plain, call.args), **{key: plain(x) for key, x in call.options.items()})
    except Exception as error:
        return error


def plain(x: Any) -> Any:
    """Return an argument with an ndarray in place of a dlarray."""
    return np.array(x._data) if isinstance(x, dlarray) else x


def check_equal(result: Any, expected: Any, place: str) -> None:
    """Check results of one function, which may be several; NumPy rounds some to half precision."""
    listed = isinstance(expected, (tuple, list))
    for part, wanted in zip(result if listed else [result], expected if listed else [expected], strict=True):
        wanted = np.asarray(wanted)
        rough = wanted.dtype == np.float16
        if rough and not np.isfinite(wanted).all():
            continue
        np.testing.assert_allclose(
            np.asarray(part).astype(complex),
            wanted.astype(complex),
            2e-3 if rough else 1e-6,
            1e-12,
            err_msg=place,
        )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tj.zeros({1, 2}), DimsError),
        (lambda: tj.zeros({2: 3}), DimsError),
        (lambda: tj.zeros(b"ab"), DimsError),
        (lambda: tj.zeros(True), DimsError),
        (lambda: tj.zeros(2, X), ArgumentError),
        (lambda: tj.arange(None), ArgumentError),
        (lambda: tj.transpose(X, 0), DimsError),
        (lambda: tj.transpose(X, ()), DimsError),
        (lambda: tj.transpose(X, ""), DimsError),
        (lambda: tj.concatenate({1.0, 2.0}), ArgumentError),
        (lambda: tj.stack({"a": X}), ArgumentError),
        (lambda: tj.sum(X, 0, "no"), ArgumentError),
        (lambda: tj.sum(X, 0, np.array(["2024-01-01"], "M8[D]")), ArgumentError),
        (lambda: tj.einsum("ij->i", X, optimize=1.5), ArgumentError),
        (lambda: tj.mean(X, 0, None), ArgumentError),
        (lambda: tj.crossentropy(X, X, from_logits="yes", data_format="BC"), ArgumentError),
        (lambda: tj.zeros(1 for _ in range(10**9)), DimsError),
    ],
)
def test_what_could_mean_anything_is_refused(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
