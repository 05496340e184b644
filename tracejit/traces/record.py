# SPDX-License-Identifier: BSD-3-Clause
"""One run of a function that records a trace and gives the result."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call.signature import Call, NumberPart
from tracejit.capture.state import CapturedState
from tracejit.errors import ArgumentError
from tracejit.functions import rng
from tracejit.ir import Node, Value, Where
from tracejit.record import guards
from tracejit.record import recorder as trace
from tracejit.record.number import Number
from tracejit.traces.stats import Tally
from tracejit.traces.trace import ArrayLeaf, NumberLeaf, Trace


def record(
    tally: Tally,
    function: Callable[..., Any],
    call: Call,
    needed: dict[int, tuple[str, Where]],
    outer: trace.Recorder | None = None,
) -> tuple[Trace | None, Any]:
    """Run a function once, on a trace of its own, and return the trace (or None) and the result.

    There is no trace where what was recorded is right for this call only. If it is because numbers that should be
    inputs of the trace are needed themselves, `needed` says for what.

    Args:
        tally: of the function, which has its name for messages.
        function: what is run.
        call: its arguments.
        needed: takes in, for arguments that vary and are needed themselves, what for and where.
        outer: the recorder of the evaluation around the call, if there is one; what was recorded is then a part of
            that tape too, and the arrays of the result are on it.
    """
    name = tally.name
    reads = CapturedState(function, call.leaves)
    with trace.Recorder(name, accelerating=True, state=reads) as recorder:
        given = _inputs(recorder, call)
        args, kwargs = tree.unflatten(call.treedef, given)
        leaves, treedef = tree.flatten(function(*args, **kwargs))
        lost = _lost_change((args, kwargs), given, leaves)
        length = len(recorder.graph.nodes)
        results: list[Any] = []
        values: list[tuple[Value, dlarray]] = []
        for leaf in leaves:
            if type(leaf) is dlarray:
                trace.check_open(leaf)
                values.append((recorder.value(leaf), leaf))
                results.append(ArrayLeaf(leaf._format))
            elif type(leaf) is Number:
                trace.check_open(leaf._array)
                values.append((recorder.value(leaf._array), leaf._array))
                results.append(NumberLeaf(leaf._kind))
            elif isinstance(leaf, Iterator):
                raise ArgumentError(
                    f"{name}: the result holds a {type(leaf).__name__}, which could be run through "
                    "only once, and not by a replay; return a list."
                )
            else:
                results.append(leaf.copy() if isinstance(leaf, np.ndarray) else leaf)
        arrays = _own(recorder, values) if outer is None else _spliced(recorder, values, call, outer)
        reads.results = {id(leaf._data) for _, leaf in values}
        reads.given_back = [leaf for leaf in results if type(leaf) not in (ArrayLeaf, NumberLeaf)]
        graph = recorder.graph
        graph.outputs = [value for value, _ in values]
        holds = guards.conjunction(recorder.builder, recorder.guards)
        if holds is not None:
            graph.outputs.append(holds)
    if reads.unguarded is not None:
        recorder.refuse(*_unguarded(reads.unguarded))
    state = rng.joined(reads, recorder)
    made = Trace(graph, results, treedef, tally, call.key, recorder.guards, state, recorder.refusal, length)
    made.lost_change = lost
    needed.update(recorder.needed)
    return made if recorder.replayable and not needed else None, made.assemble(arrays)


def _lost_change(arguments: Any, given: list[Any], results: list[Any]) -> tuple[int, tree.TreeDef] | None:
    """Return the place of an array that the function put into its arguments and did not return, among their leaves."""
    now, treedef = tree.flatten(arguments)
    kept = {id(leaf) for leaf in (*given, *results)}
    for place, leaf in enumerate(now):
        if id(leaf) not in kept and isinstance(leaf, (dlarray, np.ndarray, Number)):
            return place, treedef
    return None


def _inputs(recorder: trace.Recorder, call: Call) -> list[Any]:
    """Return the leaves of the arguments, arrays and numbers that vary as inputs of the trace."""
    arrays = iter(call.arrays)
    leaves: list[Any] = []
    for i, (leaf, part) in enumerate(zip(call.leaves, call.key.parts, strict=True)):
        if type(leaf) is dlarray:
            next(arrays)
            leaves.append(recorder.input(leaf))
        elif type(part) is NumberPart:
            leaves.append(Number(leaf, recorder.input(next(arrays)), frozenset((i,))))
        else:
            leaves.append(leaf)
    return leaves


def _unguarded(found: tuple[str, Where]) -> tuple[str, Where, str]:
    what, where = found
    return (
        f"it reads {what}, which cannot be compared with what it was at each call",
        where,
        "of a large array that NumPy computes with, make a dlarray, whose operations are recorded, or pass it as an "
        "argument",
    )


def _own(recorder: trace.Recorder, values: list[tuple[Value, dlarray]]) -> list[dlarray]:
    """Return results as those of a replay are: contiguous arrays of their own."""
    held = {id(value.data) for value in (*recorder.graph.inputs, *recorder.graph.constants)}
    arrays = []
    for _, leaf in values:
        data = leaf._data
        own = leaf._value is not None and data.base is None and id(data) not in held
        if not own or not data.flags.c_contiguous:
            data = data.copy()
        held.add(id(data))
        arrays.append(dlarray._wrap(data, leaf._format, None))
    return arrays


def _spliced(
    recorder: trace.Recorder, values: list[tuple[Value, dlarray]], call: Call, outer: trace.Recorder
) -> list[dlarray]:
    """Append what was recorded, with what was computed, to the tape of the evaluation around the call."""
    tape = outer.builder
    given = [outer.value(array) for array in call.arrays]
    arguments, read = recorder.graph.inputs[: len(given)], recorder.graph.inputs[len(given) :]
    partner: dict[Value, Value] = dict(zip(arguments, given, strict=True))
    partner.update((value, tape.constant(value.data)) for value in recorder.graph.constants)
    # What was read besides arguments is a constant there, as it is of any evaluation.
    for value in read:
        around = recorder.state.of_outer.get(value)
        partner[value] = tape.constant(value.data.copy()) if around is None else outer.value(around)
    for node in recorder.graph.nodes:
        copied = Node(node.op, tuple([partner[v] for v in node.inputs]), node.params, node.where)
        copied.makes(tuple([Value(v.aval, outer, copied, v.data) for v in node.outputs]))
        tape.graph.nodes.append(copied)
        partner.update(zip(node.outputs, copied.outputs, strict=True))
    return [dlarray._wrap(leaf._data, leaf._format, partner[value]) for value, leaf in values]
