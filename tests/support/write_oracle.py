# SPDX-License-Identifier: BSD-3-Clause
"""NumPy as the oracle of programs that write: results, contents of arguments, errors; differences for gradients."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from effort import sweep
from write_programs import Program, arguments_of

import tracejit as tj

CALLS = 4  # recorded, confirmed, replayed, and once with other signs
KINDS = (IndexError, TypeError, ValueError, ArithmeticError, Exception)
"""The kinds of errors that a program may catch."""
Ran = tuple[Any, list[np.ndarray]]


class DifferenceError(Exception):
    """A difference from NumPy: in which way of running, at which call, and what differs."""


def mapped(fun: Callable[[Any], Any], value: Any) -> Any:
    """Return a copy of containers with a function applied to what they hold."""
    if isinstance(value, dict):
        return {name: mapped(fun, part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(fun, part) for part in value)
    return fun(value)


def plain(value: Any) -> Any:
    return value._data if isinstance(value, tj.dlarray) else value


def leaves(value: Any) -> list[Any]:
    """Return what containers hold, in order, with the keys of dicts."""
    if isinstance(value, dict):
        return [leaf for name, part in value.items() for leaf in (name, *leaves(part))]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(leaf for part in value for leaf in leaves(part))]
    return [value]


def differs(found: Any, expected: Any, tolerance: float) -> str | None:
    """Return how a result differs from NumPy's, None if it does not: sizes, dtypes, numbers."""
    have, want = leaves(mapped(plain, found)), leaves(expected)
    if len(have) != len(want):
        return f"{found!r}, NumPy gives {expected!r}"
    for a, b in zip(have, want, strict=True):
        if isinstance(b, str | None) or isinstance(a, str | None):
            same = type(a) is type(b) and a == b
        else:
            x, y = np.asarray(a), np.asarray(b)
            same = x.shape == y.shape and x.dtype == y.dtype
            if same and x.tobytes() != y.tobytes():
                same = np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)
        if not same:
            return f"{a!r}, NumPy gives {b!r}"
    return None


def function_of(program: Program) -> Callable[..., Any]:
    names: dict[str, Any] = {"__name__": f"program_{program.seed}"}
    exec(compile(program.text, f"<program {program.seed}>", "exec"), names)
    function: Callable[..., Any] = names["program"]
    return function


def boxed(given: dict[str, Any], box: Callable[[np.ndarray], Any]) -> list[Any]:
    """Return arguments with a box around each array, the same one around an array that is passed twice."""
    boxes: dict[int, Any] = {}

    def of(value: Any) -> Any:
        return boxes.setdefault(id(value), box(value)) if isinstance(value, np.ndarray) else value

    return [mapped(of, value) for value in given.values()]


def run(function: Any, program: Program, call: int, box: Any = None, names: Any = None) -> Ran:
    """Call a function with fresh arguments; return its result, or the error, and what the arguments hold afterwards.

    Args:
        function: the function of a program, or what calls that function.
        program: the program.
        call: draws the arguments.
        box: makes what is passed of an ndarray.
        names: the function whose global names the program reads, if that records; an ndarray among them becomes a
            dlarray, as nobody sees values of a trace enter an ndarray.
    """
    given, buffers = arguments_of(program.parameters, program.seed, call)
    arguments = list(given.values()) if box is None else boxed(given, box)
    if "g" in given:
        captured = arguments.pop()
        if names is not None and box is None:
            captured = tj.dlarray(captured)
        (function if names is None else names).__globals__["g"] = captured
    try:
        result = function(*arguments)
    except Exception as error:
        result = error.with_traceback(None)
    return mapped(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, result), buffers


def compare(how: str, call: int, ours: Ran, numpys: Ran, before: list[np.ndarray], tolerance: float) -> None:
    """Raise DifferenceError if a call of ours differs from NumPy's."""
    (found, after), (expected, wanted) = ours, numpys
    difference = None
    if isinstance(expected, Exception):
        if not isinstance(found, next(kind for kind in KINDS if isinstance(expected, kind))):
            difference = f"{found!r}, NumPy raises {expected!r}"
        elif not differs(after, before, tolerance):
            return  # nothing is written back by a call that raises; or all that was written before
    elif isinstance(found, Exception):
        difference = f"raised {found!r}, NumPy gives {expected!r}"
    else:
        difference = differs(found, expected, tolerance)
    if difference is None:
        difference = differs(after, wanted, tolerance)
        difference = difference and f"an argument holds {difference}"
    if difference:
        raise DifferenceError(f"{how}, call {call}: {difference}")


def tolerance_of(program: Program) -> float:
    return 1e-4 if "float32" in repr(program.parameters) + program.text.split("def program")[1] else 1e-9


def compare_all(program: Program) -> tuple[int, list[str]]:
    """Compare a program in all ways of running it; return how many calls were replayed, and the warnings.

    Raises:
        DifferenceError: at the first difference.
    """
    function, tolerance = function_of(program), tolerance_of(program)
    plain_function = function_of(program)
    accelerated = tj.dlaccelerate(plain_function)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        for call in range(CALLS):
            expected = run(function, program, call)
            before = arguments_of(program.parameters, program.seed, call)[1]
            if "g" in program.parameters and isinstance(expected[0], Exception):
                continue  # a captured ndarray is written while recording, an argument is not
            rest = (expected, before, tolerance)
            box = tj.dlarray if program.seed % 3 == 0 else None
            ways = {"accelerated": run(accelerated, program, call, box, plain_function)}
            if call in (0, sweep(0, 3)):
                compare("eager", call, run(function, program, call, tj.dlarray), *rest)
                ways["dlfeval"] = run(partial(tj.dlfeval, function), program, call, None, function)
            for how, ran in ways.items():
                if not (program.overlaps and "shares memory with" in str(ran[0])):  # refused by name
                    compare(how, call, ran, *rest)
        if program.seed % 4 == 0:
            compare_gradients(program)
    told = [str(warning.message) for warning in caught if issubclass(warning.category, tj.TraceJitWarning)]
    return accelerated.stats.hits, told


def compare_gradients(program: Program) -> None:
    """Compare the derivative of a result along a random direction with differences, where NumPy's result is smooth."""
    function = function_of(program)
    given, _ = arguments_of(program.parameters, program.seed, 0)
    floats = [leaf for leaf in leaves(list(given.values())) if isinstance(leaf, np.ndarray)]
    twice = "g" in given or any(isinstance(parameter, str) for parameter in program.parameters.values())
    if twice or tolerance_of(program) > 1e-9:
        return  # an argument is no variable of its own, or rounding is as large as the differences
    rng = np.random.default_rng(program.seed)
    sides = {id(leaf): rng.standard_normal(leaf.shape) for leaf in floats if leaf.dtype == np.float64}

    def loss_of(results: Any) -> Any:
        weights = np.random.default_rng(program.seed)
        total = 0.0
        for leaf in leaves(results):
            if isinstance(leaf, (np.ndarray, np.generic, tj.dlarray)) and leaf.dtype == np.float64:
                total = total + (leaf * weights.uniform(0.5, 1.5, leaf.shape)).sum()
        return total

    def at(step: float) -> float:
        moved = boxed(given, lambda x: x + step * sides[id(x)] if id(x) in sides else x.copy())
        return float(loss_of(function(*moved)))

    def graded(*arguments: Any) -> Any:
        copies = copied(arguments)
        variables = [
            leaf
            for leaf in leaves(list(arguments))
            if isinstance(leaf, tj.dlarray) and leaf.dtype == np.float64
        ]
        loss = loss_of(function(*copies))
        return tj.dlgradient(loss, variables) if isinstance(loss, tj.dlarray) else None

    try:
        slopes = [(at(h) - at(-h)) / (2 * h) for h in (1e-5, 1e-6)]
    except (ValueError, TypeError, IndexError):
        return  # a program that NumPy refuses
    if not np.isfinite(slopes).all() or abs(slopes[0] - slopes[1]) > 1e-4 * (1 + abs(slopes[0])):
        return  # a jump between the two points
    for how, run_graded in (
        ("dlfeval", lambda *args: tj.dlfeval(graded, *args)),
        ("accelerated", tj.dlaccelerate(graded, confirm=0)),
    ):
        for _ in range(2):
            try:
                gradients = run_graded(*given.values())
            except tj.GradientError as error:
                if abs(slopes[0]) > 1e-6:
                    raise DifferenceError(
                        f"gradient, {how}: raised {error!r}, differences give {slopes[0]}"
                    ) from None
                return
            if gradients is None:
                return
            pairs = zip(sides.values(), gradients, strict=True)
            slope = sum(float(np.sum(side * plain(gradient))) for side, gradient in pairs)
            if abs(slope - slopes[1]) > 2e-4 * (1 + abs(slope)):
                raise DifferenceError(f"gradient, {how}: {slope}, differences give {slopes[1]}")


def copied(arguments: Any) -> list[Any]:
    """Return arguments with a copy of each array."""
    return mapped(lambda leaf: leaf.copy() if isinstance(leaf, tj.dlarray) else leaf, list(arguments))


def difference_of(program: Program) -> str | None:
    """Return how a program differs from NumPy in some way of running it, None if it does not."""
    try:
        compare_all(program)
    except DifferenceError as difference:
        return str(difference)
    return None


def runs(program: Program) -> bool:
    """Whether no name of a program is missing."""
    with np.errstate(all="ignore"):
        result, _ = run(function_of(program), program, 0)
    return not isinstance(result, NameError)


def minimal(program: Program) -> Program:
    """Return the program without statements that its difference does not need."""
    shrunk = True
    while shrunk:
        shrunk = False
        for i in reversed(range(len(program.statements))):
            fewer = program._replace(statements=program.statements[:i] + program.statements[i + 1 :])
            if runs(fewer) and difference_of(fewer):
                program, shrunk = fewer, True
    return program


def described(program: Program) -> str:
    """Return a failing program as small as its statements allow, with what differs."""
    small = minimal(program)
    source = small.text[small.text.index("def program") :]
    return f"program {program.seed}: {difference_of(small)}\narguments: {small.parameters}\n{source}"
