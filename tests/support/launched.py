# SPDX-License-Identifier: BSD-3-Clause
"""Small graphs: what is launched for them, and whether it computes what they do."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from races import check_races

import tracejit as tj
from tracejit import pipeline
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.passes.loops.launches import NestLaunch, Section, Single
from tracejit.passes.schedule.memory import Plan
from tracejit.record.recorder import Recorder
from tracejit.runtime.python import PythonExecutable

F32 = np.dtype(np.float32)
Make = Callable[..., Value | Sequence[Value]]


def graph_of(make: Make, *shapes: tuple[int, ...]) -> Graph:
    b = Builder(Graph())
    made = make(b, *[b.input(Aval(shape, None, F32)) for shape in shapes])
    b.graph.outputs = [made] if isinstance(made, Value) else list(made)
    return b.graph


def singles(graph: Graph) -> list[Single]:
    """Return what is launched, of sections the first task."""
    return singles_of(pipeline.stages(graph).plan)


def singles_of(plan: Plan) -> list[Single]:
    return [each for one in plan.launches for each in (one.tasks[0] if isinstance(one, Section) else [one])]


def names(plan: Plan) -> list[str]:
    return [
        (" ".join(node.op.name for node in each.nodes) or "copy")
        if isinstance(each, NestLaunch)
        else each.name
        for each in singles_of(plan)
    ]


def agrees(graph: Graph) -> list[str]:
    """Return the names of launches, of a program that computes what the graph does.

    The error of a sum of products is relative to its terms, not to the sum: it is compared with the largest element.
    """
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, v.shape).astype(F32) for v in graph.inputs]
    stages = pipeline.stages(graph)
    for found, want in zip(PythonExecutable(stages.program)(arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-5 * np.abs(want).max(initial=0))
    check_races(stages.plan)
    return names(stages.plan)


def gated_unit(params: dict[str, Any], x: Any, steps: int) -> Any:
    width = params["wh"].shape[0]
    h = tj.zeros_like(x[0] @ params["wx"][:, :width])
    for t in range(steps):
        of_x, of_h = x[t] @ params["wx"] + params["b"], h @ params["wh"] + params["b"]
        reset = tj.sigmoid(of_x[:, :width] + of_h[:, :width])
        update = tj.sigmoid(of_x[:, width : 2 * width] + of_h[:, width : 2 * width])
        new = tj.tanh(of_x[:, 2 * width :] + reset * of_h[:, 2 * width :])
        h = (1 - update) * new + update * h
    return (h**2).mean()


def graph_of_gated_unit(steps: int, width: int) -> Graph:
    shapes = {"wx": (16, 3 * width), "wh": (width, 3 * width), "b": (3 * width,)}
    with Recorder("gated") as recorder:
        params = {
            name: recorder.input(tj.dlarray(np.full(shape, 0.1, F32))) for name, shape in shapes.items()
        }
        x = recorder.input(tj.dlarray(np.ones((steps, 32, 16), F32)))
        loss = gated_unit(params, x, steps)
        found = tj.dlgradient(loss, params)
        recorder.graph.outputs = [recorder.value(each) for each in (loss, *found.values())]
    return recorder.graph
