# SPDX-License-Identifier: BSD-3-Clause
"""The arrays that a recorded run returns: with elements of their own, or on the tape of the evaluation around it."""

from collections.abc import Collection

import numpy as np

from tracejit.array import dlarray
from tracejit.call.signature import Call, layouts
from tracejit.ir import Node, Value, live
from tracejit.record import recorder as recorders


def returned_arrays(
    recorder: recorders.Recorder, values: list[tuple[Value, dlarray]], call: Call, outer: recorders.Recorder | None,
    on_tape: dict[Value, Value],
) -> list[dlarray]:  # fmt: skip
    """Return the results as arrays: of their own, or on the tape of the evaluation around the call."""
    if outer is None:
        elements = _elements_apart(recorder, values, call)
        return [
            dlarray._wrap(data, leaf._format, None) for data, (_, leaf) in zip(elements, values, strict=True)
        ]
    return _spliced(recorder, values, call, outer, on_tape)


def _by_columns(
    recorder: recorders.Recorder, values: list[tuple[Value, dlarray]], call: Call
) -> Collection[int]:
    """Return the numbers of the results that replays will give by columns (Note [results by columns])."""
    if not any(isinstance(leaf._data, np.ndarray) and leaf._data.flags.fnc for _, leaf in values):
        return ()
    from tracejit.passes.graph.by_columns import numbers_by_columns

    graph, results = recorder.graph, [value for value, _ in values]
    return numbers_by_columns(graph, live(graph.nodes, results), results, layouts(call.key)) or ()


def _elements_apart(
    recorder: recorders.Recorder, values: list[tuple[Value, dlarray]], call: Call
) -> list[np.ndarray]:
    """Return the elements of results, contiguous and in memory of their own, as a replay gives them."""
    by_columns = _by_columns(recorder, values, call)
    held = {id(value.data) for value in (*recorder.graph.inputs, *recorder.graph.constants)}
    elements = []
    for number, (_, leaf) in enumerate(values):
        data = leaf._data
        own = leaf._value is not None and data.base is None and id(data) not in held
        if number in by_columns:
            data = data if own and data.flags.f_contiguous else data.copy("F")
        elif not own or not data.flags.c_contiguous:
            data = data.copy()
            if leaf._value is not None:
                leaf._data, leaf._view = (
                    data,
                    None,
                )  # a view would keep what the function made: Note [fresh arrays]
        held.add(id(data))
        elements.append(data)
    return elements


def _spliced(
    recorder: recorders.Recorder, values: list[tuple[Value, dlarray]], call: Call, outer: recorders.Recorder,
    on_tape: dict[Value, Value],
) -> list[dlarray]:  # fmt: skip
    """Append the recorded operations, with their results, to the tape of the evaluation around the call.

    `on_tape` takes the Values that stand there for the captured arrays.
    """
    tape = outer.builder
    values_outside = [outer.value(array) for array in call.arrays]
    arguments, read = (
        recorder.graph.inputs[: len(values_outside)],
        recorder.graph.inputs[len(values_outside) :],
    )
    partner: dict[Value, Value] = dict(zip(arguments, values_outside, strict=True))
    partner.update((value, tape.constant(value.data)) for value in recorder.graph.constants)
    # Arrays that were read besides the arguments are constants of that tape, as in any evaluation.
    for value in read:
        around = recorder.state.of_outer.get(value)
        elements = recorder.state.elements(value) if around is None else None
        captured = None if elements is None else outer.captured(elements)
        if around is None:
            partner[value] = tape.constant(value.data.copy()) if captured is None else captured
        else:
            partner[value] = outer.value(around)
    on_tape.update((value, partner[value]) for value in read)
    for node in recorder.graph.nodes:
        copied = Node(node.op, tuple([partner[v] for v in node.inputs]), node.params, node.where)
        copied.makes(tuple([Value(v.aval, outer, copied, v.data) for v in node.outputs]))
        tape.graph.nodes.append(copied)
        partner.update(zip(node.outputs, copied.outputs, strict=True))
    for value, plain in recorder.plain_numbers.items():
        outer.plain_numbers.setdefault(partner[value], plain)
    results = _elements_apart(recorder, values, call)
    return [
        dlarray._wrap(data, leaf._format, partner[value])
        for data, (value, leaf) in zip(results, values, strict=True)
    ]
