# SPDX-License-Identifier: BSD-3-Clause
"""Small and random graphs, their forms after each stage, and their results, shared by the tests of passes."""

import random
from collections.abc import Callable

import numpy as np
from effort import sweep
from graphs import Maker, random_case
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.passes.fusion.fuse import Fused, fuse
from tracejit.passes.fusion.regroup import regroup
from tracejit.passes.graph.simplify import simplify
from tracejit.passes.loops.select import select
from tracejit.passes.schedule.epilogues import join_epilogues
from tracejit.passes.schedule.memory import Plan, place
from tracejit.passes.schedule.sections import schedule
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime.python import PythonExecutable

ALL = ("float64", "float32", "int64", "int32", "uint8", "int8")

fuzz = settings(
    max_examples=sweep(10, 60, sample=4),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
)
seeds = st.integers(0, 10**9)


def case(seed: int, steps: int, dtypes: tuple[str, ...] = ALL) -> tuple[Maker, random.Random]:
    rnd = random.Random(seed)
    maker = random_case(rnd, steps, dtypes)
    assume(maker is not None)
    assert maker is not None
    return maker, rnd


def run(make: Callable[..., Value | list[Value]], *arrays: np.ndarray) -> tuple[Program, list[np.ndarray]]:
    """Build the graph that `make(b, *inputs)` returns, check its results and return them with the program."""
    graph = graph_of(make, *arrays)
    program = build(graph)
    results = PythonExecutable(program)(arrays)
    for have, want in zip(results, evaluate(graph, arrays), strict=True):
        assert have.dtype == want.dtype
        np.testing.assert_allclose(have, want, rtol=1e-13, atol=1e-13)
    return program, results


def graph_of(make: Callable[..., Value | list[Value]], *arrays: np.ndarray) -> Graph:
    graph = Graph()
    b = Builder(graph)
    result = make(b, *[b.input(Aval(a.shape, None, a.dtype)) for a in arrays])
    graph.outputs = result if isinstance(result, list) else [result]
    return graph


def grouped(graph: Graph) -> tuple[Graph, Fused]:
    simplified = simplify(graph)
    fused = fuse(simplified)
    regroup(simplified, fused)
    return simplified, fused


def plan_of(graph: Graph) -> Plan:
    simplified, fused = grouped(graph)
    selection = select(simplified, fused)
    launches, _ = schedule(selection.launches, selection.external)
    return place(join_epilogues(launches, selection.external), [], selection)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def softmax(b: Builder, x: Value, axis: int) -> Value:
    e = b.exp(b.sub(x, b.max(x, axes=(axis,), keepdims=True)))
    return b.div(e, b.sum(e, axes=(axis,), keepdims=True))


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]
