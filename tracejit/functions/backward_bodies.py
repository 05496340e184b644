# SPDX-License-Identifier: BSD-3-Clause
"""The user's backward functions in the bodies of loops.

Note [backward functions in bodies]
A backward function computes with arrays, so it is recorded where the gradient is taken. The adjoint of a body is
written without arrays: nothing has values there. So while a step of a loop is recorded, each call of a function with a
backward function records the backward function too, with ones as cotangents, and takes it out of the graph again, as a
body. Anything it reads besides residuals and cotangents becomes a further input of the call's op. The adjoint of that
op then copies the body.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.array import dlarray
from tracejit.errors import TraceError, TraceJitError
from tracejit.functions.loop_bodies import Step, cut, give_back_draws, take_body, watched
from tracejit.functions.loop_carry import own, value_of
from tracejit.ir import Builder, Value
from tracejit.passes.graph.bodies import Body
from tracejit.record.recorder import Recorder
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.uninterrupted import is_of_handler

_MOST_NESTED = 3


class BackwardBody(NamedTuple):
    """A recorded backward function.

    body    takes what was given, and then what it reads besides; gives the gradients that there are
    gives   for each argument whether there is a gradient
    """

    body: Body
    gives: tuple[bool, ...]


class NoBackwardBody(NamedTuple):
    """The reason why there is no backward body: an error of a kind."""

    kind: type[TraceJitError] | None
    reason: str


def in_body(recorder: Recorder) -> bool:
    """Return whether a step of a loop, or a branch, is being recorded."""
    return recorder.accelerating and recorder.memories.begun is not None


def backward_body(
    recorder: Recorder,
    name: str,
    given: Sequence[dlarray],
    run: Callable[[Sequence[dlarray]], Sequence[Value | None]],
) -> tuple[BackwardBody | NoBackwardBody, list[Value]]:
    """Record a backward function as a body.

    Args:
        recorder: records the step of the loop.
        name: of the function, for errors.
        given: cotangents and residuals.
        run: takes arrays like these, and returns the Value of each gradient, None for zeros.

    Returns:
        The body or why there is none, and the Values that it reads besides what is given.

    Raises:
        TraceError: if the backward function writes into an array that was made outside it.
    """
    if recorder.backwards == _MOST_NESTED:
        return NoBackwardBody(None, f"it calls {name} again, {_MOST_NESTED} times one in the other"), []
    first, guards = len(recorder.graph.nodes), len(recorder.guards)
    recorder.backwards += 1
    gives: tuple[bool, ...] = ()
    try:
        with watched(recorder) as (watch, steps):
            arrays = own(given)
            watch.inputs = [value_of(array) for array in arrays]
            watch.start = len(recorder.graph.nodes)
            found = run(arrays)
            gives = tuple([value is not None for value in found])
            watch.outputs = [value for value in found if value is not None]
    except Exception as error:
        if is_of_handler(error):
            raise
        _forget(recorder, name, first, guards)
        kind = type(error) if isinstance(error, TraceJitError) else None
        return NoBackwardBody(kind, str(error) if kind else f"{type(error).__name__}: {error}"), []
    finally:
        recorder.backwards -= 1
    step: Step = steps[0]
    if step.writes:
        raise TraceError(
            f"{name}: backward writes into an array that was made outside it. In a loop it is recorded also where no "
            "gradient is taken, and the write cannot be undone. Return the array as a gradient, or write into a copy."
        )
    if step.hindrance is not None or step.draws:
        give_back_draws(recorder, step)
        _forget(recorder, name, first, guards)
        return NoBackwardBody(None, step.hindrance or "it draws random numbers"), []
    body, reads = take_body(recorder, f"backward of {name}", step)
    return BackwardBody(body, gives), reads


def _forget(recorder: Recorder, name: str, first: int, guards: int) -> None:
    """Take what was recorded from node `first` on out of the graph, and its guards."""
    del recorder.guards[guards:]
    cut(recorder, first, f"backward of {name}")


def appended(b: Builder, recorded: BackwardBody, inputs: Sequence[Value]) -> list[Any]:
    """Append the operations of a backward body, and return the gradients, None for zeros."""
    graph = recorded.body.graph
    mapping = dict(zip(graph.inputs, inputs, strict=True))
    mapping |= {value: b.constant(value.data) for value in graph.constants}
    for node in graph.nodes:
        avals: Any = tuple([value.aval for value in node.outputs])
        found = b.append(
            node.op, [mapping[v] for v in node.inputs], node.params, avals[0] if len(avals) == 1 else avals
        )
        mapping.update(zip(node.outputs, found if isinstance(found, tuple) else (found,), strict=True))
    gradients = iter(graph.outputs)
    return [mapping[next(gradients)] if gives else None for gives in recorded.gives]
